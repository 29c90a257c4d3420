//! setitimer(2) and SIGALRM: the periodic task of simple programs.

use std::sync::{Arc, atomic::AtomicBool};

use super::{
    Armed, OwnCost, Quantity, Setting, Workload, WorkloadError, no_parameter,
    timer_wakeup::sleep_until, whole_microseconds,
};
use crate::{
    calibrate,
    cycle::Cycle,
    sys::{self, signals::Alarm},
    thread::EndReason,
};

/// Time before the first wake-up at which the timer is started.
const LEAD_NS: u64 = 2_000_000;

/// setitimer(2) with ITIMER_REAL, sigwaitinfo(2).
#[derive(Clone, Copy, Debug)]
pub struct Setitimer;

impl Workload for Setitimer {
    fn name(&self) -> &'static str {
        "setitimer"
    }

    fn about(&self) -> &'static str {
        "Time from the expiry of the process's interval timer (setitimer, ITIMER_REAL) to the \
         thread that takes SIGALRM reading the clock, against the timer's own grid: its start is \
         the clock read right before the call, so that the call itself, well below a microsecond, \
         is in every sample. The signal is blocked and taken with sigwaitinfo(2), not by a \
         handler. The intervals between signals are kept beside. Whole microseconds only; a \
         process has one such timer, so one CPU at a time."
    }

    fn quantity(&self) -> Quantity {
        Quantity::Latency
    }

    fn keeps_intervals(&self) -> bool {
        true
    }

    fn threads_max(&self) -> usize {
        1
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        let period_us = whole_microseconds(self.name(), setting.period_ns)?;
        let alarm = Alarm::claim();
        let alarm = alarm.map_err(|error| WorkloadError::unfit(self.name(), error))?;
        Ok(Box::new(Ready { alarm, clock_ps: calibrate::clock_read_ps(), period_us }))
    }
}

struct Ready {
    alarm: Alarm,
    clock_ps: u64,
    period_us: u64,
}

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        OwnCost::of_clock(self.clock_ps)
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop, &self.alarm, self.period_us)
    }

    fn code(&self) -> Vec<usize> {
        vec![run as fn(&mut Cycle, &AtomicBool, &Alarm, u64) -> EndReason as usize]
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, alarm: &Alarm, period_us: u64) -> EndReason {
    let first_ns = cycle.schedule().first_ns;
    sleep_until(first_ns.saturating_sub(LEAD_NS));
    let before_ns = sys::now_ns();
    // At least 1 us: a value of 0 would disarm it.
    let value_us = first_ns.saturating_sub(before_ns) / 1000 + 1;
    if alarm.start(value_us, period_us).is_err() {
        return EndReason::Stopped;
    }
    cycle.begin_at(before_ns + value_us * 1000);
    cycle.run_keeping(stop, |due_ns| {
        loop {
            let taken = alarm.wait();
            let now_ns = sys::now_ns();
            // A signal from before is of an expiry that was counted as missed.
            if now_ns >= due_ns || !taken {
                return now_ns;
            }
        }
    })
}
