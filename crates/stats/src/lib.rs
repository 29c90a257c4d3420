//! Numbers of latency: what is counted, how it is merged, and what may be said of it.
//!
//! Floor 0: no I/O, no clock, no allocation in anything that a measuring thread calls.
//! All latencies are integer nanoseconds.

mod beta;
pub mod binomial;
pub mod cluster;
pub mod histogram;
pub mod moments;
pub mod quantile;
pub mod top;
mod totals;

pub use histogram::{Histogram, Layout};
pub use moments::Moments;
pub use top::{Sample, TopSamples};
pub use totals::Totals;
