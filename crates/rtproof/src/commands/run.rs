//! `rtproof run`: starts a program as a real-time application, and undoes everything at its end.

use std::{ffi::OsString, io::Write as _, path::PathBuf};

use serde::Serialize;

use rtproof_judge::{Report, rules::Compliance};
use rtproof_render::{
    page::{Glyphs, Terminal},
    sections::launch as text,
};
use rtproof_results::{
    Ended,
    launch::{BudgetAnswer, LaunchPlan, Launched, RecordProof},
};
use rtproof_run::{
    launch::{
        self, Confinement, LatencyLimit, LaunchError, LaunchObserver, LaunchPolicy, MemoryPolicy,
        Options, Proved, WantedRecord,
    },
    parse,
    rules::{Ready, RequestedRules},
    tune::{self, making},
};

use super::prove::JudgedArgs;
use crate::{exit, next, open_root};

/// When a program counts as ready that does not report it.
const READY: Ready = Ready::After(2_000_000_000);

/// Arguments of `run`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof run --plan --cpus 1 --priority 80 -- ./control --axes 6
  rtproof run --cpus 1 --priority 80 -- ./control --axes 6
  rtproof run --cpus 1 --budget 100us --json got.json -- ./control
  rtproof run --cpus 1 --rules --rules-after 3s --junit rules.xml -- ./control
  rtproof run --runtime 200us --period 1ms -- ./control
  rtproof run --user robot --caps none --cpus 1 -- ./control
  rtproof run --cpus 1 --budget 100us --unit control.service
  rtproof run --policy other --no-trace -- /bin/true

With --cpus the program gets these CPUs for itself, and what --tune names is changed while it runs.
Old values are in a journal before (rtproof tune status), and are restored when the program and the
processes that it started have ended, also when rtproof is killed. Without --cpus the machine is
left as it is.

stdout and stdin belong to the program. What it got goes to stderr, and as JSON to --json FILE.

Signals INT, TERM, HUP, QUIT, USR1, USR2, CONT and TSTP are passed on. 5 s after INT or TERM the
machine is as it was though the program still runs; the same one again undoes at once and kills it.

With --budget its wake-ups are recorded, judged as prove judges, and sealed (*.rtproof, *.html).

With --rules each thread and process of the program is observed. What its real-time threads (fifo,
rr, deadline) do after it is ready is judged. That goes on until it ends, or a signal to end it is
passed on.

Exit codes: that of the program; 128+N where signal N ended it. With --budget or --rules, where the
program ended with 0: 2 exceeded, refused, or a rule broken; 3 not proven, or it cannot be known. Its own: 64 usage, 125 not started
or not all undone, 126 cannot be executed, 127 no such program.")]
pub struct Args {
    /// CPUs for the program alone, e.g. 2-3; never all
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// How it is kept on its CPUs: auto (a partition of cgroup v2 where one can be made, else
    /// affinity), partition, affinity
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub place: PlaceArg,

    /// fifo (default), rr, deadline (default with --runtime), other
    #[arg(long, value_name = "POLICY", value_enum)]
    pub policy: Option<LaunchPolicyArg>,

    /// Priority with fifo and rr, 1 to 99; default: 80
    #[arg(long, value_name = "N", value_parser = parse::priority)]
    pub priority: Option<u32>,

    /// Runtime per period with --policy deadline
    #[arg(long = "runtime", value_name = "TIME", value_parser = parse::time)]
    pub runtime_ns: Option<u64>,

    /// Deadline with --policy deadline; default: the period
    #[arg(long = "deadline", value_name = "TIME", value_parser = parse::time)]
    pub deadline_ns: Option<u64>,

    /// Period with --policy deadline
    #[arg(long = "period", value_name = "TIME", value_parser = parse::time)]
    pub period_ns: Option<u64>,

    /// Give it a cookie of core scheduling: no other task runs on the other thread of its core at
    /// the same time (Linux 5.14 and later, with SMT)
    #[arg(long)]
    pub core_sched: bool,

