//! setitimer(2) and a handler of SIGALRM that does the work: the skeleton of S3.

use std::sync::atomic::AtomicBool;

use super::{
    error::WorkloadError,
    setitimer, timing,
    workload::{Description, Plain},
};
use crate::{
    EndReason,
    cycle::Cycle,
    quantity::Quantity,
    sys::{self, signals::Alarm},
};

pub(super) const WORKLOAD: Plain = Plain {
    description: Description::new(
        "sigalrm-handler",
        "Time from the expiry of the process's interval timer (setitimer, ITIMER_REAL) to the \
         first statement of a handler of SIGALRM. The handler interrupts a thread that waits in \
         sigsuspend(2), as pause(2) does. The way back from the handler is not in it. Against the \
         timer's own grid, as setitimer. The intervals between entries are kept beside. Whole \
         microseconds only; a process has one such timer, so one CPU at a time.",
        Quantity::Latency,
    )
    .with_intervals()
    .alone(),
    arm: |about, setting| {
        let period_us = timing::whole_microseconds(about.name, setting.period_ns)?;
        let unfit = |error| WorkloadError::unfit(about.name, error);
        let alarm = Alarm::claim().map_err(unfit)?;
        alarm.handle().map_err(unfit)?;
        timing::armed((alarm, period_us), run)
    },
};

#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool, (alarm, period_us): &(Alarm, u64)) -> EndReason {
    if !setitimer::begin(cycle, alarm, *period_us) {
        return EndReason::Stopped;
    }
    cycle.run_keeping(stop, |due_ns| {
        loop {
            match alarm.enter() {
                // An expiry from before was counted as missed.
                Some(entered_ns) if entered_ns < due_ns => {}
                Some(entered_ns) => return entered_ns,
                None => return sys::now_ns(),
            }
        }
    })
}
