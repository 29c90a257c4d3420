//! The level of latency that a machine would exceed once in an hour, a day, a year of operation,
//! or the reasons why what was measured does not carry such a number.
//!
//! Largest values of clusters over a threshold, a generalised Pareto distribution, its profile
//! likelihood. The threshold is the lowest on a grid over which the distribution fits. Clusters are
//! counted per time, so that no correction for dependence within them is needed: the extremal index
//! is in their number. The interval is that of 99 %, because those of 95 % miss on the optimistic
//! side more often than they should where there are few clusters.

#[cfg(test)]
mod tests;

pub use crate::threshold::{MeasuredPeaks, Peak, RefusalReason, ReturnLevel};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{binomial, gpd, threshold};

/// Clusters that are fitted, tried from the most: each makes a threshold.
const GRID: [usize; 8] = [500, 350, 250, 200, 150, 100, 75, 50];

/// Fewest clusters for a level.
pub const CLUSTERS_MIN: usize = 50;

/// Fewest clusters for a level in a verdict.
pub const CLUSTERS_VERDICT: usize = 100;

/// Confidence of the interval of a level.
pub const CONFIDENCE: f64 = 0.99;

/// Samples of the fitted distribution that stand for chance.
const SAMPLES: u32 = 199;

/// Least p of Anderson and Darling for a threshold to be taken.
const FIT_LEVEL: f64 = 0.05;

/// The level exceeded once in a time of operation, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Tail {
    Level(ReturnLevel),
    /// What was measured does not carry one.
    Refused {
        /// The rules that fired, each with its numbers.
        rules: Vec<RefusalReason>,
    },
}

/// What was fitted, for levels of any time of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    exposure_ns: u64,
    fitted: Option<Fitted>,
    rules: Vec<RefusalReason>,
}

#[derive(Clone, Debug, PartialEq)]
struct Fitted {
    threshold_ns: u64,
    /// In order of time.
    excesses: Vec<f64>,
    fit: gpd::Fit,
    fit_p: f64,
    xi: (Option<f64>, Option<f64>),
    /// How much more the excesses vary over the time than independent ones: 1 at least.
    spread: f64,
    /// Those over thresholds further up.
    higher: Vec<Higher>,
}

/// A fit over a threshold further up.
#[derive(Clone, Debug, PartialEq)]
struct Higher {
    threshold_ns: u64,
    excesses: Vec<f64>,
    fit: gpd::Fit,
}

impl Model {
    /// Fits, and asks what must be asked whatever the time of operation.
    pub fn of(measured: &MeasuredPeaks<'_>) -> Self {
        let mut found: Vec<RefusalReason> = threshold::too_short(measured).into_iter().collect();
        let peaks: Vec<Peak> = measured
            .peaks
            .iter()
            .filter(|peak| peak.latency_ns > measured.complete_ns)
            .copied()
            .collect();
        let model = |fitted, rules| Self { exposure_ns: measured.exposure_ns, fitted, rules };
        let Some(over) = fitted(&peaks, measured) else {
            found.push(RefusalReason::TooFew { clusters: peaks.len() as u64 });
            return model(None, found);
        };
        let times: Vec<u64> = over.times(&peaks);
        found.extend(threshold::not_alike(&over.excesses, &times, measured));
        found.extend(threshold::periodic(&times, measured.sampling_ns));
        found.extend((over.fit_p < FIT_LEVEL).then_some(RefusalReason::NoFit { p: over.fit_p }));
        found.extend(threshold::too_coarse(&over.excesses));
        found.extend(threshold::one_value(&over.excesses, &over.fit));
        model(Some(over), found)
    }

    /// Without a fit: `None` where the time measured is long enough for one. What a short run
    /// would need is refused whatever its clusters say.
    pub fn too_short(measured: &MeasuredPeaks<'_>) -> Option<Self> {
        let rules = vec![threshold::too_short(measured)?];
        Some(Self { exposure_ns: measured.exposure_ns, fitted: None, rules })
    }

