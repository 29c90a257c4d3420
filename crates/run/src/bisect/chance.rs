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
    let is_good = |step: &&BisectStep| step.number > 2 && step.outcome == StepOutcome::Good;
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
        of if of < 0.0001 => "0.01 %".to_owned(),
        of if of < 0.01 => format!("{:.2} %", 100.0 * of),
        of => format!("{:.0} %", (100.0 * of).ceil()),
    }
}
