//! A measuring thread from birth to report: pinned, prioritised, locked, warmed, armed, run.

pub use crate::task::{become_ordinary, pin_all};

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
        mpsc::Sender,
    },
    time::Duration,
};

use rtrb::{Consumer, Producer};

use crate::clock::{Clock, Ledger, Steps};
use crate::cycle::{Cycle, Schedule};
use crate::slot::{Inlet, KeptSamples, Outlet, Slot};
use crate::sys::signals;
use crate::task::{lock_code, pin, raise, set_armed, tid};
use crate::workloads::{
    Armed, OwnCost, ThreadPlace, Workload, WorkloadEnding, WorkloadError, WorkloadSetting,
};
use crate::{EndReason, Policy, clock, cycle, slot, sys, workloads};

/// Stack of a measuring thread. Small, because all of it is locked: glibc's default is 8 MiB.
pub const STACK_BYTES: usize = 64 * 1024;

/// Wake-ups before the run that warm caches and timers and are not recorded.
const WARM_UP: u64 = 20;

/// What a thread got of what was requested, before its first wake-up.
#[derive(Debug)]
pub struct StartedThread {
    /// Index among the threads of the session.
    pub number: u32,
    pub tid: u32,
    pub cpu: u32,
    pub policy: Policy,
    pub priority: u32,
    /// Why the policy or the priority is not the requested one.
    pub policy_error: Option<String>,
    /// Why memory is not locked; `None` when it is.
    pub lock_error: Option<String>,
    /// Why the thread cannot run where it was to; it ends at once.
    pub pin_error: Option<String>,
    /// Whether it can run on its CPU alone. A deadline task cannot, unless its CPU is a root
    /// domain of its own: the kernel refuses a narrower affinity.
    pub is_pinned: bool,
    /// What its workload takes of each sample, as calibrated.
    pub own_cost: OwnCost,
    /// Why its workload cannot run; it ends at once.
    pub workload_error: Option<WorkloadError>,
}

/// How a thread ended, with its last slot.
#[derive(Debug)]
pub struct ThreadReport {
    /// Index among the threads of the session.
    pub number: u32,
    pub reason: EndReason,
    /// Wake-ups that were due, from the schedule alone.
    pub scheduled: u64,
    pub last: Box<Slot>,
    /// Minor page faults while armed.
    pub faults_minor: u64,
    /// Major page faults while armed.
    pub faults_major: u64,
    /// CPU time while armed, nanoseconds.
    pub cpu_time_ns: u64,
    /// Involuntary context switches while armed.
    pub preemptions: u64,
    /// What its workload reports in addition to its samples.
    pub ending: WorkloadEnding,
    /// Steps of its clock.
    pub steps: Steps,
}

/// Single samples that a slot has room for, at most: 16 MiB.
const KEPT_MAX: usize = 1 << 20;

/// What a thread is to do.
#[derive(Clone, Debug)]
pub(crate) struct ThreadOrder {
    pub(crate) number: u32,
    pub(crate) cpu: u32,
    pub(crate) policy: Policy,
    pub(crate) priority: u32,
    pub(crate) period_ns: u64,
    pub(crate) duration_ns: u64,
    /// First wake-up after the origin.
    pub(crate) offset_ns: u64,
    pub(crate) budget_ns: u64,
    /// Later than this is a spike, to begin with.
    pub(crate) spike_ns: u64,
    /// Length of a slot.
    pub(crate) slot_ns: u64,
    pub(crate) keeps_samples: bool,
    pub(crate) clock: Clock,
    pub(crate) workload: Arc<dyn Workload>,
}

impl ThreadOrder {
    /// Room for single samples in a slot: twice those that are due, for a collector that is late.
    fn kept_per_slot(&self) -> usize {
        let due = self.slot_ns.div_ceil(self.period_ns.max(1));
        let room = usize::try_from(due).unwrap_or(usize::MAX).saturating_mul(2);
        if self.keeps_samples { room.saturating_add(64).min(KEPT_MAX) } else { 0 }
    }
}

#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) full: Consumer<Box<Slot>>,
    pub(crate) empty: Producer<Box<Slot>>,
    pub(crate) spikes: Inlet,
    pub(crate) ledger: Arc<Ledger>,
    /// Thread id, once the thread lives.
    pub(crate) tid: Arc<AtomicU32>,
    /// CPU it is pinned to.
    pub(crate) cpu: u32,
    pub(crate) join: std::thread::JoinHandle<ThreadReport>,
}

