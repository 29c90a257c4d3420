//! Workloads: what a measured thread does each cycle.
//!
//! To add one: copy what is in `_template.rs` into the file of its subject, fill it in, add one
//! line to [`WORKLOADS`].
//!
//! A [`Workload`] is a choice, shared by threads; [`Workload::arm`] makes of it what one thread
//! needs (buffers, timers, partners, a calibrated amount of work), before anything is measured.

mod exec;
pub(crate) mod kernel;
pub(crate) mod marks;
mod packet;
mod pair;
mod sleep;
#[cfg(test)]
#[path = "_template.rs"]
mod template;
#[cfg(test)]
mod tests;
mod work;
mod workload;

pub use workload::{
    Armed, Clocks, Description, OwnCost, Program, ThreadPlace, Workload, WorkloadEnding,
    WorkloadError, WorkloadSetting,
};

pub use crate::Quantity;
pub use crate::cycle::Gaps;
#[cfg(any(test, feature = "testing"))]
pub(crate) use exec::fuzz as fuzz_exec;
#[cfg(any(test, feature = "testing"))]
pub(crate) use kernel::fuzz as fuzz_tracer;
#[cfg(any(test, feature = "testing"))]
pub(crate) use marks::fuzz as fuzz_ring;

use std::sync::Arc;

use crate::clock::Clock;

/// Every workload, with the parameters that it has by default.
pub const WORKLOADS: &[&dyn Workload] = &[
    // One line each.
    &sleep::TIMER_WAKEUP,
    &sleep::NANOSLEEP_RELATIVE,
    &sleep::USLEEP,
    &sleep::SETITIMER,
    &sleep::SIGALRM_HANDLER,
    &sleep::TIMERFD,
    &sleep::POSIX_TIMER,
    &work::MEMORY,
    &work::REGISTERS,
    &work::KILL,
    &work::CLOCK_GETTIME,
    &work::BUSY_LOOP,
    &pair::FUTEX,
    &pair::PIPE,
    &pair::EVENTFD,
    &pair::MUTEX_PI,
    &sleep::SIGNAL,
    &packet::WORKLOAD,
    &kernel::TIMERLAT,
    &kernel::OSNOISE,
    &kernel::HWLAT,
    &exec::WORKLOAD,
    &marks::WORKLOAD,
];

/// The workload that `prove` judges a machine by.
pub fn timer_wakeup() -> Arc<dyn Workload> {
    Arc::new(sleep::TIMER_WAKEUP)
}

/// Whether a workload can be measured by a clock.
///
/// # Errors
/// Why not, and which workloads can.
pub fn check_clock(workload: &dyn Workload, clock: Clock) -> Result<(), WorkloadError> {
    let about = workload.describe();
    if about.clocks.contains(clock) {
        return Ok(());
    }
    let name = clock.name();
    let reason = match (about.place, about.clocks) {
        (_, Clocks::Timers | Clocks::Relative) if clock == Clock::Raw => {
            "no timer of the kernel runs on it, so that nothing can sleep by it"
        }
        (_, Clocks::Relative) => "setting it moves even a relative sleep by it",
        (ThreadPlace::OtherCpu, _) => {
            "the program or the kernel that it reads has a clock of its own"
        }
        (ThreadPlace::OnCpu, _) => "its times are those of CLOCK_MONOTONIC",
    };
    let able: Vec<&str> = WORKLOADS
        .iter()
        .filter(|other| other.describe().clocks.contains(clock))
        .map(|other| other.name())
        .collect();
    let why = format!(
        "it cannot be measured by {name}: {reason}; leave --clock out, or use `rtproof measure \
         --workload` with one of {}",
        able.join(", ")
    );
    Err(WorkloadError::unfit(about.name, why))
}

/// Gets a workload ready, if it can be measured by the clock.
pub(crate) fn arm(
    workload: &dyn Workload,
    setting: &WorkloadSetting,
) -> Result<Box<dyn Armed>, WorkloadError> {
    check_clock(workload, setting.clock)?;
    workload.arm(setting)
}

/// A workload from its text: a name, or a name, a colon and a parameter (`memory:64KiB`,
/// `exec:./my-cycle --fast`).
///
/// # Errors
/// No workload of that name, or an invalid parameter.
pub fn parse(text: &str) -> Result<Arc<dyn Workload>, WorkloadError> {
    let text = text.trim();
    let (name, parameter) = match text.split_once(':') {
        Some((name, parameter)) => (name.trim(), Some(parameter.trim())),
        None => (text, None),
    };
    let found = WORKLOADS.iter().find(|workload| workload.name() == name);
    let workload = found.ok_or_else(|| WorkloadError::Name {
        name: name.chars().take(60).collect(),
        known: WORKLOADS.iter().map(|workload| workload.name()).collect::<Vec<_>>().join(", "),
    })?;
    workload.with(parameter)
}
