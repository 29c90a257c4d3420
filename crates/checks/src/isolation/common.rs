//! What several checks of this section ask.

use rtproof_host::facts::isolation::{Counters, Hierarchy};
use rtproof_host::knobs::isolation::{
    self as knobs, GROUP_CONTROLLERS, GROUP_CPUS, GROUP_PARTITION,
};
use rtproof_host::tune::{Change, Scheduling};
use rtproof_host::{CpuList, Facts, Knob, facts::tasks::TaskGroup};

use crate::{Evidence, Finding, Intent, Remedy};
use crate::{draft::Draft, machine::container, text};
use rtproof_model::finding::Part;

/// Most groups shown as evidence.
const SHOWN_MAX: usize = 40;

/// Refuses what a container does not see: the machine's control groups and first process.
pub(super) fn outside_containers(draft: Draft, facts: &Facts) -> Result<Draft, Box<Finding>> {
    match container(facts) {
        None => Ok(draft),
        Some(name) => Err(Box::new(draft.read(&facts.virt.container, |_| name.into()).unknown(
            format!("inside a {name} container the machine's control groups are not seen"),
        ))),
    }
}

/// The tasks in groups, or the finding that says why they are unknown.
pub(super) fn tasks(draft: Draft, facts: &Facts) -> Result<(Draft, &[TaskGroup]), Box<Finding>> {
    let placement = &facts.placement;
    let draft = draft.read(placement, |groups| {
        text::count(groups.iter().map(|group| u64::from(group.count)).sum::<u64>(), "task")
    });
    let Some(groups) = placement.value() else {
        return Err(Box::new(draft.blind(placement)));
    };
    if !groups.iter().any(|group| group.kernel_thread) {
        let why = "no kernel thread is visible: a PID namespace or hidepid hides tasks";
        return Err(Box::new(draft.unknown(why)));
    }
    if groups.iter().all(|group| group.cpus.is_none()) {
        let why = format!("{}: the affinity of no task is readable", placement.path);
        return Err(Box::new(draft.unknown(why)));
    }
    Ok((draft, groups))
}

/// Of these groups those that may run on real-time CPUs, the largest first, and the number of
/// tasks of which that is unknown.
pub(super) fn on_rt<'a>(
    groups: impl Iterator<Item = &'a TaskGroup>,
    intent: &Intent,
) -> (Vec<&'a TaskGroup>, u32) {
    let mut on = Vec::new();
    let mut blind = 0;
    for group in groups {
        match &group.cpus {
            Some(cpus) if cpus.intersection(&intent.rt_cpus).is_empty() => {}
            Some(_) => on.push(group),
            None => blind += group.count,
        }
    }
    on.sort_by_key(|group| std::cmp::Reverse(group.count));
    (on, blind)
}

/// Number of tasks in groups.
pub(super) fn number(groups: &[&TaskGroup]) -> usize {
    groups.iter().map(|group| group.count as usize).sum()
}

/// Whether a group may run on nothing but real-time CPUs.
pub(super) fn is_pinned(group: &TaskGroup, intent: &Intent) -> bool {
    group
        .cpus
        .as_ref()
        .is_some_and(|cpus| !cpus.is_empty() && cpus.difference(&intent.rt_cpus).is_empty())
}

/// `sshd (3, ssh.service)`.
pub(super) fn name(group: &TaskGroup) -> String {
    match (&group.unit, group.count) {
        (None, 1) => group.name.clone(),
        (None, count) => format!("{} ({count})", group.name),
        (Some(unit), 1) => format!("{} ({unit})", group.name),
        (Some(unit), count) => format!("{} ({count}, {unit})", group.name),
    }
}

/// The first few names.
pub(super) fn names(groups: &[&TaskGroup]) -> String {
    text::first_few(&groups.iter().map(|group| name(group)).collect::<Vec<_>>(), 4)
}

/// Groups as evidence: where one of each is, and the CPUs that it may use.
pub(super) fn evidence(groups: &[&TaskGroup]) -> Vec<Evidence> {
    let show = |group: &&TaskGroup| Evidence {
        path: format!("/proc/{}/status", group.tid),
        value: format!(
            "{}: CPUs {}",
            name(group),
            group.cpus.as_ref().map_or_else(|| "?".into(), text::or_empty)
        ),
    };
    groups.iter().take(SHOWN_MAX).map(show).collect()
}

