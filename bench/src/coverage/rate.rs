//! Class 100: groups of late wake-ups in time.

use super::Case;

/// The cases.
pub(super) fn cases() -> Vec<Case> {
    Vec::new()
}
