//! A task of the same priority was ahead in the queue.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{Order, changed, order},
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "queued",
    kind: Kind::Scheduling,
    title: "a task of the same priority, ahead in the queue",
    about: "the thread was runnable and a task of equal real-time priority, or another ordinary \
        task if it is one itself, was on the CPU",
    source: "sched(7): SCHED_FIFO tasks of one priority do not preempt each other",
    checks: &["rogue-rt-tasks", "app-equal-priority", "app-policy"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::Runnable || !moment.is_task() || order(moment) != Order::Equal {
        return None;
    }
    let scene = moment.scene;
    let tid = moment.cpu.task;
    let attribution = Attribution::by(names::task(scene, tid, moment.cpu.prio));
    let attribution =
        attribution.detail(names::task_detail(scene, tid)).owner(names::owner(scene, tid));
    let attribution = attribution.detail(changed(moment));
    if scene.prio.is_some_and(|prio| prio >= 100) {
        return Some(
            attribution.manual("an ordinary thread takes its turn: give it SCHED_FIFO (chrt -f)"),
        );
    }
    Some(names::against_task(attribution, scene, tid))
}
