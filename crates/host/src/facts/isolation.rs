//! Isolation of CPUs besides boot parameters, and what disturbed them nevertheless.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::app::uptime_ticks;
use super::irq::{InterruptRow, interrupt_table, row_is_of_cpu};
use crate::{CpuList, Reading, Root};

/// Control groups of CPUs, the affinity that services inherit, counters of each CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    pub cpusets: Reading<Cpusets>,
    /// CPUs in isolated partitions (cpuset.cpus.isolated of the root group, 6.7 and later).
    pub partitioned: Reading<CpuList>,
    /// `CPUAffinity=` of systemd's own configuration; `None`: not set.
    pub manager_affinity: Reading<Option<ManagerAffinity>>,
    /// Name of process 1.
    pub init: Reading<String>,
    /// CPUs that process 1 may run on, which every service inherits.
    pub init_cpus: Reading<CpuList>,
    /// Time since boot, milliseconds.
    pub uptime_ms: Reading<u64>,
    /// Interrupts of each CPU since boot.
    pub counters: Reading<InterruptCounters>,
}

impl Isolation {
    /// Reads it; `interrupts` is /proc/interrupts, `existing` the CPUs there are: an affinity
    /// names all that are possible.
    pub fn read(root: &Root, interrupts: &Reading<String>, existing: Option<&CpuList>) -> Self {
        let init_cpus = root.excerpt("/proc/1/status", &["Cpus_allowed_list"]);
        Self {
            cpusets: read_cpusets(root),
            partitioned: root.cpu_list(&format!("{}/cpuset.cpus.isolated", MOUNT)),
            manager_affinity: read_manager(root),
            init: root.trimmed("/proc/1/comm"),
            init_cpus: init_cpus.parsed("Cpus_allowed_list: and a list", |line| {
                let cpus = CpuList::parse(line.split_once(':')?.1, None).ok()?.within(existing);
                (!cpus.is_empty()).then_some(cpus)
            }),
            uptime_ms: root
                .read_text("/proc/uptime")
                .parsed("seconds like 350735.47", |text| uptime_ticks(text)?.checked_mul(10)),
            counters: read_counters(interrupts),
        }
    }
}

// /proc/interrupts by CPU. Only sums are kept: a large machine has a hundred thousand numbers.

/// What /proc/interrupts counts, by CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptCounters {
    /// Rows with a name: LOC, RES, CAL, TLB, IPI0 ...
    pub rows: Vec<CounterRow>,
    pub devices: Vec<DeviceCount>,
    /// Whether the row of errors is missing, which ends the table on x86 and Arm.
    #[serde(default)]
    pub is_cut: bool,
}

/// A row with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CounterRow {
    /// Name, e.g. `TLB`.
    pub name: String,
    /// What the kernel calls it, e.g. `TLB shootdowns`.
    pub what: String,
    /// Count of each CPU of `devices`, in the same order.
    pub counts: Vec<u64>,
}

/// Interrupts of devices on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCount {
    pub cpu: u32,
    pub count: u64,
    /// The interrupt that came most often, and how often.
    pub most: Option<(u32, u64)>,
}

fn read_counters(interrupts: &Reading<String>) -> Reading<InterruptCounters> {
    interrupts.as_ref().and_then(|path, text| {
        let (cpus, lines) = interrupt_table(text);
        if cpus.is_empty() {
            let header = text.lines().next().unwrap_or_default();
            return Reading::malformed(path, header, "a header CPU0 CPU1 ...");
        }
        let device = |&cpu: &u32| DeviceCount { cpu, count: 0, most: None };
        let mut devices: Vec<DeviceCount> = cpus.iter().map(device).collect();
        let mut rows = Vec::new();
        let (mut has_ending_kind, mut has_end) = (false, false);
        for InterruptRow { label, counts, about } in lines {
            has_ending_kind |= matches!(label, "LOC" | "RES" | "IPI0");
            has_end |= matches!(label, "ERR" | "Err");
            if counts.len() != cpus.len() {
                continue;
            }
            let what = about.split_whitespace().collect::<Vec<_>>().join(" ");
            match label.parse::<u32>() {
                Ok(_) if row_is_of_cpu(about) => {}
                Ok(number) => add_device(&mut devices, number, &counts),
                Err(_) => rows.push(CounterRow { name: label.into(), what, counts }),
            }
        }
        Reading::known(
            path,
            InterruptCounters { rows, devices, is_cut: has_ending_kind && !has_end },
        )
    })
}

fn add_device(devices: &mut [DeviceCount], number: u32, counts: &[u64]) {
    for (device, &count) in devices.iter_mut().zip(counts) {
        device.count = device.count.saturating_add(count);
        if count > device.most.map_or(0, |(_, most)| most) {
            device.most = Some((number, count));
        }
    }
}

