//! The verdict: accepted, refused or not proven, with the evidence that it rests on.
//!
//! Rules. 100 %: groups of late wake-ups in the time under load are held against the rate asked
//! for, by exact Poisson bounds that allow for looking whenever one likes: shown to be below
//! accepts, shown to be above refuses. Groups in episodes are not accepted; where the tail may be
//! followed, the level exceeded at that rate must be below the budget, by its upper end. 95 %: the
//! upper Clopper-Pearson bound on the share of late wake-ups, with the number of independent ones
//! (long-run variance), must be below 5 % on every CPU, in a minute under load or more. Soft:
//! nothing is judged. Safe: never accepted, because measuring cannot certify it. Anything that
//! takes force from the measurement leaves it not proven. CPUs do not add exposure: what strikes
//! one may strike all.

mod basis;
mod case;
mod hundred;
mod ninety_five;

use case::{Case, Judged};
use rtproof_record::{Class, Run};

use crate::{
    tail,
    weakness::{scope, weaknesses},
};

pub use rtproof_model::verdict::{
    Ahead, Answer, Basis, Extrapolation, LateGroups, Standing, Verdict, Worst,
};

/// Judges a run. The same run gives the same verdict, whenever it is judged. `changed`: keys of the
/// facts that changed between its start and its end.
pub fn judge(run: &Run, changed: &[String], standing: &Standing) -> Verdict {
    let basis = basis::of(run);
    let requirement = &run.options.requirement;
    let weak = weaknesses(run, changed, standing);
    let asks = requirement.class == Class::Hundred && requirement.budget_ns.is_some();
    let tail = if asks { tail::extrapolate(run, basis.exposure_ns) } else { None };
    let (answer, sentence, mut reasons) = match (requirement.budget_ns, requirement.class) {
        (None, _) => not_judged("no budget was given", "Give one with --budget, e.g. 100us."),
        (Some(_), Class::Soft) => not_judged(
            "soft real-time has no limit to judge",
            "Read the quantiles; ask for --class 95 or 100 to have a budget judged.",
        ),
        (Some(budget_ns), class) => {
            let case = Case { run, basis: &basis, budget_ns, weak: &weak, tail: tail.as_ref() };
            match class {
                Class::NinetyFive => case.ninety_five(),
                Class::Safe => case.safe(),
                Class::Hundred | Class::Soft => case.hundred(),
            }
        }
    };
    reasons.extend(weak);
    reasons.extend(scope(run));
    Verdict { answer, sentence, reasons, basis, tail }
}

fn not_judged(what: &str, step: &str) -> Judged {
    (Answer::NotJudged, format!("{what}; the measurement stands for itself"), vec![step.into()])
}

#[cfg(test)]
mod tests;
