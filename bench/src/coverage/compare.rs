//! Comparisons: pairs of runs, pairs of slices and whole experiments whose truth is known.
//!
//! Runs get a p99.9, a latest wake-up and missed wake-ups and are judged as `rtproof compare` does;
//! differences of slices go to `paired::answers`, which decides in `compare`, `tune` and
//! `experiment` alike.

use rtproof_judge::{
    compare::{
        CompareAnswer, CompareRequest, Comparison, Group, Side, SideThread, StatisticChange,
        compare_groups,
    },
    testing,
};
use rtproof_record::BudgetClass;
use rtproof_stats::{
    Bin, Bins,
    binomial::Random,
    paired::{self, MAIN, Margin, PAIRS, PairedAnswer as Knob, Spread, WeightedQuestion},
    screening,
};

use super::case::{Case, Promise};

const LEVEL: f64 = 0.05;
const SHARE: f64 = 0.05;

/// How the logarithm of p99.9 moves from run to run beside what changes it.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Normal, with this standard deviation of a run; A and B.
    Normal(f64, f64),
    /// A state that lasts for some runs, a drift of 10 %, a tail to the right.
    StateAndDrift,
    /// Student's t with two degrees of freedom.
    Heavy,
    /// One run in ten is disturbed up to tenfold, whichever it is.
    Spikes,
    /// Whole microseconds at 5 µs: most ratios are 1.
    Ties,
    /// One of two levels, 40 % apart, kept for a random number of runs.
    TwoLevels,
    /// The second run of a pair is 20 % higher than the first (warmth).
    Order,
    /// The same, and what follows B is 10 % higher: B changes the run after it.
    CarryOver,
    /// In blocks of four runs all noise has one sign.
    Blocks,
    /// The spread doubles in the course of the experiment.
    Growing,
    /// Spikes of a fixed height that A and B meet alike: not a ratio.
    FixedSpikes,
}

struct Machine {
    random: Random,
    noise: Noise,
    state: f64,
    run: u32,
    runs: u32,
    last_was_b: bool,
}

impl Machine {
    fn new(seed: u64, noise: Noise, pairs: usize) -> Self {
        let random = Random::new(seed.wrapping_mul(0x9E37_79B9) ^ 0xC0_FFEE);
        Self { random, noise, state: 0.0, run: 0, runs: 2 * pairs as u32, last_was_b: false }
    }

    /// Logarithm of p99.9 of the next run.
    fn run(&mut self, is_b: bool, effect: f64) -> f64 {
        let at = f64::from(self.run) / f64::from(self.runs);
        let is_second = self.run % 2 == 1;
        let of_block = self.run.is_multiple_of(4);
        self.run += 1;
        let random = &mut self.random;
        let normal = random.normal();
        let noise = match self.noise {
            Noise::Normal(a, b) => normal * if is_b { b } else { a },
            Noise::StateAndDrift => {
                self.state = 0.7 * self.state + 0.05 * normal;
                self.state + 0.1 * at - 0.05 * random.exponential().ln()
            }
            Noise::Heavy => 0.05 * normal / random.exponential().sqrt(),
            Noise::Spikes if random.unit() < 0.1 => 2.3 * random.unit(),
            Noise::Spikes | Noise::FixedSpikes | Noise::Ties => 0.05 * normal,
            Noise::TwoLevels => {
                if random.unit() < 0.3 {
                    self.state = 0.34 - self.state;
                }
                self.state + 0.02 * normal
            }
            Noise::Order | Noise::CarryOver => {
                let leaves = matches!(self.noise, Noise::CarryOver) && self.last_was_b;
                let warm = if leaves { 0.1 } else { 0.0 };
                0.05 * normal + if is_second { 0.18 + warm } else { 0.0 }
            }
            Noise::Blocks => {
                if of_block {
                    self.state = if random.unit() < 0.5 { -1.0 } else { 1.0 };
                }
                self.state * 0.1 * random.exponential()
            }
            Noise::Growing => 0.05 * (1.0 + at) * normal,
        };
        self.last_was_b = is_b;
        let value = noise + if is_b { effect } else { 0.0 };
        match self.noise {
            Noise::Ties => (5.0 * value.exp()).round().ln() - 5.0_f64.ln(),
            Noise::FixedSpikes if self.random.unit() < 0.1 => 1.5,
            _ => value,
        }
    }

