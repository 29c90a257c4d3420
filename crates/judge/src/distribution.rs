//! The distribution of what was measured, in the numbers that tables of latency show: moments up to
//! kurtosis, P² estimates beside the histogram's own quantiles, and what the samples are worth in
//! independent ones. Shown, and never decided by: see docs/statistics.md.

use std::collections::BTreeMap;

use rtproof_record::{
    Run,
    run::{Second, Thread},
};
use rtproof_stats::{
    Bins, Histogram, Layout, Moments,
    cluster::{self, GAP_PERIODS},
    extremal,
    long_run::{self, BLOCKS_MIN, TIMES_MIN},
    p2::P2,
    quantile::Q,
    shape::{Shape, hard_bounds},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECOND_NS: u64 = 1_000_000_000;
/// Quantiles estimated by P²: those of older tables.
const P2_OF: [Q; 5] = Q::TABLE;
/// Samples beyond which there are no P² estimates: tables made with them are of a few thousand.
const P2_MAX: u64 = 1 << 17;
/// The error is widened for few batches so that 1.96 of it on either side cover 95 %.
const ONE_SIDED: f64 = 0.975;

/// The distribution of the samples of a CPU, or of all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// CPU; null: all together.
    pub cpu: Option<u32>,
    pub n: u64,
    /// Mean; null: no sample.
    pub mean_ns: Option<f64>,
    /// Standard error of the mean, from the means of the seconds and how long they depend on each
    /// other; null: fewer than twenty seconds, or fewer than twenty correlation times.
    pub mean_error_ns: Option<f64>,
    /// What the samples are worth in independent ones, for their mean; null as before.
    pub mean_n_eff: Option<u64>,
    /// Standard deviation about the mean (n - 1); null: fewer than two samples.
    pub sd_ns: Option<f64>,
    /// Coefficient of variation: sd / mean.
    pub cv: Option<f64>,
    /// (max - min) / median.
    pub spread: Option<f64>,
    /// Skewness and kurtosis; null: all samples are equal, or there is none.
    pub shape: Option<Shape>,
    /// The largest |g1| that n values can have, whatever they are.
    pub skewness_max: Option<f64>,
    /// The largest g2 + 3 that n values can have.
    pub kurtosis_max: Option<f64>,
    /// How the largest samples are bunched; null: too few of them.
    pub extremal: Option<Extremal>,
    /// P² estimates beside the histogram's quantiles; empty: too few samples, or too many.
    pub p2: Vec<Estimated>,
}

/// The extremal index at the level of the largest samples kept: how many of them are news, the rest
/// being company. 1: they come one by one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extremal {
    /// CPU that it is of: the one whose largest samples are most bunched.
    pub cpu: u32,
    /// Samples at or above this level.
    pub level_ns: u64,
    pub of: u64,
    /// Groups among them, ten on-time periods apart.
    pub clusters: u64,
    /// Estimate by runs: groups over samples.
    pub runs: f64,
    /// Estimate by intervals (Ferro and Segers); null: fewer than two samples, or no gap.
    pub intervals: Option<f64>,
}

/// What P² makes of a quantile, and what the histogram has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimated {
    pub q: Q,
    /// P²: an estimate without an error, from the cells of each second in order of time.
    pub p2_ns: f64,
    /// The histogram's own, upper edge of a bucket at most 0.8 % wide; null: too few samples.
    pub histogram_ns: Option<u64>,
    /// How far P² is off: (P² - histogram) / histogram; null: too few samples, or 0.
    pub error: Option<f64>,
}

/// All together, and each CPU where there are several.
pub fn of_run(run: &Run) -> Vec<Distribution> {
    let period_ns = run.options.period_ns;
    let each: Vec<Distribution> = run
        .threads
        .iter()
        .map(|thread| of_threads(std::slice::from_ref(thread), period_ns))
        .map(|(cpu, of)| Distribution { cpu, ..of })
        .collect();
    let all = of_threads(&run.threads, period_ns).1;
    if each.len() < 2 { vec![all] } else { std::iter::once(all).chain(each).collect() }
}

