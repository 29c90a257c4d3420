//! Where answers go: stdout.

use std::{
    io::{self, Write},
    sync::OnceLock,
};

use rtproof_host::harmless;
use rtproof_report::text::{Glyphs, Sheet, WIDTH_MAX, WIDTH_MIN};
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
    pub(crate) fn print(self, show: impl FnOnce(&mut Sheet) -> io::Result<()>) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut sheet = Sheet::new(width(), glyphs());
        show(&mut sheet)?;
        let out = sheet.shown();
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
        let mut text = harmless::json(&serde_json::to_string_pretty(value)?);
        text.push('\n');
        let mut stdout = io::stdout().lock();
        unless_gone(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
    }
}

/// Prints text as it is; what it is made of was made harmless.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn plain(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    unless_gone(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Columns of a terminal, all of them; elsewhere those of text.
pub(crate) fn columns() -> u16 {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| size.ws_col).filter(|&columns| columns > 0).unwrap_or(WIDTH_MAX as u16)
}

/// A reader that went away is not an error: the work goes on, and the exit code tells the verdict.
fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Columns of text: those of the terminal, within bounds; elsewhere always the same.
fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        size.map_or(WIDTH_MAX, |size| usize::from(size.ws_col).clamp(WIDTH_MIN, WIDTH_MAX))
    })
}

/// Characters that the terminal can show.
fn glyphs() -> Glyphs {
    match std::env::var_os("TERM") {
        Some(term) if term == "dumb" => Glyphs::ASCII,
        _ => Glyphs::BLOCKS,
    }
}
