//! Quantiles of a histogram, and their range over the tenths of a run.
//!
//! Convention, printed with every report: the q-quantile is the value of rank ceil(q n), shown as
//! the upper edge of its bucket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Histogram;

/// A quantile as a fraction with an exact complement: q = 1 - `above`/`of`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Q {
    /// Parts above the quantile.
    pub above: u64,
    pub of: u64,
}

impl Q {
    pub const P5: Self = Self { above: 19, of: 20 };
    pub const P50: Self = Self { above: 1, of: 2 };
    pub const P95: Self = Self { above: 1, of: 20 };
    pub const P99: Self = Self { above: 1, of: 100 };
    pub const P99_9: Self = Self { above: 1, of: 1_000 };
    /// The quantiles of tables.
    pub const TABLE: [Self; 5] = [Self::P5, Self::P50, Self::P95, Self::P99, Self::P99_9];
    /// The quantiles of a report, p5 to p99.99999.
    pub const REPORT: [Self; 10] = [
        Self::P5,
        Self::P50,
        Self { above: 1, of: 10 },
        Self::P95,
        Self::P99,
        Self::P99_9,
        Self { above: 1, of: 10_000 },
        Self { above: 1, of: 100_000 },
        Self { above: 1, of: 1_000_000 },
        Self { above: 1, of: 10_000_000 },
    ];

    /// q as a number.
    pub fn value(self) -> f64 {
        1.0 - self.above as f64 / self.of as f64
    }

    /// Rank ceil(q n), 1 = smallest; exact.
    pub fn rank(self, n: u64) -> u64 {
        // ceil(n - n above / of) = n - floor(n above / of)
        let above = u128::from(n) * u128::from(self.above) / u128::from(self.of);
        n - u64::try_from(above).unwrap_or(n)
    }

    /// Whether `n` samples carry it: one at least lies beyond it, on the side where fewer lie.
    pub fn is_carried_by(self, n: u64) -> bool {
        let beyond = self.above.min(self.of.saturating_sub(self.above));
        u128::from(n) * u128::from(beyond) >= u128::from(self.of)
    }

    /// Name as the field writes it: `p50`, `p99.9`.
    pub fn name(self) -> String {
        let percent = 100.0 * self.value();
        let decimals = (self.of as f64).log10().ceil() as usize;
        let text = format!("{percent:.*}", decimals.saturating_sub(2));
        format!("p{text}")
    }
}

/// A quantile, and its range over the tenths of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantile {
    pub q: Q,
    /// The value, upper edge of its bucket; `None` with fewer than 1/(1-q) samples, or 1/q of a
    /// quantile below the median.
    pub value_ns: Option<u64>,
    /// Of the tenth of the run in which it is lowest: lower edge of a bucket 3 % wide. A fact, and
    /// no confidence: no interval of one run covers what comes in stretches as long as it. `None`:
    /// ten samples beyond the quantile are not in each tenth.
    #[serde(default)]
    pub tenths_low_ns: Option<u64>,
    /// Of the one in which it is highest, upper edge.
    #[serde(default)]
    pub tenths_high_ns: Option<u64>,
}

/// Samples beyond a quantile that each tenth holds, at least, where its range is shown.
const BEYOND_MIN: u64 = 10;

impl Q {
    /// Value of a histogram, upper edge of its bucket; `None`: too few samples.
    pub fn value_of(self, histogram: &Histogram) -> Option<u64> {
        let n = histogram.total();
        self.is_carried_by(n).then(|| histogram.value_at_rank(self.rank(n))).flatten()
    }

    /// Lowest and highest value over the parts of a run, outer edges of buckets; `None`: one of
    /// them holds too few samples.
    pub fn range_over(self, parts: &[Histogram]) -> Option<(u64, u64)> {
        let of = |part: &Histogram| {
            let n = part.total();
            let rank = self.rank(n);
            let edges = part.lower_at_rank(rank).zip(part.value_at_rank(rank));
            edges.filter(|_| self.is_carried_by(n / BEYOND_MIN))
        };
        parts.iter().map(of).reduce(|a, b| {
            let ((low, high), (other_low, other_high)) = a.zip(b)?;
            Some((low.min(other_low), high.max(other_high)))
        })?
    }
}

