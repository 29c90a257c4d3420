//! The CPU had to wake from an idle state.

use super::{
    cause::{Attribution, Cause, Kind},
    scene::{Moment, Phase},
};
use crate::Remedy;

/// What a hypervisor needs to run an idle guest's CPU again.
const GUEST_NS: u64 = 60_000;
/// What any CPU needs, and the kernel's way out of its idle loop.
const BARE_NS: u64 = 10_000;

/// What the deepest states of today's machines declare, for a trace of an unknown machine.
const DEEPEST_NS: u64 = 1_000_000;

pub(super) const CAUSE: Cause = Cause {
    id: "idle-exit",
    kind: Kind::Power,
    title: "the way out of an idle state",
    about: "the CPU was idle when the timer was due, or when the thread was woken. Up to three \
        times the declared exit latency of the state counts (1 ms where none is known), and what a \
        hypervisor needs to wake its guest",
    source: "Documentation/admin-guide/pm/cpuidle.rst",
    checks: &["cpuidle-states", "cpu-dma-latency", "idle-poll", "pm-qos-resume"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let waits = matches!(moment.phase, Phase::TimerLate | Phase::Runnable);
    if !waits || moment.cpu.task != 0 || !moment.is_task() || moment.taken_ns > 0 {
        return None;
    }
    if moment.phase == Phase::Runnable && moment.cpu.idle.is_none() {
        return None;
    }
    let beside = &moment.scene.window.beside;
    let state = moment.cpu.idle.and_then(|state| beside.idle_states.get(&state));
    let own_ns = if beside.guest == Some(true) { GUEST_NS } else { BARE_NS };
    let is_unknown =
        beside.guest.is_none() && beside.idle_states.is_empty() && moment.ns() > own_ns;
    let allowed_ns = match state {
        _ if is_unknown => DEEPEST_NS,
        state => 3 * state.map_or(0, |state| state.exit_latency_ns) + own_ns,
    };
    let culprit = match (state, moment.cpu.idle) {
        (Some(state), _) => state.name.clone(),
        (None, Some(number)) => format!("state {number}"),
        (None, None) => String::new(),
    };
    let attribution = Attribution::by(culprit).remedy(Remedy::Manual {
        text: "keep the CPU out of deep states: rtproof prove --dma-latency 0, or hold \
               /dev/cpu_dma_latency in the application"
            .into(),
    });
    let attribution = attribution.or(if is_unknown { &["stall"] } else { &[] });
    // A little more than allowed is no other thing; the rest of much more is a stall.
    let is_long = moment.ns() > 2 * allowed_ns;
    Some(Attribution { until_ns: is_long.then(|| moment.from_ns + allowed_ns), ..attribution })
}
