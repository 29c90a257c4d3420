//! Numbers of latency: what is counted, how it is merged, and what may be said of it.
//!
//! Floor 0: no I/O, no clock, no allocation in anything that a measuring thread calls.
//! All latencies are integer nanoseconds.

mod beta;
pub mod binomial;
mod bins;
pub mod change;
pub mod cluster;
pub mod coincidence;
pub mod dispersion;
pub mod extremal;
pub mod extreme;
pub mod histogram;
pub mod holm;
pub mod jitter;
pub mod long_run;
pub mod moments;
pub mod moving;
mod optimum;
pub mod p2;
pub mod paired;
pub mod period;
mod plackett_burman;
pub mod quantile;
pub mod quantity;
pub mod random;
#[cfg(test)]
mod reference;
pub mod screening;
pub mod sequential;
pub mod series;
pub mod shape;
mod slot_counts;
pub mod top;
mod totals;

pub use bins::{Bin, Bins, BinsError};
pub use histogram::{Histogram, Layout};
pub use moments::Moments;
pub use slot_counts::SlotCounts;
pub use top::{Sample, TopSamples};
pub use totals::Totals;

/// Addresses of the code that recording a sample may run besides what is inlined, for locking it
/// into memory.
pub fn code() -> [usize; 4] {
    [
        Moments::push_large as fn(&mut Moments, u64) as usize,
        TopSamples::append as fn(&mut TopSamples, Sample) as usize,
        TopSamples::replace_smallest as fn(&mut TopSamples, Sample) as usize,
        SlotCounts::record_progression as fn(&mut SlotCounts, u64, u64, u64) as usize,
    ]
}
