//! kill(0, 0): a system call that does some work in the kernel and has no effect.

use super::{
    work::{self, Operation},
    workload::{Clocks, Description, Plain},
};
use crate::quantity::Quantity;

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "kill",
        "Duration of a fixed number of system calls kill(0, 0), which asks for the right to \
     signal the own process group and signals nobody. Shows disturbances of the way into the \
     kernel and back and of its process table; grows with the number of processes in the \
     group. Not how late the work began.",
        Quantity::Duration,
    )
    .by(Clocks::Read),
    arm: |_, setting| Ok(work::calibrate(Calls, setting)),
};

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
