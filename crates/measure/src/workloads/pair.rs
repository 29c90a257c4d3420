//! Two threads that hand over to each other: common part of the hand-off workloads.
//!
//! The measuring thread wakes its partner once a period and waits for its answer. Both have read
//! the clock; the workload decides which thread takes the difference, from where to where.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    thread::futex,
};

use super::workload::{
    Armed, Description, OwnCost, Workload, WorkloadError, WorkloadSetting, sleep_until,
};
use crate::cycle::Cycle;
use crate::task::tid;
use crate::{EndReason, Policy, Quantity, calibrate, sys, task};

/// Stack of a partner; all of it is locked.
const STACK_BYTES: usize = 64 * 1024;

/// Hand-offs before the run, which warm both threads and show how long one takes.
const WARM_UP: u64 = 100;

/// Where the partner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// On the measured CPU: each hand-off is a switch of tasks there.
    Same,
    /// On another CPU, which is woken by an interrupt from the measured one.
    Cpu(u32),
}

/// For [`Description::parameter`] of all of them.
const PARAMETER: &str = "the partner's CPU, as in futex:3, or same; the measured one without";

impl Other {
    pub(super) fn cpu(self, measured: u32) -> u32 {
        if let Self::Cpu(cpu) = self { cpu } else { measured }
    }
}

/// A workload of two threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandOff {
    description: Description,
    pub(super) other: Other,
    start: Start,
}

type Start = fn(&HandOff, &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError>;

impl HandOff {
    /// Both threads on the measured CPU. `start` makes the channel.
    pub(super) const fn new(description: Description, start: Start) -> Self {
        let description = Description { parameter: Some(PARAMETER), ..description };
        Self { description, other: Other::Same, start }
    }

    /// Starts a partner, `below` priorities under the measuring thread.
    pub(super) fn start<C: Channel>(
        &self,
        channel: C,
        below: u32,
        setting: &WorkloadSetting,
    ) -> Result<Box<dyn Armed>, WorkloadError> {
        Ok(Box::new(Pair::start(self.name(), channel, self.other, below, setting)?))
    }

    /// Starts a partner of the same priority, with one way to it and one back.
    fn both_ways<W: PairChannel>(
        &self,
        way: impl Fn() -> io::Result<W>,
        setting: &WorkloadSetting,
    ) -> Result<Box<dyn Armed>, WorkloadError> {
        let ways = way().and_then(|call| Ok(PairChannels { call, answer: way()? }));
        let ways = ways.map_err(|error| WorkloadError::unfit(self.name(), error))?;
        self.start(ways, 0, setting)
    }
}

impl Workload for HandOff {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let other = match parameter {
            None | Some("same") => Other::Same,
            Some(text) => Other::Cpu(text.parse().map_err(|_| {
                WorkloadError::parameter(self.name(), text, "`same` or the number of a CPU")
            })?),
        };
        Ok(Arc::new(Self { other, ..*self }))
    }

    fn spec(&self) -> String {
        match self.other {
            Other::Same => self.name().into(),
            Other::Cpu(cpu) => format!("{}:{cpu}", self.name()),
        }
    }

    fn arm(&self, setting: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError> {
        (self.start)(self, setting)
    }
}

/// One direction: a thread sends, the other waits for it and takes it.
pub(super) trait PairChannel: Send + Sync + 'static {
    /// Wakes the other thread; never waits.
    fn send(&self);
    /// Waits until the other thread has sent.
    fn take(&self);
}

/// A way for each direction.
struct PairChannels<W> {
    call: W,
    answer: W,
}

impl<W: PairChannel> Channel for PairChannels<W> {
    #[inline(always)]
    fn lead(&self, times: &Times) {
        times.begin();
        self.call.send();
        self.answer.take();
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        self.call.take();
        times.end();
        self.answer.send();
    }

    fn release(&self) {
        self.call.send();
    }
}

/// How two threads wake each other.
pub(super) trait Channel: Send + Sync + 'static {
    /// From the measuring thread's hand-off to its own next instruction, instead of to the
    /// partner's.
    const IS_ROUND_TRIP: bool = false;
    /// Called by either thread in itself, before anything else.
    fn enter(&self, _side: PairSide) {}
    /// The measuring thread's turn: wakes the partner and waits until it has answered. The
    /// hand-off begins at the clock reading that is stored into `times.begin_ns`.
    fn lead(&self, times: &Times);
    /// The partner's turn: waits, stores into `times.end_ns` when it was reached, answers.
    fn follow(&self, times: &Times);
    /// Wakes the partner for the last time: its `follow` returns.
    fn release(&self);
}

