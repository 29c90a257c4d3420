//! Cells of latency that histograms of different tools are drawn in: none finer than the coarsest
//! tool's own, so that no line looks like a comb.

use rtproof_judge::units;

use super::Series;
use crate::svg::scale::{Scale, Tick};

/// Cells wanted across a picture.
const CELLS: f64 = 180.0;
/// Up to this latency the axis is linear, where no value is too small to be seen on it.
const LINEAR_MAX: f64 = 2e6;

/// Edges of cells, ascending.
pub(crate) struct Cells {
    edges: Vec<f64>,
    /// Whether the axis is logarithmic.
    log: bool,
}

impl Cells {
    /// For values between two ends, with a resolution of `resolution_ns`.
    pub(crate) fn over((low, high): (f64, f64), resolution_ns: u64) -> Self {
        let step = resolution_ns.max(1) as f64;
        let log = high > LINEAR_MAX || high < 20.0 * step;
        let mut edges = Vec::new();
        if log {
            let low = low.max(step);
            let factor = ((high / low).max(1.2) * 1.05).powf(1.0 / CELLS);
            let mut at = (low / step).floor() * step;
            while at <= high {
                edges.push(at);
                // Whole steps of the tool, one at least.
                at = ((at * factor / step).round() * step).max(at + step);
            }
            edges.push(at);
        } else {
            let width = ((high / CELLS) / step).ceil().max(1.0) * step;
            let count = (high / width).floor() as usize + 1;
            edges.extend((0..=count).map(|i| i as f64 * width));
        }
        Self { edges, log }
    }

    /// The axis over them.
    pub(crate) fn scale(&self, high: f64) -> Scale {
        let (first, last) = (self.edges[0], self.edges[self.edges.len() - 1].max(high));
        match self.log {
            true => Scale::Log { low: first.max(1.0) / 1.05, high: last * 1.1 },
            false => Scale::Linear { low: 0.0, high: last * 1.04 },
        }
    }

    /// Ticks of that axis.
    pub(crate) fn ticks(&self, scale: Scale) -> Vec<Tick> {
        if self.log { scale.latency_ticks(13.0) } else { linear_ticks(scale.ends().1) }
    }

    /// Counts of a line in the cells: (from, to, count).
    pub(crate) fn counts(&self, series: &Series) -> Vec<(f64, f64, u64)> {
        let mut cells: Vec<(f64, f64, u64)> =
            self.edges.windows(2).map(|pair| (pair[0], pair[1], 0)).collect();
        for bin in series.bins.iter() {
            let value = if series.rounds_down {
                bin.low_ns as f64
            } else {
                f64::midpoint(bin.low_ns as f64, series.value(bin))
            };
            let at = self.edges.partition_point(|&edge| edge <= value).saturating_sub(1);
            let at = at.min(cells.len() - 1);
            cells[at].2 += bin.n;
        }
        cells
    }
}

/// Round latencies from zero: seven to fourteen of them.
fn linear_ticks(high_ns: f64) -> Vec<Tick> {
    let exponent = 10_f64.powf((high_ns / 10.0).max(1.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * exponent)
        .find(|step| high_ns / step <= 13.0)
        .unwrap_or(high_ns);
    (0..=(high_ns / step) as u64)
        .map(|i| {
            let value = i as f64 * step;
            let text = if i == 0 { "0".into() } else { units::ns(value as u64) };
            Tick { value, text: Some(text) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_ascend_in_whole_steps_of_the_tool_and_hold_all() {
        for (ends, resolution_ns) in [
            ((6000.0, 717_000.0), 1000),
            ((1900.0, 5.3e9), 1),
            ((0.0, 0.0), 1),
            ((0.0, 3000.0), 1000),
            ((5000.0, 9e6), 1000),
        ] {
            let cells = Cells::over(ends, resolution_ns);
            assert!(cells.edges.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", cells.edges);
            assert!(cells.edges.last().is_some_and(|&last| last > ends.1), "{ends:?}");
            assert!(cells.edges.len() < 500);
            let whole = |edge: &f64| (edge % resolution_ns as f64).abs() < 1e-6;
            assert!(cells.edges.iter().all(whole));
            assert!(!cells.ticks(cells.scale(ends.1)).is_empty());
        }
    }

    #[test]
    fn linear_ticks_are_round() {
        let named = |high| -> Vec<String> {
            linear_ticks(high).into_iter().filter_map(|tick| tick.text).collect()
        };
        assert_eq!(named(740_000.0)[..3], ["0", "100 µs", "200 µs"]);
        assert_eq!(named(30_000.0)[..3], ["0", "5 µs", "10 µs"]);
        assert!(named(1.0).len() < 15);
    }
}
