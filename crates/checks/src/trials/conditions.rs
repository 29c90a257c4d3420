//! What several trials ask of their run and of the machine.

use rtproof_host::Facts;

/// A trial that was ended before a second shows what it saw, but not that there is nothing.
pub(super) const SHORT_NS: u64 = 1_000_000_000;

/// Whether lockdown keeps debugfs closed.
pub(super) fn is_locked_down(facts: &Facts) -> bool {
    let mode = facts.kernel.lockdown.value().map(String::as_str);
    matches!(mode, Some("integrity" | "confidentiality"))
}
