//! The verdict as text.

use std::io;

use rtproof_judge::{Answer, Report};

use crate::text::sheet::{BAD, BOLD, DIM, GOOD, Ink, Sheet, WARN, wrapped};

/// The verdict, its reasons, and what changed in the machine.
pub fn verdict(to: &mut Sheet, report: &Report) -> io::Result<()> {
    let verdict = &report.verdict;
    sentence(to, report)?;
    for reason in &verdict.reasons {
        wrapped(to, &format!("         {DIM}-{DIM:#} "), "           ", reason)?;
    }
    if let Some(levels) = verdict.tail.as_ref().and_then(|tail| tail.levels_text()) {
        wrapped(to, &format!("         {DIM}-{DIM:#} "), "           ", &levels)?;
    }
    for change in &report.changes {
        let text = format!("{} changed from {} to {}", change.key, change.from, change.to);
        wrapped(to, &format!("         {WARN}!{WARN:#} "), "           ", &text)?;
    }
    Ok(())
}

/// The verdict in a sentence.
pub(super) fn sentence(to: &mut Sheet, report: &Report) -> io::Result<()> {
    line(to, report.verdict.answer, &report.verdict.sentence)
}

/// A verdict: its word and its sentence.
pub(super) fn line(to: &mut Sheet, answer: Answer, sentence: &str) -> io::Result<()> {
    let (style, word) = (style(answer), answer.text());
    let first = format!("{BOLD}Verdict{BOLD:#}  {style}{word}{style:#} ");
    wrapped(to, &first, "         ", sentence)
}

const fn style(answer: Answer) -> Ink {
    match answer {
        Answer::Accepted => GOOD.bold(),
        Answer::Refused => BAD,
        Answer::NotProven | Answer::NotJudged => WARN.bold(),
    }
}
