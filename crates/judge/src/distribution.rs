//! The distribution of what was measured, in the numbers that tables of latency show: moments up to
//! kurtosis, and P² estimates beside the histogram's own quantiles. Shown, and never decided by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_record::{
    Run,
    run::{Second, Thread},
};
use rtproof_stats::{
    Bins, Histogram, Layout, Moments,
    moments::{Shape, hard_bounds},
    quantile::{P2, Q},
};

const SECOND_NS: u64 = 1_000_000_000;

/// Quantiles estimated by P²: those of older tables.
const P2_OF: [Q; 5] = Q::TABLE;

/// Samples beyond which there are no P² estimates: tables made with them are of a few thousand.
const P2_MAX: u64 = 1 << 17;

/// The distribution of the samples of a CPU, or of all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// CPU; null: all together.
    pub cpu: Option<u32>,
    pub n: u64,
    /// Mean; null: no sample.
    pub mean_ns: Option<f64>,
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
    /// P² estimates beside the histogram's quantiles; empty: too few samples, or too many.
    pub p2: Vec<Estimated>,
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
    let each: Vec<Distribution> = run
        .threads
        .iter()
        .map(|thread| of_threads(std::slice::from_ref(thread)))
        .map(|(cpu, of)| Distribution { cpu, ..of })
        .collect();
    let all = of_threads(&run.threads).1;
    if each.len() < 2 { vec![all] } else { std::iter::once(all).chain(each).collect() }
}

/// Of some threads, and the CPU of the first.
fn of_threads(threads: &[Thread]) -> (Option<u32>, Distribution) {
    let (mut moments, mut wake) = (Moments::default(), Histogram::new(Layout::FINE));
    for thread in threads {
        moments.merge(&thread.totals.wake);
        wake.merge(&thread.wake);
    }
    let n = moments.count();
    let bounds = hard_bounds(n);
    let median = wake.value_at_rank(Q::P50.rank(wake.total()));
    let of = Distribution {
        cpu: None,
        n,
        mean_ns: moments.mean(),
        sd_ns: moments.sd(),
        cv: moments.cv(),
        spread: median.and_then(|ns| moments.spread(ns)),
        shape: Shape::of(&moments).or_else(|| Shape::of_bins(&Bins::of(&wake))),
        skewness_max: bounds.map(|bounds| bounds.0),
        kurtosis_max: bounds.map(|bounds| bounds.1),
        p2: p2(threads, n, &wake),
    };
    (threads.first().map(|thread| thread.info.cpu), of)
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

// The mean latency over time, as tables and pictures of averages show it: of each stretch, of all
// so far (cumulative), and of the last few stretches (moving).

/// Stretches at most: as many as a picture has columns.
const ROWS_MAX: u64 = 300;

/// Averages of all CPUs together over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Averages {
    /// Length of a stretch: whole seconds, so many that there are 300 stretches at most.
    pub width_ns: u64,
    /// Window of the moving average: the larger of a tenth of the run and three stretches.
    pub window_ns: u64,
    /// Stretches, in order of time; those without a sample are left out.
    pub rows: Vec<AverageRow>,
}

/// Averages of the latency of one stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AverageRow {
    /// Start, nanoseconds after the first wake-up.
    pub from_ns: u64,
    pub n: u64,
    pub mean_ns: f64,
    /// Mean of all samples up to the end of the stretch.
    pub cumulative_ns: f64,
    /// Mean of the samples of the window that ends with the stretch; null: it is not full yet.
    pub moving_ns: Option<f64>,
}

impl Averages {
    pub fn of(run: &Run) -> Self {
        let seconds = || run.threads.iter().flat_map(|thread| &thread.seconds);
        let Some(end_ns) = seconds().map(|second| second.to_ns).max() else {
            return Self::default();
        };
        let width_ns = end_ns.div_ceil(ROWS_MAX).div_ceil(SECOND_NS).max(1) * SECOND_NS;
        let len = end_ns.div_ceil(width_ns).max(1) as usize;
        let window = (len / 10).max(3);
        let mut sums = vec![(0_u64, 0_u128); len];
        for second in seconds() {
            let (n, sum) = &mut sums[((second.from_ns / width_ns) as usize).min(len - 1)];
            *n = n.saturating_add(second.totals.wake.count());
            *sum = sum.saturating_add(second.totals.wake.sum());
        }
        Self { width_ns, window_ns: width_ns * window as u64, rows: rows(&sums, width_ns, window) }
    }
}

