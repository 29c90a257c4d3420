//! A non-maskable interrupt: nothing keeps it away.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::Moment,
};

/// A non-maskable interrupt.
#[derive(Debug)]
pub(super) struct Nmi;

impl Cause for Nmi {
    fn id(&self) -> &'static str {
        "nmi"
    }

    fn kind(&self) -> Kind {
        Kind::Interrupt
    }

    fn title(&self) -> &'static str {
        "a non-maskable interrupt"
    }

    fn about(&self) -> &'static str {
        "nmi_handler tells how long a handler took; perf and the hard lockup detector raise them"
    }

    fn source(&self) -> &'static str {
        "arch/x86/kernel/nmi.c (nmi_handler tells its length)"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["perf-tracing-active", "config-lockup-detector"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let handler = moment.cpu.nmi?;
        let claim = Claim::by(names::function(moment.scene, handler));
        Some(claim.manual("turn off what raises it: kernel.nmi_watchdog=0, no perf record"))
    }
}
