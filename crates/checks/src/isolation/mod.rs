//! Checks: isolated CPUs and interrupts.

mod agreement;
mod cpus;
mod irqs;
#[cfg(test)]
mod regressions;
mod tasks;
mod ticks;

use rtproof_host::{
    CpuList, Facts, Knob,
    facts::{
        isolation::{Hierarchy, InterruptCounters},
        tasks::TaskGroup,
    },
    knobs::cpu::{self as knobs, GROUP_CONTROLLERS, GROUP_CPUS, GROUP_PARTITION},
    tune::{Change, Scheduling},
};
use rtproof_model::finding::RemedyPart;

use crate::check::{Check, Judge};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, container, option};
use crate::profile::Choice;
use crate::value::{Absent, Applies, Want};
use crate::{Evidence, Finding, Impact, Intent, Remedy, Section, machine};

pub(crate) const SECTION: Section =
    Section { name: "isolation", title: "isolated CPUs and interrupts", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &agreement::CHECK,
    &crate::choice::CHECK,
    &cpus::ISOLCPUS,
    &cpus::ISOLCPUS_MANAGED_IRQ,
    &cpus::CPUSET_PARTITION,
    &cpus::CPUSET_SHIELD,
    &cpus::SYSTEMD_CPUAFFINITY,
    &cpus::CMDLINE_GLUED,
    &cpus::HK_SUFFICIENT,
    &cpus::CPU0_ISOLATED,
    &cpus::NUMA_PLACEMENT,
    &tasks::RT_TASKS_OFF_THEIR_CPUS,
    &tasks::USER_TASKS_ON_ISO,
    &tasks::KTHREAD_AFFINITY,
    &tasks::WORKQUEUE_CPUMASK,
    &tasks::WRITEBACK_CPUMASK,
    &ticks::NOHZ_FULL,
    &ticks::NOHZ_ON,
    &ticks::NOHZ_SINGLE_TASK,
    &ticks::SKEW_TICK,
    &ticks::RCU_NOCBS,
    &ticks::RCUO_AFFINITY,
    &ticks::RCU_NOCB_POLL,
    &irqs::IRQ_AFFINITY,
    &irqs::IRQAFFINITY_BOOT,
    &irqs::IRQBALANCE,
    &irqs::IRQ_SHARED,
    &irqs::IRQ_STORM,
    &irqs::LOCAL_IPIS,
    &irqs::TLB_SHOOTDOWN,
    &irqs::STATIC_KEY_IPIS,
    &RCU_NORMAL,
    &RCU_PATIENCE,
    &POWER_EFFICIENT,
    &TIMER_MIGRATION,
    &KPROBES,
];

// What several checks of this section ask.

/// Most groups shown as evidence.
const SHOWN_MAX: usize = 40;

/// Refuses what a container does not see: the machine's control groups and first process.
fn outside_containers(
    draft: FindingBuilder,
    facts: &Facts,
) -> Result<FindingBuilder, Box<Finding>> {
    match container(facts) {
        None => Ok(draft),
        Some(name) => Err(Box::new(draft.read(&facts.virt.container, |_| name.into()).unknown(
            format!("inside a {name} container the machine's control groups are not seen"),
        ))),
    }
}

