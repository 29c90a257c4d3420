//! `rtproof explain`: why was it late: a run, another tool's trace, a running application.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    Facts, Root,
    tracefs::{self, KNOWN, Known},
};
use rtproof_judge::{causes::Spikes, checks, rules::Compliance, units};
use rtproof_results::{Answer, LocksFound, Tone, launch::Rules};
use rtproof_run::{
    explain::{self, Explained, InputKind, ProcessTarget},
    intent::{IntentOptions, RequestedIntent},
    parse,
    rules::{Attached, observe},
    trace::{self, TraceOptions},
};
use rtproof_trace::scan::Subjects;

use crate::exit::TextOutput;
use crate::{answers, exit, next};

/// Arguments of `explain`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof explain prove-pi5-20261121T020304.rtproof --worst 3
  rtproof explain prove-pi5-20261121T020304.rtproof --spike 2 --perfetto spike.pftrace
  rtproof explain trace.dat --task cyclictest --over 200us
  rtproof explain --pid 4711 --for 10s
  rtproof explain --comm control --over 50us --json
  rtproof explain --pid 4711 --rules --for 10s --junit rules.xml

A running application is not changed and need not know: each wake-up of its threads that was late \
is explained, whatever woke it. Kernel events are recorded in an instance of tracefs of our own, \
which is gone at the end.

With --rules its real-time threads are checked against the rules of `rtproof run --rules` instead. \
Exit codes then: 0 all kept, 2 one broken, 3 not known. Ctrl-C ends the observation, not the \
application.")]
pub struct Args {
    /// A record, a trace.dat of trace-cmd, or a copy of the kernel's trace file (nop, wakeup_rt);
    /// default: the newest record in this folder
    #[arg(conflicts_with_all = ["pid", "comm"])]
    pub file: Option<PathBuf>,

    /// All threads of a running process
    #[arg(long, value_name = "PID", conflicts_with = "comm")]
    pub pid: Option<u32>,

    /// All running threads of this name
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,

    /// How long a running application is watched
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "10s",
        value_parser = parse::run_duration
    )]
    pub duration_ns: u64,

    /// Threads of this name in a foreign trace; default: all of real-time priority
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Thread with this id in a foreign trace
    #[arg(long, value_name = "TID")]
    pub tid: Option<i32>,

    /// Wake-ups later than this, in a foreign trace or of a running application
    #[arg(
        long = "over",
        value_name = "TIME",
        default_value = "100us",
        value_parser = parse::budget
    )]
    pub over_ns: u64,

    /// Only the spike of this number
    #[arg(long, value_name = "N")]
    pub spike: Option<u32>,

    /// Show the N worst spikes in full
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub worst: usize,

    /// Write the spike (the worst, or that of --spike) for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,

    /// Write its events as a trace.dat, for trace-cmd and KernelShark
    #[arg(long = "trace-dat", value_name = "FILE")]
    pub trace_dat: Option<PathBuf>,

    /// With --pid: check the rules of a real-time program (page faults, memory, system calls,
    /// sleeps, locks, output, migrations, signals, class) in the place of its wake-ups
    #[arg(
        long,
        requires = "pid",
        conflicts_with_all = ["file", "comm", "task", "tid", "spike", "perfetto", "trace_dat"]
    )]
    pub rules: bool,

    /// Write the rules as JUnit XML to this file, a case each
    #[arg(long, value_name = "FILE", requires = "rules")]
    pub junit: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Version of the JSON that `--json` prints.
const SCHEMA: &str = "rtproof-explain-1";

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Document<'a> {
    answer: Answer,
    schema: &'static str,
    about: &'a str,
    notes: &'a [String],
    gaps: &'a [String],
    doubts: &'a [String],
    spikes: &'a Spikes,
    #[serde(skip_serializing_if = "Option::is_none")]
    locks: Option<&'a LocksFound>,
}

/// Runs the command. 0: explained, or nothing was late; 3: late wake-ups could not be explained,
/// there was no wake-up to look at, or none was late but some may be missing.
///
/// # Errors
/// Files that cannot be read, threads that are not there, kernel events that are not available.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let (Some(pid), true) = (args.pid, args.rules) {
        return run_rules(pid, args.duration_ns, args.junit.as_deref(), args.json);
    }
    let mut explained = explain_request(args)?;
    if let Some(number) = args.spike {
        let count = explained.spikes.worst.len();
        if explained.spike(number).is_none() {
            let text = format!("--spike {number}: there is no such spike; {count} are kept");
            return Err(exit::usage(text));
        }
        explained.spikes.worst.retain(|spike| spike.number == number);
    }
    export(args, &explained)?;
    let is_live = args.pid.is_some() || args.comm.is_some();
    let answer = answers::explain_answer(&explained, next(is_live, &explained));
    show(&explained, answer, args.worst, args.json)
}

