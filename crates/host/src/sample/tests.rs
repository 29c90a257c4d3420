//! Tests of the sampler.

use super::*;
use crate::testing::Tree;

const STAT_1: &str = "cpu  0 0 0 0 0 0 0 0\ncpu0 10 1 2 900 5 3 4 7 1 0\ncpu1 0 0 0 0 0 0 0 0\nintr 1000 1 2\nctxt 500\n";

const STAT_2: &str = "cpu  0 0 0 0 0 0 0 0\ncpu0 20 1 4 950 5 3 9 9 9 0\ncpu2 5 0 0 0 0 0 0 0\nintr 1600 1 2\nctxt 450\n";

fn machine(release: &str) -> Tree {
    let cpu = "sys/devices/system/cpu";
    Tree::new(&[
        ("proc/stat", STAT_1),
        ("proc/sys/kernel/osrelease", release),
        ("proc/sys/kernel/arch", "x86_64"),
        (&format!("{cpu}/online"), "0-2\n"),
        (&format!("{cpu}/cpu0/topology/physical_package_id"), "0\n"),
        (&format!("{cpu}/cpu1/topology/physical_package_id"), "0\n"),
        (&format!("{cpu}/cpu2/topology/physical_package_id"), "0\n"),
        (&format!("{cpu}/cpu0/cpufreq/scaling_cur_freq"), "3400000\n"),
        (&format!("{cpu}/cpu0/cpufreq/affected_cpus"), "0 1\n"),
        (&format!("{cpu}/cpu2/cpufreq/scaling_cur_freq"), "800000\n"),
        ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
        ("sys/class/thermal/thermal_zone0/temp", "44000\n"),
        ("sys/class/thermal/thermal_zone1/type", "acpitz\n"),
        ("sys/class/thermal/thermal_zone1/temp", "99000\n"),
        ("sys/class/thermal/thermal_zone2/type", "pch_cannonlake\n"),
        ("sys/class/thermal/thermal_zone2/temp", "41500\n"),
    ])
}

fn sampler(tree: &Tree, measured: &[u32]) -> HostSampler {
    let root = tree.root();
    let measured = CpuList::new(measured.iter().copied());
    HostSampler::new(&root, &Facts::read(&root), &measured)
}

#[test]
fn counts_since_the_last_sample() {
    let tree = machine("6.12.1");
    let mut sampler = sampler(&tree, &[]);
    tree.write("proc/stat", STAT_2);
    let sample = sampler.sample(7);
    assert_eq!((sample.at_ns, sample.interrupts), (7, Some(600)));
    assert_eq!(sample.context_switches, Some(0), "a counter that steps back counts nothing");
    assert_eq!(sample.temp_max_mc, Some(44_000), "the ACPI zone is not asked");
    let expected =
        HostCpuSecond { cpu: 0, busy_ms: 170, steal_ms: 20, freq_hz: Some(3_400_000_000) };
    // CPU 1 went away; CPU 2 came.
    assert_eq!(sample.cpus, [expected]);
    let sample = sampler.sample(8);
    assert_eq!(sample.interrupts, Some(0));
    let cpus: Vec<_> = sample.cpus.iter().map(|cpu| (cpu.cpu, cpu.busy_ms)).collect();
    assert_eq!(cpus, [(0, 0), (2, 0)]);
}

#[test]
fn measured_cpus_are_not_interrupted() {
    let quiet = sampler;
    let tree = machine("5.14.0-427.el9");
    let sampler = sampler(&tree, &[1, 2]);
    assert!(sampler.frequencies.is_empty(), "CPU 0 shares its policy with CPU 1");
    let skipped = sampler.skipped().join("\n");
    assert!(skipped.contains("frequency of CPUs 0,2: before Linux 5.19"), "{skipped}");
    assert!(skipped.contains("acpitz): it may run firmware"), "{skipped}");
    assert_eq!(sampler.zones.len(), 2, "CPU 0 answers for the package");
    let newer = quiet(&machine("5.19.0"), &[0, 1, 2]);
    assert_eq!(newer.frequencies.len(), 2);
    assert!(newer.skipped().join("").contains("x86_pkg_temp): it interrupts a measured CPU"));
    assert_eq!(newer.zones.len(), 1);
}

#[test]
fn nothing_there_is_nothing_known() {
    let mut sampler = sampler(&Tree::new(&[]), &[0]);
    assert_eq!(sampler.sample(1), HostSecond { at_ns: 1, ..HostSecond::default() });
    assert!(sampler.online().is_absent() && sampler.thread_placement(1).is_absent());
}

#[test]
fn online_and_placement_are_read_anew() {
    let tree = machine("6.12.1");
    let mut sampler = sampler(&tree, &[]);
    tree.write("sys/devices/system/cpu/online", "0,2\n");
    assert_eq!(sampler.online().value().unwrap().as_slice(), [0, 2]);
    let fields = ["S"].into_iter().chain(["0"; 35]).chain(["2", "80", "1", "0"]);
    let line = format!("9 (m) {}", fields.collect::<Vec<_>>().join(" "));
    tree.write("proc/self/task/9/stat", &line);
    let placement = sampler.thread_placement(9);
    assert_eq!(placement.value(), Some(&Placement { cpu: 2, migrations: None }));
    let sched = "m (9, #threads: 1)\nse.vruntime : 2.5\nse.nr_migrations      :     17\n";
    tree.write("proc/self/task/9/sched", sched);
    let placement = sampler.thread_placement(9);
    assert_eq!(placement.value(), Some(&Placement { cpu: 2, migrations: Some(17) }));
}

#[test]
fn a_long_file_is_read_whole() {
    let tree = machine("6.12.1");
    let mut sampler = sampler(&tree, &[]);
    let long = format!("{STAT_2}softirq{}\nctxt 900\n", " 1".repeat(40_000));
    tree.write("proc/stat", &long);
    assert_eq!(sampler.sample(1).context_switches, Some(400));
}
