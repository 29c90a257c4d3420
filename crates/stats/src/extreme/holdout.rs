//! A prediction that is put to the test: the level predicted from the first half of the exposure,
//! and how many clusters of the second half exceed it (after Arcaro and others, RTSS 2020).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{gpd, tail::Peak};
use crate::binomial;

/// Fewest clusters over the threshold in the first half.
const CLUSTERS_MIN: usize = 50;
/// Clusters over the threshold that are fitted.
const CLUSTERS: usize = 200;

/// What became of the prediction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Holdout {
    /// Level that was predicted to be exceeded by `expected` clusters of the second half.
    pub level_ns: f64,
    /// Clusters of the second half over the threshold.
    pub of: u64,
    /// Clusters that were to exceed the level.
    pub expected: f64,
    pub exceeded: u64,
    /// Probability of as many or more, if the prediction is right.
    pub p: f64,
}

/// Fits the clusters of the first half of the exposure and counts in the second. `share`: of the
/// clusters over the threshold, how many are to exceed the level, e.g. 0.05. `None` with fewer than
/// 50 over the threshold in the first half, or none in the second.
pub fn check(peaks: &[Peak], exposure_ns: u64, share: f64) -> Option<Holdout> {
    let half = exposure_ns / 2;
    let (first, second): (Vec<&Peak>, Vec<&Peak>) = peaks.iter().partition(|p| p.at_ns < half);
    let mut values: Vec<f64> = first.iter().map(|peak| peak.latency_ns as f64).collect();
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    let threshold = *values.get(CLUSTERS.min(values.len().saturating_sub(1)))?;
    let excesses: Vec<f64> =
        values.iter().filter(|&&x| x > threshold).map(|x| x - threshold).collect();
    if excesses.len() < CLUSTERS_MIN {
        return None;
    }
    let gpd = gpd::fit(&excesses)?.gpd;
    let level_ns = threshold + gpd.exceeded_once_in(1.0 / share);
    let over = |level: f64| second.iter().filter(|peak| peak.latency_ns as f64 > level).count();
    let (of, exceeded) = (over(threshold) as u64, over(level_ns) as u64);
    (of > 0).then(|| Holdout {
        level_ns,
        of,
        expected: of as f64 * share,
        exceeded,
        p: binomial::tail(exceeded, of, share),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A run of an hour; the second half is `worse` times the first.
    fn run(seed: u64, worse: f64) -> Option<Holdout> {
        let mut random = Random::new(seed);
        let peaks: Vec<Peak> = (0..600_u64)
            .map(|i| {
                let scale = if i < 300 { 1.0 } else { worse };
                let latency_ns = 20_000.0 + 3000.0 * scale * random.exponential();
                Peak { at_ns: i * 6_000_000_000, latency_ns: latency_ns as u64 }
            })
            .collect();
        check(&peaks, 3_600_000_000_000, 0.05)
    }

    #[test]
    fn what_was_predicted_comes_and_what_gets_worse_is_told() {
        let alarms = (0..200).filter(|&seed| run(seed, 1.0).expect("a check").p < 0.01).count();
        // The fit's own error is not in the binomial: some more than one in a hundred.
        assert!(alarms <= 14, "{alarms} of 200");
        let found = (0..50).filter(|&seed| run(seed, 2.0).expect("a check").p < 0.01).count();
        assert!(found >= 45, "{found} of 50");
        assert_eq!(check(&[], 10, 0.05), None);
    }
}
