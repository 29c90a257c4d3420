//! Benchmarks of the measuring itself: rtproof beside cyclictest, jitterdebugger and a bare loop,
//! in interleaved rounds of one run, on one CPU. Prints ratios with their spread; asserts nothing.

mod analysis;
mod audit;
mod bare;
mod causes;
mod long;
mod memory;
mod numbers;
mod peers;
mod recording;
mod rounds;
mod trace;

use std::{io::Write, path::PathBuf};

use clap::Parser;

/// Arguments.
#[derive(Debug, Parser)]
struct Args {
    /// The rtproof binary
    #[arg(long, default_value = "target/release/rtproof")]
    rtproof: PathBuf,
    /// CPU to measure on
    #[arg(long, default_value_t = 1)]
    cpu: u32,
    /// Rounds: each tool once a round, in turn
    #[arg(long, default_value_t = 12)]
    rounds: u32,
    /// Period in microseconds
    #[arg(long, default_value_t = 100)]
    period_us: u64,
    /// Seconds of the longer of two runs; the shorter takes 1 s
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// What to do; without it all benchmarks
    #[command(subcommand)]
    command: Option<Command>,
}

/// Internal commands.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// `rtproof check` beside rtcqs and tuned-adm verify
    Audit,
    /// What a sample costs beside hdrhistogram, and the memory of a measuring thread
    Recording,
    /// Statistics: a week of rows, fits of tails, what their intervals cover
    Stats {
        /// Simulated fits of each kind
        #[arg(long, default_value_t = 2000)]
        experiments: u32,
    },
    /// The report of a day of 64 CPUs
    Long(long::Options),
    /// Reading a kernel trace beside trace-cmd report
    Trace,
    /// Reads a trace.dat, run by the benchmark as a process of its own
    #[command(hide = true)]
    ReadTrace {
        /// File
        file: PathBuf,
        /// What is made of its events
        how: trace::How,
    },
    /// Plants causes of latency, and compares what rtproof says with what was planted
    Causes(causes::Options),
    /// The bare loop, run by the benchmark as a process of its own
    #[command(hide = true)]
    Bare {
        /// Period in microseconds
        period_us: u64,
        /// Duration in seconds
        seconds: u64,
    },
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut out = std::io::stdout().lock();
    match args.command {
        Some(Command::Bare { period_us, seconds }) => {
            let n = bare::run(period_us * 1000, seconds * 1_000_000_000);
            writeln!(out, "{n}")?;
            return Ok(());
        }
        Some(Command::ReadTrace { file, how }) => return trace::read(&mut out, &file, how),
        Some(Command::Stats { experiments }) => return analysis::run(&mut out, experiments),
        Some(Command::Recording) => return recording::run(&mut out),
        Some(Command::Long(options)) => return long::run(&mut out, &args.rtproof, &options),
        Some(Command::Trace) => return trace::run(&mut out),
        Some(Command::Audit) => return audit::run(&mut out, &args.rtproof, args.rounds),
        Some(Command::Causes(options)) => {
            return causes::run(&mut out, &args.rtproof, args.cpu, &options);
        }
        None => {}
    }
    anyhow::ensure!(
        args.rtproof.exists(),
        "{}: not there; build it with `cargo build --release`",
        args.rtproof.display()
    );
    // Peers hold the idle states off by themselves; so that all are measured alike, it is held for
    // all. On machines without it the peers do not get it either.
    let held = rtproof_host::pm_qos::hold(&rtproof_host::Root::live(), 0);
    let state = held.as_ref().map_or_else(ToString::to_string, |_| "held at 0 for all".into());
    writeln!(out, "/dev/cpu_dma_latency: {state}\n")?;
    recording::run(&mut out)?;
    memory::run(&mut out, &args.rtproof)?;
    trace::run(&mut out)?;
    rounds::run(&mut out, &args)
}
