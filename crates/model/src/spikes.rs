//! The spikes of a run: table of causes, worst ones, what the recorder saw and cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Explanation;
use crate::Remedy;

/// The spikes of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spikes {
    /// Wake-ups later than this are spikes.
    pub threshold_ns: u64,
    /// Whether the threshold followed the machine, because nobody gave one.
    pub adaptive: bool,
    pub seen: u64,
    pub explained: u64,
    /// Of the explained: with lost events or missing ones, so that the shares may be wrong.
    pub incomplete: u64,
    /// Not explained: too many at once, or nothing was recorded of them.
    pub unexamined: u64,
    /// Sum of the latencies of the explained spikes.
    pub sum_ns: u64,
    pub certain_ns: u64,
    /// How kernel events were recorded.
    pub recorder: Recorder,
    /// What caused them: the largest sum first.
    pub causes: Vec<CauseRow>,
    /// The worst spikes of each cause, worst first.
    pub worst: Vec<Spike>,
    /// Periods, coincidences: sentences.
    pub structure: Vec<Structure>,
}

/// How kernel events were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recorder {
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

/// One spike of which the window is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spike {
    /// Number among the kept ones: `rtproof explain RUN --spike N`.
    pub number: u32,
    /// When it was due, nanoseconds after the first wake-up of the run.
    pub at_ns: u64,
    pub phase: String,
    /// Why it was late.
    pub explanation: Explanation,
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
    /// CPU that it is of; null: of several, or of all.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// When it was, in order of time, 500 at most: what is closer together than a five-hundredth of
    /// the run is one. Empty where there are no moments to tell.
    #[serde(default)]
    pub moments: Vec<Moment>,
}

/// A moment of what spikes or levels have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// When, nanoseconds after the first wake-up of the run.
    pub at_ns: u64,
    /// In short, e.g. `12 µs → 25 µs`; empty: there is nothing to add.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}
