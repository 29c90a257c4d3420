//! What `measure` plans and finds, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::{CpuList, facts::tasks::Policy};
use rtproof_judge::{
    LatencySpread,
    distribution::Distribution,
    moving::{RunSurroundings, Segment},
    report::MachineSummary,
    units,
};
use rtproof_record::Clock;

// What the cells of a matrix found, as data: what text, JSON and HTML show.

pub const INDEX_SCHEMA: &str = "rtproof/measure/1";

/// All cells of a measurement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Index {
    pub schema: &'static str,
    /// Version of the tool.
    pub tool_version: &'static str,
    /// The machine; null: nothing was measured.
    pub machine: Option<MachineSummary>,
    /// Latency above which a sample is late; null: none was given.
    pub budget_ns: Option<u64>,
    /// Clock that was waited for and read; not there: CLOCK_MONOTONIC.
    #[serde(skip_serializing_if = "rtproof_record::Clock::is_monotonic")]
    pub clock: Clock,
    /// States of the machine in which cells were measured.
    pub conditions: Vec<ConditionJson>,
    pub cells: Vec<CellResult>,
    /// Where there are two conditions: each combination under the one against the other.
    pub compared: Vec<ConditionPair>,
}

/// A combination under two conditions, compared as `rtproof compare --a --b` does.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConditionPair {
    pub what: String,
    pub from: String,
    pub to: String,
    /// Pairs of finished runs that follow each other.
    pub pairs: usize,
    /// Fewest pairs that can decide.
    pub pairs_min: usize,
    /// Smallest change of p99.9, as a ratio, that so many pairs find four times in five; null: too
    /// few pairs, or it cannot be computed.
    pub detectable_ratio: Option<f64>,
    /// What the pairs decide.
    pub answer: rtproof_judge::compare::CompareAnswer,
    /// The same in a sentence.
    pub sentence: String,
}

/// A state of the machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConditionJson {
    pub name: String,
    /// Command that made it; null: the machine as it was.
    pub before: Option<String>,
    /// Command that undid it.
    pub after: Option<String>,
}

/// Result of one cell of a matrix of measurements.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CellResult {
    pub cell: Cell,
    pub state: CellState,
    /// Why it is not done; null: it is.
    pub why: Option<String>,
    /// False: it was measured to its end, and some of its load failed or did no work.
    pub load_ran: bool,
    /// Start, nanoseconds since 1970; null: not measured.
    pub started_realtime_ns: Option<u64>,
    /// Hash of the facts that may change latency is the same as in the cell before it; null: there
    /// is none before it.
    pub same_machine: Option<bool>,
    pub threads: Vec<ThreadResult>,
    /// Changes from outside, idle states, frequencies.
    #[serde(rename = "beside")]
    pub surroundings: RunSurroundings,
    /// How many spikes, and what made them late, by class of cause; null: none.
    pub spikes: Option<String>,
    /// Caveats of this cell.
    pub notes: Vec<String>,
}

/// State of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// Measured to its end, record sealed.
    Done,
    /// Cut short: its record holds what was measured by then.
    CutShort,
    /// Could not be measured.
    Failed,
    Missing,
}

/// One CPU of a cell.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadResult {
    pub cpu: u32,
    pub workload: String,
    /// What its samples are: latency, interval, duration, gap, `hand_off`, `round_trip`, lateness.
    pub quantity: &'static str,
    /// Policy in force when it started, e.g. `SCHED_FIFO`.
    pub policy: &'static str,
    /// Priority in force when it started.
    pub priority: u32,
    pub samples: LatencySpread,
    /// Quantiles of the samples; null: too few for it.
    pub quantiles: Quantiles,
    /// Intervals from one wake-up to the next, of workloads that keep them.
    pub intervals: Option<LatencySpread>,
    /// Cycles that were due: `samples.n + missed`.
    pub scheduled: u64,
    /// Cycles that were due while the thread was still late.
    pub missed: u64,
    /// Samples and missed cycles later than the budget; null: there is none.
    pub late: Option<u64>,
    /// sd / mean of the samples; null: too few.
    pub cv: Option<f64>,
    /// (max - min) / median of the samples; null: too few.
    pub spread: Option<f64>,
    /// Causes of its spikes, the largest sum of shares first.
    pub spikes: Vec<SpikeCount>,
    /// Moments up to kurtosis, P² estimates, what the samples are worth.
    pub distribution: Distribution,
}

