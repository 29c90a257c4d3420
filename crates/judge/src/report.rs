//! The report of a run as data: what text, JSON and HTML show. Computed from the record alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::{
    CpuList, Facts,
    facts::{copied::MachineCopy, cpu_classes::CpuClass},
};
use rtproof_record::{
    Options, Run,
    run::{Cost, EndReason, Meta, Note, RecordedLoad, RunEnd, Thread, ThreadEnd, ThreadInfo},
};
use rtproof_stats::{
    Histogram, Layout, Totals,
    evidence::PARTS,
    moving::Lengths,
    quantile::{Q, Quantile},
};

use crate::causes::Spikes;
use crate::distribution::{Averages, Distribution};
use crate::moving::{Moving, RunSurroundings};
use crate::weakness::Reference;
use crate::{Finding, Integrity, Intent, Verdict, checks, distribution, units, verdict, weakness};

/// Version of the JSON form. Fields may be added under one version; none changes or goes.
pub const SCHEMA: &str = "rtproof/report/2";

const TOP_SHOWN: usize = 20;

/// Everything that is said of one run, as JSON keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub schema: String,
    /// Identity of the run and how it ended.
    pub run: Meta,
    /// Whether the record is what the run left.
    pub record: Integrity,
    pub verdict: Verdict,
    /// The machine in short.
    pub machine: MachineSummary,
    pub options: Options,
    /// Until when it was measured: due time of the last wake-up, nanoseconds after the first.
    /// In a run that was cut short less than the duration asked for.
    #[serde(default)]
    pub measured_ns: u64,
    pub findings: Vec<Finding>,
    pub cost: Cost,
    pub all: Measured,
    pub cpus: Vec<CpuReport>,
    /// Each load phase, all CPUs together.
    pub phases: Vec<PhaseReport>,
    pub loads: Vec<RecordedLoad>,
    /// The largest samples of all CPUs, largest first.
    pub top: Vec<TopSample>,
    /// What changed in the machine between start and end.
    pub changes: Vec<ChangedFact>,
    pub notes: Vec<Note>,
    /// Why wake-ups were late; `None`: the record has nothing of it.
    #[serde(default)]
    pub spikes: Option<Spikes>,
    /// Changes of the threads from outside, idle states and frequencies of their CPUs.
    #[serde(default)]
    #[serde(rename = "beside")]
    pub surroundings: RunSurroundings,
    /// Moments up to kurtosis, P² estimates: all together first, then each CPU where there are
    /// several.
    #[serde(default)]
    pub distribution: Vec<Distribution>,
    /// Cumulative and moving averages.
    #[serde(default)]
    pub averages: Averages,
    /// Moving mean, deviation, shape and percentiles, beside the cumulative ones.
    #[serde(default)]
    pub moving: Moving,
    /// Rank of the run among reference machines; empty: none were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference: Vec<Reference>,
}

/// The machine in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineSummary {
    pub hostname: Option<String>,
    pub model: Option<String>,
    pub cpu_model: Option<String>,
    pub kernel: Option<String>,
    pub arch: Option<String>,
    /// Preemption model in words.
    pub preemption: String,
    /// Number of CPUs online.
    pub cpus_online: Option<u32>,
    /// Number of CPUs in the machine, online or not.
    #[serde(default)]
    pub cpus_present: Option<u32>,
    /// CPUs that are in the machine and offline.
    #[serde(default)]
    pub cpus_offline: Option<CpuList>,
    /// Number of online CPUs of each kind, the fastest first; empty where the kind of some is
    /// unknown.
    #[serde(default)]
    pub cpu_kinds: Vec<u32>,
    /// Number of NUMA nodes that have CPUs.
    #[serde(default)]
    pub nodes: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub hypervisor: Option<String>,
    /// Whether it is known to be no guest.
    #[serde(default)]
    pub bare_metal: bool,
    pub container: Option<String>,
    pub clocksource: Option<String>,
    /// What was read in place of a machine; `None`: a live machine, or a capture made on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<MachineCopy>,
}

/// Measurement of one CPU or of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Wake-ups that were due.
    pub scheduled: u64,
    pub sampled: u64,
    pub missed: u64,
    /// Later than the budget.
    pub late: u64,
    /// Exact, not an edge of a histogram bucket.
    pub min_ns: Option<u64>,
    /// Exact, not an edge of a histogram bucket.
    pub max_ns: Option<u64>,
    /// Mean latency, wake-up view.
    pub mean_ns: Option<f64>,
    /// Standard deviation about the mean (n - 1), wake-up view.
    pub sd_ns: Option<f64>,
    /// Mean, deadline view: missed wake-ups count with their own lateness.
    pub deadline_mean_ns: Option<f64>,
    /// Quantiles of the wake-up view, upper edges of buckets at most 0.8 % wide.
    pub wake: Vec<Quantile>,
    /// Quantiles of the deadline view.
    pub deadline: Vec<Quantile>,
}

