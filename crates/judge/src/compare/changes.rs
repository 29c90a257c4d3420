//! One statistic of one group against the first group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{answer::Answer, table::Unit};

/// How a statistic lies to that of the first group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Lower; of `direction` by more than the margin.
    Lower,
    /// Within the margin.
    Same,
    Higher,
    /// Not compared, or not shown.
    #[default]
    Unknown,
}

/// One statistic of one group against the first group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Name, e.g. `p99.9`, `max`, `missed`.
    pub statistic: String,
    /// What its values are.
    pub unit: Unit,
    /// Value of the first group; of several runs their median, or all their counts together.
    pub from: Option<f64>,
    /// Value of this group, likewise.
    pub to: Option<f64>,
    /// This group to the first; null where there is none, or it may not be compared. Of pairs the
    /// median of the ratios of pairs (Hodges-Lehmann), which is not the ratio of the medians.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// P value of no difference, exact sign-flip test; null: nothing was tested.
    pub p: Option<f64>,
    /// The same after Holm with weights, where it is one of those that decide.
    pub p_adjusted: Option<f64>,
    /// P value of a difference within the margin, after Holm; 1 where the ratio is within it.
    #[serde(default)]
    pub p_margin: Option<f64>,
    /// P value of a difference as large as the margin or larger, after Holm.
    #[serde(default)]
    pub p_equivalent: Option<f64>,
    /// What it decides: better and worse are by more than the margin; null: it decides nothing.
    pub answer: Option<Answer>,
    /// Whether it is shown to be lower or higher at all, or the same within the margin.
    #[serde(default)]
    pub differs: Direction,
    /// How the values lie to each other: a description, no decision.
    pub direction: Direction,
    /// Smallest change that so many pairs show to be above the margin four times in five, as a
    /// ratio above 1, for normal differences of pairs; of p99.9 alone.
    pub detectable: Option<f64>,
    /// Values that the two groups have, less the one with fewer.
    pub n: u64,
    /// What they are worth in independent ones; null: not known.
    pub n_eff: Option<u64>,
    /// How ratio and interval came about, or why there is none.
    pub method: String,
}

impl Change {
    /// A change with nothing but its values.
    pub(super) fn of(statistic: &str, unit: Unit, from: Option<f64>, to: Option<f64>) -> Self {
        Self {
            statistic: statistic.into(),
            unit,
            from,
            to,
            ratio: None,
            low: None,
            high: None,
            p: None,
            p_adjusted: None,
            p_margin: None,
            p_equivalent: None,
            answer: None,
            differs: Direction::Unknown,
            direction: Direction::Unknown,
            detectable: None,
            n: 0,
            n_eff: None,
            method: String::new(),
        }
    }

    /// With the ratio of its values, and what that says at a margin.
    pub(super) fn with_ratio(mut self, margin: f64) -> Self {
        let ratio = self.from.zip(self.to).map(|(from, to)| to / from);
        self.ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        self.direction = match (self.ratio, self.from.zip(self.to)) {
            (Some(ratio), _) => direction(ratio, margin),
            (None, Some((from, to))) if from == to => Direction::Same,
            (None, Some((from, to))) if to < from => Direction::Lower,
            (None, Some(_)) => Direction::Higher,
            (None, None) => Direction::Unknown,
        };
        self
    }

    /// Not compared, because of this.
    pub(super) fn because(mut self, why: &str) -> Self {
        self.ratio = None;
        self.direction = Direction::Unknown;
        self.method = why.into();
        self
    }
}

/// How a ratio lies to 1.
pub(super) fn direction(ratio: f64, margin: f64) -> Direction {
    let margin = rtproof_stats::paired::Margin::of_share(margin);
    match ratio.ln() {
        log if log < margin.low => Direction::Lower,
        log if log > margin.high => Direction::Higher,
        _ => Direction::Same,
    }
}
