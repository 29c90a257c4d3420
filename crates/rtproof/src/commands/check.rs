//! `rtproof check`: the configuration against the catalogue. Changes nothing, needs no rights.

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use rtproof_host::{CpuList, Facts, Root};
use rtproof_judge::{Finding, Intent, checks, report::Machine};
use serde::Serialize;

use super::prove::online_cpus;
use crate::{
    exit::{self, FailOn},
    parse,
    render::{self, text::Text},
    wishes::{self, PERIOD_NS, PRIORITY, Wishes},
};

mod explain;
mod select;

/// Version of the JSON form.
const SCHEMA: &str = "rtproof/check/2";

/// Arguments of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  rtproof check
  rtproof check --cpus 2-3 --budget 100us --profile busy-poll
  rtproof check explain thp
  rtproof capture machine.txt && rtproof check --root machine.txt --json
  rtproof check --format junit --fail-on bad --skip swap='hibernation is wanted' >check.xml")]
pub struct Args {
    /// What to do instead of an audit
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Read a captured machine: a file of `rtproof capture`, or a folder that holds its /proc,
    /// /sys, /etc and /boot
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Profile and checks left out.
    #[command(flatten)]
    pub wishes: wishes::Args,

    /// Real-time CPUs; default: those that the machine keeps free, else all
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Real-time priority of the application (SCHED_FIFO); default: 80
    #[arg(long, value_name = "N", value_parser = parse::priority)]
    pub priority: Option<u32>,

    /// Period of its loop; default: 1ms
    #[arg(long = "period", value_name = "TIME", value_parser = parse::period)]
    pub period_ns: Option<u64>,

    /// Latency that it can bear
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// Only these checks: ids, or sections (kernel, power, sched, isolation, time, memory, device,
    /// platform), joined by commas
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Show what is good and what does not apply as well
    #[arg(short, long)]
    pub all: bool,

    /// Show for each finding what was read, why it matters, what the change costs
    #[arg(short, long)]
    pub verbose: bool,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// Print the findings as JSON: --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,

    /// Exit with 2 where something is as bad as this, else with 0. Default: 2 where something is
    /// bad, else 3 where something is unknown
    #[arg(long, value_enum, value_name = "STATUS")]
    pub fail_on: Option<FailOn>,
}

/// What `check` can do besides.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Explain a check: what it reads and wants, why, how to set and undo it; without an id, list
    /// all
    Explain(explain::Args),
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// All of it.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML, for CI.
    Junit,
}

/// The JSON form of an audit.
#[derive(Debug, Serialize)]
struct Audit<'a> {
    schema: &'static str,
    machine: &'a Machine,
    intent: &'a render::IntentShown,
    findings: &'a [Finding],
}

/// Runs the command.
///
/// # Errors
/// A root that is no captured machine, CPUs or checks that are not there.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(Command::Explain(explain)) = &args.command {
        return explain::run(explain);
    }
    let selection = select::Selection::of(&args.only)?;
    let wishes = args.wishes.resolve()?;
    let root = open_root(args.root.as_deref())?;
    let facts = Facts::read(&root);
    let intent = intent(args, &wishes, &facts)?;
    let findings = selection.of_findings(checks::judge_all(&facts, &intent));
    let machine = Machine::of(&facts);
    let shown = render::IntentShown::of(&intent);
    let format = if args.json { Format::Json } else { args.format };
    match format {
        Format::Text => Text::new(false).print(|to| {
            let detail = render::text::Detail { all: args.all, verbose: args.verbose };
            render::text::audit(to, &machine, &shown, &findings, detail)
        })?,
        Format::Json => Text::new(true).print_json(&Audit {
            schema: SCHEMA,
            machine: &machine,
            intent: &shown,
            findings: &findings,
        })?,
        Format::Sarif => Text::new(true).print_json(&render::sarif::log(&machine, &findings))?,
        Format::Junit => {
            let fail_on = args.fail_on.unwrap_or(FailOn::Bad);
            let xml = render::junit::suites(&machine, &findings, fail_on);
            Text::new(false).print(|to| to.write_all(xml.as_bytes()))?;
        }
    }
    Ok(match args.fail_on {
        Some(fail_on) => fail_on.exit(&findings),
        None => exit::of_findings(&findings),
    })
}

/// The machine to read: the live one, or the captured one under `--root`.
///
/// # Errors
/// Usage: it is no captured machine.
pub(super) fn open_root(path: Option<&Path>) -> anyhow::Result<Root> {
    match path {
        Some(path) => Root::open_path(path).map_err(|error| exit::usage(error.to_string())),
        None => Ok(Root::live()),
    }
}

/// What the machine is meant for: the command line, else the profile's file, else the machine.
fn intent(args: &Args, wishes: &Wishes, facts: &Facts) -> anyhow::Result<Intent> {
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    let rt_cpus: CpuList = match (&args.cpus, &wishes.cpus) {
        (Some(list), _) => online_cpus(list, "--cpus", facts)?,
        (None, Some(list)) => online_cpus(list, "cpus of the profile", facts)?,
        (None, None) => Intent::default_rt_cpus(facts),
    };
    Ok(Intent {
        housekeeping: online.difference(&rt_cpus),
        rt_cpus,
        priority: args.priority.or(wishes.priority).unwrap_or(PRIORITY),
        period_ns: args.period_ns.or(wishes.period_ns).unwrap_or(PERIOD_NS),
        budget_ns: args.budget_ns.or(wishes.budget_ns),
        profile: wishes.profile.clone(),
        skip: wishes.skip.clone(),
    })
}
