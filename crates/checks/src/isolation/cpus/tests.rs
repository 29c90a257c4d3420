//! Tests of the checks in `cpus.rs`.

use super::*;

mod cpus {
    use super::*;
    use crate::Status::{self, Bad, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        CMDLINE_GLUED.judge(&facts, &intent()).status
    }

    #[test]
    fn two_in_one_word_and_values_that_only_look_so() {
        assert_eq!(with("console=ttyS0,115200n8spectre_v2=off"), Bad);
        assert_eq!(with("quiet isolcpus=2-3nohz_full=2-3"), Bad);
        assert_eq!(with("root=UUID=1 rd.luks.options=a=b rootflags=x,nohz=on"), Good);
        assert_eq!(with("systemd.setenv=FOO=bar x=tsc=unstable"), Good);
        let mut facts = good();
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(CMDLINE_GLUED.judge(&facts, &intent()).status, Unknown);
    }
}

mod cpu0_isolated {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::Reading;

    #[test]
    fn real_time_isolated_or_neither() {
        let mut facts = good();
        assert_eq!(CPU0_ISOLATED.judge(&facts, &intent()).status, Good);
        let boot = Intent { rt_cpus: cpus(&[0]), housekeeping: cpus(&[1, 2, 3]), ..intent() };
        assert_eq!(CPU0_ISOLATED.judge(&facts, &boot).status, Doubtful);
        facts.cpus.isolated = Reading::known("/sys/devices/system/cpu/isolated", cpus(&[0, 2, 3]));
        assert_eq!(CPU0_ISOLATED.judge(&facts, &intent()).status, Doubtful);
        facts.cpus.online = Reading::known("/sys/devices/system/cpu/online", cpus(&[1, 2, 3]));
        assert_eq!(CPU0_ISOLATED.judge(&facts, &intent()).status, NotApplicable);
        facts.cpus.online = Reading::denied("/sys/devices/system/cpu/online", "EACCES");
        assert_eq!(CPU0_ISOLATED.judge(&facts, &intent()).status, Unknown);
    }
}

mod cpuset_partition {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::{Reading, facts::isolation::Cpuset};

    fn with(hierarchy: Hierarchy, partition: Option<&str>, isolated: &[u32]) -> Finding {
        let mut facts = good();
        let mut found = facts.isolation.cpusets.value().cloned().unwrap();
        found.hierarchy = hierarchy;
        found.groups.extend(partition.map(|kind| Cpuset {
            name: "/rt.slice".into(),
            effective: None,
            partition: Some(kind.into()),
        }));
        facts.isolation.cpusets = Reading::known("/sys/fs/cgroup", found);
        let path = facts.isolation.partitioned.path.clone();
        facts.isolation.partitioned = Reading::known(path, cpus(isolated));
        CPUSET_PARTITION.judge(&facts, &intent())
    }

    #[test]
    fn valid_invalid_and_elsewhere() {
        assert_eq!(with(Hierarchy::V2, Some("isolated"), &[2, 3]).status, Good);
        assert_eq!(with(Hierarchy::V2, None, &[]).status, Good);
        assert_eq!(with(Hierarchy::V2, Some("isolated"), &[1]).status, Doubtful);
        let kind = "isolated invalid (Parent is not a partition root)";
        let finding = with(Hierarchy::V2, Some(kind), &[]);
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.contains("/rt.slice is isolated invalid (Parent"));
    }

    #[test]
    fn version_1_and_no_controller_have_none() {
        assert_eq!(with(Hierarchy::V1, None, &[]).status, NotApplicable);
        assert_eq!(with(Hierarchy::None, None, &[]).status, NotApplicable);
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(CPUSET_PARTITION.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.isolation.cpusets = Reading::absent("/sys/fs/cgroup");
        assert_eq!(CPUSET_PARTITION.judge(&facts, &intent()).status, Unknown);
    }
}

mod cpuset_shield {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::{Reading, facts::isolation::Cpusets};

    fn with(isolated: &[u32], change: impl FnOnce(&mut Cpusets)) -> Finding {
        let mut facts = good();
        facts.cpus.isolated = Reading::known("/sys/devices/system/cpu/isolated", cpus(isolated));
        let mut found = facts.isolation.cpusets.value().cloned().unwrap();
        change(&mut found);
        facts.isolation.cpusets = Reading::known("/sys/fs/cgroup", found);
        CPUSET_SHIELD.judge(&facts, &intent())
    }

    #[test]
    fn shielded_isolated_or_open() {
        let shield = |found: &mut Cpusets| {
            for group in &mut found.groups {
                group.effective = Some(cpus(&[0, 1]));
            }
        };
        assert_eq!(with(&[], shield).status, Good);
        assert_eq!(with(&[2, 3], |_| {}).status, Good);
        let finding = with(&[], |_| {});
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies.len(), 3);
    }

    #[test]
    fn version_1_no_systemd_and_unknown() {
        assert_eq!(with(&[], |found| found.hierarchy = Hierarchy::V1).status, NotApplicable);
        assert_eq!(with(&[], |found| found.groups.clear()).status, NotApplicable);
        let mut facts = good();
        facts.isolation.cpusets = Reading::denied("/sys/fs/cgroup", "EACCES");
        assert_eq!(CPUSET_SHIELD.judge(&facts, &intent()).status, Unknown);
    }
}

