//! Timer wake-up: sleep until an absolute time, read the clock. The field's basic latency.

use std::sync::atomic::AtomicBool;

use super::{
    timing,
    workload::{Clocks, Description, Plain},
};
use crate::{
    EndReason,
    clock::{Clock, KernelClock, Timekeeper},
    cycle::Cycle,
    quantity::Quantity,
    sys,
};

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "timer-wakeup",
        "Time from the expiry of a timer (clock_nanosleep, absolute, \
     CLOCK_MONOTONIC unless --clock) to the \
     thread reading the clock. Covers the timer interrupt, the wake-up and the scheduler; not \
     device interrupts, threaded handlers or the application's own work.",
        Quantity::Latency,
    )
    .by(Clocks::Timers),
    arm: |about, setting| match setting.clock {
        Clock::Monotonic => timing::armed((), run),
        _ => timing::armed_by(about.name, setting, run_by),
    },
};

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, (): &()) -> EndReason {
    cycle.run(stop, |due_ns| {
        timing::sleep_until(due_ns);
        sys::now_ns()
    })
}

#[inline(never)]
fn run_by(cycle: &mut Cycle, stop: &AtomicBool, clock: &mut Timekeeper<KernelClock>) -> EndReason {
    cycle.run_by(stop, clock)
}
