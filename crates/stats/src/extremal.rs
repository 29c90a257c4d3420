//! The extremal index: how many of the exceedances of a level are news, the rest being company.
//!
//! Two estimators that look at it from different sides: that of intervals, which needs no gap to be
//! chosen (Ferro and Segers, J. R. Stat. Soc. B 65, 2003), and that of runs as a check on it (Smith
//! and Weissman 1994; `cluster` has it for wake-ups).

/// From the times of exceedances, ascending, in steps of the series; in (0, 1]. `None` below two.
pub fn intervals(times: &[u64]) -> Option<f64> {
    let gaps: Vec<f64> =
        times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    let longest = gaps.iter().copied().fold(0.0, f64::max);
    if gaps.is_empty() || longest == 0.0 {
        return None;
    }
    let n = gaps.len() as f64;
    // Where all gaps are short times between and within clusters do not differ.
    let off = if longest <= 2.0 { 0.0 } else { 1.0 };
    let sum: f64 = gaps.iter().map(|gap| gap - off).sum();
    let products: f64 = gaps.iter().map(|gap| (gap - off) * (gap - 2.0 * off)).sum();
    Some((2.0 * sum * sum / (n * products)).min(1.0))
}

/// From runs: an exceedance more than `run` steps after the one before it begins a cluster.
/// `None` of none.
pub fn runs(times: &[u64], run: u64) -> Option<f64> {
    let begun = times.windows(2).filter(|pair| pair[1].saturating_sub(pair[0]) > run).count();
    (!times.is_empty()).then(|| (begun + 1) as f64 / times.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;

    #[test]
    fn reference_values() {
        let Some(days) = reference::column("rain_exceedances_idx_u30.csv", 0) else { return };
        let days: Vec<u64> = days.into_iter().map(|day| day as u64).collect();
        assert_eq!(days.len(), 152);
        let theta = intervals(&days).expect("days");
        assert!((theta - 0.941_939_602_647_233_8).abs() < 1e-13, "{theta}");
        let theta = runs(&days, 1).expect("days");
        assert!((theta - 0.953_947_368_421).abs() < 1e-10, "{theta}");
    }

    #[test]
    fn stalls_of_thirteen_are_one_in_thirteen() {
        let mut random = crate::random::Random::new(4);
        let mut at = 0;
        let stalls = (0..200).map(|_| {
            at += 20 + (random.exponential() * 10_000.0) as u64;
            at
        });
        let times: Vec<u64> = stalls.flat_map(|stall| (0..13).map(move |i| stall + i)).collect();
        let theta = intervals(&times).expect("an index");
        assert!((0.06..0.1).contains(&theta), "{theta}");
        assert_eq!(runs(&times, 10), Some(1.0 / 13.0));
        assert_eq!((intervals(&[5]), runs(&[], 1), runs(&[5], 1)), (None, None, Some(1.0)));
        assert_eq!(intervals(&[5, 5, 5]), None);
        assert_eq!(intervals(&[1, 2, 3, 4]), Some(1.0));
    }
}
