//! One run as a side of a comparison: of a record, or of a file of another tool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_record::{Options, Run, run::Thread};
use rtproof_stats::{Bins, Histogram, Layout, Moments, Sample, evidence::PARTS, quantile::Q};

use super::over_time::OverTime;
use crate::causes::Spikes;
use crate::report::MachineSummary;

/// One run. Values that its tool does not record are `None` or empty, never guessed.
#[derive(Clone, Debug)]
pub struct Side {
    /// Short name, e.g. that of the file.
    pub label: String,
    pub source: String,
    /// Identity of the run: no run is compared with itself.
    pub id: String,
    /// Measuring tool, e.g. `rtproof 0.2.0`, `cyclictest`.
    pub tool: String,
    /// Machine it ran on.
    pub machine: Option<RunMachine>,
    /// What was measured; see [`Side::kind`].
    pub workload: String,
    pub period_ns: Option<u64>,
    /// A wake-up later than this is late.
    pub budget_ns: Option<u64>,
    /// Wall-clock time of the start, nanoseconds since 1970.
    pub started_ns: Option<u64>,
    /// How long was measured.
    pub duration_ns: Option<u64>,
    /// Resolution of the tool.
    pub resolution_ns: u64,
    /// Whether the tool names a cell by its lower edge, as those that print whole microseconds do.
    pub rounds_down: bool,
    /// Values from here on have no value of their own; `None`: all have one.
    pub censored_ns: Option<u64>,
    pub threads: Vec<SideThread>,
    /// All threads together, row by row in order of time; empty where there are none.
    pub rows: Vec<SideRow>,
    /// What a picture shows of it over time; `None`: the file holds no times.
    pub over: Option<OverTime>,
    /// Why wake-ups were late.
    pub spikes: Option<Spikes>,
    /// Scheduling policy and priority of its threads, e.g. `fifo 80`; `None`: not recorded.
    pub policy: Option<String>,
    /// Loads that ran, in words, e.g. `idle, cpu+net`; `None`: not recorded.
    pub loads: Option<String>,
    /// Conditions: facts of the machine that may change latency, and the options.
    pub facts: BTreeMap<String, String>,
    /// Whether the facts of the machine are known at all.
    pub has_facts: bool,
    /// Boot that it ran in.
    pub boot_id: Option<String>,
    /// What is doubtful about it.
    pub doubts: Vec<String>,
}

/// The machine of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunMachine {
    pub hostname: Option<String>,
    /// Hash that names the machine.
    pub machine_id: Option<String>,
    pub model: Option<String>,
    /// Board or product, as DMI or the device tree name it.
    #[serde(default)]
    pub board: Option<String>,
    #[serde(default)]
    pub cpu_model: Option<String>,
    /// Kernel release and preemption model.
    pub kernel: Option<String>,
    /// The container that it was measured in: the host name is the container's.
    #[serde(default)]
    pub container: Option<String>,
}

/// One thread of a run.
#[derive(Clone, Debug)]
pub struct SideThread {
    /// Name, e.g. `CPU 3`.
    pub label: String,
    pub cpu: Option<u32>,
    pub wake: Bins,
    /// Lateness of the wake-ups that were missed; `None`: the tool does not count them.
    pub missed: Option<Bins>,
    /// Wake-ups missed, where the tool counts them or they follow from its counts.
    pub missed_count: Option<u64>,
    /// Wake-ups over the budget of the run.
    pub late: Option<u64>,
    pub min_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Whether the largest value may have been larger: the tool's histogram ended before.
    pub max_is_at_least: bool,
    pub moments: Option<Moments>,
    /// Mean, where the sums are not known.
    pub mean_ns: Option<f64>,
}

/// One row of all threads, most often a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideRow {
    /// Start, nanoseconds after the first wake-up.
    pub from_ns: u64,
    /// Buckets of the coarse grid with their counts.
    pub wake: Vec<(u16, u64)>,
    /// The same of the missed ones.
    pub missed: Vec<(u16, u64)>,
}

/// What is compared: what was measured, or what was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// Wake-ups that were measured: all that other tools know of.
    Wake,
    /// All that were due: the missed ones count with their own lateness.
    Deadline,
}

