//! What a change does, from slices of time measured in pairs, one with it and one without, in
//! random order.
//!
//! Samples of a second depend on each other and machines drift, so tests that take samples for
//! independent find a difference between two halves of nothing. Here the unit is the pair: what
//! drifts is in both of its slices, and chance alone decided which came first. The p values are
//! those of the exact sign-flip test (Fisher 1935): against no effect, against an effect as large
//! as the margin (Hodges and Lehmann 1954), and against one at least as large (two one-sided tests,
//! Schuirmann 1987). The estimate is Hodges and Lehmann's (1963) with the interval of the
//! signed-rank test.

mod design;
mod detect;
mod family;
mod margin;
mod sign_flip;
mod signed_rank;
#[cfg(test)]
mod simulation;

pub use design::{mirrored, mirrored_pairs, order};
pub(crate) use detect::t_quantile;
pub use detect::{POWER, Spread, detectable, pairs_for, successive_sd};
pub use family::{Adjusted, MAIN, Question, answers, rest};
pub use margin::Margin;
use sign_flip::Flips;

/// Fewest pairs that decide anything at 95 %: with fewer the smallest p value is above 0.05.
pub const PAIRS_MIN: usize = 6;
/// Pairs where there is time for them.
pub const PAIRS: usize = 12;
/// Most pairs: all sign flips are counted, 17 million of them.
pub const PAIRS_MAX: usize = 24;

/// What the differences of pairs say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Number of pairs.
    pub n: usize,
    /// Hodges-Lehmann estimate: median of the Walsh averages.
    pub estimate: f64,
    /// Exact interval of the signed-rank test; `None`: too few pairs for one at this confidence.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p value of the exact sign-flip test of no effect.
    pub p: f64,
    /// The same of an effect within the margin, its ends included; 1 where the estimate is.
    pub p_margin: f64,
    /// P value of an effect at least as large as the margin, up or down.
    pub p_equivalent: f64,
}

/// What is said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The effect is below zero by more than the margin.
    Lower,
    /// The effect is above zero by more than the margin.
    Higher,
    /// The effect is below zero; that it is larger than the margin is not shown.
    SomeLower,
    /// The effect is above zero; that it is larger than the margin is not shown.
    SomeHigher,
    /// The effect is within the margin.
    Equivalent,
    /// None of these.
    Undecided,
}

/// Looks at differences of pairs; `None` without any, with more than [`PAIRS_MAX`], or where one is
/// no number.
pub fn compare(differences: &[f64], confidence: f64, margin: Margin) -> Option<Paired> {
    let n = differences.len();
    if !(1..=PAIRS_MAX).contains(&n) || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let walsh = signed_rank::walsh_averages(differences);
    let estimate = signed_rank::median(&walsh);
    Some(Paired {
        n,
        estimate,
        interval: signed_rank::interval(&walsh, n, confidence),
        p: p_value(differences),
        p_margin: match margin.holds(estimate) {
            true => 1.0,
            false => p_margin(differences, margin, estimate > margin.high),
        },
        p_equivalent: p_equivalent(differences, margin),
    })
}

fn p_value(differences: &[f64]) -> f64 {
    Flips::new(differences, 0.0, 0.0).map_or(1.0, |flips| flips.far())
}

/// Two-sided p value of an effect as large as the margin, where the estimate is above it or below:
/// both tails, so that one of "lower" and "higher" by more than the margin is wrong no more often
/// than the level says.
fn p_margin(differences: &[f64], margin: Margin, is_above: bool) -> f64 {
    let centre = f64::midpoint(margin.low, margin.high);
    let end = if is_above { margin.high } else { margin.low };
    Flips::new(differences, end, centre).map_or(1.0, |flips| flips.far())
}

/// The larger p value of two one-sided tests.
fn p_equivalent(differences: &[f64], margin: Margin) -> f64 {
    let below = Flips::new(differences, margin.high, 0.0).map_or(1.0, |flips| flips.below());
    let above = Flips::new(differences, margin.low, 0.0).map_or(1.0, |flips| flips.above());
    below.max(above)
}

