//! Which multiple of a period the events keep: two periods follow a common divisor, too, and one
//! that the search met at a harmonic follows it in every second or third cycle only.

use super::{EVENTS_MIN, Fold, Period, fold, search::line};
use crate::binomial;

/// Multiples that are tried.
const MOST: u64 = 40;
/// Parts that are tried.
const PARTS: u32 = 5;
/// Share of the cycles of a part that have an event.
const PART_FULL: f64 = 0.95;
/// Share of them that an arc may take.
const PART_WIDTH: f64 = 0.05;
/// Probability by chance, of all that are tried, below which a multiple is another period.
const P_MULTIPLE: f64 = 1e-4;

fn score(occupied: u64, cycles: u64) -> f64 {
    occupied as f64 * occupied as f64 / cycles.max(1) as f64
}

impl Period {
    fn score(&self) -> f64 {
        score(self.occupied, self.cycles)
    }

    /// The part of this period whose cycles are fuller: a broad one is nearly as high at half of
    /// its frequency.
    pub(super) fn fastest(self, events: &[u64]) -> Self {
        let of_part = |parts: u32| {
            let period_ns = self.period_ns / f64::from(parts);
            let (period_ns, error_ns) = line(events, period_ns, &fold(events, period_ns)?)?;
            let fold = Fold { of: self.fold.of, ..fold(events, period_ns)? };
            let part = Self { period_ns, error_ns, fold, ..self }.over(events);
            (part.score() > self.score()).then_some(part)
        };
        (2..=PARTS).rev().find_map(of_part).unwrap_or(self)
    }

    /// The multiple whose cycles are full and hold most events: followers times occupancy.
    pub(super) fn slowest(self, events: &[u64]) -> Self {
        let follow: Vec<u64> =
            events.iter().copied().filter(|&time| self.is_followed_by(time)).collect();
        let number = |time: u64| self.fold.cycle(time, self.period_ns).max(0.0) as u64;
        let mut cycles: Vec<u64> = follow.iter().map(|&time| number(time)).collect();
        cycles.dedup();
        let mut best = (self.score(), None);
        for k in (2..=MOST).take_while(|k| self.cycles / k >= EVENTS_MIN as u64) {
            let mut counts = vec![0; k as usize];
            cycles.iter().for_each(|cycle| counts[(cycle % k) as usize] += 1);
            let most = counts.into_iter().enumerate().max_by_key(|&(_, count)| count);
            let Some((residue, occupied)) = most else { continue };
            let p = binomial::tail(occupied, cycles.len() as u64, 1.0 / k as f64);
            let new = score(occupied, self.cycles.div_ceil(k));
            if new > best.0 && p * ((k * MOST) as f64) < P_MULTIPLE {
                best = (new, Some((k, residue as u64)));
            }
        }
        let Some((k, residue)) = best.1 else { return self };
        let own: Vec<u64> =
            follow.into_iter().filter(|&time| number(time) % k == residue).collect();
        self.times(k as f64, &own).unwrap_or(self)
    }

    /// This period, found in what another one left, or the shortest part of it whose cycles are
    /// full, of all events: those that coincide with the other one's belong to both.
    #[must_use]
    pub fn filled(self, all: &[u64]) -> Self {
        let of_part = |parts: u32| {
            let period_ns = self.period_ns / f64::from(parts);
            let fold = Fold { phase_ns: self.fold.phase_ns.rem_euclid(period_ns), ..self.fold };
            let part = Self { period_ns, fold, ..self };
            let own: Vec<u64> =
                all.iter().copied().filter(|&time| part.is_followed_by(time)).collect();
            let fold = Fold { of: all.len() as u64, ..part.fold };
            let part = Self { fold, ..self }.times(1.0 / f64::from(parts), &own)?;
            let narrow = part.fold.width_ns <= PART_WIDTH * part.period_ns;
            let full = if parts > 1 { PART_FULL } else { self.occupancy() };
            (narrow && part.occupancy() >= full).then_some(part)
        };
        (1..=PARTS).rev().find_map(of_part).unwrap_or(self)
    }

    /// So many times this period, followed by these events.
    fn times(&self, k: f64, own: &[u64]) -> Option<Self> {
        let guess_ns = k * self.period_ns;
        let (period_ns, error_ns) = line(own, guess_ns, &fold(own, guess_ns)?)?;
        let fold = Fold { of: self.fold.of, ..fold(own, period_ns)?.narrowed(own, period_ns) };
        Some(Self { period_ns, error_ns, fold, ..*self }.over(own))
    }
}
