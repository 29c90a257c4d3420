//! Workloads: what a measured thread does each cycle. One file each, one list.
//!
//! To add one: copy `_template.rs`, fill it in, add `mod` and one line to [`WORKLOADS`].
//!
//! A [`Workload`] is a choice, shared by threads; [`Workload::arm`] makes of it what one thread
//! needs (buffers, timers, partners, a calibrated amount of work), before anything is measured.

mod busy_loop;
mod clock_gettime;
mod error;
mod eventfd;
mod exec;
mod futex;
mod hwlat;
pub(crate) mod kernel;
mod kill;
pub(crate) mod marks;
mod memory;
mod mutex_pi;
mod nanosleep_relative;
mod osnoise;
mod packet;
mod pair;
mod pipe;
mod posix_timer;
mod registers;
mod setitimer;
mod sigalrm_handler;
mod signal;
#[cfg(test)]
#[path = "_template.rs"]
mod template;
mod timer_wakeup;
mod timerfd;
mod timerlat;
mod timing;
mod usleep;
mod work;
mod workload;

use std::sync::Arc;

pub use error::WorkloadError;
pub use workload::{
    Armed, Clocks, Description, Ending, OwnCost, Place, Program, Setting, Workload,
};

#[cfg(any(test, feature = "testing"))]
pub(crate) use self::{
    exec::fuzz as fuzz_exec, kernel::fuzz as fuzz_tracer, marks::fuzz as fuzz_ring,
};
use crate::clock::Clock;
pub use crate::{cycle::Gaps, quantity::Quantity};

/// Every workload, with the parameters that it has by default.
pub const WORKLOADS: &[&dyn Workload] = &[
    // One line each.
    &timer_wakeup::WORKLOAD,
    &nanosleep_relative::WORKLOAD,
    &usleep::WORKLOAD,
    &setitimer::WORKLOAD,
    &sigalrm_handler::WORKLOAD,
    &timerfd::WORKLOAD,
    &posix_timer::WORKLOAD,
    &memory::WORKLOAD,
    &registers::WORKLOAD,
    &kill::WORKLOAD,
    &clock_gettime::WORKLOAD,
    &busy_loop::WORKLOAD,
    &futex::WORKLOAD,
    &pipe::WORKLOAD,
    &eventfd::WORKLOAD,
    &mutex_pi::WORKLOAD,
    &signal::WORKLOAD,
    &packet::WORKLOAD,
    &timerlat::WORKLOAD,
    &osnoise::WORKLOAD,
    &hwlat::WORKLOAD,
    &exec::WORKLOAD,
    &marks::WORKLOAD,
];

/// The workload that `prove` judges a machine by.
pub fn timer_wakeup() -> Arc<dyn Workload> {
    Arc::new(timer_wakeup::WORKLOAD)
}

/// Whether a workload can be measured by a clock.
///
/// # Errors
/// Why not, and which workloads can.
pub fn check_clock(workload: &dyn Workload, clock: Clock) -> Result<(), WorkloadError> {
    let about = workload.describe();
    if about.clocks.have(clock) {
        return Ok(());
    }
    let name = clock.name();
    let reason = match (about.place, about.clocks) {
        (_, Clocks::Timers | Clocks::Relative) if clock == Clock::Raw => {
            "no timer of the kernel runs on it, so that nothing can sleep by it"
        }
        (_, Clocks::Relative) => "setting it moves even a relative sleep by it",
        (Place::Beside, _) => "the program or the kernel that it reads has a clock of its own",
        (Place::OnCpu, _) => "its times are those of CLOCK_MONOTONIC",
    };
    let able: Vec<&str> = WORKLOADS
        .iter()
        .filter(|other| other.describe().clocks.have(clock))
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
    setting: &Setting,
) -> Result<Box<dyn Armed>, WorkloadError> {
    check_clock(workload, setting.clock)?;
    workload.arm(setting)
}

/// A workload from its text: a name, or a name, a colon and a parameter (`memory:64KiB`,
/// `exec:./my-cycle --fast`).
///
/// # Errors
/// There is none of that name, or the parameter is not what it takes.
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

#[cfg(test)]
mod tests;
