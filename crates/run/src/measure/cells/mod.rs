//! The cells of a matrix: every combination, in the order in which they are measured.

use std::collections::BTreeSet;

use anyhow::Context;
use rtproof_host::{CpuList, Facts, facts::tasks::Policy};
use rtproof_judge::units;
use rtproof_measure::{clock::Clock, workloads};
use rtproof_record::{Class, Options, Requirement, Start};
use rtproof_results::measure::plan::{Cell, Common, Condition, Plan, SCHEMA};

use super::request::{Block, Choice};
use crate::{
    cpus::online_cpus,
    experiment::results::seed,
    parse,
    prove::resolve,
    usage::{Invalid, usage},
};

/// Cells of a matrix, at most: more are a slip of the hand.
const CELLS_MAX: usize = 10_000;
/// Duration of a cell where nothing is said.
const CELL_NS: u64 = 10_000_000_000;
/// The cells of some blocks on this machine.
///
/// # Errors
/// Usage: CPUs that are not there, a period longer than the run, too many cells, or none.
pub fn plan(
    blocks: &[Block],
    conditions: Vec<Condition>,
    common: Common,
    facts: &Facts,
) -> anyhow::Result<Plan> {
    let mut cells = Vec::new();
    let names: Vec<String> = match conditions.is_empty() {
        true => vec![String::new()],
        false => conditions.iter().map(|condition| condition.name.clone()).collect(),
    };
    let repeat = blocks.iter().map(|block| block.repeat).max().unwrap_or(0);
    let coins = coins(names.len(), repeat)?;
    for repetition in 1..=repeat {
        let is_turned = coins.get(repetition as usize - 1).is_some_and(|&coin| coin);
        let order: Vec<&String> =
            if is_turned { names.iter().rev().collect() } else { names.iter().collect() };
        for condition in order {
            for block in blocks.iter().filter(|block| repetition <= block.repeat) {
                add(&mut cells, block, condition, repetition, common.clock, facts)?;
            }
        }
    }
    if let Some(list) = &common.load_cpus {
        online_cpus(list, "--load-cpus", facts)?;
    }
    Ok(Plan { schema: SCHEMA.into(), conditions, common, cells })
}

/// Whether the two conditions change places, for each repetition: what drifts over the measurement
/// is not taken for the condition. One repetition, or more conditions than two: as stated.
fn coins(conditions: usize, repeat: u32) -> anyhow::Result<Vec<bool>> {
    match (conditions, repeat) {
        (2, 2..) => Ok(rtproof_stats::paired::order(seed()?, repeat as usize)),
        _ => Ok(Vec::new()),
    }
}

/// Adds a repetition of a block.
fn add(
    cells: &mut Vec<Cell>,
    block: &Block,
    condition: &str,
    repetition: u32,
    clock: Clock,
    facts: &Facts,
) -> anyhow::Result<()> {
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
    for load in &block.loads {
        for &period_ns in &block.periods_ns {
            let duration_ns = parse::until(block.samples, period_ns, block.duration_ns, CELL_NS)
                .map_err(|what| usage(what.to_string()))?;
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
                        duration_ns,
                        repetition,
                    };
                    check(&cell, clock)?;
                    cell.name = file_name(&cell, block.repeat);
                    cells.push(cell);
                    if cells.len() > CELLS_MAX {
                        return Err(usage(format!("more than {CELLS_MAX} cells")));
                    }
                }
            }
        }
    }
    Ok(())
}