/// Moves kernel threads off the real-time CPUs; `command` does the same by hand.
pub(super) fn move_away(groups: &[&TaskGroup], intent: &Intent, command: String) -> Remedy {
    let set = || Scheduling { cpus: Some(intent.housekeeping.clone()), ..Scheduling::default() };
    let tasks = groups.iter().flat_map(|group| &group.tasks).cloned();
    let changes: Vec<Part> = tasks.map(|task| Change::Task { task, set: set() }.into()).collect();
    if changes.is_empty() {
        return Remedy::Manual { text: command };
    }
    Remedy::Changes { text: command, changes, then: None }
}

/// Keeps a unit on these CPUs.
pub(super) fn allow(unit: &str, cpus: &CpuList) -> Remedy {
    let (property, value) = ("AllowedCPUs".into(), cpus.to_string());
    Remedy::Property { unit: unit.into(), property, value }
}

/// Whether CPUs are given to control groups of version 2.
pub(super) fn has_v2(facts: &Facts) -> bool {
    facts.isolation.cpusets.value().is_some_and(|found| found.hierarchy == Hierarchy::V2)
}

const GROUP: &str = "/sys/fs/cgroup/rtproof";

/// A group of its own for the real-time CPUs, taken out of load balancing.
pub(super) fn partition(intent: &Intent) -> Remedy {
    let cpus = intent.rt_cpus.to_string();
    let part = |knob, change| Part { change, knob: Some(knob) };
    let write = |knob: &'static Knob, path: String, value: &str| {
        let (value, compare) = (value.into(), knob.compare.unwrap_or_default());
        part(knob, Change::Value { path, value, compare, couples: Vec::new() })
    };
    let changes = vec![
        write(&GROUP_CONTROLLERS, "/sys/fs/cgroup/cgroup.subtree_control".into(), "+cpuset"),
        part(&knobs::GROUP, Change::Folder { path: GROUP.into() }),
        write(&GROUP_CPUS, format!("{GROUP}/cpuset.cpus"), &cpus),
        write(&GROUP_PARTITION, format!("{GROUP}/cpuset.cpus.partition"), "isolated"),
    ];
    Remedy::Changes {
        text: format!(
            "or at run time: give a control group cpuset.cpus {cpus} and write isolated to its \
             cpuset.cpus.partition (cgroup v2)"
        ),
        changes,
        then: Some(format!(
            "put the application into the partition, nobody else may use its CPUs: write its \
             process id to {GROUP}/cgroup.procs, as root"
        )),
    }
}

/// CPUs out of load balancing, by boot parameter or by partition; `None`: neither is known.
pub(super) fn isolated(facts: &Facts) -> Option<CpuList> {
    let boot = facts.cpus.isolated.value();
    let partitions = facts.isolation.partitioned.value();
    match (boot, partitions) {
        (Some(boot), Some(partitions)) => Some(boot.union(partitions)),
        (boot, partitions) => boot.or(partitions).cloned(),
    }
}

/// Interrupts a second, on average since boot.
pub(super) fn per_second(count: u64, uptime_ms: u64) -> f64 {
    count as f64 * 1_000.0 / uptime_ms.max(1) as f64
}

/// A rate with two figures.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 9.95 => format!("{r:.0}/s"),
        r if r >= 0.095 => format!("{r:.1}/s"),
        r if r > 0.0 => "fewer than 0.1/s".into(),
        _ => "none".into(),
    }
}

/// The counters and the time that they have been counting, or why they are unknown.
pub(super) fn counters(
    draft: Draft,
    facts: &Facts,
) -> Result<(Draft, &Counters, u64), Box<Finding>> {
    let found = &facts.isolation;
    let draft = draft
        .read(&found.counters, |counters| text::count(counters.devices.len(), "CPU"))
        .read(&found.uptime_ms, |ms| crate::quantity::ns(ms.saturating_mul(1_000_000)));
    let Some(counters) = found.counters.value() else {
        return Err(Box::new(draft.blind(&found.counters)));
    };
    match found.uptime_ms.value() {
        Some(&uptime_ms) => Ok((draft, counters, uptime_ms)),
        None => Err(Box::new(draft.blind(&found.uptime_ms))),
    }
}

/// Counts of the real-time CPUs of one row, with their CPU. `None`: one of them has none.
pub(super) fn of_rt(
    counters: &Counters,
    counts: &[u64],
    intent: &Intent,
) -> Option<Vec<(u32, u64)>> {
    let count = |cpu: u32| {
        let at = counters.devices.iter().position(|device| device.cpu == cpu)?;
        Some((cpu, *counts.get(at)?))
    };
    intent.rt_cpus.iter().map(count).collect()
}
