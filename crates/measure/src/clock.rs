//! A clock other than CLOCK_MONOTONIC: how a thread waits for it and reads it.
//!
//! All times of a run stay on CLOCK_MONOTONIC, as kernel events are. The other clock is at a fixed
//! distance from it until it is set (`kernel/time/timekeeping.c`: one count, one rate), so that a
//! changed distance is a step. A step is no latency: it is counted beside the samples.

pub use rtproof_model::run::Clock;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create,
        timerfd_settime,
    },
};

use crate::sys::{self, ClockNumber, clock_ns, signals, sleep};

/// What a measuring thread leaves of the steps of its clock: counters that the collector reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// How often a changed distance to CLOCK_MONOTONIC was found.
    pub steps: u64,
    /// Sum of the steps forward, nanoseconds.
    pub ahead_ns: u64,
    /// Sum of the steps back, nanoseconds.
    pub back_ns: u64,
    /// Cycles that were due while the clock had been set back, and cycles in which a step came,
    /// that are neither sampled nor missed.
    pub unmeasured: u64,
    /// Samples of a cycle in which a step came that may be wrong by as much as the step.
    pub bounds: u64,
}

impl Steps {
    /// Difference to an earlier reading.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            steps: self.steps.wrapping_sub(earlier.steps),
            ahead_ns: self.ahead_ns.wrapping_sub(earlier.ahead_ns),
            back_ns: self.back_ns.wrapping_sub(earlier.back_ns),
            unmeasured: self.unmeasured.wrapping_sub(earlier.unmeasured),
            bounds: self.bounds.wrapping_sub(earlier.bounds),
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The same, written by one thread and read by another without a lock.
#[derive(Debug, Default)]
pub struct Ledger {
    steps: AtomicU64,
    ahead_ns: AtomicU64,
    back_ns: AtomicU64,
    unmeasured: AtomicU64,
    bounds: AtomicU64,
}

impl Ledger {
    /// A step by so many nanoseconds, back where they are negative.
    pub(crate) fn step(&self, by_ns: i64) {
        let sum = if by_ns < 0 { &self.back_ns } else { &self.ahead_ns };
        add(sum, by_ns.unsigned_abs());
        add(&self.steps, 1);
    }

    /// Cycles that are neither sampled nor missed.
    pub(crate) fn unmeasured(&self, cycles: u64) {
        add(&self.unmeasured, cycles);
    }

    /// A sample that is a lower bound.
    pub(crate) fn bound(&self) {
        add(&self.bounds, 1);
    }

    /// All of it so far.
    pub fn read(&self) -> Steps {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Steps {
            steps: of(&self.steps),
            ahead_ns: of(&self.ahead_ns),
            back_ns: of(&self.back_ns),
            unmeasured: of(&self.unmeasured),
            bounds: of(&self.bounds),
        }
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

// A clock beside CLOCK_MONOTONIC as the kernel has it: its number, reading it, sleeping by it.

/// The clock as the kernel names it.
pub(crate) const fn id(clock: Clock) -> ClockNumber {
    match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Raw => libc::CLOCK_MONOTONIC_RAW,
        Clock::Realtime => libc::CLOCK_REALTIME,
        Clock::Boottime => libc::CLOCK_BOOTTIME,
        Clock::Tai => libc::CLOCK_TAI,
    }
}

/// Whether a thread can sleep by a clock here. Takes no time.
pub(crate) fn can_sleep(clock: Clock) -> bool {
    sleep(id(clock), true, &sys::timespec(1))
}

/// A clock beside CLOCK_MONOTONIC. Nanoseconds.
pub(crate) trait TimeSource {
    /// CLOCK_MONOTONIC.
    fn monotonic_ns(&mut self) -> u64;
    fn read_ns(&mut self) -> u64;
    /// Sleeps for a time from now.
    fn sleep_for(&mut self, ns: u64);
    /// Sleeps until a time of the clock. False: a signal ended it.
    fn sleep_until(&mut self, at_ns: u64) -> bool;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelClock(ClockNumber);

impl KernelClock {
    pub(crate) const fn new(clock: Clock) -> Self {
        Self(id(clock))
    }
}

impl TimeSource for KernelClock {
    #[inline(always)]
    fn monotonic_ns(&mut self) -> u64 {
        sys::now_ns()
    }

    #[inline(always)]
    fn read_ns(&mut self) -> u64 {
        clock_ns(self.0)
    }

    #[inline(always)]
    fn sleep_for(&mut self, ns: u64) {
        sleep(self.0, false, &sys::timespec(ns));
    }

