//! The spikes of a run, from its record alone: sums as they were written, the worst ones explained
//! anew from their windows.

use rtproof_model::{CauseRow, RecorderSummary};
use rtproof_record::{
    Run,
    run::Thread,
    spikes::{self, CauseEntry},
};
use rtproof_trace::{WakeUp, WakeUpBasis};

use crate::causes::{CauseTable, ExplainedSpike, Spikes, explain, title};

/// The spikes of a run; `None`: its record has nothing of them.
pub fn of_run(run: &Run) -> Option<Spikes> {
    let spikes = run.spikes.as_ref()?;
    let mut found = of_summary(&spikes.summary, spikes.summary.recorder.clone());
    found.causes = causes(&spikes.causes);
    found.worst = worst(run, &spikes.kept);
    judge_again(&mut found);
    found.structure = crate::structure::of_run(run);
    Some(found)
}

/// Late wake-ups that no run measured: of another tool's trace, or of a running application.
/// `worst` is sorted here.
pub fn gathered(
    table: &mut CauseTable,
    mut summary: spikes::SpikeSummary,
    recorder: RecorderSummary,
    mut worst: Vec<ExplainedSpike>,
) -> Spikes {
    table.fill(&mut summary);
    sort(&mut worst);
    Spikes { causes: causes(&table.take_changed()), worst, ..of_summary(&summary, recorder) }
}

/// Certain is what the windows prove, whatever the record says.
fn judge_again(found: &mut Spikes) {
    let of_row = |row: &CauseRow| -> u64 {
        let shares = found.worst.iter().flat_map(|spike| &spike.explanation.shares);
        let its = shares.filter(|of| of.cause == row.cause && of.culprit == row.culprit);
        its.filter(|of| of.is_certain()).map(|of| of.ns).sum()
    };
    let certain: Vec<u64> = found.causes.iter().map(of_row).collect();
    for (row, certain_ns) in found.causes.iter_mut().zip(certain) {
        row.ambiguous_ns = row.sum_ns.saturating_sub(certain_ns);
    }
    let certain_ns = found.worst.iter().map(|spike| spike.explanation.certain_ns()).sum::<u64>();
    found.certain_ns = certain_ns.min(found.sum_ns);
}

/// The numbers of a summary, without causes.
fn of_summary(summary: &spikes::SpikeSummary, recorder: RecorderSummary) -> Spikes {
    Spikes {
        threshold_ns: summary.threshold_ns,
        adaptive: summary.adaptive,
        seen: summary.seen,
        explained: summary.explained,
        incomplete: summary.incomplete,
        unexamined: summary.unexamined,
        sum_ns: summary.sum_ns,
        certain_ns: summary.certain_ns,
        recorder,
        causes: Vec::new(),
        worst: Vec::new(),
        structure: Vec::new(),
    }
}

/// The causes, the largest sum first. Entries come in order of appearance, which stays where sums
/// are alike.
fn causes(entries: &[CauseEntry]) -> Vec<CauseRow> {
    // A title is this program's, whatever an older one wrote.
    let row = |entry: &CauseEntry| CauseRow {
        title: title(&entry.row.cause).into(),
        ..entry.row.clone()
    };
    let mut causes: Vec<CauseRow> = entries.iter().map(row).collect();
    causes.sort_by_key(|row| std::cmp::Reverse(row.sum_ns));
    causes
}

fn worst(run: &Run, kept: &[spikes::KeptSpike]) -> Vec<ExplainedSpike> {
    let mut worst: Vec<ExplainedSpike> = kept.iter().filter_map(|kept| spike(run, kept)).collect();
    sort(&mut worst);
    worst
}

fn sort(worst: &mut [ExplainedSpike]) {
    worst.sort_by_key(|spike| {
        (std::cmp::Reverse(spike.explanation.wake.latency_ns()), spike.at_ns, spike.number)
    });
}

fn spike(run: &Run, kept: &spikes::KeptSpike) -> Option<ExplainedSpike> {
    let thread = run.threads.iter().find(|thread| thread.info.number == kept.thread)?;
    Some(ExplainedSpike {
        number: kept.number,
        at_ns: kept.due_ns,
        phase: run.options.phase_at(kept.due_ns).into(),
        explanation: explain(&wake_up(run, thread, kept), &kept.window),
    })
}

