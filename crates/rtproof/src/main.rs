//! Entry: parse, run the command, turn the outcome into an exit code.

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;

use rtproof::{Cli, exit};
use rtproof_host::tune::JournalError;
use rtproof_run::NAME;

/// Undoes what is being applied when a panic ends the program.
struct AtPanic;

impl Drop for AtPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            rtproof_run::prove::undo_first("a fault of rtproof");
        }
    }
}

fn main() -> ExitCode {
    let _at_panic = AtPanic;
    if let Some(code) = load_worker(std::env::args_os()) {
        return code;
    }
    if let Some(code) = program(std::env::args_os()) {
        return code;
    }
    if let Err(error) = rtproof_kernel::boot::init(std::env::args_os()) {
        return ExitCode::from(fail(&error));
    }
    rtproof::color_of(std::env::args_os().skip(1));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nowhere left to report a failure to print the usage. An error repeats arguments,
            // which may be file names of others; help has words of our own only.
            let code = if error.use_stderr() {
                let _ = rtproof::stderr_write(&error.render().to_string());
                exit::USAGE
            } else {
                let _ = error.print();
                exit::ACCEPTED
            };
            return ExitCode::from(code);
        }
    };
    cli.manners.keep();
    let ended = can_wait().and_then(|()| cli.command.run());
    match exit::print_held().map_err(Into::into).and(ended) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(fail(&error)),
    }
}

/// Looks whether the process may wait at all: without, nothing can be measured, and the standard
/// library ends the process where it would.
fn can_wait() -> anyhow::Result<()> {
    let none = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 0 };
    let clock = rustix::thread::ClockId::Monotonic;
    match rustix::thread::clock_nanosleep_relative(clock, &none) {
        rustix::thread::NanosleepRelativeResult::Err(errno) => anyhow::bail!(
            "clock_nanosleep: {}: a filter of system calls (seccomp), as containers and units \
             have, keeps this process from waiting; run it outside of that",
            std::io::Error::from(errno)
        ),
        _ => Ok(()),
    }
}

/// Runs a load if the arguments request one: loads are processes of their own, started by rtproof
/// (`rtproof_measure::loads`). Before the command line is parsed, because the fork load starts a
/// thousand of them a second.
fn load_worker(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    args.nth(1).filter(|name| name == NAME)?;
    // rtproof passes nothing that is not UTF-8.
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let code = match rtproof_measure::worker_main(&args) {
        Ok(()) => exit::ACCEPTED,
        Err(error) => {
            // The parent reads it. If the parent is gone, nothing is left to report to.
            let _ = rtproof::stderr_line(&error.to_string());
            exit::FAILED
        }
    };
    Some(ExitCode::from(code))
}

/// Becomes the program of `rtproof run` if the arguments request that. Returns where it cannot.
fn program(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    args.nth(1).filter(|name| name == rtproof_run::launch::threads::NAME)?;
    // The parent knows why, by the socket between both, and says it.
    let _ = rtproof_run::launch::threads::main(args);
    Some(ExitCode::from(exit::NOT_STARTED))
}

/// Prints an error with its causes.
fn fail(error: &anyhow::Error) -> u8 {
    // Nowhere left to report a failure to print the error.
    let _ = rtproof::stderr_line(&format!("rtproof: {error:#}"));
    match error.downcast_ref() {
        Some(JournalError::Lost(_)) => exit::NOT_PROVEN,
        _ if error.is::<exit::UsageError>() => exit::USAGE,
        _ => exit::FAILED,
    }
}