    /// Pairs in the order of coins: logarithms of A and B.
    fn pairs(&mut self, seed: u64, pairs: usize, effect: f64) -> Vec<[f64; 2]> {
        let pair = |b_first| match b_first {
            true => {
                let b = self.run(true, effect);
                [self.run(false, effect), b]
            }
            false => [self.run(false, effect), self.run(true, effect)],
        };
        paired::order(seed ^ 0x5EED, pairs).into_iter().map(pair).collect()
    }
}

/// Pairs as runs of 1 ms for a minute, judged as `rtproof compare` does.
fn compared(seed: u64, noise: Noise, pairs: usize, effect: f64) -> Comparison {
    let mut machine = Machine::new(seed, noise, pairs);
    let logs = machine.pairs(seed, pairs, effect);
    let template = Side::of_run(&testing::run(BudgetClass::Hundred, 1, 1, &[]), "run", "run");
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let b_first = paired::order(seed ^ 0x5EED, pairs).into_iter().map(u64::from);
    for ((at, [of_a, of_b]), b_first) in (0..).zip(logs).zip(b_first) {
        for (group, log, first) in [(&mut a, of_a, b_first), (&mut b, of_b, 1 - b_first)] {
            let far = 1.0 + machine.random.exponential();
            group.push(side(&template, 2 * at + first, log, far, machine.random.below(4)));
        }
    }
    let group = |label: &str, sides| Group { label: label.into(), sides };
    compare_groups(&[group("A", a), group("B", b)], &CompareRequest::default())
}

/// A run with this p99.9.
fn side(template: &Side, number: u64, log: f64, far: f64, missed: u64) -> Side {
    let p999 = 50_000.0 * log.exp();
    let cells = [(0.2, 59_000), (0.6, 900), (1.0, 60), (far, 40)];
    let bin = |&(part, n): &(f64, u64)| {
        let ns = (p999 * part) as u64;
        Bin { low_ns: ns, high_ns: ns, n }
    };
    let wake = Bins::from_bins(cells.iter().map(bin).collect()).expect("ascending cells");
    let thread = SideThread {
        max_ns: Some((p999 * far) as u64),
        wake,
        missed: None,
        missed_count: Some(missed),
        ..template.threads[0].clone()
    };
    Side {
        id: number.to_string(),
        started_ns: Some(number * 60_000_000_000),
        threads: vec![thread],
        rows: Vec::new(),
        ..template.clone()
    }
}

fn main(comparison: &Comparison) -> &StatisticChange {
    let changes = &comparison.against[0].changes;
    changes.iter().find(|change| change.statistic == "p99.9").expect("p99.9 is compared")
}

/// What is said of differences of slices, as of one knob's p99.9.
fn knob(differences: &[f64]) -> Knob {
    let paired = paired::compare(differences, 1.0 - LEVEL, Margin::of_share(SHARE));
    let question = WeightedQuestion { of: 0, paired: paired.expect("pairs"), weight: MAIN };
    paired::answers(&[question], 1, LEVEL)[0].1
}

fn slices(seed: u64, noise: Noise, pairs: usize, effect: f64) -> Vec<f64> {
    let logs = Machine::new(seed, noise, pairs).pairs(seed, pairs, effect);
    logs.into_iter().map(|[a, b]| b - a).collect()
}

