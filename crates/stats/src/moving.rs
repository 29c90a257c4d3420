//! Statistics over time from rows of exact sums and coarse cells: of a window that moves, with
//! weights that halve with age (exponential), and of all so far (cumulative).
//!
//! Sums and moments are exact: a window is merged from its steps, never added to and taken from
//! (Chan, Golub, LeVeque 1979; Pebay, SAND2008-6212, for those with weights). Percentiles are upper
//! edges of cells of [`Layout::COARSE`](crate::Layout::COARSE), at most 3.1 % above the sample and
//! never below it. Time without a sample has no value: a line through it would show what was never
//! measured.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::moments::{Shape, central};
use crate::quantile::Q;
use crate::{Layout, Moments, samples};

/// What a thread measured in one row: a second, or what a record has in place of it.
#[derive(Clone, Copy, Debug)]
pub struct MovingRow<'a> {
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
pub struct MovingStep {
    pub from_ns: u64,
    /// End: the time of the values.
    pub to_ns: u64,
    /// Number of samples in the window.
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
pub fn each(
    rows: &mut [MovingRow<'_>],
    threads: u32,
    spans: Spans,
    mut see: impl FnMut(MovingStep),
) {
    let step_ns = spans.step_ns.max(1);
    let Some(end_ns) = rows.iter().map(|row| row.to_ns.max(row.from_ns)).max() else { return };
    let len = steps(end_ns, step_ns);
    let window = usize::try_from(spans.window_ns / step_ns).unwrap_or(usize::MAX).max(1);
    let at = |row: &MovingRow<'_>| (row.from_ns / step_ns).min(len - 1);
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
    fn new(rows: &[MovingRow<'_>], half_life: f64) -> Self {
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

    fn leave(&mut self, rows: &[MovingRow<'_>]) {
        self.window.leave();
        for &(cell, n) in rows.iter().flat_map(|row| row.cells) {
            self.percentiles[WINDOW].add(cell, -(n as f64));
        }
    }

    fn enter(&mut self, rows: &[MovingRow<'_>], threads: u32) -> MovingStep {
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
        MovingStep {
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

// Percentiles of counts that change a little at a time: a mark for each stays where it was found
// and walks to the next cell, so that a step costs its cells and not all there are.

const OF: [Q; 5] = Q::TABLE;

/// Counts, or sums of weights, with the cells of the percentiles.
#[derive(Debug)]
struct Percentiles {
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
    fn new(low: u16, high: u16) -> Self {
        let len = usize::from(high - low) + 1;
        Self {
            first: usize::from(low),
            counts: vec![0.0; len],
            total: 0.0,
            marks: [Mark::default(); OF.len()],
        }
    }

    /// Adds to a cell. Whole numbers below 2^53 stay exact.
    fn add(&mut self, cell: u16, n: f64) {
        let cell = usize::from(cell) - self.first;
        self.counts[cell] += n;
        self.total += n;
        for mark in self.marks.iter_mut().filter(|mark| cell < mark.cell) {
            mark.before += n;
        }
    }

    fn scale(&mut self, by: f64) {
        self.counts.iter_mut().for_each(|n| *n *= by);
        self.total *= by;
        self.marks.iter_mut().for_each(|mark| mark.before *= by);
    }

    /// Values with their percentiles, those that their `n` carries.
    fn read_into(&mut self, values: Values) -> Values {
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

// Lengths of steps, windows and half-lives, and the statistics by name.

/// Lengths, in steps of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spans {
    /// Length of a step, nanoseconds: a value each.
    pub step_ns: u64,
    /// Length of the window, nanoseconds: whole steps.
    pub window_ns: u64,
    /// Age at which a sample counts half, nanoseconds.
    pub half_life_ns: u64,
}

/// What is asked for; `None`: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Length of the window: a tenth of the run, three steps at least.
    pub window_ns: Option<u64>,
    /// Half-life: half of the window.
    pub half_life_ns: Option<u64>,
}

/// Lengths that the rows of a run do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpansError {
    /// The window is no whole number of steps.
    NotWhole(u64, u64),
    /// The window is longer than the run: it would never be full.
    TooLong(u64, u64),
    /// The half-life is shorter than a step.
    TooShort(u64, u64),
}

impl std::fmt::Display for SpansError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ns = samples::duration;
        match *self {
            Self::NotWhole(asked, step) => write!(
                f,
                "a window of {} is no whole number of the rows that were read, of {} each; ask for \
                 a multiple of {}",
                samples::ns(asked),
                ns(step),
                ns(step)
            ),
            Self::TooLong(asked, end) => write!(
                f,
                "a window of {} is longer than the run of {} and would never be full; ask for a \
                 shorter one",
                ns(asked),
                ns(end)
            ),
            Self::TooShort(asked, step) => write!(
                f,
                "a half-life of {} is shorter than the rows that were read, of {} each; ask for {} \
                 or more",
                samples::ns(asked),
                ns(step),
                ns(step)
            ),
        }
    }
}

impl std::error::Error for SpansError {}

impl Spans {
    /// For a run of this length in steps of this one.
    ///
    /// # Errors
    /// Lengths asked for that the steps or the run do not allow.
    pub fn of(step_ns: u64, end_ns: u64, asked: Lengths) -> Result<Self, SpansError> {
        let step_ns = step_ns.max(1);
        let steps = steps(end_ns, step_ns);
        let window_ns = match asked.window_ns {
            Some(window_ns) if window_ns == 0 || window_ns % step_ns != 0 => {
                return Err(SpansError::NotWhole(window_ns, step_ns));
            }
            Some(window_ns) if window_ns / step_ns > steps => {
                return Err(SpansError::TooLong(window_ns, end_ns));
            }
            Some(window_ns) => window_ns,
            None => (steps / 10).max(3).saturating_mul(step_ns),
        };
        let half_life_ns = match asked.half_life_ns {
            Some(half_life_ns) if half_life_ns < step_ns => {
                return Err(SpansError::TooShort(half_life_ns, step_ns));
            }
            Some(half_life_ns) => half_life_ns,
            None => (window_ns / 2).max(step_ns),
        };
        Ok(Self { step_ns, window_ns, half_life_ns })
    }
}

/// A statistic among [`Values`].
pub struct MovingStatistic {
    /// Name in files: `mean_ns`, `p99.9_ns`, `skewness`.
    pub id: &'static str,
    pub name: &'static str,
    /// Whether it is a time; else it is a number.
    pub is_time: bool,
    /// Takes it from the values.
    pub of: fn(&Values) -> Option<f64>,
}

const fn time(
    id: &'static str,
    name: &'static str,
    of: fn(&Values) -> Option<f64>,
) -> MovingStatistic {
    MovingStatistic { id, name, is_time: true, of }
}

fn percentile(values: &Values, at: usize) -> Option<f64> {
    values.percentiles_ns[at].map(|ns| ns as f64)
}

/// All statistics. Percentiles stand in the order of [`Q::TABLE`].
pub const STATISTICS: [MovingStatistic; 4 + Q::TABLE.len()] = [
    time("mean_ns", "mean", |of| Some(of.mean_ns)),
    time("sd_ns", "sd", |of| of.sd_ns),
    time("p5_ns", "p5", |of| percentile(of, 0)),
    time("p50_ns", "p50", |of| percentile(of, 1)),
    time("p95_ns", "p95", |of| percentile(of, 2)),
    time("p99_ns", "p99", |of| percentile(of, 3)),
    time("p99.9_ns", "p99.9", |of| percentile(of, 4)),
    MovingStatistic { id: "skewness", name: "skewness g1", is_time: false, of: |of| of.skewness },
    MovingStatistic { id: "kurtosis", name: "kurtosis g2", is_time: false, of: |of| of.kurtosis },
];

// A queue of sums with the sum of all at hand, without taking anything away: two stacks, of which
// the older one holds sums of itself and all younger ones in it. Extremes and sums that did not
// fit stay right, and a value that left leaves nothing behind.

/// What is summed up of a step.
#[derive(Clone, Debug, Default)]
struct Entry {
    wake: Moments,
    missed: u64,
    /// Threads without a sample.
    gaps: u64,
}

impl Entry {
    fn add(&mut self, of: &Self) {
        self.wake.merge(&of.wake);
        self.missed = self.missed.saturating_add(of.missed);
        self.gaps = self.gaps.saturating_add(of.gaps);
    }
}

/// Sums of the steps of a window.
#[derive(Default)]
struct Sums {
    /// The oldest is the last; each is the sum of itself and of those before it in the list.
    old: Vec<Entry>,
    new: Vec<Entry>,
    new_all: Entry,
}

impl Sums {
    fn enter(&mut self, entry: Entry) {
        self.new_all.add(&entry);
        self.new.push(entry);
    }

    /// The oldest step goes.
    fn leave(&mut self) {
        if self.old.is_empty() {
            let mut sum = Entry::default();
            for entry in self.new.drain(..).rev() {
                sum.add(&entry);
                self.old.push(sum.clone());
            }
            self.new_all = Entry::default();
        }
        self.old.pop();
    }

    /// The sum of all.
    fn all(&self) -> Entry {
        let mut all = self.new_all.clone();
        if let Some(old) = self.old.last() {
            all.add(old);
        }
        all
    }
}

/// Statistics of the samples at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Values {
    /// Samples; with weights what they are worth: (sum of weights)² / sum of their squares.
    pub n: f64,
    pub mean_ns: f64,
    /// Standard deviation about the mean, with n - 1; with weights about the weighted mean, without
    /// a correction. Null: fewer than two samples.
    pub sd_ns: Option<f64>,
    /// Skewness g1; null: all are equal, or the sums did not fit.
    pub skewness: Option<f64>,
    /// Excess kurtosis g2, 0 of a normal distribution; null likewise.
    pub kurtosis: Option<f64>,
    /// p5, p50, p95, p99, p99.9, upper edges of cells at most 3.1 % wide; null: too few samples.
    pub percentiles_ns: [Option<u64>; Q::TABLE.len()],
}

/// How far a percentile may lie above the sample, as a share of it.
pub const PERCENTILE_ERROR: f64 = 1.0 / (1 << Layout::COARSE.sub_bits()) as f64;

// Moments with weights that halve with age. Pébay's formulas hold for weights as for counts: all
// sums of a state that ages by a step are multiplied by the same factor, and its mean stays.

/// Weights of new samples grow instead of those of old ones shrinking, up to this.
const WEIGHT_MAX: f64 = 1e200;

/// What a step's samples weigh.
#[derive(Clone, Copy, Debug)]
struct Weight {
    /// Weight of the samples of this step.
    of_new: f64,
    /// What all weights that were given before have to be multiplied by.
    rebased_by: Option<f64>,
}

#[derive(Debug)]
struct Weighted {
    /// Factor of a step.
    grows: f64,
    weight: f64,
    /// Sums of weights and of their squares, in units of the weight of this step's samples.
    n: f64,
    n2: f64,
    mean: f64,
    /// Sums of the 2nd, 3rd and 4th power of deviations.
    m: [f64; 3],
    /// A step without sums of higher powers came: its part cannot be known any more.
    is_higher_lost: bool,
}

impl Weighted {
    fn new(half_life_steps: f64) -> Self {
        let grows = 2_f64.powf(1.0 / half_life_steps.max(1e-2));
        Self { grows, weight: 1.0, n: 0.0, n2: 0.0, mean: 0.0, m: [0.0; 3], is_higher_lost: false }
    }

    /// A step passes, with these samples or none.
    fn enter(&mut self, here: &Moments) -> Weight {
        let fade = 1.0 / self.grows;
        self.n *= fade;
        self.n2 *= fade * fade;
        self.m = self.m.map(|m| m * fade);
        self.weight *= self.grows;
        let rebased_by = (self.weight > WEIGHT_MAX).then(|| 1.0 / self.weight);
        if rebased_by.is_some() {
            self.weight = 1.0;
        }
        if let Some(mean) = here.mean() {
            let n = here.count() as f64;
            let m2 = here.sd().map_or(0.0, |sd| sd * sd * (n - 1.0));
            let higher = central(here);
            self.is_higher_lost |= higher.is_none();
            self.merge(n, mean, higher.unwrap_or([m2, 0.0, 0.0]));
        }
        Weight { of_new: self.weight, rebased_by }
    }

    /// Adds samples of weight 1 (Pébay 2008, equations 2.1 and 3.1).
    fn merge(&mut self, nb: f64, mean: f64, [b2, b3, b4]: [f64; 3]) {
        let (na, [a2, a3, a4]) = (self.n, self.m);
        let n = na + nb;
        let d = mean - self.mean;
        let (ra, rb) = (na / n, nb / n);
        self.mean += d * rb;
        self.m = [
            a2 + b2 + d * d * na * rb,
            a3 + b3 + d.powi(3) * na * rb * (ra - rb) + 3.0 * d * (ra * b2 - rb * a2),
            a4 + b4
                + d.powi(4) * na * rb * (ra * ra - ra * rb + rb * rb)
                + 6.0 * d * d * (ra * ra * b2 + rb * rb * a2)
                + 4.0 * d * (ra * b3 - rb * a3),
        ];
        self.n = n;
        self.n2 += nb;
    }

    /// The values; percentiles are not among them.
    fn values(&self) -> Option<Values> {
        if self.n <= 0.0 {
            return None;
        }
        let worth = self.n * self.n / self.n2;
        let sd = (self.m[0] / self.n).sqrt();
        // Means of equal samples differ by rounding, and its shape is no shape.
        let differ = sd > 16.0 * f64::EPSILON * self.mean;
        let shape = Shape::from_central(self.n, self.m, false);
        let shape = shape.filter(|_| differ && !self.is_higher_lost);
        Some(Values {
            n: worth,
            mean_ns: self.mean,
            sd_ns: (worth > 1.0).then_some(if differ { sd } else { 0.0 }),
            skewness: shape.map(|shape| shape.g1),
            kurtosis: shape.map(|shape| shape.g2),
            percentiles_ns: [None; Q::TABLE.len()],
        })
    }
}

#[cfg(test)]
mod spans_tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn lengths_that_no_rows_have_are_refused_with_both() {
        let of =
            |window_ns, half_life_ns| Spans::of(S, 20 * S, Lengths { window_ns, half_life_ns });
        assert_eq!(
            of(None, None),
            Ok(Spans { step_ns: S, window_ns: 3 * S, half_life_ns: 3 * S / 2 })
        );
        assert_eq!(of(Some(10 * S), Some(2 * S)).map(|of| of.window_ns), Ok(10 * S));
        let text = |of: Result<Spans, SpansError>| of.expect_err("refused").to_string();
        assert!(text(of(Some(1_500_000_000), None)).contains("multiple of 1 s"));
        assert!(text(of(Some(0), None)).contains("0 ns"));
        assert!(text(of(Some(60 * S), None)).contains("1 min is longer than the run of 20 s"));
        assert!(text(of(None, Some(S / 2))).contains("half-life of 500 ms"));
        let short = Spans::of(S, 0, Lengths::default()).expect("of nothing");
        assert_eq!(short.window_ns, 3 * S);
    }

    #[test]
    fn percentiles_have_their_names() {
        let named = STATISTICS.iter().filter(|of| of.name.starts_with('p'));
        for (statistic, q) in named.zip(Q::TABLE) {
            assert_eq!(statistic.name, q.name());
            assert_eq!(statistic.id, format!("{}_ns", q.name()));
        }
    }
}
