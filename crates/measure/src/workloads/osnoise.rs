//! osnoise: the kernel's own loop that never sleeps.

use rtproof_host::tracefs::TracerRequest;

use super::{
    kernel::{self, Source},
    workload::{Description, Plain},
};
use crate::quantity::Quantity;

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "osnoise",
        "The kernel's osnoise tracer on one CPU: a kernel thread reads the clock without pause. \
     Each gap above 1 us is a sample, less what interrupts the gap in turn. Shows what \
     interrupts, softirqs, other tasks and the hardware take from the CPU; not wake-ups. Each \
     gap is scheduled when it is found. The period of the measurement is not used. Needs root \
     and CONFIG_OSNOISE_TRACER.",
        Quantity::Gap,
    )
    .beside()
    .alone(),
    arm: |about, setting| {
        let shared = vec![
            ("osnoise/stop_tracing_us", "0".into()),
            ("osnoise/stop_tracing_total_us", "0".into()),
            ("tracing_thresh", "1".into()),
            ("osnoise/cpus", setting.cpu.to_string()),
        ];
        let events = vec!["osnoise:sample_threshold"];
        let request =
            TracerRequest { events, ..TracerRequest::on_one_cpu("osnoise", setting.cpu, shared) };
        kernel::arm(about.name, &request, Source::Noise, setting)
    },
};
