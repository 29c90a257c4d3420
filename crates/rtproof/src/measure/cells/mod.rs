//! The cells of a matrix: every combination, in the order in which they are measured.

use std::collections::BTreeSet;

use anyhow::Context;
use rtproof_host::{CpuList, Facts, facts::tasks::Policy};
use rtproof_judge::units;
use rtproof_measure::{Quantity, workloads};
use rtproof_record::{Class, Options, Requirement, Start, options::Phase};
use serde::{Deserialize, Serialize};

use super::wish::{Choice, Condition, Wish};
use crate::{commands::prove::online_cpus, exit, prove::resolve};

/// Version of the file that a folder keeps its plan in.
const SCHEMA: &str = "rtproof/measure-plan/1";
/// Cells of a matrix, at most: more are a slip of the hand.
const CELLS_MAX: usize = 10_000;
/// What a cell takes beside its measuring time, before any was measured: calibration, facts,
/// judging and sealing.
pub const OVERHEAD_NS: u64 = 3_000_000_000;

/// All cells, and what they share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// `rtproof/measure-plan/1`.
    pub schema: String,
    /// States of the machine, in order; none: as it is.
    pub conditions: Vec<Condition>,
    /// What all cells share.
    pub common: Common,
    /// Cells, in order.
    pub cells: Vec<Cell>,
}

/// What all cells of a matrix share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Common {
    /// Latency above which a sample is late.
    pub budget_ns: Option<u64>,
    /// Threshold of spikes; `None`: the budget, or one that follows the machine.
    pub spike_ns: Option<u64>,
    /// Whether spikes are explained.
    pub trace: bool,
    /// Whether all CPUs begin at the same instant.
    pub is_aligned: bool,
    /// /dev/cpu_dma_latency, microseconds.
    pub dma_latency_us: Option<u32>,
    /// CPUs that loads run on, as a list.
    pub load_cpus: Option<String>,
    /// Folder of the disk load.
    pub load_dir: Option<std::path::PathBuf>,
}

/// One cell: what a run of its own measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Policy.
    pub policy: Policy,
    /// Priority; 0 for policies without.
    pub priority: u32,
    /// Period.
    pub period_ns: u64,
    /// Load.
    pub load: String,
    /// Duration.
    pub duration_ns: u64,
    /// Repetition: 1, 2, ...
    pub repetition: u32,
}

impl Plan {
    /// The cells of some blocks on this machine.
    ///
    /// # Errors
    /// Usage: CPUs that are not there, a period longer than the run, too many cells, or none.
    pub fn of(
        blocks: &[Wish],
        conditions: Vec<Condition>,
        common: Common,
        facts: &Facts,
    ) -> anyhow::Result<Self> {
        let mut cells = Vec::new();
        let names: Vec<String> = match conditions.is_empty() {
            true => vec![String::new()],
            false => conditions.iter().map(|condition| condition.name.clone()).collect(),
        };
        for condition in &names {
            for block in blocks {
                add(&mut cells, block, condition, facts)?;
            }
        }
        if let Some(list) = &common.load_cpus {
            online_cpus(list, "--load-cpus", facts)?;
        }
        Ok(Self { schema: SCHEMA.into(), conditions, common, cells })
    }

    /// Whether this rtproof reads it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.schema == SCHEMA
    }

    /// Time that cells take, about.
    #[must_use]
    pub fn takes_ns<'a>(cells: impl Iterator<Item = &'a Cell>, overhead_ns: u64) -> u64 {
        cells.fold(0, |sum, cell| sum.saturating_add(cell.duration_ns).saturating_add(overhead_ns))
    }
}

