//! clock_gettime(2): the call that every program makes, as a rule without entering the kernel.

use super::{
    work::{self, Operation},
    workload::{Clocks, Description, Plain},
};
use crate::{clock, quantity::Quantity, sys};

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "clock-gettime",
        "Duration of a fixed number of readings of the clock (clock_gettime, \
     CLOCK_MONOTONIC unless --clock). Where the \
     clock source allows it the kernel is not entered; elsewhere each is a system call, and \
     many times slower. Shows disturbances of the CPU and of the kernel's timekeeping; not \
     how late the work began.",
        Quantity::Duration,
    )
    .by(Clocks::Read),
    arm: |_, setting| Ok(work::calibrate(Readings(clock::id(setting.clock)), setting)),
};

struct Readings(sys::clock::ClockNumber);

impl Operation for Readings {
    const WORDS: &'static str = "a reading of the clock";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        for _ in 0..ops {
            std::hint::black_box(sys::clock::clock_ns(self.0));
        }
    }
}
