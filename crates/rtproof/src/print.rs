//! Where answers go: stdout.

use std::{
    io::{self, Write},
    sync::{Mutex, PoisonError},
};

use rtproof_host::harmless;
use rtproof_report::text::{Glyphs, Sheet};
use serde::Serialize;

use crate::manners;

/// What `--quiet` keeps from stdout: printed at the end of a command without an answer block.
static HELD: Mutex<Held> = Mutex::new(Held::Texts(String::new()));

#[derive(Debug)]
enum Held {
    /// No answer block was printed so far.
    Texts(String),
    /// One was: all else is left out.
    Nothing,
}

/// Where text goes: stdout, unless JSON was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    json: bool,
}

impl Text {
    /// Text, or nothing when JSON is to be printed.
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints text, unless JSON was asked for.
    pub(crate) fn print(self, show: impl FnOnce(&mut Sheet) -> io::Result<()>) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut sheet = Sheet::new(manners::width(), glyphs());
        show(&mut sheet)?;
        if !manners::is_quiet() {
            return write(&sheet.shown());
        }
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *held, sheet.answer()) {
            // The answer is printed once.
            (Held::Texts(_), Some(answer)) => {
                *held = Held::Nothing;
                write(&answer)
            }
            (Held::Texts(texts), None) => {
                texts.push_str(&sheet.shown());
                Ok(())
            }
            (Held::Nothing, _) => Ok(()),
        }
    }

    /// Prints JSON, if it was asked for.
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

/// Columns of a terminal, all of them; elsewhere those of text.
pub(crate) fn columns() -> u16 {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| size.ws_col).filter(|&columns| columns > 0).unwrap_or(120)
}

/// Prints what `--quiet` held back of a command that has no answer block: its output is the answer.
/// Also before a question, which is about what was printed.
pub fn end() -> io::Result<()> {
    match &mut *HELD.lock().unwrap_or_else(PoisonError::into_inner) {
        Held::Texts(texts) if !texts.is_empty() => write(&std::mem::take(texts)),
        Held::Texts(_) | Held::Nothing => Ok(()),
    }
}

/// Prints bytes as they are: what another program reads.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    unless_gone(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Writes text; colours go where they are wanted: a terminal, or as `--color` says.
fn write(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    unless_gone(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// A reader that went away is not an error: the work goes on, and the exit code tells the verdict.
fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Characters that the terminal can show.
fn glyphs() -> Glyphs {
    match std::env::var_os("TERM") {
        Some(term) if term == "dumb" => Glyphs::ASCII,
        _ => Glyphs::BLOCKS,
    }
}
