//! The threshold above which a tail is fitted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::binomial::{chi_squared_tail, normal_both_tails};
use crate::period::PeriodOptions;
use crate::{dependence, gpd, period};

// Are excesses alike from block to block of time? Tests of halves miss what comes and goes in
// minutes.

/// So many blocks, of long and of short episodes.
const BLOCKS: [usize; 2] = [12, 48];

/// The block of a moment, the first one being the start.
fn block(times_ns: &[u64], i: usize, length_ns: u64, blocks: usize) -> usize {
    let from_ns = times_ns.first().copied().unwrap_or(0);
    let at = u128::from(times_ns[i] - from_ns) * blocks as u128 / u128::from(length_ns.max(1));
    (at as usize).min(blocks - 1)
}

/// Probability of ranks as different between blocks of time, of excesses that have no memory, for
/// both numbers of blocks (Kruskal and Wallis 1952; blocks with fewer than five are left out). 1
/// where there is nothing to compare.
fn alike(times_ns: &[u64], excesses: &[f64], length_ns: u64) -> f64 {
    let of_blocks = |blocks: usize| {
        let mut groups = vec![Vec::new(); blocks];
        for (i, &y) in excesses.iter().enumerate() {
            groups[block(times_ns, i, length_ns, blocks)].push(y);
        }
        kruskal_wallis(groups)
    };
    let least = BLOCKS.into_iter().map(of_blocks).fold(1.0, f64::min);
    (least * BLOCKS.len() as f64).min(1.0)
}

fn kruskal_wallis(mut groups: Vec<Vec<f64>>) -> f64 {
    groups.retain(|group| group.len() >= 5);
    let mut all = groups.concat();
    all.sort_unstable_by(f64::total_cmp);
    let n = all.len() as f64;
    if groups.len() < 2 {
        return 1.0;
    }
    // The middle rank of those that tie.
    let rank = |y: f64| {
        let (below, up_to) = (all.partition_point(|&x| x < y), all.partition_point(|&x| x <= y));
        (below + up_to + 1) as f64 / 2.0
    };
    let of_group = |group: &Vec<f64>| {
        let sum: f64 = group.iter().map(|&y| rank(y)).sum();
        sum * sum / group.len() as f64
    };
    let h = 12.0 / (n * (n + 1.0)) * groups.iter().map(of_group).sum::<f64>() - 3.0 * (n + 1.0);
    chi_squared_tail(h, groups.len() as u32 - 1)
}

/// Variance of the sums of excesses over blocks of time, against that of independent excesses that
/// come at a steady rate (a compound Poisson process); 1 at least.
pub(crate) fn spread(times_ns: &[u64], excesses: &[f64], length_ns: u64) -> f64 {
    let squares: f64 = excesses.iter().map(|y| y * y).sum();
    let of_blocks = |blocks: usize| {
        let mut sums = vec![0.0; blocks];
        for (i, &y) in excesses.iter().enumerate() {
            sums[block(times_ns, i, length_ns, blocks)] += y;
        }
        let mean = sums.iter().sum::<f64>() / blocks as f64;
        let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>();
        variance * blocks as f64 / (blocks - 1) as f64 / squares.max(f64::MIN_POSITIVE)
    };
    BLOCKS.into_iter().map(of_blocks).fold(1.0, f64::max)
}

// The coefficient of variation of excesses: 1 if and only if the tail is exponential (del
// Castillo, Daoudi and Lockhart 2014; Abella and others 2017). Above: heavier. Below: lighter, and
// an exponential tail is on the safe side.

/// What the coefficient says of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Light,
    /// Not distinguishable from exponential.
    Exponential,
    Heavy,
}

/// sd / mean of excesses (n - 1). `None` below two.
pub fn coefficient(excesses: &[f64]) -> Option<f64> {
    let n = excesses.len() as f64;
    let mean = excesses.iter().sum::<f64>() / n;
    let squares = excesses.iter().map(|y| (y - mean).powi(2)).sum::<f64>();
    (excesses.len() > 1 && mean > 0.0).then(|| (squares / (n - 1.0)).sqrt() / mean)
}

