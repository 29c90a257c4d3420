//! Exact power sums of integer latencies: mergeable in any order, bit for bit.
//!
//! Sums of x and x^2 cannot overflow below 2^42 ns and 2^43 samples. Sums of x^3 and x^4 can; they
//! are then marked unusable and higher moments are not reported (statistics.md section 1.1 of the
//! design notes; Terriberry 2007 and Pebay 2008 give the floating-point forms that this replaces).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bins;

/// Count, extremes and power sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moments {
    n: u64,
    min: u64,
    max: u64,
    s1: u128,
    s2: u128,
    s3: u128,
    s4: u128,
    /// x^3 or x^4 did not fit.
    higher_lost: bool,
}

impl Default for Moments {
    fn default() -> Self {
        Self { n: 0, min: u64::MAX, max: 0, s1: 0, s2: 0, s3: 0, s4: 0, higher_lost: false }
    }
}

/// Values up to this are summed to the fourth power without a check: 2^20 ns, a millisecond.
/// 2^80 times 2^47 samples still fits into 127 bits.
const UNCHECKED_MAX: u64 = 1 << 20;

impl Moments {
    /// Adds one value in nanoseconds. Returns whether it is the largest so far.
    #[inline(always)]
    pub fn push(&mut self, value_ns: u64) -> bool {
        self.n += 1;
        // Branches, because new extremes are rare and a store that does not happen costs nothing.
        if value_ns < self.min {
            self.min = value_ns;
        }
        let is_max = value_ns > self.max || self.n == 1;
        if is_max {
            self.max = value_ns;
        }
        self.s1 += u128::from(value_ns);
        if value_ns <= UNCHECKED_MAX {
            // Up to x^3 the powers of such a value fit into 64 bits.
            let x2 = value_ns * value_ns;
            self.s2 += u128::from(x2);
            self.s3 = self.s3.wrapping_add(u128::from(x2 * value_ns));
            self.s4 = self.s4.wrapping_add(u128::from(x2) * u128::from(x2));
        } else {
            self.push_large(value_ns);
        }
        is_max
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn push_large(&mut self, value_ns: u64) {
        let x = u128::from(value_ns);
        self.s2 = self.s2.saturating_add(x * x);
        let x3 = (x * x).checked_mul(x);
        let x4 = x3.and_then(|x3| x3.checked_mul(x));
        self.add_higher(x3, x4);
    }

    fn add_higher(&mut self, x3: Option<u128>, x4: Option<u128>) {
        // Half of the range is left to the values that are added without a check.
        let half = u128::MAX / 2;
        let s3 = x3.and_then(|x3| self.s3.checked_add(x3)).filter(|&s3| s3 <= half);
        let s4 = x4.and_then(|x4| self.s4.checked_add(x4)).filter(|&s4| s4 <= half);
        match (s3, s4) {
            (Some(s3), Some(s4)) if !self.higher_lost => (self.s3, self.s4) = (s3, s4),
            _ => (self.s3, self.s4, self.higher_lost) = (0, 0, true),
        }
    }

    /// Adds the sums of other values.
    pub fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.s1 += other.s1;
        self.s2 = self.s2.saturating_add(other.s2);
        self.higher_lost |= other.higher_lost;
        self.add_higher(Some(other.s3), Some(other.s4));
    }

    pub const fn count(&self) -> u64 {
        self.n
    }

    /// Smallest value, exact; `None`: there are no values.
    pub const fn min(&self) -> Option<u64> {
        if self.n == 0 { None } else { Some(self.min) }
    }

    /// Largest value, exact; `None`: there are no values.
    pub const fn max(&self) -> Option<u64> {
        if self.n == 0 { None } else { Some(self.max) }
    }

