//! `rtproof measure`: workloads x CPUs x policies x periods x loads, each a record of its own.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use clap::builder::NonEmptyStringValueParser;

use rtproof_host::{Facts, Root, facts::tasks::Policy};
use rtproof_measure::clock::Clock;
use rtproof_results::measure::{CellState, Common, Condition, MeasurePlan};
use rtproof_run::{
    measure::{
        self, Block, RecordFolder, WorkloadChoice, cells,
        matrix::{Matrix, default_block},
    },
    parse,
};

use super::prove::StartArg;
use crate::exit::{self, TextOutput};
use crate::show::CellPrinter;

/// Largest file of a matrix that is read.
const BYTES_MAX: u64 = (1 << 20) + 1;

/// Pairs of a cell as it is and tuned, unless stated.
const TUNED_PAIRS: u32 = rtproof_stats::paired::PAIRS_MIN as u32;

/// Workloads of one `--workload`.
type Choices = Vec<WorkloadChoice>;

/// Arguments of `measure`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof measure --cpus 1 --for 5s --rows
  rtproof measure --workload memory,registers --cpus 2-3 --each --policy other,fifo --for 20s
  rtproof measure --workload memory@2,registers@3 --load idle --load cpu+memory --repeat 3
  rtproof measure --matrix nightly.toml --plan
  rtproof measure --resume measure-robot-20261122T031500

Lists are combined: each combination is a cell, measured by itself. The folder of --output holds a \
record (*.rtproof) and a report (*.html) of each, and one index over all (index.html, index.json). \
Nothing is judged: rtproof prove does that. Ctrl-C ends the cell that is measured and keeps all others.

Exit codes: 0 all cells are measured; 3 cells are missing, or not all of their load worked; 1 a cell
failed; 64 wrong arguments.")]
pub struct Args {
    /// What the threads do: NAME, NAME,NAME (one after the other), or NAME@CPUS,NAME@CPUS (at
    /// once, each on its own CPUs); may be given again. Default: timer-wakeup (docs/workloads.md)
    #[arg(long, value_name = "NAME[@CPUS]", value_parser = measure::workloads)]
    pub workload: Vec<Choices>,

    /// CPUs to measure, e.g. 2-3,6; default: the isolated CPUs if there are any, else all
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Measure one CPU after the other instead of all at once
    #[arg(long)]
    pub each: bool,