/// Where 95 % of the coefficients of `n` exponential excesses lie, n from 50: between simulated
/// values, and the normal limit beyond 500.
pub fn band(n: usize) -> (f64, f64) {
    // (1 / sqrt(n), (1 - low) sqrt(n), (high - 1) sqrt(n))
    const TABLE: [(f64, f64, f64); 5] = [
        (0.0, 1.96, 1.96),
        (0.044_721, 1.856, 2.035),
        (0.070_711, 1.796, 2.022),
        (0.1, 1.74, 2.02),
        (0.141_421, 1.676, 1.853),
    ];
    let s = 1.0 / (n.max(50) as f64).sqrt();
    let at = TABLE.iter().position(|row| row.0 >= s).unwrap_or(TABLE.len() - 1).max(1);
    let ((s0, low0, high0), (s1, low1, high1)) = (TABLE[at - 1], TABLE[at]);
    let part = (s - s0) / (s1 - s0);
    let (low, high) = (low0 + part * (low1 - low0), high0 + part * (high1 - high0));
    (1.0 - low * s, 1.0 + high * s)
}

/// The verdict of the coefficient; `None` below 50 excesses.
pub fn weight(excesses: &[f64]) -> Option<Weight> {
    let (low, high) = band(excesses.len());
    let cv = coefficient(excesses).filter(|_| excesses.len() >= 50)?;
    Some(match cv {
        cv if cv < low => Weight::Light,
        cv if cv > high => Weight::Heavy,
        _ => Weight::Exponential,
    })
}

// Are the largest values of clusters alike from beginning to end, and without memory? Two tests:
// the two halves in time (Kolmogorov and Smirnov), and runs above and below the median (Wald and
// Wolfowitz 1940).

/// Probability that two samples of one distribution differ as much in shape (asymptotic, with the
/// correction of Stephens 1970; ties make it larger, never smaller). 1 where one is empty.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    };
    let (a, b) = (sorted(a), sorted(b));
    let (n, m) = (a.len() as f64, b.len() as f64);
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let (mut i, mut j, mut largest) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        i += a[i..].iter().take_while(|&&x| x <= value).count();
        j += b[j..].iter().take_while(|&&x| x <= value).count();
        largest = largest.max((i as f64 / n - j as f64 / m).abs());
    }
    let root = (n * m / (n + m)).sqrt();
    let x = (root + 0.12 + 0.11 / root) * largest;
    if x < 0.2 {
        return 1.0;
    }
    let terms = (1..=100).map(|k| {
        let k = f64::from(k);
        let sign = if k % 2.0 == 1.0 { 2.0 } else { -2.0 };
        sign * (-2.0 * k * k * x * x).exp()
    });
    terms.sum::<f64>().clamp(0.0, 1.0)
}

/// The same for the two halves of a series.
pub fn halves_probability(values: &[f64]) -> f64 {
    let (first, second) = values.split_at(values.len() / 2);
    kolmogorov_smirnov(first, second)
}

/// Probability of as few or as many runs above and below the median, if order meant nothing
/// (normal approximation). Values at the median are left out. 1 where nothing can be said.
pub fn runs(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    if n < 10 {
        return 1.0;
    }
    let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    let sides: Vec<bool> = values.iter().filter(|&&x| x != median).map(|&x| x > median).collect();
    let above = sides.iter().filter(|&&side| side).count() as f64;
    let below = sides.len() as f64 - above;
    let total = above + below;
    let runs = 1 + sides.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let expected = 2.0 * above * below / total + 1.0;
    let variance = (expected - 1.0) * (expected - 2.0) / (total - 1.0);
    if variance <= 0.0 || !variance.is_finite() {
        return 1.0;
    }
    normal_both_tails((runs as f64 - expected) / variance.sqrt())
}

// What is measured of a tail, and the level that follows from it.

/// A cluster of late wake-ups: its largest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// When it was due, nanoseconds after the origin of the run.
    pub at_ns: u64,
    pub latency_ns: u64,
}

