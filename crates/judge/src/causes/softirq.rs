//! A softirq ran, on top of a task or in ksoftirqd.

use rtproof_trace::event::softirq_name;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{Order, order},
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "softirq",
    kind: Kind::Softirq,
    title: "a softirq",
    about: "softirq_entry to softirq_exit was open for the task on the CPU; on PREEMPT_RT only \
        where that task runs ahead of the late one, for a softirq can be preempted there",
    source: "kernel/softirq.c; measured: on PREEMPT_RT a softirq is preemptible and belongs to its \
        task",
    checks: &["irq-affinity", "ksoftirqd-ktimers-prio", "irq-thread-affinity"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if !moment.is_task() || matches!(moment.phase, Phase::TimerLate | Phase::Stopped) {
        return None;
    }
    let scene = moment.scene;
    let name = names::comm(scene, moment.cpu.task);
    let is_thread = name.starts_with("ksoftirqd/") || name.starts_with("ktimers/");
    let gives_way = order(moment) == Order::Below;
    let vec = match moment.cpu.softirq {
        // A thread of higher priority that happens to run one, or no thread at all under it.
        Some(vec) if !(gives_way && scene.window.beside.preempt_rt == Some(true)) => Some(vec),
        _ if is_thread && moment.phase == Phase::Runnable && !gives_way => moment.cpu.softirq,
        _ => return None,
    };
    let culprit = vec.map_or_else(|| name.clone(), softirq_name);
    let wheel = moment
        .cpu
        .wheel
        .map(|function| format!("timer function {}", names::function(scene, function)));
    let on = (moment.cpu.task > 0)
        .then(|| format!("in {}", names::task(scene, moment.cpu.task, moment.cpu.prio)));
    let owner = moment.cpu.wheel.and_then(|function| names::module(scene, function));
    Some(Attribution::by(culprit).detail(on.into_iter().chain(wheel)).owner(owner).manual(format!(
        "keep the interrupt that raises it off CPU {} (affinity, RPS), or use PREEMPT_RT with \
         ksoftirqd below the application",
        scene.wake.cpu
    )))
}
