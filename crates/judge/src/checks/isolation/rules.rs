//! Rows: isolated CPUs and interrupts.

use crate::checks::rule::Rule;

/// The table.
pub(super) const RULES: &[Rule] = &[];
