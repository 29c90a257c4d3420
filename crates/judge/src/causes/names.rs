//! Names of culprits, spelled the same by every cause.

use rtproof_trace::{
    EventData, Task, TaskPolicy,
    context::Hard,
    event::{Event, Vector},
};

use super::Attribution;
use super::scene::{Moment, Scene};
use crate::Remedy;

/// Name of a task: the one it has now, or the last one that an event gave it.
pub(super) fn comm(scene: &Scene<'_>, tid: i32) -> String {
    if tid == 0 {
        return "idle task".into();
    }
    if let Some(task) = scene.task(tid).filter(|task| !task.comm.is_empty()) {
        return task.comm.clone();
    }
    let recorded = scene.window.events.iter().rev().find_map(|event| match &event.what {
        EventData::Switch { next_comm, next_pid, .. } if *next_pid == tid => Some(*next_comm),
        EventData::Switch { prev_comm, prev_pid, .. } if *prev_pid == tid => Some(*prev_comm),
        EventData::Waking { comm, pid, .. } | EventData::Wakeup { comm, pid, .. }
            if *pid == tid =>
        {
            Some(*comm)
        }
        _ => None,
    });
    recorded.map_or_else(|| format!("task {tid}"), |comm| comm.to_string())
}

/// Policy and priority in brackets: `RR 99`, `OTHER`, `nice -5`; from the priority of an event
/// where the task was gone.
pub(super) fn rank(task: Option<&Task>, prio: Option<i32>) -> String {
    // The event shows its priority then; the task may have changed since.
    let policy = task.and_then(|task| Some((task, task.policy?)));
    match policy.filter(|&(task, policy)| fits(policy, task.rt_priority, prio)) {
        Some((task, policy @ (TaskPolicy::Fifo | TaskPolicy::Rr))) => {
            format!("{} {}", policy.text(), task.rt_priority)
        }
        Some((_, TaskPolicy::Deadline)) => "DEADLINE".into(),
        Some((task, policy)) if task.nice != 0 => format!("{} nice {}", policy.text(), task.nice),
        Some((_, policy)) => policy.text().into(),
        None => match prio {
            Some(prio) if prio < 0 => "DEADLINE".into(),
            Some(prio @ 0..=98) => format!("real-time {}", 99 - prio),
            Some(99) => "real-time".into(),
            Some(100..) => "OTHER".into(),
            _ => "priority unknown".into(),
        },
    }
}

/// Whether a policy goes with the priority of an event.
fn fits(policy: TaskPolicy, rt_priority: u32, prio: Option<i32>) -> bool {
    match prio {
        None => true,
        Some(..0) => policy == TaskPolicy::Deadline,
        Some(prio @ 0..=99) => {
            matches!(policy, TaskPolicy::Fifo | TaskPolicy::Rr)
                && i64::from(rt_priority) == 99 - i64::from(prio)
        }
        Some(_) => !matches!(policy, TaskPolicy::Fifo | TaskPolicy::Rr | TaskPolicy::Deadline),
    }
}

/// A task with policy and priority: `multipathd [RR 99]`.
pub(super) fn task(scene: &Scene<'_>, tid: i32, prio: Option<i32>) -> String {
    if tid == 0 {
        return "idle task".into();
    }
    if tid < 0 {
        return "an unknown task".into();
    }
    format!("{} [{}]", comm(scene, tid), rank(scene.task(tid), prio))
}

/// Control group, affinity, and waker: what a user asks next about a task.
pub(super) fn task_detail(scene: &Scene<'_>, tid: i32) -> Vec<String> {
    // Asked at each moment, and the waker is found by a search through all events.
    let mut known = scene.details.borrow_mut();
    known.entry(tid).or_insert_with(|| details(scene, tid)).clone()
}

fn details(scene: &Scene<'_>, tid: i32) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(task) = scene.task(tid) {
        let kind = if task.kernel { "kernel thread" } else { "process" };
        let group = task.cgroup.as_deref().filter(|group| *group != "/");
        let cpus = task.cpus_allowed.as_deref();
        let text = match (group, cpus) {
            (Some(group), Some(cpus)) => format!("{kind} {tid} in {group}, may use CPUs {cpus}"),
            (Some(group), None) => format!("{kind} {tid} in {group}"),
            (None, Some(cpus)) => format!("{kind} {tid}, may use CPUs {cpus}"),
            (None, None) => format!("{kind} {tid}"),
        };
        lines.push(text);
    }
    if let Some(by) = waker(scene, tid, scene.wake.ran_ns) {
        lines.push(format!("woken by {by}"));
    }
    lines
}

/// The last waker of a task before a time.
pub(super) fn waker(scene: &Scene<'_>, tid: i32, before_ns: u64) -> Option<String> {
    waking(scene, tid, before_ns).map(|event| waker_of(scene, event))
}

/// The last wake-up of a task before a time.
pub(super) fn waking<'a>(scene: &Scene<'a>, tid: i32, before_ns: u64) -> Option<&'a Event> {
    let events = &scene.window.events;
    let end = events.partition_point(|event| event.at_ns <= before_ns);
    events[..end].iter().rev().find(|event| {
        matches!(
            &event.what,
            EventData::Waking { pid, .. } | EventData::Wakeup { pid, .. } if *pid == tid
        )
    })
}

