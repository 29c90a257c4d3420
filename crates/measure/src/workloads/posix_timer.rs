//! A POSIX timer that sends a signal to the measuring thread.

use std::sync::{Arc, atomic::AtomicBool};

use super::{Armed, OwnCost, Quantity, Setting, Workload, WorkloadError, no_parameter};
use crate::{
    calibrate,
    cycle::Cycle,
    sys::{self, signals::ThreadTimer},
    thread::EndReason,
};

/// timer_create(2) with SIGEV_THREAD_ID, sigtimedwait(2).
#[derive(Clone, Copy, Debug)]
pub struct PosixTimer;

impl Workload for PosixTimer {
    fn name(&self) -> &'static str {
        "posix-timer"
    }

    fn about(&self) -> &'static str {
        "Time from the expiry of a periodic POSIX timer (timer_settime, absolute CLOCK_MONOTONIC) \
         to the thread that its real-time signal is sent to reading the clock. The signal is \
         blocked and taken with sigwaitinfo(2): no handler runs, and what entering one would cost \
         is not measured."
    }

    fn quantity(&self) -> Quantity {
        Quantity::Latency
    }

    fn keeps_intervals(&self) -> bool {
        true
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        let timer = ThreadTimer::new();
        let timer = timer.map_err(|error| WorkloadError::unfit(self.name(), error))?;
        let clock_ps = calibrate::clock_read_ps();
        Ok(Box::new(Ready { timer, clock_ps, period_ns: setting.period_ns }))
    }
}

struct Ready {
    timer: ThreadTimer,
    clock_ps: u64,
    period_ns: u64,
}

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        OwnCost::of_clock(self.clock_ps)
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop, &self.timer, self.period_ns)
    }

    fn code(&self) -> Vec<usize> {
        vec![run as fn(&mut Cycle, &AtomicBool, &ThreadTimer, u64) -> EndReason as usize]
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, timer: &ThreadTimer, period_ns: u64) -> EndReason {
    let first_ns = cycle.schedule().first_ns;
    // A time of 0 would disarm it: the session gave up, and there is nothing to wait for.
    if first_ns == 0 || timer.start(first_ns, period_ns).is_err() {
        return EndReason::Stopped;
    }
    cycle.run_keeping(stop, |due_ns| {
        loop {
            let taken = timer.wait();
            let now_ns = sys::now_ns();
            // A signal from before is of an expiry that was counted as missed.
            if now_ns >= due_ns || !taken {
                return now_ns;
            }
        }
    })
}
