//! Another task had inherited a priority.

use rtproof_trace::What;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "priority-inheritance",
    kind: Kind::Blocking,
    title: "a task that inherited a priority",
    about: "the task on the CPU had been raised by sched_pi_setprio: it held a lock that somebody \
        of higher or equal priority waits for",
    source: "kernel/locking/rtmutex.c; include/trace/events/sched.h (sched_pi_setprio)",
    checks: &["app-outranked"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::Runnable || !moment.is_task() || moment.cpu.task <= 0 {
        return None;
    }
    let scene = moment.scene;
    let last = scene.rare().iter().rev().find_map(|event| match &event.what {
        What::PiSetprio { pid, old_prio, new_prio, .. }
            if *pid == moment.cpu.task && event.at_ns <= moment.from_ns =>
        {
            Some((event, *old_prio, *new_prio))
        }
        _ => None,
    });
    let (event, old_prio, new_prio) = last?;
    // Lower numbers are higher priorities: only a task that is raised at the time counts.
    if new_prio >= old_prio || scene.prio.is_none_or(|ours| new_prio > ours) {
        return None;
    }
    let name = names::task(scene, moment.cpu.task, Some(old_prio));
    let raised = format!(
        "raised to the kernel's priority {new_prio} by {} on CPU {}",
        names::comm(scene, event.pid),
        event.cpu
    );
    let own = names::owner(scene, moment.cpu.task);
    Some(Attribution::by(name).detail([raised]).owner(own).manual(
        "shorten what is done under the lock, or do not share locks with threads of this CPU",
    ))
}
