//! A measuring session: starts the threads together, collects their slots, ends them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use crate::clock::{Clock, StepWatcher, Steps};
use crate::cycle::SLOT_NS;
use crate::slot::{LateWakeUp, Slot};
use crate::sys::signals;
use crate::thread::{Handle, StartedThread, ThreadOrder, ThreadReport};
use crate::workloads::{Clocks, Workload, WorkloadError};
use crate::{Policy, sys, thread};

/// Time from the moment the last thread is ready to the first wake-up.
const LEAD_NS: u64 = 20_000_000;

/// Longest wait for the threads to get ready.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for a thread after its end was requested, beyond its period.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// From this period on, a thread is not left to sleep until its next wake-up when it is to stop.
const NUDGED_PERIOD_NS: u64 = 100_000_000;

/// Shortest period: below it the kernel's own timer path takes longer than the period everywhere.
pub const PERIOD_MIN_NS: u64 = 5_000;

pub const PERIOD_MAX_NS: u64 = 10_000_000_000;

/// What a session measures: CPUs, priority, period, duration.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// CPUs, one thread each.
    pub cpus: Vec<u32>,
    pub policy: Policy,
    /// Priority, 1 to 99; 0 for [`Policy::Other`].
    pub priority: u32,
    pub period_ns: u64,
    pub duration_ns: u64,
    /// Thread i of n starts at i/n of the period; otherwise all at once.
    pub staggered: bool,
    /// Later than this is late; `None`: nothing is.
    pub budget_ns: Option<u64>,
    /// Later than this is a spike; `None`: nothing is, until [`Session::set_spike_ns`].
    pub spike_ns: Option<u64>,
    /// Length of a slot, [`SLOT_NS`] as a rule and at most.
    pub slot_ns: u64,
    /// Whether each single sample is kept until it is collected.
    pub keeps_samples: bool,
    /// Clock that the workloads wait for and read.
    pub clock: Clock,
    /// What each thread does: one for all CPUs, or one per CPU in their order.
    pub workloads: Vec<Arc<dyn Workload>>,
}

/// Why a session could not start.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No CPU to measure.
    #[error("no CPU to measure; name some with --cpus")]
    NoCpus,
    /// Neither one workload nor one for each CPU.
    #[error("{workloads} workloads for {cpus} CPUs; name one for all of them or one for each")]
    Workloads { cpus: usize, workloads: usize },
    /// More threads than a workload can serve.
    #[error(
        "{workload}: there is only one of what it needs, a timer of the process or a tracer of the \
         kernel; measure one CPU at a time"
    )]
    TooMany { workload: &'static str },
    /// A workload cannot run.
    #[error("CPU {cpu}: {error}")]
    Workload { cpu: u32, error: WorkloadError },
    /// A thread could not be made.
    #[error("cannot start a measuring thread for CPU {cpu}: {error}; check `ulimit -u`")]
    Spawn { cpu: u32, error: std::io::Error },
    /// Sets of the clock cannot be watched: a thread might sleep for as long as it is set back by.
    #[error("cannot watch for steps of {name}: {error}; leave --clock out")]
    Clock {
        /// Name of the clock.
        name: &'static str,
        error: std::io::Error,
    },
    /// A thread could not be put on its CPU.
    #[error(
        "cannot run on CPU {cpu}: {error}; is it online, and does this process's cpuset allow it?"
    )]
    Pin { cpu: u32, error: String },
    /// A thread did not get ready: something outranks it on its CPU and never yields.
    #[error(
        "no word from the measuring thread of CPU {cpu} after {seconds} s: a task of higher \
         real-time priority keeps that CPU for itself; see `rtproof check`"
    )]
    NotReady {
        cpu: u32,
        /// How long was waited.
        seconds: u64,
    },
}

/// The measuring threads of one run.
#[derive(Debug)]
pub struct Session {
    handles: Vec<Handle>,
    started: Vec<StartedThread>,
    origin_ns: u64,
    period_ns: u64,
    /// `None`: the clock cannot be set back.
    watcher: Option<StepWatcher>,
}

