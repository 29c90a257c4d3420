//! What the run of a cell found, as a row of the index.

use rtproof_judge::{
    Report, causes::Spikes, distribution::Distribution, loads_ran, report::CpuReport, units,
};
use rtproof_record::{Run, run::RunEnd};
use rtproof_results::{
    answer,
    measure::{
        index::{CellResult, Quantiles, SpikeCount, State, ThreadResult},
        plan::Cell,
    },
};
use rtproof_stats::{Moments, quantile::Q};

use super::statistics::{Scale, quantity};

/// What the run of a cell found.
pub fn cell_result(cell: &Cell, run: &Run, report: &Report) -> CellResult {
    let (state, why) = match &run.meta.ended {
        Some(RunEnd::Complete) => (State::Done, None),
        Some(RunEnd::Interrupted { signal }) => (State::CutShort, Some(format!("by {signal}"))),
        Some(RunEnd::Aborted { why }) => (State::CutShort, Some(why.clone())),
        None => (State::CutShort, Some("its record is torn".into())),
    };
    let intervals = |number: u32| {
        let of = run.threads.iter().filter(|thread| thread.info.number == number);
        let seconds = of.flat_map(|thread| &thread.seconds);
        seconds.fold(Moments::default(), |mut sum, second| {
            sum.merge(&second.intervals);
            sum
        })
    };
    let moments = |number: u32| {
        let found = run.threads.iter().find(|thread| thread.info.number == number);
        found.map_or_else(Moments::default, |thread| thread.totals.wake.clone())
    };
    let thread = |cpu: &CpuReport| {
        let number = cpu.thread.number;
        thread_result(cpu, report, &moments(number), &intervals(number))
    };
    CellResult {
        state,
        why,
        load_ran: state != State::Done
            || run.options.phases.iter().all(|phase| loads_ran(run, phase)),
        started_realtime_ns: Some(run.meta.started_realtime_ns),
        threads: report.cpus.iter().map(thread).collect(),
        beside: report.beside.clone(),
        spikes: report.spikes.as_ref().and_then(spiked),
        notes: report.notes.iter().map(|note| note.text.clone()).collect(),
        ..CellResult::missing(cell)
    }
}

/// How many spikes, and why.
fn spiked(spikes: &Spikes) -> Option<String> {
    let count = units::count(spikes.seen, "spike");
    let why = answer::why(spikes).map_or_else(String::new, |why| format!("; {why}"));
    (spikes.seen > 0).then(|| format!("{count}{why}"))
}

fn thread_result(
    cpu: &CpuReport,
    report: &Report,
    samples: &Moments,
    intervals: &Moments,
) -> ThreadResult {
    let info = &cpu.thread;
    let quantity = quantity(&info.workload);
    let samples = Scale::of(quantity, info.period_ns).spread(samples);
    let [p5_ns, p50_ns, p95_ns, p99_ns, p999_ns] = Q::TABLE.map(|q| cpu.measured.wake_ns(q));
    let quantiles = Quantiles { p5_ns, p50_ns, p95_ns, p99_ns, p999_ns };
    ThreadResult {
        cpu: info.cpu,
        workload: info.workload.clone(),
        quantity: quantity.name(),
        policy: rtproof_results::policy_name(info.policy),
        priority: info.priority,
        quantiles,
        intervals: (intervals.count() > 0)
            .then(|| Scale::of_intervals(info.period_ns).spread(intervals)),
        scheduled: cpu.measured.scheduled,
        missed: cpu.measured.missed,
        late: report.options.requirement.budget_ns.map(|_| cpu.measured.late),
        cv: samples.cv(),
        spread: samples.range_over(quantiles.p50_ns),
        spikes: spikes(report, info.cpu),
        samples,
        distribution: distribution(report, info.cpu),
    }
}

/// The distribution of a CPU; of the only one there is one for all.
fn distribution(report: &Report, cpu: u32) -> Distribution {
    let own = report.distribution.iter().find(|of| of.cpu == Some(cpu));
    let of = own.or(report.distribution.first()).cloned().unwrap_or_default();
    Distribution { cpu: Some(cpu), ..of }
}

/// Causes of the spikes of a CPU.
fn spikes(report: &Report, cpu: u32) -> Vec<SpikeCount> {
    let causes = report.spikes.iter().flat_map(|spikes| &spikes.causes);
    let of_cpu = |row: &rtproof_judge::causes::CauseRow| {
        let found = row.cpus.iter().find(|of| of.cpu == cpu && of.count > 0)?;
        Some(SpikeCount {
            title: row.title.clone(),
            culprit: row.culprit.clone(),
            count: found.count,
            worst_ns: found.worst_ns,
            sum_ns: found.sum_ns,
        })
    };
    let mut counts: Vec<SpikeCount> = causes.filter_map(of_cpu).collect();
    counts.sort_by_key(|of| std::cmp::Reverse(of.sum_ns));
    counts
}
