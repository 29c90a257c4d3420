//! A device's interrupt handler ran.

use rtproof_trace::context::Hard;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::Moment,
};
use crate::Remedy;

pub(super) const CAUSE: Cause = Cause {
    id: "irq",
    kind: Kind::Interrupt,
    title: "an interrupt handler",
    about: "irq_handler_entry to irq_handler_exit, or a vector of its own, was on top",
    source: "include/trace/events/irq.h",
    checks: &["irq-affinity", "irqbalance", "threadirqs"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let (hard, _) = moment.cpu.hard.filter(|(hard, _)| !hard.is_timer() && !hard.is_ipi())?;
    Some(against(Attribution::by(hard.to_string()), moment, &hard))
}

/// What to do about a hard interrupt on a real-time CPU.
pub(super) fn against(attribution: Attribution, moment: &Moment<'_>, hard: &Hard) -> Attribution {
    let cpu = moment.scene.wake.cpu;
    match hard {
        Hard::Irq { irq, name } => attribution
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
        Hard::Vector(vector) if names::is_health(*vector) => attribution
            .manual("the machine reports its own state: cooling, memory, firmware settings"),
        _ => attribution,
    }
}
