//! Where a run stands among machines of reference, as data: of a report and of a comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Name of the run.
    pub run: String,
    pub lines: Vec<String>,
    /// Among all machines with a like run.
    pub all: Vec<Rank>,
    /// What the narrower group shares, e.g. `board Raspberry Pi 4`; null: neither board nor CPU is
    /// known.
    pub alike_by: Option<String>,
    /// Among those of the same board, or of the same CPU where the board is not known.
    pub alike: Vec<Rank>,
    /// Files of the folder that were not used, and why.
    pub left_out: Vec<LeftOut>,
}

/// Place of one quantile among machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// `p50`, `p99.9`, `p99.99`.
    pub statistic: String,
    /// Value of the run, nanoseconds.
    pub value_ns: u64,
    /// Other machines that carry this quantile.
    pub machines: u64,
    /// Those with a lower value; null: too few to rank among.
    pub lower: Option<u64>,
    /// Those whose value cannot be distinguished from it; null: too few.
    pub same: Option<u64>,
    /// Those with a higher value; null: too few.
    pub higher: Option<u64>,
    /// Smallest value of theirs, nanoseconds.
    pub least_ns: u64,
    /// The middle one, nanoseconds.
    pub middle_ns: u64,
    pub most_ns: u64,
}

/// A file that was not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    pub file: String,
    pub why: String,
}
