//! Percentiles of counts that change a little at a time: a mark for each stays where it was found
//! and walks to the next cell, so that a step costs its cells and not all there are.

use super::values::Values;
use crate::{Layout, quantile::Q};

const OF: [Q; 5] = Q::TABLE;

/// Counts, or sums of weights, with the cells of the percentiles.
#[derive(Debug)]
pub(super) struct Percentiles {
    first: usize,
    counts: Vec<f64>,
    total: f64,
    marks: [Mark; OF.len()],
}

/// A cell, and what lies in the cells before it.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    cell: usize,
    before: f64,
}

impl Percentiles {
    /// For cells from `low` to `high`.
    pub(super) fn new(low: u16, high: u16) -> Self {
        let len = usize::from(high - low) + 1;
        Self {
            first: usize::from(low),
            counts: vec![0.0; len],
            total: 0.0,
            marks: [Mark::default(); OF.len()],
        }
    }

    /// Adds to a cell. Whole numbers below 2^53 stay exact.
    pub(super) fn add(&mut self, cell: u16, n: f64) {
        let cell = usize::from(cell) - self.first;
        self.counts[cell] += n;
        self.total += n;
        for mark in self.marks.iter_mut().filter(|mark| cell < mark.cell) {
            mark.before += n;
        }
    }

    pub(super) fn scale(&mut self, by: f64) {
        self.counts.iter_mut().for_each(|n| *n *= by);
        self.total *= by;
        self.marks.iter_mut().for_each(|mark| mark.before *= by);
    }

    /// Values with their percentiles, those that their `n` carries.
    pub(super) fn read_into(&mut self, values: Values) -> Values {
        let n = values.n as u64;
        let mut percentiles_ns = [None; OF.len()];
        for (at, q) in OF.into_iter().enumerate() {
            let cell = self.walk(at, q);
            // A cell outside of the grid was refused when the record was read.
            let cell = (self.first + cell).min(Layout::COARSE.len() - 1);
            percentiles_ns[at] = q.is_carried_by(n).then(|| Layout::COARSE.upper(cell));
        }
        Values { percentiles_ns, ..values }
    }

    /// The first cell with which the share of the percentile is reached.
    fn walk(&mut self, at: usize, q: Q) -> usize {
        // Of whole numbers this is n - n above / of, whose ceiling is the rank.
        let wanted = self.total - self.total * q.above as f64 / q.of as f64;
        let mark = &mut self.marks[at];
        while mark.cell > 0 && mark.before >= wanted {
            mark.cell -= 1;
            mark.before -= self.counts[mark.cell];
        }
        while mark.cell + 1 < self.counts.len() && mark.before + self.counts[mark.cell] < wanted {
            mark.before += self.counts[mark.cell];
            mark.cell += 1;
        }
        // Rounding of weights may have led past the last one.
        while mark.cell > 0 && self.counts[mark.cell] <= 0.0 {
            mark.cell -= 1;
            mark.before -= self.counts[mark.cell];
        }
        mark.cell
    }
}
