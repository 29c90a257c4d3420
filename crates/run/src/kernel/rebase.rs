//! Carries local commits of a git tree over to a newer tag with `git rebase`, which stops at
//! conflicts and goes on.

use std::{fs, path::Path, process::Command};

use rtproof_results::kernel::rebase::{Rebased, SCHEMA};

use super::{
    error::KernelError,
    tool::{answer, tool},
};

/// What `kernel rebase` is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
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
pub fn rebase(tree: &Path, action: &Action) -> Result<Rebased, KernelError> {
    let git = || -> Result<Command, KernelError> {
        let mut command = tool("git", "git")?;
        // The user's own commits in the user's own tree; no editor may wait for a terminal.
        command.arg("-C").arg(tree).env("GIT_EDITOR", "true");
        Ok(command)
    };
    let ask = |words: &[&str]| -> Result<String, KernelError> {
        let mut command = git()?;
        command.args(words);
        answer(command, tree)
    };
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
        Action::Onto { .. } if stopped => {
            return Err(KernelError::path(
                tree,
                "a rebase is under way here; go on with --continue, or give it up with --abort",
            ));
        }
        Action::Continue | Action::Abort if !stopped => {
            return Err(KernelError::path(tree, "no rebase is under way here"));
        }
        Action::Onto { onto, from } => {
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
        Action::Continue => {
            // As git keeps it (builtin/rebase.c): the new base, and how many were to be carried.
            let state = tree.join(ask(&["rev-parse", "--git-path", "rebase-merge"])?);
            #[expect(clippy::disallowed_methods, reason = "git's state in the user's own tree")]
            let kept = |name: &str| {
                fs::read_to_string(state.join(name)).ok().map(|text| text.trim().to_owned())
            };
            begun = kept("onto").map(|target| {
                let local = kept("end").and_then(|end| end.parse().ok());
                (target, local)
            });
            command.args(["rebase", "--continue"]);
        }
        Action::Abort => {
            command.args(["rebase", "--abort"]);
        }
    }
    let output = command.env("LC_ALL", "C").output().map_err(KernelError::io(tree))?;
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
        (Action::Onto { onto, .. }, _) => Some(onto.clone()),
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
        schema: SCHEMA,
        tree: tree.display().to_string(),
        onto,
        commits,
        local: begun.and_then(|(_, local)| local),
        head: ask(&["log", "-1", "--format=%h %s"])?,
        aborted: *action == Action::Abort,
    })
}
