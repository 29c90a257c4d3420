//! Do events follow a period? Asked of the times of clusters, not of a series: O(events).
//!
//! The H-test (de Jager, Raubenheimer and Swanepoel, Astron. Astrophys. 221, 1989) finds the sharp
//! pulses that one harmonic misses and the broad ones that many harmonics bury.

#[cfg(test)]
mod tests;

pub use crate::period_search::{Period, PeriodOptions, search};

use std::collections::BTreeMap;

use crate::binomial;

/// Harmonics that the H-test looks at.
pub(crate) const HARMONICS: usize = 20;

/// Events that share a period by chance too easily to speak of it.
pub const EVENTS_MIN: usize = 5;

/// The H-test at one frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct H {
    /// max over m of (sum of the first m powers - 4 m + 4).
    pub h: f64,
    /// The m of it.
    pub harmonics: usize,
    /// 2/n |sum exp(i k phase)|² for k = 1, 2, ...: 2 on average by chance.
    pub powers: [f64; HARMONICS],
}

impl H {
    /// Probability of as much by chance, at one frequency that was fixed beforehand.
    pub fn p(&self) -> f64 {
        (-0.4 * self.h).exp().min(1.0)
    }
}

/// Events that are worked on at once: independent sums, which the compiler turns into vectors. H is
/// judged to a hundredth: single precision is enough for it, at twice the speed.
const LANES: usize = 8;

/// Phases of as many events as lanes, as points of the unit circle. Lanes without an event are 0
/// and add nothing.
#[derive(Clone, Copy, Debug)]
struct Phases {
    cos: [f32; LANES],
    sin: [f32; LANES],
}

impl Phases {
    pub(crate) fn of(times_s: &[f64], frequency_hz: f64) -> Self {
        let (mut cos, mut sin) = ([0.0; LANES], [0.0; LANES]);
        for (lane, &time) in times_s.iter().take(LANES).enumerate() {
            let turns = time * frequency_hz;
            let angle = std::f64::consts::TAU * (turns - turns.floor());
            (sin[lane], cos[lane]) = (angle as f32).sin_cos();
        }
        Self { cos, sin }
    }

    /// Turned by the phases of another.
    fn turned(&self, by: &Self) -> Self {
        let mut to = *self;
        for lane in 0..LANES {
            to.cos[lane] = self.cos[lane] * by.cos[lane] - self.sin[lane] * by.sin[lane];
            to.sin[lane] = self.cos[lane] * by.sin[lane] + self.sin[lane] * by.cos[lane];
        }
        to
    }
}

/// Sums of the phases and of their multiples.
struct Sums([[[f32; LANES]; 2]; HARMONICS]);

impl Sums {
    fn add(&mut self, phases: &Phases, harmonics: usize) {
        let mut multiple = *phases;
        for [cos, sin] in &mut self.0[..harmonics] {
            for lane in 0..LANES {
                cos[lane] += multiple.cos[lane];
                sin[lane] += multiple.sin[lane];
            }
            multiple = multiple.turned(phases);
        }
    }
}

/// The H-test at one frequency after the other, a step apart: from one to the next the phases are
/// turned, which takes a fraction of sine and cosine.
pub(crate) struct Sweep<'a> {
    pub(crate) times_s: &'a [f64],
    pub(crate) from_hz: f64,
    pub(crate) step_hz: f64,
    pub(crate) index: usize,
    phases: Vec<Phases>,
    step: Vec<Phases>,
}

/// Steps after which phases are made anew: until then rounding adds up to 1e-5.
const TURNS_MAX: usize = 64;

impl<'a> Sweep<'a> {
    pub(crate) fn new(times_s: &'a [f64], from_hz: f64, step_hz: f64) -> Self {
        let phases = |hz| times_s.chunks(LANES).map(|chunk| Phases::of(chunk, hz)).collect();
        Self { times_s, from_hz, step_hz, index: 0, phases: phases(from_hz), step: phases(step_hz) }
    }

    /// At the next frequency, beginning with the first.
    pub(crate) fn next(&mut self, harmonics: usize) -> H {
        if self.index > 0 && self.index.is_multiple_of(TURNS_MAX) {
            let hz = self.from_hz + self.index as f64 * self.step_hz;
            let chunks = self.times_s.chunks(LANES);
            self.phases.iter_mut().zip(chunks).for_each(|(to, chunk)| *to = Phases::of(chunk, hz));
        } else if self.index > 0 {
            let steps = self.phases.iter_mut().zip(&self.step);
            steps.for_each(|(phases, step)| *phases = phases.turned(step));
        }
        self.index += 1;
        H::of_phases(self.phases.iter().copied(), self.times_s.len(), harmonics)
    }
}

impl H {
    pub(crate) fn of(times_s: &[f64], frequency_hz: f64, harmonics: usize) -> Self {
        let chunks = times_s.chunks(LANES);
        let phases = chunks.map(|chunk| Phases::of(chunk, frequency_hz));
        Self::of_phases(phases, times_s.len(), harmonics)
    }

