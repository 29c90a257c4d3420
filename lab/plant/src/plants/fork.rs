//! Processes that are started and reaped, again and again.

use std::process::{Command, Stdio};

use crate::run::Run;
use crate::truth::Truth;

/// The plant that does nothing: what is started.
pub(super) const NOTHING: &str = "nothing";

pub(super) fn fork(run: &Run, truth: &mut Truth) -> Result<(), String> {
    let mut count = 0_u64;
    while !run.is_over() {
        let mut command = Command::new("/proc/self/exe");
        command.arg(NOTHING).stdin(Stdio::null());
        let status =
            command.status().map_err(|error| format!("cannot start a process: {error}"))?;
        if !status.success() {
            return Err(format!("a process that does nothing ended with {status}"));
        }
        count += 1;
    }
    truth.set("count", count);
    Ok(())
}
