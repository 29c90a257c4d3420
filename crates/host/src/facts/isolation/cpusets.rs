//! The cpuset controller: Documentation/admin-guide/cgroup-v2.rst, "Cpuset Interface Files".

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuList, Reading, Root};

/// The cpuset controller of the control groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpusets {
    /// Which hierarchy has it.
    pub hierarchy: Hierarchy,
    /// CPUs in force for the root group (version 2).
    pub effective: Option<CpuList>,
    /// Groups that matter: partitions, and the slices that systemd puts everything into.
    pub groups: Vec<Cpuset>,
    /// Whether all groups were looked at: a machine may have too many.
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
pub(super) const MOUNT: &str = "/sys/fs/cgroup";
/// Groups that systemd puts everything into.
const SLICES: &[&str] = &["init.scope", "machine.slice", "system.slice", "user.slice"];
/// How deep partitions are looked for: a container of Kubernetes is the fourth.
const DEPTH_MAX: u32 = 5;
/// Most folders listed: a host of hundreds of containers has as many groups.
const FOLDERS_MAX: u32 = 64;
/// Starts of the names of files in a group's folder; the others are groups.
const FILES: &[&str] = &[
    "cgroup.", "cpu.", "cpuset.", "dmem.", "hugetlb.", "io.", "irq.", "memory.", "misc.", "pids.",
    "rdma.",
];

pub(super) fn read(root: &Root) -> Reading<Cpusets> {
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

#[cfg(test)]
mod tests {
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
        let found = read(&tree.root());
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
        let of = |files: &[(&str, &str)]| read(&Tree::new(files).root());
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
