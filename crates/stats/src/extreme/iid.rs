//! Are the largest values of clusters alike from beginning to end, and without memory? Two tests:
//! the two halves in time (Kolmogorov and Smirnov), and runs above and below the median (Wald and
//! Wolfowitz 1940).

use crate::beta::normal_both_tails;

/// Probability that two samples of one distribution differ as much in shape (asymptotic, with the
/// correction of Stephens 1970; ties make it larger, never smaller). 1 where one is empty.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    };
    let (a, b) = (sorted(a), sorted(b));
    let (n, m) = (a.len() as f64, b.len() as f64);
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let (mut i, mut j, mut largest) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        i += a[i..].iter().take_while(|&&x| x <= value).count();
        j += b[j..].iter().take_while(|&&x| x <= value).count();
        largest = largest.max((i as f64 / n - j as f64 / m).abs());
    }
    let root = (n * m / (n + m)).sqrt();
    let x = (root + 0.12 + 0.11 / root) * largest;
    if x < 0.2 {
        return 1.0;
    }
    let terms = (1..=100).map(|k| {
        let k = f64::from(k);
        let sign = if k % 2.0 == 1.0 { 2.0 } else { -2.0 };
        sign * (-2.0 * k * k * x * x).exp()
    });
    terms.sum::<f64>().clamp(0.0, 1.0)
}

/// The same for the two halves of a series.
pub fn halves(values: &[f64]) -> f64 {
    let (first, second) = values.split_at(values.len() / 2);
    kolmogorov_smirnov(first, second)
}

/// Probability of as few or as many runs above and below the median, if order meant nothing
/// (normal approximation). Values at the median are left out. 1 where nothing can be said.
pub fn runs(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    if n < 10 {
        return 1.0;
    }
    let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    let sides: Vec<bool> = values.iter().filter(|&&x| x != median).map(|&x| x > median).collect();
    let above = sides.iter().filter(|&&side| side).count() as f64;
    let below = sides.len() as f64 - above;
    let total = above + below;
    let runs = 1 + sides.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let expected = 2.0 * above * below / total + 1.0;
    let variance = (expected - 1.0) * (expected - 2.0) / (total - 1.0);
    if variance <= 0.0 || !variance.is_finite() {
        return 1.0;
    }
    normal_both_tails((runs as f64 - expected) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn noise_passes_and_trends_do_not() {
        let mut random = Random::new(41);
        let (mut by_halves, mut by_runs) = (0, 0);
        for _ in 0..400 {
            let noise: Vec<f64> = (0..120).map(|_| random.exponential()).collect();
            by_halves += u32::from(halves(&noise) < 0.01);
            by_runs += u32::from(runs(&noise) < 0.01);
        }
        assert!(by_halves <= 10 && by_runs <= 10, "{by_halves} {by_runs} of 400, 4 expected");
        let step: Vec<f64> =
            (0..120).map(|i| random.exponential() + if i < 60 { 0.0 } else { 1.0 }).collect();
        assert!(halves(&step) < 1e-4, "{}", halves(&step));
        let waves: Vec<f64> = (0..120).map(|i| f64::from(i / 6 % 2) + random.unit()).collect();
        assert!(runs(&waves) < 1e-3 && halves(&waves) > 0.01);
    }

    #[test]
    fn by_hand() {
        // The halves do not overlap at all: D = 1.
        let apart: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(halves(&apart) < 1e-8);
        // scipy.stats.kstwobign.sf((root + 0.12 + 0.11/root) D) with D = 0.3, n = m = 50.
        let shifted: Vec<f64> = (0..50).map(|i| f64::from(i) + 15.5).collect();
        let p = kolmogorov_smirnov(&(0..50).map(f64::from).collect::<Vec<_>>(), &shifted);
        assert!((p - 0.0154).abs() < 0.01, "{p}");
        // 20 above, 20 below, each a run of its own: R = 2, mean 21, variance 9.744.
        assert!((runs(&apart) / 1.158e-9 - 1.0).abs() < 0.02, "{}", runs(&apart));
        assert_eq!((runs(&[1.0; 50]), halves(&[]), runs(&[1.0, 2.0])), (1.0, 1.0, 1.0));
    }
}
