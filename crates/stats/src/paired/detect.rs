//! What difference a number of pairs can see, before they are measured.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use super::{Margin, PAIRS_MAX, p_margin, p_value, smallest_p};
use crate::{beta::regularised, random::Random};

/// Spread of the difference of two neighbouring slices of one condition: the root of the mean
/// square of successive differences (von Neumann 1941), which drift does not inflate. `None` with
/// fewer than two.
pub fn successive_sd(values: &[f64]) -> Option<f64> {
    let squares: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    (!squares.is_empty() && mean.is_finite()).then(|| mean.sqrt())
}

/// How the differences of pairs spread, and how well that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Standard deviation.
    pub sd: f64,
    /// Degrees of freedom of its estimate; infinite: it is assumed.
    pub freedom: f64,
}

impl Spread {
    /// Of differences of pairs: `n - 1` degrees of freedom. `None` with fewer than two.
    pub fn of_pairs(differences: &[f64]) -> Option<Self> {
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
        (differences.len() > 1).then(|| Self { sd: (squares / (n - 1.0)).sqrt(), freedom: n - 1.0 })
    }

    /// From [`successive_sd`] of `slices` slices: its mean square has a relative variance of
    /// (3n - 4)/(n - 1)^2 (von Neumann and others 1941).
    pub fn of_successive(sd: f64, slices: usize) -> Self {
        let n = slices.max(2) as f64;
        Self { sd, freedom: 2.0 * (n - 1.0).powi(2) / (3.0 * n - 4.0) }
    }

    /// A spread that is assumed, not measured by a pilot.
    pub const fn assumed(sd: f64) -> Self {
        Self { sd, freedom: f64::INFINITY }
    }
}

/// Experiments of which the detectable difference is a quantile.
const EXPERIMENTS: usize = 2000;
/// Spreads for which it is computed are so far apart, as logarithms; between them it is
/// interpolated.
const GRID: f64 = 0.25;
/// Spreads beyond these, in margins, count as these.
const SPREADS: (f64, f64) = (0.002, 200.0);

/// Probability with which the detectable difference is found.
pub const POWER: f64 = 0.8;

/// Smallest increase of p99.9 that `pairs` pairs of each of `knobs` knobs show to be above `margin`
/// with probability [`POWER`], by the tests that decide ([`super::answers`]). Computed from
/// simulated experiments with normal differences and a spread that is as uncertain as it is.
/// `None`: none, because so few pairs have no p value that small.
pub fn detectable(
    spread: Spread,
    pairs: usize,
    knobs: usize,
    level: f64,
    margin: Margin,
) -> Option<f64> {
    let can = (super::pairs_least(knobs, level)..=PAIRS_MAX).contains(&pairs);
    if !can || !spread.sd.is_finite() {
        return None;
    }
    let unit = if margin.high > 0.0 { margin.high } else { 1.0 };
    let place = (spread.sd / unit).clamp(SPREADS.0, SPREADS.1).ln() / GRID;
    let at = |index: f64| {
        let sd = (index * GRID).exp() * unit;
        let margin = Margin { low: margin.low / sd, high: margin.high / sd };
        let law = Law { pairs, knobs: knobs.max(1) as f64, level, freedom: spread.freedom, margin };
        law.known().ln()
    };
    let (low, part) = (place.floor(), place - place.floor());
    let in_sd = ((1.0 - part) * at(low) + part * at(low + 1.0)).exp();
    Some((in_sd * spread.sd).max(margin.high))
}

/// What the detectable difference depends on; differences in units of their spread.
#[derive(Clone, Copy)]
struct Law {
    pairs: usize,
    knobs: f64,
    level: f64,
    freedom: f64,
    margin: Margin,
}

impl Law {
    fn known(self) -> f64 {
        type Known = Mutex<BTreeMap<(usize, [u64; 5]), f64>>;
        static KNOWN: Known = Mutex::new(BTreeMap::new());
        let numbers = [self.level, self.knobs, self.freedom, self.margin.low, self.margin.high];
        let key = (self.pairs, numbers.map(f64::to_bits));
        let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return *known;
        }
        let least = self.least();
        lock().insert(key, least);
        least
    }

    fn least(self) -> f64 {
        let mut random = Random::new(self.pairs as u64);
        let mut experiments: Vec<Vec<f64>> = (0..EXPERIMENTS)
            .map(|_| {
                // Chi squared by its degrees of freedom (Wilson and Hilferty 1931).
                let v = 2.0 / (9.0 * self.freedom);
                let sd = (1.0 - v + v.sqrt() * random.normal()).max(0.1).powf(-1.5);
                (0..self.pairs).map(|_| sd * random.normal()).collect()
            })
            .collect();
        let found = |noise: &[f64], effect: f64| {
            let d: Vec<f64> = noise.iter().map(|noise| noise + effect).collect();
            let level = super::MAIN * self.level;
            p_margin(&d, self.margin, true) < level && p_value(&d) < level / self.knobs
        };
        let wanted = (POWER * EXPERIMENTS as f64).ceil() as usize;
        let (mut low, mut high) = (self.margin.high, self.margin.high + 1.0);
        let share = |effect| experiments.iter().filter(|noise| found(noise, effect)).count();
        while share(high) < wanted && high < 1e6 {
            high = self.margin.high + 2.0 * (high - self.margin.high);
        }
        let mut counted = 0;
        // What finds an effect finds every larger one, so each step looks at those alone that find
        // the upper end and not the lower one.
        while high - low > 0.002 * high {
            let mid = f64::midpoint(low, high);
            let (with, without): (Vec<_>, Vec<_>) =
                experiments.drain(..).partition(|noise| found(noise, mid));
            if counted + with.len() >= wanted {
                (high, experiments) = (mid, with);
            } else {
                counted += with.len();
                (low, experiments) = (mid, without);
            }
        }
        high
    }
}