    /// Policies: other, fifo, rr, deadline
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = measure::policy,
        default_value = "fifo"
    )]
    pub policy: Vec<Policy>,

    /// Priorities of fifo and rr, 1 to 99
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse::priority,
        default_value = "80"
    )]
    pub priority: Vec<u32>,

    /// Periods, 5us to 10s
    #[arg(
        long = "period",
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse::period,
        default_value = "1ms"
    )]
    pub periods_ns: Vec<u64>,

    /// Load while measuring, as in prove; may be given again for more cells
    #[arg(long, value_name = "LOAD", value_parser = measure::load, default_value = "idle")]
    pub load: Vec<String>,

    /// Duration of each cell, e.g. 20s, 10m; default: 10s, or what --samples takes
    #[arg(long = "for", value_name = "TIME", value_parser = parse::run_duration)]
    pub duration_ns: Option<u64>,

    /// End each cell after N wake-ups due on each thread, or after --for if that comes first
    #[arg(long, value_name = "N", value_parser = parse::samples)]
    pub samples: Option<u64>,

    /// Measure each cell N times; default: 1, with --tuned 6, the fewest pairs that can decide
    #[arg(long, value_name = "N", value_parser = measure::repeat)]
    pub repeat: Option<u32>,

    /// Measure all cells with the machine as it is and with the changes of rtproof tune apply
    /// --yes, in turns; compare the two at the end. The changes are undone
    #[arg(long)]
    pub tuned: bool,

    /// Read what to measure from this file (docs/measure.md)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "workload", "cpus", "each", "policy", "priority", "periods_ns", "load", "duration_ns",
            "samples", "repeat", "tuned", "budget_ns", "spike_ns", "no_trace", "start",
            "clock", "dma_latency_us", "load_cpus", "load_dir", "keep_samples",
        ]
    )]
    pub matrix: Option<PathBuf>,

    /// Continue the matrix in this folder; finished cells stay as they are
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = [
            "matrix", "workload", "cpus", "each", "policy", "priority", "periods_ns", "load",
            "duration_ns", "samples", "repeat", "tuned", "budget_ns", "spike_ns", "no_trace",
            "start", "clock", "dma_latency_us", "load_cpus", "load_dir", "output", "plan",
            "keep_samples",
        ]
    )]
    pub resume: Option<PathBuf>,

    /// Show the cells and the time they take; measure nothing
    #[arg(long)]
    pub plan: bool,

    /// Take a matrix or a folder that another user owns or can write, after a look at the commands
    /// that it runs
    #[arg(long)]
    pub accept_owner: bool,

    /// Do not ask
    #[arg(short, long, requires = "accept_owner")]
    pub yes: bool,

    /// Print a row a second, and mark changes of the threads from outside (chrt, taskset)
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    pub rows: bool,

    /// Count samples later than this; they are spikes, too
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// Samples above this are spikes, which are explained; default: the budget, and without one a
    /// threshold that follows the machine
    #[arg(long = "spike", value_name = "TIME", value_parser = parse::spike)]
    pub spike_ns: Option<u64>,

    /// Do not record kernel events: spikes are counted, not explained
    #[arg(long)]
    pub no_trace: bool,

    /// Keep each single sample, in CELL.samples.csv beside the record of each cell
    #[arg(long)]
    pub keep_samples: bool,

    /// Wake the CPUs of a cell one after the other over the period, or all at once
    #[arg(long, value_enum, default_value_t = StartArg::Staggered)]
    pub start: StartArg,

    /// Clock to wait for and read: monotonic, raw, realtime, boottime, tai. Nothing can sleep by
    /// raw: only what times work takes it (docs/measure.md)
    #[arg(long, value_name = "CLOCK", value_parser = parse::clock, default_value = "monotonic")]
    pub clock: Clock,

    /// Hold /dev/cpu_dma_latency at US microseconds; default: not touched
    #[arg(long = "dma-latency", value_name = "US")]
    pub dma_latency_us: Option<u32>,

    /// CPUs the load runs on; default: all that are not isolated
    #[arg(long, value_name = "LIST")]
    pub load_cpus: Option<String>,

    /// Folder for the files of the loads (removed again); default: that of the records
    #[arg(long, value_name = "DIR")]
    pub load_dir: Option<PathBuf>,

    /// Folder for the records, which must be new or empty; default: measure-HOST-TIME
    #[arg(short, long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    pub output: Option<String>,

    /// Print the index as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// Wrong arguments (usage), a folder that cannot be written.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = Root::live();
    let facts = Facts::read(&root);
    let text = TextOutput::new(args.json);
    let (folder, plan) = match &args.resume {
        Some(path) => {
            let (folder, plan) = RecordFolder::open(path, args.takes_anyones())?;
            (Some(folder), plan)
        }
        None => (None, plan(args, &facts)?),
    };
    if args.plan {
        text.print(|to| rtproof_render::sections::measure::plan(to, &plan))?;
        text.print_json(&plan)?;
        return Ok(exit::ACCEPTED);
    }
    show_and_ask(args, &plan)?;
    let folder = match folder {
        Some(folder) => folder,
        None => {
            let folder = RecordFolder::create(args.output.as_deref().map(Path::new), &facts)?;
            folder.keep(&plan)?;
            folder
        }
    };
    text.print(|to| {
        rtproof_render::sections::measure::begin(
            to,
            &rtproof_judge::report::MachineSummary::of(&facts),
            &plan,
        )
    })?;
    let index = measure::run_cells(
        &root,
        &facts,
        &plan,
        &folder,
        &mut CellPrinter::new(args.rows, text, &folder),
    )?;
    let answer = crate::answers::measure::answer(&index, folder.path());
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::sections::measure::index(to, &index, folder.path(), crate::is_verbose())?;
        rtproof_render::page::answer_again(to, &answer)
    })?;
    text.print_json(&answer.with(&index))?;
    Ok(match () {
        () if index.count(CellState::Failed) > 0 => exit::FAILED,
        () if index.count(CellState::Done) < index.cells.len() => exit::NOT_PROVEN,
        () if index.unloaded() > 0 => exit::NOT_PROVEN,
        () => exit::ACCEPTED,
    })
}

