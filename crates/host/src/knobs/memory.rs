//! Knobs: memory, swap, block devices, file systems.

use crate::knob::Knob;

/// vm.swappiness.
pub static SWAPPINESS: Knob = Knob::file("swappiness", "/proc/sys/vm/swappiness");

/// The table.
pub const KNOBS: &[&Knob] = &[&SWAPPINESS];