    #[inline(always)]
    fn sleep_until(&mut self, at_ns: u64) -> bool {
        sleep(self.0, true, &sys::timespec(at_ns))
    }
}

// The distance of a clock from CLOCK_MONOTONIC, and waiting and reading by it.

/// Readings that narrow the distance down before the run, and when a step is searched.
const READINGS: u32 = 64;

const READINGS_OF_A_STEP: u32 = 8;

/// The kernel rounds each clock by itself.
const ROUNDING_NS: i64 = 4;

/// How a wait ended. Times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// The thread ran then.
    At(u64),
    /// The clock was set back meanwhile. The thread ran at `now_ns`, and was late by `late_ns` at
    /// least: what is beyond that is the step, or the step came after the timer had expired.
    Bound { now_ns: u64, late_ns: u64 },
    /// The clock was set back, and the timer had not expired when the thread was roused.
    Held { now_ns: u64 },
}

/// A clock and its distance.
#[derive(Debug)]
pub(crate) struct Timekeeper<C> {
    clocks: C,
    /// The clock less CLOCK_MONOTONIC, wrapping.
    offset_ns: u64,
    /// Two readings, one of each clock, are at most so far apart where nothing comes between.
    slack_ns: u64,
    /// Whether the distance is fixed: else it does not show steps.
    is_fixed: bool,
    ledger: Arc<Ledger>,
}

impl<C: TimeSource> Timekeeper<C> {
    /// Takes the distance. `is_fixed`: the clock keeps it as long as it is not set.
    pub(crate) fn new(mut clocks: C, is_fixed: bool, ledger: Arc<Ledger>) -> Self {
        let mut shortest_ns = u64::MAX;
        for _ in 0..READINGS {
            let (_, from_ns, to_ns) = read(&mut clocks);
            shortest_ns = shortest_ns.min(to_ns.saturating_sub(from_ns));
        }
        let slack_ns = shortest_ns.saturating_mul(4).saturating_add(200);
        let mut timekeeper = Self { clocks, offset_ns: 0, slack_ns, is_fixed, ledger };
        let (low_ns, high_ns) = timekeeper.locate(READINGS);
        timekeeper.offset_ns = middle(low_ns, high_ns);
        timekeeper
    }

    /// Waits until the clock shows what it shows `due_ns` of CLOCK_MONOTONIC, if it is not set.
    #[inline(always)]
    pub(crate) fn wait(&mut self, due_ns: u64, stop: &AtomicBool) -> WaitEnd {
        loop {
            let has_expired = self.clocks.sleep_until(due_ns.wrapping_add(self.offset_ns));
            let clock_ns = self.clocks.read_ns();
            let monotonic_ns = self.clocks.monotonic_ns();
            let now_ns = clock_ns.wrapping_sub(self.offset_ns);
            if monotonic_ns.wrapping_sub(now_ns) <= self.slack_ns && now_ns >= due_ns {
                return WaitEnd::At(now_ns);
            }
            let woken = self.settle(due_ns, now_ns, monotonic_ns, has_expired, stop);
            if let Some(woken) = woken {
                return woken;
            }
        }
    }

    /// What an unusual end of a wait was; `None`: the thread is to sleep on.
    #[cold]
    #[inline(never)]
    fn settle(
        &mut self,
        due_ns: u64,
        now_ns: u64,
        monotonic_ns: u64,
        has_expired: bool,
        stop: &AtomicBool,
    ) -> Option<WaitEnd> {
        let is_stopped = stop.load(Ordering::Relaxed);
        let Some(by_ns) = self.step() else {
            // Early without a step: a nudge, else the kernel's own fault, which counts as early.
            let sleeps_on = now_ns < due_ns && !has_expired && !is_stopped;
            return (!sleeps_on).then_some(WaitEnd::At(now_ns));
        };
        if monotonic_ns < due_ns {
            return is_stopped.then_some(WaitEnd::At(monotonic_ns));
        }
        if by_ns > 0 {
            // With a step back and a larger one forward, the thread would have been held.
            self.ledger.bound();
            return Some(WaitEnd::At(monotonic_ns));
        }
        if !has_expired {
            return Some(WaitEnd::Held { now_ns: monotonic_ns });
        }
        // By the clock as it was: before the due time, so that the timer had expired before the
        // step.
        let late_ns = now_ns.wrapping_sub(due_ns).cast_signed();
        Some(match u64::try_from(late_ns) {
            Err(_) => WaitEnd::At(monotonic_ns),
            Ok(late_ns) => {
                self.ledger.bound();
                WaitEnd::Bound { now_ns: monotonic_ns, late_ns: late_ns.min(monotonic_ns - due_ns) }
            }
        })
    }

