//! Rows: kernel build and preemption.

use crate::checks::rule::Rule;

/// The table: what a kernel is built with stands in `options.rs`.
pub(super) const RULES: &[Rule] = &[];
