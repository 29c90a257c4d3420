//! Runs side by side: what differs, by how much, and whether that decides anything.
//!
//! Samples of a run depend on each other and machines drift, so two single runs never decide: they
//! are shown, and said to be single. What decides is runs of each condition that alternate, paired
//! by time (`rtproof_stats::paired`). Maxima are compared at equal exposure alone, because the
//! longer run has the larger one by being longer.

mod against;
mod answer;
mod boot;
mod causes;
mod changes;
mod effect;
mod facts;
mod groups;
mod imported;
mod levels;
mod mismatch;
mod moments;
mod over_time;
mod paired;
mod pairs;
mod reference;
mod sentence;
mod shift;
mod side;
mod single;
mod table;
#[cfg(test)]
mod tests;
mod words;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    against::Against,
    answer::{Answer, Request},
    causes::{CauseCell, CauseLine},
    changes::{Change, Direction},
    facts::FactLine,
    groups::{Group, GroupSummary, RunSummary, ThreadSummary},
    levels::RunLevels,
    mismatch::Mismatch,
    over_time::{CpuOverTime, OverTime, Ranges},
    pairs::PairSummary,
    shift::{Shift, ShiftPoint},
    side::{Place, Row, Side, SideThread, Value, View},
    table::{Cell, Line, Unit},
};
pub use crate::reference::{LeftOut, Rank, Reference};

/// Version of the JSON form. Fields may be added under one version; none changes or goes.
pub const SCHEMA: &str = "rtproof/compare/2";

/// How the runs lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// One run of each: drift is not excluded, and nothing is decided.
    Single,
    /// Several runs of each, paired by time.
    Paired,
}

/// Runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    pub schema: String,
    pub wish: Request,
    /// How the runs lie to each other.
    pub design: Design,
    pub view: View,
    /// The answer over all groups: the worst one, then what cannot be decided.
    #[serde(rename = "result")]
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
pub fn compare(sides: &[Side], wish: &Request) -> Comparison {
    let groups: Vec<Group> = sides.iter().cloned().map(Group::single).collect();
    compare_groups(&groups, wish)
}

/// Compares groups of runs with the first group: single runs where no group has several.
pub fn compare_groups(groups: &[Group], wish: &Request) -> Comparison {
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
    let seen: Vec<table::Observation<'_>> =
        groups.iter().map(|group| table::Observation::of(group, view, budget_ns)).collect();
    let mismatches = mismatch::of(groups);
    let against = match seen.split_first() {
        None => Vec::new(),
        Some((first, others)) => match design {
            Design::Single => single::against(first, others, wish),
            Design::Paired => paired::against(first, others, wish),
        },
    };
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
        levels: levels::of(groups),
        reference: Vec::new(),
    }
}
