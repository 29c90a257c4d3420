//! The spikes of a run: table of causes, worst ones, what the recorder saw and cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_trace::WakeUp;

use crate::Remedy;

/// The spikes of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spikes {
    /// Wake-ups later than this are spikes.
    pub threshold_ns: u64,
    /// Whether the threshold followed the machine, because none was given.
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
    pub recorder: RecorderSummary,
    /// What caused them: the largest sum first.
    pub causes: Vec<CauseRow>,
    /// The worst spikes of each cause, worst first.
    pub worst: Vec<ExplainedSpike>,
    /// Periods and coincidences of the spikes, as sentences.
    pub structure: Vec<Structure>,
}

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

/// One spike of which the window is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedSpike {
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

/// Why a wake-up was late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The wake-up. Times are those of its trace.
    pub wake: WakeUp,
    /// The late task with policy and priority, e.g. `rtproof/1 [FIFO 80]`.
    pub task: String,
    /// When the interrupt began that woke it; `None`: not seen.
    pub irq_ns: Option<u64>,
    /// When it was woken (sched_waking); `None`: not seen.
    pub woken_ns: Option<u64>,
    /// When it was switched to; `None`: not recorded, or it never left the CPU.
    pub switched_ns: Option<u64>,
    /// What each nanosecond from `due_ns` to `ran_ns` went into: in order, without gaps.
    pub spans: Vec<Span>,
    /// The same, summed by cause and culprit: largest first. Sums to the latency exactly.
    pub shares: Vec<Share>,
    /// Why the shares may be wrong: events were lost or were not recorded. Empty: complete.
    pub incomplete: Vec<String>,
    /// Its waker, and the wakers of the waker, nearest first: e.g. `IRQ 24 eth0-rx`.
    pub wakers: Vec<String>,
}

/// A stretch of time with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    pub from_ns: u64,
    pub to_ns: u64,
    /// Index in the explanation's shares.
    pub share: u32,
}

/// Share of one cause and culprit in the latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
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
    /// How certain it is; `None`: an older rtproof wrote it, see [`Share::certainty`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// What more is known: control group, waker, stack, address.
    pub detail: Vec<String>,
    /// systemd unit, driver or module that it belongs to.
    pub owner: Option<String>,
    /// Checks whose knobs remove it: `rtproof check explain ID`.
    pub checks: Vec<String>,
    pub remedies: Vec<Remedy>,
}

/// How certain the cause of a share is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// All events that could contradict it were recorded, and none does.
    Certain,
    /// It fits; what else fits, and what was not recorded, is named with it.
    Likely,
    /// No cause is known.
    Unknown,
}

impl Share {
    /// How certain its cause is.
    pub fn certainty(&self) -> Certainty {
        if self.cause == "unexplained" {
            Certainty::Unknown
        } else if self.alternatives.is_empty() && self.unrecorded.is_empty() {
            Certainty::Certain
        } else {
            Certainty::Likely
        }
    }

    /// Whether it can be nothing else.
    pub fn is_certain(&self) -> bool {
        self.certainty() == Certainty::Certain
    }
}

impl Explanation {
    /// The cause with the largest share.
    pub fn top(&self) -> Option<&Share> {
        self.shares.first()
    }

    /// Nanoseconds that can be nothing else.
    pub fn certain_ns(&self) -> u64 {
        self.shares.iter().filter(|share| share.is_certain()).map(|share| share.ns).sum()
    }

    /// Whether it is mostly one of several causes that a stack at the timer interrupt would tell
    /// apart.
    pub fn wants_stacks(&self) -> bool {
        let several = self.shares.iter().filter(|share| !share.alternatives.is_empty());
        several.map(|share| share.ns).sum::<u64>() > self.wake.latency_ns() / 2
    }
}
