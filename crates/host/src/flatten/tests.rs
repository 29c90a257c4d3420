//! Tests of rows and of the condition.

use super::{class_of, *};
use crate::testing::Tree;

/// A small machine with something of everything.
pub(super) fn machine() -> Tree {
    let stat = |pid: u32, comm: &str, flags: u32, priority: u32, policy: u32| {
        let zeros = |count: usize| ["0"].repeat(count).join(" ");
        format!(
            "{pid} ({comm}) S {} {flags} {} 1 0 {pid} {} {priority} {policy} 0",
            zeros(5),
            zeros(10),
            zeros(17)
        )
    };
    let tree = Tree::new(&[
        ("proc/interrupts", "  CPU0 CPU1\n 24: 5 6 PCI-MSI 1-edge  nvme0q0\n"),
        ("proc/irq/24/smp_affinity_list", "0-1\n"),
        ("proc/irq/24/effective_affinity_list", "1\n"),
        ("proc/cmdline", "root=UUID=1 isolcpus=1 quiet tsc=a tsc=b\n"),
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("boot/config-6.12.1", "CONFIG_PREEMPT_RT=y\nCONFIG_SND=m\n"),
        ("proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 8 4 -2\n"),
        ("proc/stat", "cpu0 0 0 0 0 0 0 0 9\ncpu1 0 0 0 0 0 0 0 8\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/nohz_full", "\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq", "oops\n"),
        ("sys/devices/system/cpu/cpu1/cpuidle/state2/name", "C6\n"),
        ("sys/devices/system/cpu/cpu1/cpuidle/state2/latency", "133\n"),
        ("sys/devices/system/cpu/cpu1/cpuidle/state2/residency", "600\n"),
        ("sys/devices/system/cpu/cpu1/cpuidle/state2/disable", "0\n"),
    ]);
    tree.write("proc/1/stat", &stat(1, "init", 0, 0, 0));
    tree.write("proc/20/stat", &stat(20, "irq/24-nvme0q0", 0x0020_0000, 50, 1));
    tree.write("proc/300/stat", &stat(300, "multipathd", 0, 99, 2));
    tree.write("proc/301/stat", &stat(301, "irqbalance", 0, 0, 0));
    tree
}

fn find<'a>(rows: &'a [FactRow], key: &str) -> &'a FactRow {
    rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no row {key}"))
}

#[test]
fn keys_values_states_and_classes() {
    let rows = Facts::read(&machine().root()).rows();
    let row = |key: &str| {
        let row = find(&rows, key);
        (row.value.as_str(), row.state, row.class)
    };
    let known = RowState::Known;
    assert_eq!(row("cpus.1.freq.governor"), ("performance", known, FactClass::Runtime));
    assert_eq!(row("cpus.1.idle_states.2.exit_latency_ns"), ("133000", known, FactClass::Firmware));
    assert_eq!(row("cpus.1.idle_states.2.disabled"), ("false", known, FactClass::Runtime));
    assert_eq!(row("cpus.nohz_full"), ("", known, FactClass::Boot));
    assert_eq!(row("cpus.0.freq.governor"), ("", RowState::Absent, FactClass::Runtime));
    assert_eq!(row("cpus.1.freq.min_hz").1, RowState::Malformed);
    assert_eq!(row("irqs.24.effective"), ("1", known, FactClass::Runtime));
    assert_eq!(row("irqs.24.actions"), ("nvme0q0", known, FactClass::Hardware));
    assert_eq!(row("irqs.24.count"), ("11", known, FactClass::Volatile));
    assert_eq!(row("irqs.irqbalance.running"), ("true", known, FactClass::Runtime));
    assert_eq!(row("kernel.cmdline.isolcpus"), ("1", known, FactClass::Boot));
    assert_eq!(row("kernel.cmdline.tsc"), ("a b", known, FactClass::Boot));
    assert_eq!(row("kernel.cmdline.quiet"), ("", known, FactClass::Boot));
    assert_eq!(row("kernel.cmdline.root").2, FactClass::Identity);
    assert_eq!(row("kernel.config.PREEMPT_RT"), ("y", known, FactClass::Kernel));
    assert!(row("kernel.config").0.starts_with("2 options, sha256 "));
    assert_eq!(row("kernel.preemption"), ("rt", known, FactClass::Kernel));
    assert_eq!(row("kernel.version"), ("6 12", known, FactClass::Kernel));
    assert_eq!(row("memory.swaps./dev/dm-1.size_bytes"), ("8192", known, FactClass::Runtime));
    assert_eq!(row("memory.swaps./dev/dm-1.used_bytes").2, FactClass::Volatile);
    assert_eq!(row("rt_tasks.multipathd"), ("rr 99", known, FactClass::Load));
    assert_eq!(row("rt_tasks.kernel.irq/N-nvmeNqN"), ("fifo 50", known, FactClass::Load));
    assert_eq!(row("virt.steal_ticks.1"), ("8", known, FactClass::Volatile));
    assert_eq!(
        find(&rows, "cpus.1.freq.governor").path,
        "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
    );
}

