//! setitimer(2) and SIGALRM: the periodic task of simple programs.

use std::sync::atomic::AtomicBool;

use super::{
    error::WorkloadError,
    timing,
    workload::{Description, Plain},
};
use crate::{
    EndReason,
    cycle::Cycle,
    quantity::Quantity,
    sys::{self, signals::Alarm},
};

/// Time before the first wake-up at which the timer is started.
const LEAD_NS: u64 = 2_000_000;

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "setitimer",
        "Time from the expiry of the process's interval timer (setitimer, ITIMER_REAL) to the \
     thread that takes SIGALRM reading the clock, against the timer's own grid. The grid begins \
     with the clock read right before the call. So the call itself, well below a microsecond, is \
     in every sample. The signal is blocked and taken with sigwaitinfo(2), not by a \
     handler. The intervals between signals are kept beside. Whole microseconds only; a \
     process has one such timer, so one CPU at a time.",
        Quantity::Latency,
    )
    .with_intervals()
    .alone(),
    arm: |about, setting| {
        let period_us = timing::whole_microseconds(about.name, setting.period_ns)?;
        let alarm = Alarm::claim().map_err(|error| WorkloadError::unfit(about.name, error))?;
        timing::armed((alarm, period_us), run)
    },
};

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, (alarm, period_us): &(Alarm, u64)) -> EndReason {
    if !begin(cycle, alarm, *period_us) {
        return EndReason::Stopped;
    }
    timing::run_expiries(cycle, stop, || alarm.wait())
}

/// Starts the timer, and the cycles on its grid; false: it cannot be started.
pub(super) fn begin(cycle: &mut Cycle, alarm: &Alarm, period_us: u64) -> bool {
    let first_ns = cycle.schedule().first_ns;
    timing::sleep_until(first_ns.saturating_sub(LEAD_NS));
    let before_ns = sys::now_ns();
    // At least 1 us: a value of 0 would disarm it.
    let value_us = first_ns.saturating_sub(before_ns) / 1000 + 1;
    let has_started = alarm.start(value_us, period_us).is_ok();
    if has_started {
        cycle.begin_at(before_ns + value_us * 1000);
    }
    has_started
}
