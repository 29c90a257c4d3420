//! Numbers of latency: what is counted, how it is merged, what may be said of it.
#![doc = include_str!("../README.md")]

pub mod binomial;
pub mod change;
pub mod coincidence;
pub mod evidence;
pub mod histogram;
pub mod moments;
pub mod moving;
pub mod paired;
pub mod period;
mod period_search;
pub mod quantile;
#[cfg(test)]
mod reference;
pub mod samples;
pub mod screening;

pub use histogram::{Bin, Bins, BinsError, Histogram, Layout, SlotCounts};
pub use moments::{Moments, Totals};
pub use samples::{Sample, TopSamples};

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
