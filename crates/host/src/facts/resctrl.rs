//! Resource control: parts of the cache given to groups of CPUs
//! (Documentation/filesystems/resctrl.rst).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::lacking;
use crate::{CpuList, Reading, Root, text::field};

const FOLDER: &str = "/sys/fs/resctrl";

/// Name of the default group, which no folder has.
pub const DEFAULT: &str = "/";

/// Names in the folder that are no group.
const NOT_GROUPS: &[&str] = &[
    "cpus",
    "cpus_list",
    "info",
    "last_cmd_status",
    "mba_MBps_event",
    "mode",
    "mon_data",
    "mon_groups",
    "schemata",
    "size",
    "tasks",
];

/// What the machine has and how it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resctrl {
    /// Whether processor and kernel can split a cache.
    pub supported: bool,
    /// Groups, the default one first; none where it is not mounted.
    pub groups: Vec<Group>,
    /// The third-level cache of each CPU of a group: (CPU, cache id), the id that schemata name.
    /// Empty where there is only the default group.
    pub caches: Vec<(u32, u32)>,
}

/// CPUs and what they may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Its folder's name; `/`: the default group.
    pub name: String,
    /// CPUs that use it, whatever runs on them.
    pub cpus: CpuList,
    /// Lines of its schemata, as `L3:0=ff0;1=fff`.
    pub schemata: Vec<String>,
}

/// Reads the groups; /proc/cpuinfo is handed in.
pub fn read(root: &Root, cpuinfo: &Reading<String>) -> Reading<Resctrl> {
    let none = |path: &str| {
        let resctrl = Resctrl { supported: false, groups: Vec::new(), caches: Vec::new() };
        Reading::known(path, resctrl)
    };
    // x86 names the feature; elsewhere the folder is the only sign.
    let flags = cpuinfo.value().and_then(|text| field(text, "flags"));
    if flags.is_some_and(|flags| !flags.split_whitespace().any(is_cache_allocation)) {
        return none(&cpuinfo.path);
    }
    let names = root.list_dir(FOLDER);
    if names.is_absent()
        && let Some(folder) = lacking(root, FOLDER)
    {
        return none(&folder.path);
    }
    let Some(found) = names.value() else {
        return names.and_then(|path, _| none(&path));
    };
    let is_mounted = found.iter().any(|name| name == "schemata");
    let mut groups = Vec::new();
    let others = found.iter().map(String::as_str).filter(|name| !NOT_GROUPS.contains(name));
    for name in [DEFAULT].into_iter().chain(others).filter(|_| is_mounted) {
        let group = group(root, name);
        match group.value() {
            Some(group) => groups.push(group.clone()),
            // It went between the listing and the reading.
            None if group.is_absent() => {}
            None => return group.and_then(|path, _| none(&path)),
        }
    }
    let caches = if groups.len() > 1 { caches(root, &groups) } else { Vec::new() };
    Reading::known(names.path, Resctrl { supported: true, groups, caches })
}

/// Flags of /proc/cpuinfo on Intel and AMD.
fn is_cache_allocation(flag: &str) -> bool {
    matches!(flag, "cat_l3" | "cat_l2")
}

fn group(root: &Root, name: &str) -> Reading<Group> {
    let folder = match name {
        DEFAULT => FOLDER.to_owned(),
        name => format!("{FOLDER}/{name}"),
    };
    let cpus = root.cpu_list(&format!("{folder}/cpus_list"));
    cpus.and_then(|_, cpus| {
        let schemata = root.read_text(&format!("{folder}/schemata"));
        schemata.map(|text| {
            let schemata = text.lines().map(|line| line.trim().to_owned()).collect();
            Group { name: name.to_owned(), cpus, schemata }
        })
    })
}

fn caches(root: &Root, groups: &[Group]) -> Vec<(u32, u32)> {
    let cpus = groups.iter().flat_map(|group| group.cpus.iter());
    let cache = |cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/id");
        Some((cpu, *root.number(&path, "a cache's number").value()?))
    };
    let mut caches: Vec<(u32, u32)> = cpus.filter_map(cache).collect();
    caches.sort_unstable();
    caches.dedup();
    caches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn of(files: &[(&str, &str)], flags: &str) -> Reading<Resctrl> {
        let cpuinfo = Reading::known("/proc/cpuinfo", format!("flags\t\t: fpu {flags}\n"));
        read(&Tree::new(files).root(), &cpuinfo)
    }

    #[test]
    fn a_processor_without_it_is_known_and_a_folder_that_is_not_there_is_not() {
        let resctrl = of(&[], "tsc");
        assert_eq!(resctrl.path, "/proc/cpuinfo");
        assert!(!resctrl.value().unwrap().supported);
        assert!(of(&[], "cat_l3").is_absent());
    }

    #[test]
    fn groups_with_their_cpus_and_caches() {
        let resctrl = of(
            &[
                ("sys/fs/resctrl/schemata", "    MB:0=100\n    L3:0=00f\n"),
                ("sys/fs/resctrl/cpus_list", "0-1\n"),
                ("sys/fs/resctrl/info/L3/cbm_mask", "fff\n"),
                ("sys/fs/resctrl/rt/schemata", "L3:0=ff0\n"),
                ("sys/fs/resctrl/rt/cpus_list", "2\n"),
                ("sys/devices/system/cpu/cpu2/cache/index3/id", "0\n"),
            ],
            "cat_l3",
        );
        let resctrl = resctrl.value().unwrap();
        assert_eq!(resctrl.groups[0].schemata, ["MB:0=100", "L3:0=00f"]);
        assert_eq!(
            (resctrl.groups[1].name.as_str(), resctrl.groups[1].cpus.as_slice()),
            ("rt", &[2][..])
        );
        assert_eq!(resctrl.caches, [(2, 0)]);
    }
}
