//! L-moments (Hosking, J. R. Stat. Soc. B 52, 1990): sums of ordered values that outliers hardly
//! move. Where a fit starts, and a check on where it ends.

/// The first two L-moments and the ratios t3, t4, unbiased.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LMoments {
    /// Mean.
    pub l1: f64,
    /// Half of the expected difference of two values.
    pub l2: f64,
    /// L-skewness.
    pub t3: f64,
    /// L-kurtosis.
    pub t4: f64,
}

/// Of ascending values, four or more that are not all equal.
pub fn of_sorted(values: &[f64]) -> Option<LMoments> {
    let n = values.len() as f64;
    let mut b = [0.0; 4];
    for (i, &x) in values.iter().enumerate() {
        let i = i as f64;
        let mut weight = 1.0;
        for (r, b) in b.iter_mut().enumerate() {
            *b += weight * x / n;
            weight *= (i - r as f64) / (n - 1.0 - r as f64);
        }
    }
    let l2 = 2.0 * b[1] - b[0];
    let l3 = 6.0 * b[2] - 6.0 * b[1] + b[0];
    let l4 = 20.0 * b[3] - 30.0 * b[2] + 12.0 * b[1] - b[0];
    (values.len() >= 4 && l2 > 0.0).then(|| LMoments { l1: b[0], l2, t3: l3 / l2, t4: l4 / l2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;

    #[test]
    fn reference_values() {
        let Some(mut sea) = reference::column("portpirie.csv", 0) else { return };
        sea.sort_unstable_by(f64::total_cmp);
        let l = of_sorted(&sea).expect("moments");
        for (got, want) in [
            (l.l1, 3.980_615_384_615_384_7),
            (l.l2, 0.134_644_230_769_230_6),
            (l.t3, 0.137_433_135_076_505_84),
            (l.t4, 0.132_831_202_618_113_65),
        ] {
            assert!((got / want - 1.0).abs() < 1e-11, "{got} {want}");
        }
        assert_eq!(of_sorted(&[1.0, 2.0, 3.0]), None);
        assert_eq!(of_sorted(&[2.0; 9]), None);
    }
}
