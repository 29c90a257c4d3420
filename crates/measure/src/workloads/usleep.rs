//! usleep(3): the call of old programs, and one of the six kinds of work that jitter is shown with.

use std::sync::atomic::AtomicBool;

use super::{
    error::WorkloadError,
    timing,
    workload::{Description, Plain},
};
use crate::{EndReason, cycle::Cycle, quantity::Quantity, sys};

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "usleep",
        "Interval from one wake-up to the next, less the period, of a thread that calls usleep(3) \
     for one period each time. Drifts as nanosleep-relative does, with the same account of \
     missed cycles; the C library's own way into the call is part of it. Whole microseconds \
     below 1 s only. It does not measure latency against a schedule.",
        Quantity::Interval,
    )
    .with_intervals(),
    arm: |about, setting| {
        let period_us = timing::whole_microseconds(about.name, setting.period_ns)?;
        let period_us = u32::try_from(period_us).ok().filter(|&us| us < 1_000_000);
        let period_us = period_us.ok_or_else(|| {
            WorkloadError::unfit(about.name, "usleep(3) takes less than 1 s; shorten the period")
        })?;
        timing::armed(period_us, run)
    },
};

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, period_us: &u32) -> EndReason {
    let period_us = *period_us;
    timing::run_sleeps(cycle, stop, || sys::usleep(period_us))
}
