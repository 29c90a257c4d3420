//! What a verdict says and what it rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_stats::{
    dependence::Dispersion,
    samples,
    tail::{ReturnLevel, Tail},
};

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
    /// How far the tail may be followed; `None`: not requested (another class, no budget), or
    /// the report is older.
    #[serde(default)]
    pub tail: Option<Extrapolation>,
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
    /// Groups of late wake-ups, CPU by CPU.
    pub late_clusters: u64,
    /// What the measured wake-ups are worth in independent ones.
    pub n_eff: u64,
    pub worst: Option<WorstLatency>,
    /// Upper bound on the share of late wake-ups at the confidence, worst CPU; `None`: less than a
    /// minute under load, or latencies depend on each other for too long.
    pub late_share_upper: Option<f64>,
    /// Upper bound on the rate of late groups per hour at the confidence, if they come at a steady
    /// rate. It holds whenever one looks (sequential design).
    pub late_rate_upper_per_hour: Option<f64>,
    /// Lower bound, likewise; of groups that come in episodes, with what those are worth.
    #[serde(default)]
    pub late_rate_lower_per_hour: Option<f64>,
    /// Groups of late wake-ups on whatever CPU; `None`: no budget, or the report is older.
    #[serde(default)]
    pub late_groups: Option<LateGroups>,
    /// Time measured under the load, nanoseconds.
    pub exposure_ns: u64,
    /// How much longer the measurement must be, at least; of class 95 an estimate, if it goes on
    /// like this. `None` where more time does not help.
    pub further_ns: Option<u64>,
}

/// Groups of late wake-ups, less than ten on-time periods apart, on whatever CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateGroups {
    /// How many; CPU by CPU where not every late wake-up's moment was kept.
    pub count: u64,
    /// How many there are at least: those of one CPU where the moments were not kept.
    pub at_least: u64,
    /// Late wake-ups in the largest one; `None`: there is none, or the moments were not kept.
    pub largest: Option<u64>,
    /// Late wake-ups in a group, on average.
    pub mean: Option<f64>,
    /// Whether they come at a steady rate under the load; `None`: fewer than two.
    pub dispersion: Option<Dispersion>,
}

impl LateGroups {
    /// p of [`Dispersion`] up to which groups count as episodes.
    const EPISODES: f64 = 0.05;
    /// Fewest groups of which a test would see most episodes.
    pub const TESTED_MIN: u64 = 5;

    /// How they differ from a steady rate, if they do.
    pub fn episodes(&self) -> Option<Dispersion> {
        self.dispersion.filter(|dispersion| dispersion.p <= Self::EPISODES)
    }
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

/// The tail of a run, followed as far as it may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extrapolation {
    /// Time measured, as the verdict counts it.
    pub exposure_ns: u64,
    /// Number of groups of wake-ups used.
    pub clusters: u64,
    /// Above it no group is missing.
    pub complete_ns: u64,
    /// The time in which one late group is allowed, by the requested rate: the verdict's level.
    #[serde(rename = "asked")]
    pub requested: Projection,
    /// An hour of operation.
    pub hour: Projection,
    pub day: Projection,
    /// A year of 365.25 days.
    pub year: Projection,
    /// Under which condition the levels hold.
    #[serde(default)]
    pub condition: String,
}

/// A time of operation, and the level exceeded once in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Projection {
    /// The time of operation.
    pub target_ns: u64,
    /// Level, or the rules that forbid one.
    pub tail: Tail,
}

impl Extrapolation {
    /// Under which condition a level holds: a mechanism with fewer than about three events in the
    /// run can be unseen (5 %), and no fit shows it.
    pub const CONDITION: &str = "if nothing comes less often than three times in such a run";

    /// Sentence for a verdict, and whether the requested level may be over the budget. `counted`
    /// says what holds without a level.
    pub fn sentence(&self, budget_ns: u64, counted: &str) -> (String, bool) {
        match &self.requested.tail {
            Tail::Refused { rules } => {
                let why: Vec<String> = rules
                    .iter()
                    .map(|rule| format!("{} (rule {})", rule.text(), rule.number()))
                    .collect();
                (format!("The tail is not extrapolated, {counted}: {}.", why.join("; ")), false)
            }
            Tail::Level(level) => self.level_sentence(level, budget_ns),
        }
    }

    fn level_sentence(&self, level: &ReturnLevel, budget_ns: u64) -> (String, bool) {
        let is_over = level.high_ns >= budget_ns as f64;
        let over = match (is_over, level.is_exploratory) {
            (_, true) => "of too few groups to count".into(),
            (true, _) => format!("not surely below {}", samples::ns(budget_ns)),
            (false, _) => format!("below {}", samples::ns(budget_ns)),
        };
        let text = format!(
            "The tail, followed to {}, comes to {}, at most {} at 99 % confidence {}: {over} ({} \
             groups over {}).",
            samples::duration(self.requested.target_ns),
            samples::ns(level.level_ns as u64),
            samples::ns(level.high_ns.ceil() as u64),
            Self::CONDITION,
            samples::grouped(level.clusters),
            samples::ns(level.threshold_ns),
        );
        (text, is_over && !level.is_exploratory)
    }

    /// The levels in a line, where there is any: `Once in an hour of operation 42 µs, ...`.
    pub fn levels_text(&self) -> Option<String> {
        let rows = self.rows();
        rows.iter().find(|(_, ahead)| ahead.level().is_some())?;
        let texts: Vec<String> =
            rows.iter().map(|(time, ahead)| format!("{time} {}", ahead.text())).collect();
        let condition = Self::CONDITION;
        Some(format!("Exceeded once in a time of operation, {condition}: {}.", texts.join("; ")))
    }

    /// What is shown: time of operation in words, and level or rules.
    pub fn rows(&self) -> [(&'static str, &Projection); 3] {
        [("hour", &self.hour), ("day", &self.day), ("year", &self.year)]
    }
}

impl Projection {
    /// The level, where there is one.
    pub const fn level(&self) -> Option<&ReturnLevel> {
        match &self.tail {
            Tail::Level(level) => Some(level),
            Tail::Refused { .. } => None,
        }
    }

    /// The level with its upper end, or the rules by number: `48.4 µs, at most 61.2 µs`.
    pub fn text(&self) -> String {
        match &self.tail {
            Tail::Level(level) => {
                let few = if level.is_exploratory { ", exploratory" } else { "" };
                format!(
                    "{}, at most {}{few}",
                    samples::ns(level.level_ns as u64),
                    samples::ns(level.high_ns.ceil() as u64)
                )
            }
            Tail::Refused { rules } => {
                let numbers: Vec<String> =
                    rules.iter().map(|rule| rule.number().to_string()).collect();
                let noun = if numbers.len() == 1 { "rule" } else { "rules" };
                format!("refused by {noun} {}", numbers.join(", "))
            }
        }
    }
}
