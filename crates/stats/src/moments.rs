//! Exact power sums of integer latencies: mergeable in any order, bit for bit.
//!
//! Sums of x and x^2 cannot overflow below 2^42 ns and 2^43 samples. Sums of x^3 and x^4 can; they
//! are then marked unusable and higher moments are not reported (statistics.md section 1.1 of the
//! design notes; Terriberry 2007 and Pebay 2008 give the floating-point forms that this replaces).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

    /// Smallest value, exact.
    pub const fn min(&self) -> Option<u64> {
        if self.n == 0 { None } else { Some(self.min) }
    }

    /// Largest value, exact.
    pub const fn max(&self) -> Option<u64> {
        if self.n == 0 { None } else { Some(self.max) }
    }

    /// Sum, exact.
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
