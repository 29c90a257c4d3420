//! Timer wake-up: sleep until an absolute time, read the clock. The field's basic latency.

use std::sync::{Arc, atomic::AtomicBool};

use rustix::thread::ClockId;

use super::{Armed, OwnCost, Quantity, Setting, Workload, WorkloadError, no_parameter};
use crate::{calibrate, cycle::Cycle, sys, thread::EndReason};

/// clock_nanosleep(2) on absolute CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct TimerWakeup;

impl Workload for TimerWakeup {
    fn name(&self) -> &'static str {
        "timer-wakeup"
    }

    fn about(&self) -> &'static str {
        "Time from the expiry of a timer (clock_nanosleep, absolute CLOCK_MONOTONIC) to the \
         thread reading the clock. Covers the timer interrupt, the wake-up and the scheduler; not \
         device interrupts, threaded handlers or the application's own work."
    }

    fn quantity(&self) -> Quantity {
        Quantity::Latency
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, _: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        Ok(Box::new(Ready { clock_ps: calibrate::clock_read_ps() }))
    }
}

struct Ready {
    clock_ps: u64,
}

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        OwnCost::of_clock(self.clock_ps)
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop)
    }

    fn code(&self) -> Vec<usize> {
        vec![run as fn(&mut Cycle, &AtomicBool) -> EndReason as usize]
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
    cycle.run(stop, |due_ns| {
        sleep_until(due_ns);
        sys::now_ns()
    })
}

/// Sleeps until an absolute time of CLOCK_MONOTONIC.
#[inline(always)]
pub(super) fn sleep_until(due_ns: u64) {
    let due = sys::timespec(due_ns);
    // The only error that a valid time can give is EINTR, and signals are blocked here; were
    // one to come all the same, the early wake-up is counted as such.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &due);
}
