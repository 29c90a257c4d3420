//! hwlat: the kernel's search for what the hardware takes.

use std::sync::Arc;

use rtproof_host::tracefs::Wish;

use super::{
    Armed, Place, Quantity, Setting, Workload, WorkloadError,
    kernel::{self, Source},
    no_parameter,
};

/// The tracer hwlat.
#[derive(Clone, Copy, Debug)]
pub struct Hwlat;

impl Workload for Hwlat {
    fn name(&self) -> &'static str {
        "hwlat"
    }

    fn about(&self) -> &'static str {
        "The kernel's hwlat tracer on one CPU: a kernel thread reads the clock with interrupts \
         off for half of each second, and the largest gap above 1 us of each window is a sample. \
         Shows what neither the kernel nor a program can see: the firmware (SMIs), the \
         hypervisor, the hardware; nothing else, and not the other half of the time. Keeps \
         interrupts from that CPU meanwhile: never on a machine in use. Needs root and \
         CONFIG_HWLAT_TRACER."
    }

    fn quantity(&self) -> Quantity {
        Quantity::Gap
    }

    fn place(&self) -> Place {
        Place::Beside
    }

    fn threads_max(&self) -> usize {
        1
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        let shared = vec![("tracing_thresh", "1".into())];
        let wish = Wish { tracer: "hwlat", cpu: setting.cpu, shared, events: &[] };
        kernel::arm(self.name(), &wish, Source::Hardware, setting)
    }
}