    /// Memory nodes that it is bound to: local (those of its CPUs) or a list; default: the kernel's
    /// choice
    #[arg(long, value_name = "NODES")]
    pub numa: Option<String>,

    /// Checks whose findings are acted on while the program runs, or none; default: irq-affinity,
    /// irqbalance, kthread-affinity, workqueue-cpumask, and with fifo and rr rt-throttling and
    /// fair-server
    #[arg(long, value_name = "ID,...")]
    pub tune: Option<String>,

    /// Limit on the exit latency of idle states that is held, or off; default: 0us for a real-time
    /// policy
    #[arg(long = "dma-latency", value_name = "TIME")]
    pub dma_latency: Option<String>,

    /// Start this service of systemd instead of a program: its own file stays as it is, and a
    /// drop-in file below /run has the settings until it ends
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = [
            "command", "user", "capabilities", "core_sched", "best_effort",
        ]
    )]
    pub unit: Option<String>,

    /// Run it as this user: a name of /etc/passwd, UID or UID:GID
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    /// Capabilities that it keeps, e.g. sys_nice,ipc_lock, or none; default: all that it has
    #[arg(long = "caps", value_name = "LIST")]
    pub capabilities: Option<String>,

    /// Show what would be set, and change and start nothing
    #[arg(long)]
    pub plan: bool,

    /// Start it with what can be set, and say what cannot; without, nothing is started then
    #[arg(long)]
    pub best_effort: bool,

    /// Do not record kernel events: no wake-up latency, no names of those that preempt
    #[arg(long)]
    pub no_trace: bool,

    /// Latency budget of its wake-ups
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// How its record is judged.
    #[command(flatten)]
    pub judged: JudgedArgs,

    /// Where record and report of --budget go: a folder, or a file name without extension
    #[arg(short, long, value_name = "PATH", default_value = ".")]
    pub output: PathBuf,

    /// Make no record: --budget then says what was seen, with no confidence
    #[arg(long)]
    pub no_record: bool,

    /// Explain wake-ups later than this; default: the budget, else 100us
    #[arg(
        long = "over",
        value_name = "TIME",
        default_value = "100us",
        value_parser = parse::budget,
        conflicts_with = "budget_ns"
    )]
    pub over_ns: u64,

    /// Check the rules of a real-time program: page faults, memory, system calls, sleeps, locks,
    /// output, migrations, signals, class and CPUs, each breach with its place in the program
    #[arg(long)]
    pub rules: bool,

    /// When it is ready: a TIME from its start, `mark` (its first marked cycle, rtproof_mark.h), or
    /// `signal` (it sends SIGURG to its parent); default: 2s
    #[arg(long, value_name = "WHEN", requires = "rules", value_parser = ready)]
    pub rules_after: Option<Ready>,

    /// Check them for so long from then on; default: until it ends
    #[arg(long = "rules-for", value_name = "TIME", requires = "rules", value_parser = parse::time)]
    pub rules_for_ns: Option<u64>,

    /// Write the rules as JUnit XML to this file, a case each
    #[arg(long, value_name = "FILE", requires = "rules")]
    pub junit: Option<PathBuf>,

    /// Write what it got to this file, with --plan what would be set (there `-` is stdout)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write nothing to stderr but errors
    #[arg(short, long)]
    pub quiet: bool,

    /// Show all reasons, and what is left out
    #[arg(short, long)]
    pub verbose: bool,

    /// Change the values in this folder instead of the machine's: for tests
    #[arg(long, value_name = "DIR", hide = true)]
    pub root: Option<PathBuf>,

    /// The program and its arguments, after `--`
    #[arg(
        value_name = "PROGRAM",
        required_unless_present = "unit",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<OsString>,
}

