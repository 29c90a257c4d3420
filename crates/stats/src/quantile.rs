//! Quantiles with their order-statistics intervals, from a histogram.
//!
//! Convention, printed with every report: the q-quantile is the value of rank ceil(q n), shown as
//! the upper edge of its bucket. The interval [x_r, x_s] covers the true quantile with at least the
//! stated confidence for independent samples, whatever the distribution (David and Nagaraja, Order
//! Statistics, section 7.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::binomial::cdf;
use crate::{Bins, Histogram};

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

/// A quantile with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantile {
    pub q: Q,
    /// The value, upper edge of its bucket; `None` with fewer than 1/(1-q) samples, or 1/q of a
    /// quantile below the median.
    pub value_ns: Option<u64>,
    /// Lower end of the interval, lower edge of the bucket of its order statistic; `None` when
    /// there is none: too few samples, or their dependence lasts too long for the run.
    pub low_ns: Option<u64>,
    /// Upper end, upper edge of its bucket; `None`: the samples give no finite upper bound, or
    /// there is no interval.
    pub high_ns: Option<u64>,
}

/// Ranks r and s (1-based) of a two-sided interval for the q-quantile: the largest r with
/// P(B <= r-1) <= alpha/2 and the smallest s with P(B <= s-1) >= 1 - alpha/2, B ~ Binomial(n, q).
/// `None` where no rank will do.
pub fn interval_ranks(n: u64, q: f64, confidence: f64) -> (Option<u64>, Option<u64>) {
    if n == 0 {
        return (None, None);
    }
    let tail = (1.0 - confidence) / 2.0;
    // Smallest k in 0..=n with cdf(k) > tail; then r = k (cdf(r - 1) <= tail).
    let first = |above: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0, n);
        while low < high {
            let mid = low + (high - low) / 2;
            if above(cdf(mid, n, q)) { high = mid } else { low = mid + 1 }
        }
        low
    };
    let r = first(&|p| p > tail);
    let s = first(&|p| p >= 1.0 - tail) + 1;
    ((r > 0).then_some(r), (s <= n).then_some(s))
}

impl Bins {
    /// The order-statistics interval of the p-quantile, nanoseconds, from the lower edge of one
    /// cell to the upper edge of another. `None` on the right: no finite upper bound at this
    /// number. Values are taken for independent; see [`Bins::interval_of`].
    pub fn interval(&self, p: f64, confidence: f64) -> (Option<u64>, Option<u64>) {
        self.interval_of(p, confidence, self.total())
    }

    /// The same, where the values are worth `n_eff` independent ones.
    pub fn interval_of(&self, p: f64, confidence: f64, n_eff: u64) -> (Option<u64>, Option<u64>) {
        let n_eff = n_eff.min(self.total());
        let (r, s) = interval_ranks(n_eff, p, confidence);
        // Ranks among n_eff stand for the same shares of all, rounded outwards.
        let (n, eff) = (u128::from(self.total()), u128::from(n_eff.max(1)));
        let at = |scaled: u128| {
            let rank = u64::try_from(scaled).unwrap_or(self.total()).clamp(1, self.total().max(1));
            self.at_rank(rank)
        };
        let low = r.and_then(|r| at(u128::from(r) * n / eff)).map(|bin| bin.low_ns);
        let high = s.and_then(|s| at((u128::from(s) * n).div_ceil(eff))).map(|bin| bin.high_ns);
        (low, high)
    }
}

