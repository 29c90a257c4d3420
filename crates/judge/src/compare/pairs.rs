//! Which runs make a pair: neighbours in time, one of each group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::side::Side;

/// How the runs of two groups were paired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairSummary {
    /// Pairs: numbers of the runs within the first group and within this one.
    pub pairs: Vec<(usize, usize)>,
    /// Pairs in which the run of the first group came first.
    pub first_before: usize,
    /// Runs that have no neighbour of the other group.
    pub left_out: usize,
    /// Why there are none, where there are none.
    pub why_none: Option<String>,
}

impl PairSummary {
    /// Goes through the runs in order of time: two that follow each other and are of different
    /// groups are a pair; one that is followed by its own kind is left out.
    pub(super) fn of(first: &[Side], other: &[Side]) -> Self {
        let of = |sides: &[Side], is_first: bool| -> Option<Vec<(u64, bool, usize)>> {
            let run = |(number, side): (usize, &Side)| Some((side.started_ns?, is_first, number));
            sides.iter().enumerate().map(run).collect()
        };
        let (Some(mut runs), Some(others)) = (of(first, true), of(other, false)) else {
            return Self {
                left_out: first.len() + other.len(),
                why_none: Some("not all of the runs tell when they began".into()),
                ..Self::default()
            };
        };
        runs.extend(others);
        runs.sort_unstable();
        let mut summary = Self::default();
        let mut at = 0;
        while at < runs.len() {
            match (runs[at], runs.get(at + 1)) {
                ((_, one, a), Some(&(_, two, b))) if one != two => {
                    summary.pairs.push(if one { (a, b) } else { (b, a) });
                    summary.first_before += usize::from(one);
                    at += 2;
                }
                _ => {
                    summary.left_out += 1;
                    at += 1;
                }
            }
        }
        summary
    }
}
