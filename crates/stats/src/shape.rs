//! The shape of a distribution from its exact power sums: skewness and kurtosis, each under the
//! name of its convention, and the averages that tables of latency show.
//!
//! Skewness and kurtosis of latencies count outliers: k equal huge ones among n give a kurtosis of
//! about n/k. They are shown, and nothing is decided by them.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bins, Moments};

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
pub struct Averages {
    n: u64,
    sum: f64,
    window: usize,
    last: VecDeque<f64>,
}

impl Averages {
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

#[cfg(test)]
mod tests {
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
        let values: Vec<f64> = digits.into_iter().map(f64::from).collect();
        let r1 = crate::series::autocorrelation(&values, 1).expect("a series");
        close(r1, -3.550_992_872_379_72e-3, 1e-11);
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
        let r1 = crate::series::autocorrelation(&speeds, 1).expect("a series");
        close(r1, 0.535_199_668_621_283, 1e-13);
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
        let mut averages = Averages::new(3);
        let got: Vec<_> = [3.0, 6.0, 9.0, 30.0].map(|x| averages.push(x)).into();
        assert_eq!(got, [(3.0, None), (4.5, None), (6.0, Some(6.0)), (12.0, Some(15.0))]);
        assert_eq!(Averages::new(0).push(2.0), (2.0, Some(2.0)));
    }
}