    /// Exact: 128 bits do not overflow.
    pub const fn sum(&self) -> u128 {
        self.s1
    }

    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.s1 as f64 / self.n as f64)
    }

    /// Standard deviation about the mean, with n - 1.
    pub fn sd(&self) -> Option<f64> {
        if self.n < 2 {
            return None;
        }
        let n = u128::from(self.n);
        // n s2 - s1^2, exact while it fits into 128 bits.
        let exact = n
            .checked_mul(self.s2)
            .zip(self.s1.checked_mul(self.s1))
            .map(|(a, b)| a.saturating_sub(b) as f64 / self.n as f64);
        let centred = exact.unwrap_or_else(|| {
            let mean = self.s1 as f64 / self.n as f64;
            (self.s2 as f64 - mean * self.s1 as f64).max(0.0)
        });
        Some((centred / (self.n - 1) as f64).sqrt())
    }

    /// The power sums x, x^2, x^3, x^4; the last two are `None` when they did not fit.
    pub const fn power_sums(&self) -> (u128, u128, Option<(u128, u128)>) {
        let higher = if self.higher_lost { None } else { Some((self.s3, self.s4)) };
        (self.s1, self.s2, higher)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// From stored parts; see [`Moments::power_sums`].
    pub fn from_parts(
        n: u64,
        (min, max): (u64, u64),
        (s1, s2): (u128, u128),
        higher: Option<(u128, u128)>,
    ) -> Self {
        if n == 0 {
            return Self::default();
        }
        let (s3, s4) = higher.unwrap_or_default();
        Self { n, min, max, s1, s2, s3, s4, higher_lost: higher.is_none() }
    }
}

// The shape of a distribution from its exact power sums: skewness and kurtosis, each under the
// name of its convention, and the averages that tables of latency show.
//
// Skewness and kurtosis of latencies count outliers: k equal huge ones among n give a kurtosis of
// about n/k. They are shown, and nothing is decided by them.

/// Skewness and kurtosis. Joanes and Gill, The Statistician 47 (1998), for the names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Skewness of the values themselves: m3 / m2^1.5.
    pub g1: f64,
    /// Skewness of what they are a sample of (g1 times sqrt(n (n - 1)) / (n - 2)); `None` below
    /// three values.
    #[serde(rename = "G1")]
    pub g1_sample: Option<f64>,
    /// Excess kurtosis of the values themselves: m4 / m2² - 3. A normal distribution has 0.
    pub g2: f64,
    /// Excess kurtosis of what they are a sample of; `None` below four values.
    #[serde(rename = "G2")]
    pub g2_sample: Option<f64>,
    /// g2 + 3. A normal distribution has 3.
    pub kurtosis: f64,
    /// From cells of a histogram, because the exact sums did not fit.
    pub is_estimate: bool,
}

impl Shape {
    /// Of exact sums. `None` where all values are equal, or the sums of higher powers did not fit:
    /// then [`Shape::of_bins`] has an estimate.
    pub fn of(moments: &Moments) -> Option<Self> {
        let [m2, m3, m4] = central(moments)?;
        Self::from_central(moments.count() as f64, [m2, m3, m4], false)
    }

    /// Of the middles of cells, marked as an estimate.
    pub fn of_bins(bins: &Bins) -> Option<Self> {
        let middle = |low: u64, high: u64| low as f64 + (high - low) as f64 / 2.0;
        let values = || bins.iter().map(|bin| (middle(bin.low_ns, bin.high_ns), bin.n as f64));
        let n = bins.total() as f64;
        let mean = values().map(|(x, k)| x * k).sum::<f64>() / n;
        let sum = |power: i32| values().map(|(x, k)| (x - mean).powi(power) * k).sum::<f64>();
        Self::from_central(n, [sum(2), sum(3), sum(4)], true)
    }

    /// From sums of the powers of deviations.
    pub(crate) fn from_central(n: f64, [s2, s3, s4]: [f64; 3], is_estimate: bool) -> Option<Self> {
        let variance = s2 / n;
        if variance <= 0.0 || !variance.is_finite() {
            return None;
        }
        let g1 = s3 / n / variance.powf(1.5);
        let kurtosis = s4 / n / variance.powi(2);
        let g2 = kurtosis - 3.0;
        let g1_sample = (n > 2.0).then(|| g1 * (n * (n - 1.0)).sqrt() / (n - 2.0));
        let g2_sample =
            (n > 3.0).then(|| (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * g2 + 6.0));
        Some(Self { g1, g1_sample, g2, g2_sample, kurtosis, is_estimate })
    }
}

/// The largest |g1| and g2 + 3 that `n` values can have, whatever they are. `None` below two.
pub fn hard_bounds(n: u64) -> Option<(f64, f64)> {
    let n = n as f64;
    (n >= 2.0).then(|| ((n - 2.0) / (n - 1.0).sqrt(), (n * n - 3.0 * n + 3.0) / (n - 1.0)))
}

