//! The way that every wake-up goes.

use super::{
    cause::{Attribution, Cause, Kind},
    scene::{Moment, Phase},
};

/// Longest stretch of it. A guest leaves to its hypervisor for each timer that it programs; QEMU
/// without KVM needs 20 to 30 us for one step.
pub(super) fn path_ns(moment: &Moment<'_>) -> u64 {
    if moment.scene.window.beside.guest == Some(false) { 8_000 } else { 30_000 }
}

pub(super) const CAUSE: Cause = Cause {
    id: "switch",
    kind: Kind::Own,
    title: "the normal path: interrupt, scheduler, return to user mode",
    about: "short stretches in which only the kernel did what it does at every wake-up",
    source: "kernel/sched/core.c, kernel/entry/common.c",
    checks: &["mitigations", "preempt-rt"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let waits = !matches!(moment.phase, Phase::Stopped | Phase::Blocked);
    (waits && moment.whole_ns() <= path_ns(moment)).then(Attribution::default)
}