/// The task or interrupt that an event's code ran in.
pub(super) fn waker_of(scene: &Scene<'_>, event: &Event) -> String {
    use rtproof_trace::context::reconstruct;
    if event.flags & rtproof_trace::event::flags::HARDIRQ != 0 || event.pid == 0 {
        let before = event.at_ns.saturating_sub(1);
        let at = reconstruct(&scene.window.events, event.cpu, before, event.at_ns);
        let interrupt = at.last().and_then(|stretch| stretch.state.hard);
        if let Some((inner, _)) = interrupt.filter(|(inner, _)| *inner != Hard::Unknown) {
            return format!("{} on CPU {}", inner, event.cpu);
        }
        return format!("an interrupt on CPU {}", event.cpu);
    }
    format!("{} on CPU {}", comm(scene, event.pid), event.cpu)
}

/// Unit, or module, that a task belongs to.
pub(super) fn owner(scene: &Scene<'_>, tid: i32) -> Option<String> {
    let task = scene.task(tid)?;
    task.unit.clone().or_else(|| task.cgroup.clone().filter(|group| group != "/" && !task.kernel))
}

/// Whether a task is of the same process or service as the late one.
fn is_of_application(scene: &Scene<'_>, tid: i32) -> bool {
    let (Some(task), Some(late)) = (scene.task(tid), scene.task(scene.wake.tid)) else {
        return false;
    };
    let is_process = task.tgid > 0 && task.tgid == late.tgid;
    is_process || late.unit.is_some() && task.unit == late.unit
}

/// What to do about a task that runs ahead of the late one.
pub(super) fn against_task(attribution: Attribution, scene: &Scene<'_>, tid: i32) -> Attribution {
    let name = comm(scene, tid);
    let task = scene.task(tid);
    let cpu = scene.wake.cpu;
    if task.is_some_and(|task| task.kernel) {
        return attribution.manual(format!(
            "{name} is a kernel thread: give the application a higher priority, or keep the \
             thread's work off CPU {cpu}"
        ));
    }
    if is_of_application(scene, tid) {
        return attribution.manual(format!(
            "{name} is part of the application itself: give the late thread the higher priority, \
             or a CPU of its own"
        ));
    }
    if let Some(unit) = task.and_then(|task| task.unit.clone()) {
        return attribution.remedy(Remedy::Unit { unit, action: "disable --now".into() }).manual(
            format!(
                "or keep it off CPU {cpu} (CPUAffinity= of its unit), or lower its priority below \
                 the application's"
            ),
        );
    }
    attribution.manual(format!(
        "stop {name} (process {}), keep it off CPU {cpu} (taskset), or lower its priority (chrt)",
        task.map_or(tid, |task| if task.tgid > 0 { task.tgid } else { tid })
    ))
}

/// Function of an address, or the address.
pub(super) fn function(scene: &Scene<'_>, address: u64) -> String {
    scene.window.function(address).map_or_else(|| format!("{address:#x}"), ToString::to_string)
}

/// Module of an address: the text in brackets after its name.
pub(super) fn module(scene: &Scene<'_>, address: u64) -> Option<String> {
    module_of(scene.window.symbol(address)?)
}

/// Module of a symbol.
pub(super) fn module_of(symbol: &str) -> Option<String> {
    let (_, rest) = symbol.split_once('[')?;
    Some(format!("module {}", rest.split(']').next()?))
}

/// Sender of the inter-processor interrupt of a moment: of the last one sent to this CPU.
pub(super) fn sender(moment: &Moment<'_>) -> Option<String> {
    let scene = moment.scene;
    let cpu = scene.wake.cpu;
    let begin_ns = moment.cpu.hard.map_or(moment.from_ns, |(_, from_ns)| from_ns);
    let events = &scene.window.events;
    let sent = events[..events.partition_point(|event| event.at_ns <= begin_ns)].iter().rev();
    let event =
        sent.take_while(|event| begin_ns - event.at_ns < SENT_WITHIN_NS).find(
            |event| match &event.what {
                EventData::IpiSend { to_cpu, .. } => *to_cpu == cpu,
                EventData::IpiRaise { cpus, .. } => cpu < 64 && cpus & (1 << cpu) != 0,
                _ => false,
            },
        )?;
    let by = comm(scene, event.pid);
    Some(match &event.what {
        EventData::IpiSend { callsite, callback, .. } => {
            let what = if *callback != 0 { *callback } else { *callsite };
            format!("{by} on CPU {} ({})", event.cpu, function(scene, what))
        }
        _ => format!("{by} on CPU {}", event.cpu),
    })
}

/// An inter-processor interrupt arrives within this time.
const SENT_WITHIN_NS: u64 = 10_000_000;

/// Whether a vector is one of the machine's health.
pub(super) const fn is_health(vector: Vector) -> bool {
    matches!(vector, Vector::Thermal | Vector::Threshold | Vector::DeferredError | Vector::Error)
}