/// One of the two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairSide {
    Measuring,
    Partner,
}

/// What the threads know of the last hand-off.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// When it began, CLOCK_MONOTONIC.
    pub(super) begin_ns: AtomicU64,
    /// When it had arrived.
    pub(super) end_ns: AtomicU64,
}

impl Times {
    /// Now, as a beginning.
    #[inline(always)]
    pub(super) fn begin(&self) {
        self.begin_ns.store(sys::now_ns(), Ordering::Release);
    }

    /// Now, as an end.
    #[inline(always)]
    pub(super) fn end(&self) {
        self.end_ns.store(sys::now_ns(), Ordering::Release);
    }

    #[inline(always)]
    fn took_ns(&self) -> u64 {
        let end_ns = self.end_ns.load(Ordering::Acquire);
        end_ns.saturating_sub(self.begin_ns.load(Ordering::Acquire))
    }
}

struct Shared<C> {
    channel: C,
    times: Times,
    is_over: AtomicBool,
}

/// A measuring thread's end of a pair.
struct Pair<C: Channel> {
    shared: Arc<Shared<C>>,
    partner: Option<JoinHandle<()>>,
    clock_ps: u64,
    fastest_ns: u64,
}

/// Who the partner is.
struct Partner {
    workload: &'static str,
    cpu: u32,
    policy: Policy,
    priority: u32,
}

impl<C: Channel> Pair<C> {
    fn start(
        workload: &'static str,
        channel: C,
        other: Other,
        below: u32,
        setting: &WorkloadSetting,
    ) -> Result<Self, WorkloadError> {
        if setting.policy == Policy::Deadline {
            let why = "two deadline tasks do not share a period; take fifo, rr or other";
            return Err(WorkloadError::unfit(workload, why));
        }
        let is_real_time = setting.policy.has_priority();
        let partner = Partner {
            workload,
            cpu: other.cpu(setting.cpu),
            policy: setting.policy,
            priority: match setting.priority.saturating_sub(below) {
                0 if is_real_time => 1,
                priority => priority,
            },
        };
        let (times, is_over) = (Times::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { channel, times, is_over });
        let (ready, answer) = mpsc::channel();
        let life = Arc::clone(&shared);
        let join = std::thread::Builder::new()
            .name(format!("rtproof/{}+", setting.cpu))
            .stack_size(STACK_BYTES)
            .spawn(move || partner_main(&life, &partner, &ready))
            .map_err(|error| WorkloadError::unfit(workload, error))?;
        shared.channel.enter(PairSide::Measuring);
        let clock_ps = calibrate::clock_read_ps(crate::clock::Clock::Monotonic);
        let mut pair = Self { shared, partner: Some(join), clock_ps, fastest_ns: 0 };
        // Its end of the channel is gone where it panicked.
        let gone = || WorkloadError::unfit(workload, "the partner did not start");
        answer.recv().unwrap_or_else(|_| Err(gone()))?;
        pair.fastest_ns = (0..WARM_UP).map(|_| pair.once().0).min().unwrap_or(0);
        Ok(pair)
    }

    /// One hand-off: how long it took, when it was over.
    #[inline(always)]
    fn once(&self) -> (u64, u64) {
        once(&self.shared)
    }
}

#[inline(always)]
fn once<C: Channel>(shared: &Shared<C>) -> (u64, u64) {
    shared.channel.lead(&shared.times);
    let done_ns = sys::now_ns();
    if C::IS_ROUND_TRIP {
        let begin_ns = shared.times.begin_ns.load(Ordering::Relaxed);
        return (done_ns.saturating_sub(begin_ns), done_ns);
    }
    (shared.times.took_ns(), done_ns)
}