/// What is to be measured.
fn plan(args: &Args, facts: &Facts) -> anyhow::Result<MeasurePlan> {
    if let Some(path) = &args.matrix {
        let matrix = Matrix::parse(&read(path, args.takes_anyones())?, &path.display().to_string());
        let Matrix { blocks, conditions, common } = matrix.map_err(exit::usage)?;
        return cells::plan(&blocks, conditions, common, facts);
    }
    let workloads = match args.workload.is_empty() {
        true => default_block().workloads,
        false => args.workload.concat(),
    };
    let block = Block {
        workloads,
        cpus: args.cpus.clone(),
        each: args.each,
        policies: args.policy.clone(),
        priorities: args.priority.clone(),
        periods_ns: args.periods_ns.clone(),
        loads: args.load.clone(),
        duration_ns: args.duration_ns,
        samples: args.samples,
        repeat: args.repeat.unwrap_or(if args.tuned { TUNED_PAIRS } else { 1 }),
    };
    let common = Common {
        budget_ns: args.budget_ns,
        spike_ns: args.spike_ns,
        trace: !args.no_trace,
        is_aligned: args.start == StartArg::Aligned,
        clock: args.clock,
        keep_samples: args.keep_samples,
        dma_latency_us: args.dma_latency_us,
        load_cpus: args.load_cpus.clone(),
        load_dir: args.load_dir.clone(),
    };
    let plan = cells::plan(std::slice::from_ref(&block), Vec::new(), common.clone(), facts)?;
    if !args.tuned {
        return Ok(plan);
    }
    let conditions = tuned(&measure::cpus(&plan).to_string());
    cells::check_conditions(&conditions).map_err(exit::usage)?;
    cells::plan(&[block], conditions, common, facts)
}

/// The machine as it is, and tuned for the measured CPUs.
fn tuned(cpus: &str) -> Vec<Condition> {
    let plain = Condition { name: "baseline".into(), before: None, after: None };
    let tuned = Condition {
        name: "tuned".into(),
        before: Some(format!("rtproof tune apply --cpus {cpus} --yes")),
        after: Some("rtproof tune undo".into()),
    };
    vec![plain, tuned]
}

impl Args {
    /// Whether a file may be anybody's: its commands are shown before they are run, or not run.
    const fn takes_anyones(&self) -> bool {
        self.accept_owner || self.plan
    }
}

/// Shows what a matrix runs, and asks.
fn show_and_ask(args: &Args, plan: &MeasurePlan) -> anyhow::Result<()> {
    let commands = plan.commands();
    if !args.accept_owner || commands.is_empty() {
        return Ok(());
    }
    commands.iter().try_for_each(|command| crate::stderr_line(command))?;
    anyhow::ensure!(args.yes || crate::consent("run these?")?, "nothing was measured");
    Ok(())
}

fn read(path: &Path, anyones: bool) -> anyhow::Result<String> {
    let mut text = String::new();
    let wrong = |error: std::io::Error| exit::usage(format!("{}: {error}", path.display()));
    let file = rtproof_host::trusted::open_if(path, anyones).map_err(wrong)?;
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(wrong)?;
    Ok(text)
}
