//! What users of other tools ran into: each must be caught, by whichever check.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::cpu::{Cpu, Node},
};

use crate::testing::{cpus, good, intent, irq, set_cmdline};
use crate::{Intent, Status, by_id, judge_all};

/// The machine with another command line and these CPUs isolated, as the kernel does with it.
fn with(line: &str, isolated: &[u32]) -> Facts {
    let mut facts = good();
    set_cmdline(&mut facts, line);
    facts.cpus.isolated = Reading::known("/sys/devices/system/cpu/isolated", cpus(isolated));
    facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(&[]));
    facts
}

/// Status and summary of one check.
#[track_caller]
fn caught(facts: &Facts, intent: &Intent, check: &str, says: &str) -> Status {
    let finding = by_id(check).unwrap().judge(facts, intent);
    assert!(finding.summary.contains(says), "{check}: {}", finding.summary);
    assert!([Status::Bad, Status::Doubtful].contains(&finding.status), "{finding:#?}");
    assert!(!finding.remedies.is_empty(), "{check}: {}", finding.summary);
    finding.status
}

#[test]
fn seapath_ansible_865_irqaffinity_covers_the_isolated_cpus() {
    let mut facts = with("isolcpus=2-N irqaffinity=0-15", &[2, 3]);
    facts.irqs.default_affinity =
        Reading::known("/proc/irq/default_smp_affinity", cpus(&[0, 1, 2, 3]));
    let says = "irqaffinity=0-15 covers the real-time CPUs 2-3";
    assert_eq!(caught(&facts, &intent(), "irqaffinity-boot", says), Status::Bad);
    let says = "irqaffinity=0-15 sends interrupts to isolated CPUs 2-3";
    assert_eq!(caught(&facts, &intent(), "isolation", says), Status::Bad);
}

#[test]
fn seapath_ansible_868_n_for_the_last_cpu_on_an_old_kernel() {
    let mut facts = with("isolcpus=2-N", &[]);
    facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (5, 10));
    assert_eq!(caught(&facts, &intent(), "isolation", "only from kernel 5.13"), Status::Bad);
    caught(&facts, &intent(), "isolcpus", "no CPU is isolated");
}

#[test]
fn tuned_268_no_space_between_parameters() {
    let facts = with("console=ttyS0,115200n8spectre_v2=off quiet", &[]);
    let says = "console=ttyS0,115200n8spectre_v2=off";
    assert_eq!(caught(&facts, &intent(), "cmdline-glued", says), Status::Bad);
}

#[test]
fn tuned_294_an_empty_list() {
    let facts = with("isolcpus= nohz_full=2-3", &[]);
    let says = "isolcpus= is refused, the kernel ignores it: no CPUs";
    assert_eq!(caught(&facts, &intent(), "isolation", says), Status::Bad);
    let says = "isolcpus= is refused";
    assert_eq!(caught(&facts, &intent(), "isolcpus-managed-irq", says), Status::Bad);
}

#[test]
fn rt_conf_a_letter_n_behind_the_list() {
    let mut facts = with("quiet isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3n", &[2, 3]);
    facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(&[2, 3]));
    caught(&facts, &intent(), "isolation", "rcu_nocbs=2-3n is refused");
    caught(&facts, &intent(), "rcu-nocbs", "offloads every CPU");
    let facts = with("quiet isolcpus=2-3n", &[]);
    assert_eq!(caught(&facts, &intent(), "isolation", "isolcpus=2-3n is refused"), Status::Bad);
}

#[test]
fn raspberry_pi_4106_the_boot_cpu_isolated() {
    let facts = with("isolcpus=0", &[0]);
    let boot = Intent { rt_cpus: cpus(&[0]), housekeeping: cpus(&[1, 2, 3]), ..intent() };
    caught(&facts, &boot, "cpu0-isolated", "CPU 0 is one of the real-time CPU 0");
    caught(&facts, &boot, "isolation", "CPU 0 is isolated");
    // Not taken by the kernel at all, as from 4.20 on that machine.
    let facts = with("isolcpus=0", &[]);
    assert_eq!(caught(&facts, &boot, "isolation", "isolcpus=0, but"), Status::Bad);
}

#[test]
fn meta_seapath_167_a_list_for_irqbalance_that_runs_backwards() {
    let mut facts = good();
    facts.irqs.irqbalance =
        Reading::malformed("/etc/default/irqbalance", "4-3", "a list or mask of CPUs");
    caught(&facts, &intent(), "irqbalance", "bans \"4-3\", which is no list of CPUs");
}