#[test]
fn keys_are_unique_and_sorted() {
    for facts in [Facts::read(&machine().root()), Facts::read(&Tree::new(&[]).root())] {
        let rows = facts.rows();
        assert!(rows.windows(2).all(|pair| pair[0].key < pair[1].key));
        assert!(rows.len() > 30);
    }
}

#[test]
fn the_condition_is_what_may_change_latency() {
    let tree = machine();
    let id = || condition_id(&Facts::read(&tree.root()).rows());
    let start = id();
    assert!(start.len() == 16 && start.chars().all(|c| c.is_ascii_hexdigit()));
    // Counters, identity, the number of an interrupt: the same condition.
    tree.write("proc/interrupts", "  CPU0 CPU1\n 30: 50 60 PCI-MSI 1-edge  nvme0q0\n");
    tree.write("proc/irq/30/smp_affinity_list", "0-1\n");
    tree.write("proc/irq/30/effective_affinity_list", "1\n");
    tree.write("proc/sys/kernel/hostname", "other\n");
    tree.write("proc/cmdline", "root=UUID=2 isolcpus=1 quiet tsc=a tsc=b\n");
    tree.write("proc/stat", "cpu0 0 0 0 0 0 0 0 10\ncpu1 0 0 0 0 0 0 0 8\n");
    tree.write("proc/meminfo", "x\n");
    // The reading of the memory size turned from refused to malformed.
    let moved = id();
    std::fs::remove_file(tree.path().join("proc/meminfo")).unwrap();
    assert_eq!(id(), start);
    assert_ne!(moved, start);
    tree.write("proc/irq/30/effective_affinity_list", "0\n");
    assert_ne!(id(), start);
}

#[test]
fn an_interrupt_that_goes_where_it_was_sent_before_is_no_change() {
    let tree = machine();
    let set = |asked: &str, effective: &str| {
        tree.write("proc/irq/24/smp_affinity_list", asked);
        tree.write("proc/irq/24/effective_affinity_list", effective);
        Facts::read(&tree.root())
    };
    let keys = |start: &Facts, end: &Facts| -> Vec<String> {
        changed_facts(start, end).into_iter().map(|change| change.key).collect()
    };
    // Sent to CPU 0, and had not fired since.
    let (sent, gone) = (set("0\n", "1\n"), set("0\n", "0\n"));
    assert_eq!(keys(&sent, &gone), Vec::<String>::new());
    assert_eq!(keys(&gone, &sent), ["irqs.24.effective"], "away from where it was sent");
    let anywhere = set("0-1\n", "1\n");
    assert_eq!(keys(&anywhere, &set("0-1\n", "0\n")), ["irqs.24.effective"], "by itself");
    let asked_again = set("1\n", "1\n");
    assert_eq!(keys(&sent, &asked_again), ["irqs.24.requested"]);
}

#[test]
fn devices_that_come_and_go_count_by_how_they_are_set() {
    let tree = machine();
    let plug = |name: &str, rps: &str, control: &str| {
        tree.write(&format!("sys/class/net/{name}/queues/rx-0/rps_cpus"), rps);
        tree.write(&format!("sys/bus/usb/devices/{name}/power/control"), control);
        tree.write(&format!("sys/bus/usb/devices/{name}/bDeviceClass"), name);
    };
    let id = || condition_id(&Facts::read(&tree.root()).rows());
    plug("a", "0\n", "on\n");
    let start = id();
    plug("b", "0\n", "on\n");
    assert_eq!(id(), start);
    plug("b", "1\n", "on\n");
    let spread = id();
    assert_ne!(spread, start);
    plug("b", "0\n", "auto\n");
    assert!(![start, spread].contains(&id()));
}

#[test]
fn classes_by_pattern() {
    assert_eq!(class_of("cpus.12.idle_states.3.disabled"), FactClass::Runtime);
    assert_eq!(class_of("cpus.12.idle_states"), FactClass::Firmware);
    assert_eq!(class_of("cpus.online"), FactClass::Runtime);
    assert_eq!(class_of("irqs.default_affinity"), FactClass::Runtime);
    assert_eq!(class_of("clock.source"), FactClass::Runtime);
    assert!(!FactClass::Process.is_condition() && FactClass::Load.is_condition());
}
