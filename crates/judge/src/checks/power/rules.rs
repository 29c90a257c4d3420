//! Rows: SMT, frequency, idle states, power.

use crate::checks::rule::Rule;

/// The table.
pub(super) const RULES: &[Rule] = &[];