/// What runs where, cell by cell.
fn places(
    block: &Block,
    all: &CpuList,
    facts: &Facts,
) -> anyhow::Result<Vec<(CpuList, Vec<String>)>> {
    let mut places = Vec::new();
    for choice in &block.workloads {
        match choice {
            Choice::Everywhere(name) => {
                let names = || vec![name.clone()];
                match application_cpus(name) {
                    // One application is measured once, however many CPUs there are.
                    Some(own) => places.push((CpuList::new(one_cpu(all, &own)), names())),
                    None if block.each => {
                        places.extend(all.iter().map(|cpu| (CpuList::new([cpu]), names())));
                    }
                    None => places.push((all.clone(), names())),
                }
            }
            Choice::Placed(placed) => {
                let cpus = placed.iter().fold(CpuList::default(), |cpus, (_, on)| cpus.union(on));
                online_cpus(&cpus.to_string(), "--workload", facts)?;
                for (name, on) in placed {
                    if on.len() > 1 && application_cpus(name).is_some() {
                        return Err(usage(format!(
                            "{name}@{on}: one application is measured once; name one CPU, or \
                             leave @{on} out"
                        )));
                    }
                }
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

/// CPUs of the one application whose cycles a workload reads.
fn application_cpus(workload: &str) -> Option<Vec<u32>> {
    workloads::parse(workload).ok()?.application_cpus()
}

/// The CPU that the cycles of an application are shown under: one that it may run on, if any.
fn one_cpu(all: &CpuList, own: &[u32]) -> Option<u32> {
    own.iter().copied().find(|&cpu| all.contains(cpu)).or_else(|| all.iter().next())
}

fn check(cell: &Cell, clock: Clock) -> anyhow::Result<()> {
    for workload in &cell.workloads {
        // What is no workload is refused elsewhere.
        let Ok(workload) = workloads::parse(workload) else { continue };
        workloads::check_clock(&*workload, clock).map_err(|error| usage(error.to_string()))?;
    }
    if cell.period_ns > cell.duration_ns {
        return Err(usage(format!(
            "a period of {} is longer than a cell of {}: nothing would be measured",
            units::ns(cell.period_ns),
            units::duration(cell.duration_ns)
        )));
    }
    Ok(())
}

/// `003-memory-cpu1-fifo20-1ms-idle`.
fn file_name(cell: &Cell, repeat: u32) -> String {
    let workload = match cell.workloads.as_slice() {
        [one] => one.as_str(),
        _ => "mixed",
    };
    let cpus = CpuList::new(cell.cpus.iter().copied()).to_string();
    let parts = [
        cell.condition.clone(),
        workload.chars().take(40).collect(),
        format!("cpu{}", cpus.chars().take(20).collect::<String>()),
        cell.scheduling().replace(' ', ""),
        units::ns(cell.period_ns).replace('µ', "u").replace(' ', ""),
        cell.load.chars().take(30).collect(),
        if repeat > 1 { format!("r{}", cell.repetition) } else { String::new() },
    ];
    let parts: Vec<String> =
        parts.iter().map(|part| safe(part)).filter(|part| !part.is_empty()).collect();
    format!("{:03}-{}", cell.number, parts.join("-"))
}

/// The options of its run.
///
/// # Errors
/// A list of CPUs that is no longer right.
pub fn options(cell: &Cell, common: &Common, facts: &Facts) -> anyhow::Result<Options> {
    let cpus = CpuList::new(cell.cpus.iter().copied());
    online_cpus(&cpus.to_string(), "CPUs", facts)?;
    let load = cell.load.parse::<rtproof_measure::loads::LoadSet>();
    let load = load.with_context(|| format!("load {}", cell.load))?;
    let rooms = resolve::Rooms::of(facts, &cpus);
    let load_cpus = match &common.load_cpus {
        Some(list) => online_cpus(list, "--load-cpus", facts)?,
        None => rooms.load,
    };
    Ok(Options {
        cpus,
        housekeeping: rooms.housekeeping,
        load_cpus,
        policy: cell.policy,
        priority: cell.priority,
        period_ns: cell.period_ns,
        duration_ns: cell.duration_ns,
        start: if common.is_aligned { Start::Aligned } else { Start::Staggered },
        clock: common.clock,
        dma_latency_us: common.dma_latency_us,
        phases: vec![resolve::phase(&load, 0, cell.duration_ns)],
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

/// What may stand in a file name anywhere.
fn safe(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "+.,_-".contains(c) { c } else { '_' };
    text.chars().map(safe).collect::<String>().trim_matches(['.', '_', '-']).into()
}

/// Names of conditions must tell them apart.
///
/// # Errors
/// A name twice, or none.
pub fn check_conditions(conditions: &[Condition]) -> Result<(), Invalid> {
    let mut names = BTreeSet::new();
    for condition in conditions {
        if safe(&condition.name).is_empty() {
            return Err("a condition has no name".into());
        }
        if !names.insert(&condition.name) {
            return Err(format!("condition {}: there twice", condition.name).into());
        }
        if condition.before.is_none() && condition.after.is_some() {
            return Err(format!("condition {}: `after` without `before`", condition.name).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
