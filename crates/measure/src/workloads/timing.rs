//! What workloads share that wait for a time: sleeps, expiries, a thread that reads the clock.

use std::sync::atomic::AtomicBool;

use rustix::thread::ClockId;

use super::{
    error::WorkloadError,
    workload::{Armed, OwnCost, Setting},
};
use crate::{
    EndReason, calibrate,
    clock::{self, Clock, KernelClock, Timekeeper},
    cycle::Cycle,
    sys,
};

/// The hot path of a workload: compiled as one function, so that its code can be locked.
pub(super) type Run<T> = fn(&mut Cycle, &AtomicBool, &T) -> EndReason;

/// A thread of which each sample ends with a reading of the clock, and holds nothing else of ours.
struct Clocked<T> {
    own: T,
    clock_ps: u64,
    run: Run<T>,
}

/// Arms a thread with what it needs of its own, and its hot path.
pub(super) fn armed<T: 'static>(own: T, run: Run<T>) -> Result<Box<dyn Armed>, WorkloadError> {
    Ok(Box::new(Clocked { own, clock_ps: calibrate::clock_read_ps(Clock::Monotonic), run }))
}

impl<T> Armed for Clocked<T> {
    fn cost(&self) -> OwnCost {
        OwnCost::of_clock(self.clock_ps)
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        (self.run)(cycle, stop, &self.own)
    }

    fn code(&self) -> Vec<usize> {
        vec![self.run as usize]
    }
}

/// The hot path of a workload by another clock.
pub(super) type RunBy = fn(&mut Cycle, &AtomicBool, &mut Timekeeper<KernelClock>) -> EndReason;

/// The same thread by a clock other than CLOCK_MONOTONIC.
struct ByClock {
    clock: Timekeeper<KernelClock>,
    clock_ps: u64,
    run: RunBy,
}

/// Arms a thread with a clock that is not CLOCK_MONOTONIC.
///
/// # Errors
/// Nothing can sleep by it here.
pub(super) fn armed_by(
    workload: &'static str,
    setting: &Setting,
    run: RunBy,
) -> Result<Box<dyn Armed>, WorkloadError> {
    if !clock::can_sleep(setting.clock) {
        let why = format!("this kernel has no sleep by {}", setting.clock.name());
        return Err(WorkloadError::unfit(workload, why));
    }
    let clock_ps = calibrate::clock_read_ps(setting.clock);
    Ok(Box::new(ByClock { clock: setting.timekeeper(), clock_ps, run }))
}

impl Armed for ByClock {
    fn cost(&self) -> OwnCost {
        OwnCost::of_clock(self.clock_ps)
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        (self.run)(cycle, stop, &mut self.clock)
    }

    fn code(&self) -> Vec<usize> {
        vec![self.run as usize]
    }

    fn memory(&self) -> Vec<(usize, usize)> {
        vec![(std::ptr::from_ref(&self.clock) as usize, size_of_val(&self.clock))]
    }
}

/// Cycles of a periodic timer. `wait` returns at an expiry; `false` when it failed.
#[inline(always)]
pub(super) fn run_expiries(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    wait: impl Fn() -> bool,
) -> EndReason {
    cycle.run_keeping(stop, |due_ns| {
        loop {
            let taken = wait();
            let now_ns = sys::now_ns();
            // An expiry from before was counted as missed.
            if now_ns >= due_ns || !taken {
                return now_ns;
            }
        }
    })
}

/// Cycles that sleep for one period from now.
#[inline(always)]
pub(super) fn run_sleeps(cycle: &mut Cycle, stop: &AtomicBool, sleep: impl Fn()) -> EndReason {
    sleep_until(cycle.schedule().first_ns);
    cycle.begin_at(sys::now_ns());
    cycle.run_relative(stop, || {
        sleep();
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

/// A period for a call that counts microseconds.
pub(super) fn whole_microseconds(
    workload: &'static str,
    period_ns: u64,
) -> Result<u64, WorkloadError> {
    match period_ns % 1000 {
        0 => Ok(period_ns / 1000),
        _ => Err(WorkloadError::unfit(
            workload,
            format!("it counts microseconds, and {period_ns} ns is no whole number of them"),
        )),
    }
}
