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
            /// Runs the command.
            ///
            /// # Errors
            /// Those of the command.
            pub fn run(&self) -> anyhow::Result<u8> {
                match self {
                    $(Self::$name(args) => $module::run(args),)*
                }
            }
        }
    };
}

pub mod capture;
pub mod check;
pub mod compare;
pub mod experiment;
pub mod explain;
pub mod export;
pub mod import;
pub mod measure;
pub mod prove;
pub mod report;
pub mod run;
pub mod tune;

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
    /// Explain late wake-ups: of a run, another tool's trace, a running application
    Explain(explain),
    /// Compare runs: what differs, and whether the difference is decided
    Compare(compare),
    /// Judge a record again and show it
    Report(report),
    /// Convert results of other tools (cyclictest, rtla, oslat, ...) to records
    Import(import),
    /// Write a record in another format: JSON, CSV, HdrHistogram log, cyclictest, JUnit
    Export(export),
}