    /// Sleeps for a time of the clock from now.
    #[inline(always)]
    pub(crate) fn sleep_for(&mut self, ns: u64) {
        self.clocks.sleep_for(ns);
    }

    /// Now by the clock, as a time of CLOCK_MONOTONIC.
    #[inline(always)]
    pub(crate) fn now_ns(&mut self) -> u64 {
        let now_ns = self.clocks.read_ns().wrapping_sub(self.offset_ns);
        let monotonic_ns = self.clocks.monotonic_ns();
        if monotonic_ns.wrapping_sub(now_ns) <= self.slack_ns {
            return now_ns;
        }
        self.settled(now_ns, monotonic_ns)
    }

    /// Times a piece of work: how long it took by the clock, and when it was done, as a time of
    /// CLOCK_MONOTONIC.
    #[inline(always)]
    pub(crate) fn time(&mut self, work: impl FnOnce()) -> (u64, u64) {
        let begun_ns = self.clocks.monotonic_ns();
        let clock_ns = self.clocks.read_ns();
        if !self.is_fixed {
            work();
            let took_ns = self.clocks.read_ns().saturating_sub(clock_ns);
            return (took_ns, begun_ns + took_ns);
        }
        let mut from_ns = clock_ns.wrapping_sub(self.offset_ns);
        if from_ns.wrapping_sub(begun_ns) > self.slack_ns && self.step().is_some() {
            from_ns = self.clocks.monotonic_ns();
        }
        work();
        let done_ns = self.now_ns();
        (done_ns.saturating_sub(from_ns), done_ns)
    }

    #[cold]
    #[inline(never)]
    fn settled(&mut self, now_ns: u64, monotonic_ns: u64) -> u64 {
        match self.step() {
            Some(_) => monotonic_ns,
            None => now_ns,
        }
    }

    /// By how much the clock was set since the distance was last taken, which it is anew.
    #[cold]
    #[inline(never)]
    fn step(&mut self) -> Option<i64> {
        if !self.is_fixed {
            return None;
        }
        let (low_ns, high_ns) = self.locate(READINGS_OF_A_STEP);
        let from = |edge_ns: u64| edge_ns.wrapping_sub(self.offset_ns).cast_signed();
        if from(low_ns) <= ROUNDING_NS && from(high_ns) >= -ROUNDING_NS {
            return None;
        }
        let offset_ns = middle(low_ns, high_ns);
        let by_ns = from(offset_ns);
        self.offset_ns = offset_ns;
        self.ledger.step(by_ns);
        Some(by_ns)
    }

    /// Edges of the distance: each reading of the clock lies between two of CLOCK_MONOTONIC.
    #[inline(never)]
    fn locate(&mut self, readings: u32) -> (u64, u64) {
        let edges = |(clock_ns, from_ns, to_ns): (u64, u64, u64)| {
            (clock_ns.wrapping_sub(to_ns), clock_ns.wrapping_sub(from_ns))
        };
        let (mut low_ns, mut high_ns) = edges(read(&mut self.clocks));
        for _ in 1..readings {
            let (low, high) = edges(read(&mut self.clocks));
            let is_apart = high.wrapping_sub(low_ns).cast_signed() < -ROUNDING_NS
                || high_ns.wrapping_sub(low).cast_signed() < -ROUNDING_NS;
            if is_apart {
                // Set between two readings, or never at a fixed distance: the later counts.
                (low_ns, high_ns) = (low, high);
                continue;
            }
            if low.wrapping_sub(low_ns).cast_signed() > 0 {
                low_ns = low;
            }
            if high.wrapping_sub(high_ns).cast_signed() < 0 {
                high_ns = high;
            }
        }
        (low_ns, high_ns)
    }

    /// Addresses of what runs when a reading is unusual.
    pub(crate) fn code() -> Vec<usize> {
        let settle: fn(&mut Self, u64, u64, u64, bool, &AtomicBool) -> Option<WaitEnd> =
            Self::settle;
        let settled: fn(&mut Self, u64, u64) -> u64 = Self::settled;
        let step: fn(&mut Self) -> Option<i64> = Self::step;
        let locate: fn(&mut Self, u32) -> (u64, u64) = Self::locate;
        vec![settle as usize, settled as usize, step as usize, locate as usize]
    }

