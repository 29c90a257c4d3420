//! What the good machine of the tests has, as far as the rows of this section do not say it.

use std::collections::BTreeMap;

use rtproof_host::facts::isolation::{
    CounterRow, Counters, Cpuset, Cpusets, DeviceCount, Hierarchy, Isolation,
};
use rtproof_host::facts::tasks::{Policy, TaskGroup};
use rtproof_host::facts::units::Unit;
use rtproof_host::{CpuList, Facts, Reading, knobs::isolation as knobs};

use crate::testing::{cpus, fill_setting, set_config};

pub(crate) fn fill(facts: &mut Facts) {
    for knob in [&knobs::WORKQUEUE_CPUMASK, &knobs::WRITEBACK_CPUMASK] {
        fill_setting(facts, knob, "3");
    }
    set_config(facts, "JUMP_LABEL", Some("y"));
    let mut units: BTreeMap<String, Unit> = facts.units.value().cloned().unwrap_or_default();
    let file = "/usr/lib/systemd/system/realtime-entsk.service".to_owned();
    let unit = Unit { file, enabled: true, masked: false, running: Some(true) };
    units.insert("realtime-entsk.service".into(), unit);
    facts.units = Reading::known(facts.units.path.clone(), units);
    facts.placement = Reading::known("/proc/*/task/*/status", Vec::new());
    let (hk, all) = (Some(&[0, 1][..]), Some(&[0, 1, 2, 3][..]));
    for (name, kernel_thread, on, count) in [
        ("kthreadd", true, hk, 1),
        ("kworker/N:N", true, all, 8),
        ("rcu_preempt", true, hk, 1),
        ("rcuop/N", true, hk, 2),
        ("irq/N-nvmeNqN", true, hk, 1),
        ("systemd", false, hk, 1),
        ("sshd", false, hk, 2),
    ] {
        add_task(facts, name, kernel_thread, on, count);
    }
    let group = |name: &str| Cpuset { name: name.into(), effective: None, partition: None };
    let cpusets = Cpusets {
        hierarchy: Hierarchy::V2,
        effective: Some(CpuList::new(0..4)),
        groups: ["/init.scope", "/system.slice", "/user.slice"].map(group).into(),
        is_complete: true,
    };
    let device = |cpu| DeviceCount { cpu, count: u64::from(cpu < 2) * 90_000, most: None };
    let counters = Counters { rows: Vec::new(), devices: (0..4).map(device).collect() };
    facts.isolation = Isolation {
        cpusets: Reading::known("/sys/fs/cgroup", cpusets),
        partitioned: Reading::known("/sys/fs/cgroup/cpuset.cpus.isolated", cpus(&[])),
        manager_affinity: Reading::known("/etc/systemd/system.conf, system.conf.d", None),
        init: Reading::known("/proc/1/comm", "systemd".into()),
        init_cpus: Reading::known("/proc/1/status", cpus(&[0, 1])),
        uptime_ms: Reading::known("/proc/uptime", 1_000_000),
        counters: Reading::known("/proc/interrupts", counters),
    };
    set_row(facts, "LOC", "Local timer interrupts", [250_000, 250_000, 90, 90]);
    set_row(facts, "CAL", "Function call interrupts", [5_000, 5_000, 90, 90]);
    set_row(facts, "TLB", "TLB shootdowns", [5_000, 5_000, 0, 0]);
}

/// Adds tasks. Per-CPU threads are those whose names end in `N:N`.
pub(super) fn add_task(
    facts: &mut Facts,
    name: &str,
    kernel_thread: bool,
    on: Option<&[u32]>,
    count: u32,
) {
    let mut groups = facts.placement.value().cloned().unwrap_or_default();
    groups.push(TaskGroup {
        tasks: Vec::new(),
        name: name.into(),
        kernel_thread,
        bound: name.ends_with("N:N"),
        cpus: on.map(cpus),
        policy: Some(Policy::Other),
        unit: None,
        count,
        tid: 1_000 + u32::try_from(groups.len()).unwrap_or(0),
    });
    facts.placement = Reading::known(facts.placement.path.clone(), groups);
}

/// Takes the tasks away.
#[cfg(test)]
pub(super) fn without_tasks(facts: &mut Facts) {
    facts.placement = Reading::denied("/proc/*/task/*/status", "hidden");
}

/// Sets a row of /proc/interrupts, with the count of each CPU.
pub(super) fn set_row(facts: &mut Facts, name: &str, what: &str, counts: [u64; 4]) {
    if let Some(mut counters) = facts.isolation.counters.value().cloned() {
        counters.rows.retain(|row| row.name != name);
        counters.rows.push(CounterRow {
            name: name.into(),
            what: what.into(),
            counts: counts.into(),
        });
        facts.isolation.counters = Reading::known("/proc/interrupts", counters);
    }
}
