//! The distribution's real-time kernel as a remedy of the finding that there is none: what a plan
//! asks the package manager for. `check` never asks; nothing is fetched.

use rtproof_host::{
    Root, boot,
    tune::{AddedPackage, Change, PackageManager},
};
use rtproof_judge::{Finding, Remedy, Status};
use rtproof_model::finding::Part;
use rtproof_results::kernel::find::{KernelPackage, Offers};

use super::find::{self, FindError};

/// The check whose finding it is.
pub const CHECK: &str = "preempt-rt";

/// Puts the offer of this machine's distribution in the place of the general advice. Of another
/// machine than the running one nothing is known.
pub fn put(root: &Root, findings: &mut [Finding]) {
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
        changes: kept.into_iter().chain([install]).map(Part::from).collect(),
        then: Some(then),
    }
}

/// What keeps the default of the boot menu, and what becomes of the next boot.
fn menu(root: &Root, release: &str) -> (Option<Change>, String) {
    let loader = match boot::detect(root) {
        Ok(loader) if loader.kind != boot::Kind::Elsewhere => loader,
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
    use rtproof_results::kernel::find::SCHEMA;

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
        let (schema, manager) = (SCHEMA, manager.into());
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
