//! Hodges-Lehmann estimate with the exact interval of Wilcoxon's signed-rank test.

/// Averages of all pairs of differences, each with itself too, ascending.
pub(super) fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (i, &one) in differences.iter().enumerate() {
        averages.extend(differences[i..].iter().map(|&other| f64::midpoint(one, other)));
    }
    averages.sort_by(f64::total_cmp);
    averages
}

/// Median of ascending values; 0 of none.
pub(super) fn median(ascending: &[f64]) -> f64 {
    let half = ascending.len() / 2;
    match ascending.len() {
        0 => 0.0,
        n if n % 2 == 1 => ascending[half],
        _ => f64::midpoint(ascending[half - 1], ascending[half]),
    }
}

/// Interval of the centre from the Walsh averages of `n` differences: from the c-th smallest to the
/// c-th largest, c the smallest rank sum with P(T <= c) > alpha/2. `None` where c is 0.
pub(super) fn interval(walsh: &[f64], n: usize, confidence: f64) -> Option<(f64, f64)> {
    let c = rank(n, (1.0 - confidence) / 2.0);
    (c > 0).then(|| (walsh[c - 1], walsh[walsh.len() - c]))
}

/// Smallest t with P(T <= t) > `tail`, T the sum of the positive ranks of `n` differences.
fn rank(n: usize, tail: f64) -> usize {
    // Ways to make each sum out of 1..=n.
    let mut ways = vec![0.0_f64; n * (n + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let all = f64::exp2(n as f64);
    let mut below = 0.0;
    ways.iter()
        .position(|ways| {
            below += ways / all;
            below > tail
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_the_tables() {
        // Largest T with a two-sided P <= 0.05 (Wilcoxon and Wilcox 1964), plus one.
        let table = [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (11, 10), (12, 13), (20, 52)];
        for (n, t) in table {
            assert_eq!(rank(n, 0.025), t + 1, "{n}");
        }
        assert_eq!(rank(5, 0.025), 0);
        assert_eq!(rank(12, 0.005), 8);
    }

    #[test]
    fn estimate_and_interval_by_hand() {
        let walsh = walsh_averages(&[1.0, 2.0, 4.0]);
        assert_eq!(walsh, [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]);
        assert_eq!(median(&walsh), 2.25);
        assert_eq!((median(&[]), median(&[7.0])), (0.0, 7.0));
        let six = walsh_averages(&[3.0, 1.0, 6.0, 2.0, 5.0, 4.0]);
        assert_eq!(interval(&six, 6, 0.95), Some((1.0, 6.0)));
        assert_eq!(interval(&six, 6, 0.99), None);
    }
}
