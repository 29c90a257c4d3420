//! How far the quantiles of a single run may lie from what a like run would have had: stationary
//! bootstrap of its rows (Politis and Romano 1994), blocks of some seconds drawn with replacement.
//!
//! Moving blocks help against dependence and cannot undo drift: the interval is shown, and decides
//! nothing.

use rtproof_stats::{Layout, quantile::Q};

use super::side::{Row, Side, View};

const DRAWS: usize = 400;
/// Rows drawn from, at most: longer runs are folded, neighbours together.
const ROWS_MAX: usize = 400;
/// Fewer rows than this say nothing of the others.
const ROWS_MIN: usize = 10;
const BLOCK_NS: u64 = 2_000_000_000;
const SEED: u64 = 0x7274_7072_6f6f_6631;

/// Logarithms of the quantiles of each draw; a draw that does not carry one has no number there.
pub(super) struct Draws {
    draws: Vec<Vec<f64>>,
    /// Length of the blocks, nanoseconds.
    pub(super) block_ns: u64,
}

impl Draws {
    /// Of a run; `None` where it has too few rows.
    pub(super) fn of(side: &Side, view: View, quantiles: &[Q], salt: u64) -> Option<Self> {
        let (rows, row_ns, buckets) = folded(&side.rows, view)?;
        let dependence = correlation_rows(&rows, &buckets);
        let block_rows = (BLOCK_NS as f64 / row_ns as f64).max(4.0 * dependence);
        let block_rows = block_rows.clamp(1.0, rows.len() as f64 / 4.0);
        let mut random = Random(SEED ^ salt);
        let mut draw = || {
            let mut sums = vec![0_u64; buckets.len()];
            let mut at = 0;
            for i in 0..rows.len() {
                at = if i == 0 || random.unit() < 1.0 / block_rows {
                    random.below(rows.len())
                } else {
                    (at + 1) % rows.len()
                };
                sums.iter_mut().zip(&rows[at]).for_each(|(sum, n)| *sum += n);
            }
            quantiles.iter().map(|&q| log_quantile(&sums, &buckets, q)).collect()
        };
        let draws = (0..DRAWS).map(|_| draw()).collect();
        Some(Self { draws, block_ns: (block_rows * row_ns as f64) as u64 })
    }

    /// Interval of the ratio of quantile `at` of the other to this one.
    pub(super) fn ratio(&self, other: &Self, at: usize, confidence: f64) -> Option<(f64, f64)> {
        let mut logs: Vec<f64> =
            self.draws.iter().zip(&other.draws).map(|(a, b)| b[at] - a[at]).collect();
        if logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        logs.sort_by(f64::total_cmp);
        let tail = (1.0 - confidence) / 2.0;
        let rank = |p: f64| ((p * logs.len() as f64) as usize).min(logs.len() - 1);
        Some((logs[rank(tail)].exp(), logs[rank(1.0 - tail)].exp()))
    }
}

/// Rows of counts over the buckets that occur, the length of a row, and the buckets.
type Folded = (Vec<Vec<u64>>, u64, Vec<usize>);

fn folded(rows: &[Row], view: View) -> Option<Folded> {
    if rows.len() < ROWS_MIN {
        return None;
    }
    let cells = |row: &Row| -> Vec<(u16, u64)> {
        let missed = if view == View::Deadline { row.missed.as_slice() } else { &[] };
        row.wake.iter().chain(missed).copied().collect()
    };
    let mut buckets: Vec<usize> =
        rows.iter().flat_map(cells).map(|(bucket, _)| usize::from(bucket)).collect();
    buckets.sort_unstable();
    buckets.dedup();
    let each = rows.len().div_ceil(ROWS_MAX);
    let fold = |some: &[Row]| {
        let mut counts = vec![0; buckets.len()];
        for (bucket, n) in some.iter().flat_map(cells) {
            if let Ok(at) = buckets.binary_search(&usize::from(bucket)) {
                counts[at] += n;
            }
        }
        counts
    };
    let folded = rows.chunks(each).map(fold).collect();
    let (first, last) = (rows.first()?.from_ns, rows.last()?.from_ns);
    let row_ns = last.saturating_sub(first) / (rows.len() as u64 - 1).max(1);
    Some((folded, (row_ns * each as u64).max(1), buckets))
}

/// Rows over which the share of late wake-ups depends on itself: 1 + 2 sum of its correlations, up
/// to the first that is not above zero.
fn correlation_rows(rows: &[Vec<u64>], buckets: &[usize]) -> f64 {
    let total: u64 = rows.iter().flatten().sum();
    let mut above = total / 100;
    let mut from = buckets.len();
    while from > 0 {
        let n: u64 = rows.iter().map(|row| row[from - 1]).sum();
        if n > above {
            break;
        }
        (above, from) = (above - n, from - 1);
    }
    let shares: Vec<f64> = rows
        .iter()
        .map(|row| row[from..].iter().sum::<u64>() as f64 / row.iter().sum::<u64>().max(1) as f64)
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let variance: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    if variance <= 0.0 {
        return 1.0;
    }
    let correlation = |lag: usize| {
        shares.iter().zip(&shares[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
            / variance
    };
    let lags = 1..shares.len() / 4;
    1.0 + 2.0 * lags.map(correlation).take_while(|&rho| rho > 0.0).sum::<f64>()
}

/// Logarithm of a quantile, spread evenly within its bucket; no number where there are too few.
fn log_quantile(counts: &[u64], buckets: &[usize], q: Q) -> f64 {
    let n: u64 = counts.iter().sum();
    if u128::from(n) * u128::from(q.above) < u128::from(q.of) {
        return f64::NAN;
    }
    let rank = q.rank(n);
    let mut seen = 0;
    for (&count, &bucket) in counts.iter().zip(buckets) {
        if seen + count >= rank {
            let (low, high) = (Layout::COARSE.lower(bucket), Layout::COARSE.upper(bucket) + 1);
            let part = (rank - seen) as f64 / count as f64;
            return (low as f64 + part * (high - low) as f64).ln();
        }
        seen += count;
    }
    f64::NAN
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}