/// Smallest p value that `pairs` pairs can give, whatever they show.
pub fn smallest_p(pairs: usize) -> f64 {
    if pairs == 0 { 1.0 } else { f64::exp2(1.0 - pairs as f64).min(1.0) }
}

/// Fewest pairs that decide on p99.9 of each of `knobs` knobs: 6 of one, 7 of two, 8 of three to
/// five.
pub fn pairs_least(knobs: usize, level: f64) -> usize {
    let level = MAIN * level / knobs.max(1) as f64;
    (PAIRS_MIN..=PAIRS_MAX).find(|&pairs| smallest_p(pairs) < level).unwrap_or(PAIRS_MAX + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Margin = Margin { low: -0.05, high: 0.05 };

    #[test]
    fn too_few_pairs_decide_nothing() {
        for (pairs, p) in [(4, 0.125), (5, 0.0625), (6, 0.03125), (8, 0.0078125)] {
            assert_eq!(smallest_p(pairs), p);
            let all_up: Vec<f64> = (1..=pairs).map(|i| i as f64).collect();
            assert_eq!(compare(&all_up, 0.95, MARGIN).expect("pairs").p, p);
        }
        assert!((smallest_p(12) - 0.00049).abs() < 1e-5);
        assert_eq!((smallest_p(0), smallest_p(1)), (1.0, 1.0));
        assert_eq!([0, 1, 2, 3, 5, 6, 11].map(|n| pairs_least(n, 0.05)), [6, 6, 7, 8, 8, 9, 9]);
        assert!(compare(&[1.0; 5], 0.95, MARGIN).expect("pairs").interval.is_none());
        assert!(compare(&[], 0.95, MARGIN).is_none());
        assert!(compare(&[0.0; 25], 0.95, MARGIN).is_none());
        assert!(compare(&[1.0, f64::NAN], 0.95, MARGIN).is_none());
        assert!(compare(&[1.0, f64::INFINITY], 0.95, MARGIN).is_none());
    }

    #[test]
    fn reference_values() {
        // numpy, all 4096 flips; no difference is beyond two medians.
        let d = [
            -0.182, -0.054, 0.021, -0.243, -0.117, -0.006, -0.301, 0.048, -0.152, -0.089, -0.210,
            -0.033,
        ];
        let got = compare(&d, 0.95, MARGIN).expect("pairs");
        assert_eq!((got.n, got.p), (12, 26.0 / 4096.0));
        let close = |got: f64, want: f64| (got - want).abs() < 1e-12;
        assert!(close(got.estimate, -0.10775));
        let (low, high) = got.interval.expect("an interval");
        assert!(close(low, -0.182) && close(high, -0.033));
    }

    #[test]
    fn answers_hold_the_margin() {
        let of = |d: &[f64], knobs: usize| {
            let paired = compare(d, 0.95, MARGIN).expect("pairs");
            answers(&[Question { of: 0, paired, weight: 1.0 }], knobs, 0.05)[0].1
        };
        let around = |centre: f64, spread: f64| -> Vec<f64> {
            (0..12).map(|i| centre + spread * (f64::from(i) - 5.5)).collect()
        };
        assert_eq!(of(&around(-0.3, 0.01), 1), Answer::Lower);
        assert_eq!(of(&around(0.3, 0.01), 1), Answer::Higher);
        assert_eq!(of(&around(-0.3, 0.01), 200), Answer::Undecided, "among 200 knobs");
        assert_eq!(of(&around(0.07, 0.012), 1), Answer::SomeHigher, "above 0, not above 5 %");
        assert_eq!(of(&around(-0.07, 0.012), 1), Answer::SomeLower);
        assert_eq!(of(&around(0.0, 0.001), 1), Answer::Equivalent);
        assert_eq!(of(&around(0.02, 0.001), 1), Answer::Equivalent, "real and too small");
        assert_eq!(of(&around(0.0, 0.1), 1), Answer::Undecided);
        assert_eq!(of(&[0.0; 5], 1), Answer::Undecided, "too few");
        assert_eq!(of(&[0.0; 12], 1), Answer::Equivalent, "identical slices");
    }
}
