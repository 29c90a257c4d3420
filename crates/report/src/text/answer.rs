//! The answer in a few lines: the verdict, why wake-ups were late, what to do next.

use std::io;

use rtproof_judge::Report;
use rtproof_results::answer;

use super::sheet::{BOLD, Sheet, wrapped};
use super::verdict;

/// Writes it. `next`: a command that can be pasted.
///
/// # Errors
/// When writing fails.
pub fn answer(to: &mut Sheet, report: &Report, next: Option<&str>) -> io::Result<()> {
    to.in_answer(|to| {
        verdict::sentence(to, report)?;
        if let Some(why) = report.spikes.as_ref().and_then(answer::why) {
            wrapped(to, &format!("{BOLD}Why{BOLD:#}      "), "         ", &why)?;
        }
        self::next(to, next)
    })
}

/// What to do next.
///
/// # Errors
/// When writing fails.
pub fn next(to: &mut Sheet, command: Option<&str>) -> io::Result<()> {
    match command {
        Some(command) => wrapped(to, &format!("{BOLD}Next{BOLD:#}     "), "           ", command),
        None => Ok(()),
    }
}