/// Prints what was found. Returns how the command ends.
pub(super) fn show(
    explained: &Explained,
    answer: Answer,
    worst: usize,
    json: bool,
) -> anyhow::Result<u8> {
    let text = TextOutput::new(json);
    let Explained { about, notes, spikes, locks, gaps, doubts, .. } = explained;
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::page::explained_head(to, about, notes)?;
        if explained.no_wake_ups {
            return Ok(());
        }
        // The worst follow in full.
        let table = Spikes { worst: Vec::new(), ..spikes.clone() };
        rtproof_render::page::spikes(to, &table, None)
    })?;
    for spike in explained.spikes.worst.iter().take(worst) {
        let window = explained.window(spike.number);
        text.print(|to| {
            writeln!(to)?;
            rtproof_render::page::explanation(to, &spike.explanation, window)
        })?;
    }
    text.print(|to| match locks {
        Some(locks) => rtproof_render::page::locks(to, locks),
        None => Ok(()),
    })?;
    text.print(|to| rtproof_render::page::next_text(to, answer.next.as_deref()))?;
    let locks = locks.as_ref();
    text.print_json(&Document {
        answer,
        schema: SCHEMA,
        about,
        notes,
        gaps,
        doubts,
        spikes,
        locks,
    })?;
    let none = explained.no_wake_ups || explained.spikes.seen == 0 && explained.is_open();
    let is_open = none || explained.spikes.seen > 0 && explained.spikes.explained == 0;
    Ok(if is_open { exit::NOT_PROVEN } else { exit::ACCEPTED })
}

/// The knob that removes the causes, where this machine has one, else their description.
pub(super) fn next(is_live: bool, explained: &Explained) -> Option<String> {
    let fix = match &explained.report {
        Some(report) => next::fix(report),
        None if is_live => {
            let facts = Facts::read(&Root::live());
            let intent = RequestedIntent::default().resolve().ok()?;
            let intent = intent.intent(IntentOptions::default(), &facts).ok()?;
            next::fix_of(&explained.spikes, &checks::judge_all(&facts, &intent))
        }
        None => None,
    };
    fix.or_else(|| answers::known_cause(&explained.spikes))
}

fn explain_request(args: &Args) -> anyhow::Result<Explained> {
    let process = match (args.pid, &args.comm) {
        (Some(pid), _) => Some(ProcessTarget::Process(pid)),
        (None, Some(name)) => Some(ProcessTarget::Named(name.clone())),
        (None, None) => None,
    };
    if let Some(process) = process {
        return explain::live(&process, args.duration_ns, args.over_ns);
    }
    let path = match &args.file {
        Some(path) => path.clone(),
        None => newest(Path::new("."))?,
    };
    for target in [&args.perfetto, &args.trace_dat].into_iter().flatten() {
        rtproof_host::door::check_target(&path, target)?;
    }
    match InputKind::of(&path)? {
        InputKind::Record => explain::of_record(&path),
        InputKind::TraceDat(file) => {
            explain::of_trace_dat(&path, file, &subjects(args), args.over_ns)
        }
        InputKind::Text(text) => explain::of_text(&path, &text, &subjects(args), args.over_ns),
    }
}

fn subjects(args: &Args) -> Subjects {
    Subjects {
        tids: args.tid.into_iter().collect(),
        comms: args.task.iter().cloned().collect(),
        all_real_time: args.tid.is_none() && args.task.is_none(),
        keeps: false,
    }
}

/// The record that was written last.
#[expect(clippy::disallowed_methods, reason = "the user's own folder")]
fn newest(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let records = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_record = path.extension().is_some_and(|extension| extension == "rtproof");
        let modified = path.metadata().ok()?.modified().ok()?;
        is_record.then_some((modified, path))
    });
    records.max().map(|(_, path)| path).ok_or_else(|| {
        exit::usage(
            "there is no record (*.rtproof) in this folder: name one, or a trace, or a running \
             application with --pid or --comm",
        )
    })
}

fn export(args: &Args, explained: &Explained) -> anyhow::Result<()> {
    if args.perfetto.is_none() && args.trace_dat.is_none() {
        return Ok(());
    }
    let worst = explained.spikes.worst.first();
    let found = worst.and_then(|spike| Some((spike, explained.window(spike.number)?)));
    let Some((spike, window)) = found else {
        let over = units::ns(explained.spikes.threshold_ns);
        anyhow::bail!("nothing to write: no wake-up was more than {over} late");
    };
    explain::export(spike, window, args.perfetto.as_deref(), args.trace_dat.as_deref())
}

// `rtproof explain --pid PID --rules`: the rules of a real-time program that already runs.

/// Version of the JSON that `--json` prints.
pub const RULES_SCHEMA: &str = "rtproof/explain-rules/1";

