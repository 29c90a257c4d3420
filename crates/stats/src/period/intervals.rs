//! Regular intervals without a fixed phase: a loop that counts from its last run drifts away from
//! every period, and the test of phases, which supposes intervals of chance, does not hold for it.

use super::EVENTS_MIN;
use crate::binomial;

/// Longest over shortest of the intervals that are alike.
const ALIKE: f64 = 5.0 / 3.0;
/// Share of them that is no regularity: 0.19 of Poisson's intervals at most, half of those with a
/// dead time of half of their mean.
const BY_CHANCE: f64 = 0.5;
/// Places where they could lie, a factor of [`ALIKE`] apart over three decades.
const PLACES: f64 = 14.0;

/// Intervals that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervals {
    pub mean_ns: f64,
    pub shortest_ns: u64,
    pub longest_ns: u64,
    pub count: u64,
    pub of: u64,
    /// Probability of as many by chance.
    pub p: f64,
}

/// The most intervals between ascending times that are alike.
pub fn intervals(times_ns: &[u64]) -> Option<Intervals> {
    let mut all: Vec<u64> = times_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    all.sort_unstable();
    if all.len() < EVENTS_MIN {
        return None;
    }
    let alike = |from: usize| {
        let most_ns = all[from] as f64 * ALIKE;
        &all[from..all.partition_point(|&interval| interval as f64 <= most_ns)]
    };
    let best = (0..all.len()).map(alike).max_by_key(|alike| alike.len())?;
    let (count, of) = (best.len() as u64, all.len() as u64);
    Some(Intervals {
        mean_ns: best.iter().map(|&interval| interval as f64).sum::<f64>() / count as f64,
        shortest_ns: best[0],
        longest_ns: best[best.len() - 1],
        count,
        of,
        p: (PLACES * binomial::tail(count, of, BY_CHANCE)).min(1.0),
    })
}
