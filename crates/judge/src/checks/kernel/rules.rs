//! Rows: kernel build and preemption.

use crate::checks::rule::Rule;

/// The table.
pub(super) const RULES: &[Rule] = &[];