/// Quantiles, upper edges of buckets at most 0.8 % wide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Quantiles {
    pub p5_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p95_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub p999_ns: Option<u64>,
}

/// Spikes of a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpikeCount {
    pub title: String,
    /// Culprit; may be empty.
    pub culprit: String,
    pub count: u64,
    pub worst_ns: u64,
    pub sum_ns: u64,
}

impl SpikeCount {
    /// The class of its cause: the words before a colon.
    pub fn class(&self) -> &str {
        self.title.split(':').next().unwrap_or_default()
    }
}

impl Index {
    /// An index of nothing.
    pub fn new(plan: &MeasurePlan) -> Self {
        let condition = |c: &Condition| ConditionJson {
            name: c.name.clone(),
            before: c.before.clone(),
            after: c.after.clone(),
        };
        Self {
            schema: INDEX_SCHEMA,
            tool_version: env!("CARGO_PKG_VERSION"),
            machine: None,
            clock: plan.common.clock,
            budget_ns: plan.common.budget_ns,
            conditions: plan.conditions.iter().map(condition).collect(),
            cells: plan.cells.iter().map(CellResult::missing).collect(),
            compared: Vec::new(),
        }
    }

    /// Puts a cell in its place.
    pub fn put(&mut self, result: CellResult) {
        if let Some(at) = self.cells.iter().position(|c| c.cell.number == result.cell.number) {
            self.cells[at] = result;
        }
    }

    /// Cells in a state.
    pub fn count(&self, state: CellState) -> usize {
        self.cells.iter().filter(|cell| cell.state == state).count()
    }

    /// Cells that were measured without all of their load.
    pub fn unloaded(&self) -> usize {
        self.cells.iter().filter(|cell| !cell.load_ran).count()
    }

    /// CPUs of all cells, with their cells.
    pub fn rows(&self) -> impl Iterator<Item = (&CellResult, &ThreadResult)> {
        self.cells.iter().flat_map(|cell| cell.threads.iter().map(move |thread| (cell, thread)))
    }

    /// Segments of threads that were changed from outside.
    pub fn segments(&self) -> impl Iterator<Item = (&CellResult, &Segment)> {
        let of = |cell| move |segment| (cell, segment);
        self.cells.iter().flat_map(move |cell| cell.surroundings.segments.iter().map(of(cell)))
    }
}

impl CellResult {
    /// One that is not measured yet.
    pub fn missing(cell: &Cell) -> Self {
        Self {
            cell: cell.clone(),
            state: CellState::Missing,
            why: None,
            load_ran: true,
            started_realtime_ns: None,
            same_machine: None,
            threads: Vec::new(),
            surroundings: RunSurroundings::default(),
            spikes: None,
            notes: Vec::new(),
        }
    }

    /// One that could not be measured.
    pub fn failed(cell: &Cell, why: String) -> Self {
        Self { state: CellState::Failed, why: Some(why), ..Self::missing(cell) }
    }
}

// The cells of a matrix: what is to be measured, in the order in which it is measured.

/// Version of the file that a folder keeps its plan in.
pub const PLAN_SCHEMA: &str = "rtproof/measure-plan/1";

/// Overhead of a cell besides its measuring time, before any was measured: calibration, facts,
/// judging and sealing.
pub const OVERHEAD_NS: u64 = 3_000_000_000;

/// All cells, and what they share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurePlan {
    pub schema: String,
    /// States of the machine, in order; none: as it is.
    pub conditions: Vec<Condition>,
    /// What all cells share.
    pub common: Common,
    pub cells: Vec<Cell>,
}

