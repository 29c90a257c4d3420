//! `rtproof check`: the configuration against the catalogue. Changes nothing, needs no rights.

mod application;
pub(crate) mod explain;
mod proof;
mod select;
mod tick;

use std::{io::Write as _, path::PathBuf};

use clap::{Subcommand, ValueEnum};
use rtproof_host::Facts;
use rtproof_judge::{Finding, checks, report::Machine};
use rtproof_run::{intent::IntentOptions, parse};
use schemars::JsonSchema;
use serde::Serialize;

use self::application::Application;
use crate::{
    answers,
    exit::{self, FailOn},
    intent::IntentArgs,
    manners, next,
    print::Text,
    root::open_root,
};

const SCHEMA: &str = "rtproof/check/2";

/// Arguments of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  rtproof check
  rtproof check --cpus 2-3 --budget 100us --profile busy-poll
  rtproof check --unit arm.service
  rtproof check --cpus 2-3 --prove throttling,isolation
  rtproof check explain thp
  rtproof capture machine.txt && rtproof check --root machine.txt --json
  rtproof check --format junit --fail-on bad --skip swap='hibernation is wanted' >check.xml")]
pub struct Args {
    /// What to do instead of an audit
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Read a captured machine: a file of `rtproof capture`, or a folder that holds its /proc,
    /// /sys, /etc and /boot; or a kernel's whole build configuration alone (.config, config.gz)
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Profile and checks left out.
    #[command(flatten)]
    pub intent: IntentArgs,

    /// Check the application with this process id, too
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,

    /// Check the application that runs as this systemd unit, too
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub unit: Option<String>,

    /// Real-time CPUs; default: those of --pid or --unit, else those that the machine keeps free,
    /// else all
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Real-time priority of the application (SCHED_FIFO); default: the highest of --pid or --unit,
    /// else 80
    #[arg(long, value_name = "N", value_parser = parse::priority)]
    pub priority: Option<u32>,

    /// Period of its loop; default: 1ms
    #[arg(long = "period", value_name = "TIME", value_parser = parse::period)]
    pub period_ns: Option<u64>,

    /// Latency budget of the application
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// User that the application runs as, for the checks of its rights (limits-rtprio,
    /// limits-memlock); default: this process, and who asks through sudo
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

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

    /// Only these checks: ids, or sections (kernel, power, sched, isolation, time, memory, device,
    /// platform), joined by commas
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Show what is good and what does not apply as well
    #[arg(short, long)]
    pub all: bool,

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
    /// The list of what to set in the firmware: show it, and tick what someone looked at
    Tick(tick::Args),
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
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Audit {
    schema: &'static str,
    /// The machine in short.
    machine: Machine,
    /// What it was looked at for.
    intent: rtproof_results::intent::IntentShown,
    /// Answers of the checks.
    findings: Vec<Finding>,
    /// Of the application, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<Application>,
    /// Of the trials, where some were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proofs: Vec<proof::Proof>,
}

/// Runs the command.
///
/// # Errors
/// A root that is no captured machine; CPUs, checks, a process or a unit that are not there.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    match &args.command {
        Some(Command::Explain(explain)) => return explain::run(explain),
        Some(Command::Tick(tick)) => return tick::run(tick),
        None => {}
    }
    let selection = select::Selection::of(&args.only)?;
    let profile = args.intent.requested().resolve()?;
    let root = open_root(args.root.as_deref())?;
    let app = application::read(&root, args.pid, args.unit.as_deref())?;
    let mut facts = Facts::read(&root);
    let stated = IntentOptions {
        cpus: args.cpus.clone(),
        priority: args.priority,
        period_ns: args.period_ns,
        budget_ns: args.budget_ns,
        ..IntentOptions::default()
    };
    let mut intent = profile.intent(stated, &facts)?;
    intent.user = rtproof_run::intent::user(&root, args.user.as_deref())?;
    let mut application = None;
    if let Some(app) = &app {
        let open = (args.priority.is_none(), args.cpus.is_none());
        application::refine(&mut intent, open, &facts, app);
        application = Some(Application::judge(&facts, app, &intent));
        facts = rtproof_judge::application::without_own(&facts, app);
    }
    let mut audit = Audit {
        schema: SCHEMA,
        machine: Machine::of(&facts),
        intent: rtproof_results::intent::IntentShown::of(&intent),
        findings: selection.of_findings(checks::judge_all(&facts, &intent)),
        application,
        proofs: Vec::new(),
    };
    let (cpus, priority) = match &app {
        // What was taken from the application; `tune` and `prove` do not look at it.
        Some(_) => (audit.cpus(), Some(intent.priority)),
        None => (args.cpus.clone(), args.priority),
    };
    let given = next::Given {
        intent: &args.intent,
        cpus: cpus.as_deref(),
        priority,
        period_ns: args.period_ns,
        budget_ns: args.budget_ns,
        user: args.user.as_deref(),
    };
    let answer = |audit: &Audit| {
        answers::check::answer(&audit.all(), &given, &args.only, args.root.as_deref())
    };
    let first = answer(&audit);
    let is_text = !args.json && args.format == Format::Text;
    let detail = rtproof_report::text::Detail { all: args.all, verbose: manners::is_verbose() };
    // What is known is shown before the trials, which take seconds.
    Text::new(!is_text).print(|to| {
        rtproof_report::text::answer(to, &first)?;
        rtproof_report::text::audit(to, &audit.machine, &audit.intent, &audit.findings, detail)?;
        if let Some(application) = &audit.application {
            application.print(to, detail)?;
        }
        match args.prove.is_empty() {
            true => rtproof_report::text::answer_again(to, &first),
            false => Ok(()),
        }
    })?;
    if !args.prove.is_empty() {
        let bounds =
            proof::Bounds { duration_ns: args.prove_for_ns, memory_bytes: args.prove_memory_bytes };
        audit.proofs = proof::prove(&args.prove, bounds, &root, &facts, &intent)?;
        let proven: Vec<&Finding> = audit.proofs.iter().map(|proof| &proof.finding).collect();
        Text::new(!is_text).print(|to| rtproof_report::text::proofs(to, &proven, detail))?;
        // The trials may have found more.
        Text::new(!is_text).print(|to| rtproof_report::text::answer(to, &answer(&audit)))?;
    }
    let all = audit.all();
    match if args.json { Format::Json } else { args.format } {
        Format::Text => {}
        Format::Json => Text::new(true).print_json(&answer(&audit).with(&audit))?,
        Format::Sarif => {
            Text::new(true).print_json(&rtproof_report::sarif::log(&audit.machine, &all))?
        }
        Format::Junit => {
            let fail_on = args.fail_on.unwrap_or(FailOn::Bad);
            let xml = rtproof_report::junit::suites(&audit.machine, &all, fail_on.status());
            Text::new(false).print(|to| to.write_all(xml.as_bytes()))?;
        }
    }
    Ok(match args.fail_on {
        Some(fail_on) => fail_on.exit(&all),
        None => exit::of_findings(&all),
    })
}

impl Audit {
    /// The CPUs that it was made for.
    fn cpus(&self) -> Option<String> {
        (!self.intent.rt_cpus.is_empty()).then(|| self.intent.rt_cpus.to_string())
    }

    /// Every finding: of the machine, of the application, of the trials.
    fn all(&self) -> Vec<Finding> {
        let of_application = self.application.iter().flat_map(|application| &application.findings);
        let proven = self.proofs.iter().map(|proof| &proof.finding);
        self.findings.iter().chain(of_application).chain(proven).cloned().collect()
    }
}
