//! `cargo xtask lab ...`: hands over to the lab's own program, built by cargo.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// Runs it on this terminal; its exit code is ours.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--locked", "--package", "rtproof-lab", "--"])
        .args(arguments)
        .status()
        .context("run the lab")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
