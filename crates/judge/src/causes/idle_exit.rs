//! The CPU had to wake from an idle state.

use super::{
    claim::{Cause, Claim, Kind},
    scene::{Moment, Phase},
};
use crate::Remedy;

/// What a hypervisor needs to run an idle guest's CPU again.
const GUEST_NS: u64 = 60_000;
/// What any CPU needs, and the kernel's way out of its idle loop.
const BARE_NS: u64 = 10_000;

/// The way out of an idle state.
#[derive(Debug)]
pub(super) struct IdleExit;

impl Cause for IdleExit {
    fn id(&self) -> &'static str {
        "idle-exit"
    }

    fn kind(&self) -> Kind {
        Kind::Power
    }

    fn title(&self) -> &'static str {
        "the way out of an idle state"
    }

    fn about(&self) -> &'static str {
        "the CPU was idle when the timer was due, or when the thread was woken; up to three times \
         the exit latency that the state declares, and what a hypervisor needs to wake its guest"
    }

    fn source(&self) -> &'static str {
        "Documentation/admin-guide/pm/cpuidle.rst"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["cpuidle-states", "cpu-dma-latency", "idle-poll", "pm-qos-resume"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
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
        let allowed_ns = 3 * state.map_or(0, |state| state.exit_latency_ns) + own_ns;
        let culprit = match (state, moment.cpu.idle) {
            (Some(state), _) => state.name.clone(),
            (None, Some(number)) => format!("state {number}"),
            (None, None) => String::new(),
        };
        let claim = Claim::by(culprit).remedy(Remedy::Manual {
            text: "keep the CPU out of deep states: rtproof prove --dma-latency 0, or hold \
                   /dev/cpu_dma_latency in the application"
                .into(),
        });
        // A little more than allowed is no other thing; the rest of much more is a stall.
        let is_long = moment.ns() > 2 * allowed_ns;
        Some(Claim { until_ns: is_long.then(|| moment.from_ns + allowed_ns), ..claim })
    }
}
