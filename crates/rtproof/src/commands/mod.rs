//! The commands, one file each: arguments, what they do, how they end. To add one: its file, its
//! `mod` and a row of [`Command`]. Help, man pages, completions and the call follow from the row.

/// Makes the subcommands and their call from one list: help, name, module.
macro_rules! commands {
    ($($(#[$help:meta])* $name:ident($module:ident),)*) => {
        /// The commands.
        #[derive(Clone, Debug, clap::Subcommand)]
        pub enum Command {
            $($(#[$help])* $name(Box<$module::Args>),)*
        }

        impl Command {
            pub fn run(&self) -> anyhow::Result<u8> {
                match self {
                    $(Self::$name(args) => $module::run(args),)*
                }
            }
        }
    };
}

use crate::manners::Manners;

pub mod capture;
pub mod check;
pub mod compare;
pub mod completions;
pub mod experiment;
pub mod explain;
pub mod export;
pub mod import;
pub mod kernel;
pub mod man;
pub mod measure;
pub mod new;
pub mod prove;
pub mod report;
pub mod run;
pub mod trace;
pub mod tune;
pub mod watch;

/// Takes a Linux machine from unknown to proven real-time.
///
/// Checks the configuration, measures latency under load without leaving out a missed wake-up, and
/// accepts or refuses the machine with the evidence attached.
#[derive(Debug, clap::Parser)]
#[command(name = "rtproof", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Exit codes: 0 accepted or done, 1 rtproof failed, 2 the machine failed, \
                        3 cannot tell, 64 usage.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// How the answer is shown.
    #[command(flatten)]
    pub manners: Manners,
}

commands! {
    /// Check the machine, measure it under load, judge it: the main job
    Prove(prove),
    /// Measure a matrix of workloads, CPUs, policies, periods and loads; judges nothing
    Measure(measure),
    /// Check the configuration; changes nothing
    Check(check),
    /// Change the configuration: plan, apply, undo, trial of boot parameters
    Tune(tune),
    /// Start a program as a real-time application; undo everything at its end
    Run(run),
    /// Find which knob matters here: try changes in pairs of slices, undo them all
    Experiment(experiment),
    /// Write the machine's configuration to one text file, to be checked anywhere
    Capture(capture),
    /// Watch the machine live: CPUs, latencies, each spike with its cause
    Watch(watch),
    /// Explain late wake-ups: of a run, another tool's trace, a running application
    Explain(explain),
    /// Run one of the kernel's own tracers (wakeup_rt, irqsoff, ...) and explain what it kept
    Trace(trace),
    /// Compare runs: what differs, and whether the difference is decided
    Compare(compare),
    /// Judge a record again and show it
    Report(report),
    /// Find, configure and build a real-time kernel
    Kernel(kernel),
    /// Begin a real-time application: a small project, right from the start
    New(new),
    /// Convert results of other tools (cyclictest, rtla, oslat, ...) to records
    Import(import),
    /// Write a record in another format: JSON, CSV, HdrHistogram log, cyclictest, JUnit
    Export(export),
    /// Print completions of the command line for a shell
    Completions(completions),
    /// Print the manual page of a command
    Man(man),
}