/// The partner from birth to death.
fn partner_main<C: Channel>(
    shared: &Shared<C>,
    partner: &Partner,
    ready: &mpsc::Sender<Result<(), WorkloadError>>,
) {
    sys::block_signals();
    // The measuring thread reports a refused policy: it requested the same one.
    let _ = task::raise(partner.policy, partner.priority);
    let pinned = task::pin(partner.cpu).map_err(|error| {
        let why = format!("the partner cannot run on CPU {}: {error}", partner.cpu);
        WorkloadError::unfit(partner.workload, why)
    });
    let may_run = pinned.is_ok();
    // As far as it may; the measuring thread reports what is missing.
    let _ = sys::stack().and_then(|(address, bytes)| sys::lock(address, bytes));
    let serve: fn(&Shared<C>) = serve::<C>;
    let _ = task::lock_code(serve as usize);
    shared.channel.enter(PairSide::Partner);
    let _ = ready.send(pinned);
    if may_run {
        task::set_armed(true);
        serve(shared);
        task::set_armed(false);
    }
}

#[inline(never)]
fn serve<C: Channel>(shared: &Shared<C>) {
    while !shared.is_over.load(Ordering::Acquire) {
        shared.channel.follow(&shared.times);
    }
}

impl<C: Channel> Drop for Pair<C> {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.channel.release();
        if let Some(partner) = self.partner.take() {
            // It panicked: it is gone, which is enough.
            let _ = partner.join();
        }
    }
}

impl<C: Channel> Armed for Pair<C> {
    fn cost(&self) -> OwnCost {
        let ns = self.clock_ps.div_ceil(1000);
        let sentence = format!(
            "The fastest of {WARM_UP} before the run took {} ns. Each sample holds one reading of \
             the clock, {ns} ns.",
            self.fastest_ns
        );
        OwnCost { ns, sentence }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop, &self.shared)
    }

    fn code(&self) -> Vec<usize> {
        let run: fn(&mut Cycle, &AtomicBool, &Shared<C>) -> EndReason = run::<C>;
        vec![run as usize]
    }

    fn memory(&self) -> Vec<(usize, usize)> {
        vec![(Arc::as_ptr(&self.shared) as usize, size_of::<Shared<C>>())]
    }
}

#[inline(never)]
fn run<C: Channel>(cycle: &mut Cycle, stop: &AtomicBool, shared: &Shared<C>) -> EndReason {
    cycle.run_pieces(stop, |due_ns| {
        sleep_until(due_ns);
        once(shared)
    })
}

// Hand-off by an eventfd: what wakes event loops and virtual machines.

pub(super) const EVENTFD: HandOff = HandOff::new(
    Description::new(
        "eventfd",
        "Time from one thread writing into an eventfd to the thread that reads it reading the \
     clock, once a period. On one CPU the way of the caller to sleep is part of it. The \
     answer through a second eventfd is not, nor the poll(2) or epoll(7) of an event loop.",
        Quantity::HandOff,
    ),
    |own, setting| own.both_ways(|| Ok(Counter(eventfd(0, EventfdFlags::CLOEXEC)?)), setting),
);

struct Counter(OwnedFd);

impl PairChannel for Counter {
    /// Never waits: the counter is at most 2.
    #[inline(always)]
    fn send(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    #[inline(always)]
    fn take(&self) {
        let mut bytes = [0_u8; 8];
        while rustix::io::read(&self.0, &mut bytes) == Err(Errno::INTR) {}
    }
}

// Hand-off by a futex: what every condition variable and semaphore of the C library ends in.

pub(super) const FUTEX: HandOff = HandOff::new(
    Description::new(
        "futex",
        "Time from one thread storing a word and waking the other with futex(2) to the other \
     thread's first reading of the clock, once a period. On one CPU the way of the caller to sleep \
     is part of it. With two CPUs the interrupt that wakes the other one is, and its way out of \
     idle. The answer back is not part of it.",
        Quantity::HandOff,
    ),
    |own, setting| own.both_ways(|| Ok(AtomicU32::new(0)), setting),
);

/// A word: 1 while the other thread is called.
impl PairChannel for AtomicU32 {
    #[inline(always)]
    fn send(&self) {
        wake(self);
    }

