//! The spikes of a run as a record holds them: rows of the table of causes, shares, what the
//! recorder saw and cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Remedy;

/// How kernel events were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecorderSummary {
    /// Why nothing was recorded; `None`: it was.
    pub off: Option<String>,
    /// What it adds to the median latency, measured before the run; `None`: not measured.
    pub cost_p50_ns: Option<i64>,
    /// Pairs of slices, with and without, that the cost was measured in.
    pub cost_pairs: u32,
    /// Events that this kernel lacks, and what cannot be distinguished without them.
    pub missing: Vec<String>,
    /// Events lost, as far as the kernel counted them.
    pub lost_events: u64,
    /// Time without recording, on machines where reading stops it.
    pub blind_ns: u64,
    /// Whether the stack at the timer interrupt was recorded, and from when after the start.
    pub stacks_from_ns: Option<u64>,
}

/// One cause and culprit over the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CauseRow {
    pub cause: String,
    /// In words, e.g. `preempted by a task of higher priority`.
    pub title: String,
    pub culprit: String,
    /// Unit, driver or module.
    pub owner: Option<String>,
    /// Spikes in which it has the largest share.
    pub top: u64,
    pub count: u64,
    pub worst_ns: u64,
    pub sum_ns: u64,
    /// Sum of those that may have been something else.
    pub ambiguous_ns: u64,
    /// The same for each CPU.
    pub cpus: Vec<CauseCpu>,
    /// Checks whose knobs remove it.
    pub checks: Vec<String>,
    pub remedies: Vec<Remedy>,
}

/// One cause on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CauseCpu {
    pub cpu: u32,
    pub count: u64,
    pub worst_ns: u64,
    pub sum_ns: u64,
}

/// Something that the spikes have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Structure {
    /// `period`, `cpus`, `frequency`, `steal`, `phase`, `level`, `temperature`, `interrupts`.
    pub kind: String,
    pub text: String,
    /// Period, where it is one.
    pub period_ns: Option<u64>,
    /// Spikes that follow it, or changes of the level.
    pub count: u64,
    pub of: u64,
    /// Probability of as much by chance.
    pub p: f64,
    /// CPU; null: several, or all.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// When it was, in order of time, 500 at most: what is closer together than a five-hundredth of
    /// the run is one. Empty if there are no moments.
    #[serde(default)]
    pub moments: Vec<StructureMoment>,
}

/// A moment of what spikes or levels have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StructureMoment {
    /// When, nanoseconds after the first wake-up of the run.
    pub at_ns: u64,
    /// In short, e.g. `12 µs → 25 µs`; empty: there is nothing to add.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// A stretch of time with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    pub from_ns: u64,
    pub to_ns: u64,
    /// Index in the explanation's shares.
    pub share: u32,
}

/// What is said of a share of the latency, by whomever: how certain it is says the judge alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShareRow {
    /// Cause, e.g. `preempted`: an id of the list of causes.
    pub cause: String,
    /// Culprit: `multipathd [RR 99]`, `IRQ 24 nvme0q1`, `C6`. Empty if there is none.
    pub culprit: String,
    pub ns: u64,
    /// Other causes that it may as well be, by id.
    #[serde(rename = "or")]
    pub alternatives: Vec<String>,
    /// What was not recorded and could contradict it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "unseen")]
    pub unrecorded: Vec<String>,
    /// What more is known: control group, waker, stack, address.
    pub detail: Vec<String>,
    /// systemd unit, driver or module that it belongs to.
    pub owner: Option<String>,
    /// Checks whose knobs remove it: `rtproof check explain ID`.
    pub checks: Vec<String>,
    pub remedies: Vec<Remedy>,
}
