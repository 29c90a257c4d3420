//! Knobs while they are tried, and what was found.

use std::io;

use rtproof_report::text::{self, Sheet};
use rtproof_results::answer::Answer;
use rtproof_run::{
    experiment::{events::Events, results::Results},
    prove::{Observer, output::Output},
};

use super::progress::Progress;
use crate::{exit, pages, print::Text};

/// Shows knobs while they are tried.
#[derive(Debug)]
pub(crate) struct Trying {
    text: Text,
    setup: fn(&mut Sheet, &str) -> io::Result<()>,
}

impl Trying {
    pub(crate) fn new(text: Text) -> Self {
        Self { text, setup: text::effects::experiment }
    }

    /// Of `tune apply --prove`.
    pub(crate) fn of_plan(text: Text) -> Self {
        Self { text, setup: text::effects::before }
    }
}

impl Events for Trying {
    fn setup(&mut self, sentence: &str) -> io::Result<()> {
        self.text.print(|to| (self.setup)(to, sentence))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.text.print(|to| text::effects::line(to, line))
    }

    fn observer(&self, duration_ns: u64) -> Box<dyn Observer> {
        Box::new(Progress::new(duration_ns))
    }
}

/// Writes the report, and prints what was found and where it is. What is returned: whether the
/// report is written.
///
/// # Errors
/// Those of stdout; a record without effects.
pub(crate) fn show(
    results: &Results,
    answer: &Answer,
    text: Text,
    output: &Output,
) -> anyhow::Result<anyhow::Result<()>> {
    let next = answer.next.as_deref();
    let html = pages::write_html(&output.html, &results.sealed.run, &results.report, None, next);
    let effects = results.effects()?;
    text.print(|to| {
        text::answer(to, answer)?;
        text::effects::table(to, effects)?;
        let is_sealed = results.sealed.failure.is_none();
        text::files(to, &output.record, &output.html, is_sealed, html.is_ok())
    })?;
    Ok(html)
}

/// The exit code.
///
/// # Errors
/// What is wrong with the record or the report.
pub(crate) fn code(results: Results, html: anyhow::Result<()>) -> anyhow::Result<u8> {
    let ended = results.ended()?;
    if let Some(failure) = results.sealed.failure {
        return Err(failure);
    }
    html?;
    Ok(exit::of(ended))
}
