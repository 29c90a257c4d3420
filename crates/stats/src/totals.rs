//! Exact totals of wake-ups: of a second, of a thread, of a run. They add up in any order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Moments;

/// Exact sums, of a run or of one second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Latencies of the wake-ups that were measured (wake-up view): n, min, max, power sums.
    pub wake: Moments,
    /// Wake-ups that were due while the thread was still late.
    pub missed: u64,
    /// Sum of the lateness of the missed ones.
    pub missed_sum_ns: u128,
    /// Measured wake-ups later than the budget.
    pub late_sampled: u64,
    /// Missed wake-ups whose lateness was over the budget.
    pub late_missed: u64,
    /// Groups of late wake-ups, separated by at least ten periods without one.
    pub late_clusters: u64,
    /// Wake-ups before their time: a clock or timer fault, counted as 0 ns.
    pub early: u64,
}

impl Totals {
    /// Adds the totals of a later interval or of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.wake.merge(&other.wake);
        self.missed += other.missed;
        self.missed_sum_ns += other.missed_sum_ns;
        self.late_sampled += other.late_sampled;
        self.late_missed += other.late_missed;
        self.late_clusters += other.late_clusters;
        self.early += other.early;
    }

    /// Wake-ups accounted for: sampled and missed.
    pub fn accounted(&self) -> u64 {
        self.wake.count() + self.missed
    }

    /// Late wake-ups, sampled or missed.
    pub fn late(&self) -> u64 {
        self.late_sampled + self.late_missed
    }
}
