//! The boot part of a plan: a diff of the kernel's command line, word by word.

use std::io::{self, Write};

use rtproof_judge::{plan::Reason, units};
use rtproof_results::tune::plan::BootPreview;

use crate::text::sheet::{BAD, BOLD, DIM, GOOD, Sheet, WARN, wrapped};

/// Prefix of what belongs to a change.
pub(super) const INDENT: &str = "      ";

/// The words, and the line that they would make.
pub(super) fn boot(to: &mut Sheet, boot: &BootPreview, verbose: bool) -> io::Result<()> {
    if boot.words.is_empty() {
        return Ok(());
    }
    let count = units::count(boot.words.len(), "parameter");
    let lasts = "tune trial boots it once, tune confirm keeps it; undo removes the entry";
    writeln!(to)?;
    let text = format!("{count} {DIM}({lasts}){DIM:#}");
    wrapped(to, &format!("{BOLD}Next boot{BOLD:#}: "), "           ", &text)?;
    place(to, boot)?;
    for word in &boot.words {
        let has_value = word.parameter.contains('=');
        // A word that replaces others, or removes them.
        let now = boot.now.as_deref().filter(|_| word.removes).unwrap_or_default();
        for old in same_name(now, &word.parameter)
            .iter()
            .filter(|old| **old != word.parameter || !has_value)
        {
            writeln!(to, "    {BAD}- {old}{BAD:#}")?;
        }
        if word.removes && !has_value {
            if now.is_empty() {
                writeln!(to, "    {BAD}- {}{BAD:#}", word.parameter)?;
            }
        } else {
            writeln!(to, "    {GOOD}+ {}{GOOD:#}", word.parameter)?;
        }
        reason(to, &word.reason, verbose)?;
    }
    tokens(to, boot)
}

/// Loader and entry, or why there can be none.
pub fn place(to: &mut Sheet, boot: &BootPreview) -> io::Result<()> {
    if let (Some(loader), Some(entry)) = (&boot.loader, &boot.entry) {
        wrapped(to, "  ", "    ", &format!("entry \"{entry}\" of {loader}, beside the default"))?;
    }
    if let Some(why) = &boot.refused {
        wrapped(to, &format!("  {WARN}!{WARN:#} "), "    ", why)?;
    }
    for line in boot.printed.iter().flat_map(|text| text.lines()) {
        writeln!(to, "    {line}")?;
    }
    Ok(())
}

/// The whole line, before and after.
pub fn tokens(to: &mut Sheet, boot: &BootPreview) -> io::Result<()> {
    let (Some(now), Some(then)) = (&boot.now, &boot.then) else { return Ok(()) };
    writeln!(to, "  {DIM}command line{DIM:#}")?;
    writeln!(to, "    {BAD}- {}{BAD:#}", marked(now, then))?;
    writeln!(to, "    {GOOD}+ {}{GOOD:#}", marked(then, now))
}

/// A line, the words that the other one does not have in bold.
fn marked(line: &str, other: &str) -> String {
    let others: Vec<&str> = split(other);
    let mark = |word: &str| match others.contains(&word) {
        true => word.to_owned(),
        false => format!("{BOLD}{word}{BOLD:#}"),
    };
    split(line).into_iter().map(mark).collect::<Vec<_>>().join(" ")
}

/// The words of a line with the name of a parameter.
pub(crate) fn same_name<'a>(line: &'a str, parameter: &str) -> Vec<&'a str> {
    let name = |word: &str| word.split('=').next().unwrap_or_default().replace('-', "_");
    split(line).into_iter().filter(|word| name(word) == name(parameter)).collect()
}

/// Splits at white space outside quotes, as the kernel does.
pub(crate) fn split(line: &str) -> Vec<&str> {
    let mut quoted = false;
    let cut = |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    };
    line.split(cut).filter(|word| !word.is_empty()).collect()
}

/// Why, what it costs, what can go wrong.
pub(super) fn reason(to: &mut Sheet, reason: &Reason, verbose: bool) -> io::Result<()> {
    let next = format!("{INDENT}     ");
    let checks = reason.checks.join(", ");
    let impact = reason.impact.text();
    let why = format!("{} ({checks}; costs {impact})", reason.why);
    wrapped(to, &format!("{INDENT}{DIM}why{DIM:#}  "), &next, &why)?;
    if let Some(but) = &reason.trade_off {
        wrapped(to, &format!("{INDENT}{DIM}but{DIM:#}  "), &next, but)?;
    }
    if let Some(risk) = &reason.risk {
        wrapped(to, &format!("{INDENT}{WARN}RISK{WARN:#} "), &next, risk)?;
    }
    if verbose {
        let explain = reason.checks.iter().map(|id| format!("rtproof check explain {id}"));
        let explain: Vec<String> = explain.collect();
        wrapped(to, &format!("{INDENT}{DIM}more{DIM:#} "), &next, &explain.join(", "))?;
    }
    Ok(())
}
