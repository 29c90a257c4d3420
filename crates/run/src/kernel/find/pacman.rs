//! pacman (Arch).

use rtproof_results::kernel::find::KernelPackage;

use super::{
    manager::{FindError, Manager, Queries, is_realtime},
    table,
};

pub(super) const MANAGER: Manager =
    Manager { id: "pacman", program: "pacman", ask, install: "pacman -S", remove: "pacman -Rs" };

fn ask(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    // 1: nothing matches.
    let found = queries.ask(&["pacman", "-Ssq", "^linux-(rt|realtime)"], Some(1))?;
    let names: Vec<&str> = found.lines().map(str::trim).filter(|name| is_realtime(name)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut info = vec!["pacman", "-Si"];
    info.extend(&names);
    let shown = queries.ask(&info, None)?;
    let mut local = vec!["pacman", "-Q"];
    local.extend(&names);
    let installed = queries.ask(&local, Some(1))?;
    Ok(packages(&shown, &installed))
}

fn packages(shown: &str, installed: &str) -> Vec<KernelPackage> {
    let version_of = |name: &str| {
        let mut pairs = installed.lines().filter_map(|line| line.split_once(' '));
        pairs.find(|(is, _)| *is == name).map(|(_, version)| version.to_owned())
    };
    let all = table::paragraphs(shown).into_iter().filter_map(|of| {
        let field = |name: &str| of.get(name).cloned();
        let name = field("Name")?;
        let size = |title| field(title).and_then(|text| table::bytes(&text));
        Some(KernelPackage {
            version: field("Version")?,
            installed: version_of(&name),
            download_bytes: size("Download Size"),
            disk_bytes: size("Installed Size"),
            description: field("Description").unwrap_or_default(),
            name,
            ..KernelPackage::default()
        })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_read() {
        let shown = "Repository      : extra\nName            : linux-rt\n\
                     Version         : 6.6.1.rt1-1\nDescription     : RT kernel\n\
                     Download Size   : 1.5 MiB\nInstalled Size  : 3.00 MiB\n";
        let all = packages(shown, "linux-rt 6.5.0-1\n");
        assert_eq!(all[0].download_bytes, Some(1_572_864));
        assert_eq!(all[0].disk_bytes, Some(3_145_728));
        assert_eq!(all[0].installed.as_deref(), Some("6.5.0-1"));
    }
}