/// Starts a thread. It prepares itself, says so on `ready`, and waits until `origin` is set.
pub(crate) fn spawn(
    order: ThreadOrder,
    origin: Arc<AtomicU64>,
    ready: Sender<StartedThread>,
) -> std::io::Result<Handle> {
    let n = cycle::slots(order.slot_ns);
    let (mut give, empty) = rtrb::RingBuffer::new(n);
    let (full, take) = rtrb::RingBuffer::new(n);
    let kept = order.kept_per_slot();
    let slot = || Box::new(Slot { kept: KeptSamples::new(kept), ..Slot::default() });
    let mut slots: Vec<Box<Slot>> = (0..n).map(|_| slot()).collect();
    let (mut outlet, inlet) = slot::ring(order.spike_ns);
    let ledger = Arc::new(Ledger::default());
    let lock_error = slots
        .iter()
        .flat_map(|slot| slot.memory())
        .chain(outlet.memory())
        .chain([(Arc::as_ptr(&ledger) as usize, size_of::<Ledger>())])
        .find_map(|(address, bytes)| sys::lock(address, bytes).err())
        .map(|error| error.to_string());
    let first = slots.pop().unwrap_or_default();
    for slot in slots {
        // The ring holds one more than go in.
        let _ = give.push(slot);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (tid, cpu) = (Arc::new(AtomicU32::new(0)), order.cpu);
    let life = Life {
        order,
        origin,
        ready,
        stop: Arc::clone(&stop),
        ledger: Arc::clone(&ledger),
        tid: Arc::clone(&tid),
        lock_error,
    };
    let stack_bytes = match life.order.workload.place() {
        ThreadPlace::OnCpu => STACK_BYTES,
        // Not locked, and it starts programs and reads files.
        ThreadPlace::OtherCpu => 4 * STACK_BYTES,
    };
    let join = std::thread::Builder::new()
        .name(format!("rtproof/{}", life.order.cpu))
        .stack_size(stack_bytes)
        .spawn(move || life.run(first, empty, full, outlet))?;
    Ok(Handle { stop, full: take, empty: give, spikes: inlet, ledger, tid, cpu, join })
}

struct Life {
    order: ThreadOrder,
    origin: Arc<AtomicU64>,
    ready: Sender<StartedThread>,
    stop: Arc<AtomicBool>,
    ledger: Arc<Ledger>,
    tid: Arc<AtomicU32>,
    lock_error: Option<String>,
}

impl Life {
    fn run(
        self,
        slot: Box<Slot>,
        empty: Consumer<Box<Slot>>,
        full: Producer<Box<Slot>>,
        spikes: Outlet,
    ) -> ThreadReport {
        sys::block_signals();
        self.tid.store(tid(), Ordering::Release);
        let (started, mut armed) = self.prepare();
        let may_run = started.pin_error.is_none() && armed.is_some();
        let schedule = |origin_ns| Schedule {
            first_ns: origin_ns + self.order.offset_ns,
            period_ns: self.order.period_ns,
            end_ns: origin_ns + if may_run { self.order.duration_ns } else { 0 },
            origin_ns,
            slot_ns: self.order.slot_ns,
            budget_ns: self.order.budget_ns,
        };
        if may_run {
            self.warm_up();
        }
        // The receiver is gone when the session gave up: then the stop flag is set too.
        let _ = self.ready.send(started);
        let origin_ns = self.wait_for_origin();
        let mut cycle = Cycle::new(schedule(origin_ns), slot, empty, full, spikes);
        let before = sys::usage();
        let outcome = armed.as_mut().map(|armed| {
            // If it only records what others measure, it is not on a hot path.
            let is_on_cpu = self.order.workload.place() == ThreadPlace::OnCpu;
            set_armed(is_on_cpu);
            if is_on_cpu {
                // Not before: partners of the thread allow none.
                signals::allow_nudges();
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| armed.run(&mut cycle, &self.stop)));
            set_armed(false);
            outcome
        });
        let after = sys::usage();
        // It ends with the priority that it has: an ordinary thread would wait for the load.
        ThreadReport {
            number: self.order.number,
            reason: match outcome {
                Some(Ok(reason)) => reason,
                Some(Err(_)) => EndReason::Panicked,
                None => EndReason::Complete,
            },
            scheduled: cycle.scheduled(),
            last: cycle.into_last_slot(),
            faults_minor: after.faults_minor - before.faults_minor,
            faults_major: after.faults_major - before.faults_major,
            cpu_time_ns: after.cpu_time_ns - before.cpu_time_ns,
            preemptions: after.preemptions - before.preemptions,
            ending: armed.map(|armed| armed.ending()).unwrap_or_default(),
            steps: self.ledger.read(),
        }
    }

    /// Pins, raises, arms, locks: everything that may be refused is tried, and what was refused is
    /// said.
    fn prepare(&self) -> (StartedThread, Option<Box<dyn Armed>>) {
        let order = &self.order;
        let placed = match order.workload.place() {
            ThreadPlace::OnCpu => {
                take_place(order.cpu, order.policy, order.priority, order.period_ns)
            }
            ThreadPlace::OtherCpu => Placed::default(),
        };
        let setting = WorkloadSetting {
            cpu: order.cpu,
            policy: order.policy,
            priority: order.priority,
            period_ns: order.period_ns,
            duration_ns: order.duration_ns,
            clock: order.clock,
            ledger: Arc::clone(&self.ledger),
        };
        let armed = match placed.pin_error {
            None => workloads::arm(&*order.workload, &setting).map(Some),
            Some(_) => Ok(None),
        };
        let (armed, workload_error) = match armed {
            Ok(armed) => (armed, None),
            Err(error) => (None, Some(error)),
        };
        let lock_error = self.lock_error.clone().or_else(|| {
            let armed =
                armed.as_deref().filter(|_| order.workload.place() == ThreadPlace::OnCpu)?;
            lock_all(armed).err().map(|error| error.to_string())
        });
        let program = armed.as_deref().and_then(Armed::program);
        let (policy, priority) = match &program {
            Some(program) => (program.policy, program.priority),
            None => sys::policy().unwrap_or((Policy::Other, 0)),
        };
        let is_pinned = program.as_ref().map_or(placed.is_pinned, |program| program.is_pinned);
        let refused = program.as_ref().and_then(|program| program.policy_error.clone());
        let started = StartedThread {
            number: order.number,
            tid: program.map_or_else(tid, |program| program.pid),
            cpu: order.cpu,
            policy,
            priority,
            policy_error: placed.policy_error.or(refused),
            lock_error,
            pin_error: placed.pin_error,
            is_pinned,
            own_cost: armed.as_deref().map(Armed::cost).unwrap_or_default(),
            workload_error,
        };
        (started, armed)
    }

    fn warm_up(&self) {
        let period_ns = self.order.period_ns.clamp(100_000, 1_000_000);
        let mut scratch = Slot::default();
        let mut due_ns = sys::now_ns() + period_ns;
        for _ in 0..WARM_UP {
            let due = sys::timespec(due_ns);
            let _ =
                rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &due);
            let now_ns = sys::now_ns();
            scratch.record_wake(due_ns, now_ns);
            due_ns = now_ns + period_ns;
        }
        cycle::rehearse();
    }

    /// Sleeps until the session has chosen the origin; 0 when it gave up.
    fn wait_for_origin(&self) -> u64 {
        loop {
            let origin_ns = self.origin.load(Ordering::Acquire);
            if origin_ns != 0 || self.stop.load(Ordering::Relaxed) {
                return origin_ns;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

/// Where a thread is and with what policy.
#[derive(Debug, Default)]
struct Placed {
    policy_error: Option<String>,
    pin_error: Option<String>,
    is_pinned: bool,
}

/// Puts the calling thread on a CPU with a policy.
fn take_place(cpu: u32, policy: Policy, priority: u32, period_ns: u64) -> Placed {
    if policy == Policy::Deadline {
        return take_place_by_deadline(cpu, period_ns);
    }
    // Raised first: as an ordinary thread it would not get to run on a CPU that a task of low
    // real-time priority keeps for itself.
    let policy_error = raise(policy, priority);
    let pin_error = pin(cpu).err().map(|error| error.to_string());
    Placed { policy_error, is_pinned: pin_error.is_none(), pin_error }
}

/// A deadline task may be pinned only to the whole of a root domain (Documentation/scheduler/
/// sched-deadline.rst, section 5): elsewhere it is left where the kernel puts it. What this thread
/// may run on is no measure of that: it comes from one that was put on the housekeeping CPUs.
fn take_place_by_deadline(cpu: u32, period_ns: u64) -> Placed {
    if let Err(error) = pin(cpu) {
        return Placed { pin_error: Some(error.to_string()), ..Placed::default() };
    }
    let Err(error) = sys::set_deadline(0, period_ns) else {
        return Placed { is_pinned: true, ..Placed::default() };
    };
    if error.kind() == std::io::ErrorKind::PermissionDenied
        && sys::set_affinity(0, sys::EVERY_CPU).is_ok()
        && sys::set_deadline(0, period_ns).is_ok()
    {
        return Placed::default();
    }
    let pin_error = pin(cpu).err().map(|error| error.to_string());
    Placed { policy_error: Some(error.to_string()), is_pinned: pin_error.is_none(), pin_error }
}

/// Locks the stack of the calling thread, its workload and what runs at the end of a second.
fn lock_all(armed: &dyn Armed) -> std::io::Result<()> {
    let (address, bytes) = sys::stack()?;
    sys::lock(address, bytes)?;
    armed.memory().into_iter().try_for_each(|(address, bytes)| sys::lock(address, bytes))?;
    let cold =
        cycle::code().into_iter().chain(clock::timekeeper_code()).chain(rtproof_stats::code());
    armed.code().into_iter().chain(cold).try_for_each(lock_code)
}