/// The tasks in groups, or the finding that says why they are unknown.
fn tasks(
    draft: FindingBuilder,
    facts: &Facts,
) -> Result<(FindingBuilder, &[TaskGroup]), Box<Finding>> {
    let placement = &facts.placement;
    let draft = draft.read(placement, |groups| {
        machine::count(groups.iter().map(|group| u64::from(group.count)).sum::<u64>(), "task")
    });
    let Some(groups) = placement.value() else {
        return Err(Box::new(draft.unreadable(placement)));
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
fn on_rt<'a>(
    groups: impl Iterator<Item = &'a TaskGroup>,
    intent: &Intent,
) -> (Vec<&'a TaskGroup>, u32) {
    let mut on = Vec::new();
    let mut unknown = 0;
    for group in groups {
        match &group.cpus {
            Some(cpus) if cpus.intersection(&intent.rt_cpus).is_empty() => {}
            Some(_) => on.push(group),
            None => unknown += group.count,
        }
    }
    on.sort_by_key(|group| std::cmp::Reverse(group.count));
    (on, unknown)
}

/// Number of tasks in groups.
fn task_count(groups: &[&TaskGroup]) -> usize {
    groups.iter().map(|group| group.count as usize).sum()
}

/// Whether a group may run on nothing but real-time CPUs.
fn is_pinned(group: &TaskGroup, intent: &Intent) -> bool {
    group
        .cpus
        .as_ref()
        .is_some_and(|cpus| !cpus.is_empty() && cpus.difference(&intent.rt_cpus).is_empty())
}

/// `sshd (3, ssh.service)`.
fn group_name(group: &TaskGroup) -> String {
    match (&group.unit, group.count) {
        (None, 1) => group.name.clone(),
        (None, count) => format!("{} ({count})", group.name),
        (Some(unit), 1) => format!("{} ({unit})", group.name),
        (Some(unit), count) => format!("{} ({count}, {unit})", group.name),
    }
}

/// The first few names.
fn group_names(groups: &[&TaskGroup]) -> String {
    machine::first_few(&groups.iter().map(|group| group_name(group)).collect::<Vec<_>>(), 4)
}

/// Groups as evidence: where one of each is, and the CPUs that it may use.
fn evidence(groups: &[&TaskGroup]) -> Vec<Evidence> {
    let show = |group: &&TaskGroup| Evidence {
        path: format!("/proc/{}/status", group.tid),
        value: format!(
            "{}: CPUs {}",
            group_name(group),
            group.cpus.as_ref().map_or_else(|| "?".into(), machine::or_empty)
        ),
    };
    groups.iter().take(SHOWN_MAX).map(show).collect()
}

/// Moves kernel threads off the real-time CPUs; `command` does the same by hand.
fn move_away(groups: &[&TaskGroup], intent: &Intent, command: String) -> Remedy {
    let set = || Scheduling { cpus: Some(intent.housekeeping.clone()), ..Scheduling::default() };
    let tasks = groups.iter().flat_map(|group| &group.tasks).cloned();
    let changes: Vec<RemedyPart> =
        tasks.map(|task| Change::Task { task, set: set() }.into()).collect();
    if changes.is_empty() {
        return Remedy::Manual { text: command };
    }
    Remedy::Changes { text: command, changes, then: None }
}

/// Keeps a unit on these CPUs.
fn allow(unit: &str, cpus: &CpuList) -> Remedy {
    let (property, value) = ("AllowedCPUs".into(), cpus.to_string());
    Remedy::Property { unit: unit.into(), property, value }
}

/// Whether CPUs are given to control groups of version 2.
fn has_v2(facts: &Facts) -> bool {
    facts.isolation.cpusets.value().is_some_and(|found| found.hierarchy == Hierarchy::V2)
}

const GROUP: &str = "/sys/fs/cgroup/rtproof";

/// A group of its own for the real-time CPUs, taken out of load balancing.
fn partition(intent: &Intent) -> Remedy {
    let cpus = intent.rt_cpus.to_string();
    let part = |knob, change| RemedyPart { change, knob: Some(knob) };
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
fn isolated(facts: &Facts) -> Option<CpuList> {
    let boot = facts.cpus.isolated.value();
    let partitions = facts.isolation.partitioned.value();
    match (boot, partitions) {
        (Some(boot), Some(partitions)) => Some(boot.union(partitions)),
        (boot, partitions) => boot.or(partitions).cloned(),
    }
}

/// Interrupts a second, on average since boot.
fn per_second(count: u64, uptime_ms: u64) -> f64 {
    count as f64 * 1_000.0 / uptime_ms.max(1) as f64
}

/// A rate with two figures.
fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 9.95 => format!("{r:.0}/s"),
        r if r >= 0.095 => format!("{r:.1}/s"),
        r if r > 0.0 => "fewer than 0.1/s".into(),
        _ => "none".into(),
    }
}

/// The counters and the time that they have been counting, or why they are unknown.
fn counters(
    draft: FindingBuilder,
    facts: &Facts,
) -> Result<(FindingBuilder, &InterruptCounters, u64), Box<Finding>> {
    let found = &facts.isolation;
    let draft = draft
        .read(&found.counters, |counters| machine::count(counters.devices.len(), "CPU"))
        .read(&found.uptime_ms, |ms| crate::ns(ms.saturating_mul(1_000_000)));
    let Some(counters) = found.counters.value() else {
        return Err(Box::new(draft.unreadable(&found.counters)));
    };
    match found.uptime_ms.value() {
        Some(&uptime_ms) => Ok((draft, counters, uptime_ms)),
        None => Err(Box::new(draft.unreadable(&found.uptime_ms))),
    }
}

/// Counts of the real-time CPUs of one row, with their CPU. `None`: one of them has none.
fn of_rt(counters: &InterruptCounters, counts: &[u64], intent: &Intent) -> Option<Vec<(u32, u64)>> {
    let count = |cpu: u32| {
        let at = counters.devices.iter().position(|device| device.cpu == cpu)?;
        Some((cpu, *counts.get(at)?))
    };
    intent.rt_cpus.iter().map(count).collect()
}

// Rows: isolated CPUs and interrupts.

