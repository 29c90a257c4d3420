//! Rows: firmware, virtualization, security.

use crate::checks::rule::Rule;

/// The table.
pub(super) const RULES: &[Rule] = &[];
