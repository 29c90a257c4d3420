//! Deferred work of the kernel ran ahead of the thread.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{Order, changed, order},
    scene::{Moment, Phase},
};
use crate::Remedy;

pub(super) const CAUSE: Cause = Cause {
    id: "kworker",
    kind: Kind::Scheduling,
    title: "work of the kernel (kworker)",
    about: "a kworker was running; workqueue_execute_start names the function",
    source: "kernel/workqueue.c; Wu, \"Real-time programming with Linux, part 2\" (vmstat every \
        second)",
    checks: &["workqueue-cpumask", "stat-interval"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let others: &[&str] = match order(moment) {
        Order::Above | Order::Equal | Order::NotBelow => &[],
        Order::Unknown => &["preempt-off"],
        Order::Below | Order::UnknownAndHeld => return None,
    };
    if moment.phase != Phase::Runnable || !moment.is_task() {
        return None;
    }
    let scene = moment.scene;
    let name = names::comm(scene, moment.cpu.task);
    if !name.starts_with("kworker/") {
        return None;
    }
    let function = moment.cpu.work.map(|address| names::function(scene, address));
    let culprit = function.map_or_else(|| name.clone(), |function| format!("{function} ({name})"));
    let owner = moment.cpu.work.and_then(|address| names::module(scene, address));
    Some(
        Attribution::by(culprit).detail(changed(moment)).owner(owner).or(others).remedy(
            Remedy::Manual {
                text: "keep unbound work off this CPU: /sys/devices/virtual/workqueue/cpumask, \
               isolcpus=domain, nohz_full="
                    .into(),
            },
        ),
    )
}
