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

mod classes;
#[cfg(test)]
mod tests;

pub use rtproof_model::verdict::{
    Basis, Extrapolation, Integrity, LateGroups, Projection, Verdict, VerdictAnswer, WorstLatency,
};

use classes::LateRate;

use rtproof_record::{
    BudgetClass, Run,
    run::{Phase, Thread},
};
use rtproof_stats::{Sample, Totals};

use crate::share::{n_eff, share_upper, shares};
use crate::weakness::{loads_ran, scope, weaknesses};
use crate::{share, tail, units};

/// Judges a run. The same run gives the same verdict, whenever it is judged. `changed`: keys of the
/// facts that changed between its start and its end.
pub fn judge(run: &Run, changed: &[String], integrity: &Integrity) -> Verdict {
    let basis = basis_of(run);
    let requirement = &run.options.requirement;
    let weak = weaknesses(run, changed, integrity);
    let asks = requirement.class == BudgetClass::Hundred && requirement.budget_ns.is_some();
    let tail = if asks { tail::extrapolate(run, basis.exposure_ns) } else { None };
    let (answer, sentence, mut reasons) = match (requirement.budget_ns, requirement.class) {
        (None, _) => not_judged("no budget was given", "Give one with --budget, e.g. 100us."),
        (Some(_), BudgetClass::Soft) => not_judged(
            "soft real-time has no limit to judge",
            "Read the quantiles; ask for --class 95 or 100 to have a budget judged.",
        ),
        (Some(budget_ns), class) => {
            let case =
                VerdictCase { run, basis: &basis, budget_ns, weak: &weak, tail: tail.as_ref() };
            match class {
                BudgetClass::NinetyFive => case.ninety_five(),
                BudgetClass::Safe => case.safe(),
                BudgetClass::Hundred | BudgetClass::Soft => case.hundred(),
            }
        }
    };
    reasons.extend(weak);
    reasons.extend(scope(run));
    Verdict { answer, sentence, reasons, basis, tail }
}

fn not_judged(what: &str, step: &str) -> JudgedCase {
    (
        VerdictAnswer::NotJudged,
        format!("{what}; the measurement stands for itself"),
        vec![step.into()],
    )
}

// What the verdict rests on: counts, times and bounds.

fn basis_of(run: &Run) -> Basis {
    let requirement = &run.options.requirement;
    let confidence = f64::from(requirement.confidence_ppm) / 1e6;
    let mut totals = Totals::default();
    run.threads.iter().for_each(|thread| totals.merge(&thread.totals));
    let scheduled = run
        .threads
        .iter()
        .map(|thread| thread.end.as_ref().map_or(thread.totals.accounted(), |end| end.scheduled))
        .sum();
    let exposure_ns = exposure_ns(run);
    let judged = requirement.budget_ns.is_some() && totals.accounted() > 0;
    let late_groups = requirement.budget_ns.map(|budget_ns| share::groups_of(run, budget_ns));
    let rate = late_groups.filter(|_| judged).map(|groups| LateRate::of(run, &groups, exposure_ns));
    Basis {
        scheduled,
        sampled: totals.wake.count(),
        missed: totals.missed,
        late: totals.late(),
        late_clusters: totals.late_clusters,
        n_eff: run.threads.iter().map(|thread| n_eff(run, thread)).sum(),
        worst: worst(run),
        late_share_upper: judged.then(|| share_upper(&shares(run), confidence)).flatten(),
        late_rate_upper_per_hour: rate.and_then(|rate| rate.upper_per_hour()),
        late_rate_lower_per_hour: rate.and_then(|rate| rate.lower_per_hour()),
        late_groups,
        exposure_ns,
        further_ns: rate.and_then(|rate| further_ns(run, &rate, exposure_ns, confidence)),
    }
}

/// Time that counts: what every thread covered of the loaded phases, or all that it covered when no
/// phase had a load.
fn exposure_ns(run: &Run) -> u64 {
    let loaded: Vec<&Phase> =
        run.options.phases.iter().filter(|phase| !phase.loads.is_empty()).collect();
    if loaded.is_empty() {
        return covered_ns(run);
    }
    let in_phases = |thread: &Thread| -> u64 {
        let (from_ns, to_ns) = thread.covered();
        let in_phase =
            |phase: &&Phase| phase.to_ns.min(to_ns).saturating_sub(phase.from_ns.max(from_ns));
        loaded.iter().map(in_phase).sum()
    };
    run.threads.iter().map(in_phases).min().unwrap_or(0)
}

