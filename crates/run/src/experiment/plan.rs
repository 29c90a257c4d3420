//! `tune apply --prove`: measures what each change of a plan does, keeps what helps, undoes the
//! rest.
//!
//! docs/statistics.md says how, and what the answers mean.

use std::collections::VecDeque;

use rtproof_host::{Facts, Root, door::usage, tune::Switching};
use rtproof_judge::{plan::Plan, units};
use rtproof_record::effects::{
    KnobResult as Reported, Slice, SlicePart, SliceStatistic, TrialDesign, TrialSummary,
};
use rtproof_results::percent;
use rtproof_stats::{
    paired::{self, Margin, PAIRS, Spread},
    screening::FACTORS_MAX,
};

use super::analyse::{LEVEL, MARGIN, Terms, Untried, ppm};
use super::conduct::{Conduct, LEAD_NS, SLOT_NS};
use super::factors::Candidate;
use super::{
    ExperimentEvents, LOAD, PlannedSlice, Results, Switch, TrialSchedule, analyse, factors, seed,
};
use crate::prove::{self, Output, Request};

/// Proves a plan: measures, switches its changes on and off in pairs of slices, keeps what helps.
///
/// `request` is that of `prove`: `duration_ns` is the time of all of it, `load` the load of the
/// whole time. `root` is the machine that is measured; `switch` changes it (or a folder, in tests).
///
/// # Errors
/// A wrong request, an output that cannot be written, threads that cannot run, a machine that could
/// not be put back.
pub fn run(
    root: &Root,
    facts: Facts,
    plan: &Plan,
    request: &Request,
    switch: &mut dyn Switch,
    events: &mut dyn ExperimentEvents,
) -> anyhow::Result<(Results, Output)> {
    let mut request = request.clone();
    if request.load.is_none() {
        // One load for the whole time: slices are to be alike.
        request.load = Some(LOAD.parse().map_err(|error| anyhow::anyhow!("{LOAD}: {error}"))?);
    }
    let options = prove::resolve_options(&request, &facts)?;
    let knobs = factors::candidates_of(plan);
    let shares = shares(&knobs, &options)?;
    let output = Output::choose(&request.output, &facts)?;
    events.setup(&shares_sentence(&shares))?;

    let seed = seed()?;
    let mut observer = events.observer(options.duration_ns);
    let mut on_line = |line: String| {
        // Nowhere left to report that it cannot be reported.
        let _ = events.line(&line);
    };
    let (total_ns, threads) = (options.duration_ns, options.cpus.len());
    let (schedule, trial, untried) = SharedSchedule::new(&knobs, shares, total_ns, seed);
    let schedule = Box::new(schedule);
    let conduct = Conduct::new(switch, &mut on_line, knobs, schedule, trial, untried, threads);
    let load_dir = request.load_dir.as_deref();
    let results =
        super::measure(root, facts, &options, load_dir, &output, conduct, &mut *observer)?;
    Ok((results, output))
}

/// How the time is shared.
///
/// # Errors
/// Usage, when there is nothing to try or too little time for it.
fn shares(knobs: &[Candidate], options: &rtproof_record::Options) -> anyhow::Result<TimeShares> {
    let count = |kind| knobs.iter().filter(|knob| knob.kind == kind).count();
    let (toggled, once) = (count(Switching::Toggled), count(Switching::Once));
    if toggled + once == 0 {
        return Err(usage(
            "--prove: the plan holds nothing that can be measured now; leave --prove away",
        ));
    }
    let (cpus, period_ns) = (options.cpus.len(), options.period_ns);
    let found = share(options.duration_ns, toggled, once, cpus, period_ns);
    found.ok_or_else(|| {
        let [one, all] = shortest_ns(toggled, once, cpus, period_ns);
        usage(format!(
            "--prove {}: too short; one knob takes {} at least, all of them one by one {}",
            units::duration(options.duration_ns),
            units::duration(one.next_multiple_of(1_000_000_000)),
            units::duration(all.next_multiple_of(1_000_000_000))
        ))
    })
}

// The schedule of `tune apply --prove`: slices before, pairs with knobs on and off, slices with
// what is made once, the decision, slices with what is kept, all within the requested time.

/// Time shared between the knobs.
pub(crate) struct SharedSchedule {
    shares: TimeShares,
    total_ns: u64,
    tasks: VecDeque<PlannedSlice>,
    decided: bool,
}

