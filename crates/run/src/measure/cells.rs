//! The cells of a matrix: every combination, in the order in which they are measured.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
};

use anyhow::Context;

use rtproof_host::{
    CpuList, Facts,
    door::{Invalid, usage},
    facts::tasks::Policy,
    trusted,
};
use rtproof_judge::{
    LatencySpread, Report,
    causes::Spikes,
    compare::{self, CompareRequest, Group, Side},
    distribution::Distribution,
    loads_ran,
    report::CpuReport,
    units,
};
use rtproof_measure::{Quantity, clock::Clock, workloads};
use rtproof_record::{BudgetClass, Options, Requirement, Run, Start, run::RunEnd};
use rtproof_results::measure::{
    Cell, CellResult, CellState, Common, Condition, ConditionPair, MeasurePlan, PLAN_SCHEMA,
    Quantiles, SpikeCount, ThreadResult,
};
use rtproof_stats::{Moments, quantile::Q};

use super::{Block, ExistingCell, RecordFolder, WorkloadChoice};
use crate::experiment::seed;
use crate::{online_cpus, parse, prove};

/// Cells of a matrix, at most: more are a slip of the hand.
const CELLS_MAX: usize = 10_000;

/// Default duration of a cell.
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
) -> anyhow::Result<MeasurePlan> {
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
    Ok(MeasurePlan { schema: PLAN_SCHEMA.into(), conditions, common, cells })
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
        None => prove::default_cpus(facts)?,
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
            WorkloadChoice::Everywhere(name) => {
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
            WorkloadChoice::Placed(placed) => {
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
    let rooms = prove::Rooms::of(facts, &cpus);
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
        phases: vec![prove::phase(&load, 0, cell.duration_ns)],
        // Measured, not judged: late samples are counted.
        requirement: Requirement {
            budget_ns: common.budget_ns,
            class: BudgetClass::Soft,
            confidence_ppm: 950_000,
            rate_per_1000h: 125,
            episode_ns: None,
        },
        profile: String::new(),
        skipped: std::collections::BTreeMap::default(),
        spike_ns: common.spike_ns.or(common.budget_ns),
        trace: common.trace,
    })
}

/// Characters valid in any file name.
fn safe(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "+.,_-".contains(c) { c } else { '_' };
    text.chars().map(safe).collect::<String>().trim_matches(['.', '_', '-']).into()
}

/// Names of conditions must be unique.
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

// States of the machine in which cells are measured: a command makes one, another takes it back,
// also when the run ends early.

/// Conditions as they are entered and left.
#[derive(Debug)]
pub(super) struct Conditions<'a> {
    all: &'a [Condition],
    now: Option<&'a Condition>,
}

impl<'a> Conditions<'a> {
    pub(super) const fn of(all: &'a [Condition]) -> Self {
        Self { all, now: None }
    }

    /// Goes to a condition by name; the one before is left first.
    ///
    /// # Errors
    /// A command failed; what was begun is undone.
    pub(super) fn enter(&mut self, name: &str) -> Result<(), Invalid> {
        if self.now.is_some_and(|now| now.name == name) {
            return Ok(());
        }
        self.leave()?;
        let Some(next) = self.all.iter().find(|condition| condition.name == name) else {
            return Ok(());
        };
        self.now = Some(next);
        match next.before.as_deref().map_or(Ok(()), run) {
            Ok(()) => Ok(()),
            Err(why) => {
                let why = format!("condition {name}: {why}");
                match self.leave() {
                    Ok(()) => Err(why.into()),
                    Err(left) => Err(format!("{why}; {left}").into()),
                }
            }
        }
    }

    /// Takes the condition back that is in force.
    ///
    /// # Errors
    /// Its command failed: the machine is not as it was.
    pub(super) fn leave(&mut self) -> Result<(), Invalid> {
        let Some(now) = self.now.take() else { return Ok(()) };
        let Some(after) = &now.after else { return Ok(()) };
        run(after).map_err(|why| format!("condition {} was not taken back: {why}", now.name).into())
    }
}

impl Drop for Conditions<'_> {
    fn drop(&mut self) {
        // Only where an error prevented leaving: that error is reported.
        let _ = self.leave();
    }
}

/// `rtproof` in a command line is this program, whatever PATH has; nothing else of its folder is
/// run.
const RTPROOF: &str = "rtproof() { /proc/\"$RTPROOF_PID\"/exe \"$@\"; }\n";

