//! Real-time tasks: what the checks of this section ask about them.

use rtproof_host::{Facts, facts::tasks::Policy, facts::tasks::RtTask};

use crate::draft::Draft;
use crate::{Evidence, Finding, Intent};
use crate::{machine, text};

/// Most tasks shown as evidence.
const SHOWN_MAX: usize = 256;
/// Why a list of tasks says nothing of the machine.
pub(super) const HIDDEN: &str =
    "no kernel thread is visible: a PID namespace or hidepid hides tasks";

/// Threads of the kernel that have a check of their own.
pub(super) const IRQ_THREADS: &[&str] = &["irq/"];
/// Threads of softirqs: all of them, those of timers from 6.13 and in PREEMPT_RT patches.
pub(super) const SOFTIRQ_THREADS: &[&str] = &["ksoftirqd/", "ktimers/", "ktimersoftd/"];
/// Threads of RCU: callbacks, boosting, grace periods.
pub(super) const RCU_THREADS: &[&str] =
    &["rcuc/", "rcub/", "rcuo", "rcu_preempt", "rcu_sched", "rcu_exp", "rcu_bh"];

pub(super) fn own(intent: &Intent) -> String {
    match intent.priority {
        0 => "your SCHED_OTHER".into(),
        priority => format!("your FIFO {priority}"),
    }
}

/// Whether it may run on a real-time CPU; a task with an unreadable affinity may.
pub(super) fn concerns(task: &RtTask, intent: &Intent) -> bool {
    task.cpus.as_ref().is_none_or(|cpus| !cpus.intersection(&intent.rt_cpus).is_empty())
}

/// Whether it runs ahead of the application, or level with it, where both want to run.
pub(super) fn outranks(task: &RtTask, intent: &Intent) -> bool {
    match task.policy {
        Policy::Deadline => true,
        Policy::Fifo | Policy::Rr => task.priority >= intent.priority,
        Policy::Other | Policy::Batch | Policy::Idle | Policy::Ext => false,
    }
}

/// The real-time tasks of the machine, or why nothing can be said of those on the real-time CPUs.
/// A list without a single kernel thread comes from inside a PID namespace.
pub(super) fn on_rt_cpus<'a>(
    draft: Draft,
    facts: &'a Facts,
    intent: &Intent,
) -> Result<(Draft, Vec<&'a RtTask>), Box<Finding>> {
    if intent.rt_cpus.is_empty() {
        return Err(Box::new(draft.no_rt_cpus(facts)));
    }
    let draft = draft.read(&facts.rt_tasks, |tasks| count(tasks));
    let Some(tasks) = facts.rt_tasks.value() else {
        return Err(Box::new(draft.blind(&facts.rt_tasks)));
    };
    if !tasks.iter().any(|task| task.kernel_thread) {
        return Err(Box::new(draft.unknown(HIDDEN)));
    }
    let (_, missing) = machine::rt_cpus(facts, intent);
    if !missing.is_empty() {
        return Err(Box::new(draft.gone(facts, &missing)));
    }
    Ok((draft, tasks.iter().filter(|task| concerns(task, intent)).collect()))
}

/// Kernel threads with one of these starts of their names.
pub(super) fn named<'a>(tasks: &[&'a RtTask], starts: &[&str]) -> Vec<&'a RtTask> {
    let is_named = |task: &&&RtTask| {
        task.kernel_thread && starts.iter().any(|start| task.comm.starts_with(start))
    };
    tasks.iter().filter(is_named).copied().collect()
}

/// Names without their numbers, ranks and how many: `ktimers FIFO 1 (2)`.
pub(super) fn kinds(tasks: &[&RtTask]) -> String {
    let mut kinds: Vec<(String, u32)> = Vec::new();
    for task in tasks {
        let name = task.comm.split(['/', ':']).next().unwrap_or_default();
        let kind = format!("{name} {}", rank(task));
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, number)) => *number += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let kinds: Vec<String> =
        kinds.into_iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    text::first_few(&kinds, 4)
}

pub(super) fn rank(task: &RtTask) -> String {
    match task.policy {
        Policy::Deadline => "SCHED_DEADLINE".into(),
        Policy::Rr => format!("SCHED_RR {}", task.priority),
        _ => format!("SCHED_FIFO {}", task.priority),
    }
}

pub(super) fn place(task: &RtTask) -> String {
    task.cpus.as_ref().map_or_else(|| "CPUs that cannot be read".into(), text::cpus)
}

pub(super) fn evidence(tasks: &[&RtTask]) -> Vec<Evidence> {
    let mut evidence: Vec<Evidence> = tasks
        .iter()
        .take(SHOWN_MAX)
        .map(|task| {
            let unit = task.unit.as_ref().map_or_else(String::new, |unit| format!(", {unit}"));
            Evidence {
                path: format!("/proc/{}/task/{}/stat", task.pid, task.tid),
                value: format!("{} {} on {}{unit}", task.comm, rank(task), place(task)),
            }
        })
        .collect();
    if let Some(next) = tasks.get(SHOWN_MAX) {
        let path = format!("/proc/{}/task/{}/stat", next.pid, next.tid);
        let value = format!("{} and more: {} in all", next.comm, tasks.len());
        evidence.push(Evidence { path, value });
    }
    evidence
}

pub(super) fn count(tasks: &[RtTask]) -> String {
    let kernel = tasks.iter().filter(|task| task.kernel_thread).count();
    let user = text::count(tasks.len() - kernel, "user task");
    format!("{} and {user} are real-time", text::count(kernel, "kernel thread"))
}
