//! A task of the same priority was ahead in the queue.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    order::{Order, order},
    scene::{Moment, Phase},
};

/// A task of the same priority, ahead in the queue.
#[derive(Debug)]
pub(super) struct Queued;

impl Cause for Queued {
    fn id(&self) -> &'static str {
        "queued"
    }

    fn kind(&self) -> Kind {
        Kind::Scheduling
    }

    fn title(&self) -> &'static str {
        "a task of the same priority, ahead in the queue"
    }

    fn about(&self) -> &'static str {
        "the thread was runnable and a task of equal real-time priority, or another ordinary task \
         if it is one itself, was on the CPU"
    }

    fn source(&self) -> &'static str {
        "sched(7): SCHED_FIFO tasks of one priority do not preempt each other"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["rogue-rt-tasks", "app-equal-priority", "app-policy"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        if moment.phase != Phase::Runnable || !moment.is_task() || order(moment) != Order::Equal {
            return None;
        }
        let scene = moment.scene;
        let tid = moment.cpu.task;
        let claim = Claim::by(names::task(scene, tid, moment.cpu.prio));
        let claim = claim.detail(names::task_detail(scene, tid)).owner(names::owner(scene, tid));
        if scene.prio.is_some_and(|prio| prio >= 100) {
            return Some(
                claim.manual("an ordinary thread takes its turn: give it SCHED_FIFO (chrt -f)"),
            );
        }
        Some(names::against_task(claim, scene, tid))
    }
}