impl Measured {
    /// A quantile of the wake-up view; `None`: the samples do not carry it.
    pub fn wake_ns(&self, q: Q) -> Option<u64> {
        self.wake.iter().find(|quantile| quantile.q == q).and_then(|quantile| quantile.value_ns)
    }
}

/// Result of one measuring thread on its CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuReport {
    pub thread: ThreadInfo,
    /// How it ended; `None` in a torn record.
    pub end: Option<ThreadEnd>,
    pub measured: Measured,
}

/// Result of one named phase of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseReport {
    pub name: String,
    pub from_ns: u64,
    pub to_ns: u64,
    /// What was measured in the seconds that begin in it; quantiles from buckets 3.1 % wide.
    pub measured: Measured,
}

/// One of the largest samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopSample {
    pub cpu: u32,
    /// When it was due, nanoseconds after the first wake-up.
    pub due_ns: u64,
    pub latency_ns: u64,
    pub phase: String,
}

/// A fact that changed during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFact {
    /// Fact, e.g. `cpus.3.freq.governor`.
    pub key: String,
    pub from: String,
    /// Value at the end of the run.
    pub to: String,
}

impl ChangedFact {
    /// Whether it is a real-time task that came or went, and no setting.
    pub fn is_task(&self) -> bool {
        self.key.starts_with(weakness::TASKS)
    }
}

impl Report {
    /// Judges a run: checks, quantiles, verdict. The spikes, which take as long as all the rest, on
    /// a thread of their own.
    pub fn new(run: &Run, integrity: &Integrity) -> Self {
        std::thread::scope(|scope| {
            let spikes = scope.spawn(|| crate::spikes::of_run(run));
            let report = Self::without_spikes(run, integrity);
            let spikes = spikes.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Self { spikes, ..report }
        })
    }

    fn without_spikes(run: &Run, integrity: &Integrity) -> Self {
        let changes = changes(run);
        let keys: Vec<String> = changes.iter().map(|change| change.key.clone()).collect();
        Self {
            schema: SCHEMA.into(),
            run: run.meta.clone(),
            record: integrity.clone(),
            verdict: verdict::judge(run, &keys, integrity),
            machine: MachineSummary::of(&run.facts_start),
            options: run.options.clone(),
            measured_ns: run.threads.iter().map(|thread| thread.covered().1).max().unwrap_or(0),
            findings: checks::judge_all(
                &run.facts_start,
                &Intent::of(&run.options, &run.facts_start),
            ),
            cost: run.cost,
            all: all(run),
            cpus: run.threads.iter().map(cpu).collect(),
            phases: phases(run),
            loads: run.loads.clone(),
            top: top(run),
            changes,
            notes: run.notes.clone(),
            spikes: None,
            surroundings: RunSurroundings::of(run),
            distribution: distribution::of_run(run),
            averages: Averages::of(run),
            // The default lengths fit every run.
            moving: Moving::of(run, Lengths::default()).unwrap_or_default(),
            reference: Vec::new(),
        }
    }
}

impl MachineSummary {
    /// The machine in short, from its facts.
    pub fn of(facts: &Facts) -> Self {
        let known = |reading: &rtproof_host::Reading<String>| reading.value().cloned();
        let count = |list: &CpuList| list.len() as u32;
        Self {
            hostname: known(&facts.identity.hostname),
            model: known(&facts.identity.model),
            cpu_model: known(&facts.identity.cpu_model),
            kernel: known(&facts.kernel.release),
            arch: known(&facts.kernel.arch),
            preemption: preemption(facts).into(),
            cpus_online: facts.cpus.online.value().map(count),
            cpus_present: facts.cpus.present.value().map(count),
            cpus_offline: facts.cpus.offline(),
            cpu_kinds: match facts.cpus.classes() {
                kinds if kinds.iter().all(CpuClass::is_known) => {
                    kinds.iter().map(|kind| count(&kind.cpus)).collect()
                }
                _ => Vec::new(),
            },
            nodes: facts
                .cpus
                .nodes
                .value()
                .map(|nodes| nodes.iter().filter(|node| !node.cpus.is_empty()).count() as u32),
            memory_bytes: facts.identity.memory_bytes.value().copied(),
            hypervisor: facts.virt.hypervisor.value().cloned().flatten(),
            bare_metal: matches!(facts.virt.hypervisor.value(), Some(None)),
            container: facts.virt.container.value().cloned().flatten(),
            clocksource: known(&facts.clock.source),
            copy: facts.copy.clone(),
        }
    }
}

