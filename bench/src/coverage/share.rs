//! Class 95 and the intervals of quantiles: shares of wake-ups that depend on each other.

use rtproof_judge::{Answer, Standing, testing, verdict};
use rtproof_record::{Class, Run};
use rtproof_stats::random::Random;

use super::{Case, Promise};

/// The cases.
pub(super) fn cases() -> Vec<Case> {
    vec![Case {
        claim: "class 95 accepts a machine at a true share of 5 %",
        process: "independent, 60 s".into(),
        promise: Promise::AtMost(0.05),
        runs: 1000,
        quick: 20,
        happened: Box::new(|seed| answer(&independent(seed, 60, 0.05)) == Answer::Accepted),
    }]
}

fn answer(run: &Run) -> Answer {
    verdict::judge(run, &[], &Standing::Sealed).answer
}

fn independent(seed: u64, seconds: u64, share: f64) -> Run {
    let mut random = Random::new(seed);
    testing::run_of(Class::NinetyFive, 1, seconds, |_, _| match random.unit() {
        u if u < share => 150_000,
        u => 5000 + (u * 2000.0) as u64,
    })
}
