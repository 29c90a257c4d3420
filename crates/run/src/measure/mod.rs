//! `rtproof measure`: a matrix of conditions, each cell of it a run and a record of its own, and
//! one index over all of them.
//!
//! From a [`Block`] of the command line or a [`matrix`] to [`cells`]; each is measured by `prove`
//! into a record of its own and becomes a row of the index.

pub mod cells;
pub mod matrix;

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context;
use cells::Conditions;

use rtproof_host::{
    CpuList, Facts, Root,
    door::{Invalid, usage},
    facts::tasks::Policy,
};
use rtproof_judge::{Report, report::MachineSummary};
use rtproof_measure::{loads::LoadSet, thread::pin_all, workloads};
use rtproof_record::{Run, SealState, run::RunEnd};
use rtproof_results::measure::{Cell, CellResult, CellState, Index, MeasurePlan, OVERHEAD_NS};

use crate::prove::{self, Job, NoSwitcher, Observer, Output, Signals};

// The folder of a matrix: its plan, a record and a report for each cell, the index.

const PLAN: &str = "plan.json";

const BYTES_MAX: u64 = 64 << 20;

/// A folder of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFolder {
    path: PathBuf,
}

/// What there is of a cell.
#[derive(Debug)]
pub enum ExistingCell {
    Nothing,
    /// A complete run, which is not repeated.
    Done(Box<Run>),
    /// A run that was cut short: torn, interrupted or aborted.
    CutShort,
    /// A file that is no record, or one that was altered.
    Unusable(String),
}

impl RecordFolder {
    /// A new folder, by name or `measure-HOST-TIME` in this one.
    ///
    /// # Errors
    /// There is one with something in it, or it cannot be made.
    pub fn create(wanted: Option<&Path>, facts: &Facts) -> anyhow::Result<Self> {
        let path = match wanted {
            Some(path) => path.to_owned(),
            None => prove::free_name(Path::new(&prove::default_name("measure", facts))),
        };
        #[expect(clippy::disallowed_methods, reason = "the user's own folder")]
        let entries = fs::read_dir(&path);
        if let Ok(mut entries) = entries {
            anyhow::ensure!(
                entries.next().is_none(),
                "{}: there already, and records are evidence that is never overwritten; go on with \
                 `rtproof measure --resume {0}`, or name another folder with --output",
                path.display()
            );
            return Ok(Self { path });
        }
        fs::create_dir(&path).with_context(|| {
            format!("{}: the folder cannot be made; name another with --output", path.display())
        })?;
        Ok(Self { path })
    }

    /// A folder that is there, and its plan; `anyones`: also one that another user owns or can
    /// write.
    ///
    /// # Errors
    /// There is none, it holds no plan, or another user could have written that.
    pub fn open(path: &Path, anyones: bool) -> anyhow::Result<(Self, MeasurePlan)> {
        let file = path.join(PLAN);
        let wrong = |what: String| {
            usage(format!("{}: {what}; --resume takes the folder of a matrix", file.display()))
        };
        let mut bytes = Vec::new();
        let read = rtproof_host::trusted::open_if(&file, anyones)
            .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|error| wrong(error.to_string()))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(wrong(format!("more than {BYTES_MAX} bytes")));
        }
        let plan: MeasurePlan = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        if !plan.is_known() {
            return Err(wrong(format!("\"{}\" is of another version of rtproof", plan.schema)));
        }
        // Names of files come from here: none of them may lead elsewhere.
        let is_plain = |name: &str| !name.is_empty() && !name.contains('/') && name != "..";
        if let Some(cell) = plan.cells.iter().find(|cell| !is_plain(&cell.name)) {
            return Err(wrong(format!("cell {} has no plain name", cell.number)));
        }
        Ok((Self { path: path.to_owned() }, plan))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn keep(&self, plan: &MeasurePlan) -> anyhow::Result<()> {
        self.write(PLAN, &serde_json::to_vec_pretty(plan)?)
    }

    /// Writes a file whole, or leaves the one that is there.
    pub fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.path.join(name);
        rtproof_host::door::write_whole(&path, |to| Ok(to.write_all(bytes)?))
            .with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// The files of a cell.
    pub fn output(&self, cell: &Cell) -> Output {
        let with = |extension: &str| self.path.join(format!("{}.{extension}", cell.name));
        Output { record: with("rtproof"), html: with("html"), samples: None }
    }

    /// What there is of a cell.
    pub fn find(&self, cell: &Cell) -> ExistingCell {
        let record = self.output(cell).record;
        if record.symlink_metadata().is_err() {
            return ExistingCell::Nothing;
        }
        let opened = match rtproof_record::read(&record) {
            Ok(opened) => opened,
            Err(rtproof_record::ReadError::Empty { .. }) => return ExistingCell::CutShort,
            Err(error) => return ExistingCell::Unusable(error.to_string()),
        };
        match opened.state {
            SealState::Altered { why } => ExistingCell::Unusable(format!(
                "{}: altered after it was sealed: {why}",
                record.display()
            )),
            SealState::Sealed { .. } if opened.run.meta.ended == Some(RunEnd::Complete) => {
                ExistingCell::Done(Box::new(opened.run))
            }
            SealState::Sealed { .. } | SealState::Torn => ExistingCell::CutShort,
        }
    }

    /// Moves what there is of a cell aside, to be measured anew.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn set_aside(&self, cell: &Cell) -> anyhow::Result<()> {
        let Output { record, html, .. } = self.output(cell);
        let samples = record.with_extension("samples.csv");
        let place = |number: u32, extension: &str| {
            self.path.join(format!("{}.cut-short-{number}.{extension}", cell.name))
        };
        let is_free = |number: &u32| place(*number, "rtproof").symlink_metadata().is_err();
        let number = (1..10_000).find(is_free).unwrap_or(10_000);
        let to = place(number, "rtproof");
        fs::rename(&record, &to)
            .with_context(|| format!("{}: cannot be moved aside", record.display()))?;
        for (path, extension) in [(html, "html"), (samples, "samples.csv")] {
            if path.symlink_metadata().is_ok() {
                fs::rename(&path, place(number, extension))
                    .with_context(|| format!("{}: cannot be moved aside", path.display()))?;
            }
        }
        Ok(())
    }
}

