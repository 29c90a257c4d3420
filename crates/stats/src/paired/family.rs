//! What is said of several questions that were asked of the same pairs or of one experiment.

use super::{Answer, Paired};
use crate::holm;

/// Share of a knob's or a comparison's level that p99.9 may use first: six pairs have a p value of
/// 0.031, which is below 0.92 times 0.05. The other statistics share the rest until p99.9 is
/// decided, and then have all of it.
pub const MAIN: f64 = 0.92;

/// Weight of each of `others` statistics beside p99.9.
pub fn rest(others: usize) -> f64 {
    (1.0 - MAIN) / others.max(1) as f64
}

/// A question with its weight: [`MAIN`] or [`rest`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The knob, or the comparison, that it is asked of.
    pub of: usize,
    /// What its pairs say.
    pub paired: Paired,
    /// Its weight; those of one knob are 1 together.
    pub weight: f64,
}

/// P values adjusted after Holm (1979), with weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusted {
    /// Of no effect, over all questions.
    pub p: f64,
    /// Of an effect within the margin, over those of the knob.
    pub p_margin: f64,
    /// Of an effect at least as large as the margin, over those of the knob.
    pub p_equivalent: f64,
}

/// What is said of each question, in the order given. That even one of `knobs` knobs without an
/// effect is said to have one has a probability of `level` at most; that more than the margin is
/// said of one that has no more, and "no difference" of one that has as much, one of `level` for
/// each knob.
pub fn answers(questions: &[Question], knobs: usize, level: f64) -> Vec<(Adjusted, Answer)> {
    let all: Vec<usize> = (0..questions.len()).collect();
    let adjusted = |those: &[usize], knobs: usize, of: fn(&Paired) -> f64| {
        let p = those.iter().map(|&at| (of(&questions[at].paired), questions[at].weight));
        let p: Vec<(f64, f64)> = p.collect();
        // Weight of what was asked and could not be tested.
        let spare = knobs as f64 - p.iter().map(|(_, weight)| weight).sum::<f64>();
        holm::weighted(&p, spare.max(0.0))
    };
    let p = adjusted(&all, knobs, |paired| paired.p);
    let one = |(at, question): (usize, &Question)| {
        let same = |&other: &usize| questions[other].of == question.of;
        let those: Vec<usize> = all.iter().copied().filter(same).collect();
        let place = those.iter().position(|&other| other == at).unwrap_or(0);
        let adjusted = Adjusted {
            p: p[at],
            p_margin: adjusted(&those, 1, |paired| paired.p_margin)[place],
            p_equivalent: adjusted(&those, 1, |paired| paired.p_equivalent)[place],
        };
        (adjusted, answer(&question.paired, adjusted, level))
    };
    questions.iter().enumerate().map(one).collect()
}

fn answer(paired: &Paired, adjusted: Adjusted, level: f64) -> Answer {
    let is_lower = paired.estimate < 0.0;
    match () {
        () if paired.n < super::PAIRS_MIN => Answer::Undecided,
        () if adjusted.p.max(adjusted.p_margin) < level => {
            if is_lower {
                Answer::Lower
            } else {
                Answer::Higher
            }
        }
        () if adjusted.p_equivalent < level => Answer::Equivalent,
        () if adjusted.p < level && paired.estimate != 0.0 => {
            if is_lower {
                Answer::SomeLower
            } else {
                Answer::SomeHigher
            }
        }
        () => Answer::Undecided,
    }
}
