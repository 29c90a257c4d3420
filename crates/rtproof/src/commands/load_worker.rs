//! Not for users: a load in a process of its own, started by rtproof. See `rtproof_measure::loads`.
//!
//! Looked for before the command line is parsed: the fork load starts a thousand of them a second.

use std::{ffi::OsString, io::Write, process::ExitCode};

use rtproof_run::load_worker::NAME;

use crate::exit;

/// Runs a load if the arguments ask for one.
pub fn dispatch(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    args.nth(1).filter(|name| name == NAME)?;
    // rtproof passes nothing that is not UTF-8.
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let code = match rtproof_measure::worker_main(&args) {
        Ok(()) => exit::ACCEPTED,
        Err(error) => {
            // The parent reads it; when it is gone there is nobody to tell.
            let _ = writeln!(anstream::stderr().lock(), "{error}");
            exit::FAILED
        }
    };
    Some(ExitCode::from(code))
}
