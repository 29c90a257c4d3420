//! A count of events against a rate, looked at whenever one likes: after how much exposure so many
//! events show that the rate is below the one asked for, and within how little that it is above.
//!
//! Exposures are in events expected at the rate asked for. The error allowed, 1 - confidence, is
//! spent on the counts 0, 1, 2, ...: most of it on the first, which a good machine meets soonest,
//! the rest in parts that fall with the square of the count, so that every rate below is accepted
//! in the end. Events are taken for a Poisson process (Garwood, Biometrika 28, 1936, for a single
//! look; Kulldorff and others, Sequential Analysis 30, 2011, for boundaries of exposure).

use crate::{
    beta::{ln_gamma, poisson_tail},
    binomial,
};

/// Share of the error that the first count gets.
const FIRST: f64 = 0.8;
/// Counts up to which the boundary of acceptance is exact; beyond, each look is paid for in full.
const EXACT: u64 = 200;

/// What the n-th count, from 0, may spend of an error of 1.
fn share(n: u64) -> f64 {
    if n == 0 { FIRST } else { (1.0 - FIRST) / (n as f64 * (n as f64 + 1.0)) }
}

/// Exposure from which at most `count` events show that the rate is below the one asked for. Over
/// all counts and looks, at that rate or above, this is wrong with probability 1 - confidence.
pub fn accepted_from(count: u64, confidence: f64) -> f64 {
    if count > EXACT {
        return binomial::poisson_upper(count, 1.0 - (1.0 - confidence) * share(count));
    }
    // What is spent on each count, and its exposure. That a count is reached without an acceptance
    // is its Poisson probability less that of each acceptance before, followed by what is left.
    let mut spent: Vec<(f64, f64)> = Vec::new();
    for n in 0..=count {
        let alpha = (1.0 - confidence) * share(n);
        let from = spent.last().map_or(0.0, |&(_, from)| from);
        let earlier: f64 =
            (0..n).zip(&spent).map(|(i, &(alpha, at))| alpha * poisson(n - i, from - at)).sum();
        let reached = poisson(n, from) - earlier;
        // The rest of the exposure must be without a further event.
        let further = (reached / alpha).ln().max(0.0);
        spent.push((reached.min(alpha), from + further));
    }
    spent.last().map_or(0.0, |&(_, from)| from)
}

/// Exposure within which `count` events, one at least, show that the rate is above the one asked
/// for. Over all counts and looks, at that rate or below, this is wrong with probability
/// 1 - confidence at most (Bonferroni over the counts).
pub fn refused_within(count: u64, confidence: f64) -> f64 {
    // What one event shows holds with more of them.
    let one = -(-(1.0 - confidence) * FIRST).ln_1p();
    let before = match count {
        0 => return 0.0,
        1 => return one,
        count => count - 1,
    };
    let beta = (1.0 - confidence) * share(before);
    // On a logarithmic scale: for few events it is small.
    let (mut low, mut high) = (-60.0_f64, (count as f64 + 1.0).ln());
    for _ in 0..80 {
        let mid = f64::midpoint(low, high);
        if poisson_tail(count, mid.exp()) > beta { high = mid } else { low = mid }
    }
    low.exp().max(one)
}

/// P(X = n) for X ~ Poisson(mean).
fn poisson(n: u64, mean: f64) -> f64 {
    match n {
        0 => (-mean).exp(),
        n => (n as f64 * mean.ln() - mean - ln_gamma(n as f64 + 1.0)).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-9, "got {got}, want {want}");
    }

    #[test]
    fn boundaries_by_hand() {
        // -ln 0.04; then x0 + ln(x0 e^-x0 / 0.005); of the third, the paths 2 at x1 without 0 at
        // x0: one or two events before x0, none or one from there to x1.
        let x0 = -0.04_f64.ln();
        close(accepted_from(0, 0.95), x0);
        let x1 = x0 + (x0 * 0.04 / 0.005).ln();
        close(accepted_from(1, 0.95), x1);
        let more = x1 - x0;
        let two = 0.04 * (-more).exp() * (x0 * x0 / 2.0 + x0 * more);
        close(accepted_from(2, 0.95), x1 + (two / (0.01 / 6.0)).ln());
        // -ln(1 - 0.04), and P(X >= 2) = 0.005 (by bisection of its series).
        close(refused_within(1, 0.95), -(-0.04_f64).ln_1p());
        close(refused_within(2, 0.95), 0.10349454674809105);
        assert_eq!(refused_within(0, 0.95), 0.0);
    }

    #[test]
    fn boundaries_grow_and_meet_the_rate() {
        for confidence in [0.5, 0.9, 0.95, 0.99, 0.999_999] {
            let from: Vec<f64> = (0..230).map(|k| accepted_from(k, confidence)).collect();
            let within: Vec<f64> = (0..230).map(|k| refused_within(k, confidence)).collect();
            for (k, pair) in from.windows(2).enumerate() {
                assert!(pair[1] > pair[0], "{confidence} {k}: {pair:?}");
                // Never both.
                assert!(within[k] < from[k] && within[k + 1] >= within[k], "{confidence} {k}");
            }
        }
        let many = 1_000_000;
        assert!((accepted_from(many, 0.95) / many as f64 - 1.0).abs() < 0.01);
        assert!((refused_within(many, 0.95) / many as f64 - 1.0).abs() < 0.01);
    }

    /// Shares of processes with so many events per event expected that are ever accepted, and ever
    /// refused, before the 60th event, looked at all the time.
    fn ever(seed: u64, rate: f64, runs: u32) -> (f64, f64) {
        let from: Vec<f64> = (0..60).map(|k| accepted_from(k, 0.95)).collect();
        let within: Vec<f64> = (0..60).map(|k| refused_within(k, 0.95)).collect();
        let mut random = Random::new(seed);
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..runs {
            let mut at = 0.0;
            let (mut is_accepted, mut is_refused) = (false, false);
            for k in 0..59 {
                at += random.exponential() / rate;
                // Before this event there were k, and with it one more.
                is_accepted |= at >= from[k];
                is_refused |= at <= within[k + 1];
            }
            accepted += u32::from(is_accepted);
            refused += u32::from(is_refused);
        }
        (f64::from(accepted) / f64::from(runs), f64::from(refused) / f64::from(runs))
    }

    #[test]
    fn looking_all_the_time_costs_what_is_allowed() {
        // Spent up to the 60th event: 0.05 (0.8 + 0.2 (1 - 1/60)) = 0.0498.
        let (accepted, refused) = ever(1, 1.0, 60_000);
        assert!((accepted - 0.0498).abs() < 3.0 * 0.000_9, "{accepted}");
        assert!((0.04..0.05).contains(&refused), "{refused}");
        assert!(ever(2, 0.333, 2000).0 > 0.99, "a third is accepted in the end");
        assert!(ever(3, 2.5, 2000).1 > 0.95, "more than twice is refused in the end");
    }
}
