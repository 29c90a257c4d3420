//! Workloads: what a measured thread does each cycle. One file each, one list.
//!
//! To add one: copy `_template.rs`, fill it in, add one line to [`WORKLOADS`].
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
mod kernel;
mod kill;
mod marks;
mod memory;
mod mutex_pi;
mod nanosleep_relative;
mod osnoise;
mod pair;
mod pipe;
mod posix_timer;
mod registers;
mod setitimer;
mod signal;
#[cfg(test)]
#[path = "_template.rs"]
mod template;
mod timer_wakeup;
mod timerfd;
mod timerlat;
mod usleep;
mod work;

use std::sync::{Arc, atomic::AtomicBool};

pub use busy_loop::BusyLoop;
pub use clock_gettime::ClockGettime;
pub use error::WorkloadError;
pub use eventfd::Eventfd;
pub use exec::Exec;
pub use futex::Futex;
pub use hwlat::Hwlat;
pub use kill::Kill;
pub use marks::Marks;
pub use memory::Memory;
pub use mutex_pi::MutexPi;
pub use nanosleep_relative::NanosleepRelative;
pub use osnoise::Osnoise;
pub use pipe::Pipe;
pub use posix_timer::PosixTimer;
pub use registers::Registers;
pub use setitimer::Setitimer;
pub use signal::Signal;
pub use timer_wakeup::TimerWakeup;
pub use timerfd::Timerfd;
pub use timerlat::Timerlat;
pub use usleep::Usleep;

pub(crate) use self::{
    exec::fuzz as fuzz_exec, kernel::fuzz as fuzz_tracer, marks::fuzz as fuzz_ring,
};
pub use crate::quantity::Quantity;
use crate::{
    cycle::Cycle,
    thread::{EndReason, Policy},
};

/// What a measured thread does each cycle.
pub trait Workload: Send + Sync + std::fmt::Debug {
    /// Name on the command line and in records, before the colon.
    fn name(&self) -> &'static str;
    /// What it measures and what it does not, in a line or two.
    fn about(&self) -> &'static str;
    /// What its samples are.
    fn quantity(&self) -> Quantity;
    /// What may stand behind a colon, in words with an example; `None`: nothing.
    fn parameter(&self) -> Option<&'static str> {
        None
    }
    /// The same with what stood behind the colon; `None`: no colon.
    ///
    /// # Errors
    /// It is not what [`Workload::parameter`] says.
    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError>;
    /// Name and parameter: what [`parse`] reads as the same workload again.
    fn spec(&self) -> String {
        self.name().into()
    }
    /// Where its thread runs.
    fn place(&self) -> Place {
        Place::OnCpu
    }
    /// Whether it fills [`Slot::intervals`](crate::Slot::intervals): for tables of intervals as
    /// other tools print them.
    fn keeps_intervals(&self) -> bool {
        false
    }
    /// Most threads of a session that can have it, where the machine or the process has only so
    /// many of what it needs.
    fn threads_max(&self) -> usize {
        usize::MAX
    }
    /// Gets ready in the thread that will run it: pinned, raised, not yet armed.
    ///
    /// # Errors
    /// Why it cannot run here; the session does not start then.
    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError>;
}

/// Where the thread of a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the measured CPU, with the plan's policy: the thread itself is what is measured.
    OnCpu,
    /// Beside it, as an ordinary thread: it only takes down what another program, or the kernel,
    /// measures there.
    Beside,
}

/// What a workload is armed for.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Measured CPU.
    pub cpu: u32,
    /// Policy that was asked for.
    pub policy: Policy,
    /// Priority that was asked for.
    pub priority: u32,
    /// Period, nanoseconds.
    pub period_ns: u64,
    /// Length of the run, nanoseconds.
    pub duration_ns: u64,
}

/// What measuring itself takes of each sample, as measured right before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnCost {
    /// Contained in each sample, nanoseconds.
    pub ns: u64,
    /// What was calibrated and found, one sentence.
    pub sentence: String,
}

impl OwnCost {
    /// Of a workload whose sample ends with a reading of the clock and holds nothing else of ours.
    fn of_clock(clock_ps: u64) -> Self {
        let ns = clock_ps.div_ceil(1000);
        Self { ns, sentence: format!("Each sample holds one reading of the clock, {ns} ns.") }
    }
}