/// [`Confinement`], on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum PlaceArg {
    /// A partition where one can be made, else affinity
    #[default]
    Auto,
    /// A partition of cgroup v2, or nothing is started
    Partition,
    /// The affinity of its threads
    Affinity,
}

/// [`LaunchPolicy`], on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LaunchPolicyArg {
    /// SCHED_FIFO
    Fifo,
    /// SCHED_RR
    Rr,
    /// SCHED_DEADLINE
    Deadline,
    /// SCHED_OTHER
    Other,
}

/// Runs the command. The exit code is the program's.
///
/// # Errors
/// None: each error of its own has its exit code, so that it is not taken for the program's.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let done = if args.plan { show_plan(args) } else { start(args) };
    done.or_else(|error| {
        let code = match &error {
            LaunchError::Usage(_) => exit::USAGE,
            LaunchError::NotFound(_) => exit::NOT_FOUND,
            LaunchError::NotExecutable(_) => exit::NOT_EXECUTABLE,
            LaunchError::Interrupted(_, signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            LaunchError::Failed(_) => exit::NOT_STARTED,
        };
        // Nowhere left to report a failure to print the error.
        let _ = crate::stderr_line(&format!("rtproof: {error}"));
        Ok(code)
    })
}

fn show_plan(args: &Args) -> Result<u8, LaunchError> {
    let root = open_root(args.root.as_deref())?;
    let planned = launch::plan(&root, &options(args)?)?;
    let plan: &LaunchPlan = &planned.plan;
    let is_stdout = args.json.as_deref().is_some_and(|path| path.as_os_str() == "-");
    match &args.json {
        Some(path) if !is_stdout => write_json(path, plan)?,
        _ => {}
    }
    let out = exit::TextOutput::new(is_stdout);
    let shown = out.print(|to| text::plan(to, plan, args.verbose));
    shown.and_then(|()| out.print_json(plan)).map_err(anyhow::Error::from)?;
    Ok(if plan.cannot.is_empty() || args.best_effort { exit::ACCEPTED } else { exit::NOT_STARTED })
}

fn start(args: &Args) -> Result<u8, LaunchError> {
    for (option, path) in [("--json", &args.json), ("--junit", &args.junit)] {
        let Some(path) = path else { continue };
        let is_stdout = path.as_os_str() == "-";
        if is_stdout {
            let text =
                format!("{option} -: stdout belongs to the program; name a file, or /dev/stderr");
            return Err(exit::usage(text).into());
        }
        // Before anything is set: what it got would be lost.
        if !path.starts_with("/dev") {
            rtproof_host::door::try_new(path)
                .map_err(|error| anyhow::Error::from(error).context(path.display().to_string()))?;
        }
    }
    let root = open_root(args.root.as_deref())?;
    let options = options(args)?;
    let lines = &mut Lines { quiet: args.quiet };
    // Before the plan: what is left of a run that was killed would look as if it were wanted.
    launch::recover(&root, lines)?;
    let planned = launch::plan(&root, &options)?;
    let launch::LaunchResult { mut launched, proved } =
        launch::start(&root, &options, planned, lines)?;
    let proven = proved.map(|proved| proof(&mut launched, proved)).transpose()?;
    if let Some(path) = &args.json {
        write_json(path, &launched)?;
    }
    if let (Some(path), Some(rules)) = (&args.junit, &launched.rules) {
        let xml =
            rtproof_render::sarif::rules("rtproof run --rules", &launched.command.join(" "), rules);
        let written = rtproof_host::door::write_whole(path, |to| Ok(to.write_all(xml.as_bytes())?));
        written.map_err(|error| LaunchError::Failed(error.context(path.display().to_string())))?;
    }
    if !args.quiet {
        let mut sheet = Terminal::new(100, Glyphs::BLOCKS);
        text::launched(&mut sheet, &launched, args.verbose).map_err(anyhow::Error::from)?;
        text::proof(&mut sheet, &launched, proven.flatten().as_ref())
            .map_err(anyhow::Error::from)?;
        let mut stderr = anstream::stderr().lock();
        // A reader that went away does not change what the program got.
        let _ = stderr.write_all(sheet.shown().as_bytes());
    }
    Ok(code(&launched))
}

