//! The cells of a matrix: what is to be measured, in the order in which it is measured.

use rtproof_host::{CpuList, facts::tasks::Policy};
use rtproof_judge::units;
use rtproof_record::Clock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the file that a folder keeps its plan in.
pub const SCHEMA: &str = "rtproof/measure-plan/1";
/// What a cell takes beside its measuring time, before any was measured: calibration, facts,
/// judging and sealing.
pub const OVERHEAD_NS: u64 = 3_000_000_000;

/// All cells, and what they share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
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
    /// Measured CPUs, ascending.
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

impl Plan {
    /// What it runs beside rtproof's own: commands of conditions, workloads and loads, each once.
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
        self.schema == SCHEMA
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
