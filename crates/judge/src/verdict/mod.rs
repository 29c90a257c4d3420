//! The verdict: accepted, refused or not proven, with the evidence that it rests on.
//!
//! Rules, each one sentence (docs/statistics.md has what they are worth). Every class: none accepts
//! a run in which 5 % or more of the wake-ups of a CPU were late in any tenth of it. 95: the run is
//! cut into blocks, and who bets that fewer than 5 % are late must win twenty times the stake on
//! every CPU, while tenths of the run differ no more than such blocks explain. 100: late episodes
//! are few enough for the rate asked for, and late seconds, too; twenty times as many late seconds
//! as it allows refuse. Soft: nothing is judged. Safe: never accepted, because measuring cannot
//! certify it. Anything that takes force from the measurement leaves it not proven. CPUs do not add
//! exposure: what strikes one may strike all.

mod classes;
#[cfg(test)]
mod tests;

pub use rtproof_model::verdict::{
    Basis, HeldShare, Integrity, LateSeconds, Level, Verdict, VerdictAnswer, WorstLatency,
};

use classes::Counted;
pub use classes::{Ahead, RateTooHigh, ahead, rate_max};

use rtproof_record::{
    BudgetClass, Run,
    run::{Phase, Thread},
};
use rtproof_stats::{Sample, Totals};

use crate::units;
use crate::weakness::{loads_ran, scope, weaknesses};

/// Judges a run. The same run gives the same verdict, whenever it is judged. `changed`: keys of the
/// facts that changed between its start and its end.
pub fn judge(run: &Run, changed: &[String], integrity: &Integrity) -> Verdict {
    let requirement = &run.options.requirement;
    let weak = weaknesses(run, changed, integrity);
    let exposure_ns = exposure_ns(run);
    let counted = requirement.budget_ns.map(|budget_ns| Counted::of(run, budget_ns, exposure_ns));
    let basis = basis_of(run, counted.as_ref(), exposure_ns, weak.is_empty());
    let (answer, sentence, mut reasons) = match (counted, requirement.class) {
        (None, _) => not_judged("no budget was given", "Give one with --budget, e.g. 100us."),
        (Some(_), BudgetClass::Soft) => not_judged(
            "soft real-time has no limit to judge",
            "Read the quantiles; ask for --class 95 or 100 to have a budget judged.",
        ),
        (Some(counted), class) => {
            let case = VerdictCase { run, basis: &basis, counted, weak: &weak };
            match class {
                BudgetClass::NinetyFive => case.ninety_five(),
                BudgetClass::Safe => case.safe(),
                BudgetClass::Hundred | BudgetClass::Soft => case.hundred(),
            }
        }
    };
    reasons.extend(weak);
    reasons.extend(scope(run));
    Verdict { answer, sentence, reasons, basis }
}

fn not_judged(what: &str, step: &str) -> JudgedCase {
    (
        VerdictAnswer::NotJudged,
        format!("{what}; the measurement stands for itself"),
        vec![step.into()],
    )
}

// What the verdict rests on: counts, times and bounds.

fn basis_of(run: &Run, counted: Option<&Counted>, exposure_ns: u64, is_whole: bool) -> Basis {
    let mut totals = Totals::default();
    run.threads.iter().for_each(|thread| totals.merge(&thread.totals));
    let scheduled = run
        .threads
        .iter()
        .map(|thread| thread.end.as_ref().map_or(thread.totals.accounted(), |end| end.scheduled))
        .sum();
    Basis {
        scheduled,
        sampled: totals.wake.count(),
        missed: totals.missed,
        late: totals.late(),
        worst: worst(run),
        exposure_ns,
        further_ns: counted.and_then(|counted| further_ns(run, counted)),
        late_seconds: counted.map(|counted| counted.late_seconds(is_whole)),
        held: counted.and_then(|counted| counted.shares.held()),
        levels: if is_whole { classes::levels(run, exposure_ns) } else { Vec::new() },
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
fn further_ns(run: &Run, counted: &Counted) -> Option<u64> {
    match run.options.requirement.class {
        BudgetClass::Soft | BudgetClass::Safe => None,
        BudgetClass::Hundred => counted.needed_ns(),
        BudgetClass::NinetyFive if counted.shares.is_below() => Some(counted.exposure_ns),
        // The estimate may be a little short.
        BudgetClass::NinetyFive => {
            let least_ns = counted.exposure_ns.saturating_add(1_000_000_000);
            counted.shares.needed_ns().map(|needed_ns| needed_ns.max(least_ns))
        }
    }
    .map(|needed_ns| needed_ns.saturating_sub(counted.exposure_ns))
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
    counted: Counted,
    weak: &'a [String],
}

impl VerdictCase<'_> {
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
            let (worst, of) =
                (units::ns(w.latency_ns), of_budget(w.latency_ns, self.counted.budget_ns));
            format!(" (worst {worst}{of}, CPU {}, {})", w.cpu, w.phase)
        })
    }

    /// Refused, for a reason.
    fn refused(&self, reason: String) -> JudgedCase {
        let (b, worst) = (self.basis, self.worst_text());
        let sentence = format!(
            "for a budget of {}: {} of {} wake-ups were later{worst}",
            units::ns(self.counted.budget_ns),
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
        let (b, budget) = (self.basis, units::ns(self.counted.budget_ns));
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
            return self.refused("Of a life-critical wake-up none may be late.".into());
        }
        let sentence = "for life-critical use: measurement cannot certify it".to_owned();
        let step = "It needs an analysis of the worst case; what was measured only bounds how \
                    often wake-ups are late under this load."
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
