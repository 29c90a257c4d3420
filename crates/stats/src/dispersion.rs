//! Do events come at a steady rate, or in episodes? Under a steady rate their times are uniform,
//! given how many there are: pairs closer than a distance are counted over many distances, and
//! ranked among those of uniform times (an exact Monte Carlo test, as Besag and Diggle 1977).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random::Random;

/// Events that are looked at, of more a random part: a part of a steady rate is steady.
const EVENTS_MAX: usize = 1000;
/// Distances: a half of the time, an eighth, a 32nd, ...
const SCALES: u32 = 10;
/// Events of all samples of chance together, which bounds the time that it takes.
const WORK: usize = 100_000;

/// Whether events come in episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dispersion {
    /// Probability of as many close pairs at a steady rate.
    pub p: f64,
    /// Variance of counts over their mean (index of dispersion), the largest over blocks of a half
    /// to a 4096th of the time: 1 at a steady rate, but for chance.
    pub index: f64,
}

/// Of times between 0 and `length`, in any order; `None` of fewer than two.
pub fn of(times_ns: &[u64], length_ns: u64, seed: u64) -> Option<Dispersion> {
    if times_ns.len() < 2 || length_ns == 0 {
        return None;
    }
    let mut random = Random::new(seed);
    let index = index(times_ns, length_ns);
    let mut times: Vec<f64> = times_ns.iter().map(|&at| at as f64 / length_ns as f64).collect();
    while times.len() > EVENTS_MAX {
        let last = times.len() as u64;
        times.swap_remove(random.below(last) as usize);
    }
    let samples = (WORK / times.len()).clamp(99, 999);
    let rows: Vec<[u64; SCALES as usize]> = (0..=samples)
        .map(|sample| {
            // The first is what was seen.
            if sample > 0 {
                times.iter_mut().for_each(|at| *at = random.unit());
            }
            times.sort_unstable_by(f64::total_cmp);
            std::array::from_fn(|scale| close_pairs(&times, 0.5 / 4.0_f64.powf(scale as f64)))
        })
        .collect();
    Some(Dispersion { p: least_rank(&rows), index })
}

/// Pairs of ascending times not further apart than so much.
fn close_pairs(times: &[f64], distance: f64) -> u64 {
    let (mut first, mut pairs) = (0, 0);
    for (i, &at) in times.iter().enumerate() {
        while at - times[first] > distance {
            first += 1;
        }
        pairs += (i - first) as u64;
    }
    pairs
}

/// Of each row the least share, over columns, of rows with as large an entry; then the share of
/// rows in which that is as small as in the first one.
fn least_rank(rows: &[[u64; SCALES as usize]]) -> f64 {
    let mut least = vec![rows.len(); rows.len()];
    for scale in 0..SCALES as usize {
        let mut column: Vec<u64> = rows.iter().map(|row| row[scale]).collect();
        column.sort_unstable();
        for (row, least) in rows.iter().zip(&mut least) {
            let below = column.partition_point(|&pairs| pairs < row[scale]);
            *least = (*least).min(rows.len() - below);
        }
    }
    let as_small = least.iter().filter(|&&rank| rank <= least[0]).count();
    as_small as f64 / rows.len() as f64
}

/// The largest index of dispersion over blocks, 1 at least.
fn index(times_ns: &[u64], length_ns: u64) -> f64 {
    let of_blocks = |blocks: usize| {
        let mut counts = vec![0_u64; blocks];
        for &at in times_ns {
            let block = u128::from(at) * blocks as u128 / u128::from(length_ns);
            counts[(block as usize).min(blocks - 1)] += 1;
        }
        let mean = times_ns.len() as f64 / blocks as f64;
        let squares: f64 = counts.iter().map(|&n| (n as f64 - mean).powi(2)).sum();
        squares / (blocks - 1) as f64 / mean
    };
    (1..=12).map(|power| of_blocks(1 << power)).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    fn alarms(make: impl Fn(&mut Random) -> Vec<u64>) -> usize {
        let p = |seed| of(&make(&mut Random::new(seed)), 10 * HOUR, seed).map_or(1.0, |of| of.p);
        (1..=200).filter(|&seed| p(seed) <= 0.05).count()
    }

    #[test]
    fn a_steady_rate_passes_and_episodes_do_not() {
        let steady =
            |n: u64| move |random: &mut Random| (0..n).map(|_| random.below(10 * HOUR)).collect();
        for n in [2, 5, 20] {
            // 10 expected; three errors are 9.
            assert!(alarms(steady(n)) <= 19, "{n}: {}", alarms(steady(n)));
        }
        // Five each in episodes of ten minutes.
        let episodes = |random: &mut Random| -> Vec<u64> {
            let starts: Vec<u64> = (0..4).map(|_| random.below(9 * HOUR)).collect();
            (0..20).map(|i| starts[i % 4] + random.below(HOUR / 6)).collect()
        };
        assert!(alarms(episodes) >= 190, "{}", alarms(episodes));
        let drift = |random: &mut Random| -> Vec<u64> {
            (0..60).map(|_| (random.unit().powf(0.4) * (10 * HOUR) as f64) as u64).collect()
        };
        assert!(alarms(drift) >= 150, "{}", alarms(drift));
        let even = |_: &mut Random| (0..20).map(|i| i * HOUR / 2).collect();
        assert_eq!(alarms(even), 0);
    }

    #[test]
    fn by_hand() {
        assert_eq!((of(&[], 9, 1), of(&[3], 9, 1), of(&[3, 4], 0, 1)), (None, None, None));
        assert_eq!(close_pairs(&[0.0, 0.1, 0.25, 0.9], 0.2), 2);
        // Ten in one of many blocks: (10² (1 - 1/B)) / (B - 1) / (10 / B) = 10.
        let bunch = of(&[5; 10], 1000, 1).expect("two at least");
        assert!((bunch.index - 10.0).abs() < 1e-9 && bunch.p < 0.002, "{bunch:?}");
        // Two within 1 % of the time: 2 % of pairs are as close, five scales look there.
        let pair = of(&[5000, 5099], 10_000, 1).expect("two");
        assert!((0.01..0.2).contains(&pair.p), "{pair:?}");
    }
}
