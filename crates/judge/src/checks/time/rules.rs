//! Rows: clocks, watchdogs, machine checks.

use crate::checks::rule::Rule;

/// The table.
pub(super) const RULES: &[Rule] = &[];
