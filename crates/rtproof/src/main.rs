//! Entry: parse, run the command, turn the outcome into an exit code.

use std::{io::Write, process::ExitCode};

use clap::Parser;
use rtproof::{
    cli::{Cli, Command},
    commands::{
        capture, check, compare, experiment, explain, export, import, load_worker, measure, prove,
        report, tune,
    },
    exit,
};

fn main() -> ExitCode {
    if let Some(code) = load_worker::dispatch(std::env::args_os()) {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { exit::USAGE } else { exit::ACCEPTED };
            // Nowhere left to report a failure to print the usage.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let outcome = match cli.command {
        Command::Prove(args) => prove::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Experiment(args) => experiment::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(fail(&error)),
    }
}

/// Prints an error with its causes.
fn fail(error: &anyhow::Error) -> u8 {
    // Nowhere left to report a failure to print the error.
    let _ = writeln!(anstream::stderr().lock(), "rtproof: {error:#}");
    if error.is::<exit::Usage>() { exit::USAGE } else { exit::FAILED }
}
