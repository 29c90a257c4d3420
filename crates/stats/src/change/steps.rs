//! Changes of level with their size and probability, in a series whose values may depend on each
//! other: noise with a memory has slow waves, which are no changes.

use super::{levels, noise_sd};
use crate::beta::normal_both_tails;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// First value at the new level.
    pub at: usize,
    /// Mean from the change before it, or the beginning.
    pub before: f64,
    /// Mean up to the next change, or the end.
    pub after: f64,
    /// Probability of such a step by chance, at any of the places it could have been.
    pub p: f64,
}

/// The changes of level. `least_sd`: the noise is never taken for less, because values were rounded
/// before.
pub fn steps(values: &[f64], least_sd: f64) -> Vec<Step> {
    let (sd, memory) = noise(values, least_sd);
    if sd <= 0.0 || !sd.is_finite() {
        return Vec::new();
    }
    let penalty = 3.0 * (values.len().max(2) as f64).ln() * sd * sd * memory;
    let segments = means(values, &levels(values, penalty));
    let n = values.len() as f64;
    let of = |pair: &[Segment]| {
        let (a, b) = (pair[0], pair[1]);
        let worth = |segment: Segment| ((segment.to - segment.from) as f64 / memory).max(1.0);
        let error = sd * (1.0 / worth(a) + 1.0 / worth(b)).sqrt();
        let p = normal_both_tails((b.mean - a.mean) / error) * n;
        Step { at: b.from, before: a.mean, after: b.mean, p: p.min(1.0) }
    };
    segments.windows(2).map(of).collect()
}

/// Standard deviation of the noise, and how many of its values count for one: taken for noise of
/// first order, whose steps over two values are 1 + phi times as large, squared, as those over one.
/// Medians, so that changes of level do not count for it.
fn noise(values: &[f64], least_sd: f64) -> (f64, f64) {
    let one = noise_sd(values);
    let two = {
        let halves = [0, 1].map(|first| values.iter().skip(first).step_by(2).copied());
        let [even, odd] = halves.map(|half| noise_sd(&half.collect::<Vec<f64>>()));
        f64::midpoint(even * even, odd * odd)
    };
    // By one and a half errors of the estimate too much: too little finds changes in waves.
    let margin = 1.5 / (values.len().max(4) as f64).sqrt();
    let phi = if one > 0.0 { (two / (one * one) - 1.0 + margin).clamp(0.0, 0.95) } else { 0.0 };
    ((one / (1.0 - phi).sqrt()).max(least_sd), (1.0 + phi) / (1.0 - phi))
}

#[derive(Clone, Copy)]
struct Segment {
    from: usize,
    to: usize,
    mean: f64,
}

fn means(values: &[f64], changes: &[usize]) -> Vec<Segment> {
    let ends = changes.iter().copied().chain([values.len()]);
    let mut from = 0;
    ends.filter(|&to| to > 0)
        .map(|to| {
            let sum = values[from..to].iter().sum::<f64>();
            let segment = Segment { from, to, mean: sum / (to - from) as f64 };
            from = to;
            segment
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Rows about 0 whose noise has a memory, with a step in the middle.
    fn rows(seed: u64, memory: f64, step: f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut state = 0.0;
        (0..1200)
            .map(|i| {
                state = memory * state + random.normal();
                state + if i < 600 { 0.0 } else { step }
            })
            .collect()
    }

    #[test]
    fn memory_is_no_change() {
        for memory in [0.0, 0.5, 0.8] {
            let is_told =
                |seed: &u64| steps(&rows(*seed, memory, 0.0), 0.0).iter().any(|step| step.p < 0.01);
            let found = (0..40).filter(is_told).count();
            assert!(found <= 3, "memory {memory}: {found} of 40");
        }
    }

    #[test]
    fn a_step_is_found_with_its_size() {
        for seed in 0..20 {
            let found = steps(&rows(seed, 0.5, 6.0), 0.0);
            assert_eq!(found.len(), 1, "{seed}: {found:?}");
            let Step { at, before, after, p } = found[0];
            assert!(at.abs_diff(600) <= 2 && p < 1e-9, "{found:?}");
            assert!((after - before - 6.0).abs() < 0.6, "{found:?}");
        }
        assert!(steps(&[1.0; 50], 0.0).is_empty() && steps(&[], 0.1).is_empty());
        // Rounded to equal values: the least noise keeps a single one from being a level.
        let mut rounded = vec![1.0; 100];
        rounded[40] = 1.02;
        assert!(steps(&rounded, 0.01).is_empty());
        rounded[50..].fill(1.2);
        assert_eq!(steps(&rounded, 0.01).iter().map(|step| step.at).collect::<Vec<_>>(), [50]);
    }
}
