//! The statistics at a moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Layout, quantile::Q};

/// Statistics of the samples at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Values {
    /// Samples; with weights what they are worth: (sum of weights)² / sum of their squares.
    pub n: f64,
    pub mean_ns: f64,
    /// Standard deviation about the mean, with n - 1; with weights about the weighted mean, without
    /// a correction. Null: fewer than two samples.
    pub sd_ns: Option<f64>,
    /// Skewness g1; null: all are equal, or the sums did not fit.
    pub skewness: Option<f64>,
    /// Excess kurtosis g2, 0 of a normal distribution; null likewise.
    pub kurtosis: Option<f64>,
    /// p5, p50, p95, p99, p99.9, upper edges of cells at most 3.1 % wide; null: too few samples.
    pub percentiles_ns: [Option<u64>; Q::TABLE.len()],
}

/// How far a percentile may lie above the sample, as a share of it.
pub const PERCENTILE_ERROR: f64 = 1.0 / (1 << Layout::COARSE.sub_bits()) as f64;
