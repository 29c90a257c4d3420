//! The service manager: `systemctl`, or a test double.

use std::{
    io,
    process::{Command, Stdio},
};

use crate::program;

/// What `systemctl`, or a tool of groups, answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub success: bool,
    pub text: String,
    /// What it complained of.
    pub complaint: String,
}

impl Answer {
    /// Runs a command, which is asked nothing, and takes what it prints in English.
    pub(super) fn of(command: &mut Command) -> io::Result<Self> {
        let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output()?;
        Ok(Self {
            success: output.status.success(),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaint: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

/// The service manager: `systemctl`, or a test double.
pub trait Units {
    /// Runs `systemctl` with arguments.
    fn systemctl(&self, arguments: &[&str]) -> io::Result<Answer>;
}

/// The machine's own `systemctl`.
#[derive(Clone, Copy, Debug)]
pub struct Systemctl;

impl Units for Systemctl {
    fn systemctl(&self, arguments: &[&str]) -> io::Result<Answer> {
        let mut command = program::command("systemctl")?;
        command
            .args(["--no-pager", "--no-ask-password"])
            .args(arguments)
            .env("SYSTEMD_COLORS", "0");
        Answer::of(&mut command)
    }
}