impl SharedSchedule {
    /// A trial of `knobs` in `total_ns`, as its record has it, and knobs for which there is no
    /// time. `seed`: below 2^63.
    pub(crate) fn new(
        knobs: &[Candidate],
        shares: TimeShares,
        total_ns: u64,
        seed: u64,
    ) -> (Self, TrialSummary, Untried) {
        let mut untried = Untried::new();
        let tasks = tasks(knobs, &shares, seed, &mut untried);
        let trial = TrialSummary {
            seed,
            design: if shares.mirrored { TrialDesign::Mirrored } else { TrialDesign::Single },
            pairs: u32::try_from(shares.pairs).unwrap_or(u32::MAX),
            slice_ns: shares.slice_ns,
            margin_ppm: ppm(MARGIN),
            level_ppb: (LEVEL * 1e9) as u64,
            detectable_ppm: None,
        };
        (Self { shares, total_ns, tasks, decided: false }, trial, untried)
    }
}

impl TrialSchedule for SharedSchedule {
    fn slice_ns(&self) -> u64 {
        self.shares.slice_ns
    }

    fn settle_ns(&self) -> u64 {
        SETTLE_NS
    }

    /// The next slice for which there is time; pairs are not begun that cannot be ended.
    fn task(&mut self, _: &[Slice], untried: &mut Untried, now_ns: u64) -> Option<PlannedSlice> {
        let slice_ns = self.shares.slice_ns + SETTLE_NS + SLOT_NS;
        loop {
            let task = self.tasks.front()?;
            let is_first = self.tasks.get(1).is_some_and(|next| {
                next.part == SlicePart::Pair
                    && task.part == SlicePart::Pair
                    && next.pair == task.pair
            });
            let left = if self.decided { 0 } else { u64::from(ONCE) };
            let slices =
                1 + u64::from(is_first) + if task.part == SlicePart::Pair { left } else { 0 };
            if now_ns + slices * slice_ns <= self.total_ns || task.part == SlicePart::Before {
                return self.tasks.pop_front();
            }
            let dropped = self.tasks.pop_front()?;
            if is_first {
                self.tasks.pop_front();
            }
            if dropped.part == SlicePart::Once {
                for at in dropped.on {
                    untried.entry(at).or_insert_with(|| "there was no time left".into());
                }
            }
        }
    }

    /// After the slices before: what can be seen.
    fn evaluate(&mut self, slices: &[Slice], trial: &mut TrialSummary) -> Option<String> {
        if slices.len() != BEFORE as usize || trial.detectable_ppm.is_some() {
            return None;
        }
        // Downwards: what helps.
        let (margin, knobs) = (Margin::of_share(MARGIN).mirrored(), self.shares.toggled);
        let least = analyse::spread(slices.iter()).and_then(|sd| {
            let spread = Spread::of_successive(sd, slices.len());
            paired::detectable(spread, self.shares.pairs, knobs, LEVEL, margin)
        });
        let median = analyse::median_of(SliceStatistic::P999, slices.iter());
        let (least, median) = least.zip(median).filter(|_| self.shares.toggled > 0)?;
        trial.detectable_ppm = Some(ppm(-f64::exp_m1(-least)).max(1));
        Some(format!(
            "before: p99.9 {} (median of {BEFORE} slices). A knob that takes {} of it away is \
             found four times in five.",
            units::ns(median),
            percent(-f64::exp_m1(-least)),
        ))
    }

    fn analysis(&self, knobs: &[Candidate], slices: &[Slice], untried: &Untried) -> Vec<Reported> {
        let terms = Terms {
            margin: MARGIN,
            total_ns: self.total_ns,
            mirrored: self.shares.mirrored,
            knobs: self.shares.toggled,
        };
        analyse::analyse(knobs, slices, untried, terms)
    }

    fn keeps(&self) -> bool {
        true
    }

    fn kept(&mut self, kept: &[usize]) {
        self.decided = true;
        let after = PlannedSlice { part: SlicePart::After, pair: 0, on: kept.to_vec() };
        self.tasks.extend(std::iter::repeat_n(after, ONCE as usize));
    }
}