impl Side {
    /// A run of a record. `source` is its file.
    pub fn of_run(run: &Run, label: &str, source: &str) -> Self {
        if let Some(file) = &run.imported {
            return Self::of_import(file, label, source);
        }
        let facts = &run.facts_start;
        let machine = MachineSummary::of(facts);
        let kernel = machine.kernel.map(|kernel| format!("Linux {kernel}, {}", machine.preemption));
        let (board, cpu_model) = (machine.model, machine.cpu_model);
        let model: Vec<String> = [board.clone(), cpu_model.clone()].into_iter().flatten().collect();
        let workloads: Vec<&str> =
            run.threads.iter().map(|thread| thread.info.workload.as_str()).collect();
        let same = workloads.windows(2).all(|pair| pair[0] == pair[1]);
        let spikes = crate::spikes::of_run(run);
        let found = spikes.as_ref().map(|spikes| spikes.structure.as_slice());
        Self {
            label: label.into(),
            source: source.into(),
            id: run.meta.run_id.clone(),
            tool: format!("rtproof {}", run.meta.tool_version),
            machine: Some(RunMachine {
                hostname: machine.hostname,
                machine_id: facts.identity.machine_id.value().cloned(),
                model: (!model.is_empty()).then(|| model.join(", ")),
                board,
                cpu_model,
                kernel,
                container: machine.container,
            }),
            workload: if same {
                workloads.first().copied().unwrap_or_default().into()
            } else {
                workloads.join(", ")
            },
            period_ns: Some(run.options.period_ns),
            budget_ns: run.options.requirement.budget_ns,
            started_ns: Some(run.meta.started_realtime_ns),
            duration_ns: run.threads.iter().map(|thread| thread.covered().1).max(),
            resolution_ns: 1,
            rounds_down: false,
            censored_ns: None,
            threads: run.threads.iter().map(SideThread::of_thread).collect(),
            rows: rows(&run.threads),
            over: OverTime::of(run, found),
            spikes,
            policy: Some(format!("{} {}", run.options.policy.name(), run.options.priority)),
            loads: Some(loads(&run.options)),
            facts: condition(run),
            has_facts: true,
            boot_id: facts.identity.boot_id.value().cloned(),
            doubts: run.notes.iter().filter(|n| n.weakens).map(|note| note.text.clone()).collect(),
        }
    }

    /// What kind of thing was measured: workloads of different tools that measure the same share
    /// one.
    pub fn kind(&self) -> &str {
        match self.workload.as_str() {
            "cyclictest" | "jitterdebugger" | "timer-wakeup" | "timerlat" => "timer wake-up",
            other => other,
        }
    }

    /// Whether the missed wake-ups are known with their lateness.
    pub fn knows_missed(&self) -> bool {
        !self.threads.is_empty() && self.threads.iter().all(|thread| thread.missed.is_some())
    }

    pub fn all(&self, view: View) -> Bins {
        let mut all = Bins::default();
        for thread in &self.threads {
            all.merge(&thread.wake);
            if let (View::Deadline, Some(missed)) = (view, &thread.missed) {
                all.merge(missed);
            }
        }
        all
    }

    pub fn sampled(&self) -> u64 {
        self.threads.iter().fold(0, |sum, thread| sum.saturating_add(thread.wake.total()))
    }

    /// Wake-ups missed; `None` where one thread's are not known.
    pub fn missed(&self) -> Option<u64> {
        self.threads
            .iter()
            .map(|thread| thread.missed_count)
            .try_fold(0_u64, |sum, missed| Some(sum.saturating_add(missed?)))
    }

    /// Exposure: wake-ups measured, and missed as far as known.
    pub fn exposure(&self) -> u64 {
        self.sampled().saturating_add(self.missed().unwrap_or(0))
    }

    /// The largest value, and whether it may have been larger.
    pub fn max(&self) -> Option<(u64, bool)> {
        let max_ns = self.threads.iter().filter_map(|thread| thread.max_ns).max()?;
        Some((max_ns, self.threads.iter().any(|thread| thread.max_is_at_least)))
    }

    /// A quantile as the tool would write it: the upper edge of its cell, or the lower one where
    /// that is the cell's name; and the cell. `None`: too few values.
    pub fn quantile(&self, bins: &Bins, q: Q) -> Option<QuantileValue> {
        let n = bins.total();
        let enough = u128::from(n) * u128::from(q.above) >= u128::from(q.of);
        let cell = bins.at_rank(q.rank(n)).filter(|_| enough)?;
        let high_ns = self.max().map_or(cell.high_ns, |(max_ns, at_least)| {
            if at_least { cell.high_ns } else { cell.high_ns.min(max_ns.max(cell.low_ns)) }
        });
        let ns = if self.rounds_down { cell.low_ns } else { high_ns };
        let at_least = self.censored_ns.is_some_and(|from| cell.low_ns >= from);
        Some(QuantileValue { ns, low_ns: cell.low_ns, high_ns, at_least })
    }