// What is asked of `measure`, from the command line or a file: lists whose product are the cells.

/// One block of a matrix: every combination of its lists is a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub workloads: Vec<WorkloadChoice>,
    /// CPUs, as a list; `None`: the isolated ones if there are any, else all.
    pub cpus: Option<String>,
    /// Each CPU in turn instead of all at once.
    pub each: bool,
    pub policies: Vec<Policy>,
    /// Priorities of the policies that have any.
    pub priorities: Vec<u32>,
    pub periods_ns: Vec<u64>,
    /// Loads, as they are written.
    pub loads: Vec<String>,
    /// Duration of a cell; `None`: ten seconds, or what the samples take.
    pub duration_ns: Option<u64>,
    /// Wake-ups of each thread that end a cell.
    pub samples: Option<u64>,
    /// How often each is measured.
    pub repeat: u32,
}

/// A workload for all CPUs, or one for each of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadChoice {
    /// On every CPU that is measured.
    Everywhere(String),
    /// Each on its own CPUs, all at once.
    Placed(Vec<(String, CpuList)>),
}

/// Workloads of one word: `NAME`, `NAME,NAME`, `NAME@CPUS,NAME@CPUS`, or `exec:COMMAND` to its end.
///
/// # Errors
/// What is wrong, and how it is written.
pub fn workloads(text: &str) -> Result<Vec<WorkloadChoice>, Invalid> {
    let text = text.trim();
    if text.starts_with("exec:") {
        // A command may hold commas and at signs.
        return Ok(vec![WorkloadChoice::Everywhere(workload(text)?)]);
    }
    let mut everywhere = Vec::new();
    let mut placed: Vec<(String, CpuList)> = Vec::new();
    let mut open: Option<usize> = None;
    for part in text.split(',').map(str::trim) {
        let is_cpus = part.starts_with(|c: char| c.is_ascii_digit());
        match (part.split_once('@'), open) {
            (Some((name, cpus)), _) => {
                placed.push((workload(name)?, cpu_list(cpus)?));
                open = Some(placed.len() - 1);
            }
            // `registers@1,3`: more CPUs of the same.
            (None, Some(at)) if is_cpus => placed[at].1 = placed[at].1.union(&cpu_list(part)?),
            (None, _) => everywhere.push(WorkloadChoice::Everywhere(workload(part)?)),
        }
    }
    match (placed.is_empty(), everywhere.is_empty()) {
        (true, _) => Ok(everywhere),
        (false, false) => Err(format!(
            "{text}: some workloads have CPUs and some have none; write each as NAME@CPUS, or ask \
             twice"
        )
        .into()),
        (false, true) => {
            let twice = |at: usize| {
                let before = placed[..at].iter();
                before.fold(CpuList::default(), |all, (_, cpus)| all.union(cpus))
            };
            for (at, (name, cpus)) in placed.iter().enumerate() {
                let both = cpus.intersection(&twice(at));
                if !both.is_empty() {
                    return Err(format!("{name}@{cpus}: CPU {both} has a workload already").into());
                }
            }
            Ok(vec![WorkloadChoice::Placed(placed)])
        }
    }
}