/// Runs a command line. What it prints goes to stderr: stdout is for results.
fn run(command: &str) -> Result<(), Invalid> {
    let failed = |error| format!("`{command}` cannot be run: {error}");
    let mut shell = Command::new(trusted::find_program("sh").map_err(failed)?);
    shell.arg("-c").arg(format!("{RTPROOF}{command}")).stdin(Stdio::null());
    shell.env("RTPROOF_PID", std::process::id().to_string()).stdout(std::io::stderr());
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{command}` ended with {status}, expected exit code 0").into()),
        Err(error) => Err(failed(error).into()),
    }
}

/// What the run of a cell found.
pub fn cell_result(cell: &Cell, run: &Run, report: &Report) -> CellResult {
    let (state, why) = match &run.meta.ended {
        Some(RunEnd::Complete) => (CellState::Done, None),
        Some(RunEnd::Interrupted { signal }) => (CellState::CutShort, Some(format!("by {signal}"))),
        Some(RunEnd::Aborted { why }) => (CellState::CutShort, Some(why.clone())),
        None => (CellState::CutShort, Some("its record is torn".into())),
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
        load_ran: state != CellState::Done
            || run.options.phases.iter().all(|phase| loads_ran(run, phase)),
        started_realtime_ns: Some(run.meta.started_realtime_ns),
        threads: report.cpus.iter().map(thread).collect(),
        surroundings: report.surroundings.clone(),
        spikes: report.spikes.as_ref().and_then(spiked),
        notes: report.notes.iter().map(|note| note.text.clone()).collect(),
        ..CellResult::missing(cell)
    }
}

/// How many spikes, and why.
fn spiked(spikes: &Spikes) -> Option<String> {
    let count = units::count(spikes.seen, "spike");
    let why = rtproof_results::why(spikes).map_or_else(String::new, |why| format!("; {why}"));
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
    let samples = NominalScale::of(quantity, info.period_ns).spread(samples);
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
            .then(|| NominalScale::of_intervals(info.period_ns).spread(intervals)),
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

// Two states of the machine compared, cell by cell: what a matrix with two conditions ends with.

/// Each combination under the first condition against the same under the second; none where there
/// are not two conditions, or one of them has no finished run.
pub(super) fn compared(plan: &MeasurePlan, folder: &RecordFolder) -> Vec<ConditionPair> {
    let [first, second] = plan.conditions.as_slice() else { return Vec::new() };
    let alike = |cell: &Cell| Cell {
        number: 0,
        name: String::new(),
        condition: String::new(),
        repetition: 1,
        ..cell.clone()
    };
    let mut combinations: Vec<Cell> = Vec::new();
    for cell in plan.cells.iter().map(alike) {
        if !combinations.contains(&cell) {
            combinations.push(cell);
        }
    }
    let one = |combination: &Cell| {
        let group = |condition: &str| Group {
            label: condition.to_owned(),
            sides: plan
                .cells
                .iter()
                .filter(|cell| cell.condition == condition && alike(cell) == *combination)
                .filter_map(|cell| side(cell, folder))
                .collect(),
        };
        let groups = [group(&first.name), group(&second.name)];
        let is_whole = groups.iter().all(|group| !group.sides.is_empty());
        is_whole.then(|| pair(combination, &groups)).flatten()
    };
    combinations.iter().filter_map(one).collect()
}

/// The finished run of a cell.
fn side(cell: &Cell, folder: &RecordFolder) -> Option<Side> {
    match folder.find(cell) {
        ExistingCell::Done(run) => Some(Side::of_run(&run, &cell.name, &cell.name)),
        ExistingCell::Nothing | ExistingCell::CutShort | ExistingCell::Unusable(_) => None,
    }
}

fn pair(combination: &Cell, groups: &[Group; 2]) -> Option<ConditionPair> {
    let comparison = compare::compare_groups(groups, &CompareRequest::default());
    let against = comparison.against.into_iter().next()?;
    let primary = against.changes.iter().find(|change| change.detectable.is_some());
    Some(ConditionPair {
        what: combination.title(),
        from: groups[0].label.clone(),
        to: groups[1].label.clone(),
        pairs: against.pairs.as_ref().map_or(0, |pairs| pairs.pairs.len()),
        pairs_min: rtproof_stats::paired::PAIRS_MIN,
        detectable_ratio: primary.and_then(|change| change.detectable),
        answer: against.answer,
        sentence: against.sentence,
    })
}

// What the samples of a workload are counted from: for rows and summaries.

/// What a CPU measures, in samples.
pub fn quantity(workload: &str) -> Quantity {
    workloads::parse(workload).map_or(Quantity::Latency, |workload| workload.quantity())
}

/// Nominal value of samples, and the value that is 100 %; nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NominalScale {
    /// What they should be.
    pub nominal_ns: Option<u64>,
    /// Percentages are of this; `None`: of the mean.
    pub whole_ns: Option<u64>,
}

impl NominalScale {
    /// Of the samples of a quantity. Lateness should be nothing and is a share of the
    /// period; a duration has no such value.
    pub fn of(quantity: Quantity, period_ns: u64) -> Self {
        match quantity.is_lateness() {
            true => Self { nominal_ns: Some(0), whole_ns: Some(period_ns) },
            false => Self { nominal_ns: None, whole_ns: None },
        }
    }

    pub const fn of_intervals(period_ns: u64) -> Self {
        Self { nominal_ns: Some(period_ns), whole_ns: Some(period_ns) }
    }

    /// The samples by it.
    pub fn spread(self, moments: &Moments) -> LatencySpread {
        LatencySpread::of(moments, self.nominal_ns)
    }

    /// A deviation as a percentage.
    pub fn percent(self, deviation_ns: f64, spread: &LatencySpread) -> Option<f64> {
        let whole = self.whole_ns.map(|ns| ns as f64).or(spread.mean_ns)?;
        (whole > 0.0).then(|| deviation_ns / whole * 100.0)
    }

    /// How far a value is from what it should be (from the mean where there is no such value), as a
    /// percentage.
    pub fn off(self, value_ns: u64, spread: &LatencySpread) -> Option<f64> {
        let from = self.nominal_ns.map(|ns| ns as f64).or(spread.mean_ns)?;
        self.percent(value_ns as f64 - from, spread)
    }
}

#[cfg(test)]
mod conditions_tests {
    use super::*;

    fn condition(name: &str, before: Option<&str>, after: Option<&str>) -> Condition {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Condition { name: name.into(), before: own(before), after: own(after) }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own file")]
    fn what_is_entered_is_left_also_when_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let say = |word: &str| format!("echo {word} >>{}", log.display());
        let (enter, leave) = (say("enter"), say("leave"));
        let fails = format!("{}; false", say("tried"));
        let all = [
            condition("plain", None, None),
            condition("tuned", Some(&enter), Some(&leave)),
            condition("broken", Some(&fails), Some(&leave)),
        ];
        let mut conditions = Conditions::of(&all);
        conditions.enter("plain").unwrap();
        conditions.enter("tuned").unwrap();
        conditions.enter("tuned").unwrap();
        let error = conditions.enter("broken").unwrap_err();
        assert!(error.contains("condition broken") && error.contains("exit code 0"), "{error}");
        conditions.enter("tuned").unwrap();
        drop(conditions);
        let lines = std::fs::read_to_string(&log).unwrap();
        let words: Vec<&str> = lines.lines().collect();
        assert_eq!(words, ["enter", "leave", "tried", "leave", "enter", "leave"]);
    }
}

#[cfg(test)]
mod statistics_tests {
    use super::*;

    #[test]
    fn percentages_are_of_the_period_or_of_the_mean() {
        let mut moments = Moments::default();
        [67_000, 1_017_502, 4_449_000].into_iter().for_each(|ns| {
            moments.push(ns);
        });
        let scale = NominalScale::of_intervals(1_000_000);
        let spread = scale.spread(&moments);
        // S3's first row, signed: 93.3 % too short, 344.9 % too long.
        let off = [67_000, 4_449_000].map(|ns| scale.off(ns, &spread).map(|p| (p * 10.0).round()));
        assert_eq!(off, [Some(-933.0), Some(3449.0)]);
        let late = NominalScale::of(Quantity::Latency, 1_000_000);
        assert_eq!(late.off(50_000, &late.spread(&moments)), Some(5.0));
        let duration = NominalScale::of(Quantity::Duration, 1_000_000);
        let spread = duration.spread(&moments);
        assert_eq!((spread.rms_ns, duration.percent(0.0, &spread)), (None, Some(0.0)));
        let none = duration.spread(&Moments::default());
        assert_eq!(duration.off(5, &none), None);
    }
}
