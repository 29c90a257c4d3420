//! The shift function: by how much each quantile of one run differs from that of another (Doksum
//! 1974; Wilcox), with bands from rows drawn again in blocks.

use super::blocks::{block_rows, drawn};
use crate::{Bins, quantile::Q, random::Random};

/// Groups of rows that are drawn: more only take time.
const GROUPS_MAX: usize = 2000;

/// How to ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// Of the bands, pointwise, e.g. 0.95.
    pub confidence: f64,
    /// Times that rows are drawn.
    pub draws: u32,
    /// The same seed, the same answer.
    pub seed: u64,
}

/// The difference at one quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Which.
    pub q: Q,
    /// Value of the first run, nanoseconds, upper edge of its cell.
    pub a_ns: u64,
    /// Value of the second run.
    pub b_ns: u64,
    /// Band of b - a, nanoseconds.
    pub difference_ns: (f64, f64),
    /// Band of b / a.
    pub ratio: (f64, f64),
    /// The smallest ratio above 1 that such a band would not hold: what could have been seen.
    pub detectable_ratio: f64,
}

/// The rows of a run: what was counted in each second, and how long its blocks must be.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Upper edges of the cells, ascending.
    edges: Vec<u64>,
    /// Groups of rows: counts by cell.
    groups: Vec<Vec<(u32, u64)>>,
    /// Mean length of a block, in groups.
    block: f64,
    total: u64,
}

impl Rows {
    /// Of histograms of `row_ns` each, in order of time; empty ones are left out. `None` of fewer
    /// than ten rows with something in them: too few to draw from.
    #[must_use]
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Bins>, row_ns: u64) -> Option<Self> {
        let rows: Vec<&Bins> = rows.into_iter().filter(|row| !row.is_empty()).collect();
        if rows.len() < 10 {
            return None;
        }
        let mut edges: Vec<u64> =
            rows.iter().flat_map(|row| row.iter().map(|bin| bin.high_ns)).collect();
        edges.sort_unstable();
        edges.dedup();
        // Blocks as long as whatever keeps its level longest: the middle or the top.
        let level = |p: f64| -> Vec<f64> {
            rows.iter()
                .filter_map(|row| row.quantile(p))
                .map(|ns| (ns.max(1) as f64).ln())
                .collect()
        };
        let block = block_rows(&level(0.5), row_ns).max(block_rows(&level(0.99), row_ns));
        let per_group = rows.len().div_ceil(GROUPS_MAX);
        let group = |rows: &[&Bins]| -> Vec<(u32, u64)> {
            let mut counts = std::collections::BTreeMap::new();
            for bin in rows.iter().flat_map(|row| row.iter()) {
                let at = edges.partition_point(|&edge| edge < bin.high_ns) as u32;
                *counts.entry(at).or_insert(0) += bin.n;
            }
            counts.into_iter().collect()
        };
        let groups = rows.chunks(per_group).map(group).collect();
        let total = rows.iter().map(|row| row.total()).fold(0, u64::saturating_add);
        Some(Self { groups, block: (block / per_group as f64).max(1.0), total, edges })
    }

    /// Values of quantiles with every group counted so many times.
    fn quantiles(&self, qs: &[Q], times: &[u32]) -> Vec<u64> {
        let mut counts = vec![0_u64; self.edges.len()];
        for (group, &times) in self.groups.iter().zip(times).filter(|&(_, &times)| times > 0) {
            for &(cell, n) in group {
                counts[cell as usize] += n * u64::from(times);
            }
        }
        let n = counts.iter().sum();
        let (mut seen, mut cell) = (0, 0);
        qs.iter()
            .map(|q| {
                while cell + 1 < counts.len() && seen + counts[cell] < q.rank(n) {
                    seen += counts[cell];
                    cell += 1;
                }
                self.edges[cell]
            })
            .collect()
    }

    fn draw(&self, random: &mut Random) -> Vec<u32> {
        let mut times = vec![0; self.groups.len()];
        drawn(self.groups.len(), self.block, random).for_each(|group| times[group] += 1);
        times
    }
}

impl Shift {
    /// The quantiles of a shift function: deciles, p99, p99.9, p99.99.
    pub const QUANTILES: [Q; 12] = [
        Q { above: 9, of: 10 },
        Q { above: 8, of: 10 },
        Q { above: 7, of: 10 },
        Q { above: 6, of: 10 },
        Q { above: 5, of: 10 },
        Q { above: 4, of: 10 },
        Q { above: 3, of: 10 },
        Q { above: 2, of: 10 },
        Q { above: 1, of: 10 },
        Q { above: 1, of: 100 },
        Q { above: 1, of: 1000 },
        Q { above: 1, of: 10_000 },
    ];
}

