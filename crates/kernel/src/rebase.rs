//! Carries local commits of a git tree over to a newer tag with `git rebase`, which stops at
//! conflicts and goes on.

use std::path::Path;

use rtproof_host::{
    Root, boot, door,
    tune::{AddedPackage, Change, PackageManager},
};
use rtproof_judge::{Finding, Remedy, Status};
use rtproof_model::finding::RemedyPart;
use rtproof_results::kernel::{KernelPackage, Offers, REBASE_SCHEMA, Rebased};

use crate::find::FindError;
use crate::tool::{answer, git};
use crate::{KernelError, find};

/// What `kernel rebase` is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebaseAction {
    /// Begin: onto this tag, branch or commit; `from`: the commit that the local ones begin after.
    Onto {
        onto: String,
        /// Base of the local commits; `None`: what both have in common.
        from: Option<String>,
    },
    /// Go on after a conflict was resolved.
    Continue,
    /// Give up: everything as before.
    Abort,
}

/// Rebases the branch that is checked out.
///
/// # Errors
/// No git tree, changes that are not committed, a conflict: git's own lines.
pub fn rebase(tree: &Path, action: &RebaseAction) -> Result<Rebased, KernelError> {
    let git = || git(tree);
    let ask = |words: &[&str]| -> Result<String, KernelError> { answer(git()?.args(words), tree) };
    ask(&["rev-parse", "--is-inside-work-tree"])?;
    let is_under_way = || {
        ["rebase-merge", "rebase-apply"].iter().any(|name| {
            let path = ask(&["rev-parse", "--git-path", name]);
            path.is_ok_and(|path| tree.join(path).exists())
        })
    };
    let stopped = is_under_way();
    let mut command = git()?;
    // Where this call begins it: the new base, and how many commits are to be carried.
    let mut begun = None;
    match action {
        RebaseAction::Onto { .. } if stopped => {
            return Err(KernelError::path(
                tree,
                "a rebase is under way here; go on with --continue, or give it up with --abort",
            ));
        }
        RebaseAction::Continue | RebaseAction::Abort if !stopped => {
            return Err(KernelError::path(tree, "no rebase is under way here"));
        }
        RebaseAction::Onto { onto, from } => {
            let commit = |name: &str| {
                ask(&[
                    "rev-parse",
                    "--verify",
                    "--quiet",
                    "--end-of-options",
                    &format!("{name}^{{commit}}"),
                ])
                .map_err(|_| {
                    KernelError::path(
                        tree,
                        format!("no commit {name:?}; `git fetch --tags` gets those of others"),
                    )
                })
            };
            let target = commit(onto)?;
            let base = match from {
                Some(from) => commit(from)?,
                None => ask(&["merge-base", "HEAD", &target]).map_err(|_| {
                    KernelError::path(
                        tree,
                        format!("has no commit in common with {onto}; name the base with --from"),
                    )
                })?,
            };
            if !ask(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
                return Err(KernelError::path(tree, "has changes that are not committed"));
            }
            command.args(["rebase", "--no-autostash", "--onto", &target, &base]);
            let local = ask(&["rev-list", "--count", &format!("{base}..HEAD")])?;
            begun = Some((target, local.parse().ok()));
        }
        RebaseAction::Continue => {
            // As git keeps it (builtin/rebase.c): the new base, and how many were to be carried.
            let state = tree.join(ask(&["rev-parse", "--git-path", "rebase-merge"])?);
            let kept = |name: &str| {
                door::read_text(&state.join(name), crate::CONFIG_MAX)
                    .ok()
                    .map(|text| text.trim().to_owned())
            };
            begun = kept("onto").map(|target| {
                let local = kept("end").and_then(|end| end.parse().ok());
                (target, local)
            });
            command.args(["rebase", "--continue"]);
        }
        RebaseAction::Abort => {
            command.args(["rebase", "--abort"]);
        }
    }
    let output = command.output().map_err(KernelError::io(tree))?;
    if !output.status.success() {
        let conflicts = ask(&["diff", "--name-only", "--diff-filter=U"])?;
        let commit = ask(&["log", "-1", "--format=%h %s", "REBASE_HEAD"]).unwrap_or_default();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = said.lines().chain(stdout.lines());
        let lines: Vec<&str> = lines
            .filter(|line| !line.starts_with("hint:") && !line.contains('\r'))
            .take(8)
            .collect();
        let shown = tree.display();
        if conflicts.is_empty() {
            let next = if is_under_way() { "; --abort puts everything back" } else { "" };
            let why = format!("git rebase failed: {}{next}", lines.join("; "));
            return Err(KernelError::path(tree, why));
        }
        let text = format!(
            "{shown}: conflict in commit {commit}, in {}.\nResolve it, `git add` the files, then: \
             rtproof kernel rebase {shown} --continue (or --abort).\n  {}",
            conflicts.lines().collect::<Vec<_>>().join(", "),
            lines.join("\n  ")
        );
        return Err(KernelError::Conflict { text });
    }
    let onto = match (action, &begun) {
        (RebaseAction::Onto { onto, .. }, _) => Some(onto.clone()),
        (_, Some((target, _))) => Some(ask(&["describe", "--tags", "--always", target])?),
        (_, None) => None,
    };
    let commits = match &begun {
        Some((target, _)) => {
            // The commit: the name of the branch itself goes along.
            let range = format!("{target}..HEAD");
            let list = ask(&["log", "--format=%h %s", "--reverse", "--end-of-options", &range])?;
            Some(list.lines().map(str::to_owned).collect())
        }
        None => None,
    };
    Ok(Rebased {
        schema: REBASE_SCHEMA,
        tree: tree.display().to_string(),
        onto,
        commits,
        local: begun.and_then(|(_, local)| local),
        head: ask(&["log", "-1", "--format=%h %s"])?,
        aborted: *action == RebaseAction::Abort,
    })
}