/// Adds a block: repetitions outermost, so that those of a cell lie apart in time.
fn add(cells: &mut Vec<Cell>, block: &Wish, condition: &str, facts: &Facts) -> anyhow::Result<()> {
    let all = match &block.cpus {
        Some(list) => online_cpus(list, "--cpus", facts)?,
        None => resolve::default_cpus(facts)?,
    };
    let mut schedulings = Vec::new();
    for &policy in &block.policies {
        let priorities = match policy {
            Policy::Fifo | Policy::Rr => block.priorities.as_slice(),
            _ => &[0],
        };
        schedulings.extend(priorities.iter().map(|&priority| (policy, priority)));
    }
    for repetition in 1..=block.repeat {
        for load in &block.loads {
            for &period_ns in &block.periods_ns {
                for &(policy, priority) in &schedulings {
                    for (cpus, workloads) in places(block, &all, facts)? {
                        let mut cell = Cell {
                            number: u32::try_from(cells.len() + 1).unwrap_or(u32::MAX),
                            name: String::new(),
                            condition: condition.into(),
                            cpus: cpus.as_slice().to_vec(),
                            workloads,
                            policy,
                            priority,
                            period_ns,
                            load: load.clone(),
                            duration_ns: block.duration_ns,
                            repetition,
                        };
                        cell.check()?;
                        cell.name = cell.file_name(block.repeat);
                        cells.push(cell);
                        if cells.len() > CELLS_MAX {
                            return Err(exit::usage(format!("more than {CELLS_MAX} cells")));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// What runs where, cell by cell.
fn places(
    block: &Wish,
    all: &CpuList,
    facts: &Facts,
) -> anyhow::Result<Vec<(CpuList, Vec<String>)>> {
    let mut places = Vec::new();
    for choice in &block.workloads {
        match choice {
            Choice::Everywhere(name) if block.each => {
                places.extend(all.iter().map(|cpu| (CpuList::new([cpu]), vec![name.clone()])));
            }
            Choice::Everywhere(name) => places.push((all.clone(), vec![name.clone()])),
            Choice::Placed(placed) => {
                let cpus = placed.iter().fold(CpuList::default(), |cpus, (_, on)| cpus.union(on));
                online_cpus(&cpus.to_string(), "--workload", facts)?;
                let of = |cpu: u32| {
                    let found = placed.iter().find(|(_, on)| on.contains(cpu));
                    found.map_or(String::new(), |(name, _)| name.clone())
                };
                let names = cpus.iter().map(of).collect();
                places.push((cpus, names));
            }
        }
    }
    Ok(places)
}

impl Cell {
    fn check(&self) -> anyhow::Result<()> {
        if self.period_ns > self.duration_ns {
            return Err(exit::usage(format!(
                "a period of {} is longer than a cell of {}: nothing would be measured",
                units::ns(self.period_ns),
                units::duration(self.duration_ns)
            )));
        }
        Ok(())
    }

    /// What is measured on a CPU, by its place in the list.
    #[must_use]
    pub fn workload(&self, at: usize) -> &str {
        self.workloads.get(at % self.workloads.len().max(1)).map_or("", String::as_str)
    }

    /// What a CPU measures, in samples.
    #[must_use]
    pub fn quantity(workload: &str) -> Quantity {
        workloads::parse(workload).map_or(Quantity::Latency, |workload| workload.quantity())
    }

    /// Policy and priority in a word.
    #[must_use]
    pub fn scheduling(&self) -> String {
        let name = crate::prove::convert::policy(self.policy).name();
        match self.priority {
            0 => name.into(),
            priority => format!("{name} {priority}"),
        }
    }

    /// Its workloads, where there are several with their CPUs.
    #[must_use]
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
    #[must_use]
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

    /// `003-memory-cpu1-fifo20-1ms-idle`.
    fn file_name(&self, repeat: u32) -> String {
        let workload = match self.workloads.as_slice() {
            [one] => one.as_str(),
            _ => "mixed",
        };
        let cpus = CpuList::new(self.cpus.iter().copied()).to_string();
        let parts = [
            self.condition.clone(),
            workload.chars().take(40).collect(),
            format!("cpu{}", cpus.chars().take(20).collect::<String>()),
            self.scheduling().replace(' ', ""),
            units::ns(self.period_ns).replace('µ', "u").replace(' ', ""),
            self.load.chars().take(30).collect(),
            if repeat > 1 { format!("r{}", self.repetition) } else { String::new() },
        ];
        let parts: Vec<String> =
            parts.iter().map(|part| safe(part)).filter(|part| !part.is_empty()).collect();
        format!("{:03}-{}", self.number, parts.join("-"))
    }

    /// The options of its run.
    ///
    /// # Errors
    /// A list of CPUs that is no longer right.
    pub fn options(&self, common: &Common, facts: &Facts) -> anyhow::Result<Options> {
        let cpus = CpuList::new(self.cpus.iter().copied());
        online_cpus(&cpus.to_string(), "CPUs", facts)?;
        let load = self.load.parse::<rtproof_measure::loads::LoadSet>();
        let load = load.with_context(|| format!("load {}", self.load))?;
        let rooms = resolve::Rooms::of(facts, &cpus);
        let load_cpus = match &common.load_cpus {
            Some(list) => online_cpus(list, "--load-cpus", facts)?,
            None => rooms.load,
        };
        let phase = Phase {
            name: if load.is_idle() { "idle".into() } else { load.to_string() },
            loads: match load.is_idle() {
                true => Vec::new(),
                false => load.as_slice().iter().map(ToString::to_string).collect(),
            },
            from_ns: 0,
            to_ns: self.duration_ns,
        };
        Ok(Options {
            cpus,
            housekeeping: rooms.housekeeping,
            load_cpus,
            policy: self.policy,
            priority: self.priority,
            period_ns: self.period_ns,
            duration_ns: self.duration_ns,
            start: if common.is_aligned { Start::Aligned } else { Start::Staggered },
            dma_latency_us: common.dma_latency_us,
            phases: vec![phase],
            // Measured, not judged: late samples are counted.
            requirement: Requirement {
                budget_ns: common.budget_ns,
                class: Class::Soft,
                confidence_ppm: 950_000,
                rate_per_1000h: 125,
            },
            profile: String::new(),
            skipped: std::collections::BTreeMap::default(),
            spike_ns: common.spike_ns.or(common.budget_ns),
            trace: common.trace,
        })
    }
}

/// What may stand in a file name anywhere.
fn safe(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "+.,_-".contains(c) { c } else { '_' };
    text.chars().map(safe).collect::<String>().trim_matches(['.', '_', '-']).into()
}

/// Names of conditions must tell them apart.
///
/// # Errors
/// A name twice, or none.
pub fn check_conditions(conditions: &[Condition]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for condition in conditions {
        if safe(&condition.name).is_empty() {
            return Err("a condition has no name".into());
        }
        if !names.insert(&condition.name) {
            return Err(format!("condition {}: there twice", condition.name));
        }
        if condition.before.is_none() && condition.after.is_some() {
            return Err(format!("condition {}: `after` without `before`", condition.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
