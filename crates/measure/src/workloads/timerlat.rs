//! timerlat: the kernel's own measurement of a timer's latency.

use std::sync::Arc;

use rtproof_host::tracefs::TracerRequest;

use super::{
    error::WorkloadError,
    kernel::{self, Source},
    timing::whole_microseconds,
    workload::{Armed, Description, Setting, Workload},
};
use crate::quantity::Quantity;

#[derive(Clone, Copy, Debug)]
pub(super) struct Timerlat {
    source: Source,
}

/// Periods that the kernel takes, microseconds.
const PERIOD_US: std::ops::RangeInclusive<u64> = 100..=1_000_000;

pub(super) const WORKLOAD: Timerlat = Timerlat { source: Source::TimerThread };

const DESCRIPTION: Description = Description {
    parameter: Some("irq or thread, as in timerlat:irq; thread without"),
    ..Description::new(
        "timerlat",
        "The kernel's timerlat tracer on one CPU: time from the expiry of a kernel timer to its \
         interrupt (timerlat:irq) or to a kernel thread that it wakes (timerlat, timerlat:thread). \
         The kernel gives that thread SCHED_FIFO 95. Splits what timer-wakeup measures as a whole. \
         Does not hold the return to user space. Periods from 100us to 1s, as the kernel has it. \
         Needs root and CONFIG_TIMERLAT_TRACER.",
        Quantity::Latency,
    )
    .beside()
    .alone()
};

impl Workload for Timerlat {
    fn describe(&self) -> &Description {
        &DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let source = match parameter {
            None | Some("thread") => Source::TimerThread,
            Some("irq") => Source::TimerIrq,
            Some(text) => {
                return Err(WorkloadError::parameter(self.name(), text, "`irq` or `thread`"));
            }
        };
        Ok(Arc::new(Self { source }))
    }

    fn spec(&self) -> String {
        let context = if self.source == Source::TimerIrq { "irq" } else { "thread" };
        format!("{}:{context}", self.name())
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        let period_us = whole_microseconds(self.name(), setting.period_ns)?;
        if !PERIOD_US.contains(&period_us) {
            let why = "the kernel takes periods from 100us to 1s";
            return Err(WorkloadError::unfit(self.name(), why));
        }
        let shared = vec![
            ("osnoise/stop_tracing_us", "0".into()),
            ("osnoise/stop_tracing_total_us", "0".into()),
            ("osnoise/timerlat_period_us", period_us.to_string()),
            ("osnoise/cpus", setting.cpu.to_string()),
        ];
        let request = TracerRequest::on_one_cpu("timerlat", setting.cpu, shared);
        kernel::arm(self.name(), &request, self.source, setting)
    }
}
