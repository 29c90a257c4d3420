//! A task of higher priority ran.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{Order, changed, left_with, order},
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "preempted",
    kind: Kind::Scheduling,
    title: "a task of higher priority",
    about: "the thread was runnable and a task that outranks it was on the CPU",
    source: "sched(7); Wu, \"Real-time programming with Linux, part 2\" (multipathd at SCHED_RR \
        99)",
    checks: &["rogue-rt-tasks", "prio-99", "app-outranked"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::Runnable || !moment.is_task() || order(moment) != Order::Above {
        return None;
    }
    let scene = moment.scene;
    let tid = moment.cpu.task;
    let attribution =
        Attribution::by(names::task(scene, tid, left_with(moment).or(moment.cpu.prio)));
    let attribution =
        attribution.detail(names::task_detail(scene, tid)).owner(names::owner(scene, tid));
    let attribution = attribution.detail(changed(moment));
    // It may have gone on for a while before it was raised above the thread.
    let was_raised = moment.cpu.prio.zip(left_with(moment)).is_some_and(|(came, left)| {
        left < came && scene.prio_at(moment.from_ns).is_some_and(|ours| came > ours)
    });
    let attribution = if was_raised { attribution.or(&["preempt-off"]) } else { attribution };
    Some(names::against_task(attribution, scene, tid))
}