impl Session {
    /// Starts a thread on every CPU and releases them together.
    ///
    /// # Errors
    /// When a thread cannot be made, pinned, or does not get to run; none is left behind.
    pub fn start(plan: &SessionPlan) -> Result<Self, SessionError> {
        plan.check()?;
        let origin = Arc::new(AtomicU64::new(0));
        let (ready, readies) = mpsc::channel();
        let mut session = Self {
            handles: Vec::new(),
            started: Vec::new(),
            origin_ns: 0,
            period_ns: plan.period_ns,
            watcher: None,
        };
        for order in plan.orders() {
            let cpu = order.cpu;
            match thread::spawn(order, Arc::clone(&origin), ready.clone()) {
                Ok(handle) => session.handles.push(handle),
                Err(error) => return Err(session.abandon(SessionError::Spawn { cpu, error })),
            }
        }
        drop(ready);
        if let Err(error) = session.await_ready(plan, &readies) {
            return Err(session.abandon(error));
        }
        let tids = session.handles.iter().map(|handle| Arc::clone(&handle.tid)).collect();
        let sleeps_by_it = |w: &Arc<dyn Workload>| w.describe().clocks == Clocks::Timers;
        let watched = plan.workloads.iter().any(sleeps_by_it);
        session.watcher = match watched.then(|| StepWatcher::start(plan.clock, tids)).transpose() {
            Ok(watcher) => watcher.flatten(),
            Err(error) => {
                let name = plan.clock.name();
                return Err(session.abandon(SessionError::Clock { name, error }));
            }
        };
        session.origin_ns = sys::now_ns() + LEAD_NS;
        origin.store(session.origin_ns, Ordering::Release);
        session.handles.iter().for_each(|handle| handle.join.thread().unpark());
        Ok(session)
    }

    fn await_ready(
        &mut self,
        plan: &SessionPlan,
        readies: &mpsc::Receiver<StartedThread>,
    ) -> Result<(), SessionError> {
        while self.started.len() < plan.cpus.len() {
            let Ok(mut started) = readies.recv_timeout(READY_TIMEOUT) else {
                let heard = |cpu: &&u32| self.started.iter().all(|s| s.cpu != **cpu);
                let cpu = plan.cpus.iter().find(heard).copied().unwrap_or(plan.cpus[0]);
                let seconds = READY_TIMEOUT.as_secs();
                return Err(SessionError::NotReady { cpu, seconds });
            };
            if let Some(error) = started.pin_error.clone() {
                return Err(SessionError::Pin { cpu: started.cpu, error });
            }
            if let Some(error) = started.workload_error.take() {
                return Err(SessionError::Workload { cpu: started.cpu, error });
            }
            self.started.push(started);
        }
        self.started.sort_by_key(|started| started.number);
        Ok(())
    }

    /// Ends threads that have not begun.
    fn abandon(self, error: SessionError) -> SessionError {
        self.stop();
        self.wait(END_TIMEOUT);
        error
    }

    /// Waits for the threads to end. Those that do not, because something outranks them on their
    /// CPUs, are made ordinary threads that may run elsewhere, and waited for again. Returns
    /// whether all have ended.
    fn wait(&self, timeout: Duration) -> bool {
        for patience in [timeout, END_TIMEOUT] {
            let start = Instant::now();
            while start.elapsed() < patience {
                if self.is_finished() {
                    return true;
                }
                self.wake_sleepers();
                std::thread::sleep(Duration::from_millis(5));
            }
            for handle in self.handles.iter().filter(|handle| !handle.join.is_finished()) {
                sys::release(handle.tid.load(Ordering::Acquire), handle.cpu);
            }
        }
        false
    }

    /// Wakes threads that sleep for long, so that they see that they are to stop. A thread that
    /// was about to sleep is met by the next one.
    fn wake_sleepers(&self) {
        if self.period_ns < NUDGED_PERIOD_NS && self.watcher.is_none() {
            return;
        }
        for handle in self.handles.iter().filter(|handle| !handle.join.is_finished()) {
            if handle.stop.load(Ordering::Relaxed) {
                signals::interrupt_thread(handle.tid.load(Ordering::Acquire));
            }
        }
    }

    /// What each thread got, by number.
    pub fn started(&self) -> &[StartedThread] {
        &self.started
    }

    /// The same, to keep beyond [`Session::finish`].
    pub fn take_started(&mut self) -> Vec<StartedThread> {
        std::mem::take(&mut self.started)
    }

    /// First wake-up of thread 0, CLOCK_MONOTONIC nanoseconds.
    pub const fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Hands every full slot to `take`, oldest first, and gives it back empty.
    pub fn collect(&mut self, mut take: impl FnMut(u32, &Slot)) {
        for (number, handle) in (0..).zip(&mut self.handles) {
            while let Ok(mut slot) = handle.full.pop() {
                take(number, &slot);
                slot.clear();
                // The ring holds all slots there are.
                let _ = handle.empty.push(slot);
            }
        }
    }