fn rows(sums: &[(u64, u128)], width_ns: u64, window: usize) -> Vec<AverageRow> {
    let add = |all: (u64, u128), of: &(u64, u128)| {
        (all.0.saturating_add(of.0), all.1.saturating_add(of.1))
    };
    let mean = |(n, sum): (u64, u128)| (n > 0).then(|| sum as f64 / n as f64);
    let mut so_far = (0, 0);
    let mut rows = Vec::new();
    for (i, of) in sums.iter().enumerate() {
        so_far = add(so_far, of);
        let (Some(mean_ns), Some(cumulative_ns)) = (mean(*of), mean(so_far)) else { continue };
        let last = (i + 1).checked_sub(window).map(|from| &sums[from..=i]);
        let moving_ns = last.and_then(|last| mean(last.iter().fold((0, 0), add)));
        let from_ns = i as u64 * width_ns;
        rows.push(AverageRow { from_ns, n: of.0, mean_ns, cumulative_ns, moving_ns });
    }
    rows
}

// How samples lie about their mean and about a nominal value, exact from their power sums.

/// Count, mean, two kinds of deviation, extremes; nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySpread {
    pub n: u64,
    /// What they should be: the period for intervals, 0 for lateness; null: there is no such value.
    pub nominal_ns: Option<u64>,
    /// Mean; null: no sample.
    pub mean_ns: Option<f64>,
    /// Standard deviation about the mean (n - 1); null: fewer than two samples.
    pub sd_ns: Option<f64>,
    /// Root of the mean square deviation from the nominal value; null: there is none.
    pub rms_ns: Option<f64>,
    /// Smallest; null: no sample.
    pub min_ns: Option<u64>,
    /// Largest; null: no sample.
    pub max_ns: Option<u64>,
}

impl LatencySpread {
    /// Of samples, about a nominal value.
    pub fn of(moments: &Moments, nominal_ns: Option<u64>) -> Self {
        Self {
            n: moments.count(),
            nominal_ns,
            mean_ns: moments.mean(),
            sd_ns: moments.sd(),
            rms_ns: nominal_ns.and_then(|nominal_ns| rms(moments, nominal_ns)),
            min_ns: moments.min(),
            max_ns: moments.max(),
        }
    }

    /// Coefficient of variation: sd / mean.
    pub fn cv(&self) -> Option<f64> {
        Some(self.sd_ns? / self.mean_ns.filter(|&mean| mean > 0.0)?)
    }

    /// (max - min) / `median_ns`.
    pub fn range_over(&self, median_ns: Option<u64>) -> Option<f64> {
        let median_ns = median_ns.filter(|&median| median > 0)?;
        Some((self.max_ns? - self.min_ns?) as f64 / median_ns as f64)
    }
}

