//! How much of a text is looked at for one wake-up.

use crate::WakeUp;

/// Before the wake-up and after it, in a window.
const LEAD_NS: u64 = 2_000_000;
const TAIL_NS: u64 = 200_000;
/// Events that are kept of a window at most; of a longer wait the middle is left out.
pub(super) const EVENTS_MAX: usize = 20_000;

/// First and last moment of the window of a wake-up.
pub(super) const fn span(wake: &WakeUp) -> (u64, u64) {
    (wake.due_ns.saturating_sub(LEAD_NS), wake.ran_ns.saturating_add(TAIL_NS))
}
