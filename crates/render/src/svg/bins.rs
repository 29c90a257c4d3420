//! Bins of pictures: latencies and times merged to what a picture can show. Merging is exact: a bin
//! is a union of buckets, or of seconds; no count is split and none is lost.

use std::collections::BTreeMap;

use rtproof_record::{
    Run,
    run::{Second, Thread},
};
use rtproof_stats::{Histogram, Layout};

/// Columns of a picture over time, at most.
pub(crate) const COLUMNS_MAX: u64 = 300;

/// Rows of the heat map, at most.
const ROWS_MAX: u32 = 48;

/// Bins over latency: unions of buckets of the fine grid, nearly equal on a logarithmic axis.
///
/// The buckets themselves double their width at each power of two, which on a plot of counts looks
/// like a saw; equal ratios do not.
#[derive(Clone, Debug)]
pub(crate) struct LatencyBins {
    /// First bucket of each bin, and one past the last bucket.
    edges: Vec<usize>,
    /// Bins to a power of two.
    parts: u32,
}

impl LatencyBins {
    /// Bins that hold all of `histograms`, about 200 at most, half of that when `wide`; `None` when
    /// they are empty.
    pub(crate) fn over<'a>(
        histograms: impl Iterator<Item = &'a Histogram>,
        wide: bool,
    ) -> Option<Self> {
        let mut ends: Option<(usize, usize)> = None;
        for (bucket, _) in histograms.flat_map(Histogram::buckets) {
            ends = Some(ends.map_or((bucket, bucket), |(a, b)| (a.min(bucket), b.max(bucket))));
        }
        let (first, last) = ends?;
        let grid = Layout::FINE;
        let octaves = (octave(grid.lower(first)), octave(grid.upper(last)));
        let parts = match octaves.1 - octaves.0 {
            0..=6 => 32,
            7..=14 => 16,
            _ => 8,
        };
        let parts = if wide { parts / 2 } else { parts };
        let mut edges: Vec<usize> = (octaves.0 * parts..=(octaves.1 + 1) * parts)
            .map(|i| grid.index(2_f64.powf(f64::from(i) / f64::from(parts)).round() as u64))
            .map(|edge| edge.clamp(first, last + 1))
            .chain([first, last + 1])
            .collect();
        edges.sort_unstable();
        edges.dedup();
        Some(Self { edges, parts })
    }

    /// Bins of about equal width from 0 to `reach_ns`: 1 µs, or as many as make 400 at most; and
    /// that width. Whole buckets, of one octave equally many to a bin, or neighbours would differ
    /// by what they hold. What is later is in no bin.
    pub(crate) fn linear(reach_ns: u64) -> (Self, u64) {
        const MICROSECOND: u64 = 1_000;
        let (grid, mut step_ns) = (Layout::FINE, MICROSECOND);
        for factor in [2, 5, 10].into_iter().cycle().zip(1_u64..) {
            if reach_ns / step_ns <= 400 {
                break;
            }
            let power = 10_u64.saturating_pow((factor.1 as u32 - 1) / 3);
            step_ns = MICROSECOND.saturating_mul(power).saturating_mul(factor.0);
        }
        let mut edges = vec![0];
        let mut bucket = 0;
        while bucket < grid.len() && (edges.len() < 2 || grid.lower(bucket) < reach_ns) {
            let width_ns = (grid.upper(bucket) - grid.lower(bucket)).saturating_add(1);
            let together = (step_ns.saturating_add(width_ns / 2) / width_ns).max(1) as usize;
            // Many narrow buckets: those of the next octave are wider, so it goes by the value.
            let by_value = grid.index(grid.lower(bucket).saturating_add(step_ns));
            let next = if together > 8 { by_value } else { bucket.saturating_add(together) };
            bucket = next.clamp(bucket + 1, grid.len());
            edges.push(bucket);
        }
        (Self { edges, parts: 1 }, step_ns)
    }

    /// Where each bin begins, and where the last one ends, for the read-out of a page.
    pub(crate) fn edges_text(&self) -> String {
        let edges = (0..self.len()).map(|bin| Layout::FINE.lower(self.edges[bin]));
        let end = self.range(self.len() - 1).1 as u64;
        edges.chain([end]).map(|edge| edge.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// Counts of a histogram per bin.
    pub(crate) fn counts(&self, histogram: &Histogram) -> Vec<u64> {
        let mut counts = vec![0; self.len()];
        for (bucket, n) in histogram.buckets() {
            let bin = self.edges.partition_point(|&edge| edge <= bucket);
            if let Some(count) = bin.checked_sub(1).and_then(|bin| counts.get_mut(bin)) {
                *count += n;
            }
        }
        counts
    }

    /// Width of a bin in percent of its latency, about.
    pub(crate) fn percent(&self) -> f64 {
        100.0 * (2_f64.powf(1.0 / f64::from(self.parts)) - 1.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.edges.len() - 1
    }

    /// Smallest latency of a bin, and one past the largest; for a logarithmic axis never 0.
    pub(crate) fn range(&self, bin: usize) -> (f64, f64) {
        let low = Layout::FINE.lower(self.edges[bin]);
        let high = Layout::FINE.upper(self.edges[bin + 1] - 1) + 1;
        ((low as f64).max(0.5), high as f64)
    }
}

/// Power of two below a value.
fn octave(value_ns: u64) -> u32 {
    63 - (value_ns | 1).leading_zeros()
}

/// Columns over time: whole seconds, as many to a column as make at most [`COLUMNS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeBins {
    /// Width of a column.
    pub(crate) width_ns: u64,
    pub(crate) len: usize,
    /// End of what was measured.
    pub(crate) end_ns: u64,
}

impl TimeBins {
    /// Columns from 0 to `end_ns`.
    pub(crate) fn until(end_ns: u64) -> Self {
        Self::columns(end_ns, COLUMNS_MAX)
    }

    fn columns(end_ns: u64, most: u64) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let end_ns = end_ns.max(SECOND);
        let width_ns = end_ns.div_ceil(most).div_ceil(SECOND) * SECOND;
        Self { width_ns, len: end_ns.div_ceil(width_ns) as usize, end_ns }
    }

    /// The same time in at most `most` columns.
    pub(crate) fn coarser(self, most: u64) -> Self {
        Self::columns(self.end_ns, most)
    }

    /// Columns over a run.
    pub(crate) fn of(run: &Run) -> Self {
        let ends = run.threads.iter().filter_map(|thread| thread.seconds.last());
        let Self { width_ns, end_ns, .. } =
            Self::until(ends.map(|second| second.to_ns).max().unwrap_or(0));
        // Of a long run many seconds are one: a column holds whole ones, or there would be gaps.
        let usual_ns = run.threads.iter().map(usual_ns).max().unwrap_or(0).max(1);
        let width_ns = width_ns.div_ceil(usual_ns) * usual_ns;
        Self { width_ns, len: end_ns.div_ceil(width_ns) as usize, end_ns }
    }

    /// Column of a time.
    pub(crate) fn index(self, at_ns: u64) -> usize {
        ((at_ns / self.width_ns) as usize).min(self.len - 1)
    }

    /// Start of a column.
    pub(crate) fn start_ns(self, column: usize) -> u64 {
        column as u64 * self.width_ns
    }
}