/// Eleven knobs that do nothing: screening, pairs of those that stand out, one family of answers.
fn names_one_of_eleven(seed: u64, noise: Noise) -> bool {
    let design = screening::design(seed ^ 0x5EED, 11).expect("a design");
    let mut machine = Machine::new(seed, noise, 2 * PAIRS);
    let rows: Vec<_> = design
        .rows
        .iter()
        .map(|_| Some([machine.run(false, 0.0), machine.run(false, 0.0)]))
        .collect();
    let margin = Margin::of_share(SHARE);
    let found = screening::effects(&design, &rows, 1.0 - LEVEL, margin).0;
    let arms = found.iter().filter(|effect| effect.is_large()).count();
    let questions: Vec<WeightedQuestion> = (0..arms)
        .map(|of| {
            let logs = machine.pairs(seed + 77 * (of as u64 + 1), PAIRS, 0.0);
            let differences: Vec<f64> = logs.into_iter().map(|[a, b]| b - a).collect();
            let paired = paired::compare(&differences, 1.0 - LEVEL, margin).expect("pairs");
            WeightedQuestion { of, paired, weight: MAIN }
        })
        .collect();
    let is_named = |answer: &Knob| !matches!(answer, Knob::Equivalent | Knob::Undecided);
    paired::answers(&questions, arms, LEVEL).iter().any(|(_, answer)| is_named(answer))
}

/// The detectable change that one comparison prints is the truth of the next one.
fn printed_is_found(seed: u64, run_sd: f64, pairs: usize) -> bool {
    let noise = Noise::Normal(run_sd, run_sd);
    let spread = Spread::of_pairs(&slices(seed, noise, pairs, 0.0)).expect("a spread");
    let margin = Margin::of_share(SHARE);
    let least = paired::detectable(spread, pairs, 1, LEVEL, margin).expect("a change");
    knob(&slices(seed + 1_000_000, noise, pairs, least)) == Knob::Higher
}

const NOISES: [(&str, Noise); 12] = [
    ("run noise 10 %", Noise::Normal(0.1, 0.1)),
    ("run noise 2 % of A, 20 % of B", Noise::Normal(0.02, 0.2)),
    ("lasting state, drift 10 %, tail to the right", Noise::StateAndDrift),
    ("heavy tails (t, 2 degrees of freedom)", Noise::Heavy),
    ("one run in ten up to tenfold", Noise::Spikes),
    ("ties: whole microseconds at 5 µs", Noise::Ties),
    ("two levels 40 % apart", Noise::TwoLevels),
    ("the second run of a pair 20 % higher", Noise::Order),
    ("B makes the run after it 10 % higher", Noise::CarryOver),
    ("noise of one sign in blocks of four runs", Noise::Blocks),
    ("spread doubles", Noise::Growing),
    ("spikes of a fixed height", Noise::FixedSpikes),
];

pub(super) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |claim, process: String, promise, runs, quick, happened: Happened| {
        all.push(Case { claim, process, promise, runs, quick, happened });
    };
    for (name, noise) in NOISES {
        let name = name.to_owned();
        let wrong = match noise {
            Noise::CarryOver => Promise::Unless("no run changes the one after it"),
            _ => Promise::AtMost(LEVEL),
        };
        add(
            "A and B are alike: compare says better, worse or different",
            format!("{name}, 12 pairs"),
            wrong,
            1000,
            6,
            Box::new(move |seed| {
                let comparison = compared(seed, noise, 12, 0.0);
                let says = |change: &StatisticChange| change.p_adjusted.is_some_and(|p| p < LEVEL);
                comparison.against[0].changes.iter().any(says)
            }),
        );
        // Rounding to whole microseconds has no ratio of its own, a fixed spike neither.
        if matches!(noise, Noise::Ties) {
            continue;
        }
        for share in [0.05_f64, -0.05] {
            let effect = share.ln_1p();
            add(
                "the effect is the margin: a change is said to be larger",
                format!("{name}, {:+.0} %, 12 pairs", 100.0 * share),
                wrong,
                1000,
                50,
                Box::new(move |seed| {
                    let answer = knob(&slices(seed, noise, 12, effect));
                    matches!(answer, Knob::Lower | Knob::Higher)
                }),
            );
            add(
                "the effect is the margin: no difference is said",
                format!("{name}, {:+.0} %, 12 pairs", 100.0 * share),
                wrong,
                1000,
                50,
                Box::new(move |seed| knob(&slices(seed, noise, 12, effect)) == Knob::Equivalent),
            );
        }
        add(
            "the 95 % interval of p99.9 does not hold the ratio",
            format!("{name}, +10 %, 12 pairs"),
            wrong,
            1000,
            50,
            Box::new(move |seed| {
                let (effect, margin) = (0.1_f64.ln_1p(), Margin::of_share(SHARE));
                let paired = paired::compare(&slices(seed, noise, 12, effect), 0.95, margin);
                let holds = |(low, high): (f64, f64)| (low..=high).contains(&effect);
                !paired.and_then(|paired| paired.interval).is_some_and(holds)
            }),
        );
        add(
            "eleven knobs that do nothing: an experiment names one",
            name,
            wrong,
            1000,
            20,
            Box::new(move |seed| names_one_of_eleven(seed, noise)),
        );
    }
    all.extend(power());
    all
}

