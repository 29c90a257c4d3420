//! Register operations: work that needs no memory and no kernel, so that only what takes the CPU
//! away, or slows it down, can change how long it takes.

use std::sync::Arc;

use super::{
    Armed, Quantity, Setting, Workload, WorkloadError, no_parameter,
    work::{Operation, Work, step},
};

/// Arithmetic in registers.
#[derive(Clone, Copy, Debug)]
pub struct Registers;

impl Workload for Registers {
    fn name(&self) -> &'static str {
        "registers"
    }

    fn about(&self) -> &'static str {
        "Duration of a fixed number of multiplications in registers, one after the other. Shows \
         interrupts, preemption, changes of frequency, a busy sibling thread and steals; not \
         memory, caches or the kernel, and not how late the work began."
    }

    fn quantity(&self) -> Quantity {
        Quantity::Duration
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        Ok(Box::new(Work::calibrate(Chain(1), setting)))
    }
}

/// Each operation needs the result of the one before it.
struct Chain(u64);

impl Operation for Chain {
    const WORDS: &'static str = "a multiplication and an addition in registers";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        let mut x = self.0;
        for _ in 0..ops {
            x = std::hint::black_box(step(x));
        }
        self.0 = x;
    }
}
