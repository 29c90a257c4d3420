//! Memory: swap, huge pages, mounts, and parts of the cache given to groups of CPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{Settings, missing_from, value_of};
use crate::knobs::cpu as knobs;
use crate::text::{field, unescape};
use crate::{CpuList, Reading, Root};

/// Memory settings that bring page faults and compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    pub swaps: Reading<Vec<Swap>>,
    /// transparent_hugepage/enabled: always, madvise or never.
    pub thp_enabled: Reading<String>,
    /// transparent_hugepage/defrag.
    pub thp_defrag: Reading<String>,
    /// Memory available without swapping, bytes (MemAvailable).
    pub available_bytes: Reading<u64>,
}

/// One swap area (/proc/swaps).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swap {
    pub name: String,
    pub size_bytes: u64,
    pub used_bytes: u64,
}

impl Memory {
    /// Reads the memory settings; what was read already is given.
    pub fn read(root: &Root, meminfo: &Reading<String>, settings: &Settings) -> Self {
        Self {
            swaps: root.read_text("/proc/swaps").and_then(swaps),
            thp_enabled: value_of(settings, &knobs::THP),
            thp_defrag: value_of(settings, &knobs::THP_DEFRAG),
            available_bytes: meminfo_bytes(meminfo, "MemAvailable"),
        }
    }
}

/// One line of /proc/meminfo, `NAME: 123 kB`, in bytes.
pub(super) fn meminfo_bytes(meminfo: &Reading<String>, name: &str) -> Reading<u64> {
    meminfo.clone().and_then(|path, text| {
        let line = text
            .lines()
            .find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        match kib.and_then(|kib| kib.checked_mul(1024)) {
            Some(bytes) => Reading::known(path, bytes),
            None => Reading::malformed(path, line.unwrap_or(""), format!("{name}: and kB")),
        }
    })
}

/// Filename, Type, Size, Used, Priority; sizes in KiB (mm/swapfile.c, `swap_show`).
fn swaps(path: String, text: String) -> Reading<Vec<Swap>> {
    let area = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bytes = |word: &str| word.parse::<u64>().ok()?.checked_mul(1024);
        let [name, _kind, size, used, ..] = words[..] else {
            return None;
        };
        Some(Swap { name: unescape(name), size_bytes: bytes(size)?, used_bytes: bytes(used)? })
    };
    let mut lines = text.lines();
    if !lines.next().is_some_and(|header| header.starts_with("Filename")) {
        return Reading::malformed(path, &text, "a header Filename Type Size Used Priority");
    }
    let mut areas = Vec::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        match area(line) {
            Some(swap) => areas.push(swap),
            None => return Reading::malformed(path, line, "Filename Type Size Used Priority"),
        }
    }
    Reading::known(path, areas)
}

// Mounted file systems that hold files of programs: disks, servers, user space.
//
// Of a mount only where it is, what kind it is and the options that cost time are kept. What is
// mounted (a disk's or a server's name) says nothing about latency and is not.

/// Options that cost time or save it; the rest is left out, user names and addresses with it.
pub(crate) const OPTIONS: &[&str] = &[
    "rw",
    "ro",
    "sync",
    "dirsync",
    "relatime",
    "noatime",
    "nodiratime",
    "lazytime",
    "data=journal",
    "data=ordered",
    "data=writeback",
];

/// Kinds that are the kernel's own, in memory, or a layer over others.
const NOT_FILES: &[&str] = &[
    "autofs",
    "bdev",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "overlay",
    "pipefs",
    "proc",
    "pstore",
    "ramfs",
    "resctrl",
    "rootfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// Folders in which daemons mount for themselves and for containers, which come and go.
const NOT_OURS: &[&str] =
    &["/run/", "/var/lib/kubelet/", "/var/lib/docker/", "/var/lib/containers/", "/snap/"];

/// One mounted file system, from /proc/self/mounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// Where it is mounted.
    pub name: String,
    /// Its type: `ext4`, `nfs4`, `fuse.sshfs`.
    pub kind: String,
    /// Of its options those that cost time or save it.
    pub options: Vec<String>,
}

/// Reads /proc/self/mounts.
pub fn read_mounts(root: &Root) -> Reading<Vec<Mount>> {
    root.read_text("/proc/self/mounts").and_then(|path, text| {
        let mut mounts: Vec<Mount> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, point, kind, options, ..] = words[..] else {
                return Reading::malformed(path, line, "what, where, type, options");
            };
            let name = unescape(point);
            // What is mounted over hides what was there.
            mounts.retain(|mount| mount.name != name);
            if NOT_FILES.contains(&kind) || NOT_OURS.iter().any(|top| name.starts_with(top)) {
                continue;
            }
            let kept = options.split(',').filter(|option| OPTIONS.contains(option));
            let options = kept.map(str::to_owned).collect();
            mounts.push(Mount { name, kind: kind.to_owned(), options });
        }
        Reading::known(path, mounts)
    })
}

// Resource control: parts of the cache given to groups of CPUs
// (Documentation/filesystems/resctrl.rst).

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
    pub groups: Vec<ResctrlGroup>,
    /// The third-level cache of each CPU of a group: (CPU, cache id), the id that schemata name.
    /// Empty where there is only the default group.
    pub caches: Vec<(u32, u32)>,
}