/// What `--json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RulesDocument {
    answer: Answer,
    schema: &'static str,
    pid: u32,
    name: String,
    rules: Rules,
}

/// Runs the command. 0: all rules kept; 2: one is broken; 3: not known.
///
/// # Errors
/// No such process; a file that cannot be written.
fn run_rules(pid: u32, for_ns: u64, junit: Option<&Path>, json: bool) -> anyhow::Result<u8> {
    let title = |path: &Path| path.display().to_string();
    if let Some(path) = junit.filter(|path| !path.starts_with("/dev")) {
        // Before the time is spent: what was found would be lost.
        rtproof_host::door::try_new(path).with_context(|| title(path))?;
    }
    let Attached { pid, name, rules } = observe(pid, for_ns)?;
    if let Some(path) = junit {
        let program = format!("{name} ({pid})");
        let xml = rtproof_render::sarif::rules("rtproof explain --rules", &program, &rules);
        let written = rtproof_host::door::write_whole(path, |to| Ok(to.write_all(xml.as_bytes())?));
        written.with_context(|| title(path))?;
    }
    let (tone, code) = match rules.answer {
        Compliance::Kept => (Tone::Good, exit::ACCEPTED),
        Compliance::Broken => (Tone::Bad, exit::REFUSED),
        Compliance::NotKnown => (Tone::Doubtful, exit::NOT_PROVEN),
    };
    let result = format!("{name} (process {pid}): rules {}", rules.text);
    let answer = Answer { result, tone, ..Answer::default() };
    let text = TextOutput::new(json);
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::page::rules(to, &rules, false)
    })?;
    text.print_json(&RulesDocument { answer, schema: RULES_SCHEMA, pid, name, rules })?;
    Ok(code)
}

// `rtproof trace`: drives one of the kernel's own tracers, and explains at once what it kept.

/// Arguments of `trace`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof trace wakeup_rt --for 30s --over 100us
  rtproof trace wakeup_rt --over 50us --out latency.txt
  rtproof trace irqsoff --cpus 2-3 --no-functions
  rtproof trace function_graph --for 2s --only 'hrtimer_*' --only '*_softirq*' --json
  rtproof trace timerlat --for 1m --over 50us

The tracer runs in an instance of tracefs of our own, which is gone at the end. Where the kernel runs \
a tracer in no instance (function_graph before Linux 6.11), it runs at the top, and everything is put \
back. Settings that the whole machine shares are put back too, also when rtproof is killed. What \
others trace is not disturbed: a tracer in use is refused.

wakeup*, irqsoff, preemptoff and preemptirqsoff record the calls of functions by default, which makes \
every latency longer; --no-functions leaves them out.")]
pub struct TraceArgs {
    /// Tracer of the kernel
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(KNOWN.iter().map(|of| of.name)))]
    pub tracer: String,

    /// How long it runs
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "10s",
        value_parser = parse::run_duration
    )]
    pub duration_ns: u64,

    /// Latencies longer than this are explained
    #[arg(
        long = "over",
        value_name = "TIME",
        default_value = "100us",
        value_parser = parse::budget
    )]
    pub over_ns: u64,

    /// Trace these CPUs only; wake-ups by other CPUs are not seen then [default: all]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Leave out the calls of functions (wakeup*, *off)
    #[arg(long)]
    pub no_functions: bool,

    /// Trace only functions that match, e.g. 'hrtimer_*' (function, function_graph)
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,

    /// Threads of this name (nop, function, function_graph) [default: all of real-time priority]
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Keep the text of the kernel in this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Show the N worst in full
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub worst: usize,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. 0: explained, or nothing was late; 3: not known.
///
/// # Errors
/// The kernel lacks the tracer or refuses it, or another user runs it.
pub fn run_trace(args: &TraceArgs) -> anyhow::Result<u8> {
    let traced = trace::trace(&options(args)?)?;
    let next = next(true, &traced.explained);
    let answer = answers::trace_answer(&args.tracer, &traced, args.over_ns, next);
    let is_open = answers::is_open(&traced, args.over_ns);
    let code = show(&traced.explained, answer, args.worst, args.json)?;
    Ok(if is_open { exit::NOT_PROVEN } else { code })
}

fn options(args: &TraceArgs) -> anyhow::Result<TraceOptions> {
    let known: Option<&'static Known> = tracefs::find_tracer(&args.tracer);
    let tracer = known.ok_or_else(|| exit::usage(format!("no tracer {:?}", args.tracer)))?;
    Ok(TraceOptions {
        tracer,
        duration_ns: args.duration_ns,
        over_ns: args.over_ns,
        cpus: args.cpus.clone(),
        functions: !args.no_functions,
        only: args.only.clone(),
        task: args.task.clone(),
        out: args.out.clone(),
    })
}
