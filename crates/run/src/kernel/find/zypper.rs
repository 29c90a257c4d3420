//! zypper (openSUSE, SLE).

use rtproof_results::kernel::find::KernelPackage;

use super::{
    manager::{FindError, Manager, Queries, is_realtime},
    table,
};

pub(super) const MANAGER: Manager = Manager {
    id: "zypper",
    program: "zypper",
    ask,
    install: "zypper install",
    remove: "zypper remove --clean-deps",
};

/// `ZYPPER_EXIT_INF_CAP_NOT_FOUND`: nothing matches.
const NONE: i32 = 104;

fn ask(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    let search =
        ["zypper", "--non-interactive", "--no-refresh", "search", "-t", "package", "kernel-rt*"];
    let found = queries.ask(&search, Some(NONE))?;
    let names = names(&found);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut info = vec!["zypper", "--non-interactive", "--no-refresh", "info"];
    info.extend(names.iter().map(String::as_str));
    Ok(packages(&queries.ask(&info, None)?))
}

/// The second column of the table.
fn names(table: &str) -> Vec<String> {
    let name = |line: &str| line.split('|').nth(1).map(|name| name.trim().to_owned());
    table.lines().filter_map(name).filter(|name| is_realtime(name)).collect()
}

fn packages(info: &str) -> Vec<KernelPackage> {
    let all = table::paragraphs(info).into_iter().filter_map(|of| {
        let field = |name: &str| of.get(name).cloned();
        let (name, version) = (field("Name")?, field("Version")?);
        let is_installed = field("Installed").is_some_and(|text| text.starts_with("Yes"));
        // "out-of-date (version 6.4.0 installed)".
        let old = field("Status").and_then(|text| {
            let (_, rest) = text.split_once("(version ")?;
            rest.split_once(" installed)").map(|(version, _)| version.to_owned())
        });
        Some(KernelPackage {
            installed: is_installed.then(|| old.unwrap_or_else(|| version.clone())),
            disk_bytes: field("Installed Size").and_then(|text| table::bytes(&text)),
            description: field("Summary").unwrap_or_default(),
            name,
            version,
            ..KernelPackage::default()
        })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_paragraphs_are_read() {
        let found = "S | Name | Summary | Type\n--+--+--+--\n  | kernel-rt | RT kernel | package\n\
                     i | kernel-rt-devel | x | package\n";
        assert_eq!(names(found), ["kernel-rt"]);
        let info = "Information for package kernel-rt:\n---\nRepository     : OSS\n\
                    Name           : kernel-rt\nVersion        : 6.4.0-1\n\
                    Installed Size : 2.0 KiB\nInstalled      : Yes\n\
                    Status         : out-of-date (version 6.3.0 installed)\nSummary : RT\n";
        let all = packages(info);
        assert_eq!(all[0].disk_bytes, Some(2048));
        assert_eq!(all[0].installed.as_deref(), Some("6.3.0"));
        assert_eq!(all[0].download_bytes, None);
    }
}