/// Sums of the 2nd, 3rd and 4th power of the deviations from the mean.
pub(crate) fn central(moments: &Moments) -> Option<[f64; 3]> {
    let n = u128::from(moments.count());
    let (s1, s2, higher) = moments.power_sums();
    let (s3, s4) = higher?;
    let c = s1.checked_div(n)?;
    // Sums about a whole number near the mean. Terms may wrap round; the results fit, as the sums
    // of the powers themselves did.
    let (c2, c3) = (c.wrapping_mul(c), c.wrapping_mul(c).wrapping_mul(c));
    let times = |factor: u128, power: u128, sum: u128| factor.wrapping_mul(power).wrapping_mul(sum);
    let t2 = s2.wrapping_sub(times(2, c, s1)).wrapping_add(n.wrapping_mul(c2));
    let t3 = s3
        .wrapping_sub(times(3, c, s2))
        .wrapping_add(times(3, c2, s1))
        .wrapping_sub(n.wrapping_mul(c3))
        .cast_signed();
    let t4 = s4
        .wrapping_sub(times(4, c, s3))
        .wrapping_add(times(6, c2, s2))
        .wrapping_sub(times(4, c3, s1))
        .wrapping_add(times(1, c3.wrapping_mul(c), n));
    // What is left to the mean is less than one.
    let d = (s1 - n * c) as f64 / n as f64;
    let (n, t2, t3, t4) = (n as f64, t2 as f64, t3 as f64, t4 as f64);
    Some([
        t2 - n * d * d,
        t3 - 3.0 * d * t2 + 2.0 * n * d.powi(3),
        t4 - 4.0 * d * t3 + 6.0 * d * d * t2 - 3.0 * n * d.powi(4),
    ])
}

impl Moments {
    /// Coefficient of variation: sd / mean.
    pub fn cv(&self) -> Option<f64> {
        self.sd().zip(self.mean()).filter(|&(_, mean)| mean > 0.0).map(|(sd, mean)| sd / mean)
    }

    /// (max - min) / median.
    pub fn spread(&self, median_ns: u64) -> Option<f64> {
        let range = self.max()? - self.min()?;
        (median_ns > 0).then(|| range as f64 / median_ns as f64)
    }
}

/// Averages of a series as it comes: of all so far, and of the last few.
#[derive(Clone, Debug)]
pub struct RunningAverages {
    n: u64,
    sum: f64,
    window: usize,
    last: VecDeque<f64>,
}

impl RunningAverages {
    /// With a moving average of `window` values, at least 1.
    pub fn new(window: usize) -> Self {
        let window = window.max(1);
        Self { n: 0, sum: 0.0, window, last: VecDeque::with_capacity(window) }
    }

    /// Takes a value. Returns the cumulative average, and the moving one once the window is full.
    pub fn push(&mut self, value: f64) -> (f64, Option<f64>) {
        self.n += 1;
        self.sum += value;
        if self.last.len() == self.window {
            self.last.pop_front();
        }
        self.last.push_back(value);
        // Summed anew: what is added and taken away again would leave its rounding behind.
        let moving = self.last.iter().sum::<f64>() / self.window as f64;
        (self.sum / self.n as f64, (self.last.len() == self.window).then_some(moving))
    }
}

// Exact totals of wake-ups: of a second, of a thread, of a run. They add up in any order.

/// Exact sums, of a run or of one second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Latencies of the wake-ups that were measured (wake-up view): n, min, max, power sums.
    pub wake: Moments,
    /// Wake-ups that were due while the thread was still late.
    pub missed: u64,
    /// Sum of the lateness of the missed ones.
    pub missed_sum_ns: u128,
    /// Measured wake-ups later than the budget.
    pub late_sampled: u64,
    /// Missed wake-ups whose lateness was over the budget.
    pub late_missed: u64,
    /// Groups of late wake-ups, separated by at least ten periods without one.
    pub late_clusters: u64,
    /// Wake-ups before their time: a clock or timer fault, counted as 0 ns.
    pub early: u64,
}

