//! The share of late wake-ups and its bounds, with what dependent wake-ups are worth.
//!
//! Few late wake-ups, or none, do not show how they would depend on each other. The share above a
//! level below the budget bounds that above the budget, and its dependence is seen in the run: the
//! highest level that was exceeded in enough independent events is judged in its place.

use std::collections::BTreeMap;

use rtproof_model::verdict::LateGroups;
use rtproof_record::{
    Run,
    run::{Phase, Second, Thread},
};
use rtproof_stats::{
    Histogram, Layout, binomial,
    dependence::{self, BLOCKS_MIN, EVENTS_MIN, EffectiveShare},
    quantile::Q,
};

/// Shortest time under load that bounds a share: a minute, less the seconds in which a load begins
/// and ends, which belong to no phase as a whole.
pub(crate) const COVERED_MIN_NS: u64 = 58_000_000_000;

/// Upper shares whose levels are used.
const LEVELS: [f64; 5] = [0.001, 0.003, 0.01, 0.02, 0.03];

/// A level with a larger share bounds nothing of use.
const LEVEL_MAX: f64 = 0.05;

/// An episode of late wake-ups may be so many times as long as the longest of the few seen.
const LONGER: f64 = 6.0;

/// Wake-ups of a thread in independent ones, as far as being late goes.
pub(crate) fn n_eff(run: &Run, thread: &Thread) -> u64 {
    LateShares::of(run, thread).n_eff()
}

/// Share of independent ones among the largest samples of a thread.
pub(crate) fn extremal_index(run: &Run, thread: &Thread) -> f64 {
    dependence::extremal_index(&thread.top, run.options.period_ns)
}

/// Late wake-ups of a thread in the phases that had a load, or in all when none had one.
pub(crate) struct LateShares {
    pub(crate) late: u64,
    pub(crate) n: u64,
    covered_ns: u64,
    blocks: usize,
    /// Worth at the budget; none: nothing was late, or all.
    own: Option<EffectiveShare>,
    /// Worth at levels not above the budget, the highest first.
    levels: Vec<EffectiveShare>,
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

impl LateShares {
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
            own: EffectiveShare::of(blocks, confidence),
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
    /// it would be too short, or exceedances of all levels are too rare.
    pub(crate) fn upper(&self, confidence: f64, times: f64) -> Option<f64> {
        if self.n == 0 || !self.is_long(times) {
            return None;
        }
        let bound = |worth: &EffectiveShare| {
            binomial::bounds_of_share(worth.share, worth.n_eff * times, confidence).0
        };
        if let Some(own) = self.own.as_ref().filter(|own| is_usable(own, times)) {
            return Some(bound(own));
        }
        // Too few late events to estimate more: each could be much longer.
        let events = binomial::poisson_upper((self.episodes as f64 * times) as u64, confidence);
        let trials = self.n as f64 * times;
        let rare = LONGER * self.largest as f64 * events / trials;
        let by_level = self.levels.iter().find(|level| is_usable(level, times)).map(bound);
        Some(by_level.or_else(|| self.of_seconds(confidence, times))?.max(rare).min(1.0))
    }

