//! What is measured of a tail, and the level that follows from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cluster of late wake-ups: its largest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// When it was due, nanoseconds after the origin of the run.
    pub at_ns: u64,
    pub latency_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured<'a> {
    /// Largest values of clusters, ascending in time, complete above `complete_ns`.
    pub peaks: &'a [Peak],
    /// Lowest threshold allowed: above it no cluster is missing, and not more than one sample in a
    /// hundred lies.
    pub complete_ns: u64,
    pub exposure_ns: u64,
    pub sampling_ns: u64,
    /// The longest period of anything that is known to disturb; `None`: nothing is known, and 15
    /// minutes are taken, for system management interrupts come every 14 minutes on some machines.
    pub longest_period_ns: Option<u64>,
    /// Seed of the samples that stand for chance.
    pub seed: u64,
}

/// A level exceeded once in a time of operation, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// The time of operation.
    pub target_ns: u64,
    pub level_ns: f64,
    /// Lower end of the 99 % profile-likelihood interval; the threshold where it has none above.
    pub low_ns: f64,
    pub high_ns: f64,
    /// Threshold over which was fitted.
    pub threshold_ns: u64,
    pub clusters: u64,
    /// Scale of their excesses.
    pub sigma_ns: f64,
    /// Shape, with its 95 % interval.
    pub xi: f64,
    /// Lower end; `None` where there is none.
    pub xi_low: Option<f64>,
    pub xi_high: f64,
    /// Probability of a fit as bad by chance (Anderson-Darling, parametric bootstrap).
    pub fit_p: f64,
    /// Fewer than a hundred clusters: shown, never part of a verdict.
    pub is_exploratory: bool,
}
