//! Rows: network, graphics, devices, services.

use crate::checks::rule::Rule;

/// The table.
pub(super) const RULES: &[Rule] = &[];