/// A program whose cycles are measured from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Process id.
    pub pid: u32,
    /// Policy in force when it was started.
    pub policy: Policy,
    /// Priority in force.
    pub priority: u32,
    /// Why the policy is not the one asked for.
    pub policy_error: Option<String>,
    /// Whether it runs on the measured CPU alone, as far as is known.
    pub is_pinned: bool,
}

/// What a workload tells when it has ended, beside its samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Cycles that are known to have been and could not be read: they are not in the account.
    pub lost: u64,
    /// Why it could not go on; `None`: it came to its end.
    pub failure: Option<String>,
    /// The account of a loop that never sleeps.
    pub gaps: Option<Gaps>,
}

/// Where the time of a loop that never sleeps went: `busy_ns + gap_ns == run_ns`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// First to last reading of the clock, nanoseconds.
    pub run_ns: u64,
    /// In steps up to the threshold.
    pub busy_ns: u64,
    /// In steps above it.
    pub gap_ns: u64,
    /// Steps above it.
    pub gaps: u64,
    /// All steps.
    pub steps: u64,
    /// The shortest step: the loop's own resolution, nanoseconds.
    pub step_min_ns: u64,
    /// Above this a step is a gap, nanoseconds.
    pub threshold_ns: u64,
}

/// A workload of one thread, ready to run.
pub trait Armed {
    /// What measuring itself takes.
    fn cost(&self) -> OwnCost;
    /// Runs cycles until they end. Called once, after arming; each implementation calls the
    /// method of [`Cycle`] that has its law with its own work, so that the hot path is compiled as
    /// one function.
    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason;
    /// Addresses of the compiled hot path, whose code is locked into memory.
    fn code(&self) -> Vec<usize>;
    /// Memory of its own to lock, as (address, bytes).
    fn memory(&self) -> Vec<(usize, usize)> {
        Vec::new()
    }
    /// The program that is measured, where it is not this thread.
    fn program(&self) -> Option<Program> {
        None
    }
    /// What it has to tell beside its samples, after [`Armed::run`].
    fn ending(&self) -> Ending {
        Ending::default()
    }
}

/// Every workload, with the parameters that it has by default.
pub const WORKLOADS: &[&dyn Workload] = &[
    &TimerWakeup,
    &NanosleepRelative,
    &Usleep,
    &Setitimer,
    &Timerfd,
    &PosixTimer,
    &Memory::USUAL,
    &Registers,
    &Kill,
    &ClockGettime,
    &BusyLoop::USUAL,
    &Futex::USUAL,
    &Pipe::USUAL,
    &Eventfd::USUAL,
    &MutexPi::USUAL,
    &Signal::USUAL,
    &Timerlat::USUAL,
    &Osnoise,
    &Hwlat,
    &Exec::NONE,
    &Marks::NONE,
];

/// The workload that `prove` judges a machine by.
#[must_use]
pub fn timer_wakeup() -> Arc<dyn Workload> {
    Arc::new(TimerWakeup)
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

/// What a workload without a parameter makes of one.
fn no_parameter(
    workload: &'static dyn Workload,
    parameter: Option<&str>,
    same: impl Workload + 'static,
) -> Result<Arc<dyn Workload>, WorkloadError> {
    match parameter {
        None => Ok(Arc::new(same)),
        Some(found) => Err(WorkloadError::parameter(workload.name(), found, "no parameter")),
    }
}

/// Nanoseconds of a number with `ns`, `us`, `ms` or `s`.
fn time_ns(text: &str) -> Option<u64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (word, unit) = units.iter().find(|(word, _)| text.ends_with(word))?;
    let number: f64 = text.strip_suffix(word)?.trim().parse().ok()?;
    let ns = (number * unit).round();
    (number.is_finite() && (1.0..1e18).contains(&ns)).then_some(ns as u64)
}

/// A period for a call that counts microseconds.
fn whole_microseconds(workload: &'static str, period_ns: u64) -> Result<u64, WorkloadError> {
    match period_ns % 1000 {
        0 => Ok(period_ns / 1000),
        _ => Err(WorkloadError::unfit(
            workload,
            format!("it counts microseconds, and {period_ns} ns is no whole number of them"),
        )),
    }
}

#[cfg(test)]
mod tests;