/// About how many times the exposure it takes until [`PAIRS_MAX`] pairs at most find a difference
/// that is `gap` off the margin, after Student's t: the variance of a slice falls with its length.
/// 1 or more.
pub fn pairs_for(sd: f64, pairs: usize, gap: f64, level: f64) -> Option<f64> {
    // More pairs first, longer slices then.
    (pairs.max(2)..=PAIRS_MAX)
        .filter(|&n| smallest_p(n) < level)
        .map(|n| {
            let freedom = (n - 1) as f64;
            let t = t_quantile(1.0 - level / 2.0, freedom) + t_quantile(POWER, freedom);
            let longer = (t * sd / gap).powi(2) / n as f64;
            longer.max(1.0) * n as f64 / pairs.max(1) as f64
        })
        .min_by(f64::total_cmp)
}

/// Quantile of Student's t distribution.
pub(crate) fn t_quantile(p: f64, freedom: f64) -> f64 {
    if p < 0.5 {
        return -t_quantile(1.0 - p, freedom);
    }
    let above = |t: f64| 0.5 * regularised(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    let (mut low, mut high) = (0.0_f64, 1e6_f64);
    for _ in 0..100 {
        let mid = f64::midpoint(low, high);
        if above(mid) > 1.0 - p { low = mid } else { high = mid }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_tables() {
        // scipy.stats.t.ppf
        for (p, freedom, t) in T {
            let got = t_quantile(p, freedom);
            assert!((got / t - 1.0).abs() < 1e-9, "{p} {freedom}: {got}, {t}");
        }
        assert!((t_quantile(0.2, 11.0) + t_quantile(0.8, 11.0)).abs() < 1e-12);
        assert!(t_quantile(0.5, 3.0).abs() < 1e-6);
    }

    const T: [(f64, f64, f64); 5] = [
        (0.975, 11.0, 2.200_985_160_092),
        (0.8, 11.0, 0.875_529_978_074),
        (0.99975, 7.0, 6.081_756_186_049),
        (0.975, 5.0, 2.570_581_835_636),
        (0.999, 19.0, 3.579_400_148_955),
    ];

    #[test]
    fn what_can_be_seen() {
        let none = Margin { low: 0.0, high: 0.0 };
        let assumed = Spread::assumed(0.1);
        let least = |pairs, knobs| detectable(assumed, pairs, knobs, 0.05, none);
        assert_eq!((least(5, 1), least(8, 6)), (None, None));
        // Six pairs: all of one sign, 0.1 times the normal quantile of 0.8^(1/6).
        let six = least(6, 1).expect("a difference");
        assert!((six / 0.179_3 - 1.0).abs() < 0.02, "{six}");
        // Twelve: statsmodels.stats.power.TTestPower has 0.8873 for 12 pairs at 5 %, 0.9 at 4.6 %.
        let twelve = least(12, 1).expect("a difference");
        assert!((twelve / 0.090_2 - 1.0).abs() < 0.03, "{twelve}");
        // What the margin and an uncertain spread add.
        let margin = Margin::of_share(0.05);
        let held = |spread| detectable(spread, 12, 1, 0.05, margin).expect("a difference");
        let sure = held(assumed);
        assert!((0.12..0.14).contains(&sure), "{sure}");
        assert!(held(Spread { sd: 0.1, freedom: 5.0 }) > 1.05 * sure);
        assert_eq!(held(Spread::assumed(0.0)), margin.high);
    }

    #[test]
    fn spreads() {
        assert_eq!(successive_sd(&[1.0]), None);
        assert_eq!(successive_sd(&[1.0, 2.0, 1.0]), Some(1.0));
        assert_eq!(Spread::of_pairs(&[1.0]), None);
        assert_eq!(Spread::of_pairs(&[1.0, 3.0]).expect("a spread").sd, 2.0_f64.sqrt());
        assert!((Spread::of_successive(1.0, 8).freedom - 4.9).abs() < 1e-9);
        // Twice the spread takes four times as long.
        let times = |sd| pairs_for(sd, 20, 0.05, 0.05).expect("a number");
        assert!((times(0.4) / times(0.2) - 4.0).abs() < 1e-9);
        assert_eq!(times(0.001), 1.0);
    }
}
