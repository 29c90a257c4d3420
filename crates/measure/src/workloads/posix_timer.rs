//! A POSIX timer that sends a signal to the measuring thread.

use std::sync::atomic::AtomicBool;

use super::{
    error::WorkloadError,
    timing,
    workload::{Description, Plain},
};
use crate::{EndReason, cycle::Cycle, quantity::Quantity, sys::signals::ThreadTimer};

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "posix-timer",
        "Time from the expiry of a periodic POSIX timer (timer_settime, absolute CLOCK_MONOTONIC) \
     to the thread that its real-time signal is sent to reading the clock. The signal is \
     blocked and taken with sigwaitinfo(2): no handler runs, and what entering one would cost \
     is not measured.",
        Quantity::Latency,
    )
    .with_intervals(),
    arm: |about, setting| {
        let timer = ThreadTimer::new();
        let timer = timer.map_err(|error| WorkloadError::unfit(about.name, error))?;
        timing::armed((timer, setting.period_ns), run)
    },
};

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, (timer, period_ns): &(ThreadTimer, u64)) -> EndReason {
    let first_ns = cycle.schedule().first_ns;
    // A time of 0 would disarm it: the session gave up, and there is nothing to wait for.
    if first_ns == 0 || timer.start(first_ns, *period_ns).is_err() {
        return EndReason::Stopped;
    }
    timing::run_expiries(cycle, stop, || timer.wait())
}