/// The shift function from the first run to the second: the quantiles for which both have at least
/// ten values above.
#[must_use]
pub fn shift(a: &Rows, b: &Rows, ask: &Ask) -> Vec<Shift> {
    let carried = |q: &&Q| {
        let above = u128::from(a.total.min(b.total)) * u128::from(q.above);
        above >= 10 * u128::from(q.of)
    };
    let qs: Vec<Q> = Shift::QUANTILES.iter().filter(carried).copied().collect();
    let once = |rows: &Rows| rows.quantiles(&qs, &vec![1; rows.groups.len()]);
    let (own_a, own_b) = (once(a), once(b));
    let mut random = Random::new(ask.seed);
    let draws = ask.draws.clamp(20, 10_000);
    let drawn: Vec<(Vec<u64>, Vec<u64>)> = (0..draws)
        .map(|_| {
            let (a_times, b_times) = (a.draw(&mut random), b.draw(&mut random));
            (a.quantiles(&qs, &a_times), b.quantiles(&qs, &b_times))
        })
        .collect();
    let tail = (1.0 - ask.confidence.clamp(0.0, 0.999)) / 2.0;
    let band = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        let at = ((values.len() as f64 * tail) as usize).min(values.len() / 2);
        (values[at], values[values.len() - 1 - at])
    };
    let of = |i: usize| {
        let (a_ns, b_ns) = (own_a[i], own_b[i]);
        let each = || drawn.iter().map(|(a, b)| (a[i] as f64, b[i] as f64));
        let logs = band(each().map(|(a, b)| (b.max(1.0) / a.max(1.0)).ln()).collect());
        Shift {
            q: qs[i],
            a_ns,
            b_ns,
            difference_ns: band(each().map(|(a, b)| b - a).collect()),
            ratio: (logs.0.exp(), logs.1.exp()),
            // Half of the band, and as much again as 80 % power takes: (1.96 + 0.84) / 1.96.
            detectable_ratio: ((logs.1 - logs.0) / 2.0 * 1.43).exp(),
        }
    };
    (0..qs.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of 200 latencies about a level that wanders.
    fn run(seed: u64, seconds: usize, factor: f64, memory: f64) -> Vec<Bins> {
        let mut random = Random::new(seed);
        let mut state = 0.0;
        (0..seconds)
            .map(|_| {
                state = memory * state + 0.02 * random.normal();
                let values: Vec<u64> = (0..200)
                    .map(|_| (10_000.0 * factor * (state + 0.2 * random.normal()).exp()) as u64)
                    .collect();
                Bins::from_values(values)
            })
            .collect()
    }

    const ASK: Ask = Ask { confidence: 0.95, draws: 200, seed: 5 };
    const SECOND: u64 = 1_000_000_000;

    fn between(a: &[Bins], b: &[Bins]) -> Vec<Shift> {
        let rows = |rows: &[Bins]| Rows::of(rows, SECOND).expect("rows");
        shift(&rows(a), &rows(b), &ASK)
    }

    #[test]
    fn a_factor_is_seen_at_every_quantile() {
        let shifts = between(&run(1, 60, 1.0, 0.0), &run(2, 60, 1.2, 0.0));
        assert_eq!(shifts.len(), 11, "p99.99 of 12 000 has one value above");
        for shift in &shifts {
            let (low, high) = shift.ratio;
            assert!(low > 1.0 && low < 1.2 && high > 1.15 && high < 1.45, "{shift:?}");
            assert!(shift.difference_ns.0 > 0.0 && shift.detectable_ratio > 1.0, "{shift:?}");
        }
        assert_eq!(shifts[4].q.name(), "p50");
        assert!(shifts[4].detectable_ratio < 1.05, "{:?}", shifts[4]);
    }

    #[test]
    fn bands_of_nothing_hold_nothing_as_often_as_they_should() {
        // Independent seconds: 5 % by construction. Seconds with a memory of ten: more, which is
        // why this never decides; far fewer than the half that independent draws would find.
        for (memory, most) in [(0.0, 7), (0.9, 12)] {
            let outside = (0..40_u64)
                .filter(|&seed| {
                    let a = run(seed * 2, 120, 1.0, memory);
                    let b = run(seed * 2 + 1, 120, 1.0, memory);
                    let p50 = between(&a, &b)[4];
                    p50.ratio.0 > 1.0 || p50.ratio.1 < 1.0
                })
                .count();
            assert!(outside <= most, "memory {memory}: {outside} of 40");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bands() {
        let (a, b) = (run(8, 40, 1.0, 0.5), run(9, 40, 1.1, 0.5));
        assert_eq!(between(&a, &b), between(&a, &b));
        assert!(Rows::of(&a[..9], SECOND).is_none());
        assert!(Rows::of(&vec![Bins::default(); 30], SECOND).is_none());
        // A long run is drawn in groups, and each value still counts once.
        let long: Vec<Bins> = (0..5000_u64).map(|i| Bins::from_values([i, i + 1])).collect();
        let rows = Rows::of(&long, SECOND).expect("rows");
        assert!(rows.groups.len() <= GROUPS_MAX && rows.total == 10_000);
        assert_eq!(rows.quantiles(&[Q::P50], &vec![1; rows.groups.len()]), [2500]);
    }
}