// The distribution's real-time kernel as a remedy of the finding that there is none: what a plan
// asks the package manager for. `check` never asks; nothing is fetched.

/// The check whose finding it is.
pub const CHECK: &str = "preempt-rt";

/// Puts the offer of this machine's distribution in the place of the general advice. Of another
/// machine than the running one nothing is known.
pub fn replace_advice(root: &Root, findings: &mut [Finding]) {
    let stands = |finding: &&mut Finding| {
        finding.check == CHECK
            && finding.skipped.is_none()
            && matches!(finding.status, Status::Bad | Status::Doubtful)
    };
    let Some(finding) = findings.iter_mut().find(stands).filter(|_| root.is_live()) else {
        return;
    };
    let remedy = match find::find() {
        Ok(offers) => of(root, &offers),
        Err(FindError::NoManager(_)) => return,
        Err(error) => Remedy::Manual {
            text: format!(
                "install and boot a PREEMPT_RT kernel; which one is unknown, as the package \
                 manager does not answer ({error}); `rtproof kernel find` asks again"
            ),
        },
    };
    let general = finding.remedies.iter().position(|it| matches!(it, Remedy::Manual { .. }));
    match general {
        Some(at) => finding.remedies[at] = remedy,
        None => finding.remedies.insert(0, remedy),
    }
}

/// What the offers come down to.
fn of(root: &Root, offers: &Offers) -> Remedy {
    let manual = |text: String| Remedy::Manual { text };
    let all = &offers.packages;
    if let Some(there) = all.iter().find(|it| it.installed.is_some()) {
        return manual(format!(
            "boot the PREEMPT_RT kernel that is installed: {} {}",
            there.name,
            there.installed.as_deref().unwrap_or_default()
        ));
    }
    // A name with a colon is of another architecture.
    let following: Vec<&KernelPackage> =
        all.iter().filter(|it| it.follows && !it.name.contains(':')).collect();
    match (&following[..], offers.manager.as_str()) {
        ([], _) => manual(format!(
            "build a PREEMPT_RT kernel (`rtproof kernel build`; 6.12 or later with \
             CONFIG_PREEMPT_RT=y): the lists of {} have none to install",
            offers.manager
        )),
        ([one], "apt") => apt(root, one),
        ([one], _) => manual(format!(
            "as root: {}, then boot it; it can be removed with: {}",
            one.install, one.remove
        )),
        (several, _) => {
            let commands: Vec<&str> = several.iter().map(|it| it.install.as_str()).collect();
            manual(format!("install and boot one of these kernels: {}", commands.join(", or ")))
        }
    }
}

