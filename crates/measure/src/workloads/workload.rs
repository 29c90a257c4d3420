//! A workload: its description, its armed form in a thread, and their results.

use std::sync::{Arc, atomic::AtomicBool};

use rustix::thread::ClockId;

use crate::clock::{Clock, KernelClock, Ledger, Timekeeper};
use crate::cycle::{Cycle, Gaps};
use crate::{EndReason, Policy, Quantity, calibrate, clock, sys};

/// What a workload is, as data.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Name on the command line and in records, before the colon.
    pub name: &'static str,
    /// What it measures and what it does not, in a line or two.
    pub about: &'static str,
    /// What its samples are.
    pub quantity: Quantity,
    /// What may follow a colon, in words with an example; `None`: nothing.
    pub parameter: Option<&'static str>,
    /// Where its thread runs.
    pub place: ThreadPlace,
    /// Whether it fills [`Slot::intervals`](crate::Slot::intervals), for tables of intervals as
    /// other tools print them.
    pub keeps_intervals: bool,
    /// Clocks that it can be measured by.
    pub clocks: Clocks,
    /// Most threads of a session that can have it, where the machine or the process has only so
    /// many of what it needs.
    pub threads_max: usize,
}

impl Description {
    /// Of a workload that has no parameter and runs on the measured CPU.
    pub(super) const fn new(name: &'static str, about: &'static str, quantity: Quantity) -> Self {
        Self {
            name,
            about,
            quantity,
            parameter: None,
            place: ThreadPlace::OnCpu,
            keeps_intervals: false,
            clocks: Clocks::Monotonic,
            threads_max: usize::MAX,
        }
    }

    /// The same workload, with intervals.
    pub(super) const fn with_intervals(self) -> Self {
        Self { keeps_intervals: true, ..self }
    }

    /// The same workload with its thread on another CPU than the measured one.
    pub(super) const fn on_other_cpu(self) -> Self {
        Self { place: ThreadPlace::OtherCpu, ..self }
    }

    /// The same workload by other clocks too.
    pub(super) const fn with_clocks(self, clocks: Clocks) -> Self {
        Self { clocks, ..self }
    }

    /// The same workload for one thread of a session.
    pub(super) const fn single_thread(self) -> Self {
        Self { threads_max: 1, ..self }
    }
}

/// Clocks that a workload can be measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// CLOCK_MONOTONIC alone.
    Monotonic,
    /// Those that a timer can run on: it sleeps until a time of the clock.
    Timers,
    /// Those by which a relative sleep is not moved when they are set.
    Relative,
    /// All of them: it reads the clock, and sleeps by CLOCK_MONOTONIC if at all.
    Read,
}

impl Clocks {
    /// Whether a clock is among them.
    pub const fn contains(self, clock: Clock) -> bool {
        match (self, clock) {
            (_, Clock::Monotonic) | (Self::Read, _) => true,
            (Self::Timers, clock) => clock.keeps_its_distance(),
            (Self::Relative, clock) => matches!(clock, Clock::Realtime | Clock::Boottime),
            (Self::Monotonic, _) => false,
        }
    }
}

/// What a measured thread does each cycle.
pub trait Workload: Send + Sync + std::fmt::Debug {
    fn describe(&self) -> &Description;
    /// The same with what followed the colon; `None`: no colon.
    ///
    /// # Errors
    /// It is not what [`Description::parameter`] says.
    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError>;
    /// Gets ready in the thread that will run it: pinned, raised, not yet armed.
    ///
    /// # Errors
    /// Why it cannot run here; the session does not start then.
    fn arm(&self, setting: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError>;
    /// Name and parameter: what [`parse`](super::parse) reads as the same workload again.
    fn spec(&self) -> String {
        self.name().into()
    }
    /// CPUs that the one application may run on whose cycles are read, whatever the measured CPU;
    /// empty where they are not known. `None`: each measured CPU has cycles of its own.
    fn application_cpus(&self) -> Option<Vec<u32>> {
        None
    }
    /// Whether a sample is how late the thread was that the session says, from a moment that it
    /// slept for. Then kernel events explain it; a piece of work or a message has no such moment.
    fn wakes(&self) -> bool {
        self.quantity().is_lateness() && self.place() == ThreadPlace::OnCpu
    }
    /// [`Description::name`].
    fn name(&self) -> &'static str {
        self.describe().name
    }
    /// [`Description::quantity`].
    fn quantity(&self) -> Quantity {
        self.describe().quantity
    }
    /// [`Description::place`].
    fn place(&self) -> ThreadPlace {
        self.describe().place
    }
}

