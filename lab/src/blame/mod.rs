//! Was the blame right: spikes of a record beside what was planted.
//!
//! The plants write down when they really acted ([`Stretches::of_truth`]), the record says when
//! each wake-up was due and how late it was ([`spikes`]): the two meet on CLOCK_MONOTONIC and in
//! nothing else. A spike counts as planted when the plant acted during most of its latency
//! ([`Expected::judge`]); the cause that rtproof gives most of the latency to must be the planted
//! one then, and its culprit the planted one ([`Matrix`] counts them).

mod matching;
mod matrix;
mod report;
mod spikes;
mod stretches;

pub use matching::{Expected, Judged};
pub use matrix::Matrix;
pub use report::{Kept, Sums, shown, sums};
pub use spikes::{Spike, spikes};
pub use stretches::{Counted, Stretches};
