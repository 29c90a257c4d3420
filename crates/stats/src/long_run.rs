//! Long-run variance: how far the sum of a series that depends on its own past may be off, and
//! what a share is worth in independent trials.
//!
//! Batch means (Flegal and Jones, Annals of Statistics 38, 2010) over every size of 1, 2, 4, ...
//! blocks that leaves eight batches, the bias of the larger sizes taken off as the lugsail window
//! does (Vats and Flegal, Biometrika 109, 2022), and Geyer's initial monotone sequence; the largest
//! of all these variances counts. Few batches widen it by Student's t (Korn and Graubard 1998).

use crate::{beta::normal_both_tails, series};

/// Fewest batches of a size of more than one block.
const BATCHES_MIN: usize = 8;
/// Most batches whose autocorrelation is looked at.
const CORRELATED_MAX: usize = 512;
/// Fewest blocks from which dependence can be seen at all.
pub const BLOCKS_MIN: usize = 20;
/// Fewest correlation times: below, the variance is underestimated by an unknown factor.
pub const TIMES_MIN: f64 = 20.0;
/// Fewest independent events of the rarer kind: below, one more would change everything.
pub const EVENTS_MIN: f64 = 5.0;

/// What a sum of blocks in order of time is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongRun {
    /// Variance of the sum, widened so that a normal quantile of it covers.
    pub variance: f64,
    /// Correlation times that the series holds, `BLOCKS_MIN` blocks at least for any claim.
    pub times: f64,
}

/// Of deviations from the mean, one per block. `confidence` is one-sided. `None`: fewer than two.
pub fn of(mut batches: Vec<f64>, confidence: f64) -> Option<LongRun> {
    if batches.len() < 2 {
        return None;
    }
    let z = normal_quantile(confidence);
    let (mut most, mut times, mut before) = (0.0_f64, None, None);
    while before.is_none() || batches.len() >= BATCHES_MIN {
        let count = batches.len() as f64;
        let squares: f64 = batches.iter().map(|sum| sum * sum).sum();
        // Half of one more of the largest: what is rare and long was hardly seen.
        let largest = batches.iter().copied().fold(0.0, f64::max);
        let variance = squares * count / (count - 1.0) + largest * largest / 2.0;
        let less_bias = before.map_or(0.0, |before| 2.0 * variance - before);
        let wider = (student_quantile(z, count - 1.0) / z).powi(2);
        let mut here = variance.max(less_bias) * wider;
        if times.is_none() && batches.len() <= CORRELATED_MAX {
            let time = series::correlation_time(&batches).unwrap_or(1.0);
            here = here.max(variance * wider * time);
            times = Some(count / time);
        }
        most = most.max(here);
        before = Some(variance);
        batches = batches.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
    }
    Some(LongRun { variance: most, times: times.unwrap_or(0.0) })
}

/// What a share of events among dependent trials is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    pub share: f64,
    /// Independent trials that bound the share as far, at most as many as there were.
    pub n_eff: f64,
    /// Correlation times that were seen.
    pub times: f64,
    pub blocks: usize,
}

impl Worth {
    /// Of blocks of (events, trials) in order of time; `confidence` one-sided, for few batches.
    /// `None`: fewer than two blocks, no event, or nothing but events in all of them.
    pub fn of(blocks: impl Iterator<Item = (u64, u64)> + Clone, confidence: f64) -> Option<Self> {
        let blocks = blocks.filter(|&(_, trials)| trials > 0);
        let (events, n) = blocks.clone().fold((0, 0), |(k, n), (events, m)| (k + events, n + m));
        if events == 0 || events >= n {
            return None;
        }
        let share = events as f64 / n as f64;
        let deviations: Vec<f64> = blocks.map(|(k, m)| k as f64 - share * m as f64).collect();
        let count = deviations.len();
        let long_run = of(deviations, confidence)?;
        let trials = n as f64;
        let worth = share * (1.0 - share) * trials * trials / long_run.variance;
        let n_eff = if worth.is_finite() { worth.clamp(1.0, trials) } else { trials };
        Some(Self { share, n_eff, times: long_run.times, blocks: count })
    }

