//! Options of the kernel's build.

use crate::build::{Build, Built};
use crate::check::{Check, Judge};
use crate::{Impact, When};

pub(super) static HWLAT: Check = Check {
    id: "hwlat",
    title: "detector of latency from hardware (CONFIG_HWLAT_TRACER)",
    why: "without it nobody can tell what the firmware takes from what the kernel takes",
    source: "Documentation/trace/hwlat_detector.rst; Documentation/core-api/real-time/hardware.rst \
             (Firmware)",
    impact: Impact::Information,
    when: When::Kernel,
    judge: Judge::Build(Build { options: &["HWLAT_TRACER"], want: |_| Built::With, ..Build::NEW }),
    ..Check::NEW
};
