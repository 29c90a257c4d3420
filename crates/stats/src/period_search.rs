//! The search for a period among many, and its multiples.

use crate::binomial;
use crate::coincidence::thin;
use crate::period::{EVENTS_MIN, Fold, H, HARMONICS, Sweep, fold};

// Which multiple of a period the events keep: two periods follow a common divisor, too, and one
// that the search met at a harmonic follows it in every second or third cycle only.

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
    fn fastest(self, events: &[u64]) -> Self {
        let of_part = |parts: u32| {
            let period_ns = self.period_ns / f64::from(parts);
            let (period_ns, error_ns) = fit_line(events, period_ns, &fold(events, period_ns)?)?;
            let fold = Fold { of: self.fold.of, ..fold(events, period_ns)? };
            let part = Self { period_ns, error_ns, fold, ..self }.over(events);
            (part.score() > self.score()).then_some(part)
        };
        (2..=PARTS).rev().find_map(of_part).unwrap_or(self)
    }

    /// The multiple whose cycles are full and hold most events: followers times occupancy.
    fn slowest(self, events: &[u64]) -> Self {
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
        let (period_ns, error_ns) = fit_line(own, guess_ns, &fold(own, guess_ns)?)?;
        let fold = Fold { of: self.fold.of, ..fold(own, period_ns)?.narrowed(own, period_ns) };
        Some(Self { period_ns, error_ns, fold, ..*self }.over(own))
    }
}

// The search for an unknown period, bounded in work whatever the run.
//
// Frequencies stand 1/(50 T) apart and the lowest one with H of at least 0.7 of the largest is
// taken: harmonics of the truth are as high. A grid over a whole day would have 10^9 of them, so a
// short period is looked for in the fullest stretch of a short time, and then followed through the
// rest of the run as far as it keeps step.

/// Events that a scan looks at; what follows it looks at more.
const SCAN_EVENTS: usize = 256;

/// Events times frequencies of one scan.
const SCAN_WORK: usize = 1_000_000;

/// Frequencies in 1/T.
const GRID: f64 = 50.0;

/// Periods that a stretch of time must hold.
const CYCLES_MIN: f64 = 5.0;

/// From one stretch to the next shorter one.
const SHORTER: f64 = 16.0;

/// Of H against the largest one.
const OF_LARGEST: f64 = 0.7;

/// Clocks and timers go wrong by less: what is searched round a period that is known.
const HINT_WITHIN: f64 = 2e-4;

/// Times that a frequency above the grid may lead to one further up.
const RATIOS: usize = 4;

/// A period found in a long stretch with less than this is not searched for in a shorter one.
const P_FOUND: f64 = 1e-4;

/// Between the frequencies of the grid, and among the stretches of time, there is more to choose
/// from than the frequencies counted: on noise (6 to 400 events, 1000 runs) p < 1 % came in 0.9 %
/// of the runs without this factor.
const FREEDOM: f64 = 3.0;

/// Parameters of a search for periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodOptions<'a> {
    /// Distance of the moments at which an event can be seen: the period of the wake-ups. Faster
    /// than half of it, periods cannot be distinguished.
    pub sampling_ns: u64,
    /// Shortest period; at least three sampling periods are taken.
    pub shortest_ns: u64,
    /// Periods that are known to be about: looked at over the whole run.
    pub hints_ns: &'a [u64],
}

/// A period and how well it is followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    pub period_ns: f64,
    /// Standard error of it.
    pub error_ns: f64,
    /// Statistic of the H-test at this period.
    pub h: f64,
    /// Frequencies that were tried.
    pub trials: u64,
    /// Probability of as much by chance, at any of the frequencies that were tried.
    pub p: f64,
    /// The events folded at it.
    pub fold: Fold,
    /// The stretch of time in which it keeps step: first event.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Cycles in that stretch.
    pub cycles: u64,
    /// Cycles with an event that follows.
    pub occupied: u64,
}

impl Period {
    /// From where to where, and what follows there.
    fn over(mut self, events: &[u64]) -> Self {
        let number = |time| self.fold.cycle(time, self.period_ns);
        let follow = events.iter().filter(|&&time| self.is_followed_by(time));
        let mut numbers: Vec<f64> = follow.map(|&time| number(time)).collect();
        numbers.dedup();
        self.occupied = numbers.len() as u64;
        self.cycles = ((number(self.to_ns) - number(self.from_ns)) as u64).saturating_add(1);
        self
    }

