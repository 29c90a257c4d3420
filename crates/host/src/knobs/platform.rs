//! Knobs: platform.

use crate::knob::Knob;

/// The table.
pub const KNOBS: &[&Knob] = &[];