/// The change, with what keeps the default of the boot menu before it.
fn apt(root: &Root, package: &KernelPackage) -> Remedy {
    let release = package.with.iter().find_map(|name| {
        let (name, none) = (name.clone(), String::new());
        let added = AddedPackage { name, architecture: none.clone(), version: none };
        added.release().map(str::to_owned)
    });
    let release = release.unwrap_or_else(|| package.name.clone());
    let (kept, then) = menu(root, &release);
    let install = Change::Package {
        manager: PackageManager::Apt,
        name: package.name.clone(),
        adds: Vec::new(),
    };
    Remedy::Changes {
        text: package.install.clone(),
        changes: kept.into_iter().chain([install]).map(RemedyPart::from).collect(),
        then: Some(then),
    }
}

/// What keeps the default of the boot menu, and what becomes of the next boot.
fn menu(root: &Root, release: &str) -> (Option<Change>, String) {
    let loader = match boot::detect(root) {
        Ok(loader) if loader.kind != boot::LoaderKind::Elsewhere => loader,
        other => {
            let why = match other {
                Ok(loader) => loader.no_entry.unwrap_or(loader.name),
                Err(error) => error.to_string(),
            };
            return (None, format!("what boots {release} is then yours to arrange: {why}"));
        }
    };
    let once = format!("rtproof tune trial --kernel {release}");
    match loader.keep(root) {
        Ok(Some(kept)) => {
            (Some(kept), format!("then boot it once ({once}): the default boot stays as it is"))
        }
        Ok(None) | Err(_) => {
            let text = format!(
                "the boot after this one may be {release}: boot menus begin with the newest \
                 version; to go back choose the old kernel in the menu; for one boot only: {once}"
            );
            (None, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use rtproof_results::kernel::FIND_SCHEMA;

    use super::*;

    fn package(name: &str, installed: Option<&str>) -> KernelPackage {
        KernelPackage {
            name: name.into(),
            version: "6.1.192-2".into(),
            installed: installed.map(str::to_owned),
            with: vec!["linux-image-6.1.0-56-rt-amd64".into()],
            follows: !name.contains("6."),
            install: format!("MANAGER install {name}"),
            remove: format!("MANAGER remove {name}"),
            ..KernelPackage::default()
        }
    }

    fn remedy(manager: &str, packages: Vec<KernelPackage>) -> Remedy {
        let dir = tempfile::tempdir().unwrap();
        let (schema, manager) = (FIND_SCHEMA, manager.into());
        of(&Root::dir(dir.path()).unwrap(), &Offers { schema, manager, queries: vec![], packages })
    }

    #[test]
    fn only_one_of_apt_is_a_change() {
        let (meta, single) = ("linux-image-rt-amd64", "linux-image-6.1.0-56-rt-amd64");
        let remedies = remedy("apt", vec![package(meta, None), package(single, None)]);
        let Remedy::Changes { changes, then, .. } = remedies else { panic!("{remedies:?}") };
        // Without a boot loader nothing is said of its default.
        assert!(then.unwrap().contains("yours to arrange"));
        assert!(matches!(&changes[0].change, Change::Package { name, .. } if name == meta));
        let text = |remedy: Remedy| match remedy {
            Remedy::Manual { text } => text,
            other => panic!("{other:?}"),
        };
        let foreign = vec![package("linux-image-rt-arm64:arm64", None), package(meta, None)];
        assert!(matches!(remedy("apt", foreign), Remedy::Changes { .. }));
        let there = vec![package(meta, None), package(single, Some("6.1.176-1"))];
        assert!(
            text(remedy("apt", there)).contains("installed: linux-image-6.1.0-56-rt-amd64 6.1")
        );
        let two = vec![package(meta, None), package("linux-image-rt-686-pae", None)];
        assert!(text(remedy("apt", two)).contains("one of these"));
        assert!(text(remedy("apt", vec![package(single, None)])).contains("have none"));
        assert!(text(remedy("dnf", vec![package("kernel-rt", None)])).contains("removed with: M"));
    }
}