#[test]
fn irqbalance_90_the_ban_turns_off_its_own_detection() {
    let mut facts = good();
    let mut state = facts.irqs.irqbalance.value().cloned().unwrap();
    state.running = Some(612);
    state.banned = Some(cpus(&[3]));
    state.banned_from = Some("/etc/default/irqbalance".into());
    facts.irqs.irqbalance = Reading::known(facts.irqs.irqbalance.path.clone(), state);
    let says = "turns off its own detection of isolated CPUs";
    assert_eq!(caught(&facts, &intent(), "irqbalance", says), Status::Bad);
}

/// A server as OpenShift sets it up: 80 threads of two sockets, six of them for the system, no
/// `domain` flag, 500 queues, and no list of what is isolated because only files were collected.
#[test]
fn a_large_server_of_which_a_part_was_collected() {
    let mut facts = good();
    let (all, rt) = (CpuList::new(0..80), CpuList::new((0..5).chain(11..80)));
    set_cmdline(&mut facts, "isolcpus=managed_irq,0-4,11-79 nohz_full=0-4,11-79 skew_tick=1");
    facts.cpus.online = Reading::known("/sys/devices/system/cpu/online", all.clone());
    facts.cpus.possible = Reading::known("/sys/devices/system/cpu/possible", all.clone());
    facts.cpus.isolated = Reading::absent("/sys/devices/system/cpu/isolated");
    facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
    facts.isolation.partitioned = Reading::absent("/sys/fs/cgroup/cpuset.cpus.isolated");
    facts.isolation.cpusets = Reading::absent("/sys/fs/cgroup");
    facts.placement = Reading::absent("/proc/*/task/*/status");
    let one = facts.cpus.cpus[0].clone();
    facts.cpus.cpus = all.iter().map(|id| Cpu { id, ..one.clone() }).collect();
    let sockets = [0, 1].map(|id| Node { id, cpus: CpuList::new((id..80).step_by(2)) });
    facts.cpus.nodes = Reading::known("/sys/devices/system/node", sockets.into());
    let queue = |n: u32| rtproof_host::facts::irq::Irq {
        managed: false,
        count: if n < 127 { 794_140 - u64::from(n) } else { 0 },
        ..irq(100 + n, &format!("eno3-TxRx-{n}"), &[n % 5], &[n % 5])
    };
    facts.irqs.irqs = Reading::known("/proc/interrupts", (0..502).map(queue).collect());
    let (cpus, _) = Intent::default_rt_cpus(&facts);
    assert_eq!(cpus, rt, "those that isolcpus names");
    let intent = Intent { housekeeping: all.difference(&rt), rt_cpus: rt, ..intent() };
    let says = "isolcpus=managed_irq,0-4,11-79 has no flag `domain`";
    caught(&facts, &intent, "isolcpus", says);
    caught(&facts, &intent, "cpu0-isolated", "CPU 0 is one of the real-time CPUs 0-4,11-79");
    let says = "on several nodes: 37 CPUs on node 0, 37 CPUs on node 1";
    caught(&facts, &intent, "numa-placement", says);
    let says = "127 interrupts on CPUs 0-4: 100 (eno3-TxRx-0), 101 (eno3-TxRx-1), 102 \
                (eno3-TxRx-2) and 124 more; 375 more that never fired, 502 in all";
    assert_eq!(caught(&facts, &intent, "irq-affinity", says), Status::Bad);
    let status = |check: &str| by_id(check).unwrap().judge(&facts, &intent).status;
    // CPUs 5-10 keep the house, on both nodes: nothing is wrong with that.
    assert_eq!(status("hk-sufficient"), Status::Good);
    assert_eq!(status("isolcpus-managed-irq"), Status::Good);
    for not_collected in ["cpuset-partition", "cpuset-shield", "nohz-full", "user-tasks-on-iso"] {
        assert_eq!(status(not_collected), Status::Unknown, "{not_collected}");
    }
}

#[test]
fn a_machine_with_no_list_at_all_gets_no_bad_finding_of_isolation() {
    let all = judge_all(&with("quiet", &[]), &intent());
    let ids = ["isolation", "isolcpus", "nohz-full", "rcu-nocbs", "cpuset-partition"];
    for finding in all.iter().filter(|finding| ids.contains(&finding.check.as_str())) {
        assert_ne!(finding.status, Status::Bad, "{finding:#?}");
    }
}
