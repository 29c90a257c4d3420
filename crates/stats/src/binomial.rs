//! Exact statements on rates from counts: Clopper-Pearson bounds and Poisson bounds.
//!
//! Clopper and Pearson, Biometrika 26 (1934): never below the stated confidence, at any sample
//! size.

use crate::beta::{poisson_cdf, regularised};

/// P(X <= k) for X ~ Binomial(n, p).
pub fn cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { regularised((n - k) as f64, k as f64 + 1.0, 1.0 - p) }
}

/// P(X >= k) for X ~ Binomial(n, p), to full precision where it is small.
pub fn tail(k: u64, n: u64, p: f64) -> f64 {
    match k {
        0 => 1.0,
        k if k > n => 0.0,
        k => regularised(k as f64, (n - k) as f64 + 1.0, p),
    }
}

/// One-sided upper bound on the probability of an event seen `k` times in `n` trials.
/// 1 when there were no trials.
pub fn upper_bound(k: u64, n: u64, confidence: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    if k == 0 {
        // (1 - p)^n = alpha
        return -f64::exp_m1((1.0 - confidence).ln() / n as f64);
    }
    bisect(|p| regularised(k as f64 + 1.0, (n - k) as f64, p), confidence)
}

/// One-sided lower bound, likewise. 0 when nothing was seen.
pub fn lower_bound(k: u64, n: u64, confidence: f64) -> f64 {
    if k == 0 || n == 0 {
        return 0.0;
    }
    if k >= n {
        return ((1.0 - confidence).ln() / n as f64).exp();
    }
    bisect(|p| regularised(k as f64, (n - k) as f64 + 1.0, p), 1.0 - confidence)
}

/// Upper and lower bound, each one-sided, on a share seen in what is worth `n_eff` independent
/// trials, which need be no whole number (Korn and Graubard, Survey Methodology 24, 1998).
pub fn bounds_of_share(share: f64, n_eff: f64, confidence: f64) -> (f64, f64) {
    let events = share * n_eff;
    let upper = match n_eff - events {
        rest if rest > 0.0 => bisect(|p| regularised(events + 1.0, rest, p), confidence),
        _ => 1.0,
    };
    let lower = match events {
        events if events > 0.0 => {
            bisect(|p| regularised(events, n_eff - events + 1.0, p), 1.0 - confidence)
        }
        _ => 0.0,
    };
    (upper, lower)
}

/// One-sided upper bound on the mean of a Poisson count of which `k` events were seen:
/// 2.996 for none at 95 %. Divide by the exposure for a rate.
pub fn poisson_upper(k: u64, confidence: f64) -> f64 {
    if k == 0 {
        return -(1.0 - confidence).ln();
    }
    // The mean at which P(X <= k) falls to 1 - confidence: not far above k, by ten deviations.
    let (mut low, mut high) = (k as f64, k as f64 + 10.0 * (k as f64).sqrt() + 50.0);
    for _ in 0..100 {
        let mid = f64::midpoint(low, high);
        if poisson_cdf(k, mid) > 1.0 - confidence { low = mid } else { high = mid }
    }
    high
}

/// One-sided lower bound on the mean of a Poisson count of which `k` events were seen: 0.051 for
/// one at 95 %.
pub fn poisson_lower(k: u64, confidence: f64) -> f64 {
    // The mean at which P(X >= k) rises to 1 - confidence: below k.
    let (mut low, mut high) = (0.0, k as f64);
    for _ in 0..100 {
        let mid = f64::midpoint(low, high);
        if poisson_cdf(k.saturating_sub(1), mid) > confidence { low = mid } else { high = mid }
    }
    low
}

/// P(X <= k) for X ~ Poisson(mean).
pub fn poisson_at_most(k: u64, mean: f64) -> f64 {
    if mean <= 0.0 { 1.0 } else { poisson_cdf(k, mean) }
}

