//! A periodic timerfd: the timer of event loops.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, atomic::AtomicBool},
};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::{Armed, OwnCost, Quantity, Setting, Workload, WorkloadError, no_parameter};
use crate::{calibrate, cycle::Cycle, sys, thread::EndReason};

/// timerfd_create(2), read(2).
#[derive(Clone, Copy, Debug)]
pub struct Timerfd;

impl Workload for Timerfd {
    fn name(&self) -> &'static str {
        "timerfd"
    }

    fn about(&self) -> &'static str {
        "Time from the expiry of a periodic timerfd (absolute CLOCK_MONOTONIC) to the thread that \
         reads it reading the clock. Covers the timer interrupt, the wake-up through the file's \
         wait queue, the scheduler and the return from read(2); not the poll(2) or epoll(7) that \
         an event loop puts before it."
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
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        let timer = timer.map_err(|error| WorkloadError::unfit(self.name(), error))?;
        let clock_ps = calibrate::clock_read_ps();
        Ok(Box::new(Ready { timer, clock_ps, period_ns: setting.period_ns }))
    }
}

struct Ready {
    timer: OwnedFd,
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
        vec![run as fn(&mut Cycle, &AtomicBool, &OwnedFd, u64) -> EndReason as usize]
    }
}

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, timer: &OwnedFd, period_ns: u64) -> EndReason {
    let first_ns = cycle.schedule().first_ns;
    let spec =
        Itimerspec { it_interval: sys::timespec(period_ns), it_value: sys::timespec(first_ns) };
    // A time of 0 would disarm it: the session gave up, and there is nothing to wait for.
    if first_ns == 0 || timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &spec).is_err() {
        return EndReason::Stopped;
    }
    cycle.run_keeping(stop, |due_ns| {
        let mut expiries = [0_u8; 8];
        loop {
            let read = rustix::io::read(timer, &mut expiries);
            let now_ns = sys::now_ns();
            // Expiries from before are told by the next read: those were counted as missed.
            if now_ns >= due_ns || read.is_err() {
                return now_ns;
            }
        }
    })
}