/// The sums fit: squares up to 2^107 after 2^43 samples of an hour, times two.
fn rms(moments: &Moments, nominal_ns: u64) -> Option<f64> {
    let n = moments.count();
    if n == 0 {
        return None;
    }
    let (sum, sum2, _) = moments.power_sums();
    let nominal = u128::from(nominal_ns);
    let exact = nominal
        .checked_mul(nominal)
        .and_then(|square| square.checked_mul(u128::from(n)))
        .and_then(|squares| squares.checked_add(sum2))
        .zip(nominal.checked_mul(sum).and_then(|product| product.checked_mul(2)))
        .map(|(all, twice)| all.saturating_sub(twice) as f64);
    let about = || {
        let (mean, nominal) = (sum as f64 / n as f64, nominal as f64);
        let variance = moments.sd().map_or(0.0, |sd| sd * sd * (n - 1) as f64);
        variance + (mean - nominal) * (mean - nominal) * n as f64
    };
    Some((exact.unwrap_or_else(about) / n as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use rtproof_record::BudgetClass;

    use super::*;
    use crate::testing;

    #[test]
    fn all_and_each_and_of_one_cpu_once() {
        // One stall of 13 wake-ups on CPU 0, single ones on CPU 1.
        let stall = (0..13).map(|i| (0, 5000 + i, 800_000 - i * 50_000));
        let single = (0..13).map(|i| (1, 1000 + i * 4400, 400_000));
        let run = testing::run(BudgetClass::Soft, 2, 60, &stall.chain(single).collect::<Vec<_>>());
        let found = of_run(&run);
        assert_eq!(
            found.iter().map(|of| (of.cpu, of.n)).collect::<Vec<_>>(),
            [(None, 120_000), (Some(0), 60_000), (Some(1), 60_000)]
        );
        let [_, zero, _] = &found[..] else { panic!("{found:?}") };
        let shape = zero.shape.expect("a shape");
        assert!(shape.g1 > 10.0 && shape.kurtosis > 100.0 && !shape.is_estimate);
        assert!(shape.kurtosis < zero.kurtosis_max.expect("a bound"));
        let alone = of_run(&testing::run(BudgetClass::Soft, 1, 2, &[]));
        let [alone] = &alone[..] else { panic!("{alone:?}") };
        assert_eq!((alone.cpu, alone.n), (None, 2000));
    }

    #[test]
    fn estimates_are_given_beside_the_histogram() {
        let late: Vec<_> = (0..2000).map(|i| (0, i * 5, 50_000 + i)).collect();
        let run = testing::run(BudgetClass::Soft, 1, 10, &late);
        let found = of_run(&run);
        let p2 = &found[0].p2;
        assert_eq!(p2.iter().map(|of| of.q).collect::<Vec<_>>(), P2_OF);
        for of in p2 {
            let own = of.histogram_ns.expect("enough") as f64;
            assert!(of.p2_ns > 0.2 * own && of.p2_ns < 5.0 * own, "{of:?}");
            let error = of.error.expect("an error");
            assert!((own * (1.0 + error) - of.p2_ns).abs() < 1e-6 * own, "{of:?}");
        }
        let few = of_run(&testing::run(BudgetClass::Soft, 1, 1, &[]));
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
        let mut run = testing::run(BudgetClass::Soft, 1, 1, &[]);
        run.threads.clear();
        assert_eq!(of_run(&run), [Distribution::default()]);
    }
}

#[cfg(test)]
mod averages_tests {
    use rtproof_record::BudgetClass;

    use super::*;
    use crate::testing;

    #[test]
    fn averages_are_of_samples_and_not_of_means() {
        let rows = rows(&[(1, 10), (3, 90), (0, 0), (2, 20), (4, 40)], SECOND_NS, 3);
        let found: Vec<_> =
            rows.iter().map(|row| (row.mean_ns, row.cumulative_ns, row.moving_ns)).collect();
        assert_eq!(
            found,
            [
                (10.0, 10.0, None),
                (30.0, 25.0, None),
                (10.0, 20.0, Some(22.0)),
                (10.0, 16.0, Some(10.0)),
            ]
        );
        assert_eq!(rows[2].from_ns, 3 * SECOND_NS);
    }

    #[test]
    fn a_run_has_a_row_a_second_and_nothing_has_none() {
        let run = testing::run(BudgetClass::Soft, 2, 20, &[]);
        let found = Averages::of(&run);
        assert_eq!((found.width_ns, found.window_ns), (SECOND_NS, 3 * SECOND_NS));
        assert_eq!(found.rows.len(), 20);
        assert!(found.rows.iter().all(|row| (row.cumulative_ns / row.mean_ns - 1.0).abs() < 0.1));
        let mut none = run;
        none.threads.clear();
        assert_eq!(Averages::of(&none), Averages::default());
    }
}

#[cfg(test)]
mod spread_tests {
    use super::*;

    fn moments(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| {
            moments.push(value);
        });
        moments
    }

    #[test]
    fn one_interval_has_an_rms_and_no_sd() {
        // The last row of S3: n 1, mean 1035, "SD" 35.
        let spread = LatencySpread::of(&moments(&[1_035_000]), Some(1_000_000));
        assert_eq!((spread.n, spread.mean_ns, spread.sd_ns), (1, Some(1_035_000.0), None));
        assert_eq!(spread.rms_ns, Some(35_000.0));
        assert_eq!(LatencySpread::of(&moments(&[7]), None).rms_ns, None);
        assert_eq!(
            LatencySpread::of(&moments(&[]), Some(1)),
            LatencySpread { nominal_ns: Some(1), ..LatencySpread::default() }
        );
    }

    #[test]
    fn rms_is_sd_and_bias_together() {
        let spread = LatencySpread::of(&moments(&[9, 11, 13]), Some(10));
        let rms = spread.rms_ns.unwrap();
        assert!((rms - (11.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{rms}");
        let late = LatencySpread::of(&moments(&[3, 4]), Some(0));
        assert_eq!(late.rms_ns, Some(12.5_f64.sqrt()));
        assert_eq!(spread.cv(), Some(2.0 / 11.0));
        assert_eq!((spread.range_over(Some(8)), spread.range_over(Some(0))), (Some(0.5), None));
    }

    #[test]
    fn sums_beyond_128_bits_are_still_reported() {
        let big = Moments::from_parts(
            4,
            (u64::MAX, u64::MAX),
            (4 * u128::from(u64::MAX), u128::MAX),
            None,
        );
        let rms = LatencySpread::of(&big, Some(u64::MAX)).rms_ns.unwrap();
        assert!(rms.is_finite() && rms >= 0.0);
    }
}
