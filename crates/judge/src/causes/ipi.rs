//! An interrupt that another CPU sent.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::Moment,
};

pub(super) const CAUSE: Cause = Cause {
    id: "ipi",
    kind: Kind::Interrupt,
    title: "an inter-processor interrupt",
    about: "a rescheduling or function call interrupt was on top; ipi_send_cpu (6.4) and ipi_raise \
        name who sent it",
    source: "kernel/smp.c; include/trace/events/ipi.h",
    checks: &["local-ipis", "tlb-shootdown", "static-key-ipis"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let (hard, _) = moment.cpu.hard.filter(|(hard, _)| hard.is_ipi())?;
    let attribution = Attribution::by(hard.to_string());
    let sender = names::sender(moment);
    let unknown = sender.is_none();
    let attribution = attribution.detail(sender.map(|sender| format!("sent by {sender}")));
    let attribution = attribution.detail(unknown.then(|| "who sent it is not recorded".to_owned()));
    Some(attribution.manual(
        "keep what sends it away from this CPU: no shared memory with other CPUs' processes \
         (TLB shootdowns), no membarrier, no static-key or module changes in operation",
    ))
}
