//! Arguments of the benchmarks.

use std::path::PathBuf;

use clap::Parser;

use crate::{causes, coverage, long, trace};

/// Arguments.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The rtproof binary
    #[arg(long, default_value = "target/release/rtproof")]
    pub(crate) rtproof: PathBuf,
    /// CPU to measure on
    #[arg(long, default_value_t = 1)]
    pub(crate) cpu: u32,
    /// Rounds: each tool once a round, in turn
    #[arg(long, default_value_t = 12)]
    pub(crate) rounds: u32,
    /// Period in microseconds
    #[arg(long, default_value_t = 100)]
    pub(crate) period_us: u64,
    /// Seconds of the longer of two runs; the shorter takes 1 s
    #[arg(long, default_value_t = 4)]
    pub(crate) seconds: u64,
    /// What to do; without it all benchmarks
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Internal commands.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// `rtproof check` beside rtcqs and tuned-adm verify
    Audit,
    /// What a sample costs beside hdrhistogram, and the memory of a measuring thread
    Recording,
    /// Statistics of a week of rows
    Stats,
    /// Whether stated confidences hold on simulated machines; writes the page in docs/
    Coverage(coverage::Options),
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
