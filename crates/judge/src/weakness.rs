//! Weaknesses of a measurement, and what it does not cover: sentences under a verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_record::{
    Run,
    run::{EndReason, Phase, RunEnd, Thread},
};

use crate::{Integrity, units};

/// How the keys of facts of tasks begin.
pub(crate) const TASKS: &str = "rt_tasks.";

/// Whether every load of a phase ran without an error.
pub fn loads_ran(run: &Run, phase: &Phase) -> bool {
    let ran = |name: &String| {
        run.loads.iter().any(|load| &load.name == name && load.error.is_none() && load.work > 0)
    };
    phase.loads.iter().all(ran)
}

/// Weaknesses of the measurement, one sentence each.
pub(crate) fn weaknesses(run: &Run, changed: &[String], integrity: &Integrity) -> Vec<String> {
    let mut weak = Vec::new();
    match integrity {
        Integrity::Sealed => {}
        // Its missing parts are listed below.
        Integrity::Torn if run.meta.ended.is_none() => {}
        Integrity::Torn => weak.push(
            "The record is torn: it was never sealed, but it holds the run to its end.".into(),
        ),
        Integrity::Altered { why } => {
            weak.push(format!("The record was altered after it was sealed: {why}."));
        }
    }
    match &run.meta.ended {
        Some(RunEnd::Complete) => {}
        Some(RunEnd::Interrupted { signal }) => {
            weak.push(format!("The run was interrupted by {signal}."));
        }
        Some(RunEnd::Aborted { why }) => weak.push(format!("The run was aborted: {why}.")),
        None => weak.push(torn(run)),
    }
    // The command line takes none below; a record of another hand may hold any.
    if run.options.requirement.confidence_ppm < CONFIDENCE_MIN_PPM {
        weak.push("A confidence below 50 % was asked for, which proves nothing.".into());
    }
    let is_torn = run.meta.ended.is_none();
    let complete = run.meta.ended == Some(RunEnd::Complete);
    if complete && run.facts_end.is_none() {
        weak.push(
            "The machine was not read again at the end: its settings may have changed.".into(),
        );
    }
    for cpu in run.options.cpus.iter() {
        if run.threads.iter().all(|thread| thread.info.cpu != cpu) {
            weak.push(format!("CPU {cpu} was to be measured and was not."));
        }
    }
    for phase in run.options.phases.iter().filter(|phase| complete && !loads_ran(run, phase)) {
        weak.push(format!("Not all of the load {} ran.", phase.name));
    }
    for thread in &run.threads {
        weak.extend(contradiction(run, thread));
        let cpu = thread.info.cpu;
        let missed = thread.totals.missed as f64 / thread.totals.accounted().max(1) as f64;
        if missed > MISSED_ALLOWED {
            weak.push(format!(
                "{} of the wake-ups of CPU {cpu} were missed: it does not keep this period.",
                units::probability(missed)
            ));
        }
        let Some(end) = &thread.end else {
            if is_torn {
                continue;
            }
            weak.push(format!(
                "The thread of CPU {cpu} has no end: what it did last is not known."
            ));
            continue;
        };
        weak.extend(early_end(thread).map(|how| format!("The {how}.")));
        if end.scheduled != thread.totals.accounted() {
            weak.push(format!(
                "The account of CPU {cpu} does not add up: {} scheduled, {} sampled or missed.",
                end.scheduled,
                thread.totals.accounted()
            ));
        }
    }
    weak.extend(moved(changed));
    weak.extend(run.notes.iter().filter(|note| note.weakens).map(|note| note.text.clone()));
    weak.dedup();
    weak
}

/// What ended a thread before its time, as `thread of CPU 3 lost its CPU`.
pub fn early_end(thread: &Thread) -> Option<String> {
    let how = match thread.end.as_ref()?.reason {
        EndReason::Complete | EndReason::Stopped => return None,
        EndReason::Starved => "ended itself: real-time threads starved the machine",
        EndReason::CpuLost => "lost its CPU",
        EndReason::Panicked => "failed inside rtproof; please report it",
        EndReason::Failed => "could not go on with its workload",
    };
    Some(format!("thread of CPU {} {how}", thread.info.cpu))
}

/// What a record without an end holds.
fn torn(run: &Run) -> String {
    let asked = units::duration(run.options.duration_ns);
    let written_ns = run.threads.iter().map(Thread::written_to_ns).min().unwrap_or(0);
    let held = match written_ns {
        0 => format!("no second of {asked}"),
        all if all >= run.options.duration_ns => {
            format!("all of {asked}, but not how the threads and the machine were at the end")
        }
        part => format!("the first {} of {asked}", units::duration(part)),
    };
    format!("The record is torn: its end was not written; it holds {held}.")
}

