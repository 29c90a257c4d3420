//! Cliff's delta: of all pairs of one value of each, how many more are higher than are lower.

use rtproof_stats::Bins;

/// P(b > a) - P(b < a), from cells; values of cells that overlap are ordered by their middles,
/// and are ties where these agree. `None` where one has no values.
pub(super) fn cliffs_delta(a: &Bins, b: &Bins) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let middle = |bin: &rtproof_stats::Bin| u128::from(bin.low_ns) + u128::from(bin.high_ns);
    let mut from = a.iter().peekable();
    // Of a: below the cell of b, and in the same place.
    let (mut below, mut sum) = (0_u64, 0_i128);
    for cell in b.iter() {
        let at = middle(cell);
        while let Some(bin) = from.next_if(|bin| middle(bin) < at) {
            below += bin.n;
        }
        let same = from.peek().filter(|bin| middle(bin) == at).map_or(0, |bin| bin.n);
        let above = a.total() - below - same;
        sum += i128::from(cell.n) * (i128::from(below) - i128::from(above));
    }
    Some(sum as f64 / a.total() as f64 / b.total() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_values() {
        // statistics.md section 2: U = 10 of 30.
        let a = Bins::from_values([11, 22, 33, 44, 55]);
        let b = Bins::from_values([20, 30, 40, 50, 60, 70]);
        let delta = cliffs_delta(&a, &b).expect("values");
        assert!((delta - 1.0 / 3.0).abs() < 1e-15, "{delta}");
        let back = cliffs_delta(&b, &a).expect("values");
        assert!((back + 1.0 / 3.0).abs() < 1e-15, "{back}");
        assert_eq!(cliffs_delta(&a, &a), Some(0.0));
        assert_eq!(cliffs_delta(&a, &Bins::default()), None);
    }
}
