//! hwlat: the kernel's search for what the hardware takes.

use rtproof_host::tracefs::TracerRequest;

use super::{
    kernel::{self, Source},
    workload::{Description, Plain},
};
use crate::quantity::Quantity;

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "hwlat",
        "The kernel's hwlat tracer on one CPU: a kernel thread reads the clock with interrupts off \
     for half of each second. The largest gap above 1 us of each window is a sample. \
     Shows what neither the kernel nor a program can see: the firmware (SMIs), the \
     hypervisor, the hardware. Shows nothing else, and not the other half of the time. Keeps \
     interrupts from that CPU meanwhile: never on a machine in use. Needs root and \
     CONFIG_HWLAT_TRACER.",
        Quantity::Gap,
    )
    .beside()
    .alone(),
    arm: |about, setting| {
        let shared = vec![("tracing_thresh", "1".into())];
        let request = TracerRequest::on_one_cpu("hwlat", setting.cpu, shared);
        kernel::arm(about.name, &request, Source::Hardware, setting)
    },
};