/// Least confidence that is judged.
const CONFIDENCE_MIN_PPM: u32 = 500_000;

/// Most changed facts that are named: all are listed below the verdict.
const CHANGED_MAX: usize = 3;

/// What changed between start and end: settings of the machine, or tasks that came and went.
fn moved(changed: &[String]) -> Vec<String> {
    let task = |key: &String| {
        let name = key.strip_prefix(TASKS)?;
        Some(name.strip_prefix("kernel.").unwrap_or(name).to_owned())
    };
    let tasks: Vec<String> = changed.iter().filter_map(task).collect();
    let settings: Vec<String> = changed.iter().filter(|key| task(key).is_none()).cloned().collect();
    let named = |names: &[String]| {
        let shown = names[..names.len().min(CHANGED_MAX)].join(", ");
        let more = names.len().saturating_sub(CHANGED_MAX);
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    };
    let settings = (!settings.is_empty()).then(|| {
        let names = named(&settings);
        format!(
            "The machine's settings changed during the run ({names}): the record is marked moved."
        )
    });
    let tasks = (!tasks.is_empty()).then(|| {
        let names = named(&tasks);
        format!(
            "Real-time tasks came or went during the run ({names}): the record is marked moved."
        )
    });
    settings.into_iter().chain(tasks).collect()
}

/// Share of missed wake-ups above which the loop cannot be said to run at its period.
const MISSED_ALLOWED: f64 = 0.05;

/// Counts of a thread that cannot all be true.
fn contradiction(run: &Run, thread: &Thread) -> Option<String> {
    let (cpu, totals) = (thread.info.cpu, &thread.totals);
    if totals.early > 0 {
        return Some(format!(
            "{} wake-ups of CPU {cpu} came before their time: its clock or timer is at fault.",
            units::grouped(totals.early)
        ));
    }
    let budget_ns = run.options.requirement.budget_ns?;
    let listed = thread.top.iter().filter(|sample| sample.latency_ns > budget_ns).count() as u64;
    let counted = thread.wake.count_above(budget_ns).0.max(listed);
    (counted > totals.late_sampled || totals.wake.max() > Some(budget_ns) && totals.late() == 0)
        .then(|| format!("The late wake-ups of CPU {cpu} are more than its record counts."))
}

/// What the verdict does not cover.
pub(crate) fn scope(run: &Run) -> Vec<String> {
    let mut scope = Vec::new();
    if let Some(Some(name)) = run.facts_start.virt.hypervisor.value() {
        let stolen: u64 =
            run.host.iter().flat_map(|second| &second.cpus).map(|cpu| cpu.steal_ms).sum();
        scope.push(format!(
            "Measured inside a virtual machine ({name}), which took {stolen} ms of CPU time \
             away: it \
             holds as seen in this guest, on this host, as loaded as it was."
        ));
    }
    if let Some(Some(name)) = run.facts_start.virt.container.value() {
        scope.push(format!("Measured inside a container ({name})."));
    }
    scope
}

// Rank of a run among reference machines, as data: of a report and of a comparison.

/// Rank of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Name of the run.
    pub run: String,
    pub lines: Vec<String>,
    /// Among all machines with a like run.
    pub all: Vec<QuantileRank>,
    /// What the narrower group shares, e.g. `board Raspberry Pi 4`; null: neither board nor CPU is
    /// known.
    pub alike_by: Option<String>,
    /// Among those of the same board, or of the same CPU where the board is not known.
    pub alike: Vec<QuantileRank>,
    /// Files of the folder that were not used, and why.
    pub left_out: Vec<UnusedFile>,
}

/// Place of one quantile among machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuantileRank {
    /// `p50`, `p99.9`, `p99.99`.
    pub statistic: String,
    /// Value of the run, nanoseconds.
    pub value_ns: u64,
    /// Other machines that carry this quantile.
    pub machines: u64,
    /// Those with a lower value; null: too few to rank among.
    pub lower: Option<u64>,
    /// Those whose value cannot be distinguished from it; null: too few.
    pub same: Option<u64>,
    /// Those with a higher value; null: too few.
    pub higher: Option<u64>,
    /// Smallest value of theirs, nanoseconds.
    pub least_ns: u64,
    /// The middle one, nanoseconds.
    pub middle_ns: u64,
    pub most_ns: u64,
}

/// A file that was not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnusedFile {
    pub file: String,
    pub why: String,
}
