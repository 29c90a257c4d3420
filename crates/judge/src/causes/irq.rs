//! A device's interrupt handler ran.

use rtproof_trace::context::Hard;

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::Moment,
};
use crate::Remedy;

/// An interrupt handler.
#[derive(Debug)]
pub(super) struct Irq;

impl Cause for Irq {
    fn id(&self) -> &'static str {
        "irq"
    }

    fn kind(&self) -> Kind {
        Kind::Interrupt
    }

    fn title(&self) -> &'static str {
        "an interrupt handler"
    }

    fn about(&self) -> &'static str {
        "irq_handler_entry to irq_handler_exit, or a vector of its own, was on top"
    }

    fn source(&self) -> &'static str {
        "include/trace/events/irq.h"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["irq-affinity", "irqbalance", "threadirqs"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let (hard, _) = moment.cpu.hard.filter(|(hard, _)| !hard.is_timer() && !hard.is_ipi())?;
        Some(against(Claim::by(names::hard(&hard)), moment, &hard))
    }
}

/// What to do about a hard interrupt on a real-time CPU.
pub(super) fn against(claim: Claim, moment: &Moment<'_>, hard: &Hard) -> Claim {
    let cpu = moment.scene.wake.cpu;
    match hard {
        Hard::Irq { irq, name } => claim
            .owner(Some(name.to_string()))
            .remedy(Remedy::Command {
                command: format!(
                    "rtproof check --only irq-affinity  # IRQ {irq} runs on CPU {cpu}"
                ),
            })
            .manual(format!(
                "move it: write other CPUs to /proc/irq/{irq}/smp_affinity_list, or boot with \
                 irqaffinity=; with threadirqs most of the handler becomes a thread"
            )),
        Hard::Vector(vector) if names::is_health(*vector) => {
            claim.manual("the machine reports its own state: cooling, memory, firmware settings")
        }
        _ => claim,
    }
}