    /// The level exceeded once in a time of operation.
    pub fn level(&self, target_ns: u64) -> Tail {
        let mut found = self.rules.clone();
        found.extend(threshold::too_far(self.exposure_ns, target_ns));
        let level = self.fitted.as_ref().and_then(|fitted| {
            let level = fitted.level(self.exposure_ns, target_ns);
            found.extend(threshold::too_wide(&level));
            level.high_ns.is_finite().then_some(level)
        });
        found.sort_by_key(RefusalReason::number);
        match level {
            Some(level) if found.is_empty() => Tail::Level(level),
            _ => Tail::Refused { rules: found },
        }
    }

    /// What the coefficient of variation says of the tail.
    pub fn weight(&self) -> Option<threshold::Weight> {
        threshold::weight(&self.fitted.as_ref()?.excesses)
    }
}

/// The lowest threshold of the grid over which the distribution fits; where it fits over none, that
/// with the largest p. `None` with too few clusters.
fn fitted(peaks: &[Peak], measured: &MeasuredPeaks<'_>) -> Option<Fitted> {
    let mut values: Vec<u64> = peaks.iter().map(|peak| peak.latency_ns).collect();
    values.sort_unstable_by_key(|&value| std::cmp::Reverse(value));
    let mut best: Option<Fitted> = None;
    let most = values.len();
    // With fewer than the grid wants all are taken, over the lowest threshold there is.
    let grid = std::iter::once(most.min(GRID[0])).chain(GRID).filter(|&k| k <= most);
    let mut last = 0;
    for k in grid {
        let threshold_ns = values.get(k).copied().unwrap_or(measured.complete_ns);
        let ties = peaks.iter().filter(|peak| peak.latency_ns > threshold_ns);
        let excesses: Vec<f64> = ties.map(|peak| (peak.latency_ns - threshold_ns) as f64).collect();
        if excesses.len() < CLUSTERS_MIN || excesses.len() == last {
            continue;
        }
        last = excesses.len();
        let Some(fit) = gpd::fit(&excesses) else { continue };
        let mut ascending = excesses.clone();
        ascending.sort_unstable_by(f64::total_cmp);
        let fit_p = gpd::p_value(&ascending, &fit.gpd, SAMPLES, measured.seed);
        if best.as_ref().is_none_or(|best| fit_p > best.fit_p) {
            let (xi, spread, higher) = ((None, None), 1.0, Vec::new());
            best = Some(Fitted { threshold_ns, excesses, fit, fit_p, xi, spread, higher });
        }
        if fit_p >= FIT_LEVEL {
            break;
        }
    }
    best.map(|mut best| {
        best.xi = best.fit.xi_interval(&best.excesses, 0.95);
        let times = best.times(peaks);
        best.spread = threshold::spread(&times, &best.excesses, measured.exposure_ns);
        best.higher = higher(peaks, &values, best.excesses.len());
        best
    })
}

/// Fits over the thresholds that leave a half and a quarter of so many clusters.
fn higher(peaks: &[Peak], descending: &[u64], clusters: usize) -> Vec<Higher> {
    let over = |k: usize| {
        let threshold_ns = *descending.get(k)?;
        let over = peaks.iter().filter(|peak| peak.latency_ns > threshold_ns);
        let excesses: Vec<f64> = over.map(|peak| (peak.latency_ns - threshold_ns) as f64).collect();
        let fit = gpd::fit(&excesses).filter(|_| excesses.len() >= CLUSTERS_MIN)?;
        Some(Higher { threshold_ns, excesses, fit })
    };
    [clusters / 2, clusters / 4].into_iter().filter_map(over).collect()
}

/// Upper end of the interval of the excess that one in `m` exceeds: that of the profile likelihood,
/// or that of an exponential tail where it is higher, because an estimate of a bounded tail is on
/// the optimistic side of where it ends.
fn upper(fit: &gpd::Fit, excesses: &[f64], m: f64, spread: f64) -> Option<f64> {
    let profile = fit.level_interval(excesses, m, CONFIDENCE, spread).1?;
    Some(profile.max(gpd::exponential_upper(excesses, CONFIDENCE, spread) * m.ln()))
}