/// The wake-up as it was asked for while it was measured: on the clock of its trace.
fn wake_up(run: &Run, thread: &Thread, kept: &spikes::KeptSpike) -> WakeUp {
    let due_ns = run.meta.started_monotonic_ns.saturating_add(kept.due_ns);
    WakeUp {
        tid: thread.info.tid.cast_signed(),
        cpu: thread.info.cpu,
        due_ns,
        ran_ns: due_ns.saturating_add(kept.latency_ns),
        how: WakeUpBasis::Measured,
    }
}

#[cfg(test)]
mod tests {
    use rtproof_record::{BudgetClass, RecordedSpikes as Recorded};
    use rtproof_trace::Window;

    use super::*;
    use crate::causes::CauseTable;
    use crate::{Integrity, Report};

    /// A run of two CPUs with three spikes, two of them kept, as a collector leaves it.
    fn run() -> Run {
        let mut run = crate::testing::run(BudgetClass::Hundred, 2, 3, &[(1, 1500, 300_000)]);
        let mut table = CauseTable::default();
        let mut recorded = Recorded::default();
        for (number, (thread, due_ns, latency_ns)) in
            (1..).zip([(1, 1_500_000_000, 300_000), (0, 7_000_000, 90_000)])
        {
            let window = Window { cpu: thread, ..Window::default() };
            let kept = spikes::KeptSpike { number, thread, due_ns, latency_ns, window };
            let wake = wake_up(&run, &run.threads[thread as usize], &kept);
            assert_eq!(table.add(&explain(&wake, &kept.window)).keep, Some(number));
            recorded.kept.push(kept);
        }
        recorded.causes = table.take_changed();
        recorded.summary.seen = 3;
        recorded.summary.threshold_ns = 80_000;
        recorded.summary.recorder =
            RecorderSummary { cost_p50_ns: Some(1200), ..RecorderSummary::default() };
        table.fill(&mut recorded.summary);
        run.spikes = Some(recorded);
        run
    }

    #[test]
    fn all_of_it_comes_from_the_record() {
        let run = run();
        let spikes = of_run(&run).expect("spikes");
        assert_eq!((spikes.seen, spikes.explained, spikes.unexamined), (3, 2, 1));
        assert_eq!((spikes.sum_ns, spikes.threshold_ns), (390_000, 80_000));
        assert_eq!(spikes.recorder.cost_p50_ns, Some(1200));
        let latencies: Vec<u64> =
            spikes.worst.iter().map(|spike| spike.explanation.wake.latency_ns()).collect();
        assert_eq!(latencies, [300_000, 90_000]);
        for spike in &spikes.worst {
            let explanation = &spike.explanation;
            let sum: u64 = explanation.shares.iter().map(|share| share.ns).sum();
            assert_eq!(sum, explanation.wake.latency_ns());
            assert_eq!(spike.phase, "cpu");
        }
        assert_eq!(spikes.worst[0].explanation.wake.tid, 1001);
        assert_eq!(spikes.causes.iter().map(|row| row.sum_ns).sum::<u64>(), 390_000);
        assert_eq!(Report::new(&run, &Integrity::Torn).spikes, Some(spikes.clone()));
        assert_eq!(of_run(&run), Some(spikes), "the same again");
    }

    #[test]
    fn a_record_without_spikes_has_none() {
        let run = crate::testing::run(BudgetClass::Hundred, 1, 1, &[]);
        assert_eq!(of_run(&run), None);
        let report = Report::new(&run, &Integrity::Torn);
        let mut json = serde_json::to_value(&report).expect("JSON");
        json.as_object_mut().expect("an object").remove("spikes");
        let old: Report = serde_json::from_value(json).expect("a report of before");
        // As JSON: a remedy that was read back does not know its knob.
        let json = |report: &Report| serde_json::to_value(report).expect("JSON");
        assert_eq!(json(&old), json(&report));
    }

    #[test]
    fn a_window_of_no_thread_is_left_out() {
        let mut run = run();
        let spikes = run.spikes.as_mut().expect("spikes");
        spikes.kept[0].thread = 99;
        let spikes = of_run(&run).expect("spikes");
        assert_eq!(spikes.worst.len(), 1);
    }
}
