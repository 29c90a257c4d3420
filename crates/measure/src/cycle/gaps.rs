//! The account of a loop that never sleeps.

/// Where the time of a loop that never sleeps went: `busy_ns + gap_ns == run_ns`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// First to last reading of the clock, nanoseconds.
    pub run_ns: u64,
    /// In steps up to the threshold.
    pub busy_ns: u64,
    /// In steps above it.
    pub gap_ns: u64,
    pub gaps: u64,
    pub steps: u64,
    /// The shortest step: the loop's own resolution, nanoseconds.
    pub step_min_ns: u64,
    /// Above this a step is a gap, nanoseconds.
    pub threshold_ns: u64,
}