impl Fitted {
    /// Upper end of the level over which one in `m` clusters comes: the highest of the thresholds.
    fn high_ns(&self, m: f64) -> f64 {
        let of = |threshold_ns: u64, fit, excesses: &[f64]| {
            let m = m * excesses.len() as f64 / self.excesses.len() as f64;
            // Less than one is expected to be above this threshold: the one below has the answer.
            let excess = if m > 1.0 { upper(fit, excesses, m, self.spread) } else { Some(0.0) };
            excess.map_or(f64::INFINITY, |excess| threshold_ns as f64 + excess)
        };
        let first = of(self.threshold_ns, &self.fit, &self.excesses);
        let higher = self.higher.iter();
        let above = higher.filter(|h| m * h.excesses.len() as f64 > self.excesses.len() as f64);
        above.map(|h| of(h.threshold_ns, &h.fit, &h.excesses)).fold(first, f64::max)
    }

    fn times(&self, peaks: &[Peak]) -> Vec<u64> {
        let over = peaks.iter().filter(|peak| peak.latency_ns > self.threshold_ns);
        over.map(|peak| peak.at_ns).collect()
    }

    fn level(&self, exposure_ns: u64, target_ns: u64) -> ReturnLevel {
        let k = self.excesses.len() as f64;
        // So many clusters over the threshold in the time of operation.
        let m = k * target_ns as f64 / exposure_ns.max(1) as f64;
        let threshold = self.threshold_ns as f64;
        // Less than one: the level is the threshold or below it, which was counted.
        let (m, low, high_ns) = match m > 1.0 {
            true => {
                let low = self.fit.level_interval(&self.excesses, m, CONFIDENCE, self.spread).0;
                (m, low, self.high_ns(m))
            }
            false => (1.0, None, threshold),
        };
        ReturnLevel {
            target_ns,
            level_ns: threshold + self.fit.gpd.exceeded_once_in(m),
            low_ns: threshold + low.unwrap_or(0.0),
            high_ns,
            threshold_ns: self.threshold_ns,
            clusters: self.excesses.len() as u64,
            sigma_ns: self.fit.gpd.sigma,
            xi: self.fit.gpd.xi,
            xi_low: self.xi.0,
            xi_high: self.xi.1.unwrap_or(f64::INFINITY),
            fit_p: self.fit_p,
            is_exploratory: self.excesses.len() < CLUSTERS_VERDICT,
        }
    }
}

/// Largest values of groups of samples, ascending in time: a gap of more than `gap_ns` without one
/// ends a group.
pub fn peaks(samples: impl IntoIterator<Item = Peak>, gap_ns: u64) -> Vec<Peak> {
    let mut samples: Vec<Peak> = samples.into_iter().collect();
    samples.sort_unstable_by_key(|peak| (peak.at_ns, peak.latency_ns));
    let mut peaks: Vec<Peak> = Vec::new();
    let mut last_ns = 0;
    for sample in samples {
        match peaks.last_mut() {
            Some(peak) if sample.at_ns - last_ns <= gap_ns => {
                if sample.latency_ns > peak.latency_ns {
                    *peak = sample;
                }
            }
            _ => peaks.push(sample),
        }
        last_ns = sample.at_ns;
    }
    peaks
}

// A prediction that is put to the test: the level predicted from the first half of the exposure,
// and how many clusters of the second half exceed it (after Arcaro and others, RTSS 2020).

/// Clusters over the threshold that are fitted.
const CLUSTERS: usize = 200;

/// Result of the prediction.
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
pub fn check_holdout(peaks: &[Peak], exposure_ns: u64, share: f64) -> Option<Holdout> {
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
mod holdout_tests {
    use super::*;
    use crate::binomial::Random;

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
        check_holdout(&peaks, 3_600_000_000_000, 0.05)
    }

    #[test]
    fn predictions_hold_and_worsening_is_detected() {
        let alarms = (0..200).filter(|&seed| run(seed, 1.0).expect("a check").p < 0.01).count();
        // The fit's own error is not in the binomial: some more than one in a hundred.
        assert!(alarms <= 14, "{alarms} of 200");
        let found = (0..50).filter(|&seed| run(seed, 2.0).expect("a check").p < 0.01).count();
        assert!(found >= 45, "{found} of 50");
        assert_eq!(check_holdout(&[], 10, 0.05), None);
    }
}
