//! Folding at a period: where in it the events lie, how close together, and how many.

use std::collections::BTreeMap;

/// Events folded at a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fold {
    /// Middle of the arc that holds the events that follow, nanoseconds into the period.
    pub phase_ns: f64,
    /// Length of that arc.
    pub width_ns: f64,
    pub follow: u64,
    pub of: u64,
}

/// An arc must be denser than this times the mean to belong: what does not follow the period lies
/// everywhere and must not widen it.
const DENSER: f64 = 3.0;

/// Folds times: the arc with the largest excess of events. `None` without events.
///
/// The excess over a uniform density is largest between two order statistics (Kuiper 1960), so one
/// pass over the sorted phases finds it.
pub fn fold(times_ns: &[u64], period_ns: f64) -> Option<Fold> {
    let mut phases: Vec<f64> = times_ns.iter().map(|&time| turn(time as f64 / period_ns)).collect();
    phases.sort_unstable_by(f64::total_cmp);
    let n = phases.len();
    // Twice round the circle, an arc from i to j has value (j + 1 - i)/n - DENSER * length.
    let at = |index: usize| phases[index % n] + (index / n) as f64;
    let height = |index: usize| index as f64 / n as f64 - DENSER * at(index);
    let (mut best, mut arc) = (f64::MIN, None);
    let mut start = 0;
    for end in 0..2 * n {
        // From `start`, or anew from here: the lowest beginning so far, at most once round.
        if height(end) < height(start) || end - start >= n {
            start = end;
        }
        let value = height(end) - height(start);
        if value > best {
            (best, arc) = (value, Some((start, end)));
        }
    }
    let (start, end) = arc?;
    let width = at(end) - at(start);
    Some(Fold {
        phase_ns: turn(at(start) + width / 2.0) * period_ns,
        width_ns: width * period_ns,
        follow: (end - start + 1) as u64,
        of: n as u64,
    })
}

/// The part of a turn, in [0, 1).
fn turn(turns: f64) -> f64 {
    let rest = turns - turns.floor();
    if rest < 1.0 { rest } else { 0.0 }
}

impl Fold {
    /// Whether a time lies in the arc.
    pub(super) fn holds(&self, time_ns: u64, period_ns: f64) -> bool {
        // A rounding error of the largest times, so that the ends of the arc are in it.
        self.offset_ns(time_ns, period_ns).abs() <= self.width_ns / 2.0 + 1.0
    }

    /// How far from the middle of the arc a time lies, in half a period either way.
    pub(super) fn offset_ns(&self, time_ns: u64, period_ns: f64) -> f64 {
        let turns = (time_ns as f64 - self.phase_ns) / period_ns;
        (turns - turns.round()) * period_ns
    }

    /// The narrowest arc inside that has an event in nearly as many cycles, if it is less than half
    /// as wide: the rest of this one is of something else.
    pub(super) fn narrowed(self, times_ns: &[u64], period_ns: f64) -> Self {
        /// Of a hundred cycles, those that may go without.
        const OF_CYCLES: usize = 97;
        let follow = times_ns.iter().copied().filter(|&time| self.holds(time, period_ns));
        let mut at: Vec<(f64, i64)> = follow
            .map(|time| (self.offset_ns(time, period_ns), self.cycle(time, period_ns) as i64))
            .collect();
        at.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut inside = BTreeMap::new();
        at.iter().for_each(|&(_, cycle)| *inside.entry(cycle).or_insert(0) += 0);
        let need = (inside.len() * OF_CYCLES).div_ceil(100);
        let (mut held, mut from) = (0, 0);
        let mut best: Option<(f64, f64, usize)> = None;
        for (to, &(offset, cycle)) in at.iter().enumerate() {
            let count = inside.entry(cycle).or_insert(0_u32);
            held += usize::from(*count == 0);
            *count += 1;
            while held >= need && from <= to {
                let (first, cycle) = at[from];
                let width_ns = offset - first;
                if best.is_none_or(|(best_ns, ..)| width_ns < best_ns) {
                    best = Some((width_ns, first, to + 1 - from));
                }
                let count = inside.entry(cycle).or_insert(1);
                *count -= 1;
                held -= usize::from(*count == 0);
                from += 1;
            }
        }
        match best {
            Some((width_ns, first, follow)) if width_ns < self.width_ns / 2.0 => Self {
                phase_ns: (self.phase_ns + first + width_ns / 2.0).rem_euclid(period_ns),
                width_ns,
                follow: follow as u64,
                of: self.of,
            },
            _ => self,
        }
    }

    /// Which period a time belongs to.
    pub(super) fn cycle(&self, time_ns: u64, period_ns: f64) -> f64 {
        ((time_ns as f64 - self.phase_ns) / period_ns).round()
    }
}
