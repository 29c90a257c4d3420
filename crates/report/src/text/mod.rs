//! The answer as text on stdout.

mod answer;
mod beside;
mod compare;
mod distribution;
pub mod effects;
mod explanation;
mod findings;
mod imported;
mod ink;
pub mod kernel;
pub mod kernel_bisect;
pub mod kernel_boot;
pub mod kernel_compare;
pub mod launch;
mod locks;
pub mod measure;
mod measured;
mod moving;
mod plan;
mod proofs;
mod reference;
mod rules;
mod sheet;
mod spikes;
mod timeline;
mod tune;
mod verdict;

use self::sheet::title;
use std::{
    io::{self, Write},
    path::Path,
};

use rtproof_judge::{Finding, report::Machine};

pub use self::findings::word;
pub use self::{
    answer::{answer, answer_again, next},
    compare::comparison,
    distribution::distribution,
    explanation::explanation,
    findings::{Detail, application, audit},
    imported::imported,
    locks::{locks, party},
    measured::measured,
    moving::moving,
    plan::{entries_by_hand, place, plan, steps, tokens},
    proofs::proofs,
    reference::reference,
    rules::rules,
    sheet::{BAD, BOLD, DIM, GOOD, Glyphs, Ink, Page, Sheet, WARN, WIDTH_MAX, WIDTH_MIN, wrapped},
    spikes::{spikes, spikes_of},
    tune::{
        applied, boot_left, exported, parameters, status, taken_back, trial_kernel, undone,
        verified,
    },
    verdict::verdict,
};

/// The machine and its checks: what is printed before anything is measured.
pub fn head(to: &mut Sheet, machine: &Machine, findings: &[Finding]) -> io::Result<()> {
    title(to, machine)?;
    findings::summary(to, findings)?;
    findings::head(to, findings)
}

/// A line above everything, where something is wrong with the record itself.
pub fn banner(to: &mut Sheet, banner: Option<&str>) -> io::Result<()> {
    match banner {
        Some(text) => wrapped(to, &format!("{BAD}!{BAD:#} "), "  ", text),
        None => Ok(()),
    }
}

/// What `explain` looked at, and what the user must know of it.
pub fn told(to: &mut Sheet, about: &str, notes: &[String]) -> io::Result<()> {
    wrapped(
        to,
        &format!("{BOLD}rtproof {}{BOLD:#}   ", env!("CARGO_PKG_VERSION")),
        "         ",
        about,
    )?;
    notes.iter().try_for_each(|note| {
        wrapped(to, &format!("         {WARN}!{WARN:#} "), "           ", note)
    })
}

/// A sentence on lines of its own.
pub fn note(to: &mut Sheet, text: &str) -> io::Result<()> {
    wrapped(to, "", "", text)
}

/// What to do next, one line each.
pub fn hint(to: &mut Sheet, commands: &[String]) -> io::Result<()> {
    if !commands.is_empty() {
        writeln!(to)?;
    }
    commands.iter().try_for_each(|command| writeln!(to, "{DIM}{command}{DIM:#}"))
}

/// Where the files are, those that are there.
pub fn files(
    to: &mut Sheet,
    record: &Path,
    html: &Path,
    is_sealed: bool,
    has_report: bool,
) -> io::Result<()> {
    let (record, html) = (record.display(), html.display());
    let torn = if is_sealed { "" } else { " (not sealed)" };
    if has_report {
        return writeln!(to, "         record {record}{torn}   report {html}");
    }
    writeln!(to, "         record {record}{torn}   no report was written")?;
    writeln!(to, "         make one: rtproof report {record} --html {html}")
}
