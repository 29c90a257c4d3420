//! osnoise: the kernel's own loop that never sleeps.

use std::sync::Arc;

use rtproof_host::tracefs::Wish;

use super::{
    Armed, Place, Quantity, Setting, Workload, WorkloadError,
    kernel::{self, Source},
    no_parameter,
};

/// The tracer osnoise.
#[derive(Clone, Copy, Debug)]
pub struct Osnoise;

impl Workload for Osnoise {
    fn name(&self) -> &'static str {
        "osnoise"
    }

    fn about(&self) -> &'static str {
        "The kernel's osnoise tracer on one CPU: a kernel thread reads the clock without pause \
         and each gap above 1 us, less than what interrupts it in turn, is a sample. Shows what \
         interrupts, softirqs, other tasks and the hardware take from the CPU; not wake-ups. Each \
         gap is scheduled when it is found. The period of the measurement is not used. Needs root \
         and CONFIG_OSNOISE_TRACER."
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
        let shared = vec![
            ("osnoise/stop_tracing_us", "0".into()),
            ("osnoise/stop_tracing_total_us", "0".into()),
            ("tracing_thresh", "1".into()),
            ("osnoise/cpus", setting.cpu.to_string()),
        ];
        let events = &["osnoise:sample_threshold"];
        let wish = Wish { tracer: "osnoise", cpu: setting.cpu, shared, events };
        kernel::arm(self.name(), &wish, Source::Noise, setting)
    }
}
