//! One change of level and its probability, from ranks alone (Pettitt, Applied Statistics 28,
//! 1979).

/// Where the change is, and how likely by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pettitt {
    /// First value after the change.
    pub at: usize,
    /// Largest |U|.
    pub k: f64,
    /// Probability of as large a one by chance: 2 exp(-6 K² / (n³ + n²)), at most 1.
    pub p: f64,
}

/// The test; `None` of fewer than two values, or where one is no number.
pub fn pettitt(values: &[f64]) -> Option<Pettitt> {
    if values.len() < 2 || values.iter().any(|x| x.is_nan()) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    // Mean ranks, times two, so that ties stay whole.
    let mut ranks = vec![0_i128; values.len()];
    let mut begin = 0;
    for same in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let twice = (2 * begin + same.len() + 1) as i128;
        same.iter().for_each(|&i| ranks[i] = twice);
        begin += same.len();
    }
    let n = values.len() as i128;
    // U at t: twice the sum of the first t ranks, less t (n + 1).
    let mut u = 0_i128;
    let (mut k, mut at) = (-1, 0);
    for (t, rank) in ranks[..values.len() - 1].iter().enumerate() {
        u += rank - (n + 1);
        if u.abs() > k {
            (k, at) = (u.abs(), t + 1);
        }
    }
    let (k, n) = (k as f64, n as f64);
    let p = (2.0 * (-6.0 * k * k / (n * n * n + n * n)).exp()).min(1.0);
    Some(Pettitt { at, k, p })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;

    #[test]
    fn the_nile() {
        let Some(nile) = reference::column("nile.csv", 0) else { return };
        let found = pettitt(&nile).expect("a test");
        assert_eq!((found.at, found.k), (28, 1617.0));
        assert!((found.p / 3.591_022_176_936_292_7e-7 - 1.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn by_hand() {
        // U(t) = sum of sign(x_i - x_j) over i <= t < j: -2, -4, -2 for 1 1 2 2.
        let found = pettitt(&[1.0, 1.0, 2.0, 2.0]).expect("a test");
        assert_eq!((found.at, found.k), (2, 4.0));
        assert_eq!(pettitt(&[5.0; 9]).map(|found| (found.k, found.p)), Some((0.0, 1.0)));
        assert_eq!((pettitt(&[1.0]), pettitt(&[1.0, f64::NAN])), (None, None));
    }
}