/// A quantile of a histogram, with its interval. `n_eff` is the number of independent samples that
/// the histogram is worth; the interval widens accordingly. `None`: that is not known, and there is
/// no interval.
pub fn of(histogram: &Histogram, q: Q, confidence: f64, n_eff: Option<u64>) -> Quantile {
    let n = histogram.total();
    let rank = q.rank(n);
    let value_ns = q.is_carried_by(n).then(|| histogram.value_at_rank(rank)).flatten();
    let none = Quantile { q, value_ns, low_ns: None, high_ns: None };
    let (Some(n_eff), Some(_)) = (n_eff, value_ns) else {
        return none;
    };
    let n_eff = n_eff.clamp(1, n.max(1));
    let (r, s) = interval_ranks(n_eff, q.value(), confidence);
    // Ranks among n_eff independent samples stand for the same fractions of the n recorded ones,
    // rounded outwards; the interval holds the value itself.
    let (n_wide, eff) = (u128::from(n), u128::from(n_eff));
    let of_all = |scaled: u128| u64::try_from(scaled).unwrap_or(n).clamp(1, n);
    let low = r.map(|r| of_all(u128::from(r) * n_wide / eff).min(rank));
    let high = s.map(|s| of_all((u128::from(s) * n_wide).div_ceil(eff)).max(rank));
    Quantile {
        low_ns: low.and_then(|rank| histogram.lower_at_rank(rank)),
        high_ns: high.and_then(|rank| histogram.value_at_rank(rank)),
        ..none
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
    fn ranks_of_the_literature() {
        let ranks = |n, q| interval_ranks(n, q, 0.95);
        assert_eq!(ranks(100, 0.5), (Some(40), Some(61)));
        assert_eq!(ranks(1000, 0.99), (Some(983), Some(997)));
        assert_eq!(ranks(5000, 0.99), (Some(4936), Some(4964)));
        assert_eq!(ranks(5000, 0.999), (Some(4990), Some(5000)));
        assert_eq!(ranks(100_000, 0.9999), (Some(99_983), Some(99_997)));
        assert_eq!(ranks(300, 0.99), (Some(293), None), "no finite upper bound");
        assert_eq!(ranks(0, 0.99), (None, None));
    }

    #[test]
    fn first_sample_sizes_with_a_finite_upper_bound() {
        for (q, n) in [(0.99, 368), (0.999, 3688), (0.9999, 36_888), (0.99999, 368_888)] {
            assert!(interval_ranks(n, q, 0.95).1.is_some(), "{q}");
            assert!(interval_ranks(n - 2, q, 0.95).1.is_none(), "{q}");
        }
    }

    #[test]
    fn ranks_have_the_stated_coverage() {
        for (n, q, covered) in [
            (100, 0.5, 0.9648),
            (1000, 0.99, 0.976_095),
            (5000, 0.99, 0.953_74),
            (5000, 0.999, 0.979_629),
            (100_000, 0.9999, 0.975_393),
        ] {
            let (r, s) = interval_ranks(n, q, 0.95);
            let (r, s) = r.zip(s).expect("ranks");
            let got = cdf(s - 1, n, q) - cdf(r - 1, n, q);
            assert!((got - covered).abs() < 1e-6 + covered * 6e-6, "{n} {q}: {got}");
        }
    }

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
        let p999 = of(&h, Q { above: 1, of: 1000 }, 0.95, Some(100));
        assert_eq!((p999.value_ns, p999.high_ns), (None, None));
        // 20 samples are the fewest of which one lies at or below p5, and one above p95.
        for (n, carried) in [(0, false), (19, false), (20, true), (u64::MAX, true)] {
            assert_eq!([Q::P5, Q::P95].map(|q| q.is_carried_by(n)), [carried; 2], "{n}");
        }
        let p5 = of(&h, Q::P5, 0.95, Some(100));
        assert_eq!((p5.value_ns, p5.low_ns), (Some(5), Some(1)));
        let p50 = of(&h, Q::P50, 0.95, Some(100));
        assert_eq!((p50.value_ns, p50.low_ns, p50.high_ns), (Some(50), Some(40), Some(61)));
        // Of 1000 and more a bucket holds several values: the ends are its outer edges.
        let mut wide = Histogram::new(Layout::FINE);
        (10_000..10_100).for_each(|v| wide.record(v));
        let p50 = of(&wide, Q::P50, 0.95, Some(100));
        assert_eq!(
            (p50.value_ns, p50.low_ns, p50.high_ns),
            (Some(10_111), Some(9984), Some(10_111))
        );
        assert_eq!(of(&h, Q::P50, 0.95, None).low_ns, None, "no dependence known, no interval");
        let p50 = of(&h, Q::P50, 0.95, Some(100));
        let dependent = of(&h, Q::P50, 0.95, Some(25));
        assert!(dependent.high_ns > p50.high_ns && dependent.low_ns < p50.low_ns);
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
