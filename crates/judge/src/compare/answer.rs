//! What a comparison is requested to do and what it answers: the words that single and paired
//! comparisons share.

use rtproof_stats::quantile::Q;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The quantile that decides.
pub(super) const PRIMARY: Q = Q { above: 1, of: 1000 };
/// Exposures that differ by no more than this are equal.
const EXPOSURE_SLACK: f64 = 0.02;

/// What is asked of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Wish")]
pub struct Request {
    /// Differences up to this share do not matter: 0.05.
    pub margin: f64,
    /// Confidence of the intervals: 0.95. P values below the rest of it count.
    pub confidence: f64,
    /// Budget to count late wake-ups against; `None`: that of the runs, where they have one.
    pub budget_ns: Option<u64>,
}

impl Default for Request {
    fn default() -> Self {
        Self { margin: 0.05, confidence: 0.95, budget_ns: None }
    }
}

/// Answer of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Latency is lower than with the first.
    Better,
    /// Latency is higher than with the first, in one statistic at least.
    Worse,
    /// No difference larger than the margin.
    NoDifference,
    /// None of these can be said.
    CannotDecide,
}

impl Answer {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifference => "no difference",
            Self::CannotDecide => "cannot decide",
        }
    }
}

/// Whether two numbers of wake-ups are as good as equal.
pub(super) fn equal_exposure(a: u64, b: u64) -> bool {
    a.abs_diff(b) as f64 <= EXPOSURE_SLACK * a.max(b) as f64
}
