//! The promises of the comparison, kept in experiments with known answers: error rates and coverage
//! of slices that drift, depend on each other and have heavy tails. Seeds are fixed.

use super::{
    MAIN, Margin, PAIRS, PairedAnswer, Spread, WeightedQuestion, answers, compare, detectable,
    mirrored, order,
};
use crate::binomial::{Random, upper_bound};

fn margin() -> Margin {
    Margin::of_share(0.05)
}

/// The machine: log p99.9 of one slice after the other.
struct Machine {
    random: Random,
    state: f64,
    slice: u32,
    slices: u32,
}

impl Machine {
    fn new(seed: u64, slices: u32) -> Self {
        Self { random: Random::new(seed), state: 0.0, slice: 0, slices }
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.random.unit(), self.random.unit());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }

    /// A slice: a state that lasts for some slices, a drift of 10 % over the experiment, and noise
    /// of its own with a tail to the right, as that of a high quantile has.
    fn slice(&mut self, effect: f64) -> f64 {
        self.state = 0.7 * self.state + 0.05 * self.normal();
        let drift = 0.1 * f64::from(self.slice) / f64::from(self.slices);
        self.slice += 1;
        let gumbel = -(-(1.0 - self.random.unit()).ln()).ln();
        self.state + drift + 0.05 * gumbel + effect
    }

    fn differences(&mut self, seed: u64, effect: f64) -> Vec<f64> {
        let mut difference = |on_first: bool| {
            let (first, second) = if on_first { (effect, 0.0) } else { (0.0, effect) };
            let (first, second) = (self.slice(first), self.slice(second));
            if on_first { first - second } else { second - first }
        };
        order(seed, PAIRS).into_iter().map(&mut difference).collect()
    }
}

#[test]
fn nothing_is_found_where_nothing_is() {
    let experiments = 4000;
    let false_alarms = (0..experiments).filter(|&seed| {
        let d = Machine::new(seed, 24).differences(seed ^ 0x5eed, 0.0);
        compare(&d, 0.95, margin()).expect("pairs").p < 0.05
    });
    let alarms = false_alarms.count() as u64;
    // 4.98 % by construction; with 95 % confidence at most 6.5 %, and not far below 5 %.
    assert!(upper_bound(alarms, experiments, 0.95) <= 0.065 && alarms >= 150, "{alarms}");
}

#[test]
fn the_intervals_hold_the_truth() {
    let (experiments, effect) = (600, -0.12);
    let mut misses = 0_u64;
    for seed in 0..experiments {
        let d = Machine::new(seed + 10_000, 24).differences(seed, effect);
        let got = compare(&d, 0.95, margin()).expect("pairs");
        let holds = |(low, high): (f64, f64)| low <= effect && effect <= high;
        misses += u64::from(!got.interval.is_some_and(holds));
    }
    // 5 % at most, and not far below: an interval that never fails is too wide.
    assert!((12..=39).contains(&misses), "{misses} of {experiments}");
}

#[test]
fn ten_changes_are_not_ten_chances() {
    let families = 150;
    let wrong = (0..families).filter(|&family| {
        let questions: Vec<WeightedQuestion> = (0..10)
            .map(|knob| {
                let seed = family * 10 + knob;
                let d = Machine::new(seed + 50_000, 24).differences(seed, 0.0);
                let paired = compare(&d, 0.95, margin()).expect("pairs");
                WeightedQuestion { of: knob as usize, paired, weight: 1.0 }
            })
            .collect();
        answers(&questions, 10, 0.05).iter().any(|(adjusted, _)| adjusted.p < 0.05)
    });
    let wrong = wrong.count() as u64;
    assert!(wrong <= 14, "{wrong} of {families}"); // 7.5 expected at most, plus two deviations
}

#[test]
fn the_detectable_effect_is_detected() {
    // The detectable difference of one experiment is put into another one.
    let mut found = 0;
    let experiments = 300;
    for seed in 0..experiments {
        let d = Machine::new(seed + 99_000, 24).differences(seed, 0.0);
        let spread = Spread::of_pairs(&d).expect("a spread");
        let least = detectable(spread, PAIRS, 1, 0.05, margin()).expect("a difference");
        let d = Machine::new(seed + 90_000, 24).differences(seed, least);
        let paired = compare(&d, 0.95, margin()).expect("pairs");
        let question = WeightedQuestion { of: 0, paired, weight: MAIN };
        found += u32::from(answers(&[question], 1, 0.05)[0].1 == PairedAnswer::Higher);
    }
    // 80 % of 300, give or take three deviations.
    assert!((219..=261).contains(&found), "{found}");
}

#[test]
fn a_planted_change_is_named_and_its_neighbours_are_not() {
    // Eleven changes at once, one of which takes a third away.
    let mut named = [0_u32; 11];
    for seed in 0..100 {
        let mut machine = Machine::new(seed + 70_000, 24);
        let rows = mirrored(seed, 11).expect("a design");
        let effect = |on: bool| if on { -0.4 } else { 0.0 };
        let pairs: Vec<f64> = rows
            .iter()
            .map(|row| machine.slice(effect(row[4])) - machine.slice(effect(!row[4])))
            .collect();
        let of = |knob: usize| -> Vec<f64> {
            pairs.iter().zip(&rows).map(|(d, row)| if row[knob] { *d } else { -d }).collect()
        };
        let paired: Vec<_> =
            (0..11).map(|k| compare(&of(k), 0.95, margin()).expect("pairs")).collect();
        let all: Vec<_> = paired
            .into_iter()
            .enumerate()
            .map(|(of, paired)| WeightedQuestion { of, paired, weight: 1.0 })
            .collect();
        for (named, (_, answer)) in named.iter_mut().zip(answers(&all, 11, 0.05)) {
            *named += u32::from(answer == PairedAnswer::Lower);
        }
    }
    assert!(named[4] >= 95, "{named:?}");
    assert!(named.iter().enumerate().all(|(knob, &n)| knob == 4 || n <= 2), "{named:?}");
}
