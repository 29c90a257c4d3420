//! The timer was due while another interrupt was being handled.

use rtproof_trace::{context::Hard, event::Vector};

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// The timer interrupt, masked by another interrupt.
#[derive(Debug)]
pub(super) struct Masked;

impl Cause for Masked {
    fn id(&self) -> &'static str {
        "masked"
    }

    fn kind(&self) -> Kind {
        Kind::Interrupt
    }

    fn title(&self) -> &'static str {
        "the timer interrupt, masked by another interrupt"
    }

    fn about(&self) -> &'static str {
        "the timer was due and not yet handled, and another interrupt was on top: interrupts are \
         off in handlers"
    }

    fn source(&self) -> &'static str {
        "kernel/irq/handle.c (handlers run with interrupts off)"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["irq-affinity", "threadirqs", "irqaffinity-boot"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        if moment.phase != Phase::TimerLate {
            return None;
        }
        let (hard, _) = moment.cpu.hard.filter(|(hard, _)| !hard.is_timer())?;
        if matches!(hard, Hard::Vector(Vector::LocalTimer)) {
            return None;
        }
        let claim = Claim::by(names::hard(&hard));
        let claim = match names::sender(moment).filter(|_| hard.is_ipi()) {
            Some(sender) => claim.detail([format!("sent by {sender}")]),
            None => claim,
        };
        Some(super::irq::against(claim, moment, &hard))
    }
}
