//! A periodic timerfd: the timer of event loops.

use std::{os::fd::OwnedFd, sync::atomic::AtomicBool};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::{
    error::WorkloadError,
    timing,
    workload::{Description, Plain},
};
use crate::{EndReason, cycle::Cycle, quantity::Quantity, sys};

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "timerfd",
        "Time from the expiry of a periodic timerfd (absolute CLOCK_MONOTONIC) to the thread that \
     reads it reading the clock. Covers the timer interrupt, the wake-up through the file's \
     wait queue, the scheduler and the return from read(2); not the poll(2) or epoll(7) that \
     an event loop puts before it.",
        Quantity::Latency,
    )
    .with_intervals(),
    arm: |about, setting| {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        let timer = timer.map_err(|error| WorkloadError::unfit(about.name, error))?;
        timing::armed((timer, setting.period_ns), run)
    },
};

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, (timer, period_ns): &(OwnedFd, u64)) -> EndReason {
    let first_ns = cycle.schedule().first_ns;
    let spec =
        Itimerspec { it_interval: sys::timespec(*period_ns), it_value: sys::timespec(first_ns) };
    // A time of 0 would disarm it: the session gave up, and there is nothing to wait for.
    if first_ns == 0 || timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &spec).is_err() {
        return EndReason::Stopped;
    }
    // A read returns all expiries since the last one.
    timing::run_expiries(cycle, stop, || rustix::io::read(timer, &mut [0_u8; 8]).is_ok())
}
