//! What a cause needs to be certain: the classes of events that would contradict it.
//!
//! A moment is attributed by the events that are there. An event that was not recorded cannot
//! contradict it, so that the attribution is only likely, and the causes that such events would
//! show are its alternatives.

use rtproof_trace::{Class, Extent};

use super::{
    cause::Attribution,
    scene::{Moment, Phase},
};

/// Time that a task had on the CPU, or the kernel in its place: anything may have come over it.
const OVER_A_TASK: &[Class] = &[Class::Switches, Class::Interrupts, Class::Softirqs];

/// Classes of events that would contradict each cause.
pub const CONTRADICTIONS: &[(&str, &[Class])] = &[
    ("nmi", &[]),
    ("stopped", &[Class::Switches]),
    ("hotplug", &[Class::Switches]),
    ("migration", &[Class::Switches]),
    ("page-fault", &[Class::Switches, Class::Interrupts]),
    ("blocked", &[Class::Switches]),
    ("own-cycle", OVER_A_TASK),
    ("timer-slack", &[]),
    ("masked", &[Class::Interrupts]),
    ("timer-work", &[Class::Interrupts, Class::Timers]),
    ("ipi", &[Class::Interrupts]),
    ("irq", &[Class::Interrupts]),
    ("softirq", &[Class::Interrupts, Class::Softirqs]),
    ("throttled", OVER_A_TASK),
    ("rtproof", OVER_A_TASK),
    ("priority-inheritance", OVER_A_TASK),
    ("irq-thread", OVER_A_TASK),
    ("kworker", OVER_A_TASK),
    ("preempted", OVER_A_TASK),
    ("queued", OVER_A_TASK),
    ("frequency", OVER_A_TASK),
    ("preempt-off", OVER_A_TASK),
    ("idle-exit", &[Class::Interrupts, Class::Idle]),
    ("switch", &[Class::Interrupts]),
    ("irqs-off", &[Class::Interrupts, Class::Nmis]),
    (
        "stall",
        &[
            Class::Switches,
            Class::Interrupts,
            Class::Softirqs,
            Class::Nmis,
            Class::Idle,
            Class::Timers,
        ],
    ),
    ("unexplained", &[]),
];

/// The classes of events that would contradict a cause.
pub fn contradictions(cause: &str) -> &'static [Class] {
    CONTRADICTIONS.iter().find(|(id, _)| *id == cause).map_or(&[], |(_, classes)| classes)
}

/// The cause that events of a class would have shown.
fn rival(class: Class, moment: &Moment<'_>) -> Option<&'static str> {
    // Only the idle task leaves the CPU to an idle state.
    let may_idle = moment.cpu.task <= 0;
    Some(match (class, moment.phase) {
        (Class::Interrupts, Phase::TimerLate) => "masked",
        (Class::Interrupts, _) => "irq",
        (Class::Softirqs, _) => "softirq",
        (Class::Switches, _) => "preempted",
        (Class::Nmis, _) => "nmi",
        (Class::Idle, _) if may_idle => "idle-exit",
        (Class::Timers, _) if moment.cpu.hard.is_some() => "timer-work",
        (Class::WakeUps | Class::Idle | Class::Timers, _) => return None,
    })
}

/// Whether code that ran in a moment would have shown: all of it was recorded, or another CPU tells
/// that nothing could run.
pub(super) fn shows_code(moment: &Moment<'_>) -> bool {
    let is_complete = |class: &Class| moment.scene.coverage.of(*class) == Extent::Complete;
    OVER_A_TASK.iter().all(is_complete) || super::stall::together(moment).is_some()
}

/// Adds what could contradict the attribution of a moment to a cause and was not recorded.
pub(super) fn doubt(moment: &Moment<'_>, cause: &str, mut by: Attribution) -> Attribution {
    let coverage = &moment.scene.coverage;
    for &class in contradictions(cause) {
        let extent = coverage.of(class);
        if extent == Extent::Complete {
            continue;
        }
        let rival = rival(class, moment);
        // Of a class that shows nothing here no event is missed.
        if rival.is_some() || class == Class::Timers && cause == "timer-work" {
            by.unseen.push(class.text());
        }
        by.or.extend(rival.filter(|rival| *rival != cause && !by.or.contains(rival)));
    }
    if cause != "unexplained" {
        by.unseen.extend(moment.doubt);
    }
    by
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::CAUSES;

    #[test]
    fn every_cause_says_what_would_contradict_it() {
        let listed: Vec<&str> = CONTRADICTIONS.iter().map(|(id, _)| *id).collect();
        let causes: Vec<&str> = CAUSES.iter().map(|cause| cause.id).collect();
        assert_eq!(listed, causes);
    }
}