    /// Share of the cycles that have an event.
    pub fn occupancy(&self) -> f64 {
        self.occupied as f64 / self.cycles.max(1) as f64
    }

    /// What is left to follow other periods. `None`: the arc is so broad that what is left of this
    /// one cannot be kept apart from another.
    pub fn rest(&self, times_ns: &[u64], sampling_ns: u64) -> Option<Vec<u64>> {
        let within_ns = 1.5 * self.fold.width_ns.max(sampling_ns as f64);
        let apart = |time: &u64| self.fold.offset_ns(*time, self.period_ns).abs() > within_ns;
        let rest = || times_ns.iter().copied().filter(apart).collect();
        (within_ns <= 0.15 * self.period_ns).then(rest)
    }

    /// Whether an event at this time is one of those that follow the period.
    pub fn is_followed_by(&self, time_ns: u64) -> bool {
        (self.from_ns..=self.to_ns).contains(&time_ns) && self.fold.holds(time_ns, self.period_ns)
    }
}

/// The period that ascending times follow best; `None`: too few of them, or no period at all. Look
/// at its `p`: noise has a best period, too.
pub fn search(times_ns: &[u64], ask: &PeriodOptions<'_>) -> Option<Period> {
    let (&first, &last) = (times_ns.first()?, times_ns.last()?);
    if times_ns.len() < EVENTS_MIN || first == last {
        return None;
    }
    let span_s = (last - first) as f64 / 1e9;
    let sampling_s = ask.sampling_ns as f64 / 1e9;
    let highest = 1e9 / (ask.shortest_ns.max(3 * ask.sampling_ns).max(1)) as f64;
    let mut trials = 0;
    let mut best: Option<Period> = None;
    let mut consider = |scan: Scan<'_>, trials: &mut u64| {
        *trials += scan.frequencies() as u64;
        let found = scan.best().and_then(|f| follow(times_ns, &scan, f, *trials));
        if let Some(found) = found.filter(|new| best.is_none_or(|old| new.p < old.p)) {
            best = Some(found);
        }
        best.is_some_and(|best| best.p < P_FOUND)
    };
    let mut length_s = span_s;
    let mut covered = f64::INFINITY;
    while CYCLES_MIN / length_s < highest {
        let within = fullest(times_ns, length_s);
        if within.len() >= EVENTS_MIN {
            let scan = Scan::new(within, sampling_s, CYCLES_MIN / length_s, highest);
            covered = covered.min(1.0 / scan.to_hz);
            if consider(scan, &mut trials) {
                return best;
            }
        }
        if length_s == span_s {
            for &hint in ask.hints_ns {
                let hint_hz = 1e9 / hint.max(1) as f64;
                if hint_hz > highest || hint_hz < 1.0 / covered {
                    continue;
                }
                let (low, high) = (hint_hz * (1.0 - HINT_WITHIN), hint_hz * (1.0 + HINT_WITHIN));
                if consider(Scan::new(times_ns, sampling_s, low, high), &mut trials) {
                    return best;
                }
            }
        }
        length_s /= SHORTER;
    }
    best
}

/// The stretch of at most this length with the most events.
fn fullest(times_ns: &[u64], length_s: f64) -> &[u64] {
    let length_ns = (length_s * 1e9).ceil() as u64;
    let (mut from, mut best) = (0, 0..0);
    for to in 0..times_ns.len() {
        while times_ns[to] - times_ns[from] > length_ns {
            from += 1;
        }
        if to + 1 - from > best.len() {
            best = from..to + 1;
        }
    }
    &times_ns[best]
}

/// Frequencies over a stretch of time.
struct Scan<'a> {
    events: &'a [u64],
    times_s: Vec<f64>,
    sampling_s: f64,
    from_hz: f64,
    to_hz: f64,
    step_hz: f64,
    /// Highest frequency that is asked for, in this scan or another.
    highest_hz: f64,
}

