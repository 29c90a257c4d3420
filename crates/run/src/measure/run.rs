//! All cells, one after the other: each a run of its own, sealed before the next one begins.

use std::time::Instant;

use anyhow::Context;
use rtproof_host::{CpuList, Facts, Root};
use rtproof_judge::{Report, report::Machine};
use rtproof_measure::{thread::pin_all, workloads};
use rtproof_record::Run;
use rtproof_results::measure::{
    index::{CellResult, Index, State},
    plan::{Cell, OVERHEAD_NS, Plan},
};

use super::{
    cells,
    conditions::Conditions,
    folder::{Folder, Found},
    found, paired,
};
use crate::prove::{self, Job, Observer, output::Output, signals::Signals, switcher::NoSwitcher};

/// What the caller does while cells are measured.
pub trait Events {
    /// A cell begins; so much time is left for it and those after it.
    ///
    /// # Errors
    /// The caller ends the measurement.
    fn begin(&mut self, plan: &Plan, cell: &Cell, left_ns: u64) -> anyhow::Result<()>;

    /// Observes the cell that began last; cells after it take `after_ns`.
    fn observer(&mut self, plan: &Plan, cell: &Cell, after_ns: u64) -> &mut dyn Observer;

    /// The cell is measured.
    fn end(&mut self);

    /// Its record is sealed.
    ///
    /// # Errors
    /// A report that cannot be written.
    fn sealed(&mut self, output: &Output, run: &Run, report: &Report) -> anyhow::Result<()>;

    /// The page of an index, for its folder.
    fn page(&self, index: &Index) -> String;
}

/// Measures what is not done yet. The index holds all cells, and is in the folder.
///
/// # Errors
/// What no cell can do without: the folder, the signals. A cell that fails is in the index.
pub fn run(
    root: &Root,
    facts: &Facts,
    plan: &Plan,
    folder: &Folder,
    events: &mut dyn Events,
) -> anyhow::Result<Index> {
    let signals = Signals::catch(root).context("cannot catch signals")?;
    let allowed = facts.cpus.allowed.value().cloned();
    let mut index = Index::new(plan);
    index.machine = Some(Machine::of(facts));
    let todo = sort_out(plan, folder, &mut index)?;
    write(folder, &index, events)?;
    let mut conditions = Conditions::of(&plan.conditions);
    let mut pace = Pace::default();
    for (at, cell) in todo.iter().enumerate() {
        if let Err(why) = conditions.enter(&cell.condition) {
            index.put(CellResult::failed(cell, why.0));
            write(folder, &index, events)?;
            continue;
        }
        let left = todo[at + 1..].iter().copied();
        let after_ns = Plan::takes_ns(left, pace.overhead_ns());
        events.begin(plan, cell, after_ns.saturating_add(cell.duration_ns))?;
        // The cell before may have left this thread on the housekeeping CPUs of its own.
        if let Some(allowed) = &allowed {
            let _ = pin_all(allowed.as_slice());
        }
        let start = Instant::now();
        let result = one(root, plan, cell, folder, &signals, events, after_ns);
        pace.took(start.elapsed().as_nanos(), cell.duration_ns);
        index.put(result.unwrap_or_else(|error| CellResult::failed(cell, format!("{error:#}"))));
        write(folder, &index, events)?;
        if signals.came().is_some() {
            break;
        }
    }
    let left = conditions.leave();
    same_machine(&mut index, folder);
    index.compared = paired::compared(plan, folder);
    write(folder, &index, events)?;
    left.map_err(|why| anyhow::anyhow!("{why}; the cells are in {}", folder.path().display()))?;
    Ok(index)
}

/// Puts what is done into the index; returns what is to be measured, what was cut short moved
/// aside.
fn sort_out<'a>(
    plan: &'a Plan,
    folder: &Folder,
    index: &mut Index,
) -> anyhow::Result<Vec<&'a Cell>> {
    let mut todo = Vec::new();
    for cell in &plan.cells {
        match folder.find(cell) {
            Found::Nothing => todo.push(cell),
            Found::Done(run) => index.put(result(cell, &run)),
            Found::CutShort => {
                folder.set_aside(cell)?;
                todo.push(cell);
            }
            Found::Unusable(why) => anyhow::bail!("{why}; move it away to measure its cell anew"),
        }
    }
    Ok(todo)
}

fn result(cell: &Cell, run: &Run) -> CellResult {
    found::cell_result(cell, run, &Report::new(run, &rtproof_judge::Standing::Sealed))
}

fn one(
    root: &Root,
    plan: &Plan,
    cell: &Cell,
    folder: &Folder,
    signals: &Signals,
    events: &mut dyn Events,
    after_ns: u64,
) -> anyhow::Result<CellResult> {
    let facts = Facts::read(root);
    let options = cells::options(cell, &plan.common, &facts)?;
    let mut output = folder.output(cell);
    if plan.common.keep_samples {
        output = output.keeping_samples()?;
    }
    let parsed = cell.workloads.iter().map(|name| workloads::parse(name));
    let job = Job {
        options: &options,
        output: &output,
        load_dir: plan.common.load_dir.as_deref(),
        workloads: parsed.collect::<Result<_, _>>()?,
        signals,
    };
    let observer = events.observer(plan, cell, after_ns);
    let measured = prove::run(root, facts, &job, &mut NoSwitcher, observer);
    events.end();
    let finished = measured?;
    let report = Report::new(&finished.run, &finished.standing());
    let sealed = finished.seal(&report)?;
    events.sealed(&output, &sealed.run, &report)?;
    let mut result = found::cell_result(cell, &sealed.run, &report);
    if let Some(failure) = sealed.failure {
        result.state = State::CutShort;
        result.why = Some(format!("{failure:#}"));
    }
    Ok(result)
}

/// What cells take beside their measuring time, as it was so far.
#[derive(Debug, Default)]
struct Pace {
    cells: u64,
    beside_ns: u64,
}

impl Pace {
    fn took(&mut self, all_ns: u128, duration_ns: u64) {
        self.cells += 1;
        let all_ns = u64::try_from(all_ns).unwrap_or(u64::MAX);
        self.beside_ns = self.beside_ns.saturating_add(all_ns.saturating_sub(duration_ns));
    }

    fn overhead_ns(&self) -> u64 {
        self.beside_ns.checked_div(self.cells).unwrap_or(OVERHEAD_NS)
    }
}

/// Says of each cell whether the machine was as in the cell before it.
fn same_machine(index: &mut Index, folder: &Folder) {
    let condition = |cell: &Cell| match folder.find(cell) {
        Found::Done(run) => Some(rtproof_host::flatten::condition_id(&run.facts_start.rows())),
        _ => None,
    };
    let mut last: Option<String> = None;
    for result in &mut index.cells {
        let now = condition(&result.cell);
        result.same_machine = last.as_ref().zip(now.as_ref()).map(|(last, now)| last == now);
        last = now.or(last);
    }
}

/// Writes the index: after each cell, so that a run that is killed leaves that of the finished
/// ones.
fn write(folder: &Folder, index: &Index, events: &dyn Events) -> anyhow::Result<()> {
    folder.write("index.json", &serde_json::to_vec_pretty(index)?)?;
    folder.write("index.html", events.page(index).as_bytes())
}

/// CPUs of all cells.
pub fn cpus(plan: &Plan) -> CpuList {
    CpuList::new(plan.cells.iter().flat_map(|cell| cell.cpus.iter().copied()))
}