fn preemption(facts: &Facts) -> &'static str {
    use rtproof_host::facts::kernel::Preemption;
    match facts.kernel.preemption.value() {
        Some(Preemption::Rt) => "PREEMPT_RT",
        Some(Preemption::Full) => "preempt full",
        Some(Preemption::Lazy) => "preempt lazy",
        Some(Preemption::Voluntary) => "preempt voluntary",
        Some(Preemption::None) => "preempt none",
        Some(Preemption::DynamicUnknown) => "preempt dynamic, mode unknown",
        None => "preemption model unknown",
    }
}

fn changes(run: &Run) -> Vec<ChangedFact> {
    let Some(end) = &run.facts_end else {
        return Vec::new();
    };
    rtproof_host::flatten::changed_facts(&run.facts_start, end)
        .into_iter()
        .map(|change| ChangedFact { key: change.key, from: change.from, to: change.to })
        .collect()
}

/// Histograms and sums of one view of the measurement.
struct Counted<'a> {
    scheduled: u64,
    totals: &'a Totals,
    wake: &'a Histogram,
    missed: &'a Histogram,
    /// Tenths of its time, for the ranges of quantiles.
    tenths: Tenths,
}

impl Counted<'_> {
    fn report(&self) -> Measured {
        let n = self.totals.accounted();
        let max_ns = self.totals.wake.max().unwrap_or(u64::MAX);
        let mut deadline = self.wake.clone();
        deadline.merge(self.missed);
        let quantiles = |histogram: &Histogram, tenths: &[Histogram]| {
            // An edge of a bucket may lie above the largest value, which is exact.
            let largest = |ns: u64| ns.min(max_ns);
            let all = Q::REPORT.map(|q| {
                let range = q.range_over(tenths);
                Quantile {
                    q,
                    value_ns: q.value_of(histogram).map(largest),
                    tenths_low_ns: range.map(|(low, _)| low),
                    tenths_high_ns: range.map(|(_, high)| largest(high)),
                }
            });
            // Every quantile is shown up to the first above which n carries none.
            let carried = all.iter().rposition(|q| q.value_ns.is_some()).map_or(0, |at| at + 1);
            all[..(carried + 1).min(all.len())].to_vec()
        };
        let sum_ns = self.totals.wake.sum() + self.totals.missed_sum_ns;
        Measured {
            scheduled: self.scheduled,
            sampled: self.totals.wake.count(),
            missed: self.totals.missed,
            late: self.totals.late(),
            min_ns: self.totals.wake.min(),
            max_ns: self.totals.wake.max(),
            mean_ns: self.totals.wake.mean(),
            sd_ns: self.totals.wake.sd(),
            deadline_mean_ns: (n > 0).then(|| sum_ns as f64 / n as f64),
            wake: quantiles(self.wake, &self.tenths.wake),
            deadline: quantiles(&deadline, &self.tenths.deadline),
        }
    }
}

/// The wake-ups of ten equal parts of a time, measured and due; empty where rows are too long for
/// it.
#[derive(Default)]
struct Tenths {
    wake: Vec<Histogram>,
    deadline: Vec<Histogram>,
}

impl Tenths {
    fn of(threads: &[Thread], from_ns: u64, to_ns: u64) -> Self {
        let rows = || {
            let all = threads.iter().flat_map(|thread| &thread.seconds);
            all.filter(|row| (from_ns..to_ns).contains(&row.from_ns))
        };
        let Some(end_ns) = rows().map(|row| row.to_ns).max() else { return Self::default() };
        let part_ns = end_ns.saturating_sub(from_ns).div_ceil(PARTS as u64).max(1);
        // The last rows may be longer: collecting was delayed.
        let long = rows().filter(|row| row.to_ns.saturating_sub(row.from_ns) > part_ns).count();
        if long * 20 > rows().count() {
            return Self::default();
        }
        let empty = || vec![Histogram::new(Layout::COARSE); PARTS];
        let mut tenths = Self { wake: empty(), deadline: empty() };
        for row in rows() {
            let middle_ns = u64::midpoint(row.from_ns, row.to_ns) - from_ns;
            let at = ((middle_ns / part_ns) as usize).min(PARTS - 1);
            // A bucket outside the grid was refused when the record was read.
            for &(bucket, n) in &row.wake {
                let _ = tenths.wake[at].add_bucket(usize::from(bucket), n);
            }
            for &(bucket, n) in row.wake.iter().chain(&row.missed) {
                let _ = tenths.deadline[at].add_bucket(usize::from(bucket), n);
            }
        }
        tenths
    }
}

