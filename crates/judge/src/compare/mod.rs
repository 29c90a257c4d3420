//! Runs side by side: what differs, by how much, and whether that decides anything.
//!
//! Samples of a run depend on each other and machines drift, so two single runs never decide: they
//! are shown, and said to be single. What decides is runs of each condition that alternate, paired
//! by time (`rtproof_stats::paired`). Maxima are compared at equal exposure alone, because the
//! longer run has the larger one by being longer.

mod mismatch;
mod over_time;
mod paired;
mod reference;
mod sentence;
mod side;
mod table;
#[cfg(test)]
mod tests;

pub use mismatch::{CauseCell, CauseLine, FactLine, Mismatch};
pub use over_time::{CpuOverTime, OverTime, Ranges};
pub use side::{
    Group, GroupSummary, QuantileValue, RunMachine, RunSummary, Side, SideRow, SideThread,
    ThreadSummary, View,
};
pub use table::{
    PairSummary, RunLevels, Shift, ShiftPoint, StatisticCell, StatisticLine, ValueUnit,
};

pub use crate::weakness::{QuantileRank, Reference, UnusedFile};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_stats::{Bins, quantile::Q};

use crate::quantity;

/// Version of the JSON form. Fields may be added under one version; none changes or goes.
pub const SCHEMA: &str = "rtproof/compare/3";

/// How the runs lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareDesign {
    /// One run of each: drift is not excluded, and nothing is decided.
    Single,
    /// Several runs of each, paired by time.
    Paired,
}

/// Runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    pub schema: String,
    #[serde(rename = "wish")]
    pub request: CompareRequest,
    /// How the runs lie to each other.
    pub design: CompareDesign,
    pub view: View,
    /// The answer over all groups: the worst one, then what cannot be decided.
    #[serde(rename = "result")]
    pub answer: CompareAnswer,
    /// The answer in a sentence.
    pub sentence: String,
    /// Why the runs are not alike enough to be compared; empty: they are. What is said of them all
    /// the same was forced.
    pub mismatches: Vec<Mismatch>,
    /// What is doubtful about the runs.
    pub doubts: Vec<String>,
    /// The groups of runs, in the order given.
    pub groups: Vec<GroupSummary>,
    /// Statistics of all groups.
    pub table: Vec<StatisticLine>,
    /// Each group but the first against the first.
    pub against: Vec<Against>,
    pub facts: Vec<FactLine>,
    /// Why wake-ups were late.
    pub causes: Vec<CauseLine>,
    /// Where the level of each run changes over time.
    #[serde(default)]
    pub levels: Vec<RunLevels>,
    /// Where the first run of each group stands among machines of reference; empty: none were
    /// given.
    #[serde(default)]
    pub reference: Vec<Reference>,
}

/// Compares single runs with the first of them.
pub fn compare(sides: &[Side], request: &CompareRequest) -> Comparison {
    let groups: Vec<Group> = sides.iter().cloned().map(Group::single).collect();
    compare_groups(&groups, request)
}

/// Compares groups of runs with the first group: single runs where no group has several.
pub fn compare_groups(groups: &[Group], request: &CompareRequest) -> Comparison {
    let view = if groups.iter().flat_map(|group| &group.sides).all(Side::knows_missed) {
        View::Deadline
    } else {
        View::Wake
    };
    let budget_ns = request.budget_ns.or_else(|| mismatch::budget(groups));
    let design = if groups.iter().all(|group| group.sides.len() < 2) {
        CompareDesign::Single
    } else {
        CompareDesign::Paired
    };
    let observations: Vec<table::GroupObservation<'_>> =
        groups.iter().map(|group| table::GroupObservation::of(group, view, budget_ns)).collect();
    let mismatches = mismatch::mismatches(groups);
    let against = match observations.split_first() {
        None => Vec::new(),
        Some((first, others)) => match design {
            CompareDesign::Single => paired::against_single(first, others, request),
            CompareDesign::Paired => paired::against_paired(first, others, request),
        },
    };
    let (answer, sentence) = sentence::of_all(groups, &against);
    Comparison {
        schema: SCHEMA.into(),
        request: request.clone(),
        design,
        view,
        answer,
        sentence,
        doubts: mismatch::doubts(groups, view),
        mismatches,
        groups: groups.iter().map(|group| GroupSummary::of(group, view)).collect(),
        table: table::statistic_lines(&observations),
        against,
        facts: mismatch::fact_lines(groups),
        causes: mismatch::cause_lines(groups),
        levels: table::run_levels(groups),
        reference: Vec::new(),
    }
}