// A quantile from five numbers, without keeping samples: P² (Jain and Chlamtac, CACM 28(10),
// 1985).
//
// Only for tables that must stand beside older ones made this way, and marked as an estimate
// there. On a million latencies with one slow wake-up in a hundred its p99 is twelve times too
// high, and two of them cannot be merged: nothing is judged by it. Quantiles proper are in
// `quantile`.

/// Estimate of one quantile by the five markers of the P² algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct P2 {
    p: f64,
    n: u64,
    heights: [f64; 5],
    positions: [f64; 5],
}

/// What P² makes of a quantile: an estimate without an error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Which quantile, 0 to 1.
    pub p: f64,
    /// Values that it saw.
    pub n: u64,
    /// What it came to.
    pub value: f64,
}

impl P2 {
    /// For the p-quantile, 0 < p < 1.
    pub fn new(p: f64) -> Self {
        let p = p.clamp(0.0, 1.0);
        Self { p, n: 0, heights: [0.0; 5], positions: [1.0, 2.0, 3.0, 4.0, 5.0] }
    }

    pub fn push(&mut self, value: f64) {
        if self.n < 5 {
            self.heights[self.n as usize] = value;
            self.n += 1;
            self.heights[..self.n as usize].sort_unstable_by(f64::total_cmp);
            return;
        }
        self.n += 1;
        self.heights[0] = self.heights[0].min(value);
        self.heights[4] = self.heights[4].max(value);
        // The markers above the value move up by one place.
        let above = (1..4).find(|&i| value < self.heights[i]).unwrap_or(4);
        self.positions[above..].iter_mut().for_each(|position| *position += 1.0);
        for marker in 1..4 {
            self.adjust(marker);
        }
    }

    /// Where a marker should be by now.
    fn desired(&self, marker: usize) -> f64 {
        let share = [0.0, self.p / 2.0, self.p, f64::midpoint(1.0, self.p), 1.0][marker];
        1.0 + (self.n - 1) as f64 * share
    }

    fn adjust(&mut self, i: usize) {
        let (n, q) = (self.positions, self.heights);
        let off = self.desired(i) - n[i];
        let step = if off >= 1.0 && n[i + 1] - n[i] > 1.0 {
            1.0
        } else if off <= -1.0 && n[i] - n[i - 1] > 1.0 {
            -1.0
        } else {
            return;
        };
        let up = (n[i] - n[i - 1] + step) * (q[i + 1] - q[i]) / (n[i + 1] - n[i]);
        let down = (n[i + 1] - n[i] - step) * (q[i] - q[i - 1]) / (n[i] - n[i - 1]);
        let parabola = q[i] + step / (n[i + 1] - n[i - 1]) * (up + down);
        self.heights[i] = if q[i - 1] < parabola && parabola < q[i + 1] {
            parabola
        } else {
            let next = if step > 0.0 { i + 1 } else { i - 1 };
            q[i] + step * (q[next] - q[i]) / (n[next] - n[i])
        };
        self.positions[i] += step;
    }

