//! Timer wake-up: sleep until an absolute time, read the clock. The field's basic latency.

use std::sync::atomic::AtomicBool;

use super::{
    timing,
    workload::{Description, Plain},
};
use crate::{EndReason, cycle::Cycle, quantity::Quantity, sys};

/// See the header.
pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "timer-wakeup",
        "Time from the expiry of a timer (clock_nanosleep, absolute CLOCK_MONOTONIC) to the \
     thread reading the clock. Covers the timer interrupt, the wake-up and the scheduler; not \
     device interrupts, threaded handlers or the application's own work.",
        Quantity::Latency,
    ),
    arm: |_, _| timing::armed((), run),
};

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, (): &()) -> EndReason {
    cycle.run(stop, |due_ns| {
        timing::sleep_until(due_ns);
        sys::now_ns()
    })
}
