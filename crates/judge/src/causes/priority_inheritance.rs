//! Another task had inherited a priority.

use rtproof_trace::What;

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// A task that inherited a priority.
#[derive(Debug)]
pub(super) struct PriorityInheritance;

impl Cause for PriorityInheritance {
    fn id(&self) -> &'static str {
        "priority-inheritance"
    }

    fn kind(&self) -> Kind {
        Kind::Blocking
    }

    fn title(&self) -> &'static str {
        "a task that inherited a priority"
    }

    fn about(&self) -> &'static str {
        "the task on the CPU had been raised by sched_pi_setprio: it held a lock that somebody of \
         higher or equal priority waits for"
    }

    fn source(&self) -> &'static str {
        "kernel/locking/rtmutex.c; include/trace/events/sched.h (sched_pi_setprio)"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["app-outranked"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        if moment.phase != Phase::Runnable || !moment.is_task() || moment.cpu.task <= 0 {
            return None;
        }
        let scene = moment.scene;
        let last = scene.window.events.iter().rev().find_map(|event| match &event.what {
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
        Some(Claim::by(name).detail([raised]).owner(own).manual(
            "shorten what is done under the lock, or do not share locks with threads of this CPU",
        ))
    }
}