/// Result for one group of runs against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// Number of the group, from 0; the first one is what it is compared with.
    pub group: usize,
    pub answer: CompareAnswer,
    /// The answer with its statistic and reason.
    pub sentence: String,
    /// What else must be known to read it.
    pub reasons: Vec<String>,
    /// Each statistic with the first group to this one.
    pub changes: Vec<StatisticChange>,
    /// Cliff's delta: the share of pairs of wake-ups in which this group's is the later one, less
    /// the share in which it is the earlier one. Minus 1 to 1; below 0 is lower.
    pub cliffs_delta: Option<f64>,
    pub shift: Shift,
    /// How the runs were paired; `None`: they are single.
    pub pairs: Option<PairSummary>,
    /// Share of pairs that may deviate by three margins or more though none did, at the confidence;
    /// only of "no difference".
    #[serde(default)]
    pub may_deviate: Option<f64>,
}

// What a comparison is requested to do and what it answers: the words that single and paired
// comparisons share.

/// The quantile that decides.
const PRIMARY: Q = Q { above: 1, of: 1000 };

/// A pair that is off by so many margins is not like the typical one.
const FAR: f64 = 3.0;

/// Exposures that differ by no more than this are equal.
const EXPOSURE_SLACK: f64 = 0.02;

/// What is asked of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Wish")]
pub struct CompareRequest {
    /// Differences up to this share do not matter: 0.05.
    pub margin: f64,
    /// Confidence of the intervals: 0.95. P values below the rest of it count.
    pub confidence: f64,
    /// Budget to count late wake-ups against; `None`: that of the runs, where they have one.
    pub budget_ns: Option<u64>,
}

impl Default for CompareRequest {
    fn default() -> Self {
        Self { margin: 0.05, confidence: 0.95, budget_ns: None }
    }
}

/// Answer of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareAnswer {
    /// Latency is lower than with the first.
    Better,
    /// Latency is higher than with the first, in one statistic at least.
    Worse,
    /// No difference larger than the margin.
    NoDifference,
    /// None of these can be said.
    CannotDecide,
}

impl CompareAnswer {
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
fn equal_exposure(a: u64, b: u64) -> bool {
    a.abs_diff(b) as f64 <= EXPOSURE_SLACK * a.max(b) as f64
}

/// Relation of a statistic to that of the first group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Lower; of `direction` by more than the margin.
    Lower,
    Same,
    Higher,
    /// Not compared, or not shown.
    #[default]
    Unknown,
}

/// One statistic of one group against the first group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatisticChange {
    /// Name, e.g. `p99.9`, `max`, `missed`.
    pub statistic: String,
    /// What its values are.
    pub unit: ValueUnit,
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
    pub answer: Option<CompareAnswer>,
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
    /// How ratio and interval came about, or why there is none.
    pub method: String,
}

impl StatisticChange {
    /// A change with nothing but its values.
    fn of(statistic: &str, unit: ValueUnit, from: Option<f64>, to: Option<f64>) -> Self {
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
            method: String::new(),
        }
    }

    /// With the ratio of its values, and what that says at a margin.
    fn with_ratio(mut self, margin: f64) -> Self {
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
    fn not_compared(mut self, why: &str) -> Self {
        self.ratio = None;
        self.direction = Direction::Unknown;
        self.method = why.into();
        self
    }
}

