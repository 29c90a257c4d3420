//! Statistics over time from rows of exact sums and coarse cells: of a window that moves, with
//! weights that halve with age (exponential), and of all so far (cumulative).
//!
//! Sums and moments are exact: a window is merged from its steps, never added to and taken from
//! (Chan, Golub, LeVeque 1979; Pebay, SAND2008-6212, for those with weights). Percentiles are upper
//! edges of cells of [`Layout::COARSE`](crate::Layout::COARSE), at most 3.1 % above the sample and
//! never below it. Time without a sample has no value: a line through it would say what nobody has
//! measured.

mod percentiles;
mod spans;
mod sums;
mod values;
mod weighted;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::spans::{Lengths, STATISTICS, Spans, SpansError, Statistic};
pub use self::values::{PERCENTILE_ERROR, Values};
use self::{
    percentiles::Percentiles,
    sums::{Entry, Sums},
    weighted::Weighted,
};
use crate::{Moments, quantile::Q, shape::Shape};

/// What a thread measured in one row: a second, or what a record has in place of it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub thread: u32,
    pub from_ns: u64,
    pub to_ns: u64,
    pub wake: &'a Moments,
    pub missed: u64,
    /// Cells of [`Layout::COARSE`](crate::Layout::COARSE) with their counts.
    pub cells: &'a [(u16, u64)],
}

/// A step of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub from_ns: u64,
    /// End: the moment that the values are of.
    pub to_ns: u64,
    /// Samples in it.
    pub n: u64,
    /// Missed wake-ups in it: in none of the values.
    pub missed: u64,
    /// Threads without a sample in it, or whose samples were collected late and count in the step
    /// where their row begins.
    pub gaps: u32,
    /// Missed wake-ups in the window that ends with it.
    pub window_missed: u64,
    /// Gaps in that window.
    pub window_gaps: u64,
    /// All samples so far; null: none yet.
    pub cumulative: Option<Values>,
    /// Samples of the window; null: it is not full yet, or holds none.
    pub windowed: Option<Values>,
    /// Samples weighted by age; null: no sample in this step.
    pub exponential: Option<Values>,
}

/// Hands each step to `see`, in order of time; steps without a sample, too. A rest of less than
/// half a step at the end belongs to the last one. Rows may come in any order; `threads` is how
/// many there are, and cells outside of the grid count in its last one.
pub fn each(rows: &mut [Row<'_>], threads: u32, spans: Spans, mut see: impl FnMut(Step)) {
    let step_ns = spans.step_ns.max(1);
    let Some(end_ns) = rows.iter().map(|row| row.to_ns.max(row.from_ns)).max() else { return };
    let len = steps(end_ns, step_ns);
    let window = usize::try_from(spans.window_ns / step_ns).unwrap_or(usize::MAX).max(1);
    let at = |row: &Row<'_>| (row.from_ns / step_ns).min(len - 1);
    rows.sort_by_key(|row| (at(row), row.thread));
    let mut state = State::new(rows, spans.half_life_ns as f64 / step_ns as f64);
    let (mut next, mut oldest) = (0, 0);
    for step in 0..len {
        let until = |from: usize, step: u64| {
            from + rows[from..].iter().take_while(|row| at(row) <= step).count()
        };
        let (from, leaves) = (next, step.checked_sub(window as u64));
        next = until(from, step);
        if let Some(leaves) = leaves {
            let end = until(oldest, leaves);
            state.leave(&rows[oldest..end]);
            oldest = end;
        }
        let mut found = state.enter(&rows[from..next], threads);
        found.from_ns = step * step_ns;
        found.to_ns = if step + 1 == len { end_ns } else { found.from_ns + step_ns };
        if step + 1 < window as u64 {
            found.windowed = None;
        }
        see(found);
    }
}

/// How many steps there are up to a time.
fn steps(end_ns: u64, step_ns: u64) -> u64 {
    (end_ns.saturating_add(step_ns / 2) / step_ns).max(1)
}

/// What is known at a moment.
struct State {
    all: Moments,
    window: Sums,
    aged: Weighted,
    percentiles: [Percentiles; 3],
}

const ALL: usize = 0;
const WINDOW: usize = 1;
const AGED: usize = 2;

impl State {
    fn new(rows: &[Row<'_>], half_life: f64) -> Self {
        let cells = rows.iter().flat_map(|row| row.cells).map(|cell| cell.0);
        let (low, high) = cells.fold((u16::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
        let low = low.min(high);
        let new = || Percentiles::new(low, high);
        Self {
            all: Moments::default(),
            window: Sums::default(),
            aged: Weighted::new(half_life),
            percentiles: [new(), new(), new()],
        }
    }

    fn leave(&mut self, rows: &[Row<'_>]) {
        self.window.leave();
        for &(cell, n) in rows.iter().flat_map(|row| row.cells) {
            self.percentiles[WINDOW].add(cell, -(n as f64));
        }
    }

    fn enter(&mut self, rows: &[Row<'_>], threads: u32) -> Step {
        let (mut here, mut missed) = (Moments::default(), 0_u64);
        for row in rows {
            here.merge(row.wake);
            missed = missed.saturating_add(row.missed);
        }
        let weight = self.aged.enter(&here);
        if let Some(by) = weight.rebased_by {
            self.percentiles[AGED].scale(by);
        }
        for &(cell, n) in rows.iter().flat_map(|row| row.cells) {
            let n = n as f64;
            self.percentiles[ALL].add(cell, n);
            self.percentiles[WINDOW].add(cell, n);
            self.percentiles[AGED].add(cell, n * weight.of_new);
        }
        self.all.merge(&here);
        let with = rows.chunk_by(|a, b| a.thread == b.thread);
        let with = with.filter(|of| of.iter().any(|row| row.wake.count() > 0)).count();
        let gaps = threads.saturating_sub(u32::try_from(with).unwrap_or(u32::MAX));
        self.window.enter(Entry { wake: here.clone(), missed, gaps: gaps.into() });
        let of_window = self.window.all();
        let aged = (here.count() > 0).then(|| self.aged.values()).flatten();
        let [all, windowed, weighted] = &mut self.percentiles;
        Step {
            from_ns: 0,
            to_ns: 0,
            n: here.count(),
            missed,
            gaps,
            window_missed: of_window.missed,
            window_gaps: of_window.gaps,
            cumulative: of(&self.all).map(|values| all.read_into(values)),
            windowed: of(&of_window.wake).map(|values| windowed.read_into(values)),
            exponential: aged.map(|values| weighted.read_into(values)),
        }
    }
}

/// Values of exact sums; percentiles are not among them.
fn of(moments: &Moments) -> Option<Values> {
    let shape = Shape::of(moments);
    Some(Values {
        n: moments.count() as f64,
        mean_ns: moments.mean()?,
        sd_ns: moments.sd(),
        skewness: shape.map(|shape| shape.g1),
        kurtosis: shape.map(|shape| shape.g2),
        percentiles_ns: [None; Q::TABLE.len()],
    })
}

#[cfg(test)]
mod tests;
