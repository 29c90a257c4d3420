//! Samples that depend on each other: what they are worth, how they cluster, corrections for many
//! tests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::binomial::{Random, normal_both_tails};
use crate::{Sample, moments};

// How many independent events a tail is: late wake-ups come in groups, one stall makes many.
//
// Runs estimator of the extremal index (Smith and Weissman 1994): exceedances closer together
// than a gap belong to one cluster; theta = clusters / exceedances; n_eff = theta n.

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

// Do events come at a steady rate, or in episodes? Under a steady rate their times are uniform,
// given how many there are: pairs closer than a distance are counted over many distances, and
// ranked among those of uniform times (an exact Monte Carlo test, as Besag and Diggle 1977).

/// Most events used, of more a random part: a part of a steady rate is steady.
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
pub fn dispersion_of(times_ns: &[u64], length_ns: u64, seed: u64) -> Option<Dispersion> {
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

// The extremal index: how many of the exceedances of a level are news, the rest being company.
//
// Two estimators that look at it from different sides: that of intervals, which needs no gap to be
// chosen (Ferro and Segers, J. R. Stat. Soc. B 65, 2003), and that of runs as a check on it (Smith
// and Weissman 1994; `cluster` has it for wake-ups).

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

// Several questions asked of the same data: p values adjusted after Holm (1979), with weights
// where some questions matter more than others (his section 4).
//
// The chance of even one false answer stays below the level, whatever depends on what.

/// The adjusted p values, in the order given.
pub fn adjust(p: &[f64]) -> Vec<f64> {
    weighted(&p.iter().map(|&p| (p, 1.0)).collect::<Vec<_>>(), 0.0)
}

/// The same of p values with weights above 0. A question may first use its weight's share of the
/// level; what is answered leaves its share to the others. `spare`: weight of questions that were
/// asked and could not be tested.
pub fn weighted(p: &[(f64, f64)], spare: f64) -> Vec<f64> {
    let by_weight = |at: usize| p[at].0 / p[at].1;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| by_weight(a).total_cmp(&by_weight(b)));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let left = order[rank..].iter().map(|&at| p[at].1).sum::<f64>() + spare;
        largest = largest.max((by_weight(index) * left).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

// Long-run variance: how far the sum of a series that depends on its own past may be off, and
// what a share is worth in independent trials.
//
// Batch means (Flegal and Jones, Annals of Statistics 38, 2010) over every size of 1, 2, 4, ...
// blocks that leaves eight batches, the bias of the larger sizes taken off as the lugsail window
// does (Vats and Flegal, Biometrika 109, 2022), and Geyer's initial monotone sequence; the largest
// of all these variances counts. Few batches widen it by Student's t (Korn and Graubard 1998).

/// Fewest batches of a size of more than one block.
const BATCHES_MIN: usize = 8;

/// Most batches used for the autocorrelation.
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
pub fn long_run_of(mut batches: Vec<f64>, confidence: f64) -> Option<LongRun> {
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
            let time = moments::correlation_time(&batches).unwrap_or(1.0);
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
pub struct EffectiveShare {
    pub share: f64,
    /// Independent trials that bound the share as far, at most as many as there were.
    pub n_eff: f64,
    /// Correlation times that were seen.
    pub times: f64,
    pub blocks: usize,
}

impl EffectiveShare {
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
        let long_run = long_run_of(deviations, confidence)?;
        let trials = n as f64;
        let worth = share * (1.0 - share) * trials * trials / long_run.variance;
        let n_eff = if worth.is_finite() { worth.clamp(1.0, trials) } else { trials };
        Some(Self { share, n_eff, times: long_run.times, blocks: count })
    }

    /// Whether dependence shorter than a part of the run was seen often enough to be estimated, if
    /// the run were so many times as long.
    pub fn is_estimable(&self, times: f64) -> bool {
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

#[cfg(test)]
mod dispersion_tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    fn alarms(make: impl Fn(&mut Random) -> Vec<u64>) -> usize {
        let p = |seed| {
            dispersion_of(&make(&mut Random::new(seed)), 10 * HOUR, seed).map_or(1.0, |of| of.p)
        };
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
        assert_eq!(
            (dispersion_of(&[], 9, 1), dispersion_of(&[3], 9, 1), dispersion_of(&[3, 4], 0, 1)),
            (None, None, None)
        );
        assert_eq!(close_pairs(&[0.0, 0.1, 0.25, 0.9], 0.2), 2);
        // Ten in one of many blocks: (10² (1 - 1/B)) / (B - 1) / (10 / B) = 10.
        let bunch = dispersion_of(&[5; 10], 1000, 1).expect("two at least");
        assert!((bunch.index - 10.0).abs() < 1e-9 && bunch.p < 0.002, "{bunch:?}");
        // Two within 1 % of the time: 2 % of pairs are as close, five scales look there.
        let pair = dispersion_of(&[5000, 5099], 10_000, 1).expect("two");
        assert!((0.01..0.2).contains(&pair.p), "{pair:?}");
    }
}

#[cfg(test)]
mod extremal_tests {
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
        let mut random = Random::new(4);
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

#[cfg(test)]
mod holm_tests {
    use super::*;

    #[test]
    fn reference_values() {
        let adjusted = adjust(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-15, "{got} {want}");
        }
        assert!(adjust(&[]).is_empty());
        assert_eq!(adjust(&[0.7, 0.9]), [1.0, 1.0]);
    }

    #[test]
    fn weights_by_hand() {
        // 0.03/0.9 = 0.0333 and 0.01/0.1 = 0.1: the first is tested at 0.9, the second at all.
        let close = |got: Vec<f64>, want: &[f64]| {
            got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12)
        };
        assert!(close(weighted(&[(0.03, 0.9), (0.04, 0.1)], 0.0), &[0.1 / 3.0, 0.04]));
        // What is not answered leaves nothing.
        assert!(close(weighted(&[(0.3, 0.9), (0.01, 0.1)], 0.0), &[0.3, 0.1]));
        // Four more of the kind that could not be tested.
        assert!(close(weighted(&[(0.01, 1.0)], 4.0), &[0.05]));
    }
}

#[cfg(test)]
mod long_run_tests {
    use super::*;
    use crate::binomial::Random;

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
                let variance = long_run_of(values, 0.95).expect("a variance").variance;
                ratio += variance / (n as f64 * (1.0 + phi) / (1.0 - phi)) / 40.0;
            }
            // The largest of several estimates: above the truth, never twice and a half of it.
            assert!((1.1..2.5).contains(&ratio), "{phi}: {ratio}");
        }
    }

    #[test]
    fn bunched_events_are_worth_less() {
        let even = [(10, 1000); 40];
        let worth = EffectiveShare::of(even.into_iter(), 0.95).expect("a worth");
        assert_eq!((worth.n_eff, worth.times, worth.is_estimable(1.0)), (40_000.0, 40.0, true));
        let mut bunched = [(0, 1000); 40];
        bunched[20..24].fill((100, 1000));
        let worth = EffectiveShare::of(bunched.into_iter(), 0.95).expect("a worth");
        assert!(
            worth.n_eff < 60.0 && !worth.is_estimable(1.0) && worth.is_estimable(5.0),
            "{worth:?}"
        );
        assert_eq!(EffectiveShare::of([(5, 1000)].into_iter(), 0.95), None);
        assert_eq!(EffectiveShare::of([(0, 1000), (0, 1000)].into_iter(), 0.95), None);
        assert_eq!(EffectiveShare::of([(9, 9), (9, 9)].into_iter(), 0.95), None);
    }
}