fn cpu(thread: &Thread) -> CpuReport {
    let counted = Counted {
        scheduled: scheduled(thread),
        totals: &thread.totals,
        wake: &thread.wake,
        missed: &thread.missed,
        tenths: Tenths::of(std::slice::from_ref(thread), 0, u64::MAX),
    };
    CpuReport { thread: thread.info.clone(), end: thread.end.clone(), measured: counted.report() }
}

fn scheduled(thread: &Thread) -> u64 {
    thread.end.as_ref().map_or(thread.totals.accounted(), |end| end.scheduled)
}

fn all(run: &Run) -> Measured {
    let mut totals = Totals::default();
    let mut wake = Histogram::new(Layout::FINE);
    let mut missed = Histogram::new(Layout::FINE);
    for thread in &run.threads {
        totals.merge(&thread.totals);
        wake.merge(&thread.wake);
        missed.merge(&thread.missed);
    }
    let counted = Counted {
        scheduled: run.threads.iter().map(scheduled).sum(),
        totals: &totals,
        wake: &wake,
        missed: &missed,
        tenths: Tenths::of(&run.threads, 0, u64::MAX),
    };
    counted.report()
}

fn phases(run: &Run) -> Vec<PhaseReport> {
    run.options.phases.iter().map(|phase| phase_report(run, phase)).collect()
}

fn phase_report(run: &Run, phase: &rtproof_record::run::Phase) -> PhaseReport {
    let mut totals = Totals::default();
    let mut wake = Histogram::new(Layout::COARSE);
    let mut missed = Histogram::new(Layout::COARSE);
    for thread in &run.threads {
        let inside = |at_ns: u64| (phase.from_ns..phase.to_ns).contains(&at_ns);
        for second in thread.seconds.iter().filter(|second| inside(second.from_ns)) {
            totals.merge(&second.totals);
            for (histogram, buckets) in [(&mut wake, &second.wake), (&mut missed, &second.missed)] {
                for &(bucket, n) in buckets {
                    // A bucket outside the grid was refused when the record was read.
                    let _ = histogram.add_bucket(usize::from(bucket), n);
                }
            }
        }
    }
    let scheduled = totals.accounted();
    let counted = Counted {
        scheduled,
        totals: &totals,
        wake: &wake,
        missed: &missed,
        tenths: Tenths::of(&run.threads, phase.from_ns, phase.to_ns),
    };
    PhaseReport {
        name: phase.name.clone(),
        from_ns: phase.from_ns,
        to_ns: phase.to_ns,
        measured: counted.report(),
    }
}

fn top(run: &Run) -> Vec<TopSample> {
    let mut all: Vec<TopSample> = run
        .threads
        .iter()
        .flat_map(|thread| {
            thread.top.iter().map(|sample| TopSample {
                cpu: thread.info.cpu,
                due_ns: sample.due_ns,
                latency_ns: sample.latency_ns,
                phase: run.options.phase_at(sample.due_ns).into(),
            })
        })
        .collect();
    all.sort_by_key(|top| (std::cmp::Reverse(top.latency_ns), top.due_ns, top.cpu));
    all.truncate(TOP_SHOWN);
    all
}

impl Report {
    /// How long was measured, and of what where that was to be longer: `20 s`, `7.58 s of 20 s`.
    pub fn duration_text(&self) -> String {
        let asked = units::duration(self.options.duration_ns);
        if self.run.ended == Some(RunEnd::Complete) {
            // A number of samples or the end of an experiment ended it before its time.
            let is_early =
                u128::from(self.measured_ns) * 20 < u128::from(self.options.duration_ns) * 19;
            return if is_early { units::duration(self.measured_ns) } else { asked };
        }
        format!("{} of {asked}", units::duration(self.measured_ns.min(self.options.duration_ns)))
    }
}

impl CpuReport {
    /// Whether the thread measured all it was to.
    pub fn is_complete(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.reason == EndReason::Complete)
    }
}