    /// Whether dependence shorter than a part of the run was seen often enough to be estimated, if
    /// the run were so many times as long.
    pub fn is_seen(&self, times: f64) -> bool {
        self.times * times >= TIMES_MIN && self.blocks as f64 * times >= BLOCKS_MIN as f64
    }
}

/// z with P(X <= z) = `confidence` for a standard normal X, above one half.
fn normal_quantile(confidence: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let mid = f64::midpoint(low, high);
        if normal_both_tails(mid) > 2.0 * (1.0 - confidence) { low = mid } else { high = mid }
    }
    // A confidence of one half or less bounds nothing; kept above zero for ratios.
    high.max(1e-6)
}

/// Student's t for the normal quantile z (Abramowitz and Stegun 26.7.5), never below it.
fn student_quantile(z: f64, freedom: f64) -> f64 {
    let (z2, v) = (z * z, freedom);
    let first = z * (z2 + 1.0) / (4.0 * v);
    let second = z * (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / (96.0 * v * v);
    let third = z * (3.0 * z2.powi(3) + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) / (384.0 * v.powi(3));
    z + first + second + third.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn quantiles_of_the_literature() {
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 2e-3, "{got} {want}");
        close(normal_quantile(0.95), 1.644_853_627);
        close(normal_quantile(0.975), 1.959_963_985);
        // scipy.stats.t.ppf
        for (p, freedom, want) in
            [(0.95, 7.0, 1.894_578_6), (0.95, 29.0, 1.699_127), (0.975, 7.0, 2.364_624_3)]
        {
            close(student_quantile(normal_quantile(p), freedom), want);
        }
    }

    /// Values of first order: the variance of the mean of n is (1 + phi) / (1 - phi) / n.
    #[test]
    fn variance_of_a_series_of_first_order() {
        for (phi, n) in [(0.0, 4096), (0.5, 4096), (0.9, 16_384)] {
            let mut random = Random::new(7);
            let mut ratio = 0.0;
            for _ in 0..40 {
                let mut state = 0.0;
                let mut values: Vec<f64> = (0..n)
                    .map(|_| {
                        state = phi * state + f64::sqrt(1.0 - phi * phi) * random.normal();
                        state
                    })
                    .collect();
                let mean = values.iter().sum::<f64>() / n as f64;
                values.iter_mut().for_each(|value| *value -= mean);
                let variance = of(values, 0.95).expect("a variance").variance;
                ratio += variance / (n as f64 * (1.0 + phi) / (1.0 - phi)) / 40.0;
            }
            // The largest of several estimates: above the truth, never twice and a half of it.
            assert!((1.1..2.5).contains(&ratio), "{phi}: {ratio}");
        }
    }

    #[test]
    fn bunched_events_are_worth_less() {
        let even = [(10, 1000); 40];
        let worth = Worth::of(even.into_iter(), 0.95).expect("a worth");
        assert_eq!((worth.n_eff, worth.times, worth.is_seen(1.0)), (40_000.0, 40.0, true));
        let mut bunched = [(0, 1000); 40];
        bunched[20..24].fill((100, 1000));
        let worth = Worth::of(bunched.into_iter(), 0.95).expect("a worth");
        assert!(worth.n_eff < 60.0 && !worth.is_seen(1.0) && worth.is_seen(5.0), "{worth:?}");
        assert_eq!(Worth::of([(5, 1000)].into_iter(), 0.95), None);
        assert_eq!(Worth::of([(0, 1000), (0, 1000)].into_iter(), 0.95), None);
        assert_eq!(Worth::of([(9, 9), (9, 9)].into_iter(), 0.95), None);
    }
}
