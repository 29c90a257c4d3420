//! Machines on which other programs set what we set.

use super::*;
use crate::change::{Compare, IrqName, Scheduling, TaskName, UnitState};
use crate::testing::Tree;

fn value(path: &str) -> Change {
    Change::Value { path: path.into(), value: "1".into(), compare: Compare::Text, couples: vec![] }
}

fn irq(number: u32, actions: &str) -> Change {
    let irq =
        IrqName { number, actions: actions.into(), hwirq: "1".into(), chip: "IO-APIC".into() };
    Change::Irq { irq, cpus: crate::CpuList::new([0]) }
}

/// Suspects with their clues, a line each.
fn of(tree: &Tree, change: &Change) -> Vec<String> {
    let root = tree.root();
    let suspects = suspects(&root, change);
    let line = |suspect: Suspect| {
        let clues: Vec<String> = suspect.evidence.iter().map(DriftClue::to_string).collect();
        format!("{} <- {}", suspect.name, clues.join(" | "))
    };
    suspects.into_iter().map(line).collect()
}

#[test]
fn without_programs_there_are_no_suspects() {
    let tree = Tree::new(&[("proc/stat", "")]);
    for change in [
        value("/proc/sys/vm/swappiness"),
        value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        irq(30, "eth0"),
        Change::File { path: "/etc/x".into(), content: None, mode: None },
    ] {
        assert_eq!(of(&tree, &change), [""; 0]);
    }
}

#[test]
fn sysctl_files_are_named_with_their_line() {
    let tree = Tree::new(&[
        ("etc/sysctl.d/10-a.conf", "# vm.swappiness = 1\n\n-vm.swappiness=60\n"),
        ("usr/lib/sysctl.d/10-a.conf", "vm.swappiness = 2\n"),
        ("usr/lib/sysctl.d/20-b.conf", "vm.swappiness_x = 2\nvm/swappiness = 3\n"),
        ("etc/sysctl.conf", "vm.dirty_ratio = 1\n"),
        ("usr/lib/sysctl.d/30-net.conf", "net.ipv4.conf.*.rp_filter=2\nnet/ipv4/conf/eth0.1/x=1\n"),
    ]);
    assert_eq!(
        of(&tree, &value("/proc/sys/vm/swappiness")),
        [
            "sysctl, /etc/sysctl.d/10-a.conf <- /etc/sysctl.d/10-a.conf:3: -vm.swappiness=60",
            "sysctl, /usr/lib/sysctl.d/20-b.conf <- /usr/lib/sysctl.d/20-b.conf:2: \
             vm/swappiness = 3",
        ]
    );
    assert_eq!(of(&tree, &value("/proc/sys/net/ipv4/conf/eth0/rp_filter")).len(), 1);
    assert_eq!(of(&tree, &value("/proc/sys/net/ipv4/conf/eth0.1/x")).len(), 1);
}

#[test]
fn udev_rules_that_write_are_distinguished_from_comparisons() {
    let rules = "ATTR{queue/scheduler}==\"none\", GOTO=\"x\"\n\
                 ACTION==\"add\", ATTR{queue/scheduler}=\"mq-deadline\"\n\
                 RUN+=\"/bin/sh -c 'echo 1 > /sys$devpath/queue/read_ahead_kb'\"\n\
                 SYSCTL{net.core.busy_poll}=\"50\"\n\
                 ATTR{xscheduler}=\"x\"\n";
    let tree = Tree::new(&[("usr/lib/udev/rules.d/60-x.rules", rules)]);
    let clue = |line: usize| {
        let text = rules.lines().nth(line - 1).unwrap();
        let path = "/usr/lib/udev/rules.d/60-x.rules";
        format!("udev, {path} <- {path}:{line}: {text}")
    };
    assert_eq!(of(&tree, &value("/sys/block/sda/queue/scheduler")), [clue(2)]);
    assert_eq!(of(&tree, &value("/sys/block/sda/queue/read_ahead_kb")), [clue(3)]);
    assert_eq!(of(&tree, &value("/proc/sys/net/core/busy_poll")), [clue(4)]);
    assert_eq!(of(&tree, &value("/sys/block/sda/queue/rotational")), [""; 0]);
}