/// The slices, in order: pairs of all knobs in turns, so that what drifts is spread over them.
fn tasks(
    knobs: &[Candidate],
    shares: &TimeShares,
    seed: u64,
    untried: &mut Untried,
) -> VecDeque<PlannedSlice> {
    let task = |part, pair, on: Vec<usize>| PlannedSlice { part, pair, on };
    let mut tasks: VecDeque<PlannedSlice> =
        (0..BEFORE).map(|_| task(SlicePart::Before, 0, Vec::new())).collect();
    let mut of_kind = |kind, most: usize| {
        let mut those: Vec<usize> = (0..knobs.len()).filter(|&at| knobs[at].kind == kind).collect();
        for at in those.split_off(those.len().min(most)) {
            untried.insert(at, "there was no time for it; give it more, or name it alone".into());
        }
        those
    };
    let (toggled, once) =
        (of_kind(Switching::Toggled, shares.toggled), of_kind(Switching::Once, shares.once));
    let mut pairs: Vec<[Vec<usize>; 2]> = Vec::new();
    if shares.mirrored {
        for row in paired::mirrored(seed, toggled.len()).unwrap_or_default() {
            let (on, off): (Vec<_>, Vec<_>) = toggled.iter().zip(row).partition(|(_, on)| *on);
            let of = |those: Vec<(&usize, bool)>| those.into_iter().map(|(&at, _)| at).collect();
            pairs.push([of(on), of(off)]);
        }
    } else if !toggled.is_empty() {
        let first_on = paired::order(seed, shares.pairs * toggled.len());
        for (at, first_on) in toggled.iter().cycle().zip(first_on) {
            let (on, off) = (vec![*at], Vec::new());
            pairs.push(if first_on { [on, off] } else { [off, on] });
        }
    }
    for (pair, slices) in (0..).zip(pairs) {
        tasks.extend(slices.into_iter().map(|on| task(SlicePart::Pair, pair, on)));
    }
    for at in once {
        tasks.extend(std::iter::repeat_n(task(SlicePart::Once, 0, vec![at]), ONCE as usize));
    }
    tasks
}

// How the time that is given is shared: slices before, pairs for each knob, slices after.

pub(crate) const SLICE_MIN_NS: u64 = 500_000_000;

/// Longest slice: what drifts slower than that is in both slices of a pair.
const SLICE_MAX_NS: u64 = 60_000_000_000;

/// Fewest wake-ups of a slice: p99.9 of fewer is their maximum.
const WAKE_UPS_MIN: u64 = 1000;

/// Time after a change before it is measured.
pub(crate) const SETTLE_NS: u64 = 100_000_000;

/// What a change, settling and waiting for the next slot take, as a rule and a half.
const OVERHEAD_NS: u64 = SETTLE_NS + SLOT_NS + SLOT_NS / 2;

/// Slices before anything is changed.
pub const BEFORE: u32 = 8;

/// Slices with what is made once, and with what was kept.
pub(crate) const ONCE: u32 = 4;

/// Shares of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeShares {
    /// Length of a slice, whole slots.
    pub(crate) slice_ns: u64,
    /// Pairs for each knob.
    pub pairs: usize,
    /// Knobs (of those that can be toggled) that are tried: the first so many.
    pub(crate) toggled: usize,
    /// Whether all are tried at once.
    pub(crate) mirrored: bool,
    /// Knobs of those that can be tried once that are: the first so many.
    pub once: usize,
    /// What all of it takes.
    pub(crate) needs_ns: u64,
}

impl TimeShares {
    fn slices_ns(&self, n: u64) -> u64 {
        n * (self.slice_ns + OVERHEAD_NS)
    }

    /// The same with what it takes.
    fn counted(mut self) -> Self {
        let pairs = if self.mirrored { self.pairs } else { self.pairs * self.toggled } as u64;
        let switched = 2 * pairs + u64::from(ONCE) * (self.once as u64 + 1);
        let before_ns = u64::from(BEFORE) * (self.slice_ns + SLOT_NS);
        self.needs_ns = LEAD_NS + before_ns + self.slices_ns(switched);
        self
    }
}

/// Shares `total_ns` between `toggled` and `once` knobs. `None`: too short for the shortest slices
/// of one knob; then [`shortest_ns`] gives the needed time.
pub(crate) fn share(
    total_ns: u64,
    toggled: usize,
    once: usize,
    cpus: usize,
    period_ns: u64,
) -> Option<TimeShares> {
    let least_ns = least_slice_ns(cpus, period_ns);
    let shares = |toggled: usize, pairs, mirrored, once| {
        let fits = |slots: u64| {
            let slice_ns = least_ns + slots * SLOT_NS;
            let shares =
                TimeShares { slice_ns, pairs, toggled, mirrored, once, needs_ns: 0 }.counted();
            (shares.needs_ns <= total_ns).then_some(shares)
        };
        let most = SLICE_MAX_NS.saturating_sub(least_ns) / SLOT_NS;
        // The longest slices that fit.
        let (mut low, mut high) = (0, most + 1);
        fits(0)?;
        while high - low > 1 {
            let mid = u64::midpoint(low, high);
            if fits(mid).is_some() { low = mid } else { high = mid }
        }
        fits(low)
    };
    // All knobs one by one, with fewer pairs before fewer knobs; all at once where that does not
    // fit; fewer at last.
    for once in (0..=once).rev() {
        for pairs in (pairs_least(toggled)..=PAIRS).rev() {
            if let Some(found) = shares(toggled, pairs, false, once) {
                return Some(found);
            }
        }
        let many = toggled.min(FACTORS_MAX);
        let at_once = paired::mirrored_pairs(many).filter(|_| many > 1);
        if let Some(found) = at_once.and_then(|pairs| shares(many, pairs, true, once)) {
            return Some(found);
        }
    }
    (1..toggled).rev().find_map(|toggled| shares(toggled, pairs_least(toggled), false, 0))
}