/// CPUs and what they may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResctrlGroup {
    /// Its folder's name; `/`: the default group.
    pub name: String,
    /// CPUs that use it, whatever runs on them.
    pub cpus: CpuList,
    /// Lines of its schemata, as `L3:0=ff0;1=fff`.
    pub schemata: Vec<String>,
}

/// Reads the groups; /proc/cpuinfo is passed in.
pub fn read_resctrl(root: &Root, cpuinfo: &Reading<String>) -> Reading<Resctrl> {
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
        && let Some(folder) = missing_from(root, FOLDER)
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

fn group(root: &Root, name: &str) -> Reading<ResctrlGroup> {
    let folder = match name {
        DEFAULT => FOLDER.to_owned(),
        name => format!("{FOLDER}/{name}"),
    };
    let cpus = root.cpu_list(&format!("{folder}/cpus_list"));
    cpus.and_then(|_, cpus| {
        let schemata = root.read_text(&format!("{folder}/schemata"));
        schemata.map(|text| {
            let schemata = text.lines().map(|line| line.trim().to_owned()).collect();
            ResctrlGroup { name: name.to_owned(), cpus, schemata }
        })
    })
}

fn caches(root: &Root, groups: &[ResctrlGroup]) -> Vec<(u32, u32)> {
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

    fn memory(files: &[(&str, &str)]) -> Memory {
        let root = Tree::new(files);
        let root = root.root();
        let settings = crate::facts::settings::read(&root);
        Memory::read(&root, &root.read_text("/proc/meminfo"), &settings)
    }

    const HEADER: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

    #[test]
    fn swap_areas() {
        let text = format!(
            "{HEADER}/dev/dm-1  partition\t8388604\t\t512\t\t-2\n/my\\040swap\\x  file 4 0 -3\n"
        );
        let memory = memory(&[("proc/swaps", &text), ("proc/meminfo", "MemAvailable:    2 kB\n")]);
        let swaps = memory.swaps.value().unwrap();
        assert_eq!(swaps[0].name, "/dev/dm-1");
        assert_eq!((swaps[0].size_bytes, swaps[0].used_bytes), (8_388_604 * 1024, 512 * 1024));
        assert_eq!(swaps[1].name, "/my swap\\x");
        assert_eq!(memory.available_bytes.value(), Some(&2048));
    }

    #[test]
    fn no_swap_is_known_and_no_file_is_absent() {
        assert_eq!(memory(&[("proc/swaps", HEADER)]).swaps.value(), Some(&vec![]));
        let none = memory(&[]);
        assert!(none.swaps.is_absent() && none.available_bytes.is_absent());
        assert!(none.thp_enabled.is_absent() && none.thp_defrag.is_absent());
    }

    #[test]
    fn odd_contents_are_malformed() {
        let cut = format!("{HEADER}/dev/sda2 partition 12\n");
        for text in ["", "none\n", &cut] {
            assert!(memory(&[("proc/swaps", text)]).swaps.why_unknown().is_some(), "{text}");
        }
        let meminfo = [("proc/meminfo", "MemAvailableX: 1 kB\nMemAvailable: x kB\n")];
        assert!(memory(&meminfo).available_bytes.why_unknown().unwrap().contains("x kB"));
    }

    #[test]
    fn transparent_huge_pages() {
        let folder = "sys/kernel/mm/transparent_hugepage";
        let memory = memory(&[
            (&format!("{folder}/enabled"), "always [madvise] never\n"),
            (&format!("{folder}/defrag"), "always defer defer+madvise [madvise] never\n"),
        ]);
        assert_eq!(memory.thp_enabled.value().unwrap(), "madvise");
        assert_eq!(memory.thp_defrag.value().unwrap(), "madvise");
    }
}

#[cfg(test)]
mod mounts_tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn disks_and_servers_without_their_names() {
        let text = "proc /proc proc rw,relatime 0 0\n\
                    /dev/sda1 / ext4 rw,relatime,errors=remount-ro 0 0\n\
                    tmpfs /tmp tmpfs rw 0 0\n\
                    nas.example.org:/x /data\\040of nfs4 rw,noatime,addr=192.0.2.7 0 0\n\
                    overlay /var/lib/docker/a overlay rw 0 0\n\
                    /dev/sdb1 /run/media/x vfat rw 0 0\n\
                    /dev/sdc1 /srv xfs rw,sync 0 0\n\
                    tmpfs /srv tmpfs rw 0 0\n";
        let tree = Tree::new(&[("proc/self/mounts", text)]);
        let mounts = read_mounts(&tree.root());
        let mounts = mounts.value().unwrap();
        let names: Vec<&str> = mounts.iter().map(|mount| mount.name.as_str()).collect();
        assert_eq!(names, ["/", "/data of"]);
        assert_eq!(mounts[1].options, ["rw", "noatime"]);
    }

    #[test]
    fn a_cut_line_is_malformed() {
        let tree = Tree::new(&[("proc/self/mounts", "/dev/sda1 /\n")]);
        assert!(read_mounts(&tree.root()).why_unknown().unwrap().contains("/dev/sda1 /"));
        assert!(read_mounts(&Tree::new(&[]).root()).is_absent());
    }
}

#[cfg(test)]
mod resctrl_tests {
    use super::*;
    use crate::testing::Tree;

    fn of(files: &[(&str, &str)], flags: &str) -> Reading<Resctrl> {
        let cpuinfo = Reading::known("/proc/cpuinfo", format!("flags\t\t: fpu {flags}\n"));
        read_resctrl(&Tree::new(files).root(), &cpuinfo)
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