    /// Lowest and highest value of a quantile over the tenths of the run; `None`: the rows do not
    /// tell, or there are too few wake-ups in one.
    pub fn range(&self, q: Q, view: View) -> Option<(u64, u64)> {
        if self.rows.len() < PARTS {
            return None;
        }
        let mut tenths = vec![Histogram::new(Layout::COARSE); PARTS];
        for (at, row) in self.rows.iter().enumerate() {
            let tenth = &mut tenths[at * PARTS / self.rows.len()];
            let missed = if view == View::Deadline { row.missed.as_slice() } else { &[] };
            for &(bucket, n) in row.wake.iter().chain(missed) {
                // A bucket outside the grid was refused when the record was read.
                let _ = tenth.add_bucket(usize::from(bucket), n);
            }
        }
        let (low, high) = q.range_over(&tenths)?;
        Some((low, self.max().map_or(high, |(max_ns, _)| high.min(max_ns.max(low)))))
    }
}

/// A quantile, and the cell that it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileValue {
    pub ns: u64,
    /// Lower edge of the cell.
    pub low_ns: u64,
    pub high_ns: u64,
    /// Whether it may be larger: the tool's histogram ended before.
    pub at_least: bool,
}

impl SideThread {
    fn of_thread(thread: &Thread) -> Self {
        let wake = &thread.totals.wake;
        Self {
            label: format!("CPU {}", thread.info.cpu),
            cpu: Some(thread.info.cpu),
            wake: Bins::of(&thread.wake),
            missed: Some(Bins::of(&thread.missed)),
            missed_count: Some(thread.totals.missed),
            late: Some(thread.totals.late()),
            min_ns: wake.min(),
            max_ns: wake
                .max()
                .max(thread.top.iter().map(|sample: &Sample| sample.latency_ns).max()),
            max_is_at_least: false,
            moments: Some(wake.clone()),
            mean_ns: wake.mean(),
        }
    }
}

/// Seconds of all threads together: what strikes one may strike all.
fn rows(threads: &[Thread]) -> Vec<SideRow> {
    const SECOND_NS: u64 = 1_000_000_000;
    type Cells = BTreeMap<u16, u64>;
    let mut rows: BTreeMap<u64, (Cells, Cells)> = BTreeMap::new();
    for second in threads.iter().flat_map(|thread| &thread.seconds) {
        // A second of a staggered thread begins a little later than that of the first one.
        let (wake, missed) = rows.entry(second.from_ns / SECOND_NS).or_default();
        for (cells, from) in [(wake, &second.wake), (missed, &second.missed)] {
            for &(bucket, n) in from {
                *cells.entry(bucket).or_insert(0) += n;
            }
        }
    }
    rows.into_iter()
        .map(|(second, (wake, missed))| SideRow {
            from_ns: second * SECOND_NS,
            wake: wake.into_iter().collect(),
            missed: missed.into_iter().collect(),
        })
        .collect()
}

/// Conditions of a run. Interrupts are handled where the boot is known: see
/// [`super::mismatch`].
fn condition(run: &Run) -> BTreeMap<String, String> {
    let rows = run.facts_start.rows();
    let mut facts: BTreeMap<String, String> = rows
        .into_iter()
        .filter(|row| row.class.is_condition())
        .map(|row| (row.key, row.value))
        .collect();
    facts.extend(option_facts(&run.options).map(|(key, value)| (format!("run.{key}"), value)));
    facts
}

fn loads(options: &Options) -> String {
    let phases: Vec<&str> = options.phases.iter().map(|phase| phase.name.as_str()).collect();
    phases.join(", ")
}

fn option_facts(options: &Options) -> [(&'static str, String); 9] {
    let dma = options.dma_latency_us.map_or("not held".into(), |us| format!("{us} µs"));
    [
        ("cpus", options.cpus.to_string()),
        ("housekeeping", options.housekeeping.to_string()),
        ("loads", loads(options)),
        ("load-cpus", options.load_cpus.to_string()),
        ("policy", format!("{} {}", options.policy.name(), options.priority)),
        ("start", format!("{:?}", options.start).to_lowercase()),
        ("clock", options.clock.name().into()),
        ("cpu_dma_latency", dma),
        ("kernel-events", if options.trace { "recorded" } else { "not recorded" }.into()),
    ]
}

/// Runs of one condition, with a summary of every run and thread.
#[derive(Clone, Debug)]
pub struct Group {
    pub label: String,
    pub sides: Vec<Side>,
}

impl Group {
    pub fn single(side: Side) -> Self {
        Self { label: side.label.clone(), sides: vec![side] }
    }

    /// Wake-ups of all its runs, measured and missed as far as known.
    pub fn exposure(&self) -> u64 {
        self.sides.iter().fold(0, |sum, side| sum.saturating_add(side.exposure()))
    }
}

/// A group in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    pub label: String,
    pub runs: Vec<RunSummary>,
}