mod hk_sufficient {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::Reading;

    #[test]
    fn some_none_and_none_on_a_node() {
        let mut facts = good();
        assert_eq!(HK_SUFFICIENT.judge(&facts, &intent()).status, Good);
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() };
        assert_eq!(HK_SUFFICIENT.judge(&facts, &all).status, NotApplicable);
        let nodes = vec![Node { id: 0, cpus: cpus(&[0, 1]) }, Node { id: 1, cpus: cpus(&[2, 3]) }];
        facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        let finding = HK_SUFFICIENT.judge(&facts, &intent());
        assert_eq!(
            (finding.status, finding.summary.as_str()),
            (Doubtful, "CPUs 0-1 left, none on node 1")
        );
        facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(&[0, 1]));
        assert_eq!(HK_SUFFICIENT.judge(&facts, &intent()).status, Bad);
        facts.cpus.online = Reading::denied("/sys/devices/system/cpu/online", "EACCES");
        assert_eq!(HK_SUFFICIENT.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_machine_with_one_cpu() {
        let mut facts = good();
        facts.cpus.online = Reading::known("/sys/devices/system/cpu/online", cpus(&[2]));
        let one = Intent { rt_cpus: cpus(&[2]), housekeeping: cpus(&[]), ..intent() };
        assert_eq!(HK_SUFFICIENT.judge(&facts, &one).status, NotApplicable);
    }
}

mod isolcpus {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str, boot: &[u32], partitions: Option<&[u32]>) -> (Status, String) {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.cpus.isolated = Reading::known("/sys/devices/system/cpu/isolated", cpus(boot));
        let path = "/sys/fs/cgroup/cpuset.cpus.isolated";
        facts.isolation.partitioned = match partitions {
            Some(set) => Reading::known(path, cpus(set)),
            None => Reading::absent(path),
        };
        let finding = ISOLCPUS.judge(&facts, &intent());
        (finding.status, finding.summary)
    }

    #[test]
    fn by_boot_by_partition_and_by_both() {
        assert_eq!(with("", &[2, 3], None).0, Good);
        assert_eq!(with("", &[], Some(&[2, 3])).0, Good);
        assert_eq!(with("", &[2], Some(&[3])).0, Good);
        assert_eq!(with("", &[1], Some(&[3])).0, Bad);
    }

    #[test]
    fn nothing_isolated_is_doubtful_and_others_isolated_is_bad() {
        assert_eq!(with("quiet", &[], None).0, Doubtful);
        let (status, summary) = with("isolcpus=1", &[1], Some(&[]));
        assert_eq!((status, summary.as_str()), (Bad, "CPU 1 isolated, the real-time CPUs 2-3 not"));
    }

    #[test]
    fn flags_without_domain_isolate_nothing() {
        let (status, summary) = with("isolcpus=managed_irq,2-3", &[], None);
        assert_eq!(status, Bad);
        assert!(summary.starts_with("isolcpus=managed_irq,2-3 has no flag `domain`, so /sys"));
    }

    #[test]
    fn an_unreadable_list_is_unknown() {
        let mut facts = good();
        facts.cpus.isolated = Reading::denied("/sys/devices/system/cpu/isolated", "EACCES");
        assert_eq!(ISOLCPUS.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "isolcpus=managed_irq,2-3");
        assert_eq!(ISOLCPUS.judge(&facts, &intent()).status, Doubtful);
    }
}