impl Totals {
    /// Adds the totals of a later interval or of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.wake.merge(&other.wake);
        self.missed += other.missed;
        self.missed_sum_ns += other.missed_sum_ns;
        self.late_sampled += other.late_sampled;
        self.late_missed += other.late_missed;
        self.late_clusters += other.late_clusters;
        self.early += other.early;
    }

    /// Wake-ups accounted for: sampled and missed.
    pub fn accounted(&self) -> u64 {
        self.wake.count() + self.missed
    }

    /// Late wake-ups, sampled or missed.
    pub fn late(&self) -> u64 {
        self.late_sampled + self.late_missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Moments {
        let mut moments = Moments::default();
        values.into_iter().for_each(|value| {
            moments.push(value);
        });
        moments
    }

    #[test]
    fn numerically_hard_cases_are_exact() {
        // NIST StRD NumAcc1, 3 and 4, scaled to integers: sd 1 and 0.1 about large means.
        assert_eq!(of([10_000_001, 10_000_003, 10_000_002]).sd(), Some(1.0));
        let numacc4 =
            of(std::iter::once(100_000_002).chain((0..1000).map(|i| 100_000_001 + 2 * (i % 2))));
        assert_eq!(numacc4.mean(), Some(100_000_002.0));
        let sd = numacc4.sd().expect("an sd");
        assert!((sd - 1.0).abs() < 1e-12, "{sd}");
    }

    #[test]
    fn merging_is_exact_in_any_order() {
        let values: Vec<u64> = (0..1000).map(|i| i * i * 7919 % 5_000_011).collect();
        let whole = of(values.iter().copied());
        for split in [0, 1, 400, 1000] {
            let (a, b) = values.split_at(split);
            let mut merged = of(b.iter().copied());
            merged.merge(&of(a.iter().copied()));
            assert_eq!(merged, whole);
        }
    }

    #[test]
    fn an_hour_loses_the_fourth_moment_and_nothing_else() {
        let hour = 3_600_000_000_000;
        let moments = of([hour; 1000]);
        assert_eq!(moments.power_sums().2, None);
        assert_eq!((moments.mean(), moments.sd()), (Some(hour as f64), Some(0.0)));
        assert_eq!((moments.min(), moments.max()), (Some(hour), Some(hour)));
        let small = of([3, 5]);
        assert_eq!(small.power_sums(), (8, 34, Some((152, 706))));
    }

    #[test]
    fn nothing_has_no_mean() {
        let none = Moments::default();
        assert_eq!((none.mean(), none.sd(), none.min(), none.max()), (None, None, None, None));
        assert_eq!(of([7]).sd(), None);
    }
}

#[cfg(test)]
mod shape_tests {
    use super::*;
    use crate::reference;

    fn of(values: impl IntoIterator<Item = u64>) -> Moments {
        let mut moments = Moments::default();
        values.into_iter().for_each(|value| {
            moments.push(value);
        });
        moments
    }

    #[track_caller]
    fn close(got: f64, want: f64, relative: f64) {
        assert!((got / want - 1.0).abs() < relative, "got {got}, want {want}");
    }

    #[test]
    fn small_example() {
        let shape = Shape::of(&of([2, 8, 0, 4, 1, 9, 9, 0])).expect("a shape");
        close(shape.g1, 0.265_055_412_269_857_3, 1e-14);
        close(shape.g2, -1.666_001_075_283_851, 1e-14);
        close(shape.g1_sample.expect("enough"), 0.330_582_180_407_974_7, 1e-14);
        close(shape.g2_sample.expect("enough"), -2.098_602_258_096_087, 1e-14);
        assert_eq!((shape.kurtosis - 3.0, shape.is_estimate), (shape.g2, false));
    }

    #[test]
    fn numerically_hard_generators() {
        // NIST StRD NumAcc2, 3 and 4 in tenths: g2 = -1.999 about any offset.
        for offset in [12_u64, 10_000_002, 100_000_002, 1 << 28] {
            let values = (0..1000).map(|i| offset - 1 + 2 * (i % 2));
            let shape = Shape::of(&of(std::iter::once(offset).chain(values))).expect("a shape");
            close(shape.g2, -1.999, 1e-12);
            assert!(shape.g1.abs() < 1e-12);
        }
        let three = Shape::of(&of([10_000_001, 10_000_003, 10_000_002])).expect("a shape");
        close(three.g2, -1.5, 1e-12);
        assert_eq!((three.g1, three.g2_sample), (0.0, None));
    }