/// A workload as records spell it.
fn workload(text: &str) -> Result<String, Invalid> {
    workloads::parse(text).map(|workload| workload.spec()).map_err(|error| error.to_string().into())
}

fn cpu_list(text: &str) -> Result<CpuList, Invalid> {
    let list = CpuList::parse(text, None).map_err(|error| format!("@{text}: {error}"))?;
    if list.is_empty() {
        return Err(format!("@{text}: no CPU; write e.g. memory@2 or memory@2-3").into());
    }
    Ok(list)
}

/// A policy by name.
///
/// # Errors
/// It is none.
pub fn policy(text: &str) -> Result<Policy, Invalid> {
    match text.trim() {
        "other" => Ok(Policy::Other),
        "fifo" => Ok(Policy::Fifo),
        "rr" => Ok(Policy::Rr),
        "deadline" => Ok(Policy::Deadline),
        _ => Err(format!("\"{text}\" is no policy; expected other, fifo, rr or deadline").into()),
    }
}

/// Checks the specification of a load and returns it.
///
/// # Errors
/// It is none.
pub fn load(text: &str) -> Result<String, Invalid> {
    LoadSet::from_command_line(text)
        .map(|set| set.to_string())
        .map_err(|error| error.to_string().into())
}

/// A number of repetitions.
///
/// # Errors
/// Not 1 to 10000.
pub fn repeat(text: &str) -> Result<u32, Invalid> {
    match text.trim().parse() {
        Ok(n @ 1..=10_000) => Ok(n),
        _ => Err("a number of repetitions is 1 to 10000".into()),
    }
}

// All cells, one after the other: each a run of its own, sealed before the next one begins.

/// What the caller does while cells are measured.
pub trait MeasureEvents {
    /// A cell begins; so much time is left for it and those after it.
    ///
    /// # Errors
    /// The caller ends the measurement.
    fn begin(&mut self, plan: &MeasurePlan, cell: &Cell, left_ns: u64) -> anyhow::Result<()>;

    /// Observes the cell that began last; cells after it take `after_ns`.
    fn observer(&mut self, plan: &MeasurePlan, cell: &Cell, after_ns: u64) -> &mut dyn Observer;

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
pub fn run_cells(
    root: &Root,
    facts: &Facts,
    plan: &MeasurePlan,
    folder: &RecordFolder,
    events: &mut dyn MeasureEvents,
) -> anyhow::Result<Index> {
    let signals = Signals::catch(root).context("cannot catch signals")?;
    let allowed = facts.cpus.allowed.value().cloned();
    let mut index = Index::new(plan);
    index.machine = Some(MachineSummary::of(facts));
    let todo = sort_out(plan, folder, &mut index)?;
    write(folder, &index, events)?;
    let mut conditions = Conditions::of(&plan.conditions);
    let mut pace = CellOverhead::default();
    for (at, cell) in todo.iter().enumerate() {
        if let Err(why) = conditions.enter(&cell.condition) {
            index.put(CellResult::failed(cell, why.0));
            write(folder, &index, events)?;
            continue;
        }
        let left = todo[at + 1..].iter().copied();
        let after_ns = MeasurePlan::takes_ns(left, pace.overhead_ns());
        events.begin(plan, cell, after_ns.saturating_add(cell.duration_ns))?;
        // The cell before may have left this thread on the housekeeping CPUs of its own.
        if let Some(allowed) = &allowed {
            let _ = pin_all(allowed.as_slice());
        }
        let start = Instant::now();
        let result = one(root, plan, cell, folder, &signals, events, after_ns);
        pace.add(start.elapsed().as_nanos(), cell.duration_ns);
        index.put(result.unwrap_or_else(|error| CellResult::failed(cell, format!("{error:#}"))));
        write(folder, &index, events)?;
        if signals.received().is_some() {
            break;
        }
    }
    let left = conditions.leave();
    same_machine(&mut index, folder);
    index.compared = cells::compared(plan, folder);
    write(folder, &index, events)?;
    left.map_err(|why| anyhow::anyhow!("{why}; the cells are in {}", folder.path().display()))?;
    Ok(index)
}

/// Puts what is done into the index; returns what is to be measured, what was cut short moved
/// aside.
fn sort_out<'a>(
    plan: &'a MeasurePlan,
    folder: &RecordFolder,
    index: &mut Index,
) -> anyhow::Result<Vec<&'a Cell>> {
    let mut todo = Vec::new();
    for cell in &plan.cells {
        match folder.find(cell) {
            ExistingCell::Nothing => todo.push(cell),
            ExistingCell::Done(run) => index.put(result(cell, &run)),
            ExistingCell::CutShort => {
                folder.set_aside(cell)?;
                todo.push(cell);
            }
            ExistingCell::Unusable(why) => {
                anyhow::bail!("{why}; move it away to measure its cell anew")
            }
        }
    }
    Ok(todo)
}

