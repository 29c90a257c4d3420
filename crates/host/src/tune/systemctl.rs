//! The service manager: `systemctl`, or a test double.

use std::io;

use crate::program;

/// What `systemctl` answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it succeeded.
    pub success: bool,
    /// What it printed.
    pub text: String,
    /// What it complained of.
    pub complaint: String,
}

/// The service manager: `systemctl`, or a test double.
pub trait Units {
    /// Runs `systemctl` with arguments.
    ///
    /// # Errors
    /// When it cannot be run.
    fn systemctl(&self, arguments: &[&str]) -> io::Result<Answer>;
}

/// The machine's own `systemctl`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Systemctl;

impl Units for Systemctl {
    fn systemctl(&self, arguments: &[&str]) -> io::Result<Answer> {
        let output = program::command("systemctl")?
            .args(["--no-pager", "--no-ask-password"])
            .args(arguments)
            .env("LC_ALL", "C")
            .env("SYSTEMD_COLORS", "0")
            .stdin(std::process::Stdio::null())
            .output()?;
        Ok(Answer {
            success: output.status.success(),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaint: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}
