//! `rtproof check`: the configuration against the catalogue. Changes nothing, needs no rights.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    path::PathBuf,
};

use clap::{Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    Facts, Root,
    facts::{
        app::{App, Target},
        platform::FirmwareChoice,
    },
    tune,
};
use rtproof_judge::{
    Finding, FirstSentence, Intent, application, checks,
    report::MachineSummary,
    units,
    unknowns::{UnknownGroup, unknown_groups},
};
use rtproof_measure::LiveTasks;
use rtproof_render::page::{FindingDetail, Terminal};
use rtproof_run::{
    FirmwareTick,
    intent::{self, IntentOptions},
    parse,
};

use super::check_explain;
use crate::exit::{FailOn, TextOutput};
use crate::{IntentArgs, answers, exit, next, open_files, open_root};

pub(super) const SCHEMA: &str = "rtproof/check/2";

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
  uname -a >uname && rtproof check uname /proc/cmdline /proc/interrupts
  rtproof check --format junit --fail-on bad --skip swap='hibernation is wanted' >check.xml")]
pub struct Args {
    /// What to do instead of an audit
    #[command(subcommand)]
    pub command: Option<CheckCommand>,

    /// Files to read in place of this machine: what --root takes, or several texts of one machine
    /// (/proc/cmdline, /proc/interrupts, /proc/cpuinfo, .config, uname -a, lscpu, sysctl -a, dmesg,
    /// ps -eLo pid,ppid,tid,cls,rtprio,ni,psr,comm, ethtool); the content decides
    #[arg(value_name = "FILE", conflicts_with_all = ["root", "pid", "unit", "prove"])]
    pub files: Vec<PathBuf>,

    /// Read a captured machine: a file of `rtproof capture`; a folder that holds its /proc, /sys,
    /// /etc and /boot, or is its /proc or /sys; a report of sos or must-gather (.tar.xz, .tar.gz or
    /// its folder); or a kernel's whole build configuration alone (.config, config.gz)
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
    /// else a proposal for this machine
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
        value_parser = super::check_proof::parse_name,
        conflicts_with = "root",
        help = super::check_proof::help()
    )]
    /// Trials to run.
    pub prove: Vec<super::check_proof::WantedTrial>,

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
        default_value = super::check_proof::MEMORY_DEFAULT,
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
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub format: CheckFormat,

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
pub enum CheckCommand {
    /// Explain a check: what it reads and wants, why, how to set and undo it; without an id, list
    /// all
    Explain(check_explain::Args),
    /// The list of what to set in the firmware: show it, and tick what someone looked at
    Tick(TickArgs),
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
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
    pub(super) schema: &'static str,
    /// The machine in short.
    machine: MachineSummary,
    /// What comes before all findings, where one thing decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<FirstSentence>,
    /// What it was looked at for.
    pub(super) intent: rtproof_results::IntentShown,
    /// Answers of the checks.
    findings: Vec<Finding>,
    /// Those that are unknown, by their reason.
    unknown: Vec<UnknownGroup>,
    /// Of the application, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) application: Option<Application>,
    /// Of the trials, where some were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) proofs: Vec<super::check_proof::TrialProof>,
}