/// How long the seconds are that half of a thread's time is in, in whole seconds.
fn usual_ns(thread: &Thread) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    // A second of a period that does not divide it is a little longer or shorter.
    let length =
        |second: &Second| ((second.to_ns - second.from_ns + SECOND / 2) / SECOND).max(1) * SECOND;
    let mut lengths: Vec<u64> = thread.seconds.iter().map(length).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let mut left = lengths.iter().sum::<u64>() / 2;
    let half = lengths.iter().find(|&&length| {
        left = left.saturating_sub(length);
        left == 0
    });
    half.copied().unwrap_or(SECOND)
}

/// What happened in one column, of one CPU or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BinColumn {
    pub(crate) sampled: u64,
    pub(crate) missed: u64,
    /// Later than the budget.
    pub(crate) late: u64,
    /// Largest latency and its CPU.
    pub(crate) worst: Option<(u64, u32)>,
}

impl BinColumn {
    /// Columns of one thread.
    pub(crate) fn of(thread: &Thread, bins: TimeBins) -> Vec<Self> {
        let mut columns = vec![Self::default(); bins.len];
        for second in &thread.seconds {
            let column = &mut columns[bins.index(second.from_ns)];
            column.sampled += second.totals.wake.count();
            column.missed += second.totals.missed;
            column.late += second.totals.late();
            let Some(max_ns) = second.totals.wake.max() else {
                continue;
            };
            // The largest sample is drawn where it was due, even if collecting was delayed.
            let column = &mut columns[bins.index(second.max_at_ns.max(second.from_ns))];
            column.worst = column.worst.max(Some((max_ns, thread.info.cpu)));
        }
        columns
    }

    /// Adds what happened on another CPU.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.sampled += other.sampled;
        self.missed += other.missed;
        self.late += other.late;
        self.worst = match (self.worst, other.worst) {
            (Some(a), Some(b)) if b.0 <= a.0 => Some(a),
            (a, b) => b.or(a),
        };
    }
}

/// Counts over time and latency: (row, column) -> wake-ups. Rows are powers of two or equal parts
/// of them.
#[derive(Clone, Debug)]
pub(crate) struct HeatBins {
    pub(crate) time: TimeBins,
    /// First power of two.
    pub(crate) first_octave: u32,
    /// Rows to a power of two.
    pub(crate) per_octave: u32,
    pub(crate) rows: u32,
    pub(crate) counts: BTreeMap<(u32, usize), u64>,
}