type Happened = Box<dyn Fn(u64) -> bool + Sync>;

/// Right answers where they can be had.
fn power() -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |claim, process: String, promise, quick, happened: Happened| {
        all.push(Case { claim, process, promise, runs: 1000, quick, happened });
    };
    for share in [0.05_f64, -0.05] {
        add(
            "the effect is the margin: compare says better or worse",
            format!("all of {:+.0} %, run noise 10 %, 12 pairs", 100.0 * share),
            Promise::AtMost(LEVEL),
            10,
            Box::new(move |seed| {
                let noise = Noise::Normal(0.1, 0.1);
                let answer = compared(seed, noise, 12, share.ln_1p()).answer;
                matches!(answer, CompareAnswer::Better | CompareAnswer::Worse)
            }),
        );
    }
    for (share, answer) in [(0.2_f64, CompareAnswer::Worse), (-0.2, CompareAnswer::Better)] {
        add(
            "a change of p99.9 is found, by more than the margin",
            format!("{:+.0} %, run noise 10 %, 12 pairs", 100.0 * share),
            Promise::AtLeast(0.9),
            20,
            Box::new(move |seed| {
                let comparison = compared(seed, Noise::Normal(0.1, 0.1), 12, share.ln_1p());
                main(&comparison).answer == Some(answer)
            }),
        );
    }
    for (pairs, noise) in [(6, 0.1), (6, 0.02), (12, 0.1)] {
        add(
            "a change of p99.9 is found, by more than the margin",
            format!("threefold, run noise {:.0} %, {pairs} pairs", 100.0 * noise),
            Promise::AtLeast(0.99),
            5,
            Box::new(move |seed| {
                compared(seed, Noise::Normal(noise, noise), pairs, 3.0_f64.ln()).answer
                    == CompareAnswer::Worse
            }),
        );
    }
    for pairs in [6, 12, 24] {
        add(
            "A and B are alike: no difference is said",
            format!("run noise 1.5 %, {pairs} pairs"),
            Promise::AtLeast(0.8),
            5,
            Box::new(move |seed| {
                compared(seed, Noise::Normal(0.015, 0.015), pairs, 0.0).answer
                    == CompareAnswer::NoDifference
            }),
        );
    }
    for pairs in [6, 7, 8, 12, 24] {
        for run_sd in [0.02, 0.1, 0.4] {
            add(
                "the change that is said to be found four times in five is found",
                format!("run noise {:.0} %, {pairs} pairs", 100.0 * run_sd),
                Promise::AtLeast(0.77),
                if pairs == 6 && run_sd < 0.05 { 100 } else { 0 },
                Box::new(move |seed| printed_is_found(seed, run_sd, pairs)),
            );
        }
    }
    all
}