mod isolcpus_managed_irq {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        ISOLCPUS_MANAGED_IRQ.judge(&facts, &intent()).status
    }

    #[test]
    fn the_flag_and_the_list() {
        assert_eq!(with("isolcpus=managed_irq,domain,2-3"), Good);
        assert_eq!(with("isolcpus=managed_irq,3"), Doubtful);
        assert_eq!(with("isolcpus=2-3"), Doubtful);
        assert_eq!(with("isolcpus=managed_irq,2-3n"), Bad);
        assert_eq!(with("quiet"), NotApplicable);
        assert_eq!(with("isolcpus=2 isolcpus=3"), Unknown);
    }

    /// Linux 5.6 has the flag, and so has an older kernel that isolated CPUs with it.
    #[test]
    fn kernels_that_do_not_know_the_flag() {
        let with = |version: Option<(u32, u32)>, isolated: &[u32], line: &str| {
            let mut facts = good();
            let path = "/proc/sys/kernel/osrelease";
            facts.kernel.version = match version {
                Some(version) => Reading::known(path, version),
                None => Reading::absent(path),
            };
            if version.is_none() {
                facts.kernel.release = Reading::absent(path);
            }
            let path = facts.cpus.isolated.path.clone();
            facts.cpus.isolated = Reading::known(path, cpus(isolated));
            set_cmdline(&mut facts, line);
            ISOLCPUS_MANAGED_IRQ.judge(&facts, &intent()).status
        };
        let flagged = "isolcpus=managed_irq,domain,2-3";
        assert_eq!(with(Some((5, 6)), &[2, 3], flagged), Good);
        assert_eq!(with(Some((4, 18)), &[2, 3], flagged), Good);
        assert_eq!(with(Some((5, 4)), &[], flagged), NotApplicable);
        assert_eq!(with(Some((5, 4)), &[2, 3], "isolcpus=2-3"), NotApplicable);
        assert_eq!(with(None, &[2, 3], flagged), Unknown);
        assert_eq!(with(None, &[2, 3], "isolcpus=2-3"), Unknown);
    }

    #[test]
    fn a_partition_moves_no_managed_interrupt() {
        let mut facts = good();
        set_cmdline(&mut facts, "quiet");
        let path = facts.isolation.partitioned.path.clone();
        facts.isolation.partitioned = Reading::known(path, cpus(&[2, 3]));
        assert_eq!(ISOLCPUS_MANAGED_IRQ.judge(&facts, &intent()).status, Doubtful);
    }
}

mod numa_placement {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_config};
    use rtproof_host::Reading;

    fn with(nodes: &[&[u32]]) -> Status {
        let mut facts = good();
        let nodes = nodes.iter().zip(0..).map(|(set, id)| Node { id, cpus: cpus(set) }).collect();
        facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        NUMA_PLACEMENT.judge(&facts, &intent()).status
    }

    #[test]
    fn one_node_or_several() {
        assert_eq!(with(&[&[0, 1, 2, 3]]), Good);
        assert_eq!(with(&[&[0, 1], &[2, 3], &[]]), Good);
        assert_eq!(with(&[&[0, 2], &[1, 3]]), Doubtful);
        assert_eq!(with(&[&[0, 1]]), Unknown);
        assert_eq!(with(&[&[0, 1, 2]]), Unknown, "where is CPU 3?");
        let mut facts = good();
        facts.cpus.nodes = Reading::absent("/sys/devices/system/node");
        set_config(&mut facts, "NUMA", Some("y"));
        assert_eq!(NUMA_PLACEMENT.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "NUMA", None);
        assert_eq!(NUMA_PLACEMENT.judge(&facts, &intent()).status, NotApplicable);
    }
}

mod systemd_cpuaffinity {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::{Reading, facts::isolation::ManagerAffinity};

    fn with(init: &[u32], line: &str, file: Option<&[u32]>) -> Finding {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.isolation.init_cpus = Reading::known("/proc/1/status", cpus(init));
        let set = file.map(|set| ManagerAffinity {
            file: "/etc/systemd/system.conf".into(),
            cpus: Some(cpus(set)),
            text: cpus(set).to_string(),
        });
        facts.isolation.manager_affinity = Reading::known("/etc/systemd/system.conf", set);
        SYSTEMD_CPUAFFINITY.judge(&facts, &intent())
    }

    #[test]
    fn what_process_1_may_use_decides() {
        assert_eq!(with(&[0, 1], "", None).status, Good);
        assert_eq!(with(&[0, 1, 2, 3], "", None).status, Doubtful);
    }

    #[test]
    fn a_setting_that_is_not_in_force_names_both_sides() {
        let finding = with(&[0, 1, 2, 3], "systemd.cpu_affinity=0,1", None);
        assert_eq!(finding.status, Bad);
        assert!(
            finding.summary.starts_with("systemd.cpu_affinity=0,1, but process 1 may use CPUs")
        );
        let finding = with(&[0, 1, 2, 3], "", Some(&[0, 1]));
        assert!(finding.summary.contains("CPUAffinity=0-1 (/etc/systemd/system.conf), but"));
        assert_eq!(with(&[0, 1, 2, 3], "", Some(&[0, 1, 2])).status, Bad);
    }

    #[test]
    fn a_hidden_process_is_unknown() {
        let mut facts = good();
        facts.isolation.init_cpus = Reading::denied("/proc/1/status", "hidden");
        assert_eq!(SYSTEMD_CPUAFFINITY.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "systemd.cpu_affinity=0-2");
        assert_eq!(SYSTEMD_CPUAFFINITY.judge(&facts, &intent()).status, Bad);
    }

    #[test]
    fn a_file_cannot_mend_what_the_command_line_overrides() {
        let boot = Remedy::Boot { parameter: "systemd.cpu_affinity=0-1".into() };
        let mut facts = good();
        facts.isolation.init_cpus = Reading::denied("/proc/1/status", "hidden");
        set_cmdline(&mut facts, "systemd.cpu_affinity=0-2");
        assert_eq!(SYSTEMD_CPUAFFINITY.judge(&facts, &intent()).remedies, [boot]);
    }
}