    #[test]
    fn digits_of_pi_as_nist_has_them() {
        let mut digits = reference::pi_digits(5000);
        assert_eq!((digits[956], &digits[..5]), (8, [3, 1, 4, 1, 5].as_slice()));
        digits[956] = 3; // the file of NIST has a wrong digit
        let moments = of(digits.iter().map(|&digit| u64::from(digit)));
        close(moments.mean().expect("a mean"), 4.5348, 1e-15);
        close(moments.sd().expect("an sd"), 2.867_339_060_288_71, 1e-14);
    }

    #[test]
    fn speed_of_light() {
        let Some(speeds) = reference::column("michelson_morley_speed.csv", 0) else { return };
        // y = (299000 + Speed) / 1000, in thousandths.
        let moments = of(speeds.iter().map(|&speed| 299_000 + speed as u64));
        close(moments.mean().expect("a mean"), 299_852.4, 1e-15);
        close(moments.sd().expect("an sd"), 79.010_547_819_051, 1e-13);
        let shape = Shape::of(&moments).expect("a shape");
        close(shape.g1, -0.018_259_613_963_112_97, 1e-12);
        close(shape.g2, 0.263_530_532_311_391_6, 1e-12);
        close(shape.g1_sample.expect("enough"), -0.018_538_863_775_218_39, 1e-12);
        close(shape.g2_sample.expect("enough"), 0.339_684_598_420_114_1, 1e-12);
    }

    #[test]
    fn outliers_reach_the_bounds_and_no_more() {
        let (skew, kurtosis) = hard_bounds(5000).expect("bounds");
        assert!((skew - 70.69).abs() < 0.005 && (kurtosis - 4998.0002).abs() < 1e-4);
        let one = Shape::of(&of((0..4999).map(|_| 12_000).chain([9_000_000]))).expect("a shape");
        close(one.g1, skew, 1e-9);
        close(one.kurtosis, kurtosis, 1e-9);
        let five = Shape::of(&of((0..4995).map(|_| 12_000).chain([9_000_000; 5]))).expect("shape");
        close(five.kurtosis, 1000.0, 0.01);
        close(five.g1, 31.6, 0.01);
        assert_eq!((hard_bounds(1), Shape::of(&of([7, 7, 7]))), (None, None));
    }

    #[test]
    fn sums_that_did_not_fit_leave_an_estimate() {
        let hours = (0..40).map(|i| 3_600_000_000_000 + i % 7 * 10_000_000_000);
        let mut histogram = crate::Histogram::new(crate::Layout::FINE);
        let moments = of(hours.inspect(|&ns| histogram.record(ns)));
        assert_eq!(Shape::of(&moments), None);
        let small = of((0..1000_u64).map(|i| 100_000 + i * i % 9973));
        let mut fine = crate::Histogram::new(crate::Layout::FINE);
        (0..1000_u64).for_each(|i| fine.record(100_000 + i * i % 9973));
        let (exact, rough) = (Shape::of(&small), Shape::of_bins(&Bins::of(&fine)));
        let (exact, rough) = exact.zip(rough).expect("shapes");
        assert!((exact.g2 - rough.g2).abs() < 0.05 && rough.is_estimate, "{exact:?} {rough:?}");
        assert!(Shape::of_bins(&Bins::of(&histogram)).is_some());
    }

    #[test]
    fn deviations_are_a_share_of_the_mean_and_the_median() {
        let two = of([990_000, 1_030_000]);
        assert_eq!((two.spread(1_000_000), two.spread(0)), (Some(0.04), None));
        close(two.cv().expect("a cv"), 28_284.271_247 / 1_010_000.0, 1e-9);
        assert_eq!((of([1_035_000]).sd(), of([0, 0]).cv()), (None, None));
    }

    #[test]
    fn averages_as_they_come() {
        let mut averages = RunningAverages::new(3);
        let got: Vec<_> = [3.0, 6.0, 9.0, 30.0].map(|x| averages.push(x)).into();
        assert_eq!(got, [(3.0, None), (4.5, None), (6.0, Some(6.0)), (12.0, Some(15.0))]);
        assert_eq!(RunningAverages::new(0).push(2.0), (2.0, Some(2.0)));
    }
}