/// Pairs below which nothing could be decided of so many knobs, whatever they do, and one to spare:
/// what disturbs a slice costs a pair.
fn pairs_least(toggled: usize) -> usize {
    (paired::pairs_least(toggled, LEVEL) + 1).min(PAIRS)
}

fn least_slice_ns(cpus: usize, period_ns: u64) -> u64 {
    let wake_ups_ns = WAKE_UPS_MIN.div_ceil(cpus.max(1) as u64).saturating_mul(period_ns);
    SLICE_MIN_NS.max(wake_ups_ns).div_ceil(SLOT_NS).saturating_mul(SLOT_NS)
}

/// What trying one knob takes at least, and trying all of them one by one.
pub(crate) fn shortest_ns(toggled: usize, once: usize, cpus: usize, period_ns: u64) -> [u64; 2] {
    let slice_ns = least_slice_ns(cpus, period_ns);
    [(toggled.min(1), once.min(usize::from(toggled == 0))), (toggled, once)].map(
        |(toggled, once)| {
            let pairs = pairs_least(toggled);
            TimeShares { slice_ns, pairs, toggled, mirrored: false, once, needs_ns: 0 }
                .counted()
                .needs_ns
        },
    )
}

/// What is going to happen, before it does.
pub(crate) fn shares_sentence(shares: &TimeShares) -> String {
    let knobs = |n: usize| if n == 1 { "1 knob".into() } else { format!("{n} knobs") };
    let slice = units::duration(shares.slice_ns);
    let mut text = match (shares.toggled, shares.mirrored) {
        (0, _) => String::new(),
        (n, false) => {
            format!(
                "{}: {} pairs of slices of {slice} each, on and off in random order",
                knobs(n),
                shares.pairs
            )
        }
        (n, true) => format!(
            "{} at once: {} pairs of slices of {slice}, some on in one and the others in the other",
            knobs(n),
            shares.pairs
        ),
    };
    if shares.once > 0 {
        let joint = if text.is_empty() { "" } else { "; " };
        text += &format!("{joint}{} before and after, once", knobs(shares.once));
    }
    format!("{text}. It takes {}.", units::duration(shares.needs_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn a_minute() {
        let of = |toggled, once| share(60 * S, toggled, once, 2, MS).expect("shares");
        let one = of(1, 0);
        assert_eq!((one.pairs, one.mirrored, one.toggled), (12, false, 1));
        assert!(one.slice_ns > 1200 * MS && one.needs_ns <= 60 * S, "{one:?}");
        let three = of(3, 0);
        assert!(!three.mirrored && three.toggled == 3 && three.pairs >= 9, "{three:?}");
        let many = of(11, 0);
        assert_eq!((many.pairs, many.mirrored, many.toggled), (12, true, 11));
        assert!(many.slice_ns > S, "{many:?}");
        let more = of(30, 2);
        assert_eq!((more.pairs, more.mirrored, more.toggled), (20, true, 19));
        let none = of(0, 2);
        assert_eq!((none.toggled, none.once), (0, 2));
    }

    #[test]
    fn every_slice_is_long_enough_and_all_fits() {
        for seconds in [15, 20, 40, 60, 300, 3600, 86_400] {
            for (toggled, once) in [(0, 1), (1, 0), (2, 3), (5, 0), (12, 4), (40, 9)] {
                let Some(shares) = share(seconds * S, toggled, once, 2, MS) else { continue };
                assert!(shares.needs_ns <= seconds * S, "{shares:?}");
                assert!(shares.slice_ns >= SLICE_MIN_NS && shares.slice_ns <= SLICE_MAX_NS);
                assert_eq!(shares.slice_ns % SLOT_NS, 0);
                let least = paired::pairs_least(shares.toggled, LEVEL);
                assert!(shares.toggled == 0 || shares.pairs >= least, "{shares:?}");
            }
        }
        // p99.9 of one CPU at 10 ms takes ten seconds.
        let slow = share(3600 * S, 1, 0, 1, 10 * MS).expect("shares");
        assert!(slow.slice_ns >= 10 * S);
    }

    #[test]
    fn too_short_an_experiment_is_reported() {
        assert_eq!(share(5 * S, 1, 0, 2, MS), None);
        let [one, all] = shortest_ns(3, 0, 2, MS);
        assert!(share(one, 3, 0, 2, MS).is_some() && share(one - SLOT_NS, 3, 0, 2, MS).is_none());
        assert!(all > 2 * one);
    }
}
