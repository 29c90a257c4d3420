//! Rows: options of the kernel's build.

use crate::checks::build_option::{BuildOption, Wish};
use crate::{Impact, Status};

/// Rows that the tests try.
#[cfg(test)]
pub(in crate::checks) const ALL: &[&BuildOption] = &[&HWLAT];

pub(super) static HWLAT: BuildOption = BuildOption {
    id: "hwlat",
    title: "detector of latency from hardware (CONFIG_HWLAT_TRACER)",
    why: "without it nobody can tell what the firmware takes from what the kernel takes",
    source: "Documentation/trace/hwlat_detector.rst; \
             Documentation/core-api/real-time/hardware.rst (Firmware)",
    trade_off: None,
    impact: Impact::Information,
    options: &["HWLAT_TRACER"],
    want: |_| Wish::Told,
    otherwise: Status::Doubtful,
    part_of: None,
    harmless: None,
    remedy: None,
};