    fn of_phases(phases: impl Iterator<Item = Phases>, n: usize, harmonics: usize) -> Self {
        let mut sums = Sums([[[0.0; LANES]; 2]; HARMONICS]);
        phases.for_each(|phases| sums.add(&phases, harmonics));
        let sum = |lanes: [f32; LANES]| lanes.iter().map(|&sum| f64::from(sum)).sum();
        let sums = sums.0.map(|both| both.map(sum));
        Self::from_sums(&sums, n, harmonics)
    }

    fn from_sums(sums: &[[f64; 2]; HARMONICS], n: usize, harmonics: usize) -> Self {
        let scale = 2.0 / n.max(1) as f64;
        let powers = sums.map(|[c, s]| scale * (c * c + s * s));
        let (mut h, mut best, mut sum) = (f64::MIN, 1, 0.0);
        for (index, power) in powers[..harmonics].iter().enumerate() {
            sum += power;
            let value = sum - 4.0 * index as f64;
            if value > h {
                (h, best) = (value, index + 1);
            }
        }
        Self { h, harmonics: best, powers }
    }

    /// Whether the power lies in multiples of one harmonic: the true frequency is that multiple.
    pub(crate) fn is_subharmonic(&self) -> bool {
        let excess = |k: usize| self.powers[k - 1] - 2.0;
        let total: f64 = (1..=self.harmonics).map(excess).sum();
        (2..=self.harmonics).any(|j| {
            let multiples: f64 = (j..=self.harmonics).step_by(j).map(excess).sum();
            multiples >= 0.85 * total
        })
    }
}

/// Events folded at a period: where in it they lie, how close together, and how many.
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
    let mut phases: Vec<f64> =
        times_ns.iter().map(|&time| fraction(time as f64 / period_ns)).collect();
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
        phase_ns: fraction(at(start) + width / 2.0) * period_ns,
        width_ns: width * period_ns,
        follow: (end - start + 1) as u64,
        of: n as u64,
    })
}

/// The part of a turn, in [0, 1).
fn fraction(turns: f64) -> f64 {
    let rest = turns - turns.floor();
    if rest < 1.0 { rest } else { 0.0 }
}

impl Fold {
    /// Whether a time lies in the arc.
    pub(crate) fn holds(&self, time_ns: u64, period_ns: f64) -> bool {
        // A rounding error of the largest times, so that the ends of the arc are in it.
        self.offset_ns(time_ns, period_ns).abs() <= self.width_ns / 2.0 + 1.0
    }

    /// How far from the middle of the arc a time lies, in half a period either way.
    pub(crate) fn offset_ns(&self, time_ns: u64, period_ns: f64) -> f64 {
        let turns = (time_ns as f64 - self.phase_ns) / period_ns;
        (turns - turns.round()) * period_ns
    }

    /// The narrowest arc inside that has an event in nearly as many cycles, if it is less than half
    /// as wide: the rest of this one is of something else.
    pub(crate) fn narrowed(self, times_ns: &[u64], period_ns: f64) -> Self {
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
    pub(crate) fn cycle(&self, time_ns: u64, period_ns: f64) -> f64 {
        ((time_ns as f64 - self.phase_ns) / period_ns).round()
    }
}

// Regular intervals without a fixed phase: a loop that counts from its last run drifts away from
// every period, and the test of phases, which supposes intervals of chance, does not hold for it.

/// Longest over shortest of the intervals that are alike.
const ALIKE: f64 = 5.0 / 3.0;

/// Share of them that is no regularity: 0.19 of Poisson's intervals at most, half of those with a
/// dead time of half of their mean.
const BY_CHANCE: f64 = 0.5;

/// Places where they could lie, a factor of [`ALIKE`] apart over three decades.
const PLACES: f64 = 14.0;

/// Intervals that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervals {
    pub mean_ns: f64,
    pub shortest_ns: u64,
    pub longest_ns: u64,
    pub count: u64,
    pub of: u64,
    /// Probability of as many by chance.
    pub p: f64,
}

/// The most intervals between ascending times that are alike.
pub fn intervals(times_ns: &[u64]) -> Option<Intervals> {
    let mut all: Vec<u64> = times_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    all.sort_unstable();
    if all.len() < EVENTS_MIN {
        return None;
    }
    let alike = |from: usize| {
        let most_ns = all[from] as f64 * ALIKE;
        &all[from..all.partition_point(|&interval| interval as f64 <= most_ns)]
    };
    let best = (0..all.len()).map(alike).max_by_key(|alike| alike.len())?;
    let (count, of) = (best.len() as u64, all.len() as u64);
    Some(Intervals {
        mean_ns: best.iter().map(|&interval| interval as f64).sum::<f64>() / count as f64,
        shortest_ns: best[0],
        longest_ns: best[best.len() - 1],
        count,
        of,
        p: (PLACES * binomial::tail(count, of, BY_CHANCE)).min(1.0),
    })
}
