//! `rtproof check`: the configuration against the checks. Changes nothing, needs no rights.

mod application;

use std::path::{Path, PathBuf};

use rtproof_host::{CpuList, Facts, Root};
use rtproof_judge::{Finding, Intent, checks, report::Machine};
use serde::Serialize;

use self::application::Application;
use super::prove::online_cpus;
use crate::{
    exit, parse,
    render::{self, text::Text},
};

/// Version of the JSON form.
const SCHEMA: &str = "rtproof/check/1";

/// Priority of an application that nobody names.
const PRIORITY: u32 = 80;

/// Arguments of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof check
  rtproof check --cpus 2-3 --budget 100us
  rtproof check --unit arm.service
  rtproof capture machine.txt && rtproof check --root machine.txt --json")]
pub struct Args {
    /// Read a captured machine: a file of `rtproof capture`, or a folder that holds its /proc,
    /// /sys, /etc and /boot
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Check the application with this process id, too
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,

    /// Check the application that runs as this systemd unit, too
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub unit: Option<String>,

    /// Real-time CPUs; default: those of --pid or --unit, else the isolated CPUs if there are any,
    /// else all
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Real-time priority of the application (SCHED_FIFO); default: the highest of --pid or --unit,
    /// else 80
    #[arg(long, value_name = "N", value_parser = parse::priority)]
    pub priority: Option<u32>,

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
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<&'a Application>,
}

/// Runs the command.
///
/// # Errors
/// A root that is no captured machine, CPUs, a process or a unit that are not there.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    let app = application::read(&root, args)?;
    let mut facts = Facts::read(&root);
    let mut intent = intent(args, &facts)?;
    let mut application = None;
    if let Some(app) = &app {
        application::refine(&mut intent, args, &facts, app);
        application = Some(Application::judge(&facts, app, &intent));
        facts = rtproof_judge::application::without_own(&facts, app);
    }
    let findings = checks::judge_all(&facts, &intent);
    let machine = Machine::of(&facts);
    let text = Text::new(args.json);
    text.print(|to| {
        render::text::audit(to, &machine, &findings, args.all)?;
        application.as_ref().map_or(Ok(()), |application| application.print(to, args.all))
    })?;
    let application = application.as_ref();
    text.print_json(&Audit {
        schema: SCHEMA,
        machine: &machine,
        findings: &findings,
        application,
    })?;
    let own = application.map_or(&[][..], |application| &application.findings);
    Ok(exit::of_findings(&[&findings[..], own].concat()))
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
        priority: args.priority.unwrap_or(PRIORITY),
        period_ns: args.period_ns,
        budget_ns: args.budget_ns,
        profile: rtproof_judge::Profile::default(),
    })
}