static RCU_NORMAL: Check = Check {
    title: "expedited RCU grace periods turned into normal ones after boot",
    why: "an expedited grace period interrupts every CPU that is not idle to have an answer at \
          once",
    source: "kernel/rcu/update.c (rcu_normal_after_boot, on with PREEMPT_RT), \
             kernel/rcu/tree_exp.h; Documentation/admin-guide/kernel-parameters.txt; tuned",
    trade_off: Some(
        "what waits for a grace period, as some changes of the network do, waits longer",
    ),
    impact: Impact::Microseconds,
    judge: Judge::value(|_| Want::is("1").or_doubtful(), Absent::WithoutOption("TREE_RCU")),
    ..Check::of(&[&knobs::RCU_NORMAL])
};

static RCU_PATIENCE: Check = Check {
    title: "how long RCU leaves a tickless CPU alone (nohz_full_patience_delay)",
    why: "without patience RCU works on the CPU that runs the application as soon as a grace \
          period waits for it",
    source: "Documentation/admin-guide/kernel-parameters.txt, rcutree.nohz_full_patience_delay; \
             kernel/rcu/tree.c (rcu_pending); tuned, 1000 ms",
    trade_off: Some("memory that waits for a grace period is freed later"),
    impact: Impact::Microseconds,
    judge: Judge::value_where(
        |_| {
            let want = Want::at_least(1).or_doubtful().set("1000");
            want.text("more than 0 ms (tuned: 1000)")
        },
        Absent::NoSuchThing("this kernel has no such delay"),
        is_tickless,
    ),
    ..Check::of(&[&knobs::RCU_PATIENCE])
};

static POWER_EFFICIENT: Check = Check {
    title: "work that is bound to a CPU only for speed let go (workqueue.power_efficient)",
    why: "work that an interrupt or a system call queued runs on the CPU that queued it, and comes \
          back there",
    source: "Documentation/admin-guide/kernel-parameters.txt, workqueue.power_efficient; \
             kernel/workqueue.c (WQ_POWER_EFFICIENT)",
    trade_off: Some("a little slower: the work starts on another CPU, without warm caches"),
    impact: Impact::Microseconds,
    judge: Judge::value_where(
        |_| Want::is("Y").or_doubtful().set("1").text("Y"),
        Absent::Unknown,
        has_other_cpus,
    ),
    ..Check::of(&[&knobs::POWER_EFFICIENT])
};

static TIMER_MIGRATION: Check = Check {
    title: "timers of idle CPUs moved to others (kernel.timer_migration)",
    why: "with migration a timer that was started on an idle or tickless CPU runs on another one, \
          and perhaps on a real-time CPU. Without it, all timers that a CPU starts run there",
    source: "kernel/time/timer.c, kernel/time/hrtimer.c (get_target_base); tuned sets 0, \
             OpenShift's profile 1, to clear CPUs of timers",
    trade_off: Some(
        "the sources disagree: 0 keeps timers where they were started (tuned), 1 lets tickless \
         CPUs get rid of them (OpenShift); the profile decides",
    ),
    impact: Impact::Microseconds,
    judge: Judge::value(
        |intent| match intent.profile.choices.timer_migration {
            Choice::On => Want::is("1").or_doubtful(),
            Choice::Off => Want::is("0").or_doubtful(),
            Choice::Either => Want::one_of(&["0", "1"]).not_set().text("known"),
        },
        Absent::NoSuchThing("this kernel moves no timers"),
    ),
    ..Check::of(&[&knobs::TIMER_MIGRATION])
};

static KPROBES: Check = Check {
    title: "probes in the kernel's code",
    why: "setting and removing a probe patches the kernel's code, which interrupts every CPU",
    source: "Documentation/trace/kprobes.rst; arch/x86/kernel/alternative.c (text_poke_bp_batch)",
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| Want::is("").or_doubtful().not_set().text("none"),
        Absent::WithoutOption("KPROBES"),
    ),
    ..Check::of(&[&knobs::KPROBES])
};

/// Concerns only machines with tickless real-time CPUs; where that is unknown, it may.
fn is_tickless(facts: &Facts, intent: &Intent) -> Applies {
    let nohz = &facts.cpus.nohz_full;
    match nohz.value().map(|cpus| cpus.intersection(&intent.rt_cpus).is_empty()) {
        Some(true) => {
            let shown = Evidence::of(nohz, machine::or_empty);
            Applies::No(shown, "no real-time CPU is tickless".into())
        }
        None if nohz.is_absent() && built_with(facts, "NO_HZ_FULL") == Some(false) => {
            Applies::No(option(facts, "NO_HZ_FULL"), "no CPU of this kernel is tickless".into())
        }
        _ => Applies::Yes,
    }
}

/// Concerns only machines with CPUs that work could go to.
fn has_other_cpus(facts: &Facts, intent: &Intent) -> Applies {
    let online = &facts.cpus.online;
    match online.value().map(|cpus| cpus.difference(&intent.rt_cpus).is_empty()) {
        Some(true) => {
            let shown = Evidence::of(online, CpuList::to_string);
            Applies::No(shown, "every CPU is a real-time CPU".into())
        }
        _ => Applies::Yes,
    }
}