impl HeatBins {
    /// All CPUs together; `None` when nothing was measured.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let time = TimeBins::of(run);
        let seconds = || run.threads.iter().flat_map(|thread| &thread.seconds);
        let grid = Layout::COARSE;
        let first = seconds().filter_map(|second| second.wake.first()).map(|pair| pair.0).min()?;
        let last = seconds().filter_map(|second| second.wake.last()).map(|pair| pair.0).max()?;
        let first_octave = octave(grid.lower(first.into()));
        let octaves = octave(grid.upper(last.into())) - first_octave + 1;
        let per_octave = [16, 8, 4, 2].into_iter().find(|n| n * octaves <= ROWS_MAX).unwrap_or(1);
        let row_of: Vec<u32> = (0..grid.len())
            .map(|bucket| {
                let low = grid.lower(bucket).max(1) as f64;
                let above = low.log2() - f64::from(first_octave);
                (above * f64::from(per_octave) + 1e-9).max(0.0) as u32
            })
            .collect();
        let mut counts = BTreeMap::new();
        for second in seconds() {
            let column = time.index(second.from_ns);
            for &(bucket, n) in &second.wake {
                // A bucket outside the grid was refused when the record was read.
                let Some(&row) = row_of.get(usize::from(bucket)) else {
                    continue;
                };
                *counts.entry((row, column)).or_insert(0) += n;
            }
        }
        Some(Self { time, first_octave, per_octave, rows: octaves * per_octave, counts })
    }

    /// The largest count of a cell.
    pub(crate) fn most(&self) -> u64 {
        self.counts.values().copied().max().unwrap_or(0)
    }

    /// Latencies from the first row to the end of the last.
    pub(crate) fn range(&self) -> (f64, f64) {
        let octaves = f64::from(self.rows / self.per_octave);
        let low = 2_f64.powf(f64::from(self.first_octave));
        (low, low * 2_f64.powf(octaves))
    }
}

/// Level 0 to `levels` - 1 of a value between `low` and `high`, by ratio.
pub(crate) fn level(value: u64, low: u64, high: u64, levels: usize) -> usize {
    let (low, high) = (low.max(1) as f64, high.max(1) as f64);
    if high <= low {
        return levels - 1;
    }
    let place = ((value.max(1) as f64) / low).ln() / (high / low).ln();
    ((place * levels as f64) as usize).min(levels - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_every_count_and_are_few() {
        for (low, high) in [(0, 0), (0, 3), (1_000, 1_100), (90, 3_000_000), (0, u64::MAX)] {
            let mut h = Histogram::new(Layout::FINE);
            (0..500).for_each(|i| h.record(low + (high - low) / 499 * i));
            h.record(high);
            let bins = LatencyBins::over([&h].into_iter(), false).unwrap();
            let counts = bins.counts(&h);
            assert_eq!(counts.iter().sum::<u64>(), h.total(), "{low} {high}");
            assert!(bins.len() <= 350, "{low} {high}: {}", bins.len());
            for bin in 1..bins.len() {
                assert!(bins.range(bin).0 >= bins.range(bin - 1).1, "{bin}");
            }
        }
        assert!(LatencyBins::over([&Histogram::new(Layout::FINE)].into_iter(), false).is_none());
    }

    #[test]
    fn linear_bins_are_microseconds_and_few() {
        let (micro, step_ns) = LatencyBins::linear(250_000);
        assert_eq!(step_ns, 1_000);
        assert!((225..=265).contains(&micro.len()), "{}", micro.len());
        for bin in 0..micro.len() {
            let (from, to) = micro.range(bin);
            assert!((700.0..1_600.0).contains(&(to - from)), "{bin}: {from} to {to}");
        }
        let mut h = Histogram::new(Layout::FINE);
        [0, 700, 1_100, 5_500, 9_999_999].into_iter().for_each(|ns| h.record(ns));
        let counts = micro.counts(&h);
        assert_eq!((counts[0], counts.iter().sum::<u64>()), (2, 4), "one is beyond");
        for reach_ns in [0, 1, 400_000, 401_000, 1 << 40, u64::MAX] {
            let (bins, step_ns) = LatencyBins::linear(reach_ns);
            assert!((1..=450).contains(&bins.len()), "{reach_ns}: {}", bins.len());
            assert!(
                reach_ns / step_ns <= 400 && step_ns <= 1_000.max(reach_ns / 100),
                "{reach_ns}"
            );
        }
    }

    #[test]
    fn columns_are_whole_seconds_and_at_most_three_hundred() {
        for seconds in [0_u64, 1, 59, 60, 299, 300, 301, 86_400, 864_000] {
            let bins = TimeBins::until(seconds * 1_000_000_000);
            assert!(bins.len >= 1 && bins.len as u64 <= COLUMNS_MAX);
            assert_eq!(bins.width_ns % 1_000_000_000, 0);
            assert_eq!(bins.index(u64::MAX), bins.len - 1);
        }
        assert_eq!(TimeBins::until(60_000_000_000).len, 60);
    }

    #[test]
    fn levels_are_by_ratio() {
        assert_eq!((level(1, 1, 1000, 9), level(1000, 1, 1000, 9)), (0, 8));
        assert_eq!((level(31, 1, 1000, 9), level(7, 7, 7, 9)), (4, 8));
    }
}