/// Of some threads, and the CPU of the first.
fn of_threads(threads: &[Thread], period_ns: u64) -> (Option<u32>, Distribution) {
    let (mut moments, mut wake) = (Moments::default(), Histogram::new(Layout::FINE));
    for thread in threads {
        moments.merge(&thread.totals.wake);
        wake.merge(&thread.wake);
    }
    let n = moments.count();
    let bounds = hard_bounds(n);
    let error = mean_error(threads, &moments);
    let median = wake.value_at_rank(Q::P50.rank(wake.total()));
    let of = Distribution {
        cpu: None,
        n,
        mean_ns: moments.mean(),
        mean_error_ns: error.map(|error| error.0),
        mean_n_eff: error.map(|error| error.1),
        sd_ns: moments.sd(),
        cv: moments.cv(),
        spread: median.and_then(|ns| moments.spread(ns)),
        shape: Shape::of(&moments).or_else(|| Shape::of_bins(&Bins::of(&wake))),
        skewness_max: bounds.map(|bounds| bounds.0),
        kurtosis_max: bounds.map(|bounds| bounds.1),
        extremal: threads
            .iter()
            .filter_map(|thread| extremal_of(thread, period_ns))
            .min_by(|a, b| a.runs.total_cmp(&b.runs)),
        p2: p2(threads, n, &wake),
    };
    (threads.first().map(|thread| thread.info.cpu), of)
}

/// Standard error of the mean, and what the samples are worth for it. CPUs measured in the same
/// second count as one: what strikes one may strike all.
fn mean_error(threads: &[Thread], all: &Moments) -> Option<(f64, u64)> {
    let mut seconds: BTreeMap<u64, Moments> = BTreeMap::new();
    for second in threads.iter().flat_map(|thread| &thread.seconds) {
        seconds.entry(second.from_ns / SECOND_NS).or_default().merge(&second.totals.wake);
    }
    // The last second is seldom whole.
    let most = seconds.values().map(Moments::count).max()?;
    let whole = seconds.values().filter(|second| second.count() >= most / 2);
    let means: Vec<f64> = whole.filter_map(Moments::mean).collect();
    if means.len() < BLOCKS_MIN {
        return None;
    }
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let of = long_run::of(means.iter().map(|m| m - mean).collect(), ONE_SIDED)?;
    if of.times < TIMES_MIN {
        return None;
    }
    let error = of.variance.sqrt() / count;
    let sd = all.sd()?;
    let worth = if error > 0.0 { (sd / error).powi(2) } else { f64::INFINITY };
    // A float beyond 64 bits becomes the largest number.
    Some((error, (worth as u64).clamp(1, all.count())))
}

fn extremal_of(thread: &Thread, period_ns: u64) -> Option<Extremal> {
    let level_ns = thread.top.iter().map(|sample| sample.latency_ns).min()?;
    let mut times: Vec<u64> =
        thread.top.iter().map(|sample| sample.due_ns / period_ns.max(1)).collect();
    times.sort_unstable();
    let of = times.len() as u64;
    (of >= 2).then(|| Extremal {
        cpu: thread.info.cpu,
        level_ns,
        of,
        clusters: cluster::clusters(times.iter().copied(), 1),
        runs: extremal::runs(&times, GAP_PERIODS).unwrap_or(1.0),
        intervals: extremal::intervals(&times),
    })
}

/// P² of the samples as far as the record has them: second by second, each in the middle of its
/// cell, the cells of a second mixed.
fn p2(threads: &[Thread], n: u64, wake: &Histogram) -> Vec<Estimated> {
    if n > P2_MAX {
        return Vec::new();
    }
    let mut estimators = P2_OF.map(|q| P2::new(q.value()));
    let mut seconds: Vec<&Second> = threads.iter().flat_map(|thread| &thread.seconds).collect();
    seconds.sort_by_key(|second| second.from_ns);
    // The cells of a damaged record may hold more than its sums say.
    let mut room = P2_MAX as usize;
    for second in seconds {
        let values = mixed(second, room);
        room -= values.len();
        for value in values {
            estimators.iter_mut().for_each(|p2| p2.push(value));
        }
    }
    let of = |(q, p2): (Q, &P2)| {
        let n = wake.total();
        let histogram_ns = wake.value_at_rank(q.rank(n)).filter(|_| q.is_carried_by(n));
        let p2_ns = p2.estimate()?.value;
        let own = histogram_ns.filter(|&ns| ns > 0).map(|ns| ns as f64);
        let error = own.map(|own| (p2_ns - own) / own);
        Some(Estimated { q, p2_ns, histogram_ns, error })
    };
    P2_OF.into_iter().zip(&estimators).filter_map(of).collect()
}