/// Peaks of a measurement, and what the choice of a threshold needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredPeaks<'a> {
    /// Largest values of clusters, ascending in time, complete above `complete_ns`.
    pub peaks: &'a [Peak],
    /// Lowest threshold allowed: above it no cluster is missing, and not more than one sample in a
    /// hundred lies.
    pub complete_ns: u64,
    pub exposure_ns: u64,
    pub sampling_ns: u64,
    /// The longest period of anything that is known to disturb; `None`: nothing is known, and 15
    /// minutes are taken, for system management interrupts come every 14 minutes on some machines.
    pub longest_period_ns: Option<u64>,
    /// Seed of the samples that stand for chance.
    pub seed: u64,
}

/// A level exceeded once in a time of operation, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReturnLevel {
    /// The time of operation.
    pub target_ns: u64,
    pub level_ns: f64,
    /// Lower end of the 99 % profile-likelihood interval; the threshold where it has none above.
    pub low_ns: f64,
    pub high_ns: f64,
    /// Threshold over which was fitted.
    pub threshold_ns: u64,
    pub clusters: u64,
    /// Scale of their excesses.
    pub sigma_ns: f64,
    /// Shape, with its 95 % interval.
    pub xi: f64,
    /// Lower end; `None` where there is none.
    pub xi_low: Option<f64>,
    pub xi_high: f64,
    /// Probability of a fit as bad by chance (Anderson-Darling, parametric bootstrap).
    pub fit_p: f64,
    /// Fewer than a hundred clusters: shown, never part of a verdict.
    pub is_exploratory: bool,
}

// The nine reasons to refuse to follow a tail, each with its numbers and its words.

/// Level of the tests of rules 2 and 3.
const TEST_LEVEL: f64 = 0.01;

/// Largest upper end of the level's interval, in levels. It is so large that hardly a tail is
/// refused for it: to show only those whose upper end came out low would be to choose.
const RATIO_MAX: f64 = 100.0;

/// Times of the exposure that may be looked ahead.
const TIMES_MAX: f64 = 10.0;

const DISTINCT_MIN: usize = 20;

/// Largest move of the shape without the largest value, in its standard errors.
const ERRORS_MAX: f64 = 2.0;

/// The longest period of a disturbance, where none is known: 15 minutes.
const LONGEST_NS: u64 = 900_000_000_000;

/// Such periods that must be measured.
const PERIODS: u64 = 3;

/// A reason to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "rule")]
pub enum RefusalReason {
    /// 1: fewer than fifty clusters.
    TooFew {
        /// How many there are.
        clusters: u64,
    },
    /// 2: the clusters differ from half to half or block to block, or depend on each other.
    NotAlike {
        /// Probability of halves as different (Kolmogorov-Smirnov).
        halves_p: f64,
        /// Probability of such runs above and below the median.
        runs_p: f64,
        /// Probability of blocks of time as different (Kruskal-Wallis).
        #[serde(default = "one")]
        blocks_p: f64,
        /// Probability of as many clusters close to each other in time.
        #[serde(default = "one")]
        episodes_p: f64,
    },
    /// 3: the clusters follow a period.
    Periodic {
        period_ns: f64,
        /// Clusters that follow it.
        count: u64,
        /// Probability of such a period by chance.
        p: f64,
    },
    /// 4: the distribution fits over no threshold.
    NoFit {
        /// The largest probability of a fit as bad by chance.
        p: f64,
    },
    /// 5: the tail is too heavy, or the level too uncertain.
    TooWide {
        /// Upper end of the 95 % interval of the shape; `None`: there is none.
        xi_high: Option<f64>,
        /// Upper end of the level's interval in levels; `None`: not requested, or there is none.
        ratio: Option<f64>,
    },
    /// 6: too far ahead.
    TooFar {
        /// The requested time, in times measured.
        times: f64,
    },
    /// 7: the values are too coarse.
    TooCoarse { distinct: u64 },
    /// 8: one value makes the tail.
    OneValue {
        /// How far the shape moves without it, in standard errors.
        errors: f64,
    },
    /// 9: too short for what comes seldom.
    TooShort { exposure_ns: u64, needed_ns: u64 },
}

