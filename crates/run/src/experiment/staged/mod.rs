//! The schedule of an experiment: all knobs at once, then pairs of what stood out, beside the
//! others that help. Those pairs alone decide; the screening has not seen them.

use std::collections::VecDeque;

use rtproof_record::effects::{Design, KnobResult as Reported, Part, Slice, Statistic, Trial};
use rtproof_stats::{paired, screening};

use super::{
    analyse::{LEVEL, MARGIN, Terms, Untried, ppm},
    knobs::Candidate,
    schedule::{Schedule, Task},
    screening::Screening,
    setup::Setup,
};

/// Stirred into the seed: the pairs are in another order than the screening.
const PAIRS_SEED: u64 = 0x5eed_0fa1_1bac_0001;

/// An experiment under way.
pub struct Staged {
    setup: Setup,
    seed: u64,
    names: Vec<String>,
    /// What is screened, and the design; `None`: nothing is screened.
    design: Option<screening::Design>,
    /// What the screening found, once it is over.
    found: Option<Screening>,
    tasks: VecDeque<Task>,
}

impl Staged {
    /// An experiment with `knobs`, as its record has it. `seed`: below 2^63; `detectable`: the
    /// share that was said to be seen.
    pub fn new(
        knobs: &[Candidate],
        setup: Setup,
        seed: u64,
        detectable: Option<f64>,
    ) -> (Self, Trial) {
        let design = setup.design(seed);
        let trial = Trial {
            seed,
            design: if design.is_some() { Design::Screened } else { Design::Single },
            pairs: u32::try_from(setup.pairs).unwrap_or(u32::MAX),
            slice_ns: setup.slice_ns,
            margin_ppm: ppm(MARGIN),
            level_ppb: (LEVEL * 1e9) as u64,
            detectable_ppm: detectable.map(|share| ppm(share).max(1)),
        };
        let names = knobs.iter().map(|knob| knob.name.clone()).collect();
        let mut staged = Self { setup, seed, names, design, found: None, tasks: VecDeque::new() };
        match staged.design.clone() {
            Some(design) => staged.screen(&design),
            None => {
                let all: Vec<Arm> = (0..knobs.len()).map(|at| Arm::beside(at, &[])).collect();
                staged.confirm(&all, 0);
            }
        }
        (staged, trial)
    }

    fn screen(&mut self, design: &screening::Design) {
        for (number, pair) in (0..).zip(0..design.rows.len()) {
            let slices = design.slices(pair).unwrap_or_default();
            self.tasks.extend(slices.map(|on| Task { part: Part::Screen, pair: number, on }));
        }
    }

    /// Pairs of each arm in turns, so that what drifts is spread over them.
    fn confirm(&mut self, arms: &[Arm], first: usize) {
        let firsts = paired::order(self.seed ^ PAIRS_SEED, self.setup.pairs * arms.len());
        for (turn, (arm, on_first)) in arms.iter().cycle().zip(firsts).enumerate() {
            let pair = u32::try_from(first + turn).unwrap_or(u32::MAX);
            let of = |on: &Vec<usize>| Task { part: arm.part, pair, on: on.clone() };
            let (with, without) = (of(&arm.with), of(&arm.without));
            self.tasks.extend(if on_first { [with, without] } else { [without, with] });
        }
    }
}

/// Two conditions that are compared.
struct Arm {
    part: Part,
    with: Vec<usize>,
    without: Vec<usize>,
}

impl Arm {
    /// A knob beside others.
    fn beside(knob: usize, others: &[usize]) -> Self {
        let without: Vec<usize> = others.iter().copied().filter(|&at| at != knob).collect();
        let mut with: Vec<usize> = without.iter().copied().chain([knob]).collect();
        with.sort_unstable();
        Self { part: Part::Pair, with, without }
    }
}

impl Schedule for Staged {
    fn slice_ns(&self) -> u64 {
        self.setup.slice_ns
    }

    fn settle_ns(&self) -> u64 {
        self.setup.settle_ns
    }

