//! A task of higher priority ran.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{Order, order},
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
    let attribution = Attribution::by(names::task(scene, tid, moment.cpu.prio));
    let attribution =
        attribution.detail(names::task_detail(scene, tid)).owner(names::owner(scene, tid));
    Some(names::against_task(attribution, scene, tid))
}
