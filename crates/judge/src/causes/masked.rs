//! The timer was due while another interrupt was being handled.

use rtproof_trace::{context::Hard, event::Vector};

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "masked",
    kind: Kind::Interrupt,
    title: "the timer interrupt, masked by another interrupt",
    about: "the timer was due and not yet handled, and another interrupt was on top: interrupts \
        are off in handlers",
    source: "kernel/irq/handle.c (handlers run with interrupts off)",
    checks: &["irq-affinity", "threadirqs", "irqaffinity-boot"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::TimerLate {
        return None;
    }
    let (hard, _) = moment.cpu.hard.filter(|(hard, _)| !hard.is_timer())?;
    if matches!(hard, Hard::Vector(Vector::LocalTimer)) {
        return None;
    }
    let attribution = Attribution::by(hard.to_string());
    let attribution = match names::sender(moment).filter(|_| hard.is_ipi()) {
        Some(sender) => attribution.detail([format!("sent by {sender}")]),
        None => attribution,
    };
    Some(super::irq::against(attribution, moment, &hard))
}