impl<'a> Scan<'a> {
    fn new(events: &'a [u64], sampling_s: f64, from_hz: f64, to_hz: f64) -> Self {
        let first = events.first().copied().unwrap_or(0);
        let span_s = events.last().map_or(0.0, |last| (last - first) as f64 / 1e9).max(1e-9);
        let times_s = seconds(&thin(events, SCAN_EVENTS), first);
        let step_hz = 1.0 / (GRID * span_s);
        let most = (SCAN_WORK / times_s.len().max(1)) as f64 * step_hz;
        let highest_hz = to_hz;
        let to_hz = to_hz.min(from_hz + most);
        Self { events, times_s, sampling_s, from_hz, to_hz, step_hz, highest_hz }
    }

    fn frequencies(&self) -> usize {
        ((self.to_hz - self.from_hz) / self.step_hz).max(0.0) as usize + 1
    }

    fn h(&self, frequency_hz: f64) -> H {
        H::of(&self.times_s, frequency_hz, harmonics(frequency_hz, self.sampling_s))
    }

    /// The frequency that the rule takes, with H over the background.
    fn best(&self) -> Option<(f64, f64)> {
        let mut sweep = Sweep::new(&self.times_s, self.from_hz, self.step_hz);
        let trials: Vec<Trial> = (0..self.frequencies())
            .map(|index| {
                let h = sweep.next(harmonics(self.at(index), self.sampling_s));
                let (value, power) = (h.h as f32, h.powers[0] as f32);
                Trial { h: value, power, subharmonic: h.is_subharmonic() }
            })
            .collect();
        let backgrounds = backgrounds(&trials);
        let level = |index: usize| f64::from(trials[index].h) / backgrounds[octave(index)];
        let found = |subharmonic: bool| {
            let kind = |index: &usize| trials[*index].subharmonic == subharmonic;
            let top = top((0..trials.len()).filter(kind), level)?;
            let (hz, h) = self.climb(self.finest(self.at(top)), subharmonic)?;
            Some((hz, h / backgrounds[octave(top)]))
        };
        // A subharmonic is no answer, but leads to frequencies above the grid.
        match (found(false), found(true)) {
            (Some(plain), Some(led)) if plain.1 < OF_LARGEST * led.1 => Some(led),
            (plain, led) => plain.or(led),
        }
    }

    fn at(&self, index: usize) -> f64 {
        self.from_hz + index as f64 * self.step_hz
    }

    /// From a frequency to those above the grid that share harmonics with it, as long as it is one
    /// of theirs. `None`: it must not stay, and there is none.
    fn climb(&self, (mut hz, mut h): (f64, f64), mut leave: bool) -> Option<(f64, f64)> {
        for _ in 0..RATIOS {
            match self.above(hz) {
                Some(above) if leave || h < OF_LARGEST * above.1 => {
                    ((hz, h), leave) = (above, false)
                }
                _ => break,
            }
        }
        (!leave).then_some((hz, h))
    }

    /// The best frequency within a step.
    fn finest(&self, hz: f64) -> (f64, f64) {
        let (from_hz, part_hz) = (hz - self.step_hz, self.step_hz / 5.0);
        let mut sweep = Sweep::new(&self.times_s, from_hz, part_hz);
        let at = |part| from_hz + part_hz * f64::from(part);
        let tried = (0..=10).map(|part| (at(part), sweep.next(harmonics(hz, self.sampling_s)).h));
        tried.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((hz, 0.0))
    }