fn result(cell: &Cell, run: &Run) -> CellResult {
    cells::cell_result(cell, run, &Report::new(run, &rtproof_judge::Integrity::Sealed))
}

fn one(
    root: &Root,
    plan: &MeasurePlan,
    cell: &Cell,
    folder: &RecordFolder,
    signals: &Signals,
    events: &mut dyn MeasureEvents,
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
    let report = Report::new(&finished.run, &finished.integrity());
    let sealed = finished.seal(&report)?;
    events.sealed(&output, &sealed.run, &report)?;
    let mut result = cells::cell_result(cell, &sealed.run, &report);
    if let Some(failure) = sealed.failure {
        result.state = CellState::CutShort;
        result.why = Some(format!("{failure:#}"));
    }
    Ok(result)
}

/// Mean overhead of cells besides their measuring time so far.
#[derive(Debug, Default)]
struct CellOverhead {
    cells: u64,
    overhead_ns: u64,
}

impl CellOverhead {
    fn add(&mut self, all_ns: u128, duration_ns: u64) {
        self.cells += 1;
        let all_ns = u64::try_from(all_ns).unwrap_or(u64::MAX);
        self.overhead_ns = self.overhead_ns.saturating_add(all_ns.saturating_sub(duration_ns));
    }

    fn overhead_ns(&self) -> u64 {
        self.overhead_ns.checked_div(self.cells).unwrap_or(OVERHEAD_NS)
    }
}

/// Says of each cell whether the machine was as in the cell before it.
fn same_machine(index: &mut Index, folder: &RecordFolder) {
    let condition = |cell: &Cell| match folder.find(cell) {
        ExistingCell::Done(run) => {
            Some(rtproof_host::flatten::condition_id(&run.facts_start.rows()))
        }
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
fn write(folder: &RecordFolder, index: &Index, events: &dyn MeasureEvents) -> anyhow::Result<()> {
    folder.write("index.json", &serde_json::to_vec_pretty(index)?)?;
    folder.write("index.html", events.page(index).as_bytes())
}

/// CPUs of all cells.
pub fn cpus(plan: &MeasurePlan) -> CpuList {
    CpuList::new(plan.cells.iter().flat_map(|cell| cell.cpus.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everywhere(name: &str) -> WorkloadChoice {
        WorkloadChoice::Everywhere(name.into())
    }

    #[test]
    fn workloads_are_lists_or_have_their_cpus() {
        assert_eq!(workloads("timer-wakeup"), Ok(vec![everywhere("timer-wakeup")]));
        let two = vec![everywhere("timer-wakeup"), everywhere("timer-wakeup")];
        assert_eq!(workloads("timer-wakeup, timer-wakeup"), Ok(two));
        let placed = |cpus: &[u32]| ("timer-wakeup".to_owned(), CpuList::new(cpus.iter().copied()));
        let both = vec![WorkloadChoice::Placed(vec![placed(&[1, 3]), placed(&[5, 6])])];
        assert_eq!(workloads("timer-wakeup@1,3,timer-wakeup@5-6"), Ok(both));
        for (text, part) in [
            ("nothing", "`nothing` is no workload; expected one of"),
            ("timer-wakeup@", "no CPU"),
            ("timer-wakeup@x", "@x"),
            ("timer-wakeup@1,timer-wakeup", "some have none"),
            ("timer-wakeup@1,timer-wakeup@0-1", "CPU 1 has a workload already"),
            ("", "no workload"),
        ] {
            let error = workloads(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn other_values() {
        assert_eq!((policy("rr"), policy("deadline")), (Ok(Policy::Rr), Ok(Policy::Deadline)));
        assert!(policy("FIFO").is_err_and(|e| e.contains("other, fifo, rr or deadline")));
        assert_eq!(load("memory+cpu").as_deref(), Ok("memory+cpu"));
        assert!(load("noise").is_err());
        assert_eq!((repeat("3"), repeat("0").is_err(), repeat("x").is_err()), (Ok(3), true, true));
    }
}