/// Judges the record, seals it and writes its page. `None`: there is no record.
fn proof(
    launched: &mut Launched,
    proved: Result<Proved, String>,
) -> Result<Option<Report>, LaunchError> {
    let Proved { finishing, output } = match proved {
        Ok(proved) => proved,
        Err(why) => {
            launched.proof = Some(RecordProof::Missing { why });
            return Ok(None);
        }
    };
    let report = Report::new(&finishing.run, &finishing.integrity());
    let sealed = finishing.seal(&report).map_err(LaunchError::Failed)?;
    let page = crate::write_html(&output.html, &sealed.run, &report, None, None);
    let problems = [sealed.failure.as_ref(), page.as_ref().err()];
    launched.notes.extend(problems.into_iter().flatten().map(|error| format!("{error:#}.")));
    launched.proof = Some(RecordProof::Made {
        file: output.record.display().to_string(),
        page: page.is_ok().then(|| output.html.display().to_string()),
        sealed: sealed.failure.is_none(),
        verdict: Box::new(report.verdict.clone()),
    });
    Ok(Some(report))
}

/// The program's exit status, unless something of ours is worse.
fn code(launched: &Launched) -> u8 {
    let undone = launched
        .undone
        .as_ref()
        .map_or(Ended::Done, |undone| making::undo_ended(std::slice::from_ref(undone)));
    let budget = launched.verdict.as_ref().map(|verdict| match verdict.answer {
        BudgetAnswer::Within => exit::ACCEPTED,
        BudgetAnswer::Exceeded => exit::REFUSED,
        BudgetAnswer::CannotTell => exit::NOT_PROVEN,
    });
    let rules = launched.rules.as_ref().map(|rules| match rules.answer {
        Compliance::Kept => exit::ACCEPTED,
        Compliance::Broken => exit::REFUSED,
        Compliance::NotKnown => exit::NOT_PROVEN,
    });
    let proof = launched.proof.as_ref().map(|proof| match proof {
        RecordProof::Made { verdict, sealed, .. } => exit::of_answer(verdict.answer, *sealed),
        RecordProof::Missing { .. } => exit::NOT_PROVEN,
    });
    match (undone, launched.ending.status()) {
        (Ended::ToolFailed, _) => exit::NOT_STARTED,
        (_, 0) => {
            let answers = [budget, rules, proof];
            let is = |code| answers.contains(&Some(code));
            [exit::REFUSED, exit::NOT_PROVEN].into_iter().find(|&code| is(code)).unwrap_or(0)
        }
        (_, status) => status,
    }
}

/// When the program is ready.
fn ready(text: &str) -> Result<Ready, String> {
    match text {
        "mark" => Ok(Ready::Mark),
        "signal" => Ok(Ready::Signal),
        _ => parse::time(text)
            .map(Ready::After)
            .map_err(|error| format!("{error}; a TIME, e.g. 2s, or `mark`, or `signal`")),
    }
}

fn write_json(path: &std::path::Path, value: &impl Serialize) -> Result<(), LaunchError> {
    let written = rtproof_host::door::write_whole(path, |to| {
        let json = rtproof_host::text::json(&serde_json::to_string_pretty(value)?);
        Ok(writeln!(to, "{json}")?)
    });
    written.map_err(|error| LaunchError::Failed(error.context(path.display().to_string())))
}

