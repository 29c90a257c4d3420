//! A non-maskable interrupt: nothing keeps it away.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::Moment,
};

pub(super) const CAUSE: Cause = Cause {
    id: "nmi",
    kind: Kind::Interrupt,
    title: "a non-maskable interrupt",
    about: "nmi_handler tells how long a handler took; perf and the hard lockup detector raise \
        them",
    source: "arch/x86/kernel/nmi.c (nmi_handler tells its length)",
    checks: &["perf-tracing-active", "config-lockup-detector"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let handler = moment.cpu.nmi?;
    let attribution = Attribution::by(names::function(moment.scene, handler));
    Some(attribution.manual("turn off what raises it: kernel.nmi_watchdog=0, no perf record"))
}
