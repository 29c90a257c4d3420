//! Which of two tasks runs first.

use rtproof_trace::{What, event};

use super::{names, scene::Moment};

/// First priority of fair tasks in the kernel's scale.
pub(super) const FAIR: i32 = 100;

/// How the task of a moment stands to the late thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It runs ahead.
    Above,
    /// They take turns, or wait for each other.
    Equal,
    /// It should give way.
    Below,
    /// It should by what is known, but the kernel, which knew better, did not ask it to.
    NotBelow,
    /// Nothing is known of one of them.
    Unknown,
    /// Nor here, but an interrupt over the task found preemption off.
    UnknownAndHeld,
}

/// Compares the task on the CPU with the late thread.
pub(super) fn order(moment: &Moment<'_>) -> Order {
    match known(moment) {
        Order::Below if was_kept(moment) => Order::NotBelow,
        Order::Unknown if is_held(moment) => Order::UnknownAndHeld,
        order => order,
    }
}

/// Interrupts that are asked: any moment may ask, of thousands.
const INTERRUPTS_MAX: usize = 64;

/// Whether each interrupt over the task, while the thread waited, found preemption off.
fn is_held(moment: &Moment<'_>) -> bool {
    let scene = moment.scene;
    let (from_ns, to_ns) = (moment.runnable_since_ns, scene.switched_ns.unwrap_or(moment.to_ns));
    let over = scene
        .events(from_ns, to_ns)
        .filter(|event| event.pid == moment.cpu.task && event.flags & event::flags::HARDIRQ != 0);
    let depths = over.map(|event| event.preempt & 0x0f).take(INTERRUPTS_MAX);
    depths.min().is_some_and(|depth| depth > 0)
}

/// Whether the kernel left the task on its CPU when it woke the thread there. One that should give
/// way is asked to before the event is written (kernel/sched/core.c, wakeup_preempt). Its priority
/// was raised while it ran, then, and no switch recorded that.
fn was_kept(moment: &Moment<'_>) -> bool {
    let (scene, task) = (moment.scene, moment.cpu.task);
    let Some(since_ns) = moment.cpu.since_ns.filter(|_| task > 0) else { return false };
    let from_ns = since_ns.max(scene.wake.due_ns);
    // Kernels before 4.3 write the event first, and have no sched_waking.
    let is_new = scene.window.events.iter().any(|event| {
        matches!(event.what, What::Waking { pid, .. } if pid == scene.wake.tid)
            && (scene.wake.due_ns..=moment.from_ns).contains(&event.at_ns)
    });
    if !is_new {
        return false;
    }
    // In order of time, the last one is the thread's own.
    let mut before = scene.events(from_ns, moment.from_ns).rev().take_while(|e| e.pid == task);
    before.find_map(|event| match event.what {
        What::Wakeup { pid, target_cpu, .. } if pid == scene.wake.tid => {
            let asked = event::flags::NEED_RESCHED | event::flags::NEED_RESCHED_LAZY;
            // It is written with interrupts off: else the trace has no flags.
            let has_flags = event.flags & event::flags::IRQS_OFF != 0;
            Some(target_cpu == scene.wake.cpu && has_flags && event.flags & asked == 0)
        }
        _ => None,
    }) == Some(true)
}

fn known(moment: &Moment<'_>) -> Order {
    match (theirs(moment), left_with(moment), moment.scene.prio_at(moment.from_ns)) {
        (_, _, None) => Order::Unknown,
        (Some(theirs), Some(left), Some(ours)) if left != theirs => {
            // It changed while the task ran: that it outranked the thread in the end counts.
            match compare(moment, left, ours) {
                Order::Above => Order::Above,
                _ => compare(moment, theirs, ours),
            }
        }
        (None, None, _) => Order::Unknown,
        (Some(theirs), _, Some(ours)) | (None, Some(theirs), Some(ours)) => {
            compare(moment, theirs, ours)
        }
    }
}

fn compare(moment: &Moment<'_>, theirs: i32, ours: i32) -> Order {
    if moment.cpu.task == 0 {
        return Order::Below;
    }
    if theirs >= FAIR && ours >= FAIR {
        // Fair tasks take turns, whatever their nice values are.
        return Order::Equal;
    }
    match theirs.cmp(&ours) {
        std::cmp::Ordering::Less => Order::Above,
        std::cmp::Ordering::Equal => Order::Equal,
        std::cmp::Ordering::Greater => Order::Below,
    }
}

/// The priority with which the task on the CPU left it in the end.
pub(super) fn left_with(moment: &Moment<'_>) -> Option<i32> {
    let scene = moment.scene;
    // Once another task is current it has left, seen or not.
    let mut own = scene.events(moment.from_ns, u64::MAX).skip_while(|e| e.at_ns == moment.from_ns);
    let mut here = own.by_ref().take_while(|event| event.pid == moment.cpu.task);
    here.find_map(|event| match event.what {
        What::Switch { prev_pid, prev_prio, .. } if prev_pid == moment.cpu.task => Some(prev_prio),
        _ => None,
    })
}

/// That the priority of the task on the CPU or of the late thread was another one at times.
pub(super) fn changed(moment: &Moment<'_>) -> Option<String> {
    let scene = moment.scene;
    let rank = |prio: i32| names::rank(None, Some(prio));
    let ours = scene.prio_at(moment.from_ns).zip(scene.prio).filter(|(then, last)| then != last);
    if let Some((then, last)) = ours {
        return Some(format!(
            "the late thread itself was [{}] then, not [{}]: something changed its priority",
            rank(then),
            rank(last)
        ));
    }
    let (theirs, left) = (theirs(moment), left_with(moment));
    if order(moment) == Order::NotBelow {
        return Some(format!(
            "the kernel did not ask it to give way when the thread was woken: it was no longer \
             [{}] then, though no switch recorded that",
            rank(theirs.or(left)?)
        ));
    }
    let theirs = theirs.zip(left).filter(|(came, left)| came != left);
    theirs.map(|(came, left)| {
        format!(
            "its priority changed while it ran: [{}] at first, [{}] at last",
            rank(came),
            rank(left)
        )
    })
}

/// Priority of the task on the CPU: as the switch to it recorded, which includes inheritance.
fn theirs(moment: &Moment<'_>) -> Option<i32> {
    moment.cpu.prio.or_else(|| {
        // A trace in text knows names only.
        let task = moment.scene.task(moment.cpu.task).filter(|task| task.policy.is_some())?;
        let rt = i32::try_from(task.rt_priority).ok()?;
        Some(if rt > 0 { 99 - rt } else { 120 + task.nice })
    })
}
