//! A quantile from five numbers, without keeping samples: P² (Jain and Chlamtac, CACM 28(10),
//! 1985).
//!
//! Only for tables that must stand beside older ones made this way, and marked as an estimate
//! there. On a million latencies with one slow wake-up in a hundred its p99 is twelve times too
//! high, and two of them cannot be merged: nothing is judged by it. Quantiles proper are in
//! `quantile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The five markers.
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
        let mut random = crate::random::Random::new(3);
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
