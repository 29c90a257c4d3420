//! What a verdict says and what it rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of a verdict: whether the measurement meets the requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictAnswer {
    /// The requirement is met, at its confidence, under the load that was run.
    Accepted,
    /// The requirement is not met.
    Refused,
    /// The measurement does not carry either.
    NotProven,
    /// Nothing was requested that could be judged.
    NotJudged,
}

impl VerdictAnswer {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Accepted => "ACCEPTED",
            Self::Refused => "REFUSED",
            Self::NotProven => "NOT PROVEN",
            Self::NotJudged => "NOT JUDGED",
        }
    }
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub answer: VerdictAnswer,
    /// The verdict in a sentence, to follow the answer.
    pub sentence: String,
    /// What else must be said, a sentence each, the next step first.
    pub reasons: Vec<String>,
    /// What the numbers rest on.
    pub basis: Basis,
}

/// The numbers under a verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Basis {
    /// Wake-ups that were due, all CPUs.
    pub scheduled: u64,
    pub sampled: u64,
    pub missed: u64,
    /// Later than the budget, measured or missed.
    pub late: u64,
    pub worst: Option<WorstLatency>,
    /// Time measured under the load, nanoseconds.
    pub exposure_ns: u64,
    /// How much longer the measurement must be, at least; of class 95 an estimate, if it goes on
    /// like this. `None` where more time does not help.
    pub further_ns: Option<u64>,
    /// Late seconds and the episodes that they make; `None`: no budget, or the record is older.
    #[serde(default)]
    pub late_seconds: Option<LateSeconds>,
    /// How the late share held over the run, of the CPU that is worst off; `None`: no budget, or
    /// nothing was due under load.
    #[serde(default)]
    pub held: Option<HeldShare>,
    /// What budget the run would have proven, the most frequent rate first.
    #[serde(default)]
    pub levels: Vec<Level>,
}

/// Seconds (periods, where these are longer) in which a wake-up was late on any CPU, and the
/// episodes that they make: one takes in all late seconds less than `episode_ns` after its
/// beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateSeconds {
    /// At most: where rows hold minutes, each late wake-up may be a second of its own.
    pub seconds: u64,
    /// Where rows hold minutes, one for each that is late.
    pub seconds_least: u64,
    /// All seconds of the run, late or not.
    pub of: u64,
    /// At most, for the rate that was asked for.
    pub episodes: u64,
    /// Longest that an episode may last: a quarter of the time between two at the rate.
    pub episode_ns: u64,
    /// Lowest rate of episodes that the run shows at the confidence, per hour; `None`: none.
    pub proven_per_hour: Option<f64>,
}

/// How the share of late wake-ups of a CPU held over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldShare {
    pub cpu: u32,
    pub late: u64,
    pub of: u64,
    /// Largest share of late wake-ups in a tenth of the run, of any CPU.
    pub worst_tenth: f64,
    /// Where that tenth begins, nanoseconds after the first wake-up.
    pub worst_tenth_from_ns: u64,
    pub worst_tenth_to_ns: u64,
    /// Blocks that the run was cut into, and the length of one.
    pub blocks: u64,
    pub block_ns: u64,
    /// How much more tenths differ than such blocks explain; above 1.88: stretches of late wake-ups
    /// are too long for this run.
    pub memory_ratio: f64,
    /// Stretches of late wake-ups for which class 95 holds.
    pub holds_for_ns: u64,
}

/// A level of latency that is exceeded less often than a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Late episodes per hour.
    pub per_hour: f64,
    /// The lowest level shown; `None`: the run is too short for the rate.
    pub level_ns: Option<u64>,
    /// Time under load that the rate takes at least, nanoseconds.
    pub takes_ns: u64,
}

/// The largest latency of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorstLatency {
    pub latency_ns: u64,
    pub cpu: u32,
    /// When it was due, nanoseconds after the first wake-up.
    pub due_ns: u64,
    /// In which load phase.
    pub phase: String,
}

/// Whether a record is what its run left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Integrity {
    /// Sealed, or about to be by the run itself.
    #[default]
    Sealed,
    /// Never sealed: the run was cut off.
    Torn,
    /// Changed after it was sealed.
    Altered {
        /// What does not match.
        why: String,
    },
}
