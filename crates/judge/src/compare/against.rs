//! One group of runs compared with the first group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{answer::Answer, changes::Change, pairs::PairSummary, shift::Shift};

/// What is said of one group of runs against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// Number of the group, from 0; the first one is what it is compared with.
    pub group: usize,
    pub answer: Answer,
    /// The answer with its statistic and reason.
    pub sentence: String,
    /// What else must be known to read it.
    pub reasons: Vec<String>,
    /// Each statistic with the first group to this one.
    pub changes: Vec<Change>,
    /// Cliff's delta: the share of pairs of wake-ups in which this group's is the later one, less
    /// the share in which it is the earlier one. Minus 1 to 1; below 0 is lower.
    pub cliffs_delta: Option<f64>,
    pub shift: Shift,
    /// How the runs were paired; `None`: they are single.
    pub pairs: Option<PairSummary>,
}