    /// The estimate; `None` below five values.
    pub fn estimate(&self) -> Option<Estimate> {
        (self.n >= 5).then_some(Estimate { p: self.p, n: self.n, value: self.heights[2] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    #[test]
    fn names_and_ranks_are_exact() {
        let names: Vec<_> = Q::REPORT.iter().map(|q| q.name()).collect();
        assert_eq!(names[..7], ["p5", "p50", "p90", "p95", "p99", "p99.9", "p99.99"]);
        assert_eq!(names[9], "p99.99999");
        let ranks = |n| Q::TABLE.map(|q| q.rank(n));
        // numpy.percentile(range(1, n + 1), q, method="inverted_cdf")
        assert_eq!(ranks(1000), [50, 500, 950, 990, 999]);
        assert_eq!(ranks(30), [2, 15, 29, 30, 30]);
        assert_eq!(Q { above: 1, of: 1000 }.rank(1000), 999);
        assert_eq!(Q::P50.rank(5), 3);
        assert_eq!(Q { above: 1, of: 10 }.rank(u64::MAX), u64::MAX - u64::MAX / 10);
    }

    #[test]
    fn a_quantile_of_too_few_samples_is_none() {
        let mut h = Histogram::new(Layout::FINE);
        (1..=100).for_each(|v| h.record(v));
        assert_eq!(Q::P99_9.value_of(&h), None);
        // 20 samples are the fewest of which one lies at or below p5, and one above p95.
        for (n, carried) in [(0, false), (19, false), (20, true), (u64::MAX, true)] {
            assert_eq!([Q::P5, Q::P95].map(|q| q.is_carried_by(n)), [carried; 2], "{n}");
        }
        assert_eq!([Q::P5, Q::P50].map(|q| q.value_of(&h)), [Some(5), Some(50)]);
    }

    #[test]
    fn a_range_is_of_whole_parts() {
        let part = |from: u64| {
            let mut part = Histogram::new(Layout::COARSE);
            (0..200).for_each(|i| part.record(from + i % 10));
            part
        };
        let parts: Vec<Histogram> = (0..10).map(|i| part(5000 + 100 * (7 * i % 10))).collect();
        let (low, high) = Q::P50.range_over(&parts).expect("a range");
        assert!((4850..=5005).contains(&low) && (5905..=6100).contains(&high), "{low} {high}");
        // Two samples lie above p99 in each.
        assert_eq!((Q::P99.range_over(&parts), Q::P95.range_over(&parts).is_some()), (None, true));
        assert!(Q::P5.range_over(&parts).is_some());
        assert_eq!(Q::P50.range_over(&[]), None);
        let with_empty = [part(9000), Histogram::new(Layout::COARSE)];
        assert_eq!(Q::P50.range_over(&with_empty), None);
    }
}

#[cfg(test)]
mod p2_tests {
    use super::*;
    use crate::reference;

    #[test]
    fn the_example_of_the_paper() {
        let Some(values) = reference::column("p2_jain_chlamtac_1985.csv", 0) else { return };
        let mut p2 = P2::new(0.5);
        let third: Vec<f64> = values
            .iter()
            .map(|&value| {
                p2.push(value);
                p2.heights[2]
            })
            .collect();
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got} {want}");
        for (got, want) in third[5..7].iter().zip([0.74, 0.74]) {
            close(*got, want);
        }
        for (got, want) in third[7..10].iter().zip([2.178_333, 4.752_685, 4.752_685]) {
            assert!((got - want).abs() < 1e-6, "{got} {want}");
        }
        let want =
            [0.02, 0.493_895_447_530_863_8, 4.440_634_353_260_337, 17.203_904_274_140_214, 38.62];
        for (got, want) in p2.heights.into_iter().zip(want) {
            close(got, want);
        }
        assert_eq!(p2.positions, [1.0, 6.0, 10.0, 16.0, 20.0]);
        let estimate = p2.estimate().expect("an estimate");
        assert_eq!((estimate.n, estimate.p), (20, 0.5));
    }

    #[test]
    fn it_may_be_far_off() {
        // One wake-up in a hundred is slow: why nothing is judged by it.
        let mut random = crate::binomial::Random::new(3);
        let (mut p2, mut exact) = (P2::new(0.99), Vec::new());
        for _ in 0..200_000 {
            let slow = random.unit() < 0.01;
            let value = if slow { 50_000.0 } else { 2000.0 } * (0.9 + 0.2 * random.unit());
            p2.push(value);
            exact.push(value);
        }
        exact.sort_unstable_by(f64::total_cmp);
        let (exact, got) = (exact[197_999], p2.estimate().expect("an estimate").value);
        assert!(got / exact > 3.0 || exact / got > 3.0, "{got} {exact}");
        assert_eq!(P2::new(0.5).estimate(), None);
    }
}
