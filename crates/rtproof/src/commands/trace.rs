//! `rtproof trace`: drives one of the kernel's own tracers, and explains at once what it kept.

use std::path::PathBuf;

use rtproof_host::tracefs::catalogue::{self, KNOWN, Known};
use rtproof_run::{
    parse,
    trace::{self, TraceOptions},
};

use super::explain;
use crate::{answers, exit};

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
pub struct Args {
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
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let traced = trace::trace(&options(args)?)?;
    let next = explain::next(true, &traced.explained);
    let answer = answers::trace::answer(&args.tracer, &traced, args.over_ns, next);
    let is_open = answers::trace::is_open(&traced, args.over_ns);
    let code = explain::show(&traced.explained, answer, args.worst, args.json)?;
    Ok(if is_open { exit::NOT_PROVEN } else { code })
}

fn options(args: &Args) -> anyhow::Result<TraceOptions> {
    let known: Option<&'static Known> = catalogue::find(&args.tracer);
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
