//! A task of lower priority could not be preempted.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    order::{Order, order},
    scene::{Moment, Phase},
    stack::Interrupted,
    stall::is_likely,
    switch::path_ns,
};

/// A task of lower priority, preemption off.
#[derive(Debug)]
pub(super) struct PreemptOff;

impl Cause for PreemptOff {
    fn id(&self) -> &'static str {
        "preempt-off"
    }

    fn kind(&self) -> Kind {
        Kind::Blocking
    }

    fn title(&self) -> &'static str {
        "a task of lower priority, preemption off"
    }

    fn about(&self) -> &'static str {
        "a task that should give way had been running since before the thread was woken: kernel \
         code with preemption off, or any kernel code where the kernel is not preemptible"
    }

    fn source(&self) -> &'static str {
        "kernel/sched/core.c (preempt_schedule); measured: the switch, not NEED_RESCHED, tells it \
         from throttling"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["preempt-rt", "preempt-dynamic"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let below = matches!(order(moment), Order::Below | Order::Unknown);
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
        let claim = Claim::by(names::task(scene, moment.cpu.task, moment.cpu.prio));
        let claim = claim.detail(names::task_detail(scene, moment.cpu.task));
        let stack = match moment.interrupted() {
            Interrupted::Kernel(frames) => Some(format!("in {}", frames.join(" ← "))),
            _ => None,
        };
        let told = stack.is_some() || moment.preempt & 0x0f > 0;
        let owner = match moment.interrupted() {
            Interrupted::Kernel(frames) => frames.iter().find_map(|frame| names::module_of(frame)),
            _ => names::owner(scene, moment.cpu.task),
        };
        let claim = claim.detail(stack).owner(owner).manual(
            "a PREEMPT_RT kernel preempts nearly everywhere; there it is the driver or call named \
             here",
        );
        Some(if told { claim } else { claim.or(&["stall"]) })
    }
}
