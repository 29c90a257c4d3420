//! The share of late wake-ups and its bounds, with what dependent wake-ups are worth.
//!
//! Few late wake-ups, or none, do not show how they would depend on each other. The share above a
//! level below the budget bounds that above the budget, and its dependence is seen in the run: the
//! highest level that was exceeded in enough independent events is judged in its place.

use rtproof_record::{
    Run,
    options::Phase,
    run::{Second, Thread},
};
use rtproof_stats::{
    Histogram, Layout, binomial, cluster,
    long_run::{EVENTS_MIN, Worth},
};

use crate::dependence::Blocks;

/// Shortest time under load that bounds a share: a minute, less the seconds in which a load begins
/// and ends, which belong to no phase as a whole.
pub(crate) const COVERED_MIN_NS: u64 = 58_000_000_000;
/// Upper shares whose levels are looked at.
const LEVELS: [f64; 5] = [0.001, 0.003, 0.01, 0.02, 0.03];
/// A level with a larger share bounds nothing of use.
const LEVEL_MAX: f64 = 0.05;
/// An episode of late wake-ups may be so many times as long as the longest of the few seen.
const LONGER: f64 = 6.0;

/// Wake-ups of a thread in independent ones, as far as being late goes.
pub(crate) fn n_eff(run: &Run, thread: &Thread) -> u64 {
    Shares::of(run, thread).n_eff()
}

/// Share of independent ones among the largest samples of a thread.
pub(crate) fn extremal_index(run: &Run, thread: &Thread) -> f64 {
    cluster::extremal_index(&thread.top, run.options.period_ns)
}

/// Late wake-ups of a thread in the phases that had a load, or in all when none had one.
pub(crate) struct Shares {
    pub(crate) late: u64,
    pub(crate) n: u64,
    covered_ns: u64,
    blocks: usize,
    /// Worth at the budget; none: nothing was late, or all.
    own: Option<Worth>,
    /// Worth at levels not above the budget, the highest first.
    levels: Vec<Worth>,
    /// Runs of seconds with late wake-ups, and the most late wake-ups in one.
    episodes: u64,
    largest: u64,
}

/// Each thread's late wake-ups and all of them in the phases without a load, where others had one.
/// No bound is computed of them: a share that is too large there is a reason not to accept.
pub(crate) fn while_idle(run: &Run) -> Vec<(u32, u64, u64)> {
    let phases = &run.options.phases;
    let is_loaded = |phase: &Phase| !phase.loads.is_empty();
    let idle: Vec<&Phase> = phases.iter().filter(|phase| !is_loaded(phase)).collect();
    if !phases.iter().any(is_loaded) {
        return Vec::new();
    }
    let of = |thread: &Thread| {
        let inside = |second: &&Second| {
            idle.iter().any(|phase| second.from_ns >= phase.from_ns && second.to_ns <= phase.to_ns)
        };
        let seconds = thread.seconds.iter().filter(inside);
        let counts = seconds.map(|second| (second.totals.late(), second.totals.accounted()));
        let (late, n) = counts.fold((0, 0), |(late, n), (k, m)| (late + k, n + m));
        (thread.info.cpu, late, n)
    };
    run.threads.iter().map(of).collect()
}

impl Shares {
    pub(crate) fn of(run: &Run, thread: &Thread) -> Self {
        let loaded: Vec<&Phase> =
            run.options.phases.iter().filter(|phase| !phase.loads.is_empty()).collect();
        let inside = |second: &&Second| {
            let within =
                |phase: &&Phase| second.from_ns >= phase.from_ns && second.to_ns <= phase.to_ns;
            loaded.is_empty() || loaded.iter().any(within)
        };
        let seconds: Vec<&Second> = thread.seconds.iter().filter(inside).collect();
        let confidence = f64::from(run.options.requirement.confidence_ppm) / 1e6;
        let blocks = seconds.iter().map(|s| (s.totals.late(), s.totals.accounted()));
        let (late, n) = blocks.clone().fold((0, 0), |(late, n), (k, m)| (late + k, n + m));
        let (episodes, largest) = episodes(blocks.clone().map(|(late, _)| late));
        Self {
            late,
            n,
            covered_ns: seconds.iter().map(|s| s.to_ns.saturating_sub(s.from_ns)).sum(),
            blocks: seconds.len(),
            own: Worth::of(blocks, confidence),
            levels: levels(seconds, run.options.requirement.budget_ns, confidence),
            episodes,
            largest,
        }
    }

    /// Independent wake-ups, at the budget or at the highest level that shows it.
    fn n_eff(&self) -> u64 {
        let shown = self.own.iter().chain(&self.levels).map(|worth| worth.n_eff).next();
        let n_eff = shown.unwrap_or(self.blocks as f64) as u64;
        n_eff.clamp(u64::from(self.n > 0), self.n.max(1))
    }

    fn is_long(&self, times: f64) -> bool {
        self.covered_ns as f64 * times >= COVERED_MIN_NS as f64
    }