#[test]
fn tuned_is_suspected_of_what_its_profile_names() {
    let files = [
        ("etc/tuned/active_profile", "mine\n"),
        ("etc/tuned/profiles/mine/tuned.conf", "[main]\ninclude=base, mine\n[cpu]\ngovernor=x\n"),
        (
            "usr/lib/tuned/base/tuned.conf",
            "[sysctl]\nvm.swappiness = 10\n[scheduler]\n\
          group.ksoftirqd=0:f:2:*:ksoftirqd.*\n",
        ),
    ];
    let tree = Tree::new(&files);
    let swappiness = value("/proc/sys/vm/swappiness");
    assert_eq!(of(&tree, &swappiness), [""; 0], "it does not run");
    tree.write("sys/fs/cgroup/system.slice/tuned.service/cgroup.procs", "1\n");
    let runs = "tuned <- /sys/fs/cgroup/system.slice/tuned.service: tuned.service runs | \
                /etc/tuned/active_profile: mine";
    let base = "/usr/lib/tuned/base/tuned.conf";
    assert_eq!(of(&tree, &swappiness), [format!("{runs} | {base}:2: vm.swappiness = 10")]);
    let governor = value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let mine = "/etc/tuned/profiles/mine/tuned.conf:4: governor=x";
    assert_eq!(of(&tree, &governor), [format!("{runs} | {mine}")]);
    let thread = TaskName { tid: 16, start_ticks: None, comm: "ksoftirqd/0".into() };
    let thread = Change::Task { task: thread, set: Scheduling::default() };
    assert_eq!(of(&tree, &thread).len(), 1);
    assert_eq!(of(&tree, &value("/proc/sys/vm/stat_interval")), [""; 0]);
}

#[test]
fn what_moves_interrupts_is_named() {
    let tree = Tree::new(&[
        ("proc/76/comm", "irqbalance-ui\n"),
        ("proc/77/comm", "irqbalance\n"),
        ("sys/class/net/eth0/carrier_up_count", "3\n"),
        ("sys/class/net/eth1/device/msi_irqs/31", "msix\n"),
        ("sys/fs/cgroup/system.slice/NetworkManager.service/cgroup.procs", "9\n"),
        ("sys/power/suspend_stats/success", "2\n"),
        ("sys/devices/system/cpu/offline", "3\n"),
    ]);
    let all = of(&tree, &irq(30, "eth0-rx-0"));
    let who: Vec<&str> = all.iter().filter_map(|line| Some(line.split_once(" <- ")?.0)).collect();
    let link = "eth0: NetworkManager.service";
    assert_eq!(who, ["irqbalance", link, "resume from sleep", "CPU hotplug"]);
    assert!(all[1].contains("the link came up 3 times"), "{all:?}");
    let by_device = of(&tree, &irq(31, "mlx5_comp0@pci:0000:01:00.0"));
    assert!(by_device.iter().any(|line| line.starts_with("eth1: ")), "{by_device:?}");
    assert_eq!(of(&tree, &value("/proc/sys/vm/swappiness")), [""; 0]);
}

#[test]
fn frequencies_have_their_daemons_and_files() {
    let tree = Tree::new(&[
        ("sys/fs/cgroup/system.slice/thermald.service/cgroup.procs", "9\n"),
        ("etc/tlp.conf", "#CPU_SCALING_GOVERNOR_ON_AC=x\nCPU_SCALING_GOVERNOR_ON_BAT=powersave\n"),
    ]);
    let governor = value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    assert_eq!(
        of(&tree, &governor),
        [
            "/etc/tlp.conf <- /etc/tlp.conf:2: CPU_SCALING_GOVERNOR_ON_BAT=powersave",
            "thermald.service <- /sys/fs/cgroup/system.slice/thermald.service: thermald.service \
             runs: it lowers frequencies when the machine is warm",
        ]
    );
    assert_eq!(of(&tree, &value("/sys/block/sda/queue/scheduler")), [""; 0]);
}

#[test]
fn tasks_units_and_files_have_theirs() {
    let tree = Tree::new(&[
        ("proc/400/cgroup", "0::/system.slice/plc.service\n"),
        ("usr/lib/systemd/system/fstrim.timer", "[Timer]\n"),
        ("var/log/dpkg.log", "x\n"),
    ]);
    let task = TaskName { tid: 400, start_ticks: None, comm: "plc".into() };
    let cpus = Some(crate::CpuList::new([2]));
    let set = Scheduling { cpus, ..Scheduling::default() };
    let found = of(&tree, &Change::Task { task: task.clone(), set });
    let group = "cpuset of its control group <- /proc/400/cgroup: /system.slice/plc.service";
    assert_eq!(found, [group]);
    assert_eq!(of(&tree, &Change::Task { task, set: Scheduling::default() }), [""; 0]);
    let unit = |want| Change::Unit { unit: "fstrim.service".into(), want };
    assert_eq!(of(&tree, &unit(UnitState::Stopped)).len(), 1);
    assert_eq!(of(&tree, &unit(UnitState::Started)), [""; 0]);
    let file = Change::File { path: "/etc/default/grub".into(), content: None, mode: None };
    assert_eq!(of(&tree, &file), ["package updates <- /var/log/dpkg.log: what was installed when"]);
}
