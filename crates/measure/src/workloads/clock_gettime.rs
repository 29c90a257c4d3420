//! clock_gettime(2): the call that every program makes, as a rule without entering the kernel.

use std::sync::Arc;

use super::{
    Armed, Quantity, Setting, Workload, WorkloadError, no_parameter,
    work::{Operation, Work},
};

use crate::sys;

/// clock_gettime(2) of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct ClockGettime;

impl Workload for ClockGettime {
    fn name(&self) -> &'static str {
        "clock-gettime"
    }

    fn about(&self) -> &'static str {
        "Duration of a fixed number of readings of CLOCK_MONOTONIC (clock_gettime). Where the \
         clock source allows it the kernel is not entered; elsewhere each is a system call, and \
         many times slower. Shows disturbances of the CPU and of the kernel's timekeeping; not \
         how late the work began."
    }

    fn quantity(&self) -> Quantity {
        Quantity::Duration
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        Ok(Box::new(Work::calibrate(Readings, setting)))
    }
}

struct Readings;

impl Operation for Readings {
    const WORDS: &'static str = "a reading of CLOCK_MONOTONIC";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        for _ in 0..ops {
            std::hint::black_box(sys::now_ns());
        }
    }
}
