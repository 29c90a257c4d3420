//! The pinned packages of the lab, from `kernels/pins.txt`: kernels with their headers, busybox,
//! QEMU.

use std::collections::HashSet;

use anyhow::{Context, Result, bail};

use crate::fetch::{Archive, Package};

const TABLE: &str = include_str!("kernels/pins.txt");

/// The alternatives of one section, best first; each is a set that belongs together.
///
/// # Errors
/// There is no such section, or a line of it is malformed.
pub fn sets(section: &str) -> Result<Vec<Vec<Package>>> {
    let mut lines = TABLE.lines().skip_while(|line| *line != format!("[{section}]"));
    lines.next().with_context(|| format!("lab/src/kernels/pins.txt: no section [{section}]"))?;
    let mut sets = vec![Vec::new()];
    for line in lines.take_while(|line| !line.starts_with('[')) {
        match line.trim() {
            "" => {}
            "or" => sets.push(Vec::new()),
            line => {
                let package = package(line)
                    .with_context(|| format!("lab/src/kernels/pins.txt, [{section}]"))?;
                sets.last_mut().context("there is always one")?.push(package);
            }
        }
    }
    Ok(sets)
}

/// File names of all pinned packages: what stays in the cache.
pub fn file_names() -> HashSet<String> {
    let pins = TABLE.lines().filter_map(|line| package(line).ok());
    pins.map(|package| package.file_name()).collect()
}

fn package(line: &'static str) -> Result<Package> {
    let [archive, sha256, path] = line.split(' ').collect::<Vec<_>>()[..] else {
        bail!("{line:?}: expected 'ARCHIVE SHA256 PATH'");
    };
    let archive = match archive {
        "debian" => Archive::Debian,
        "security" => Archive::Security,
        other => bail!("{other:?}: expected 'debian' or 'security'"),
    };
    let file = path.rsplit('/').next().unwrap_or_default();
    let [name, version, _] = file.split('_').collect::<Vec<_>>()[..] else {
        bail!("{path:?}: expected .../NAME_VERSION_ARCHITECTURE.deb");
    };
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        bail!("{sha256:?}: expected a SHA-256");
    }
    Ok(Package { name, version, path, sha256, archive })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood() {
        let mut packages = 0;
        for line in TABLE.lines().filter(|line| line.contains(".deb")) {
            package(line).unwrap();
            packages += 1;
        }
        assert!(packages > 60);
        let sets = sets("rt-6.1").unwrap();
        assert_eq!(sets.len(), 2);
        assert_eq!(sets[0][0].name, "linux-image-6.1.0-50-rt-amd64-unsigned");
        assert_eq!(sets[0][0].version, "6.1.176-1");
        assert!(super::sets("rt-0.1").is_err());
    }
}