/// A run in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    pub label: String,
    pub source: String,
    pub id: String,
    pub tool: String,
    /// Machine of the run; null: unknown.
    pub machine: Option<RunMachine>,
    pub workload: String,
    pub period_ns: Option<u64>,
    /// Start, nanoseconds since 1970.
    pub started_ns: Option<u64>,
    /// How long was measured, nanoseconds.
    pub duration_ns: Option<u64>,
    pub sampled: u64,
    /// Wake-ups missed; null: not known.
    pub missed: Option<u64>,
    /// 99.9 % were no later, nanoseconds; null: too few.
    pub p999_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Whether the latest may have been later: the tool's histogram ended before.
    pub max_is_at_least: bool,
    pub threads: Vec<ThreadSummary>,
}

/// A thread in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSummary {
    pub label: String,
    pub sampled: u64,
    /// Wake-ups missed; null: not known.
    pub missed: Option<u64>,
    pub min_ns: Option<u64>,
    pub mean_ns: Option<f64>,
    /// 5 % were no later, nanoseconds; null: too few.
    pub p5_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    /// 95 % were no later, nanoseconds; null: too few.
    pub p95_ns: Option<u64>,
    /// 99 % were no later, nanoseconds; null: too few.
    pub p99_ns: Option<u64>,
    /// 99.9 % were no later, nanoseconds; null: too few.
    pub p999_ns: Option<u64>,
    /// 99.99 % were no later, nanoseconds; null: too few.
    pub p9999_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Whether the latest may have been later.
    pub max_is_at_least: bool,
}

impl GroupSummary {
    pub(super) fn of(group: &Group, view: View) -> Self {
        let runs = group.sides.iter().map(|side| run(side, view)).collect();
        Self { label: group.label.clone(), runs }
    }
}

fn run(side: &Side, view: View) -> RunSummary {
    let (max_ns, max_is_at_least) = side.max().unzip();
    let p999 = side.quantile(&side.all(view), Q { above: 1, of: 1000 });
    RunSummary {
        label: side.label.clone(),
        source: side.source.clone(),
        id: side.id.clone(),
        tool: side.tool.clone(),
        machine: side.machine.clone(),
        workload: side.workload.clone(),
        period_ns: side.period_ns,
        started_ns: side.started_ns,
        duration_ns: side.duration_ns,
        sampled: side.sampled(),
        missed: side.missed(),
        p999_ns: p999.map(|value| value.ns),
        max_ns,
        max_is_at_least: max_is_at_least.unwrap_or(false),
        threads: threads(side, view),
    }
}

fn threads(side: &Side, view: View) -> Vec<ThreadSummary> {
    let one = |thread: &SideThread| {
        let mut bins = thread.wake.clone();
        if let (View::Deadline, Some(missed)) = (view, &thread.missed) {
            bins.merge(missed);
        }
        let of = |q: Q| side.quantile(&bins, q).map(|value| value.ns);
        // A quantile of a thread cannot be above its own maximum, though above that of its cell.
        let within = |ns: Option<u64>| match (ns, thread.max_ns, thread.max_is_at_least) {
            (Some(ns), Some(max_ns), false) => Some(ns.min(max_ns)),
            (ns, ..) => ns,
        };
        ThreadSummary {
            label: thread.label.clone(),
            sampled: thread.wake.total(),
            missed: thread.missed_count,
            min_ns: thread.min_ns,
            mean_ns: thread.mean_ns,
            p5_ns: within(of(Q::P5)),
            p50_ns: within(of(Q::P50)),
            p95_ns: within(of(Q::P95)),
            p99_ns: within(of(Q::P99)),
            p999_ns: within(of(Q::P99_9)),
            p9999_ns: within(of(Q { above: 1, of: 10_000 })),
            max_ns: thread.max_ns,
            max_is_at_least: thread.max_is_at_least,
        }
    };
    side.threads.iter().map(one).collect()
}