    /// Hands the spikes that came since the last call to `take`, with the number of their thread:
    /// oldest first for each thread. May be called as often as is wanted.
    pub fn spikes(&mut self, mut take: impl FnMut(u32, LateWakeUp)) {
        for (number, handle) in (0..).zip(&mut self.handles) {
            handle.spikes.drain(|spike| take(number, spike));
        }
    }

    /// Steps of its clock that each thread found so far, by number.
    pub fn steps(&self) -> impl Iterator<Item = Steps> {
        self.handles.iter().map(|handle| handle.ledger.read())
    }

    /// Moves the threshold of spikes of all threads; in force from each thread's next second on.
    pub fn set_spike_ns(&self, spike_ns: u64) {
        self.handles.iter().for_each(|handle| handle.spikes.set_threshold_ns(spike_ns));
    }

    /// Whether every thread has ended.
    pub fn is_finished(&self) -> bool {
        self.handles.iter().all(|handle| handle.join.is_finished())
    }

    /// Asks every thread to end with its next wake-up, or before.
    pub fn stop(&self) {
        self.handles.iter().for_each(|handle| handle.stop.store(true, Ordering::Relaxed));
    }

    /// Asks one thread to end with its next wake-up.
    pub fn stop_one(&self, number: u32) {
        if let Some(handle) = self.handles.get(number as usize) {
            handle.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the threads and passes on their remaining slots. Slots in flight go to `take`
    /// first, spikes to `spikes`. Takes as long as a thread needs to run once, and not much more
    /// than a period where a thread is kept from running: of one that does not end there is no
    /// report.
    pub fn finish(
        self,
        mut take: impl FnMut(u32, &Slot),
        mut spikes: impl FnMut(u32, LateWakeUp),
    ) -> Vec<ThreadReport> {
        self.stop();
        self.wait(Duration::from_nanos(self.period_ns) + END_TIMEOUT);
        let mut reports = Vec::new();
        for (number, mut handle) in (0..).zip(self.handles) {
            // A thread catches its own panics; were it lost all the same, there is no report.
            let report = if handle.join.is_finished() { handle.join.join().ok() } else { None };
            while let Ok(slot) = handle.full.pop() {
                take(number, &slot);
            }
            handle.spikes.drain(|spike| spikes(number, spike));
            if let Some(report) = report {
                take(number, &report.last);
                reports.push(report);
            }
        }
        reports
    }
}

impl SessionPlan {
    /// What thread `number` does.
    ///
    /// # Panics
    /// There is no workload at all; [`Session::start`] refuses such a plan.
    pub fn workload_of(&self, number: u32) -> &Arc<dyn Workload> {
        &self.workloads[number as usize % self.workloads.len()]
    }

    /// Whether each thread has a workload and each workload no more threads than it can serve.
    fn check(&self) -> Result<(), SessionError> {
        if self.cpus.is_empty() {
            return Err(SessionError::NoCpus);
        }
        let (cpus, workloads) = (self.cpus.len(), self.workloads.len());
        if workloads != 1 && workloads != cpus {
            return Err(SessionError::Workloads { cpus, workloads });
        }
        for number in 0..u32::try_from(cpus).unwrap_or(u32::MAX) {
            let workload = self.workload_of(number);
            let same = |other: &u32| self.workload_of(*other).name() == workload.name();
            let threads = (0..=number).filter(same).count();
            if threads > workload.describe().threads_max {
                return Err(SessionError::TooMany { workload: workload.name() });
            }
        }
        Ok(())
    }

    fn orders(&self) -> impl Iterator<Item = ThreadOrder> + '_ {
        let n = self.cpus.len() as u64;
        (0..).zip(&self.cpus).map(move |(number, &cpu)| ThreadOrder {
            number,
            cpu,
            policy: self.policy,
            priority: self.priority,
            period_ns: self.period_ns,
            duration_ns: self.duration_ns,
            offset_ns: if self.staggered { u64::from(number) * self.period_ns / n } else { 0 },
            budget_ns: self.budget_ns.unwrap_or(u64::MAX),
            spike_ns: self.spike_ns.unwrap_or(u64::MAX),
            slot_ns: self.slot_ns.clamp(1, SLOT_NS),
            keeps_samples: self.keeps_samples,
            clock: self.clock,
            workload: Arc::clone(self.workload_of(number)),
        })
    }
}
