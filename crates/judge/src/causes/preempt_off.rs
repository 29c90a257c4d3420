//! A task of lower priority could not be preempted.

use rtproof_trace::What;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{Order, order},
    scene::{Moment, Phase},
    stack::Interrupted,
    stall::is_likely,
    switch::path_ns,
};

pub(super) const CAUSE: Cause = Cause {
    id: "preempt-off",
    kind: Kind::Blocking,
    title: "a task of lower priority, preemption off",
    about: "a task that should give way had been running since before the thread was woken: kernel \
        code with preemption off, or any kernel code where the kernel is not preemptible",
    source: "kernel/sched/core.c (preempt_schedule); measured: the switch, not NEED_RESCHED, tells \
        it from throttling",
    checks: &["preempt-rt", "preempt-dynamic"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let below = matches!(order(moment), Order::Below | Order::UnknownAndHeld);
    let waits = moment.phase == Phase::Runnable && moment.cpu.task > 0 && below;
    if !waits || !moment.is_task() || moment.whole_ns() <= path_ns(moment) {
        return None;
    }
    let scene = moment.scene;
    if *moment.interrupted() == Interrupted::User {
        // User mode is preempted at once: the stall's business, unless it left that since.
        return None;
    }
    // Interrupts are on in it, and a CPU that two tasks want has ticks.
    if is_likely(moment) {
        return None;
    }
    let attribution = Attribution::by(names::task(scene, moment.cpu.task, moment.cpu.prio));
    let attribution = attribution.detail(names::task_detail(scene, moment.cpu.task));
    let stack = match moment.interrupted() {
        Interrupted::Kernel(frames) => Some(format!("in {}", frames.join(" ← "))),
        _ => None,
    };
    let stack = stack.or_else(|| ended_in(moment));
    let told = stack.is_some() || moment.preempt & 0x0f > 0;
    let owner = match moment.interrupted() {
        Interrupted::Kernel(frames) => frames.iter().find_map(|frame| names::module_of(frame)),
        _ => names::owner(scene, moment.cpu.task),
    };
    let attribution = attribution.detail(stack).owner(owner).manual(
        "a PREEMPT_RT kernel preempts nearly everywhere; there it is the driver or call named \
         here",
    );
    let attribution = match order(moment) {
        Order::UnknownAndHeld => attribution.or(&["preempted", "queued"]),
        _ => attribution,
    };
    Some(if told { attribution } else { attribution.or(&["stall"]) })
}

/// Where preemption came back on: the stack of the switch that ended the wait, where the trace has
/// one (option stacktrace).
fn ended_in(moment: &Moment<'_>) -> Option<String> {
    let scene = moment.scene;
    let switched_ns = scene.switched_ns?;
    let mut after = scene.events(switched_ns, u64::MAX).filter(|e| e.pid == moment.cpu.task);
    let frames = after.find_map(|event| match &event.what {
        What::Stack { frames } => Some(frames),
        _ => None,
    })?;
    let names: Vec<&str> = frames.iter().filter_map(|&at| scene.window.symbol(at)).collect();
    let is_scheduler = |name: &&str| name.contains("schedule");
    let below = names.iter().rposition(is_scheduler).map_or(0, |at| at + 1);
    (below < names.len())
        .then(|| format!("preemption came back on in {}", names[below..].join(" ← ")))
}
