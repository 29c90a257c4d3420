//! Where answers go: stdout.

use std::io::{self, Write};

use rtproof_report::text::controls;
use serde::Serialize;

/// Where text goes: stdout, unless JSON was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    json: bool,
}

impl Text {
    /// Text, or nothing when JSON is to be printed.
    #[must_use]
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints text, unless JSON was asked for.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(crate) fn print(
        self,
        show: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut out = Vec::new();
        show(&mut out)?;
        let out = controls::shown(&String::from_utf8_lossy(&out));
        // Colours go where they are wanted: a terminal, and NO_COLOR not set.
        let mut stdout = anstream::stdout().lock();
        unless_gone(stdout.write_all(out.as_bytes()).and_then(|()| stdout.flush()))
    }

    /// Prints JSON, if it was asked for.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(crate) fn print_json(self, value: &impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        let mut stdout = io::stdout().lock();
        unless_gone(stdout.write_all(&text).and_then(|()| stdout.flush()))
    }
}

/// A reader that went away is not an error: the work goes on, and the exit code tells the verdict.
fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
