//! What difference a number of pairs can see, before they are measured.

use super::{PAIRS_MAX, smallest_p};
use crate::beta::regularised;

/// Spread of the difference of two neighbouring slices of one condition: the root of the mean
/// square of successive differences (von Neumann 1941), which drift does not inflate. `None` with
/// fewer than two.
#[must_use]
pub fn successive_sd(values: &[f64]) -> Option<f64> {
    let squares: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    (!squares.is_empty() && mean.is_finite()).then(|| mean.sqrt())
}

/// Smallest difference that `pairs` pairs find with probability `power`, where the differences of
/// pairs have the standard deviation `sd` and p values below `level` count. `None`: no difference,
/// because so few pairs have no p value that small.
#[must_use]
pub fn detectable(sd: f64, pairs: usize, level: f64, power: f64) -> Option<f64> {
    if pairs < 2 || smallest_p(pairs) >= level {
        return None;
    }
    let freedom = (pairs - 1) as f64;
    let t = t_quantile(1.0 - level / 2.0, freedom) + t_quantile(power, freedom);
    Some(t * sd / (pairs as f64).sqrt())
}

/// How many times the exposure it takes until [`PAIRS_MAX`] pairs at most find the difference
/// `wanted`: the variance of a slice falls with its length. 1 or more.
#[must_use]
pub fn pairs_for(sd: f64, pairs: usize, wanted: f64, level: f64, power: f64) -> Option<f64> {
    // More pairs first, longer slices then.
    (pairs.max(2)..=PAIRS_MAX)
        .filter_map(|n| {
            let least = detectable(sd, n, level, power)?;
            let longer = (least / wanted).powi(2).max(1.0);
            Some(longer * n as f64 / pairs.max(1) as f64)
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
        let least = |pairs| detectable(0.1, pairs, 0.05, 0.8);
        assert_eq!((least(5), detectable(0.1, 8, 0.005, 0.8)), (None, None));
        assert!(least(20) < least(12) && least(12) < least(6));
        // t(0.975, 11) + t(0.8, 11) = 3.0765, times 0.1, over the root of 12.
        assert!((least(12).expect("a number") - 0.088_811_342).abs() < 1e-9, "{:?}", least(12));
        assert_eq!(successive_sd(&[1.0]), None);
        assert_eq!(successive_sd(&[1.0, 2.0, 1.0]), Some(1.0));
        // Twice the spread takes four times as long.
        let times = |sd| pairs_for(sd, 20, 0.05, 0.05, 0.8).expect("a number");
        assert!((times(0.4) / times(0.2) - 4.0).abs() < 1e-9);
        assert_eq!(times(0.001), 1.0);
    }
}