    /// The frequency that the rule takes, of those above the grid that are k/l of this one.
    fn above(&self, hz: f64) -> Option<(f64, f64)> {
        let harmonics = 1..=HARMONICS as u32;
        let ratios = harmonics.flat_map(|k| (1..k).map(move |l| f64::from(k) / f64::from(l)));
        let tried: Vec<(f64, f64)> = ratios
            .map(|ratio| hz * ratio)
            .filter(|&above| above > self.to_hz.max(hz) && above <= self.highest_hz)
            .map(|above| self.finest(above))
            .filter(|&(above, _)| !self.h(above).is_subharmonic())
            .collect();
        let largest = tried.iter().map(|&(_, h)| h).fold(0.0, f64::max);
        let high = tried.into_iter().filter(|&(_, h)| h >= OF_LARGEST * largest);
        high.min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// One frequency of a scan.
struct Trial {
    h: f32,
    /// Of the first harmonic.
    power: f32,
    subharmonic: bool,
}

/// The lowest frequency of nearly the largest level, at the top of its peak: within 1/T.
fn top(
    indexes: impl Iterator<Item = usize> + Clone,
    level: impl Fn(usize) -> f64,
) -> Option<usize> {
    let largest = indexes.clone().map(&level).fold(0.0, f64::max);
    let lowest = indexes.clone().find(|&index| level(index) >= OF_LARGEST * largest)?;
    let peak = indexes.filter(|index| (lowest..lowest + GRID as usize).contains(index));
    peak.max_by(|&a, &b| level(a).total_cmp(&level(b)))
}

/// How much the first power is above chance in each part of the grid: rates that change slowly lift
/// low frequencies, dead time moves power about. The median does not see lines.
fn backgrounds(trials: &[Trial]) -> Vec<f64> {
    /// Median of a chi-squared of two degrees of freedom.
    const BY_CHANCE: f64 = 1.386_294;
    let mut parts = vec![Vec::new(); octave(trials.len().saturating_sub(1)) + 1];
    for (index, trial) in trials.iter().enumerate() {
        parts[octave(index)].push(trial.power);
    }
    parts
        .into_iter()
        .map(|mut part| {
            part.sort_unstable_by(f32::total_cmp);
            let median = part.get(part.len() / 2).map_or(0.0, |&power| f64::from(power));
            (median / BY_CHANCE).max(1.0)
        })
        .collect()
}

/// Parts of a grid, each twice as long as the one before: the first holds 16 times 1/T.
fn octave(index: usize) -> usize {
    (index / (16 * GRID as usize) + 1).ilog2() as usize
}

/// Harmonics below half of the sampling frequency: above it lie the mirror images.
fn harmonics(frequency_hz: f64, sampling_s: f64) -> usize {
    let most = 0.5 / (sampling_s * frequency_hz).max(1e-12);
    (most as usize).clamp(1, HARMONICS)
}

fn seconds(times_ns: &[u64], origin_ns: u64) -> Vec<f64> {
    times_ns.iter().map(|time| (time - origin_ns) as f64 / 1e9).collect()
}

/// A period of a scan, followed through as much of the run as it keeps step in.
fn follow(all: &[u64], scan: &Scan<'_>, (hz, h): (f64, f64), trials: u64) -> Option<Period> {
    let mut events = scan.events;
    let mut fitted = Fitted::new(events, hz, scan.step_hz, scan.sampling_s)?;
    let share = fitted.share();
    while events.len() < all.len() {
        let wider = widen(all, events);
        let step = 1.0 / (GRID * ((wider[wider.len() - 1] - wider[0]) as f64 / 1e9));
        match Fitted::new(wider, 1e9 / fitted.period_ns, step, scan.sampling_s) {
            Some(next) if next.share() >= 0.6 * share && next.keeps(&fitted) => {
                (events, fitted) = (wider, next);
            }
            _ => break,
        }
    }
    let p = by_chance(h, trials).max(fitted.by_chance(scan));
    let period = Period {
        period_ns: fitted.period_ns,
        error_ns: fitted.error_ns,
        h,
        trials,
        p,
        fold: fitted.fold,
        from_ns: events[0],
        to_ns: events[events.len() - 1],
        cycles: 0,
        occupied: 0,
    };
    let fold = period.fold.narrowed(events, period.period_ns);
    Some(Period { fold, ..period }.over(events).fastest(events).slowest(events))
}

fn by_chance(h: f64, trials: u64) -> f64 {
    (FREEDOM * trials as f64 * (-0.4 * h).exp()).min(1.0)
}

/// Twice the time on both sides, as far as there is any.
fn widen<'a>(all: &'a [u64], events: &[u64]) -> &'a [u64] {
    let (first, last) = (events[0], events[events.len() - 1]);
    let by = (last - first).max(1);
    let from = all.partition_point(|&time| time < first.saturating_sub(by));
    let to = all.partition_point(|&time| time <= last.saturating_add(by));
    // At least one more, or the whole, so that this ends.
    if to - from > events.len() { &all[from..to] } else { all }
}