    fn task(&mut self, _: &[Slice], _: &mut Untried, _: u64) -> Option<Task> {
        self.tasks.pop_front()
    }

    /// After the screening: what stands out gets pairs of its own.
    fn look(&mut self, slices: &[Slice], _: &mut Trial) -> Option<String> {
        let design = self.design.as_ref().filter(|_| self.found.is_none())?;
        if !self.tasks.is_empty() {
            return None;
        }
        let found = super::screening::screened(design, slices);
        let mut arms: Vec<Arm> =
            found.standing_out.iter().map(|&at| Arm::beside(at, &found.lowering)).collect();
        if found.lowering.len() > 1 {
            let with = found.lowering.clone();
            arms.push(Arm { part: Part::Together, with, without: Vec::new() });
        }
        let first = design.rows.len();
        let names: Vec<&str> =
            found.standing_out.iter().map(|&at| self.names[at].as_str()).collect();
        let text = match names.len() {
            0 => "of all at once none stands out".into(),
            n => format!(
                "of all at once {n} {} out: {}; now {} pairs of each",
                if n == 1 { "stands" } else { "stand" },
                names.join(", "),
                self.setup.pairs
            ),
        };
        self.found = Some(found);
        self.confirm(&arms, first);
        Some(text)
    }

    fn analysis(&self, knobs: &[Candidate], slices: &[Slice], untried: &Untried) -> Vec<Reported> {
        let screening =
            self.design.as_ref().map(|design| super::screening::screened(design, slices));
        let standing_out = screening.as_ref().map_or(0, |found| found.standing_out.len());
        let terms = Terms {
            margin: MARGIN,
            total_ns: self.setup.needs_ns(standing_out),
            mirrored: false,
            knobs: self.setup.decided(standing_out),
        };
        super::screening::told(knobs, slices, untried, terms, screening.as_ref())
    }

    fn keeps(&self) -> bool {
        false
    }

    fn kept(&mut self, _: &[usize]) {}
}

/// The schedule of a pilot: slices in which nothing is changed.
pub struct Pilot {
    slice_ns: u64,
    /// Time from the start that is not measured.
    settle_ns: u64,
    left: u32,
}

impl Pilot {
    /// So many slices, and a trial of nothing.
    pub fn new(slice_ns: u64, slices: u32) -> (Self, Trial) {
        let trial = Trial {
            seed: 0,
            design: Design::Single,
            pairs: 0,
            slice_ns,
            margin_ppm: ppm(MARGIN),
            level_ppb: (LEVEL * 1e9) as u64,
            detectable_ppm: None,
        };
        (Self { slice_ns, settle_ns: 0, left: slices }, trial)
    }

    /// One slice after so long.
    pub fn settled(slice_ns: u64, settle_ns: u64) -> (Self, Trial) {
        let (pilot, trial) = Self::new(slice_ns, 1);
        (Self { settle_ns, ..pilot }, trial)
    }
}

impl Schedule for Pilot {
    fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    fn settle_ns(&self) -> u64 {
        self.settle_ns
    }

    fn task(&mut self, _: &[Slice], _: &mut Untried, _: u64) -> Option<Task> {
        self.left = self.left.checked_sub(1)?;
        // Beside nothing that is on: a pair whose other slice is another boot's.
        let part = if self.settle_ns > 0 { Part::Pair } else { Part::Before };
        Some(Task { part, pair: 0, on: Vec::new() })
    }

    fn look(&mut self, _: &[Slice], _: &mut Trial) -> Option<String> {
        None
    }

    fn analysis(&self, _: &[Candidate], _: &[Slice], _: &Untried) -> Vec<Reported> {
        Vec::new()
    }

    fn keeps(&self) -> bool {
        false
    }

    fn kept(&mut self, _: &[usize]) {}
}

/// Median of p99.9 of slices, for people.
pub fn median(slices: &[Slice]) -> Option<u64> {
    super::analyse::median_of(Statistic::P999, slices.iter())
}

#[cfg(test)]
mod tests;
