//! apt (Debian, Ubuntu).

use std::collections::BTreeMap;

use rtproof_results::kernel::find::KernelPackage;

use super::{
    manager::{FindError, Manager, Queries, is_realtime},
    table,
};

pub(super) const MANAGER: Manager = Manager {
    id: "apt",
    program: "apt-get",
    ask,
    // What a kernel recommends and is not here was left out on purpose.
    install: "apt-get install --no-install-recommends",
    // autoremove would take along what else on the machine is no longer needed.
    remove: "apt-get purge",
};

fn ask(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    let search = ["apt-cache", "search", "--names-only", "^linux-image-.*(rt|realtime)"];
    let found = queries.ask(&search, None)?;
    let names = found.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| is_realtime(name)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut show = vec!["apt-cache", "show", "--no-all-versions"];
    show.extend(&names);
    let shown = queries.ask(&show, None)?;
    let mut policy = vec!["apt-cache", "policy"];
    policy.extend(&names);
    let policy = queries.ask(&policy, None)?;
    Ok(packages(&shown, &installed(&policy)))
}

/// Packages as `apt-cache show` prints them.
fn packages(shown: &str, installed: &BTreeMap<String, String>) -> Vec<KernelPackage> {
    let all = table::paragraphs(shown);
    let field = |of: &BTreeMap<String, String>, name: &str| of.get(name).cloned();
    let sizes = |of: &BTreeMap<String, String>| {
        let number = |name| field(of, name).and_then(|text| text.parse::<u64>().ok());
        (number("Size"), number("Installed-Size").map(|kib| kib * 1024))
    };
    let of = |paragraph: &BTreeMap<String, String>| {
        let name = field(paragraph, "Package")?;
        let depends = field(paragraph, "Depends").unwrap_or_default();
        let first = |one: &str| one.split_whitespace().next().unwrap_or_default().to_owned();
        let with: Vec<String> =
            depends.split(',').map(first).filter(|name| name.starts_with("linux-image-")).collect();
        let (mut download_bytes, mut disk_bytes) = sizes(paragraph);
        for name in &with {
            let other = all.iter().find(|it| it.get("Package") == Some(name));
            let (download, disk) = other.map(sizes).unwrap_or_default();
            download_bytes = download_bytes.zip(download).map(|(a, b)| a + b);
            disk_bytes = disk_bytes.zip(disk).map(|(a, b)| a + b);
        }
        Some(KernelPackage {
            version: field(paragraph, "Version")?,
            installed: installed.get(&name).cloned(),
            download_bytes,
            disk_bytes,
            with,
            description: field(paragraph, "Description")
                .or_else(|| field(paragraph, "Description-en"))
                .unwrap_or_default(),
            name,
            ..KernelPackage::default()
        })
    };
    all.iter().filter_map(of).collect()
}

/// Versions that `apt-cache policy` reports as installed.
fn installed(policy: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut name = "";
    for line in policy.lines() {
        if let Some(title) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            name = title;
        } else if let Some(version) = line.trim().strip_prefix("Installed: ")
            && version != "(none)"
        {
            all.insert(name.to_owned(), version.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "\
Package: linux-image-rt-amd64\nVersion: 6.1.192-2\nInstalled-Size: 13\nSize: 1480\n\
Depends: linux-image-6.1.0-56-rt-amd64 (= 6.1.192-2)\n\
Description: Linux for 64-bit PCs (meta-package)\n\n\
Package: linux-image-6.1.0-56-rt-amd64\nVersion: 6.1.192-2\nInstalled-Size: 400366\n\
Depends: kmod, linux-base (>= 4.3~)\nSize: 70352040\nDescription: Linux 6.1 for 64-bit PCs\n\n\
Package: linux-image-6.12-rt-amd64\nVersion: 6.12.1-1\nInstalled-Size: 13\nSize: 1480\n\
Depends: linux-image-6.12.1+deb12-rt-amd64 (= 6.12.1-1)\n";

    #[test]
    fn sizes_are_those_of_what_comes_with_it() {
        let policy = "linux-image-rt-amd64:\n  Installed: (none)\n  Candidate: 6.1.192-2\n\
                      linux-image-6.1.0-56-rt-amd64:\n  Installed: 6.1.1\n  Candidate: 6.1.192-2\n";
        let all = packages(SHOWN, &installed(policy));
        assert_eq!(all[0].with, ["linux-image-6.1.0-56-rt-amd64"]);
        assert_eq!(all[0].download_bytes, Some(70_353_520));
        assert_eq!(all[0].disk_bytes, Some(400_379 * 1024));
        assert_eq!(
            (all[0].installed.as_deref(), all[1].installed.as_deref()),
            (None, Some("6.1.1"))
        );
        // The image of this one was not among the answers: its size is unknown, not 1480 bytes.
        assert_eq!((all[2].download_bytes, all[2].disk_bytes), (None, None));
    }
}
