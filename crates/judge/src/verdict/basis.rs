//! What the verdict rests on: counts, times and bounds.

use rtproof_model::verdict::{Basis, Worst};
use rtproof_record::{Class, Run, options::Phase, run::Thread};
use rtproof_stats::{Sample, Totals};

use super::{case::covered_ns, hundred::Rate, ninety_five};
use crate::{
    groups,
    share::{n_eff, share_upper, shares},
};

pub(super) fn of(run: &Run) -> Basis {
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
    let late_groups = requirement.budget_ns.map(|budget_ns| groups::of(run, budget_ns));
    let rate = late_groups.filter(|_| judged).map(|groups| Rate::of(run, &groups, exposure_ns));
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
fn further_ns(run: &Run, rate: &Rate, exposure_ns: u64, confidence: f64) -> Option<u64> {
    match run.options.requirement.class {
        Class::Soft | Class::Safe => None,
        Class::Hundred => rate.further_ns(),
        Class::NinetyFive => ninety_five::further_ns(&shares(run), exposure_ns, confidence),
    }
}

fn worst(run: &Run) -> Option<Worst> {
    let of = |thread: &Thread| {
        thread.top.first().map(|&Sample { due_ns, latency_ns }| Worst {
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