/// How much longer to measure; 0 when it is enough, `None` when more of the same does not help.
fn further_ns(run: &Run, rate: &LateRate, exposure_ns: u64, confidence: f64) -> Option<u64> {
    match run.options.requirement.class {
        BudgetClass::Soft | BudgetClass::Safe => None,
        BudgetClass::Hundred => rate.further_ns(),
        BudgetClass::NinetyFive => classes::further_ns(&shares(run), exposure_ns, confidence),
    }
}

fn worst(run: &Run) -> Option<WorstLatency> {
    let of = |thread: &Thread| {
        thread.top.first().map(|&Sample { due_ns, latency_ns }| WorstLatency {
            latency_ns,
            cpu: thread.info.cpu,
            due_ns,
            phase: phase_text(run, due_ns),
        })
    };
    run.threads.iter().filter_map(of).max_by_key(|worst| worst.latency_ns)
}

/// The phase at a time, in words: `idle`, `under load cpu+memory`.
fn phase_text(run: &Run, due_ns: u64) -> String {
    let phase =
        run.options.phases.iter().find(|phase| (phase.from_ns..phase.to_ns).contains(&due_ns));
    match phase {
        Some(phase) if phase.loads.is_empty() => "while idle".into(),
        Some(phase) => format!("under load {}", phase.name),
        None if run.options.phases.is_empty() => "as it ran".into(),
        None => "outside the load phases".into(),
    }
}

// A run with what it is judged by, and what all classes say of it.

type JudgedCase = (VerdictAnswer, String, Vec<String>);

struct VerdictCase<'a> {
    run: &'a Run,
    basis: &'a Basis,
    budget_ns: u64,
    weak: &'a [String],
    tail: Option<&'a Extrapolation>,
}