// The cpuset controller: Documentation/admin-guide/cgroup-v2.rst, "Cpuset Interface Files".

/// The cpuset controller of the control groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpusets {
    /// Which hierarchy has it.
    pub hierarchy: Hierarchy,
    /// CPUs in force for the root group (version 2).
    pub effective: Option<CpuList>,
    /// Groups that matter: partitions, and the slices that systemd puts everything into.
    pub groups: Vec<Cpuset>,
    /// Whether all groups were read: a machine may have too many.
    pub is_complete: bool,
}

/// Which hierarchy of control groups has the cpuset controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hierarchy {
    /// Version 2: partitions can be made.
    V2,
    V1,
    /// None: it is turned off or not mounted.
    None,
}

/// A control group with its CPUs and its partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpuset {
    /// Path below the root group, e.g. `/system.slice`.
    pub name: String,
    /// CPUs in force; `None`: the group has none of its own, those of the one above count.
    pub effective: Option<CpuList>,
    /// cpuset.cpus.partition where it is not `member`, e.g. `isolated invalid (Cpu list in
    /// cpuset.cpus not exclusive)`.
    pub partition: Option<String>,
}

/// Where the control groups are.
const MOUNT: &str = "/sys/fs/cgroup";

/// Groups that systemd puts everything into.
const SLICES: &[&str] = &["init.scope", "machine.slice", "system.slice", "user.slice"];

/// Maximum depth of the search for partitions: a container of Kubernetes is the fourth.
const DEPTH_MAX: u32 = 5;

/// Most folders listed: a host of hundreds of containers has as many groups.
const FOLDERS_MAX: u32 = 64;

/// Starts of the names of files in a group's folder; the others are groups.
const FILES: &[&str] = &[
    "cgroup.", "cpu.", "cpuset.", "dmem.", "hugetlb.", "io.", "irq.", "memory.", "misc.", "pids.",
    "rdma.",
];

fn read_cpusets(root: &Root) -> Reading<Cpusets> {
    let bare =
        |hierarchy| Cpusets { hierarchy, effective: None, groups: vec![], is_complete: true };
    let controllers = root.trimmed(&format!("{MOUNT}/cgroup.controllers"));
    if controllers.is_absent() {
        return root.list_dir(MOUNT).map(|names| {
            let is_v1 = names.iter().any(|name| name.split(',').any(|part| part == "cpuset"));
            bare(if is_v1 { Hierarchy::V1 } else { Hierarchy::None })
        });
    }
    controllers.map(|controllers| {
        if !has_cpuset(&controllers) {
            return bare(Hierarchy::None);
        }
        let mut walk = Walk { root, groups: Vec::new(), folders: 0, is_complete: true };
        walk.below("", 0);
        Cpusets {
            hierarchy: Hierarchy::V2,
            effective: root.cpu_list(&format!("{MOUNT}/cpuset.cpus.effective")).value().cloned(),
            groups: walk.groups,
            is_complete: walk.is_complete,
        }
    })
}

fn has_cpuset(controllers: &str) -> bool {
    controllers.split_whitespace().any(|name| name == "cpuset")
}

struct Walk<'a> {
    root: &'a Root,
    groups: Vec<Cpuset>,
    folders: u32,
    is_complete: bool,
}

impl Walk<'_> {
    /// The groups in one. Those of a group that does not hand the controller down have no CPUs of
    /// their own; of these only systemd's slices are reported.
    fn below(&mut self, parent: &str, depth: u32) {
        let at = |name: &str, file: &str| format!("{MOUNT}{name}/{file}");
        let handed = self.root.trimmed(&at(parent, "cgroup.subtree_control"));
        let is_handed = handed.value().is_some_and(|controllers| has_cpuset(controllers));
        if depth > 0 && !is_handed {
            return;
        }
        if depth >= DEPTH_MAX || self.folders >= FOLDERS_MAX {
            self.is_complete = false;
            return;
        }
        self.folders += 1;
        let names = self.root.list_dir(&format!("{MOUNT}{parent}"));
        let Some(names) = names.value() else {
            self.is_complete = false;
            return;
        };
        for child in names.iter().filter(|name| !FILES.iter().any(|file| name.starts_with(file))) {
            let is_slice = depth == 0 && SLICES.contains(&child.as_str());
            if !is_slice && !is_handed {
                continue;
            }
            let name = format!("{parent}/{child}");
            let partition = self.root.trimmed(&at(&name, "cpuset.cpus.partition"));
            let partition = partition.value().filter(|kind| *kind != "member").cloned();
            if is_slice || partition.is_some() {
                let effective = self.root.cpu_list(&at(&name, "cpuset.cpus.effective"));
                let effective = effective.value().cloned();
                self.groups.push(Cpuset { name: name.clone(), effective, partition });
            }
            self.below(&name, depth + 1);
        }
    }
}

