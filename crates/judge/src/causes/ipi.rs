//! Another CPU asked for something.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::Moment,
};

/// An inter-processor interrupt.
#[derive(Debug)]
pub(super) struct Ipi;

impl Cause for Ipi {
    fn id(&self) -> &'static str {
        "ipi"
    }

    fn kind(&self) -> Kind {
        Kind::Interrupt
    }

    fn title(&self) -> &'static str {
        "an inter-processor interrupt"
    }

    fn about(&self) -> &'static str {
        "a rescheduling or function call interrupt was on top; ipi_send_cpu (6.4) and ipi_raise \
         name who sent it"
    }

    fn source(&self) -> &'static str {
        "kernel/smp.c; include/trace/events/ipi.h"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["local-ipis", "tlb-shootdown", "static-key-ipis"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let (hard, _) = moment.cpu.hard.filter(|(hard, _)| hard.is_ipi())?;
        let claim = Claim::by(names::hard(&hard));
        let sender = names::sender(moment);
        let unknown = sender.is_none();
        let claim = claim.detail(sender.map(|sender| format!("sent by {sender}")));
        let claim = claim.detail(unknown.then(|| "who sent it is not recorded".to_owned()));
        Some(claim.manual(
            "keep what sends it away from this CPU: no shared memory with other CPUs' processes \
             (TLB shootdowns), no membarrier, no static-key or module changes in operation",
        ))
    }
}