impl VerdictCase<'_> {
    fn confidence(&self) -> f64 {
        f64::from(self.run.options.requirement.confidence_ppm) / 1e6
    }

    fn confidence_text(&self) -> String {
        units::confidence(self.run.options.requirement.confidence_ppm)
    }

    fn load_text(&self) -> String {
        let loaded: Vec<_> =
            self.run.options.phases.iter().filter(|phase| !phase.loads.is_empty()).collect();
        match loaded.as_slice() {
            // A program of `rtproof run`: no load was started for it.
            [] if self.run.options.phases.is_empty() => "beside what else ran".into(),
            [] => "with no load".into(),
            phases => {
                let name = |phase: &&&Phase| match loads_ran(self.run, phase) {
                    true => phase.name.clone(),
                    false => format!("{} (not all of which ran)", phase.name),
                };
                let names: Vec<_> = phases.iter().map(|phase| name(&phase)).collect();
                format!("under load {}", names.join(", "))
            }
        }
    }

    /// The worst wake-up, how much of the budget it took, and where it was.
    fn worst_text(&self) -> String {
        self.basis.worst.as_ref().map_or(String::new(), |w| {
            let (worst, of) = (units::ns(w.latency_ns), of_budget(w.latency_ns, self.budget_ns));
            format!(" (worst {worst}{of}, CPU {}, {})", w.cpu, w.phase)
        })
    }

    fn refused(&self) -> JudgedCase {
        let b = self.basis;
        let bound = b.late_share_upper.map_or(String::new(), |upper| {
            format!(
                "; at {} confidence fewer than {} of wake-ups are late",
                self.confidence_text(),
                units::probability(upper)
            )
        });
        let groups = units::count(b.late_clusters, "group");
        let groups = format!("The late ones came in {groups}{bound}.");
        self.refused_for(groups)
    }

    /// Refused, for a reason.
    fn refused_for(&self, reason: String) -> JudgedCase {
        let (b, worst) = (self.basis, self.worst_text());
        let sentence = format!(
            "for a budget of {}: {} of {} wake-ups were later{worst}",
            units::ns(self.budget_ns),
            units::grouped(b.late),
            units::grouped(b.scheduled),
        );
        if let Some(policy) = self.lesser_policy() {
            let sentence =
                format!("{sentence}, with {policy}, which says nothing of the one asked for");
            return (VerdictAnswer::NotProven, sentence, vec![reason]);
        }
        (VerdictAnswer::Refused, sentence, vec![reason])
    }

    /// The policy in force, where it is less than what was asked for.
    fn lesser_policy(&self) -> Option<String> {
        let options = &self.run.options;
        let lesser = |thread: &&Thread| {
            let is_lesser = options.policy.is_real_time() && !thread.info.policy.is_real_time();
            is_lesser || thread.info.priority < options.priority
        };
        let info = &self.run.threads.iter().find(lesser)?.info;
        Some(match info.priority {
            0 => "no real-time priority".into(),
            priority => format!("priority {priority}"),
        })
    }

    /// The answer where the wake-ups cover no time: a single one is a moment.
    fn nothing_covered(&self) -> Option<JudgedCase> {
        let (b, budget) = (self.basis, units::ns(self.budget_ns));
        if b.exposure_ns > 0 && b.scheduled > 0 {
            return None;
        }
        let few = b.scheduled > 0 && covered_ns(self.run) == 0;
        let (what, steps) = if few {
            let wake_ups = units::count(b.scheduled, "wake-up");
            let cover = if b.scheduled == 1 { "covers" } else { "cover" };
            let step = "Measure for several periods: raise --for or lower --period.".into();
            (format!("{wake_ups} {cover} no time"), vec![step])
        } else {
            ("nothing was measured under the load".into(), Vec::new())
        };
        Some((VerdictAnswer::NotProven, format!("for a budget of {budget}: {what}"), steps))
    }

    fn safe(&self) -> JudgedCase {
        if self.basis.late > 0 {
            return self.refused();
        }
        let sentence = "for life-critical use: measurement cannot certify it".to_owned();
        let step =
            "It needs an analysis of the worst case; what was measured only bounds the rate \
                    of late wake-ups under this load."
                .to_owned();
        (VerdictAnswer::NotProven, sentence, vec![step])
    }
}

/// How much of the budget a latency takes; rounded up, so that nothing late is 100 %.
fn of_budget(latency_ns: u64, budget_ns: u64) -> String {
    let (latency, budget) = (u128::from(latency_ns), u128::from(budget_ns));
    match (latency * 100).div_ceil(budget.max(1)) {
        _ if budget_ns == 0 => String::new(),
        percent @ ..1000 => format!(", {percent} % of the budget"),
        _ => format!(", {} times the budget", units::grouped((latency / budget) as u64)),
    }
}

/// Time that every thread covered. Of a program of `rtproof run` the time in which any of its
/// threads was woken: one that waits for its end covers nothing, and all are counted over this.
fn covered_ns(run: &Run) -> u64 {
    if run.options.phases.is_empty() {
        let ends = || run.threads.iter().map(Thread::covered);
        let from_ns = ends().map(|(from_ns, _)| from_ns).min().unwrap_or(0);
        return ends().map(|(_, to_ns)| to_ns).max().unwrap_or(0).saturating_sub(from_ns);
    }
    let covered = |thread: &Thread| {
        let (from_ns, to_ns) = thread.covered();
        to_ns - from_ns
    };
    run.threads.iter().map(covered).min().unwrap_or(0)
}

#[cfg(test)]
mod case_tests {
    use super::*;

    #[test]
    fn the_worst_is_reported_as_a_share_of_the_budget() {
        assert_eq!(of_budget(47_000, 100_000), ", 47 % of the budget");
        assert_eq!(of_budget(1, 100_000), ", 1 % of the budget");
        assert_eq!(of_budget(100_000, 100_000), ", 100 % of the budget");
        assert_eq!(of_budget(100_001, 100_000), ", 101 % of the budget", "late, if only just");
        assert_eq!(of_budget(1_250_000, 100_000), ", 12 times the budget");
        assert_eq!(of_budget(7, 0), "");
        assert!(of_budget(u64::MAX, 1).ends_with(" times the budget"));
    }
}
