//! Rows: scheduler, real-time tasks, rights.

use crate::checks::rule::Rule;

/// The table.
pub(super) const RULES: &[Rule] = &[];
