//! `CPUAffinity=` of systemd's manager: systemd-system.conf(5), in its order of files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use crate::{CpuList, Reading, Root};

/// `CPUAffinity=` as systemd reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManagerAffinity {
    /// The last file that sets it.
    pub file: String,
    /// CPUs; `None`: not a list, or `numa`.
    pub cpus: Option<CpuList>,
    pub text: String,
}

/// Folders of the configuration, the first wins.
const FOLDERS: &[&str] =
    &["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", "/lib/systemd"];

pub(super) fn read(root: &Root) -> Reading<Option<ManagerAffinity>> {
    let mut files = Vec::new();
    let mut is_there = false;
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for folder in FOLDERS {
        let listed = root.list_dir(folder);
        let Some(names) = listed.value() else {
            if !listed.is_absent() {
                return listed.map(|_| None);
            }
            continue;
        };
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        // systemd's own folder, not one that a package left a unit in.
        is_there |= has("system.conf") || has("systemd") || has("system.conf.d");
        if files.is_empty() && has("system.conf") {
            files.push(format!("{folder}/system.conf"));
        }
        if !has("system.conf.d") {
            continue;
        }
        let inside = root.list_dir(&format!("{folder}/system.conf.d"));
        let Some(inside) = inside.value() else {
            return inside.map(|_| None);
        };
        for name in inside.iter().filter(|name| name.ends_with(".conf")) {
            let path = format!("{folder}/system.conf.d/{name}");
            drop_ins.entry(name.clone()).or_insert(path);
        }
    }
    let path = format!("{}/system.conf, system.conf.d", FOLDERS[0]);
    if !is_there {
        return Reading::absent(path);
    }
    files.extend(drop_ins.into_values());
    let mut found = None;
    for file in files {
        let text = root.read_text(&file);
        match text.value() {
            Some(text) => take(text, &file, &mut found),
            // Removed meanwhile.
            None if text.is_absent() => {}
            None => return text.map(|_| None),
        }
    }
    Reading::known(path, found)
}

/// Later lines add to earlier ones; an empty one forgets them.
fn take(text: &str, file: &str, found: &mut Option<ManagerAffinity>) {
    for line in text.lines().map(str::trim) {
        let Some(value) = line.strip_prefix("CPUAffinity") else {
            continue;
        };
        let Some(value) = value.trim_start().strip_prefix('=').map(str::trim) else {
            continue;
        };
        if value.is_empty() {
            *found = None;
            continue;
        }
        let list = value.split([' ', '\t']).collect::<Vec<_>>().join(",");
        let cpus = CpuList::parse(&list, None).ok();
        let before = found.take().map(|before| before.cpus);
        let cpus = match (before, cpus) {
            (Some(Some(before)), Some(cpus)) => Some(before.union(&cpus)),
            (None, cpus) => cpus,
            _ => None,
        };
        *found = Some(ManagerAffinity { file: file.into(), cpus, text: value.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn affinity(files: &[(&str, &str)]) -> Option<(String, Option<String>)> {
        let found = read(&Tree::new(files).root());
        let found = found.value().unwrap().clone()?;
        Some((found.file, found.cpus.map(|cpus| cpus.to_string())))
    }

    #[test]
    fn files_in_systemds_order() {
        let main = ("etc/systemd/system.conf", "[Manager]\n#CPUAffinity=9\nCPUAffinity=0 1\n");
        let some = |file: &str, cpus: &str| Some((file.to_owned(), Some(cpus.to_owned())));
        assert_eq!(affinity(&[main]), some("/etc/systemd/system.conf", "0-1"));
        let vendor = ("usr/lib/systemd/system.conf", "CPUAffinity=5\n");
        assert_eq!(affinity(&[main, vendor]), some("/etc/systemd/system.conf", "0-1"));
        let add = ("etc/systemd/system.conf.d/50-rt.conf", "CPUAffinity = 4,6-7\n");
        let file = "/etc/systemd/system.conf.d/50-rt.conf";
        assert_eq!(affinity(&[main, add]), some(file, "0-1,4,6-7"));
        let reset = ("usr/lib/systemd/system.conf.d/60.conf", "CPUAffinity=\n");
        assert_eq!(affinity(&[main, add, reset]), None);
        let numa = ("etc/systemd/system.conf", "CPUAffinity=numa\n");
        assert_eq!(affinity(&[numa]), Some(("/etc/systemd/system.conf".into(), None)));
    }

    #[test]
    fn no_systemd_and_a_refusal() {
        assert!(read(&Tree::new(&[("proc/x", "")]).root()).is_absent());
        let refused = read(&Tree::new(&[("etc/systemd/system.conf/x", "")]).root());
        assert!(refused.value().is_none() && !refused.is_absent());
    }
}
