//! What changes of the machine did to latency, as a record of `tune apply --prove`
//! or `experiment` holds it:
//! slices of time with and without each change, and what was made of them.
//!
//! Ratios are with the change to without it, in parts per million: 800 000 is a fifth less.

use crate::error::Contradiction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const KNOBS_MAX: usize = 1000;
pub const SLICES_MAX: usize = 100_000;

/// What an experiment recorded: its trial, knobs and slices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Effects {
    /// How it was tried.
    pub trial: Trial,
    pub knobs: Vec<KnobResult>,
    /// Slices, in order of time.
    pub slices: Vec<Slice>,
}

/// What one second brought of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectTick {
    /// How it is tried, as known now.
    pub trial: Option<Trial>,
    /// Knobs that are new or have changed: as they are now.
    pub knobs: Vec<KnobResult>,
    pub slices: Vec<Slice>,
}

/// How changes were tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trial {
    /// Seed of the order of slices.
    pub seed: u64,
    /// How knobs share the time.
    pub design: Design,
    /// Pairs of slices planned for each knob.
    pub pairs: u32,
    /// Length of a slice.
    pub slice_ns: u64,
    /// Differences up to this do not matter, parts per million.
    pub margin_ppm: u64,
    /// P values below this count, parts per billion, after Holm.
    pub level_ppb: u64,
    /// Smallest change of p99.9 that is shown to be larger than the margin four times in five, from
    /// the slices before, parts per million; null: none is.
    pub detectable_ppm: Option<u64>,
}

/// How knobs share the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// One knob after the other, each alone.
    Single,
    /// All at once: in each pair some are on in one slice and the others in the other one.
    Mirrored,
    /// All at once first (`screen`), then each that stood out with and without, beside the others
    /// that help.
    Screened,
    /// The boot is the unit: pairs of boots with and without.
    Boots,
}

/// One knob: changes that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Knob")]
pub struct KnobResult {
    /// 0, 1, ...
    pub number: u32,
    /// Name: its checks.
    pub name: String,
    pub changes: Vec<String>,
    /// How it was tried.
    pub how: How,
    pub decision: Decision,
    /// Whether it was left in force.
    pub kept: bool,
    /// Why, in a sentence, with the next step.
    pub why: String,
    /// Numbers; none where there were too few slices.
    pub effects: Vec<Effect>,
}

/// How a knob was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Switched on and off in pairs of slices.
    Toggled,
    /// Before and after, once: drift is not excluded.
    Once,
    /// Not at all.
    NotTried,
}

/// Effect of a knob on latency, as the experiment decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Latency is lower with it, by more than the margin.
    Helps,
    /// Latency is higher with it, by more than the margin.
    Hurts,
    /// No difference larger than the margin.
    NoDifference,
    /// None of these can be said.
    CannotDecide,
    /// It was not tried, or could not be made.
    NotTried,
}

/// What a knob does to one statistic of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Effect {
    pub statistic: Statistic,
    /// Pairs that were compared; 0 of before and after.
    pub pairs: u32,
    /// Median of the slices without it.
    pub off_ns: u64,
    /// Median of the slices with it.
    pub on_ns: u64,
    /// With to without it, parts per million: the median of the ratios of pairs (Hodges-Lehmann),
    /// which is not the ratio of the medians; of before and after, which have no pairs, it is.
    pub ratio_ppm: u64,
    /// Lower end of its interval; null: none.
    pub low_ppm: Option<u64>,
    pub high_ppm: Option<u64>,
    /// P value of no effect, exact sign-flip test, parts per billion; null: nothing was tested.
    pub p_ppb: Option<u64>,
    /// The same after Holm, over all knobs and statistics.
    pub adjusted_ppb: Option<u64>,
}

/// Statistic of a slice, over all measured CPUs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// 99.9 % of the wake-ups that were due, missed ones among them, were no later.
    P999,
    /// The latest wake-up.
    Max,
}

/// One slice of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Slice {
    /// 0, 1, ...
    pub number: u32,
    /// What it is for.
    pub part: Part,
    /// Pair, 0, 1, ...; 0 where there are none.
    pub pair: u32,
    /// Numbers of the knobs that were on.
    pub on: Vec<u32>,
    /// Start, after the origin.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Wake-ups that were due, all CPUs.
    pub scheduled: u64,
    /// p99.9; null: too few wake-ups.
    pub p999_ns: Option<u64>,
    /// Latest wake-up; null: there was none.
    pub max_ns: Option<u64>,
    /// Wake-ups that were due while the thread was still late.
    pub missed: u64,
}

/// What a slice is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Before anything was changed.
    Before,
    /// One of a pair.
    Pair,
    /// One of a pair in which some knobs are on in one slice and the others in the other one.
    Screen,
    /// One of a pair of all that seems to help and nothing.
    Together,
    /// A change that is made once.
    Once,
    /// With what was kept.
    After,
}

impl Effects {
    /// Whether its parts fit together.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        let known = |number: &u32| self.knobs.iter().any(|knob| knob.number == *number);
        for slice in &self.slices {
            if slice.from_ns > slice.to_ns {
                return Err(format!("slice {} from {} ns", slice.number, slice.from_ns).into());
            }
            if slice.on.len() > KNOBS_MAX {
                return Err(format!("slice {} with {} knobs", slice.number, slice.on.len()).into());
            }
            if let Some(number) = slice.on.iter().find(|number| !known(number)) {
                return Err(format!(
                    "slice {} with knob {number}, which is not there",
                    slice.number
                )
                .into());
            }
        }
        Ok(())
    }

    /// The statistic's effect of a knob.
    pub fn of(knob: &KnobResult, statistic: Statistic) -> Option<&Effect> {
        knob.effects.iter().find(|effect| effect.statistic == statistic)
    }
}

impl Statistic {
    /// Both, in the order of reports.
    pub const ALL: [Self; 2] = [Self::P999, Self::Max];

    /// As the field names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }
}

impl Decision {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Hurts => "hurts",
            Self::NoDifference => "no difference",
            Self::CannotDecide => "cannot decide",
            Self::NotTried => "not tried",
        }
    }
}
