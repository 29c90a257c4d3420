//! Do events follow a period? Asked of the times of clusters, not of a series: O(events).
//!
//! The H-test (de Jager, Raubenheimer and Swanepoel, Astron. Astrophys. 221, 1989) finds the sharp
//! pulses that one harmonic misses and the broad ones that many harmonics bury.

mod fold;
mod intervals;
mod multiples;
mod search;

pub use fold::{Fold, fold};
pub use intervals::{Intervals, intervals};
pub use search::{Ask, Period, search};

/// Harmonics that the H-test looks at.
const HARMONICS: usize = 20;
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
    fn of(times_s: &[f64], frequency_hz: f64) -> Self {
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
struct Sweep<'a> {
    times_s: &'a [f64],
    from_hz: f64,
    step_hz: f64,
    index: usize,
    phases: Vec<Phases>,
    step: Vec<Phases>,
}

/// Steps after which phases are made anew: until then rounding adds up to 1e-5.
const TURNS_MAX: usize = 64;

impl<'a> Sweep<'a> {
    fn new(times_s: &'a [f64], from_hz: f64, step_hz: f64) -> Self {
        let phases = |hz| times_s.chunks(LANES).map(|chunk| Phases::of(chunk, hz)).collect();
        Self { times_s, from_hz, step_hz, index: 0, phases: phases(from_hz), step: phases(step_hz) }
    }

    /// At the next frequency, beginning with the first.
    fn next(&mut self, harmonics: usize) -> H {
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
    fn of(times_s: &[f64], frequency_hz: f64, harmonics: usize) -> Self {
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
    fn is_subharmonic(&self) -> bool {
        let excess = |k: usize| self.powers[k - 1] - 2.0;
        let total: f64 = (1..=self.harmonics).map(excess).sum();
        (2..=self.harmonics).any(|j| {
            let multiples: f64 = (j..=self.harmonics).step_by(j).map(excess).sum();
            multiples >= 0.85 * total
        })
    }
}

#[cfg(test)]
mod tests;