// `CPUAffinity=` of systemd's manager: systemd-system.conf(5), in its order of files.

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

fn read_manager(root: &Root) -> Reading<Option<ManagerAffinity>> {
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
mod counters_tests {
    use super::*;

    #[test]
    fn sums_and_rows() {
        let text = "      CPU0  CPU3\n  8: 3 0 IO-APIC 8-edge rtc0\n 24: 10 32 PCI-MSIX 1-edge a\n \
                    27: 900 800 GICv3 27 Level arch_timer\nTLB: 1 2 TLB shootdowns\nERR: 0\n";
        let found = read_counters(&Reading::known("/proc/interrupts", text.into()));
        let found = found.value().unwrap();
        let device = |cpu, count, most| DeviceCount { cpu, count, most };
        assert_eq!(found.devices, [device(0, 13, Some((24, 10))), device(3, 32, Some((24, 32)))]);
        assert_eq!(found.rows.len(), 1);
        assert_eq!((found.rows[0].name.as_str(), found.rows[0].counts[1]), ("TLB", 2));
        assert_eq!(found.rows[0].what, "TLB shootdowns");
        assert!(read_counters(&Reading::known("p", "x".into())).value().is_none());
    }
}

#[cfg(test)]
mod cpusets_tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn partitions_and_slices_of_version_2() {
        let tree = Tree::new(&[
            ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n"),
            ("sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu\n"),
            ("sys/fs/cgroup/cpuset.cpus.effective", "0-1\n"),
            ("sys/fs/cgroup/cpuset.cpus.isolated", "2-3\n"),
            ("sys/fs/cgroup/system.slice/cpuset.cpus.partition", "member\n"),
            ("sys/fs/cgroup/system.slice/cpuset.cpus.effective", "0-1\n"),
            ("sys/fs/cgroup/init.scope/cgroup.procs", "1\n"),
            ("sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated\n"),
            ("sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3\n"),
            ("sys/fs/cgroup/x.slice/cgroup.subtree_control", "cpuset\n"),
            ("sys/fs/cgroup/x.slice/a/cpuset.cpus.partition", "isolated invalid (Parent)\n"),
            ("sys/fs/cgroup/y.slice/a/cpuset.cpus.partition", "root\n"),
        ]);
        let found = read_cpusets(&tree.root());
        let found = found.value().unwrap();
        assert_eq!((found.hierarchy, found.is_complete), (Hierarchy::V2, true));
        let shown: Vec<_> = found
            .groups
            .iter()
            .map(|g| (g.name.as_str(), g.partition.as_deref(), g.effective.is_some()))
            .collect();
        assert_eq!(
            shown,
            [
                ("/init.scope", None, false),
                ("/rt", Some("isolated"), true),
                ("/system.slice", None, true),
                ("/x.slice/a", Some("isolated invalid (Parent)"), false),
            ]
        );
    }

    #[test]
    fn version_1_none_and_nothing_known() {
        let of = |files: &[(&str, &str)]| read_cpusets(&Tree::new(files).root());
        let hierarchy = |files: &[(&str, &str)]| of(files).value().map(|found| found.hierarchy);
        let v1 = [("sys/fs/cgroup/cpu,cpuset/cpuset.cpus", "0-3\n")];
        assert_eq!(hierarchy(&v1), Some(Hierarchy::V1));
        let without = [("sys/fs/cgroup/cgroup.controllers", "cpu io\n")];
        assert_eq!(hierarchy(&without), Some(Hierarchy::None));
        assert_eq!(hierarchy(&[("sys/fs/cgroup/systemd/x", "")]), Some(Hierarchy::None));
        assert!(of(&[]).is_absent());
        assert!(of(&[("sys/fs/cgroup/cgroup.controllers/x", "")]).why_unknown().is_some());
    }
}

#[cfg(test)]
mod manager_tests {
    use super::*;
    use crate::testing::Tree;

    fn affinity(files: &[(&str, &str)]) -> Option<(String, Option<String>)> {
        let found = read_manager(&Tree::new(files).root());
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
        assert!(read_manager(&Tree::new(&[("proc/x", "")]).root()).is_absent());
        let refused = read_manager(&Tree::new(&[("etc/systemd/system.conf/x", "")]).root());
        assert!(refused.value().is_none() && !refused.is_absent());
    }
}
