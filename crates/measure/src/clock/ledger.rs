//! What a measuring thread leaves of the steps of its clock: counters that the collector reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps of a clock.
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
    /// What came since an earlier reading.
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

    /// Whether there is nothing to tell.
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
