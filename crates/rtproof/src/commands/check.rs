//! `rtproof check`: the configuration against the checks. Changes nothing, needs no rights.

mod proof;

use std::path::{Path, PathBuf};

use rtproof_host::{CpuList, Facts, Root};
use rtproof_judge::{Finding, Intent, checks, report::Machine};
use serde::Serialize;

use super::prove::online_cpus;
use crate::{
    exit, parse,
    render::{self, text::Text},
};

/// Version of the JSON form.
const SCHEMA: &str = "rtproof/check/1";

/// Arguments of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof check
  rtproof check --cpus 2-3 --budget 100us
  rtproof check --cpus 2-3 --prove throttling,isolation
  rtproof capture machine.txt && rtproof check --root machine.txt --json")]
pub struct Args {
    /// Read a captured machine: a file of `rtproof capture`, or a folder that holds its /proc,
    /// /sys, /etc and /boot
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Real-time CPUs; default: the isolated CPUs if there are any, else all
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Real-time priority of the application (SCHED_FIFO)
    #[arg(long, value_name = "N", default_value = "80", value_parser = parse::priority)]
    pub priority: u32,

    /// Period of its loop
    #[arg(
        long = "period",
        value_name = "TIME",
        default_value = "1ms",
        value_parser = parse::period
    )]
    pub period_ns: u64,

    /// Latency that it can bear
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// Show what is good and what does not apply as well
    #[arg(short, long)]
    pub all: bool,

    #[arg(
        long = "prove",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = proof::parse_name,
        conflicts_with = "root",
        help = proof::help()
    )]
    /// Trials to run.
    pub prove: Vec<proof::Wanted>,

    /// Time of each trial that takes time; default: its own (3 s, 5 s, 10 s)
    #[arg(
        long = "prove-for",
        value_name = "TIME",
        requires = "prove",
        value_parser = parse::trial_duration
    )]
    pub prove_for_ns: Option<u64>,

    /// Memory that the trial memlock locks
    #[arg(
        long = "prove-memory",
        value_name = "SIZE",
        requires = "prove",
        default_value = proof::MEMORY_DEFAULT,
        value_parser = parse::size
    )]
    pub prove_memory_bytes: u64,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// The JSON form of an audit.
#[derive(Debug, Serialize)]
struct Audit<'a> {
    schema: &'static str,
    machine: &'a Machine,
    findings: &'a [Finding],
    /// Of the trials, where some were asked for.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    proofs: &'a [proof::Proof],
}

/// Runs the command.
///
/// # Errors
/// A root that is no captured machine, CPUs that are not there.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    let facts = Facts::read(&root);
    let intent = intent(args, &facts)?;
    let findings = checks::judge_all(&facts, &intent);
    let machine = Machine::of(&facts);
    let text = Text::new(args.json);
    text.print(|to| render::text::audit(to, &machine, &findings, args.all))?;
    let bounds =
        proof::Bounds { duration_ns: args.prove_for_ns, memory_bytes: args.prove_memory_bytes };
    let proofs = match args.prove.as_slice() {
        [] => Vec::new(),
        wanted => proof::prove(wanted, bounds, &root, &facts, &intent)?,
    };
    let proven: Vec<&Finding> = proofs.iter().map(|proof| &proof.finding).collect();
    text.print(|to| render::text::proofs(to, &proven, args.all))?;
    text.print_json(&Audit {
        schema: SCHEMA,
        machine: &machine,
        findings: &findings,
        proofs: &proofs,
    })?;
    let all: Vec<Finding> = findings.iter().chain(proven).cloned().collect();
    Ok(exit::of_findings(&all))
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

fn intent(args: &Args, facts: &Facts) -> anyhow::Result<Intent> {
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    let isolated = facts.cpus.isolated.value().filter(|list| !list.is_empty());
    let rt_cpus: CpuList = match &args.cpus {
        Some(list) => online_cpus(list, "--cpus", facts)?,
        None => isolated.cloned().unwrap_or_else(|| online.clone()),
    };
    Ok(Intent {
        housekeeping: online.difference(&rt_cpus),
        rt_cpus,
        priority: args.priority,
        period_ns: args.period_ns,
        budget_ns: args.budget_ns,
        profile: rtproof_judge::Profile::default(),
    })
}
