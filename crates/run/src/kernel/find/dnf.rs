//! dnf (Fedora, RHEL and their kin). RHEL has kernel-rt in a repository of its own, which a
//! subscription enables; what is not enabled is not offered.

use rtproof_results::kernel::find::KernelPackage;

use super::manager::{FindError, Manager, Queries, is_realtime};

pub(super) const MANAGER: Manager =
    Manager { id: "dnf", program: "dnf", ask, install: "dnf install", remove: "dnf remove" };

/// Of dnf 4 and 5, each field after a tab; dnf 5 ends no line by itself.
const FORMAT: &str =
    "%{name}\t%{version}-%{release}\t%{downloadsize}\t%{installsize}\t%{summary}\n";

fn ask(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    let words =
        |kind| ["dnf", "-q", "repoquery", kind, "--latest-limit=1", "--qf", FORMAT, "kernel-rt*"];
    let offered = queries.ask(&words("--available"), None)?;
    let installed = queries.ask(&words("--installed"), None)?;
    packages(&offered, &installed)
}

fn packages(offered: &str, installed: &str) -> Result<Vec<KernelPackage>, FindError> {
    let installed = rows(installed)?;
    let mut all = rows(offered)?;
    for package in &mut all {
        let same = installed.iter().find(|it| it.name == package.name);
        package.installed = same.map(|it| it.version.clone());
    }
    Ok(all)
}

fn rows(text: &str) -> Result<Vec<KernelPackage>, FindError> {
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, version, download, disk, summary] = fields[..] else {
            return Err(FindError::Answer {
                command: "dnf repoquery".into(),
                line: line.to_owned(),
            });
        };
        if is_realtime(name) {
            all.push(KernelPackage {
                name: name.into(),
                version: version.into(),
                // dnf 4 prints sizes of bytes; 0 stands for none reported.
                download_bytes: download.parse().ok().filter(|&bytes: &u64| bytes > 0),
                disk_bytes: disk.parse().ok().filter(|&bytes: &u64| bytes > 0),
                description: summary.into(),
                ..KernelPackage::default()
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_another_answer_is_an_error() {
        let offered = "kernel-rt\t5.14.0-503\t1048576\t0\tThe Linux kernel with PREEMPT_RT\n\n\
                       kernel-rt-devel\t5.14.0-503\t1\t1\tfor modules\n";
        let all = packages(offered, "kernel-rt\t5.14.0-427\t1\t1\tx\n").unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].installed.as_deref(), Some("5.14.0-427"));
        assert_eq!((all[0].download_bytes, all[0].disk_bytes), (Some(1_048_576), None));
        assert!(packages("Last metadata expiration check\n", "").is_err());
    }
}
