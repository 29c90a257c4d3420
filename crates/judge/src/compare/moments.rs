//! Mean, standard deviation, skewness and kurtosis of the wake-ups that were measured.
//!
//! Conventions: sd with n - 1; skewness m3 / m2^1.5; kurtosis m4 / m2^2, which is 3 of a normal
//! distribution. Both of the last two count outliers more than anything else: k of them among n
//! give about sqrt(n / k) and n / k.

use rtproof_stats::Bin;

use super::side::Side;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Shape {
    pub(super) n: u64,
    pub(super) mean: Option<f64>,
    pub(super) sd: Option<f64>,
    pub(super) skewness: Option<f64>,
    pub(super) kurtosis: Option<f64>,
}

/// Of all threads of all runs, and whether mean and sd come from exact sums. Where not, the mean is
/// that of the threads, weighted: a tool's own holds samples that its histogram has no row for.
pub(super) fn of(sides: &[Side]) -> (Shape, bool) {
    let mut shape = cells(sides);
    let threads = || sides.iter().flat_map(|side| &side.threads);
    let mut sums = rtproof_stats::Moments::default();
    for thread in threads() {
        let Some(moments) = &thread.moments else {
            shape.mean = weighted(sides).or(shape.mean);
            return (shape, false);
        };
        sums.merge(moments);
    }
    (shape.mean, shape.sd) = (sums.mean(), sums.sd());
    (shape, sums.count() > 0)
}

/// Mean of the threads' means; `None` where one has none.
fn weighted(sides: &[Side]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for thread in sides.iter().flat_map(|side| &side.threads) {
        let n = thread.wake.total() as f64;
        sum += thread.mean_ns? * n;
        count += n;
    }
    (count > 0.0).then(|| sum / count)
}

/// Two passes over the cells: no power of a large number is subtracted from another.
fn cells(sides: &[Side]) -> Shape {
    let cells = || {
        sides.iter().flat_map(|side| {
            let value = |bin: &Bin| match side.rounds_down {
                true => bin.low_ns as f64,
                false => f64::midpoint(bin.low_ns as f64, bin.high_ns as f64),
            };
            side.threads.iter().flat_map(move |thread| {
                thread.wake.iter().map(move |bin| (value(bin), bin.n as f64))
            })
        })
    };
    let n: u64 = sides.iter().fold(0, |sum, side| sum.saturating_add(side.sampled()));
    if n == 0 {
        return Shape::default();
    }
    let count = n as f64;
    let mean = cells().map(|(x, n)| x * n).sum::<f64>() / count;
    let centred = |power: i32| cells().map(|(x, n)| n * (x - mean).powi(power)).sum::<f64>();
    let (m2, m3, m4) = (centred(2) / count, centred(3) / count, centred(4) / count);
    let spread = m2 > 0.0;
    Shape {
        n,
        mean: Some(mean),
        sd: (n > 1).then(|| (m2 * count / (count - 1.0)).sqrt()),
        skewness: spread.then(|| m3 / m2.powf(1.5)),
        kurtosis: spread.then(|| m4 / (m2 * m2)),
    }
}