    /// Where the law counts cycles that the clock left unmeasured.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// The clock, between two readings of CLOCK_MONOTONIC.
fn read(clocks: &mut impl TimeSource) -> (u64, u64, u64) {
    let from_ns = clocks.monotonic_ns();
    let clock_ns = clocks.read_ns();
    (clock_ns, from_ns, clocks.monotonic_ns())
}

fn middle(low_ns: u64, high_ns: u64) -> u64 {
    let width = high_ns.wrapping_sub(low_ns).cast_signed();
    low_ns.wrapping_add_signed(width / 2)
}

/// Addresses of what runs when the clock was set, to be locked into memory.
pub(crate) fn timekeeper_code() -> Vec<usize> {
    Timekeeper::<KernelClock>::code()
}

// Rouses threads that sleep by a clock that was set back, off the measured CPUs.
//
// A thread that sleeps until a time of CLOCK_REALTIME sleeps on for as long as that clock was set
// back by: an hour, or for ever. The kernel cancels a timerfd at each set, so that this thread
// knows of it at once; each measuring thread is roused, looks at its clock and sleeps on by it.

/// Interval between checks of the distance without an event: the TAI offset changes without a set.
const POLL_INTERVAL_NS: u64 = 1_000_000_000;

/// A distance that differs by this much was changed. Below it the sleep is too short to matter.
const CHANGED_NS: u64 = 1_000_000;

/// After these a thread is roused again: it may just have been about to sleep.
const AGAIN: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(50)];

/// The thread that watches.
#[derive(Debug)]
pub(crate) struct StepWatcher {
    end: Arc<OwnedFd>,
    join: Option<JoinHandle<()>>,
}

impl StepWatcher {
    /// Watches a clock for threads, by thread id; `None` where it cannot be set back.
    ///
    /// # Errors
    /// No descriptor or no thread is available.
    pub(crate) fn start(clock: Clock, tids: Vec<Arc<AtomicU32>>) -> io::Result<Option<Self>> {
        if !matches!(clock, Clock::Realtime | Clock::Tai) {
            return Ok(None);
        }
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let watched = Arc::clone(&end);
        let name = std::thread::Builder::new().name("rtproof/clock".into());
        let join = name.spawn(move || {
            sys::block_signals();
            watch(clock, &timer, watched.as_fd(), &tids);
        })?;
        Ok(Some(Self { end, join: Some(join) }))
    }
}

impl Drop for StepWatcher {
    fn drop(&mut self) {
        let is_notified = rustix::io::write(&*self.end, &1_u64.to_ne_bytes()).is_ok();
        if let Some(join) = self.join.take().filter(|_| is_notified) {
            // It panicked: it is gone, which is enough.
            let _ = join.join();
        }
    }
}

fn watch(clock: Clock, timer: &OwnedFd, end: BorrowedFd<'_>, tids: &[Arc<AtomicU32>]) {
    let distance = || clock_ns(id(clock)).wrapping_sub(sys::now_ns());
    let mut last = distance();
    loop {
        let mut was_set = arm(timer) == Err(Errno::CANCELED);
        if !was_set {
            let mut both =
                [PollFd::new(timer, PollFlags::IN), PollFd::from_borrowed_fd(end, PollFlags::IN)];
            // Signals are blocked here; were one to come all the same, it looks once more.
            let _ = poll(&mut both, None);
            if both[1].revents().contains(PollFlags::IN) {
                return;
            }
            was_set = rustix::io::read(timer, &mut [0_u8; 8]) == Err(Errno::CANCELED);
        }
        let now = distance();
        let moved_ns = now.wrapping_sub(last).cast_signed().unsigned_abs();
        last = now;
        if was_set || moved_ns > CHANGED_NS {
            wake_threads(tids);
            for pause in AGAIN {
                std::thread::sleep(pause);
                wake_threads(tids);
            }
        }
    }
}

fn wake_threads(tids: &[Arc<AtomicU32>]) {
    let tids = tids.iter().map(|tid| tid.load(Ordering::Acquire)).filter(|&tid| tid != 0);
    tids.for_each(signals::interrupt_thread);
}

/// Expires after a while, or when CLOCK_REALTIME is set.
fn arm(timer: &OwnedFd) -> Result<(), Errno> {
    let at_ns = clock_ns(id(Clock::Realtime)).saturating_add(POLL_INTERVAL_NS);
    let spec = Itimerspec { it_interval: sys::timespec(0), it_value: sys::timespec(at_ns) };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(timer, flags, &spec).map(|_| ())
}
