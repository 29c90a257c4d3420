//! The way that every wake-up goes.

use super::{
    claim::{Cause, Claim, Kind},
    scene::{Moment, Phase},
};

/// Longest stretch of it. A guest leaves to its hypervisor for each timer that it programs; QEMU
/// without KVM needs 20 to 30 us for one step.
pub(super) fn path_ns(moment: &Moment<'_>) -> u64 {
    if moment.scene.window.beside.guest == Some(false) { 8_000 } else { 30_000 }
}

/// The normal path: interrupt, scheduler, return to user mode.
#[derive(Debug)]
pub(super) struct Switch;

impl Cause for Switch {
    fn id(&self) -> &'static str {
        "switch"
    }

    fn kind(&self) -> Kind {
        Kind::Own
    }

    fn title(&self) -> &'static str {
        "the normal path: interrupt, scheduler, return to user mode"
    }

    fn about(&self) -> &'static str {
        "short stretches in which only the kernel did what it does at every wake-up"
    }

    fn source(&self) -> &'static str {
        "kernel/sched/core.c, kernel/entry/common.c"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["mitigations", "preempt-rt"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let waits = !matches!(moment.phase, Phase::Stopped | Phase::Blocked);
        (waits && moment.whole_ns() <= path_ns(moment)).then(Claim::default)
    }
}
