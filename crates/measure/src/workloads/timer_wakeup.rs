//! Timer wake-up: sleep until an absolute time, read the clock. The field's basic latency.

use std::sync::atomic::AtomicBool;

use rustix::thread::ClockId;

use super::Workload;
use crate::{cycle::Cycle, sys, thread::EndReason};

/// clock_nanosleep(2) on absolute CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct TimerWakeup;

impl Workload for TimerWakeup {
    fn name(&self) -> &'static str {
        "timer-wakeup"
    }

    fn about(&self) -> &'static str {
        "Time from the expiry of a timer (clock_nanosleep, absolute CLOCK_MONOTONIC) to the thread \
         reading the clock. Covers the timer interrupt, the wake-up and the scheduler; not device \
         interrupts, threaded handlers or the application's own work."
    }

    fn run(&self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop)
    }

    fn code(&self) -> usize {
        run as fn(&mut Cycle, &AtomicBool) -> EndReason as usize
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
    cycle.run(stop, |due_ns| {
        let due = sys::timespec(due_ns);
        // The only error that a valid time can give is EINTR, and signals are blocked here; were
        // one to come all the same, the early wake-up is counted as such.
        let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &due);
        sys::now_ns()
    })
}
