//! Findings as text: what is bad first, each with what would change it.

use std::io::{self, Write};

use anstyle::Style;
use rtproof_judge::{Finding, Status, report::Machine};

use super::{BAD, BOLD, DIM, GOOD, WARN, title, wrapped};

/// An audit on its own.
///
/// # Errors
/// When writing fails.
pub fn audit(
    to: &mut dyn Write,
    machine: &Machine,
    findings: &[Finding],
    all: bool,
) -> io::Result<()> {
    title(to, machine)?;
    summary(to, findings)?;
    list(to, findings, all)
}

/// Findings about one application.
///
/// # Errors
/// When writing fails.
pub fn application(
    to: &mut dyn Write,
    head: &str,
    findings: &[Finding],
    all: bool,
) -> io::Result<()> {
    writeln!(to, "\n{BOLD}Application{BOLD:#} {head}")?;
    summary(to, findings)?;
    list(to, findings, all)
}

/// One line of counts.
pub(super) fn summary(to: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let parts: Vec<String> = [
        (Status::Good, "good"),
        (Status::Bad, "bad"),
        (Status::Doubtful, "doubtful"),
        (Status::Unknown, "unknown"),
        (Status::NotApplicable, "not applicable"),
    ]
    .into_iter()
    .filter_map(|(status, name)| match count(status) {
        0 => None,
        n => Some(format!("{n} {name}")),
    })
    .collect();
    writeln!(to, "{BOLD}Checks{BOLD:#}   {}: {}", findings.len(), parts.join(", "))
}

/// The findings that need attention, worst first; with `all` every one, and its evidence.
pub(super) fn list(to: &mut dyn Write, findings: &[Finding], all: bool) -> io::Result<()> {
    let mut shown: Vec<&Finding> = findings
        .iter()
        .filter(|finding| all || !matches!(finding.status, Status::Good | Status::NotApplicable))
        .collect();
    shown.sort_by_key(|finding| finding.status);
    let width = shown.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    for finding in shown {
        one(to, finding, width, all)?;
    }
    Ok(())
}

fn one(to: &mut dyn Write, finding: &Finding, width: usize, all: bool) -> io::Result<()> {
    let (word, style) = word(finding.status);
    let next = " ".repeat(11 + width + 2);
    let name = &finding.check;
    let first = format!("  {style}{word:<8}{style:#} {name:<width$}  ");
    wrapped(to, &first, &next, &finding.summary)?;
    for seen in finding.evidence.iter().filter(|_| all) {
        let text = format!("{}: {}", seen.path, seen.value);
        wrapped(to, &format!("{next}{DIM}saw:{DIM:#} "), &format!("{next}     "), &text)?;
    }
    for remedy in &finding.remedies {
        let text = remedy.to_string();
        wrapped(to, &format!("{next}{DIM}fix:{DIM:#} "), &format!("{next}     "), &text)?;
    }
    Ok(())
}

/// A status as a word, padded names aside.
pub(crate) const fn word(status: Status) -> (&'static str, Style) {
    match status {
        Status::Bad => ("BAD", BAD),
        Status::Doubtful => ("DOUBTFUL", WARN),
        Status::Unknown => ("UNKNOWN", WARN),
        Status::Good => ("GOOD", GOOD),
        Status::NotApplicable => ("N/A", DIM),
    }
}
