//! How many independent events a tail is: late wake-ups come in groups, one stall makes many.
//!
//! Runs estimator of the extremal index (Smith and Weissman 1994): exceedances closer together
//! than a gap belong to one cluster; theta = clusters / exceedances; n_eff = theta n.

use crate::Sample;

/// On-time periods that separate two clusters.
pub const GAP_PERIODS: u64 = 10;

/// Clusters among exceedances: groups separated by more than [`GAP_PERIODS`] periods.
pub fn clusters(times_ns: impl IntoIterator<Item = u64>, period_ns: u64) -> u64 {
    let mut times: Vec<u64> = times_ns.into_iter().collect();
    times.sort_unstable();
    let gap = period_ns.saturating_mul(GAP_PERIODS);
    let breaks = times.windows(2).filter(|pair| pair[1] - pair[0] > gap).count() as u64;
    if times.is_empty() { 0 } else { breaks + 1 }
}

/// Starts of the groups among ascending times: groups are separated by more than the gap.
pub fn starts(times_ns: impl IntoIterator<Item = u64>, gap_ns: u64) -> Vec<u64> {
    let (mut starts, mut last) = (Vec::new(), None);
    for time in times_ns {
        if last.is_none_or(|last| time.saturating_sub(last) > gap_ns) {
            starts.push(time);
        }
        last = Some(time);
    }
    starts
}

/// Extremal index at the level of the largest samples, in (0, 1]. 1 when there are none.
pub fn extremal_index(top: &[Sample], period_ns: u64) -> f64 {
    if top.is_empty() {
        return 1.0;
    }
    clusters(top.iter().map(|sample| sample.due_ns), period_ns) as f64 / top.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stall_is_one_cluster() {
        let ms = 1_000_000;
        assert_eq!(clusters([], ms), 0);
        assert_eq!(clusters([5 * ms], ms), 1);
        assert_eq!(clusters((0..13).map(|i| i * ms), ms), 1);
        assert_eq!(clusters([0, 10 * ms, 21 * ms], ms), 2);
        assert_eq!(starts([0, 10 * ms, 21 * ms, 21 * ms], 10 * ms), [0, 21 * ms]);
        let top: Vec<_> = [0, 1, 2, 50].map(|i| Sample { due_ns: i * ms, latency_ns: 9 }).into();
        assert_eq!(extremal_index(&top, ms), 0.5);
        assert_eq!(extremal_index(&[], ms), 1.0);
    }
}