/// A period fitted to the events of a stretch of time.
struct Fitted<'a> {
    events: &'a [u64],
    period_ns: f64,
    error_ns: f64,
    fold: Fold,
}

impl<'a> Fitted<'a> {
    /// The best frequency within a step of a guess, then a straight line through the events that
    /// follow: time against number of the period.
    fn new(events: &'a [u64], guess_hz: f64, step_hz: f64, sampling_s: f64) -> Option<Self> {
        let first = *events.first()?;
        let times_s = seconds(&thin(events, SCAN_EVENTS), first);
        let harmonics = harmonics(guess_hz, sampling_s);
        let best = (-40..=40)
            .map(|part| guess_hz + step_hz * f64::from(part) / 20.0)
            .map(|hz| (H::of(&times_s, hz, harmonics).h, hz))
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let mut period_ns = 1e9 / best.1;
        let mut error_ns = 0.0;
        for _ in 0..3 {
            let folded = fold(events, period_ns)?;
            let (slope, error) = fit_line(events, period_ns, &folded)?;
            (period_ns, error_ns) = (slope, error);
        }
        Some(Self { events, period_ns, error_ns, fold: fold(events, period_ns)? })
    }

    fn share(&self) -> f64 {
        self.fold.follow as f64 / self.fold.of.max(1) as f64
    }

    /// Whether it is the same period as one of a shorter stretch.
    fn keeps(&self, shorter: &Fitted<'_>) -> bool {
        let within = (8.0 * shorter.error_ns).max(1e-3 * shorter.period_ns);
        (self.period_ns - shorter.period_ns).abs() <= within
            && self.fold.width_ns <= (3.0 * shorter.fold.width_ns).max(0.05 * self.period_ns)
    }

    /// Events that follow and all, where those closer together than the arc is long are one: a
    /// bunch in one period says as much of a period as one event.
    fn bunches(&self, width_ns: f64) -> (u64, u64) {
        let (mut follow, mut of, mut last) = (0, 0, None);
        for &time in self.events {
            if last.is_none_or(|last| (time - last) as f64 > width_ns) {
                of += 1;
                follow += u64::from(self.fold.holds(time, self.period_ns));
            }
            last = Some(time);
        }
        (follow, of)
    }

    /// Probability that so many of so few events lie in so narrow an arc by chance: what H, which
    /// is a limit for many events, does not know. Any event may begin the arc, and a narrow arc has
    /// many frequencies to be met at.
    fn by_chance(&self, scan: &Scan<'_>) -> f64 {
        let sampling_ns = scan.sampling_s * 1e9;
        let width_ns = self.fold.width_ns.max(sampling_ns);
        let width = width_ns / self.period_ns;
        let (follow, of) = self.bunches(width_ns);
        if follow < 2 || width >= 1.0 {
            return 1.0;
        }
        let cycles = scan.frequencies() as f64 / GRID;
        let tail = binomial::tail(follow - 1, of - 1, width);
        (FREEDOM * tail * of as f64 * cycles.max(1.0) / width).min(1.0)
    }
}

/// Slope and its standard error, of the times that follow over the number of their period.
fn fit_line(events: &[u64], period_ns: f64, fold: &Fold) -> Option<(f64, f64)> {
    let origin = *events.first()?;
    let points = events
        .iter()
        .filter(|&&time| fold.holds(time, period_ns))
        .map(|&time| (fold.cycle(time, period_ns), fold.offset_ns(time, period_ns)));
    let (mut n, mut x, mut y) = (0.0, 0.0, 0.0);
    let base = fold.cycle(origin, period_ns);
    for (cycle, offset) in points.clone() {
        (n, x, y) = (n + 1.0, x + (cycle - base), y + offset);
    }
    let (x, y) = (x / n, y / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (cycle, offset) in points {
        let (dx, dy) = (cycle - base - x, offset - y);
        (xx, xy, yy) = (xx + dx * dx, xy + dx * dy, yy + dy * dy);
    }
    if n < 3.0 || xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    let rest = (yy - slope * xy).max(0.0) / (n - 2.0);
    Some((period_ns + slope, (rest / xx).sqrt()))
}