fn options(args: &Args) -> Result<Options, LaunchError> {
    if args.unit.is_some() && matches!(args.place, PlaceArg::Partition) {
        let text = "--unit: systemd makes the groups of its services; --place affinity";
        return Err(exit::usage(text.to_owned()).into());
    }
    if args.unit.is_some() && args.rules_after == Some(Ready::Signal) {
        let text = "--rules-after signal: the parent of a service is systemd; give a TIME, or mark";
        return Err(exit::usage(text.to_owned()).into());
    }
    let latency = match args.dma_latency.as_deref() {
        None => LatencyLimit::Auto,
        Some("off") => LatencyLimit::Off,
        Some(text) => LatencyLimit::Us(
            tune::limit_us(text)
                .map_err(|why| exit::usage(format!("--dma-latency {text}: {why}")))?,
        ),
    };
    let words = args.command.iter().map(|word| next::quoted(&word.to_string_lossy()));
    let cpus = args.cpus.as_ref().map_or_else(String::new, |cpus| format!(" --cpus {cpus}"));
    let what = match &args.unit {
        Some(unit) => format!("--unit {}", next::quoted(unit)),
        None => format!("-- {}", words.collect::<Vec<_>>().join(" ")),
    };
    let title = format!("run{cpus} {what}");
    Ok(Options {
        command: args.command.clone(),
        unit: args.unit.clone(),
        title,
        cpus: args.cpus.clone(),
        place: match args.place {
            // systemd makes the groups of its services.
            PlaceArg::Auto if args.unit.is_some() => Confinement::Affinity,
            PlaceArg::Auto => Confinement::Auto,
            PlaceArg::Partition => Confinement::Partition,
            PlaceArg::Affinity => Confinement::Affinity,
        },
        policy: args.policy.map(|policy| match policy {
            LaunchPolicyArg::Fifo => LaunchPolicy::Fifo,
            LaunchPolicyArg::Rr => LaunchPolicy::Rr,
            LaunchPolicyArg::Deadline => LaunchPolicy::Deadline,
            LaunchPolicyArg::Other => LaunchPolicy::Other,
        }),
        priority: args.priority,
        runtime_ns: args.runtime_ns,
        deadline_ns: args.deadline_ns,
        period_ns: args.period_ns,
        core_sched: args.core_sched,
        memory: match args.numa.as_deref() {
            None => MemoryPolicy::Kernel,
            Some("local") => MemoryPolicy::Local,
            Some(list) => MemoryPolicy::Nodes(list.into()),
        },
        tune: args.tune.clone(),
        latency,
        user: args.user.clone(),
        capabilities: args.capabilities.clone(),
        best_effort: args.best_effort,
        no_trace: args.no_trace,
        budget_ns: args.budget_ns,
        over_ns: args.over_ns,
        record: args.budget_ns.filter(|_| !args.no_record && !args.no_trace).map(|_| {
            WantedRecord {
                output: args.output.clone(),
                requirement: args.judged.requirement(args.budget_ns),
            }
        }),
        rules: args.rules.then(|| RequestedRules {
            ready: args.rules_after.unwrap_or(READY),
            for_ns: args.rules_for_ns,
        }),
        root: args.root.clone(),
    })
}

/// What happens, in lines on stderr.
struct Lines {
    quiet: bool,
}

impl Lines {
    fn line(&self, text: &str) {
        if !self.quiet {
            // Nowhere left to report it.
            let _ = crate::stderr_line(&format!("rtproof: {text}"));
        }
    }
}

impl LaunchObserver for Lines {
    fn recovered(&mut self, journal: u32) {
        self.line(&format!("journal {journal} of a run that was killed is undone"));
    }

    fn started(&mut self, _: u32) {}

    fn processes_left(&mut self, processes: usize) {
        let word =
            if processes == 1 { "1 process".into() } else { format!("{processes} processes") };
        self.line(&format!(
            "the program has ended and left {word}: waiting for them; signals go to them now"
        ));
    }

    fn guard_replaced(&mut self) {
        self.line(
            "the process that undoes everything had died or was stopped: replaced by another",
        );
    }

    fn undone_early(&mut self, why: &str) {
        self.line(&format!("{why}: what was changed of the machine is undone"));
    }
}