impl RefusalReason {
    /// Its number, 1 to 9.
    pub const fn number(&self) -> u8 {
        match self {
            Self::TooFew { .. } => 1,
            Self::NotAlike { .. } => 2,
            Self::Periodic { .. } => 3,
            Self::NoFit { .. } => 4,
            Self::TooWide { .. } => 5,
            Self::TooFar { .. } => 6,
            Self::TooCoarse { .. } => 7,
            Self::OneValue { .. } => 8,
            Self::TooShort { .. } => 9,
        }
    }

    /// What it says, to follow "because".
    pub fn text(&self) -> String {
        match *self {
            Self::TooFew { clusters } => format!("only {clusters} groups of late wake-ups (50)"),
            Self::NotAlike { halves_p, runs_p, blocks_p, episodes_p } => format!(
                "the groups are not alike from beginning to end (halves p = {halves_p:.0e}, \
                 runs p = {runs_p:.0e}, blocks p = {blocks_p:.0e}, episodes p = {episodes_p:.0e})"
            ),
            Self::Periodic { period_ns, count, p } => format!(
                "{count} groups come every {} s (p = {p:.0e}): that is no chance",
                digits(period_ns / 1e9)
            ),
            Self::NoFit { p } => format!("no tail fits over any threshold (p = {p:.3})"),
            Self::TooWide { xi_high, ratio } => match (xi_high, ratio) {
                (_, Some(ratio)) => format!("the level may be {ratio:.0} times as high"),
                (Some(xi), None) => format!("the level has no upper end (xi up to {xi:.2})"),
                (None, None) => "the level has no upper end: any weight of the tail fits".into(),
            },
            Self::TooFar { times } => {
                format!("that is {} times what was measured (10)", digits(times))
            }
            Self::TooCoarse { distinct } => format!("only {distinct} values differ (20)"),
            Self::OneValue { errors } => {
                format!("one value makes the tail ({errors:.1} standard errors without it)")
            }
            Self::TooShort { exposure_ns, needed_ns } => format!(
                "{} min do not show what comes every quarter of an hour or so ({} min)",
                digits(exposure_ns as f64 / 6e10),
                digits(needed_ns as f64 / 6e10)
            ),
        }
    }
}

fn digits(value: f64) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

pub(crate) fn too_short(measured: &MeasuredPeaks<'_>) -> Option<RefusalReason> {
    let longest = measured.longest_period_ns.unwrap_or(0).max(LONGEST_NS);
    let (exposure_ns, needed_ns) = (measured.exposure_ns, longest.saturating_mul(PERIODS));
    (exposure_ns < needed_ns).then_some(RefusalReason::TooShort { exposure_ns, needed_ns })
}

/// Excesses in order of time, with their times.
pub(crate) fn not_alike(
    excesses: &[f64],
    times_ns: &[u64],
    measured: &MeasuredPeaks<'_>,
) -> Option<RefusalReason> {
    let (halves_p, runs_p) = (halves_probability(excesses), runs(excesses));
    let blocks_p = alike(times_ns, excesses, measured.exposure_ns);
    let from_ns = times_ns.first().copied().unwrap_or(0);
    let times: Vec<u64> = times_ns.iter().map(|at| at - from_ns).collect();
    let length_ns = measured.exposure_ns.max(times.last().copied().unwrap_or(0) + 1);
    let episodes_p =
        dependence::dispersion_of(&times, length_ns, measured.seed).map_or(1.0, |found| found.p);
    let least = halves_p.min(runs_p).min(blocks_p).min(episodes_p);
    (least < TEST_LEVEL).then_some(RefusalReason::NotAlike {
        halves_p,
        runs_p,
        blocks_p,
        episodes_p,
    })
}

const fn one() -> f64 {
    1.0
}

pub(crate) fn periodic(times_ns: &[u64], sampling_ns: u64) -> Option<RefusalReason> {
    let ask = PeriodOptions { sampling_ns, shortest_ns: 3 * sampling_ns.max(1), hints_ns: &[] };
    let found = period::search(times_ns, &ask).filter(|found| found.p < TEST_LEVEL)?;
    Some(RefusalReason::Periodic {
        period_ns: found.period_ns,
        count: found.fold.follow,
        p: found.p,
    })
}