/// The p at which an increasing function reaches `target`.
fn bisect(f: impl Fn(f64) -> f64, target: f64) -> f64 {
    // On a logarithmic scale first: bounds of 1e-9 need relative, not absolute, precision.
    let (mut low, mut high) = (-70.0_f64, 0.0_f64);
    for _ in 0..120 {
        let mid = f64::midpoint(low, high);
        if f(mid.exp()) < target { low = mid } else { high = mid }
    }
    high.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, relative: f64) {
        assert!((got / want - 1.0).abs() < relative, "got {got}, want {want}");
    }

    #[test]
    fn upper_bounds_of_the_literature() {
        close(upper_bound(0, 3000, 0.95), 9.980_790e-4, 1e-6);
        close(upper_bound(0, 5000, 0.95), 5.989_670e-4, 1e-6);
        close(upper_bound(2, 1_000_000, 0.95), 6.295_780_1e-6, 1e-7);
    }

    #[test]
    fn bounds_of_a_share_are_those_of_counts_where_it_is_one() {
        let (upper, lower) = bounds_of_share(0.02, 1000.0, 0.95);
        close(upper, upper_bound(20, 1000, 0.95), 1e-9);
        close(lower, lower_bound(20, 1000, 0.95), 1e-9);
        // scipy.stats.beta.ppf(0.95, 5.95, 160.05), and of (0.05, 4.95, 161.05).
        let (upper, lower) = bounds_of_share(0.03, 165.0, 0.95);
        close(upper, 0.062258490796, 1e-7);
        close(lower, 0.011823583946, 1e-7);
        assert_eq!(bounds_of_share(0.0, 60.0, 0.95).1, 0.0);
        assert_eq!(bounds_of_share(1.0, 60.0, 0.95).0, 1.0);
    }

    #[test]
    fn tails() {
        close(tail(3, 4, 0.1), 4.0 * 0.001 * 0.9 + 0.0001, 1e-12);
        close(tail(20, 20, 0.001), 1e-60, 1e-9);
        close(tail(7, 30, 0.2), 1.0 - cdf(6, 30, 0.2), 1e-12);
        assert_eq!((tail(0, 5, 0.1), tail(6, 5, 0.1)), (1.0, 0.0));
    }

    #[test]
    fn five_percent_class() {
        // n / k at which the 95 % upper bound first falls below 5 %.
        for (n, k) in [(59, 0), (93, 1), (124, 2), (153, 3), (181, 4), (208, 5), (1000, 38)] {
            assert!(upper_bound(k, n, 0.95) < 0.05, "{n}/{k}");
            assert!(upper_bound(k, n - 1, 0.95) >= 0.05 || n == 1000, "{n}/{k}");
        }
        assert!(upper_bound(39, 1000, 0.95) >= 0.05);
        assert!(upper_bound(224, 5000, 0.95) < 0.05 && upper_bound(225, 5000, 0.95) >= 0.05);
    }

    #[test]
    fn poisson_bounds() {
        let at95 = [2.99573, 4.74386, 6.29579, 7.75366, 9.15352, 10.51303];
        let at99 = [4.60517, 6.63835, 8.40595, 10.04512, 11.60463, 13.10848];
        for k in 0..6 {
            close(poisson_upper(k as u64, 0.95), at95[k], 1e-5);
            close(poisson_upper(k as u64, 0.99), at99[k], 1e-5);
        }
    }

    #[test]
    fn lower_bounds_of_poisson_counts() {
        // Half of scipy.stats.chi2.ppf(0.05, 2 k).
        for (k, want) in [(1, 0.051_293_3), (3, 0.817_691), (5, 1.970_15), (10, 5.425_41)] {
            close(poisson_lower(k, 0.95), want, 1e-5);
        }
        assert_eq!(poisson_lower(0, 0.95), 0.0);
        close(poisson_at_most(0, 3.0), (-3.0_f64).exp(), 1e-12);
        close(poisson_at_most(1, 2.0), 3.0 * (-2.0_f64).exp(), 1e-12);
        assert_eq!(poisson_at_most(0, 0.0), 1.0);
    }

    #[test]
    fn poisson_bounds_of_many_events() {
        // Wilson and Hilferty 1931: (k+1) (1 - 1/(9(k+1)) + z/(3 sqrt(k+1)))^3, z(0.95) = 1.644854.
        for k in [200_u64, 744, 1000, 1_000_000, 1_000_000_000] {
            let a = k as f64 + 1.0;
            let approximate =
                a * (1.0 - 1.0 / (9.0 * a) + 1.644_853_627 / (3.0 * a.sqrt())).powi(3);
            close(poisson_upper(k, 0.95), approximate, 1e-5);
        }
    }

    #[test]
    fn bounds_are_complementary() {
        for (k, n) in [(1, 10), (5, 100), (50, 100), (99, 100), (7, 100_000)] {
            let (low, high) = (lower_bound(k, n, 0.95), upper_bound(k, n, 0.95));
            assert!(low < k as f64 / n as f64 && k as f64 / n as f64 <= high);
            close(lower_bound(n - k, n, 0.95), 1.0 - high, 1e-9);
        }
        assert_eq!((lower_bound(0, 9, 0.95), upper_bound(0, 0, 0.95)), (0.0, 1.0));
    }
}