    #[inline(always)]
    fn take(&self) {
        wait(self);
    }
}

/// Calls whoever waits for the word.
#[inline(always)]
pub(super) fn wake(word: &AtomicU32) {
    word.store(1, Ordering::Release);
    // Nobody waiting is no error.
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}

/// Waits for a call, and takes it.
#[inline(always)]
pub(super) fn wait(word: &AtomicU32) {
    while word.swap(0, Ordering::Acquire) == 0 {
        // Called meanwhile, or a spurious wake-up: read again.
        let _ = futex::wait(word, futex::Flags::PRIVATE, 0, None);
    }
}

// Hand-off of a mutex with priority inheritance: how long a thread waits for a lock that is free.

/// How long a holder on another CPU goes on after the measuring thread waits: by then it sleeps.
const SETTLE_NS: u64 = 20_000;

pub(super) const MUTEX_PI: HandOff = HandOff::new(
    Description::new(
        "mutex-pi",
        "Time from a thread of lower priority beginning to release a mutex with priority \
     inheritance, for which the measuring thread waits, to the measuring thread having it, \
     once a period. Uses the futexes of which the C library makes such mutexes \
     (PTHREAD_PRIO_INHERIT), always contended. The holder is one priority below and inherits \
     the higher one; how long it holds the mutex is not part of it, nor is an uncontended \
     lock.",
        Quantity::HandOff,
    ),
    |own, setting| {
        let word = || AtomicU32::new(0);
        let channel = Mutex {
            lock: word(),
            call: word(),
            held: word(),
            is_same: own.other.cpu(setting.cpu) == setting.cpu,
            is_over: AtomicBool::new(false),
        };
        own.start(channel, 1, setting)
    },
);

/// A mutex as the C library lays it out: the owner's id, and whether a thread waits.
struct Mutex {
    lock: AtomicU32,
    /// The partner is to take it.
    call: AtomicU32,
    /// The partner has it.
    held: AtomicU32,
    is_same: bool,
    is_over: AtomicBool,
}

impl Channel for Mutex {
    #[inline(always)]
    fn lead(&self, times: &Times) {
        wake(&self.call);
        wait(&self.held);
        lock(&self.lock);
        times.end();
        unlock(&self.lock);
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        wait(&self.call);
        if self.is_over.load(Ordering::Acquire) {
            return;
        }
        lock(&self.lock);
        wake(&self.held);
        while self.lock.load(Ordering::Acquire) & futex::WAITERS == 0 {
            // On one CPU the measuring thread runs first as a rule: it has the higher priority.
            if self.is_same {
                rustix::thread::sched_yield();
            }
            std::hint::spin_loop();
        }
        if !self.is_same {
            let until_ns = sys::now_ns() + SETTLE_NS;
            while sys::now_ns() < until_ns {
                std::hint::spin_loop();
            }
        }
        times.begin();
        unlock(&self.lock);
    }

    fn release(&self) {
        self.is_over.store(true, Ordering::Release);
        wake(&self.call);
    }
}

#[inline(always)]
fn lock(word: &AtomicU32) {
    let own = tid();
    while word.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_err() {
        // The kernel makes us the owner. An error is that of a word that changed meanwhile.
        if futex::lock_pi(word, futex::Flags::PRIVATE, None).is_ok() {
            return;
        }
    }
}

#[inline(always)]
fn unlock(word: &AtomicU32) {
    if word.compare_exchange(tid(), 0, Ordering::Release, Ordering::Relaxed).is_err() {
        // A thread waits: the kernel hands the mutex over, because we are its owner.
        let _ = futex::unlock_pi(word, futex::Flags::PRIVATE);
    }
}

// Hand-off by a pipe: one byte, as programs that exchange messages do it.

pub(super) const PIPE: HandOff = HandOff::new(
    Description::new(
        "pipe",
        "Time from one thread writing a byte into a pipe to the thread that reads it reading the \
     clock, once a period. On one CPU the way of the caller to sleep is part of it. The \
     answer through a second pipe is not, nor any longer message.",
        Quantity::HandOff,
    ),
    |own, setting| {
        let pipe = || {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            Ok(Pipe { read, write })
        };
        own.both_ways(pipe, setting)
    },
);

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl PairChannel for Pipe {
    /// Never waits: there is at most one byte in a pipe.
    #[inline(always)]
    fn send(&self) {
        let _ = rustix::io::write(&self.write, &[1]);
    }

    /// Both ends are open as long as either thread is there: it can be read.
    #[inline(always)]
    fn take(&self) {
        let mut byte = [0_u8];
        while rustix::io::read(&self.read, &mut byte) == Err(Errno::INTR) {}
    }
}
