//! The exact sign-flip test: if a change does nothing, each difference might as well have had the
//! other sign, and all 2^n of them are counted.

/// Steps into which the largest difference is divided: sums of integers are exact in any order.
const STEPS: f64 = (1_u64 << 40) as f64;

/// Two-sided p value of the mean. At most [`super::PAIRS_MAX`] differences, all of them numbers.
pub(super) fn p_value(differences: &[f64]) -> f64 {
    let largest = differences.iter().fold(0.0_f64, |max, d| max.max(d.abs()));
    if largest == 0.0 {
        return 1.0;
    }
    let steps: Vec<i64> =
        differences.iter().map(|d| (d / largest * STEPS).round() as i64).collect();
    // Each step may be half of one off: what is that close counts as reached.
    let slack = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let reached = steps.iter().sum::<i64>().abs() - slack;
    // Flipping all signs gives the same absolute sum: the last sign stays.
    let flips = 1_u32 << (steps.len() - 1);
    let mut sum: i64 = steps.iter().sum();
    let mut signs = vec![1_i64; steps.len()];
    let mut count = 0_u32;
    for i in 1..=flips {
        count += u32::from(sum.abs() >= reached);
        // Gray code: from one combination to the next, one sign flips.
        let at = i.trailing_zeros() as usize;
        if i < flips {
            sum -= 2 * signs[at] * steps[at];
            signs[at] = -signs[at];
        }
    }
    f64::from(count) / f64::from(flips)
}

/// The differences that the test would not reject: bounds are means of subsets, of which the c-th
/// smallest and the c-th largest are taken, c = floor(alpha/2 2^n). `None` where c is 0.
pub(super) fn interval(differences: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let subsets = 1_usize << differences.len();
    let c = ((1.0 - confidence) / 2.0 * subsets as f64 + 1e-9).floor() as usize;
    let last = subsets - 1;
    if c == 0 || c > last {
        return None;
    }
    let mut sums = vec![(0.0_f64, 0_u32); subsets];
    for subset in 1..subsets {
        let first = subset.trailing_zeros() as usize;
        let (sum, n) = sums[subset & (subset - 1)];
        sums[subset] = (sum + differences[first], n + 1);
    }
    let mut means: Vec<f64> = sums[1..].iter().map(|&(sum, n)| sum / f64::from(n)).collect();
    let mut nth = |n: usize| *means.select_nth_unstable_by(n, f64::total_cmp).1;
    let (low, high) = (nth(c - 1), nth(last - c));
    (low <= high).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_counts_once() {
        // By hand: |±1 ±2 ±3| >= 4 for 1 1 1, 1- 2 3 and their opposites: 4 of 8.
        assert_eq!(p_value(&[-1.0, 2.0, 3.0]), 0.5);
        assert_eq!(p_value(&[1.0, 2.0, 3.0]), 0.25);
        assert_eq!(p_value(&[0.0; 7]), 1.0);
        assert_eq!(p_value(&[5.0]), 1.0);
        // Ties are reached: 0.1 + 0.2 and 0.3 are one number here.
        assert_eq!(p_value(&[0.1, 0.2, -0.3]), 1.0);
        // Twenty pairs: only all plus and all minus reach the sum.
        assert_eq!(p_value(&[1.0; 20]), f64::exp2(-19.0));
    }

    #[test]
    fn the_interval_is_what_the_test_does_not_reject() {
        let d = [0.31, -0.12, 0.55, 0.08, 0.27, 0.41, -0.05, 0.19];
        let (low, high) = interval(&d, 0.95).expect("an interval");
        let p_at = |centre: f64| p_value(&d.map(|d| d - centre));
        for (bound, outwards) in [(low, -1e-6), (high, 1e-6)] {
            assert!(p_at(bound + outwards) <= 0.05, "{bound}");
            assert!(p_at(bound - outwards) > 0.05, "{bound}");
        }
    }

    #[test]
    fn six_pairs_are_the_first_with_an_interval() {
        let d = [3.0, 1.0, 6.0, 2.0, 5.0, 4.0];
        assert_eq!(interval(&d, 0.95), Some((1.0, 6.0)));
        assert_eq!(interval(&d[..5], 0.95), None);
    }
}
