//! The schedule of `tune apply --prove`: slices before, pairs with knobs on and off, slices with
//! what is made once, the decision, slices with what is kept, all within the requested time.

use std::collections::VecDeque;

use rtproof_host::tune::Pace;
use rtproof_judge::units;
use rtproof_record::effects::{Design, KnobResult as Reported, Part, Slice, Statistic, Trial};
use rtproof_results::effects::percent;
use rtproof_stats::paired::{self, Margin, Spread};

use super::shares::{BEFORE, ONCE, SETTLE_NS, Shares};
use crate::experiment::{
    analyse::{self, LEVEL, MARGIN, Terms, Untried, ppm},
    conduct::SLOT_NS,
    knobs::Candidate,
    schedule::{Schedule, Task},
};

/// Time shared between the knobs.
pub(crate) struct Shared {
    shares: Shares,
    total_ns: u64,
    tasks: VecDeque<Task>,
    decided: bool,
}

impl Shared {
    /// A trial of `knobs` in `total_ns`, as its record has it, and knobs for which there is no
    /// time. `seed`: below 2^63.
    pub(crate) fn new(
        knobs: &[Candidate],
        shares: Shares,
        total_ns: u64,
        seed: u64,
    ) -> (Self, Trial, Untried) {
        let mut untried = Untried::new();
        let tasks = tasks(knobs, &shares, seed, &mut untried);
        let trial = Trial {
            seed,
            design: if shares.mirrored { Design::Mirrored } else { Design::Single },
            pairs: u32::try_from(shares.pairs).unwrap_or(u32::MAX),
            slice_ns: shares.slice_ns,
            margin_ppm: ppm(MARGIN),
            level_ppb: (LEVEL * 1e9) as u64,
            detectable_ppm: None,
        };
        (Self { shares, total_ns, tasks, decided: false }, trial, untried)
    }
}

impl Schedule for Shared {
    fn slice_ns(&self) -> u64 {
        self.shares.slice_ns
    }

    fn settle_ns(&self) -> u64 {
        SETTLE_NS
    }

    /// The next slice for which there is time; pairs are not begun that cannot be ended.
    fn task(&mut self, _: &[Slice], untried: &mut Untried, now_ns: u64) -> Option<Task> {
        let slice_ns = self.shares.slice_ns + SETTLE_NS + SLOT_NS;
        loop {
            let task = self.tasks.front()?;
            let is_first = self.tasks.get(1).is_some_and(|next| {
                next.part == Part::Pair && task.part == Part::Pair && next.pair == task.pair
            });
            let left = if self.decided { 0 } else { u64::from(ONCE) };
            let slices = 1 + u64::from(is_first) + if task.part == Part::Pair { left } else { 0 };
            if now_ns + slices * slice_ns <= self.total_ns || task.part == Part::Before {
                return self.tasks.pop_front();
            }
            let dropped = self.tasks.pop_front()?;
            if is_first {
                self.tasks.pop_front();
            }
            if dropped.part == Part::Once {
                for at in dropped.on {
                    untried.entry(at).or_insert_with(|| "there was no time left".into());
                }
            }
        }
    }

    /// After the slices before: what can be seen.
    fn look(&mut self, slices: &[Slice], trial: &mut Trial) -> Option<String> {
        if slices.len() != BEFORE as usize || trial.detectable_ppm.is_some() {
            return None;
        }
        // Downwards: what helps.
        let (margin, knobs) = (Margin::of_share(MARGIN).mirrored(), self.shares.toggled);
        let least = analyse::spread(slices.iter()).and_then(|sd| {
            let spread = Spread::of_successive(sd, slices.len());
            paired::detectable(spread, self.shares.pairs, knobs, LEVEL, margin)
        });
        let median = analyse::median_of(Statistic::P999, slices.iter());
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
        let after = Task { part: Part::After, pair: 0, on: kept.to_vec() };
        self.tasks.extend(std::iter::repeat_n(after, ONCE as usize));
    }
}

/// The slices, in order: pairs of all knobs in turns, so that what drifts is spread over them.
fn tasks(knobs: &[Candidate], shares: &Shares, seed: u64, untried: &mut Untried) -> VecDeque<Task> {
    let task = |part, pair, on: Vec<usize>| Task { part, pair, on };
    let mut tasks: VecDeque<Task> =
        (0..BEFORE).map(|_| task(Part::Before, 0, Vec::new())).collect();
    let mut of_kind = |kind, most: usize| {
        let mut those: Vec<usize> = (0..knobs.len()).filter(|&at| knobs[at].kind == kind).collect();
        for at in those.split_off(those.len().min(most)) {
            untried.insert(at, "there was no time for it; give it more, or name it alone".into());
        }
        those
    };
    let (toggled, once) =
        (of_kind(Pace::Toggled, shares.toggled), of_kind(Pace::Once, shares.once));
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
        tasks.extend(slices.into_iter().map(|on| task(Part::Pair, pair, on)));
    }
    for at in once {
        tasks.extend(std::iter::repeat_n(task(Part::Once, 0, vec![at]), ONCE as usize));
    }
    tasks
}
