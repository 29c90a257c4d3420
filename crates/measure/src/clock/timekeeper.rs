//! The distance of a clock from CLOCK_MONOTONIC, and waiting and reading by it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    ledger::Ledger,
    source::{KernelClock, TimeSource},
};

/// Readings that narrow the distance down before the run, and where a step is looked for.
const READINGS: u32 = 64;
const READINGS_OF_A_STEP: u32 = 8;
/// The kernel rounds each clock by itself.
const ROUNDING_NS: i64 = 4;

/// How a wait ended. Times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
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
    /// Whether the distance is fixed: else it says nothing of steps.
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

    /// Waits until the clock shows what it shows `due_ns` of CLOCK_MONOTONIC, if nobody sets it.
    #[inline(always)]
    pub(crate) fn wait(&mut self, due_ns: u64, stop: &AtomicBool) -> Woken {
        loop {
            let has_expired = self.clocks.sleep_until(due_ns.wrapping_add(self.offset_ns));
            let clock_ns = self.clocks.read_ns();
            let monotonic_ns = self.clocks.monotonic_ns();
            let now_ns = clock_ns.wrapping_sub(self.offset_ns);
            if monotonic_ns.wrapping_sub(now_ns) <= self.slack_ns && now_ns >= due_ns {
                return Woken::At(now_ns);
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
    ) -> Option<Woken> {
        let is_stopped = stop.load(Ordering::Relaxed);
        let Some(by_ns) = self.step() else {
            // Early without a step: a nudge, else the kernel's own fault, which counts as early.
            let sleeps_on = now_ns < due_ns && !has_expired && !is_stopped;
            return (!sleeps_on).then_some(Woken::At(now_ns));
        };
        if monotonic_ns < due_ns {
            return is_stopped.then_some(Woken::At(monotonic_ns));
        }
        if by_ns > 0 {
            // Were it a step back and a larger one forward, the thread had been held.
            self.ledger.bound();
            return Some(Woken::At(monotonic_ns));
        }
        if !has_expired {
            return Some(Woken::Held { now_ns: monotonic_ns });
        }
        // By the clock as it was: before the due time, so that the timer had expired before the
        // step.
        let late_ns = now_ns.wrapping_sub(due_ns).cast_signed();
        Some(match u64::try_from(late_ns) {
            Err(_) => Woken::At(monotonic_ns),
            Ok(late_ns) => {
                self.ledger.bound();
                Woken::Bound { now_ns: monotonic_ns, late_ns: late_ns.min(monotonic_ns - due_ns) }
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
        let settle: fn(&mut Self, u64, u64, u64, bool, &AtomicBool) -> Option<Woken> = Self::settle;
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
pub(crate) fn code() -> Vec<usize> {
    Timekeeper::<KernelClock>::code()
}