    /// Upper bound on the share in a run so many times as long, if it goes on like this. `None`:
    /// it would be too short, or nothing above any level came often enough to tell.
    pub(crate) fn upper(&self, confidence: f64, times: f64) -> Option<f64> {
        if self.n == 0 || !self.is_long(times) {
            return None;
        }
        let bound = |worth: &Worth| {
            binomial::bounds_of_share(worth.share, worth.n_eff * times, confidence).0
        };
        if let Some(own) = self.own.as_ref().filter(|own| is_usable(own, times)) {
            return Some(bound(own));
        }
        // Late in too few events to tell how many more there are: each could be much longer.
        let events = binomial::poisson_upper((self.episodes as f64 * times) as u64, confidence);
        let trials = self.n as f64 * times;
        let rare = LONGER * self.largest as f64 * events / trials;
        let by_level = self.levels.iter().find(|level| is_usable(level, times)).map(bound);
        Some(by_level.or_else(|| self.of_seconds(confidence, times))?.max(rare).min(1.0))
    }

    /// Where no level has a small share, as where all latencies are equal: a second is worth one.
    fn of_seconds(&self, confidence: f64, times: f64) -> Option<f64> {
        let small = |level: &Worth| level.share <= LEVEL_MAX;
        if self.levels.iter().any(small) || !self.levels.iter().all(|l| l.is_seen(times)) {
            return None;
        }
        let worth = self.levels.iter().map(|level| level.n_eff);
        let n_eff = worth.fold(self.blocks as f64, f64::min) * times;
        let share = self.late as f64 / self.n.max(1) as f64;
        Some(binomial::bounds_of_share(share, n_eff, confidence).0)
    }

    /// Lower bound on the share; 0: none.
    pub(crate) fn lower(&self, confidence: f64) -> f64 {
        if self.n == 0 || !self.is_long(1.0) {
            return 0.0;
        }
        let all = self.late == self.n;
        let (share, n_eff) = match &self.own {
            Some(own) if is_usable(own, 1.0) => (own.share, own.n_eff),
            None if all => (1.0, self.blocks as f64),
            _ => return 0.0,
        };
        binomial::bounds_of_share(share, n_eff, confidence).1
    }

    /// Whether it is only the time that is missing.
    pub(crate) fn is_short(&self) -> bool {
        !self.is_long(1.0)
    }
}

/// Whether the share above a level is seen in enough independent events, over enough time.
fn is_usable(worth: &Worth, times: f64) -> bool {
    worth.is_seen(times) && worth.share * worth.n_eff * times >= EVENTS_MIN
}

/// Runs of blocks with late wake-ups, and the most late wake-ups in one.
fn episodes(late: impl Iterator<Item = u64>) -> (u64, u64) {
    let (mut count, mut largest, mut current) = (0, 0, 0);
    for late in late {
        count += u64::from(late > 0 && current == 0);
        current = if late > 0 { current + late } else { 0 };
        largest = largest.max(current);
    }
    (count, largest)
}

/// The worth at levels not above the budget, the highest first.
fn levels(seconds: Vec<&Second>, budget_ns: Option<u64>, confidence: f64) -> Vec<Worth> {
    let Some(budget_ns) = budget_ns else {
        return Vec::new();
    };
    let layout = Layout::COARSE;
    let mut all = Histogram::new(layout);
    for &(bucket, n) in seconds.iter().flat_map(|second| second.wake.iter().chain(&second.missed)) {
        // A bucket outside the grid was refused when the record was read.
        let _ = all.add_bucket(usize::from(bucket), n);
    }
    let (total, highest) = (all.total(), layout.index(budget_ns));
    // The highest bucket from which on at least such a share lies.
    let from = LEVELS.map(|share| {
        let rank = total - ((share * total as f64) as u64).min(total);
        all.value_at_rank(rank.max(1)).map_or(0, |ns| layout.index(ns)).min(highest)
    });
    let counts = Blocks { seconds }.counts(from, true);
    let worth = |i: usize| Worth::of(counts.values().map(|(above, n)| (above[i], *n)), confidence);
    (0..LEVELS.len()).filter_map(worth).collect()
}

/// Upper bound on the share of late wake-ups of the CPU that is worst off; `None`: one has none.
pub(crate) fn share_upper(shares: &[Shares], confidence: f64) -> Option<f64> {
    let bounds = shares.iter().map(|shares| shares.upper(confidence, 1.0));
    bounds.reduce(|a, b| Some(a?.max(b?))).flatten()
}

/// Lower bound likewise. It is of the worst of several CPUs, each of which may seem worse than it
/// is: they share what may be wrong (Bonferroni).
pub(crate) fn share_lower(shares: &[Shares], confidence: f64) -> f64 {
    let each = 1.0 - (1.0 - confidence) / shares.len().max(1) as f64;
    shares.iter().map(|shares| shares.lower(each)).fold(0.0, f64::max)
}

/// The shares of each thread.
pub(crate) fn shares(run: &Run) -> Vec<Shares> {
    run.threads.iter().map(|thread| Shares::of(run, thread)).collect()
}
