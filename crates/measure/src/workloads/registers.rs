//! Register operations: work that needs no memory and no kernel, so that only what takes the CPU
//! away, or slows it down, can change how long it takes.

use super::{
    work::{self, Operation, step},
    workload::{Clocks, Description, Plain},
};
use crate::quantity::Quantity;

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "registers",
        "Duration of a fixed number of multiplications in registers, one after the other. Shows \
     interrupts, preemption, changes of frequency, a busy sibling thread and steals; not \
     memory, caches or the kernel, and not how late the work began.",
        Quantity::Duration,
    )
    .by(Clocks::Read),
    arm: |_, setting| Ok(work::calibrate(Chain(1), setting)),
};

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