/// Relation of a ratio to 1.
fn direction(ratio: f64, margin: f64) -> Direction {
    let margin = rtproof_stats::paired::Margin::of_share(margin);
    match ratio.ln() {
        log if log < margin.low => Direction::Lower,
        log if log > margin.high => Direction::Higher,
        _ => Direction::Same,
    }
}

// Cliff's delta: of all pairs of one value of each, how many more are higher than are lower.

/// P(b > a) - P(b < a), from cells; values of cells that overlap are ordered by their middles,
/// and are ties where these agree. `None` where one has no values.
fn cliffs_delta(a: &Bins, b: &Bins) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let middle = |bin: &rtproof_stats::Bin| u128::from(bin.low_ns) + u128::from(bin.high_ns);
    let mut from = a.iter().peekable();
    // Of a: below the cell of b, and in the same place.
    let (mut below, mut sum) = (0_u64, 0_i128);
    for cell in b.iter() {
        let at = middle(cell);
        while let Some(bin) = from.next_if(|bin| middle(bin) < at) {
            below += bin.n;
        }
        let same = from.peek().filter(|bin| middle(bin) == at).map_or(0, |bin| bin.n);
        let above = a.total() - below - same;
        sum += i128::from(cell.n) * (i128::from(below) - i128::from(above));
    }
    Some(sum as f64 / a.total() as f64 / b.total() as f64)
}

// Numbers and lists of the sentences.

/// A value with its unit.
fn value_text(value: f64, unit: ValueUnit) -> String {
    match unit {
        ValueUnit::Ns => quantity::ns(value.max(0.0).round() as u64),
        ValueUnit::Share => quantity::probability(value),
        ValueUnit::Number => format!("{value:.2}"),
    }
}

/// From one value to another, the unit once where it is the same: `55 → 57 µs`.
fn arrow(from: f64, to: f64, unit: ValueUnit) -> String {
    let (from, to) = (value_text(from, unit), value_text(to, unit));
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, one)), Some((_, other))) if one == other => format!("{number} → {to}"),
        _ => format!("{from} → {to}"),
    }
}

/// A ratio as a change: 0.8 is `−20 %`.
fn signed(ratio: f64) -> String {
    let change = 100.0 * (ratio - 1.0);
    if change > 1000.0 {
        return format!("{ratio:.0} times");
    }
    let text = if change.abs() < 9.95 {
        format!("{:.1}", change.abs())
    } else {
        format!("{:.0}", change.abs())
    };
    match text.as_str() {
        "0.0" => "0 %".into(),
        _ if change < 0.0 => format!("−{text} %"),
        _ => format!("+{text} %"),
    }
}

/// A share: 0.05 is `5 %`; above tenfold it is a factor.
fn percent(share: f64) -> String {
    let text = match 100.0 * share {
        percent if percent > 1000.0 => return format!("{:.0} times", 1.0 + share),
        percent if percent >= 20.0 => format!("{percent:.0}"),
        percent => format!("{percent:.1}"),
    };
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

fn p_value(p: f64) -> String {
    match p {
        p if p < 0.0001 => "below 0.0001".into(),
        p if p < 0.01 => format!("{p:.4}"),
        p => format!("{p:.2}"),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn and_list(parts: &[String], word: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} {word} {last}", some.join(", ")),
    }
}

#[cfg(test)]
mod effect_tests {
    use super::*;

    #[test]
    fn reference_values() {
        // statistics.md section 2: U = 10 of 30.
        let a = Bins::from_values([11, 22, 33, 44, 55]);
        let b = Bins::from_values([20, 30, 40, 50, 60, 70]);
        let delta = cliffs_delta(&a, &b).expect("values");
        assert!((delta - 1.0 / 3.0).abs() < 1e-15, "{delta}");
        let back = cliffs_delta(&b, &a).expect("values");
        assert!((back + 1.0 / 3.0).abs() < 1e-15, "{back}");
        assert_eq!(cliffs_delta(&a, &a), Some(0.0));
        assert_eq!(cliffs_delta(&a, &Bins::default()), None);
    }
}