/// Runs the command.
///
/// # Errors
/// A root that is no captured machine; CPUs, checks, a process or a unit that are not there.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    match &args.command {
        Some(CheckCommand::Explain(explain)) => return check_explain::run_check_explain(explain),
        Some(CheckCommand::Tick(tick)) => return run_tick(tick),
        None => {}
    }
    let selection = Selection::of(&args.only)?;
    let profile = args.intent.requested().resolve()?;
    let root = match args.files.is_empty() {
        true => open_root(args.root.as_deref())?,
        false => open_files(&args.files)?,
    };
    let app = read_application(&root, args.pid, args.unit.as_deref())?;
    let mut facts = Facts::read(&root);
    let stated = IntentOptions {
        cpus: args.cpus.clone(),
        priority: args.priority,
        period_ns: args.period_ns,
        budget_ns: args.budget_ns,
        ..IntentOptions::default()
    };
    let mut intent = profile.intent(stated, &facts)?;
    intent.user = intent::user(&root, args.user.as_deref())?;
    let mut application = None;
    if let Some(app) = &app {
        let open = (args.priority.is_none(), args.cpus.is_none());
        refine(&mut intent, open, &facts, app);
        application = Some(Application::judge(&facts, app, &intent));
        facts = application::without_own(&facts, app);
    }
    let findings = checks::judge_all(&facts, &intent);
    // Who asks for some checks, or for an application, asks something else.
    let is_whole = args.only.is_empty() && app.is_none() && args.prove.is_empty();
    let first = is_whole.then(|| checks::first_sentence(&facts, &intent, &findings)).flatten();
    let mut audit = Audit {
        schema: SCHEMA,
        machine: MachineSummary::of(&facts),
        first,
        intent: rtproof_results::IntentShown::of(&intent),
        findings: selection.of_findings(findings),
        unknown: Vec::new(),
        application,
        proofs: Vec::new(),
    };
    audit.unknown = unknown_groups(&audit.findings, audit.machine.copy.as_ref());
    let (cpus, priority) = match &app {
        // Values taken from the application; `tune` and `prove` do not read them.
        Some(_) => (audit.cpus(), Some(intent.priority)),
        None => (args.cpus.clone(), args.priority),
    };
    let given = next::GivenOptions {
        intent: &args.intent,
        cpus: cpus.as_deref(),
        priority,
        period_ns: args.period_ns,
        budget_ns: args.budget_ns,
        user: args.user.as_deref(),
    };
    let answer = |audit: &Audit| {
        let findings = audit.all();
        let first = audit.first.as_ref();
        // `tune plan` takes one path.
        let root = args.root.as_deref().or(args.files.first().map(PathBuf::as_path));
        let mut answer = answers::check_answer(first, &findings, &given, &args.only, root);
        answer.next = answer.next.filter(|_| args.files.len() < 2);
        answer
    };
    let first = answer(&audit);
    let is_text = !args.json && args.format == CheckFormat::Text;
    let detail = FindingDetail { all: args.all, verbose: crate::is_verbose() };
    // What is known is shown before the trials, which take seconds.
    TextOutput::new(!is_text).print(|to| {
        rtproof_render::page::answer_text(to, &first)?;
        rtproof_render::page::audit(to, &audit.machine, &audit.intent, &audit.findings, detail)?;
        if let Some(application) = &audit.application {
            application.print(to, detail)?;
        }
        match args.prove.is_empty() {
            true => rtproof_render::page::answer_again(to, &first),
            false => Ok(()),
        }
    })?;
    if !args.prove.is_empty() {
        let bounds = super::check_proof::Bounds {
            duration_ns: args.prove_for_ns,
            memory_bytes: args.prove_memory_bytes,
        };
        audit.proofs = super::check_proof::prove(&args.prove, bounds, &root, &facts, &intent)?;
        let proven: Vec<&Finding> = audit.proofs.iter().map(|proof| &proof.finding).collect();
        TextOutput::new(!is_text).print(|to| rtproof_render::page::proofs(to, &proven, detail))?;
        // The trials may have found more.
        TextOutput::new(!is_text)
            .print(|to| rtproof_render::page::answer_text(to, &answer(&audit)))?;
    }
    let all = audit.all();
    match if args.json { CheckFormat::Json } else { args.format } {
        CheckFormat::Text => {}
        CheckFormat::Json => TextOutput::new(true).print_json(&answer(&audit).with(&audit))?,
        CheckFormat::Sarif => {
            TextOutput::new(true).print_json(&rtproof_render::sarif::log(&audit.machine, &all))?
        }
        CheckFormat::Junit => {
            let fail_on = args.fail_on.unwrap_or(FailOn::Bad);
            let xml = rtproof_render::sarif::suites(&audit.machine, &all, fail_on.status());
            TextOutput::new(false).print(|to| to.write_all(xml.as_bytes()))?;
        }
    }
    Ok(match args.fail_on {
        Some(fail_on) => fail_on.exit(&all),
        None => exit::of_findings(&all),
    })
}

