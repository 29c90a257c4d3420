//! What chance may do to a bisection over trial boots: a kernel that is bad may have shown nothing
//! in the time in which it was tested. A guest's time counts instructions, and knows no chance.

use rtproof_judge::units::count;
use rtproof_results::kernel::bisect::{BisectStep, StepOutcome};
use rtproof_stats::binomial::{poisson_at_most, poisson_lower};

use super::criterion::Criterion;

/// Confidence of the bound on the rate at the bad end.
const LEVEL: f64 = 0.95;

/// How far the good steps can be trusted.
pub(super) fn note(criterion: &Criterion, steps: &[BisectStep]) -> Option<String> {
    let booted_again: Vec<usize> = steps.iter().filter_map(|step| step.repeats).collect();
    let is_good = |step: &&BisectStep| {
        let is_once = step.repeats.is_none() && !booted_again.contains(&step.number);
        step.number > 2 && step.outcome == StepOutcome::Good && is_once
    };
    let good = steps.iter().filter(is_good).count() as u64;
    if good == 0 {
        return None;
    }
    let decided = format!("found good by one boot each: {}", count(good, "kernel"));
    let Criterion::Cause(name, limit) = criterion else {
        return Some(format!(
            "{decided}; a bad one that shows it only now and then is not told from them"
        ));
    };
    // The second step is the bad end.
    let side = steps.get(1)?.measured.as_ref()?;
    let seen = side.causes.iter().find(|of| of.cause == *name).map_or(0, |of| of.count);
    let missed = poisson_at_most(*limit, poisson_lower(seen, LEVEL));
    Some(format!(
        "{decided}. The bad end showed {} in the same time. So a bad kernel passes as good with a \
         probability of up to {} each, at 95 %, where they come independently of each other. Where \
         they come in bursts it is more{}",
        count(seen, "stretch"),
        share(missed),
        if missed * good as f64 > 0.05 { ": a longer --for tells more" } else { "" }
    ))
}

fn share(of: f64) -> String {
    match of {
        // Rounded up: it is an upper bound.
        of if of < 0.01 => format!("{:.2} %", (10_000.0 * of).ceil().max(1.0) / 100.0),
        of => format!("{:.0} %", (100.0 * of).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use rtproof_results::kernel::compare::{KernelSide, Stretches};

    use super::*;

    fn side(count: u64) -> KernelSide {
        let cause = Stretches { cause: "irqs-off".into(), count, ..Stretches::default() };
        KernelSide { causes: vec![cause], ..KernelSide::default() }
    }

    fn steps(at_bad_end: u64, good: usize) -> Vec<BisectStep> {
        let outcome = |number: usize| match number {
            2 => StepOutcome::Bad,
            _ => StepOutcome::Good,
        };
        let step = |number: usize| BisectStep {
            number,
            outcome: outcome(number),
            measured: Some(side(if number == 2 { at_bad_end } else { 0 })),
            ..BisectStep::default()
        };
        (1..=good + 2).map(step).collect()
    }

    #[test]
    fn few_stretches_at_the_bad_end_leave_much_to_chance() {
        let of = Criterion::Cause("irqs-off".into(), 0);
        let note_of = |seen, good| note(&of, &steps(seen, good));
        assert_eq!(note_of(5, 0), None, "only the good end is good");
        // exp(-0.0513): one stretch says nothing of the rate.
        let one = note_of(1, 3).unwrap();
        assert!(one.contains("up to 95 % each") && one.contains("a longer --for"), "{one}");
        // exp(-5.425) = 0.44 %: three steps are 1.3 %.
        let ten = note_of(10, 3).unwrap();
        assert!(ten.contains("up to 0.45 % each") && !ten.contains("a longer --for"), "{ten}");
        // A kernel that booted twice was not judged by one boot.
        let mut twice = steps(10, 3);
        twice.push(BisectStep { number: 6, repeats: Some(5), ..twice[4].clone() });
        let twice = note(&of, &twice).unwrap();
        assert!(twice.contains("each: 2 kernels."), "{twice}");
        let other = Criterion::Verdict;
        assert!(note(&other, &steps(0, 2)).unwrap().contains("2 kernels; a bad one"));
    }
}
