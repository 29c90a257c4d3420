//! usleep(3): the call of old programs, and one of the six kinds of work that jitter is shown with.

use std::sync::{Arc, atomic::AtomicBool};

use super::{
    Armed, OwnCost, Quantity, Setting, Workload, WorkloadError, no_parameter,
    timer_wakeup::sleep_until, whole_microseconds,
};
use crate::{calibrate, cycle::Cycle, sys, thread::EndReason};

/// usleep(3) for one period.
#[derive(Clone, Copy, Debug)]
pub struct Usleep;

impl Workload for Usleep {
    fn name(&self) -> &'static str {
        "usleep"
    }

    fn about(&self) -> &'static str {
        "Interval from one wake-up to the next, less the period, of a thread that calls usleep(3) \
         for one period each time. Drifts as nanosleep-relative does, with the same account of \
         missed cycles; the C library's own way into the call is part of it. Whole microseconds \
         below 1 s only. It does not measure latency against a schedule."
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
        let period_us = whole_microseconds(self.name(), setting.period_ns)?;
        let period_us = u32::try_from(period_us).ok().filter(|&us| us < 1_000_000);
        let period_us = period_us.ok_or_else(|| {
            WorkloadError::unfit(self.name(), "usleep(3) takes less than 1 s; shorten the period")
        })?;
        Ok(Box::new(Ready { clock_ps: calibrate::clock_read_ps(), period_us }))
    }
}

struct Ready {
    clock_ps: u64,
    period_us: u32,
}

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        OwnCost::of_clock(self.clock_ps)
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop, self.period_us)
    }

    fn code(&self) -> Vec<usize> {
        vec![run as fn(&mut Cycle, &AtomicBool, u32) -> EndReason as usize]
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, period_us: u32) -> EndReason {
    sleep_until(cycle.schedule().first_ns);
    cycle.begin_at(sys::now_ns());
    cycle.run_relative(stop, || {
        sys::usleep(period_us);
        sys::now_ns()
    })
}
