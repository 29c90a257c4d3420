//! Runs side by side: what differs, by how much, and whether that decides anything.
//!
//! Samples of a run depend on each other and machines drift, so two single runs never decide: they
//! are shown, and said to be single. What decides is runs of each condition that alternate, paired
//! by time (`rtproof_stats::paired`). Maxima are compared at equal exposure alone, because the
//! longer run has the larger one by being longer.

mod boot;
mod causes;
mod changes;
mod effect;
mod facts;
mod groups;
mod imported;
mod mismatch;
mod moments;
mod paired;
mod pairs;
mod sentence;
mod shift;
mod side;
mod single;
mod table;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

pub use self::{
    causes::{CauseCell, CauseLine},
    changes::{Change, Direction},
    facts::FactLine,
    groups::{Group, GroupSummary, RunSummary, ThreadSummary},
    mismatch::Mismatch,
    pairs::PairSummary,
    shift::{Shift, ShiftPoint},
    side::{Place, Row, Side, SideThread, Value, View},
    table::{Cell, Line, Unit},
};

/// Version of the JSON form. Fields may be added under one version; none changes or goes.
pub const SCHEMA: &str = "rtproof/compare/1";

/// What is asked of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wish {
    /// Differences up to this share do not matter: 0.05.
    pub margin: f64,
    /// Confidence of the intervals: 0.95. P values below the rest of it count.
    pub confidence: f64,
    /// Budget to count late wake-ups against; `None`: that of the runs, where they have one.
    pub budget_ns: Option<u64>,
}

impl Default for Wish {
    fn default() -> Self {
        Self { margin: 0.05, confidence: 0.95, budget_ns: None }
    }
}

/// How the runs lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Design {
    /// One run of each: drift is not excluded, and nothing is decided.
    Single,
    /// Several runs of each, paired by time.
    Paired,
}

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Answer {
    /// Latency is lower than with the first.
    Better,
    /// Latency is higher than with the first, in one statistic at least.
    Worse,
    /// No difference larger than the margin.
    NoDifference,
    /// None of these can be said.
    CannotDecide,
}

impl Answer {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifference => "no difference",
            Self::CannotDecide => "cannot decide",
        }
    }
}

/// What is said of one group of runs against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Against {
    /// Number of the group, from 0; the first one is what it is compared with.
    pub group: usize,
    /// The answer.
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
    /// Quantile by quantile.
    pub shift: Shift,
    /// How the runs were paired; `None`: they are single.
    pub pairs: Option<PairSummary>,
}

/// Runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was asked.
    pub wish: Wish,
    /// How the runs lie to each other.
    pub design: Design,
    /// What is compared.
    pub view: View,
    /// The answer over all groups: the worst one, then what cannot be decided.
    pub answer: Answer,
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
    pub table: Vec<Line>,
    /// Each group but the first against the first.
    pub against: Vec<Against>,
    /// Facts that differ.
    pub facts: Vec<FactLine>,
    /// Why wake-ups were late.
    pub causes: Vec<CauseLine>,
}

/// Compares single runs with the first of them.
#[must_use]
pub fn compare(sides: &[Side], wish: &Wish) -> Comparison {
    let groups: Vec<Group> = sides.iter().cloned().map(Group::single).collect();
    compare_groups(&groups, wish)
}

/// Compares groups of runs with the first group: single runs where no group has several.
#[must_use]
pub fn compare_groups(groups: &[Group], wish: &Wish) -> Comparison {
    let view = if groups.iter().flat_map(|group| &group.sides).all(Side::knows_missed) {
        View::Deadline
    } else {
        View::Wake
    };
    let budget_ns = wish.budget_ns.or_else(|| mismatch::budget(groups));
    let design = if groups.iter().all(|group| group.sides.len() < 2) {
        Design::Single
    } else {
        Design::Paired
    };
    let seen: Vec<table::Seen<'_>> =
        groups.iter().map(|group| table::Seen::of(group, view, budget_ns)).collect();
    let mismatches = mismatch::of(groups);
    let mut against = match seen.split_first() {
        None => Vec::new(),
        Some((first, others)) => match design {
            Design::Single => single::against(first, others, wish),
            Design::Paired => paired::against(first, others, wish),
        },
    };
    for one in &mut against {
        one.reasons.extend(mismatches.iter().map(Mismatch::warning));
    }
    let (answer, sentence) = sentence::of_all(groups, &against);
    Comparison {
        schema: SCHEMA.into(),
        wish: wish.clone(),
        design,
        view,
        answer,
        sentence,
        doubts: mismatch::doubts(groups, view),
        mismatches,
        groups: groups.iter().map(|group| GroupSummary::of(group, view)).collect(),
        table: table::of(&seen, wish),
        against,
        facts: facts::of(groups),
        causes: causes::of(groups),
    }
}