impl Audit {
    /// The CPUs that it was made for.
    pub(super) fn cpus(&self) -> Option<String> {
        (!self.intent.rt_cpus.is_empty()).then(|| self.intent.rt_cpus.to_string())
    }

    /// Every finding: of the machine, of the application, of the trials.
    pub(super) fn all(&self) -> Vec<Finding> {
        let of_application = self.application.iter().flat_map(|application| &application.findings);
        let proven = self.proofs.iter().map(|proof| &proof.finding);
        self.findings.iter().chain(of_application).chain(proven).cloned().collect()
    }
}

// The application of `--pid` and `--unit`: whether it is really real-time.

/// Result for an application; its JSON form, too.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Application {
    /// Id of the main process.
    pid: u32,
    /// Service or scope, where it runs in one.
    unit: Option<String>,
    /// Name of the main process.
    name: String,
    /// Number of processes that were read.
    processes: usize,
    /// Number of their threads.
    threads: usize,
    pub(super) findings: Vec<Finding>,
}

/// The application asked for, if there is one.
///
/// # Errors
/// Usage: no such process or unit, one that does not run or may not be read.
pub(super) fn read_application(
    root: &Root,
    pid: Option<u32>,
    unit: Option<&str>,
) -> anyhow::Result<Option<App>> {
    let target = match (pid, unit) {
        (Some(pid), _) => Target::Pid(pid),
        (None, Some(unit)) => Target::Unit(unit.into()),
        (None, None) => return Ok(None),
    };
    App::read(root, &target).map(Some).map_err(|error| exit::usage(error.to_string()))
}

/// Takes from the application what is open: its highest priority, and its CPUs if they are
/// real-time CPUs. An application beside the isolated CPUs is for `app-affinity` to find.
fn refine(
    intent: &mut Intent,
    (is_priority_open, are_cpus_open): (bool, bool),
    facts: &Facts,
    app: &App,
) {
    if is_priority_open {
        intent.priority = application::priority(app).unwrap_or(intent.priority);
    }
    let own = application::real_time_cpus(app);
    let within = own.filter(|own| own.difference(&intent.rt_cpus).is_empty());
    if let Some(own) = within.filter(|_| are_cpus_open) {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
        intent.housekeeping = online.difference(&own).difference(&isolated);
        intent.rt_cpus = own;
        intent.proposed = None;
    }
}

impl Application {
    /// Answers every question about an application.
    pub(super) fn judge(facts: &Facts, app: &App, intent: &Intent) -> Self {
        Self {
            pid: app.pid,
            unit: app.unit.value().cloned().flatten(),
            name: app.name.clone(),
            processes: app.processes.len(),
            threads: app.thread_count(),
            findings: application::judge_all(facts, app, intent),
        }
    }

    /// Prints it as text.
    pub(super) fn print(&self, to: &mut Terminal, detail: FindingDetail) -> io::Result<()> {
        let unit = self.unit.as_ref().map_or_else(String::new, |unit| format!(", {unit}"));
        let others = match self.processes {
            0 | 1 => String::new(),
            more => format!(" of {more} processes"),
        };
        let threads = units::count(self.threads, "thread");
        let head = format!("{} (pid {}{unit}, {threads}{others})", self.name, self.pid);
        rtproof_render::page::application(to, &head, &self.findings, detail)
    }
}

// `--only`: which checks are shown and counted.

/// The checks asked for; `None`: all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection(Option<BTreeSet<&'static str>>);

impl Selection {
    /// Ids and names of sections.
    pub(super) fn of(only: &[String]) -> anyhow::Result<Self> {
        let mut ids = BTreeSet::new();
        for word in only.iter().map(|word| word.trim()).filter(|word| !word.is_empty()) {
            let section = checks::sections().iter().find(|section| section.name == word);
            match (section, checks::by_id(word)) {
                (Some(section), _) => ids.extend(section.checks.iter().map(|check| check.id)),
                (None, Some(check)) => {
                    ids.insert(check.id);
                }
                (None, None) => {
                    let why = intent::known(word).err().unwrap_or_default();
                    return Err(exit::usage(format!("--only {word}: {why}")));
                }
            }
        }
        if ids.is_empty() && !only.is_empty() {
            return Err(exit::usage("--only: no check is named; write e.g. --only thp,power"));
        }
        Ok(Self((!only.is_empty()).then_some(ids)))
    }