/// The samples of a second in an order without a trend: steps round a circle that no number of
/// cells shares. `room` of them at most.
fn mixed(second: &Second, room: usize) -> Vec<f64> {
    let layout = Layout::COARSE;
    let mut values = Vec::new();
    for &(cell, n) in &second.wake {
        // A cell outside the grid was refused when the record was read.
        let cell = usize::from(cell).min(layout.len() - 1);
        let middle = f64::midpoint(layout.lower(cell) as f64, layout.upper(cell) as f64);
        let left = room - values.len();
        values.resize(values.len() + usize::try_from(n).unwrap_or(left).min(left), middle);
    }
    let n = values.len();
    let golden = (n as f64 * 0.618_033_988_749_895) as usize;
    let step = (golden..).find(|&step| step > 0 && gcd(step, n) == 1).unwrap_or(1);
    (0..n).map(|i| values[i * step % n]).collect()
}

const fn gcd(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use rtproof_record::Class;

    use super::*;
    use crate::testing;

    #[test]
    fn all_and_each_and_of_one_cpu_once() {
        // One stall of 13 wake-ups on CPU 0, single ones on CPU 1.
        let stall = (0..13).map(|i| (0, 5000 + i, 800_000 - i * 50_000));
        let single = (0..13).map(|i| (1, 1000 + i * 4400, 400_000));
        let run = testing::run(Class::Soft, 2, 60, &stall.chain(single).collect::<Vec<_>>());
        let found = of_run(&run);
        assert_eq!(
            found.iter().map(|of| (of.cpu, of.n)).collect::<Vec<_>>(),
            [(None, 120_000), (Some(0), 60_000), (Some(1), 60_000)]
        );
        let [all, zero, one] = &found[..] else { panic!("{found:?}") };
        let shape = zero.shape.expect("a shape");
        assert!(shape.g1 > 10.0 && shape.kurtosis > 100.0 && !shape.is_estimate);
        assert!(shape.kurtosis < zero.kurtosis_max.expect("a bound"));
        assert!(zero.mean_n_eff.expect("worth") < 6000, "one stall: {zero:?}");
        assert_eq!(all.extremal.map(|of| of.cpu), zero.extremal.map(|of| of.cpu));
        assert!(zero.mean_error_ns.expect("an error") > one.mean_error_ns.expect("an error"));
        let alone = of_run(&testing::run(Class::Soft, 1, 2, &[]));
        let [alone] = &alone[..] else { panic!("{alone:?}") };
        assert_eq!((alone.cpu, alone.mean_error_ns, alone.n), (None, None, 2000));
    }

    #[test]
    fn estimates_stand_beside_the_histogram() {
        let late: Vec<_> = (0..2000).map(|i| (0, i * 5, 50_000 + i)).collect();
        let run = testing::run(Class::Soft, 1, 10, &late);
        let found = of_run(&run);
        let p2 = &found[0].p2;
        assert_eq!(p2.iter().map(|of| of.q).collect::<Vec<_>>(), P2_OF);
        for of in p2 {
            let own = of.histogram_ns.expect("enough") as f64;
            assert!(of.p2_ns > 0.2 * own && of.p2_ns < 5.0 * own, "{of:?}");
            let error = of.error.expect("an error");
            assert!((own * (1.0 + error) - of.p2_ns).abs() < 1e-6 * own, "{of:?}");
        }
        let few = of_run(&testing::run(Class::Soft, 1, 1, &[]));
        assert_eq!(few[0].n, 1000);
        assert!(few[0].p2.iter().all(|of| of.histogram_ns.is_some()), "1000 carry p99.9");
        let second = &run.threads[0].seconds[0];
        let mut values = mixed(second, 1000);
        assert!(!values.is_sorted(), "mixed");
        values.sort_unstable_by(f64::total_cmp);
        assert_eq!(values.len() as u64, second.totals.wake.count());
    }

    #[test]
    fn nothing_has_no_distribution() {
        let mut run = testing::run(Class::Soft, 1, 1, &[]);
        run.threads.clear();
        assert_eq!(of_run(&run), [Distribution::default()]);
    }
}
