//! Relative sleep by clock_nanosleep(2): what a program does that asks for "a period from now".

use std::sync::{Arc, atomic::AtomicBool};

use rustix::thread::ClockId;

use super::{
    Armed, OwnCost, Quantity, Setting, Workload, WorkloadError, no_parameter,
    timer_wakeup::sleep_until,
};
use crate::{calibrate, cycle::Cycle, sys, thread::EndReason};

/// clock_nanosleep(2) for one period on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct NanosleepRelative;

impl Workload for NanosleepRelative {
    fn name(&self) -> &'static str {
        "nanosleep-relative"
    }

    fn about(&self) -> &'static str {
        "Interval from one wake-up to the next, less the period, of a thread that sleeps for one \
         period each time (clock_nanosleep, relative CLOCK_MONOTONIC). Holds the thread's own way \
         from one reading of the clock into the next sleep. Each lateness moves all that follow: \
         this schedule drifts, and is not what a control loop should use. An interval of k whole \
         periods held k cycles that were due; one is sampled, k - 1 are missed."
    }

    fn quantity(&self) -> Quantity {
        Quantity::Interval
    }

    fn keeps_intervals(&self) -> bool {
        true
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        Ok(Box::new(Ready { clock_ps: calibrate::clock_read_ps(), period_ns: setting.period_ns }))
    }
}

struct Ready {
    clock_ps: u64,
    period_ns: u64,
}

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        OwnCost::of_clock(self.clock_ps)
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop, self.period_ns)
    }

    fn code(&self) -> Vec<usize> {
        vec![run as fn(&mut Cycle, &AtomicBool, u64) -> EndReason as usize]
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, period_ns: u64) -> EndReason {
    sleep_until(cycle.schedule().first_ns);
    cycle.begin_at(sys::now_ns());
    let period = sys::timespec(period_ns);
    cycle.run_relative(stop, || {
        let _ = rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &period);
        sys::now_ns()
    })
}
