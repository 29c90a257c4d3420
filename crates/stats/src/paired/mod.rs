//! What a change does, from slices of time measured in pairs, one with it and one without, in
//! random order.
//!
//! Samples of a second depend on each other and machines drift, so tests that take samples for
//! independent find a difference between two halves of nothing. Here the unit is the pair: what
//! drifts is in both of its slices, and chance alone decided which came first. The p value is that
//! of the exact sign-flip test (Fisher 1935), the estimate is Hodges and Lehmann's (1963) with the
//! interval of the signed-rank test, and the interval of the sign-flip test itself comes from means
//! of subsets (Hartigan 1969).

mod design;
mod detect;
mod sign_flip;
mod signed_rank;
#[cfg(test)]
mod simulation;

pub use design::{mirrored, mirrored_pairs, order};
pub(crate) use detect::t_quantile;
pub use detect::{detectable, pairs_for, successive_sd};

/// Fewest pairs that decide anything at 95 %: with fewer the smallest p value is above 0.05.
pub const PAIRS_MIN: usize = 6;
/// Pairs where there is time for them.
pub const PAIRS: usize = 12;
/// Most pairs: all sign flips are looked at, a million of them.
pub const PAIRS_MAX: usize = 20;

/// What the differences of pairs say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Number of pairs.
    pub n: usize,
    /// Hodges-Lehmann estimate: median of the Walsh averages.
    pub estimate: f64,
    /// Exact interval of the signed-rank test; `None`: too few pairs for one at this confidence.
    pub interval: Option<(f64, f64)>,
    /// Exact interval of the sign-flip test of the mean; `None`: likewise.
    pub flip_interval: Option<(f64, f64)>,
    /// Two-sided p value of the exact sign-flip test of the mean.
    pub p: f64,
}

/// What is said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The difference is below zero, by more than the margin.
    Lower,
    /// The difference is above zero, by more than the margin.
    Higher,
    /// The whole interval lies within the margin.
    Equivalent,
    /// None of these.
    Undecided,
}

/// Looks at differences of pairs; `None` without any, with more than [`PAIRS_MAX`], or where one is
/// no number.
#[must_use]
pub fn compare(differences: &[f64], confidence: f64) -> Option<Paired> {
    let n = differences.len();
    if !(1..=PAIRS_MAX).contains(&n) || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let walsh = signed_rank::walsh_averages(differences);
    Some(Paired {
        n,
        estimate: signed_rank::median(&walsh),
        interval: signed_rank::interval(&walsh, n, confidence),
        flip_interval: sign_flip::interval(differences, confidence),
        p: sign_flip::p_value(differences),
    })
}

/// Smallest p value that `pairs` pairs can give, whatever they show.
#[must_use]
pub fn smallest_p(pairs: usize) -> f64 {
    if pairs == 0 { 1.0 } else { f64::exp2(1.0 - pairs as f64).min(1.0) }
}

impl Paired {
    /// What is said of it. `p_adjusted`: the p value after Holm; `level`: e.g. 0.05; `margin`: the
    /// largest difference, up or down, that does not matter.
    #[must_use]
    pub fn answer(&self, p_adjusted: f64, level: f64, margin: f64) -> Answer {
        if p_adjusted < level && self.estimate.abs() > margin {
            return if self.estimate < 0.0 { Answer::Lower } else { Answer::Higher };
        }
        match self.interval {
            Some((low, high)) if -margin <= low && high <= margin => Answer::Equivalent,
            _ => Answer::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_pairs_decide_nothing() {
        for (pairs, p) in [(4, 0.125), (5, 0.0625), (6, 0.03125), (8, 0.0078125)] {
            assert_eq!(smallest_p(pairs), p);
            let all_up: Vec<f64> = (1..=pairs).map(|i| i as f64).collect();
            assert_eq!(compare(&all_up, 0.95).expect("pairs").p, p);
        }
        assert!((smallest_p(12) - 0.00049).abs() < 1e-5);
        assert_eq!((smallest_p(0), smallest_p(1)), (1.0, 1.0));
        assert!(compare(&[1.0; 5], 0.95).expect("pairs").interval.is_none());
        assert!(compare(&[], 0.95).is_none());
        assert!(compare(&[0.0; 21], 0.95).is_none());
        assert!(compare(&[1.0, f64::NAN], 0.95).is_none());
        assert!(compare(&[1.0, f64::INFINITY], 0.95).is_none());
    }

    #[test]
    fn reference_values() {
        // scipy.stats.permutation_test over all 4096 flips; numpy for the rest.
        let d = [
            -0.182, -0.054, 0.021, -0.243, -0.117, -0.006, -0.301, 0.048, -0.152, -0.089, -0.210,
            -0.033,
        ];
        let got = compare(&d, 0.95).expect("pairs");
        assert_eq!((got.n, got.p), (12, 26.0 / 4096.0));
        let close = |got: f64, want: f64| (got - want).abs() < 1e-12;
        assert!(close(got.estimate, -0.10775));
        let ((low, high), (flip_low, flip_high)) =
            got.interval.zip(got.flip_interval).expect("intervals");
        assert!(close(low, -0.182) && close(high, -0.033));
        assert!(close(flip_low, -0.1808) && close(flip_high, -0.039));
    }

    #[test]
    fn answers() {
        let of = |d: &[f64], p: f64| compare(d, 0.95).expect("pairs").answer(p, 0.05, 0.05);
        let around = |centre: f64, spread: f64| -> Vec<f64> {
            (0..12).map(|i| centre + spread * (f64::from(i) - 5.5)).collect()
        };
        assert_eq!(of(&around(-0.3, 0.01), 0.004), Answer::Lower);
        assert_eq!(of(&around(0.3, 0.01), 0.004), Answer::Higher);
        assert_eq!(of(&around(-0.3, 0.01), 0.06), Answer::Undecided, "after Holm");
        assert_eq!(of(&around(0.0, 0.001), 1.0), Answer::Equivalent);
        assert_eq!(of(&around(0.02, 0.001), 0.001), Answer::Equivalent, "real and too small");
        assert_eq!(of(&around(0.0, 0.1), 0.9), Answer::Undecided);
        assert_eq!(of(&[0.0; 5], 1.0), Answer::Undecided, "no interval");
    }
}
