//! Relative sleep by clock_nanosleep(2): what a program does that asks for "a period from now".

use std::sync::atomic::AtomicBool;

use rustix::{thread::ClockId, time::Timespec};

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
        "nanosleep-relative",
        "Interval from one wake-up to the next, less the period, of a thread that sleeps for one \
     period each time (clock_nanosleep, relative, CLOCK_MONOTONIC unless --clock). Holds the thread's own way \
     from one reading of the clock into the next sleep. Each lateness moves all that follow: \
     this schedule drifts, and is not what a control loop should use. An interval of k whole \
     periods held k cycles that were due; one is sampled, k - 1 are missed.",
        Quantity::Interval,
    )
    .with_intervals()
    .by(Clocks::Relative),
    arm: |about, setting| match setting.clock {
        Clock::Monotonic => timing::armed(sys::timespec(setting.period_ns), run),
        _ => timing::armed_by(about.name, setting, run_by),
    },
};

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, period: &Timespec) -> EndReason {
    // On the stack, which is locked.
    let period = *period;
    timing::run_sleeps(cycle, stop, || {
        let _ = rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &period);
    })
}

#[inline(never)]
fn run_by(cycle: &mut Cycle, stop: &AtomicBool, clock: &mut Timekeeper<KernelClock>) -> EndReason {
    let period_ns = cycle.schedule().period_ns;
    timing::sleep_until(cycle.schedule().first_ns);
    cycle.begin_at(clock.now_ns());
    cycle.run_relative(stop, || {
        clock.sleep_for(period_ns);
        clock.now_ns()
    })
}