    /// Where no level has a small share, as where all latencies are equal: a second is worth one.
    fn of_seconds(&self, confidence: f64, times: f64) -> Option<f64> {
        let small = |level: &EffectiveShare| level.share <= LEVEL_MAX;
        if self.levels.iter().any(small) || !self.levels.iter().all(|l| l.is_estimable(times)) {
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

    /// Whether only more time is needed.
    pub(crate) fn is_short(&self) -> bool {
        !self.is_long(1.0)
    }
}

/// Whether the share above a level is seen in enough independent events, over enough time.
fn is_usable(worth: &EffectiveShare, times: f64) -> bool {
    worth.is_estimable(times) && worth.share * worth.n_eff * times >= EVENTS_MIN
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
fn levels(seconds: Vec<&Second>, budget_ns: Option<u64>, confidence: f64) -> Vec<EffectiveShare> {
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
    let counts = SecondBlocks { seconds }.counts(from, true);
    let worth =
        |i: usize| EffectiveShare::of(counts.values().map(|(above, n)| (above[i], *n)), confidence);
    (0..LEVELS.len()).filter_map(worth).collect()
}

/// Upper bound on the share of late wake-ups of the CPU that is worst off; `None`: one has none.
pub(crate) fn share_upper(shares: &[LateShares], confidence: f64) -> Option<f64> {
    let bounds = shares.iter().map(|shares| shares.upper(confidence, 1.0));
    bounds.reduce(|a, b| Some(a?.max(b?))).flatten()
}

/// Lower bound likewise. It is of the worst of several CPUs, each of which may seem worse than it
/// is: they share what may be wrong (Bonferroni).
pub(crate) fn share_lower(shares: &[LateShares], confidence: f64) -> f64 {
    let each = 1.0 - (1.0 - confidence) / shares.len().max(1) as f64;
    shares.iter().map(|shares| shares.lower(each)).fold(0.0, f64::max)
}

/// The shares of each thread.
pub(crate) fn shares(run: &Run) -> Vec<LateShares> {
    run.threads.iter().map(|thread| LateShares::of(run, thread)).collect()
}

// What wake-ups are worth in independent ones at a value: how much the share above it varies from
// second to second, and for how long it stays up or down.

const SECOND_NS: u64 = 1_000_000_000;

/// The seconds of some threads. Threads that were measured in the same second make one block: what
/// strikes one may strike all.
pub(crate) struct SecondBlocks<'a> {
    pub(crate) seconds: Vec<&'a Second>,
}

/// Events at several levels, and trials, of each block in order of time.
pub(crate) type BlockCounts<const N: usize> = BTreeMap<u64, ([u64; N], u64)>;

impl<'a> SecondBlocks<'a> {
    /// The seconds that begin in `from_ns..to_ns`.
    pub(crate) fn of(threads: &'a [Thread], from_ns: u64, to_ns: u64) -> Self {
        let inside = |second: &&Second| (from_ns..to_ns).contains(&second.from_ns);
        let seconds = threads.iter().flat_map(|thread| &thread.seconds).filter(inside);
        Self { seconds: seconds.collect() }
    }

    /// Wake-ups in the coarse buckets from each of `from` on; `missed`: in the deadline view.
    pub(crate) fn counts<const N: usize>(&self, from: [usize; N], missed: bool) -> BlockCounts<N> {
        let mut blocks = BlockCounts::new();
        for second in &self.seconds {
            // A second of a staggered thread begins a little later than that of the first one.
            let (above, n) = blocks.entry(second.from_ns / SECOND_NS).or_insert(([0; N], 0));
            let views = [&second.wake, &second.missed];
            for view in views.into_iter().take(1 + usize::from(missed)) {
                let count = |buckets: &[(u16, u64)]| buckets.iter().map(|&(_, n)| n).sum::<u64>();
                *n += count(view);
                for (above, &from) in above.iter_mut().zip(&from) {
                    // Ascending: high quantiles look at few buckets.
                    let below = view.partition_point(|&(bucket, _)| usize::from(bucket) < from);
                    *above += count(&view[below..]);
                }
            }
        }
        blocks
    }

    /// Worth of the wake-ups at each quantile, whose value is given; `None` where the run is too
    /// short for how long the share above it stays up or down, or too few are above or below.
    pub(crate) fn n_eff<const N: usize>(
        &self,
        quantiles: &[(Q, Option<u64>); N],
        missed: bool,
        confidence: f64,
    ) -> [Option<u64>; N] {
        let bucket =
            |value: Option<u64>| value.map_or(usize::MAX - 1, |ns| Layout::COARSE.index(ns));
        // Both edges of the bucket: it may hold much of the distribution.
        let at = self.counts(quantiles.map(|(_, value)| bucket(value)), missed);
        let above = self.counts(quantiles.map(|(_, value)| bucket(value) + 1), missed);
        let two_sided = f64::midpoint(1.0, confidence);
        let mut i = 0;
        quantiles.map(|(q, value)| {
            let here = i;
            i += 1;
            value?;
            let of = |counts: &BlockCounts<N>| {
                EffectiveShare::of(counts.values().map(|(k, n)| (k[here], *n)), two_sided)
            };
            worth_at(q, [of(&at), of(&above)], at.len())
        })
    }
}

/// Of the worth at both edges of the bucket that holds a quantile.
fn worth_at(q: Q, edges: [Option<EffectiveShare>; 2], blocks: usize) -> Option<u64> {
    let edges: Vec<EffectiveShare> = edges.into_iter().flatten().collect();
    let rarer = q.value().min(1.0 - q.value());
    // All in one bucket, whenever: a second is worth one wake-up.
    let n_eff = edges.iter().map(|worth| worth.n_eff).reduce(f64::min).unwrap_or(blocks as f64);
    let is_seen = blocks >= BLOCKS_MIN && edges.iter().all(|worth| worth.is_estimable(1.0));
    (is_seen && n_eff * rarer >= EVENTS_MIN).then_some(n_eff as u64)
}

// Groups of late wake-ups, on whatever CPU: how many, how large, and whether they come at a steady
// rate.
//
// Their moments are exact where the largest samples of every thread hold all that were late; else
// they are known to the second, and groups of several CPUs are counted one by one.

/// Seed of the random samples: any value, but fixed.
const SEED: u64 = 0x6772_6f75;

/// A group: when it began, and its wake-ups, where they are known.
struct Group {
    at_ns: u64,
    late: Option<u64>,
}

/// Groups of a run with a budget.
pub(crate) fn groups_of(run: &Run, budget_ns: u64) -> LateGroups {
    let exact = exact(run, budget_ns);
    let of_one = run.threads.iter().map(|thread| thread.totals.late_clusters).max().unwrap_or(0);
    let at_least = exact.as_ref().map_or(of_one, |groups| groups.len() as u64);
    let groups = exact.unwrap_or_else(|| by_rows(run));
    let count = groups.len() as u64;
    let late: u64 = run.threads.iter().map(|thread| thread.totals.late()).sum();
    let spans = spans(run);
    let times: Vec<u64> = groups.iter().filter_map(|group| within(&spans, group.at_ns)).collect();
    let length_ns = spans.iter().map(|(from_ns, to_ns)| to_ns - from_ns).sum();
    LateGroups {
        count,
        at_least,
        largest: groups.iter().map(|group| group.late).max().flatten(),
        mean: (count > 0).then(|| late as f64 / count as f64),
        dispersion: dependence::dispersion_of(&times, length_ns, SEED),
    }
}

/// From the largest samples, where they hold every late one; those that were missed followed one.
fn exact(run: &Run, budget_ns: u64) -> Option<Vec<Group>> {
    let late = |thread: &Thread| {
        let samples = thread.top.iter().filter(|sample| sample.latency_ns > budget_ns);
        samples.copied().collect::<Vec<_>>()
    };
    let of_threads: Vec<_> = run.threads.iter().map(late).collect();
    let mut threads = run.threads.iter().zip(&of_threads);
    if !threads.all(|(thread, late)| late.len() as u64 == thread.totals.late_sampled) {
        return None;
    }
    let mut samples = of_threads.concat();
    samples.sort_unstable_by_key(|sample| sample.due_ns);
    let period_ns = run.options.period_ns.max(1);
    let gap_ns = period_ns.saturating_mul(dependence::GAP_PERIODS);
    let (mut groups, mut end_ns) = (Vec::<Group>::new(), 0_u64);
    for sample in samples {
        let late = 1 + (sample.latency_ns - budget_ns - 1) / period_ns;
        match groups.last_mut().filter(|_| sample.due_ns.saturating_sub(end_ns) <= gap_ns) {
            Some(group) => group.late = group.late.map(|before| before + late),
            None => groups.push(Group { at_ns: sample.due_ns, late: Some(late) }),
        }
        end_ns = end_ns.max(sample.due_ns.saturating_add(sample.latency_ns));
    }
    Some(groups)
}

/// From the seconds: those of one second spread over it.
fn by_rows(run: &Run) -> Vec<Group> {
    let rows = run.threads.iter().flat_map(|thread| &thread.seconds);
    let of_row = |second: &Second| {
        let (from_ns, count) = (second.from_ns, second.totals.late_clusters);
        let step_ns = second.to_ns.saturating_sub(from_ns) / (count + 1);
        (1..=count).map(move |i| Group { at_ns: from_ns + i * step_ns, late: None })
    };
    rows.flat_map(of_row).collect()
}

/// The time that the verdict counts: loaded phases, or all of it where there is none.
fn spans(run: &Run) -> Vec<(u64, u64)> {
    let to_ns = run.threads.iter().map(|thread| thread.covered().1).max().unwrap_or(0);
    let loaded = run.options.phases.iter().filter(|phase| !phase.loads.is_empty());
    let spans: Vec<_> = loaded
        .map(|phase| (phase.from_ns, phase.to_ns.min(to_ns)))
        .filter(|(from_ns, to_ns)| from_ns < to_ns)
        .collect();
    if spans.is_empty() { vec![(0, to_ns)] } else { spans }
}

/// A moment in the time of the spans, one after the other.
fn within(spans: &[(u64, u64)], at_ns: u64) -> Option<u64> {
    let mut before_ns = 0;
    for &(from_ns, to_ns) in spans {
        if (from_ns..to_ns).contains(&at_ns) {
            return Some(before_ns + at_ns - from_ns);
        }
        before_ns += to_ns - from_ns;
    }
    None
}

#[cfg(test)]
mod dependence_tests {
    use rtproof_record::BudgetClass;

    use super::*;
    use crate::testing::run;

    const P90: Q = Q { above: 1, of: 10 };

    #[test]
    fn steady_seconds_are_worth_all_and_one_bad_second_gives_no_interval() {
        let steady: Vec<_> = (0..6000).map(|i| (0, i * 5, 200_000)).collect();
        let burst: Vec<_> = (0..6000).map(|i| (0, 3000 + i, 200_000)).collect();
        let worth = |late: &[_]| {
            let run = run(BudgetClass::Hundred, 1, 30, late);
            let quantiles = [(P90, Some(200_000)), (P90, None)];
            SecondBlocks::of(&run.threads, 0, u64::MAX).n_eff(&quantiles, false, 0.95)
        };
        assert_eq!(worth(&steady), [Some(30_000), None]);
        assert_eq!(worth(&burst), [None, None]);
        let constant = run(BudgetClass::Hundred, 1, 30, &[]);
        let blocks = SecondBlocks::of(&constant.threads, 0, u64::MAX);
        assert_eq!(blocks.n_eff(&[(Q::P50, Some(5000))], false, 0.95), [Some(30)]);
    }
}

#[cfg(test)]
mod groups_tests {
    use rtproof_record::BudgetClass;

    use super::*;
    use crate::testing::run;

    #[test]
    fn what_strikes_all_cpus_is_one_group() {
        let all = [(0, 500, 150_000), (1, 500, 160_000), (1, 507, 2_300_000), (0, 900, 150_000)];
        let mut four = run(BudgetClass::Hundred, 2, 1, &all);
        let groups = groups_of(&four, 100_000);
        // Three sampled, and two missed of the one that was 2.3 ms late.
        assert_eq!((groups.count, groups.largest), (2, Some(5)));
        // Their moments are not known any more: one by one, to the second.
        four.threads[0].top.clear();
        let groups = groups_of(&four, 100_000);
        assert_eq!((groups.count, groups.at_least, groups.largest), (3, 2, None));
        assert!(groups.dispersion.is_some());
    }

    #[test]
    fn only_the_time_under_load_has_a_rate() {
        let late: Vec<_> = (0..20).map(|i| (0, 10_000 + i * 500, 150_000)).collect();
        let mut half = run(BudgetClass::Hundred, 1, 20, &late);
        assert!(groups_of(&half, 100_000).dispersion.is_some_and(|steady| steady.p < 0.01));
        half.options.phases[0].from_ns = 10_000_000_000;
        let half = groups_of(&half, 100_000);
        assert!(half.dispersion.is_some_and(|steady| steady.p > 0.5), "{half:?}");
        assert_eq!(groups_of(&run(BudgetClass::Hundred, 1, 1, &[]), 100_000).dispersion, None);
    }
}