    /// The findings of these checks.
    fn of_findings(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        if let Some(ids) = &self.0 {
            findings.retain(|finding| ids.contains(finding.check.as_str()));
        }
        findings
    }
}

// `rtproof check tick`: the list of firmware items, and which user checked them.

/// Arguments of `check tick`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof check tick
  rtproof check tick smt turbo
  rtproof check tick c-states --as kept --note 'limited in the system, see cpuidle-states'
  rtproof check tick usb-legacy --as absent
  rtproof check tick smt --remove

The ticks are kept in /etc/rtproof-firmware.conf, with day, user and version of the firmware. They
change nothing else: set the firmware by hand.")]
pub struct TickArgs {
    /// Items, or all; none: show the list
    #[arg(value_name = "ITEM")]
    pub items: Vec<String>,

    /// What the set-up says
    #[arg(long = "as", value_enum, value_name = "FOUND", default_value_t = FirmwareChoiceArg::Set)]
    pub found: FirmwareChoiceArg,

    /// A remark; the reason, where a setting is kept otherwise
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub note: String,

    /// Who looked; default: the user who asks
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,

    /// Remove the ticks of these items
    #[arg(long, requires = "items", conflicts_with_all = ["found", "note", "by"])]
    pub remove: bool,

    /// Work on the machine in a folder that holds its /proc, /sys and /etc; without items, also a
    /// file of `rtproof capture`
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Print the list as JSON, as `check explain bios-profile` does
    #[arg(long)]
    pub json: bool,
}

/// [`FirmwareChoice`], on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FirmwareChoiceArg {
    /// As advised
    Set,
    /// Otherwise, on purpose: --note says why
    Kept,
    /// There is no such setting
    Absent,
}

/// Runs the command.
///
/// # Errors
/// Usage: no such item. A machine that cannot be changed, a firmware without a version.
pub(super) fn run_tick(args: &TickArgs) -> anyhow::Result<u8> {
    if !args.items.is_empty() {
        let root = open_root(args.root.as_deref())?;
        let machine = tune::Machine::to_undo(&root, &LiveTasks)?;
        let found = match args.found {
            FirmwareChoiceArg::Set => FirmwareChoice::Set,
            FirmwareChoiceArg::Kept => FirmwareChoice::Kept,
            FirmwareChoiceArg::Absent => FirmwareChoice::Absent,
        };
        let who = || {
            Ok::<_, anyhow::Error>(rtproof_run::current_user(intent::user(&root, None)?.as_ref()))
        };
        let look = FirmwareTick {
            items: args.items.clone(),
            found: (!args.remove).then_some(found),
            note: args.note.clone(),
            user: args.by.clone().map_or_else(who, Ok)?,
        };
        rtproof_run::tick(&machine, &look)?;
    }
    check_explain::run_check_explain(&check_explain::Args {
        ids: vec!["bios-profile".into()],
        root: args.root.clone(),
        json: args.json,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(only: &str) -> Result<usize, String> {
        let words: Vec<String> = only.split(',').map(str::to_owned).collect();
        let selection = Selection::of(&words).map_err(|error| error.to_string())?;
        Ok(selection.0.map_or(0, |ids| ids.len()))
    }

    #[test]
    fn ids_and_sections() {
        assert_eq!(of("thp,swap,thp"), Ok(2));
        assert!(of("memory").unwrap() > 2);
        assert_eq!(Selection::of(&[]).unwrap(), Selection(None));
        assert!(of("tph").unwrap_err().contains("no such check"));
        assert!(of(" ,").unwrap_err().contains("no check is named"));
    }
}