type Arm = fn(&Description, &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError>;

/// A workload without a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    pub(super) description: Description,
    pub(super) arm: Arm,
}

impl Workload for Plain {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        match parameter {
            None => Ok(Arc::new(*self)),
            Some(found) => Err(WorkloadError::parameter(self.name(), found, "no parameter")),
        }
    }

    fn arm(&self, setting: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError> {
        (self.arm)(&self.description, setting)
    }
}

/// Where the thread of a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPlace {
    /// On the measured CPU, with the plan's policy: the thread itself is what is measured.
    OnCpu,
    /// Beside it, as an ordinary thread: it only records what another program, or the kernel,
    /// measures there.
    OtherCpu,
}

/// What a workload is armed for.
#[derive(Clone, Debug)]
pub struct WorkloadSetting {
    pub cpu: u32,
    pub policy: Policy,
    pub priority: u32,
    pub period_ns: u64,
    /// Length of the run, nanoseconds.
    pub duration_ns: u64,
    /// Clock to wait for and to read.
    pub clock: Clock,
    /// Where steps of that clock are counted.
    pub ledger: Arc<Ledger>,
}

impl WorkloadSetting {
    /// The clock, its distance just taken.
    pub(super) fn timekeeper(&self) -> Timekeeper<KernelClock> {
        let is_fixed = self.clock.keeps_its_distance();
        Timekeeper::new(KernelClock::new(self.clock), is_fixed, Arc::clone(&self.ledger))
    }
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
    pub pid: u32,
    /// Policy in force when it was started.
    pub policy: Policy,
    pub priority: u32,
    /// Why the policy is not the requested one.
    pub policy_error: Option<String>,
    /// Whether it runs on the measured CPU alone, as far as is known.
    pub is_pinned: bool,
}

/// What a workload reports at its end, in addition to its samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadEnding {
    /// Cycles that ran but could not be read; they are not counted.
    pub lost: u64,
    /// Messages that were sent, or could not be, and had no answer; they are missed.
    pub unanswered: u64,
    /// Why it could not go on; `None`: it came to its end.
    pub failure: Option<String>,
    /// The account of a loop that never sleeps.
    pub gaps: Option<Gaps>,
    /// Sentences: settings of the kernel that a killed run had left changed, or that could not be
    /// put back.
    pub settings: Vec<String>,
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
    /// What it reports in addition to its samples, after [`Armed::run`].
    fn ending(&self) -> WorkloadEnding {
        WorkloadEnding::default()
    }
}

/// Why a workload is not available.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// No workload of that name.
    #[error("`{name}` is no workload; expected one of {known}")]
    Name {
        name: String,
        /// Names of the existing workloads, joined.
        known: String,
    },
    /// It does not take this parameter.
    #[error("{workload}: `{found}` cannot be used; it takes {expected}")]
    Parameter {
        workload: &'static str,
        /// What was found, shortened.
        found: String,
        expected: String,
    },
    /// It cannot run with these settings, or on this machine.
    #[error("{workload}: {why}")]
    Unfit {
        workload: &'static str,
        /// Why, and what to do about it.
        why: String,
    },
}

impl WorkloadError {
    pub(super) fn parameter(
        workload: &'static str,
        found: &str,
        expected: impl Into<String>,
    ) -> Self {
        let found = found.chars().take(60).collect();
        Self::Parameter { workload, found, expected: expected.into() }
    }

    /// Something that is not possible here.
    pub(super) fn unfit(workload: &'static str, why: impl std::fmt::Display) -> Self {
        Self::Unfit { workload, why: why.to_string() }
    }
}

// What workloads share that wait for a time: sleeps, expiries, a thread that reads the clock.

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
    setting: &WorkloadSetting,
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