pub(crate) fn too_wide(level: &ReturnLevel) -> Option<RefusalReason> {
    let ratio = level.high_ns / level.level_ns;
    let xi_high = level.xi_high.is_finite().then_some(level.xi_high);
    let is_wide = ratio.is_nan() || ratio > RATIO_MAX;
    is_wide.then_some(RefusalReason::TooWide { xi_high, ratio: ratio.is_finite().then_some(ratio) })
}

pub(crate) fn too_far(exposure_ns: u64, target_ns: u64) -> Option<RefusalReason> {
    let times = target_ns as f64 / exposure_ns.max(1) as f64;
    (times > TIMES_MAX).then_some(RefusalReason::TooFar { times })
}

pub(crate) fn too_coarse(excesses: &[f64]) -> Option<RefusalReason> {
    let mut values: Vec<u64> = excesses.iter().map(|&y| y as u64).collect();
    values.sort_unstable();
    values.dedup();
    (values.len() < DISTINCT_MIN)
        .then_some(RefusalReason::TooCoarse { distinct: values.len() as u64 })
}

pub(crate) fn one_value(excesses: &[f64], fit: &gpd::Fit) -> Option<RefusalReason> {
    let largest = (0..excesses.len()).max_by(|&a, &b| excesses[a].total_cmp(&excesses[b]))?;
    let mut others = excesses.to_vec();
    others.remove(largest);
    // Where the curvature gives no error, that of many values: (1 + xi) / sqrt(k).
    let rough = (1.0 + fit.gpd.xi) / (excesses.len() as f64).sqrt();
    let error = fit.covariance(excesses).map_or(rough, |covariance| covariance[1][1].sqrt());
    let errors = gpd::fit(&others).map(|other| (other.gpd.xi - fit.gpd.xi).abs() / error)?;
    (errors > ERRORS_MAX).then_some(RefusalReason::OneValue { errors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::Random;

    const HOUR: u64 = 3_600_000_000_000;

    /// Excesses of an hour; in one of six minutes they are so many times as large.
    fn hour(seed: u64, times: f64) -> (Vec<u64>, Vec<f64>) {
        let mut random = Random::new(seed);
        let mut at: Vec<u64> = (0..300).map(|_| random.below(HOUR)).collect();
        at.sort_unstable();
        let scale = |&at: &u64| if at / (HOUR / 6) % 3 == 1 { times } else { 1.0 };
        let excesses = at.iter().map(|at| scale(at) * random.exponential()).collect();
        (at, excesses)
    }

    #[test]
    fn what_comes_and_goes_in_minutes_is_seen() {
        let p = |times: f64, seed| {
            let (at, excesses) = hour(seed, times);
            alike(&at, &excesses, HOUR)
        };
        let alarms = (0..300).filter(|&seed| p(1.0, seed) < 0.05).count();
        // 15 expected, three errors are 11.
        assert!((2..=26).contains(&alarms), "{alarms}");
        assert!((0..50).all(|seed| p(4.0, seed) < 0.01));
        let spread = |times: f64| {
            let of = |seed| {
                let (at, excesses) = hour(seed, times);
                spread(&at, &excesses, HOUR)
            };
            (0..50).map(of).sum::<f64>() / 50.0
        };
        let (steady, changing) = (spread(1.0), spread(4.0));
        assert!(steady < 1.5 && changing > 3.0, "{steady} {changing}");
    }

    #[test]
    fn by_hand() {
        // Ranks 15 and 40 of 5 each: H = 12 / 110 (45 + 320) - 33 = 6.8182, p = 0.009023.
        let groups = [1.0, 6.0].map(|from| (0..5).map(|i| from + f64::from(i)).collect());
        let p = kruskal_wallis(groups.to_vec());
        assert!((p - 0.009_023).abs() < 1e-6, "{p}");
        assert_eq!((alike(&[], &[], 9), spread(&[], &[], 9)), (1.0, 1.0));
    }
}

#[cfg(test)]
mod cv_tests {
    use super::*;
    use crate::binomial::Random;
    use crate::reference;

    #[test]
    fn reference_values() {
        let Some(mut rain) = reference::column("rain_exceedances_idx_u30.csv", 1) else { return };
        rain.sort_unstable_by(|a, b| b.total_cmp(a));
        let over = |k: usize, u: f64| {
            let excesses: Vec<f64> = rain[..k].iter().map(|mm| mm - u).collect();
            coefficient(&excesses).expect("a number")
        };
        for (got, want) in [
            (over(152, 30.0), 1.182_973_971_968_281_5),
            (over(100, rain[100]), 1.136_646_462_241_043_5),
            (over(50, rain[50]), 1.008_441_168_048_412_9),
        ] {
            assert!((got - want).abs() < 1e-12, "{got} {want}");
        }
    }

    #[test]
    fn the_band_is_that_of_exponential_excesses() {
        for (n, low, high) in
            [(50, 0.763, 1.262), (100, 0.826, 1.202), (200, 0.873, 1.143), (500, 0.917, 1.091)]
        {
            let got = band(n);
            assert!((got.0 - low).abs() < 6e-4 && (got.1 - high).abs() < 6e-4, "{n}: {got:?}");
        }
        let mut random = Random::new(31);
        let outside = (0..2000)
            .filter(|_| {
                let excesses: Vec<f64> = (0..300).map(|_| random.exponential()).collect();
                weight(&excesses) != Some(Weight::Exponential)
            })
            .count();
        assert!((60..140).contains(&outside), "{outside} of 2000, 100 expected");
        let even: Vec<f64> = (1..200).map(f64::from).collect();
        let heavy: Vec<f64> = (0..200).map(|_| (1.5 * random.exponential()).exp()).collect();
        assert_eq!((weight(&even), weight(&heavy)), (Some(Weight::Light), Some(Weight::Heavy)));
        assert_eq!((weight(&even[..49]), coefficient(&[1.0])), (None, None));
    }
}

#[cfg(test)]
mod iid_tests {
    use super::*;
    use crate::binomial::Random;

    #[test]
    fn noise_passes_and_trends_do_not() {
        let mut random = Random::new(41);
        let (mut by_halves, mut by_runs) = (0, 0);
        for _ in 0..400 {
            let noise: Vec<f64> = (0..120).map(|_| random.exponential()).collect();
            by_halves += u32::from(halves_probability(&noise) < 0.01);
            by_runs += u32::from(runs(&noise) < 0.01);
        }
        assert!(by_halves <= 10 && by_runs <= 10, "{by_halves} {by_runs} of 400, 4 expected");
        let step: Vec<f64> =
            (0..120).map(|i| random.exponential() + if i < 60 { 0.0 } else { 1.0 }).collect();
        assert!(halves_probability(&step) < 1e-4, "{}", halves_probability(&step));
        let waves: Vec<f64> = (0..120).map(|i| f64::from(i / 6 % 2) + random.unit()).collect();
        assert!(runs(&waves) < 1e-3 && halves_probability(&waves) > 0.01);
    }

    #[test]
    fn by_hand() {
        // The halves do not overlap at all: D = 1.
        let apart: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(halves_probability(&apart) < 1e-8);
        // scipy.stats.kstwobign.sf((root + 0.12 + 0.11/root) D) with D = 0.3, n = m = 50.
        let shifted: Vec<f64> = (0..50).map(|i| f64::from(i) + 15.5).collect();
        let p = kolmogorov_smirnov(&(0..50).map(f64::from).collect::<Vec<_>>(), &shifted);
        assert!((p - 0.0154).abs() < 0.01, "{p}");
        // 20 above, 20 below, each a run of its own: R = 2, mean 21, variance 9.744.
        assert!((runs(&apart) / 1.158e-9 - 1.0).abs() < 0.02, "{}", runs(&apart));
        assert_eq!((runs(&[1.0; 50]), halves_probability(&[]), runs(&[1.0, 2.0])), (1.0, 1.0, 1.0));
    }
}
