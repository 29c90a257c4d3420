//! `--user`: the whole command again, as an ordinary user. Then nothing that the makefile does, and
//! nothing that the user's folder holds, happens as root.

use std::process::Command;

use anyhow::Context;
use rtproof_host::program;

use crate::exit;

/// Runs this command line as the user; `None`: no user is named, or it is ours.
///
/// # Errors
/// Not root, no such user.
pub(super) fn again(user: Option<&str>) -> anyhow::Result<Option<u8>> {
    let Some(user) = user else { return Ok(None) };
    if user.is_empty() || user.starts_with('-') {
        return Err(exit::usage(format!("--user {user}: no name of a user")));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(exit::usage("--user: only root becomes another user; leave it out".to_owned()));
    }
    let mut words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let joined = format!("--user={user}");
    let at = words.iter().position(|word| *word == *joined || word == "--user");
    let at = at.context("--user is on the command line")?;
    let own = if words[at] == *joined { 1 } else { 2 };
    words.drain(at..at + own);
    let exe = std::env::current_exe().context("the path of rtproof")?;
    let mut command: Command = program::command("runuser").context("--user needs runuser")?;
    let status = command
        .args(["-u", user, "--"])
        .arg(exe)
        .args(words)
        .status()
        .context("runuser cannot be started")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Some(code.unwrap_or(exit::FAILED)))
}
