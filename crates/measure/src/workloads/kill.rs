//! kill(0, 0): a system call that does some work in the kernel and has no effect.

use std::sync::Arc;

use super::{
    Armed, Quantity, Setting, Workload, WorkloadError, no_parameter,
    work::{Operation, Work},
};

/// kill(2) with signal 0 to the own process group.
#[derive(Clone, Copy, Debug)]
pub struct Kill;

impl Workload for Kill {
    fn name(&self) -> &'static str {
        "kill"
    }

    fn about(&self) -> &'static str {
        "Duration of a fixed number of system calls kill(0, 0), which asks for the right to \
         signal the own process group and signals nobody. Shows disturbances of the way into the \
         kernel and back and of its process table; grows with the number of processes in the \
         group. Not how late the work began."
    }

    fn quantity(&self) -> Quantity {
        Quantity::Duration
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        Ok(Box::new(Work::calibrate(Calls, setting)))
    }
}

struct Calls;

impl Operation for Calls {
    const WORDS: &'static str = "the system call kill(0, 0)";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        for _ in 0..ops {
            // It is our own group: allowed.
            let _ = rustix::process::test_kill_current_process_group();
        }
    }
}
