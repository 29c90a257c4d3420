//! Does a fitted distribution fit? Anderson and Darling (1952), with p values from samples that the
//! fitted distribution makes: the tables for distributions known beforehand would say yes too
//! often.

use super::gpd::{self, Gpd};
use crate::random::Random;

/// Places of the scan when a sample is fitted that a fitted distribution made.
const SCAN: usize = 24;

/// Distances of a sample from a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Anderson-Darling: A², the tails count most.
    pub a2: f64,
    /// Cramér-von Mises: W².
    pub w2: f64,
}

/// Distances of ascending excesses from a distribution.
pub fn distance(ascending: &[f64], gpd: &Gpd) -> Distance {
    let n = ascending.len() as f64;
    let above: Vec<f64> = ascending.iter().map(|&y| gpd.exceeds(y).clamp(1e-300, 1.0)).collect();
    let (mut a2, mut w2) = (0.0, 0.0);
    for (i, (&s, &s_mirror)) in above.iter().zip(above.iter().rev()).enumerate() {
        let odd = (2 * i + 1) as f64;
        let below = (1.0 - s).max(1e-16);
        a2 += odd * (below.ln() + s_mirror.ln());
        w2 += (below - odd / (2.0 * n)).powi(2);
    }
    Distance { a2: -n - a2 / n, w2: w2 + 1.0 / (12.0 * n) }
}

/// Probability of as large an A² if the fitted distribution were the true one, from `samples` of it
/// that are fitted themselves. The same seed gives the same answer.
pub fn p_value(ascending: &[f64], gpd: &Gpd, samples: u32, seed: u64) -> f64 {
    let observed = distance(ascending, gpd).a2;
    let mut random = Random::new(seed);
    let mut as_far = 0_u32;
    for _ in 0..samples {
        let mut sample: Vec<f64> = ascending
            .iter()
            .map(|_| gpd.exceeded_once_in(random.exponential().exp()).max(f64::MIN_POSITIVE))
            .collect();
        sample.sort_unstable_by(f64::total_cmp);
        let far = gpd::fit_with(&sample, SCAN)
            .is_none_or(|fit| distance(&sample, &fit.gpd).a2 >= observed);
        as_far += u32::from(far);
    }
    f64::from(as_far + 1) / f64::from(samples + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;

    #[test]
    fn rain_of_coles() {
        let Some(mut excesses) = reference::column("rain_exceedances_idx_u30.csv", 1) else {
            return;
        };
        excesses.iter_mut().for_each(|mm| *mm -= 30.0);
        excesses.sort_unstable_by(f64::total_cmp);
        let fit = gpd::fit(&excesses).expect("a fit").gpd;
        let got = distance(&excesses, &fit);
        assert!((got.a2 - 0.391_368_80).abs() < 5e-8, "{got:?}");
        assert!((got.w2 - 0.038_087_89).abs() < 5e-8, "{got:?}");
        let p = p_value(&excesses, &fit, 999, 1);
        assert!((0.42..0.54).contains(&p), "{p}");
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let mut random = Random::new(21);
        let p = |mut values: Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            let fit = gpd::fit(&values).expect("a fit").gpd;
            p_value(&values, &fit, 199, 2)
        };
        let alarms =
            (0..60).filter(|_| p((0..100).map(|_| random.exponential()).collect()) < 0.05).count();
        assert!(alarms <= 8, "{alarms} of 60");
        let two = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 } + 0.1 * random.unit());
        assert!(p(two.collect()) < 0.01);
    }
}