/// What all cells of a matrix share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// Latency above which a sample is late.
    pub budget_ns: Option<u64>,
    /// Threshold of spikes; `None`: the budget, or one that follows the machine.
    pub spike_ns: Option<u64>,
    /// Whether spikes are explained.
    pub trace: bool,
    /// Whether all CPUs begin at the same instant.
    pub is_aligned: bool,
    /// Clock that is waited for and read; not there: CLOCK_MONOTONIC.
    #[serde(default, skip_serializing_if = "Clock::is_monotonic")]
    pub clock: Clock,
    /// Whether each single sample is kept in a file beside the record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_samples: bool,
    /// /dev/cpu_dma_latency, microseconds.
    pub dma_latency_us: Option<u32>,
    /// CPUs that loads run on, as a list.
    pub load_cpus: Option<String>,
    /// Folder of the disk load.
    pub load_dir: Option<std::path::PathBuf>,
}

/// One cell: what a run of its own measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// 1, 2, ...
    pub number: u32,
    /// Name of its files, without extension.
    pub name: String,
    /// State of the machine, by name; empty: as it is.
    pub condition: String,
    /// Numbers of the measured CPUs, ascending.
    pub cpus: Vec<u32>,
    /// What they do: one for all, or one for each.
    pub workloads: Vec<String>,
    pub policy: Policy,
    /// Priority; 0 for policies without.
    pub priority: u32,
    pub period_ns: u64,
    pub load: String,
    pub duration_ns: u64,
    /// Repetition: 1, 2, ...
    pub repetition: u32,
}

/// A state of the machine in which all cells are measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    pub name: String,
    /// Command that makes it, for `sh -c`; `None`: the machine as it is.
    pub before: Option<String>,
    /// Command that takes it back.
    pub after: Option<String>,
}

impl MeasurePlan {
    /// External commands it runs: of conditions, workloads and loads, each once.
    pub fn commands(&self) -> Vec<&str> {
        let of_conditions = self.conditions.iter().flat_map(|it| [&it.before, &it.after]);
        let of_cells = self.cells.iter().flat_map(|it| it.workloads.iter().chain([&it.load]));
        let mut all: Vec<&str> = of_conditions.flatten().map(String::as_str).collect();
        all.extend(of_cells.map(String::as_str).filter(|text| text.contains("cmd:")));
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|command| seen.insert(*command));
        all
    }

    /// Whether this rtproof reads it.
    pub fn is_known(&self) -> bool {
        self.schema == PLAN_SCHEMA
    }

    /// Time that all cells will take, about.
    pub fn estimate_ns(&self) -> u64 {
        Self::takes_ns(self.cells.iter(), OVERHEAD_NS)
    }

    /// Time that cells take, about.
    pub fn takes_ns<'a>(cells: impl Iterator<Item = &'a Cell>, overhead_ns: u64) -> u64 {
        cells.fold(0, |sum, cell| sum.saturating_add(cell.duration_ns).saturating_add(overhead_ns))
    }
}

impl Cell {
    /// What is measured on a CPU, by its place in the list.
    pub fn workload(&self, at: usize) -> &str {
        self.workloads.get(at % self.workloads.len().max(1)).map_or("", String::as_str)
    }

    /// Policy and priority in a word.
    pub fn scheduling(&self) -> String {
        let name = policy_word(self.policy);
        match self.priority {
            0 => name.into(),
            priority => format!("{name} {priority}"),
        }
    }

    /// Its workloads, where there are several with their CPUs.
    pub fn doing(&self) -> String {
        match self.workloads.as_slice() {
            [one] => one.clone(),
            several => {
                let on = self.cpus.iter().zip(several);
                on.map(|(cpu, name)| format!("{name}@{cpu}")).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// All of it in a line.
    pub fn title(&self) -> String {
        let cpus = units::cpus(&CpuList::new(self.cpus.iter().copied()));
        let mut parts = vec![self.doing(), cpus, self.scheduling(), units::ns(self.period_ns)];
        parts.push(format!("load {}", self.load));
        if !self.condition.is_empty() {
            parts.push(self.condition.clone());
        }
        if self.repetition > 1 {
            parts.push(format!("repetition {}", self.repetition));
        }
        parts.join(", ")
    }
}

/// A policy as the command line spells it.
const fn policy_word(policy: Policy) -> &'static str {
    match policy {
        Policy::Fifo => "fifo",
        Policy::Rr => "rr",
        Policy::Deadline => "deadline",
        _ => "other",
    }
}
