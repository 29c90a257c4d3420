//! The answer as text on stdout.

mod beside;
mod compare;
pub mod controls;
mod distribution;
pub mod effects;
mod explanation;
mod findings;
mod imported;
pub mod measure;
mod measured;
mod plan;
mod proofs;
mod spikes;
mod timeline;
mod tune;
mod verdict;

use std::{
    io::{self, Write},
    path::Path,
    sync::OnceLock,
};

use anstyle::{AnsiColor, Style};
use rtproof_judge::{Finding, report::Machine};

pub use self::findings::word;
pub use self::{
    compare::comparison,
    distribution::distribution,
    explanation::explanation,
    findings::{Detail, application, audit},
    imported::imported,
    measured::measured,
    plan::{place, plan, steps, tokens},
    proofs::proofs,
    spikes::{spikes, spikes_of},
    tune::{applied, boot_left, exported, parameters, status, taken_back, undone, verified},
    verdict::verdict,
};

/// Style of heads.
pub const BOLD: Style = Style::new().bold();
/// Style of what matters less.
pub const DIM: Style = Style::new().dimmed();
/// Style of what is good.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Style of what is bad.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of what is doubtful.
pub const WARN: Style = AnsiColor::Yellow.on_default();

/// The machine and its checks: what is printed before anything is measured.
///
/// # Errors
/// When writing fails.
pub fn head(to: &mut dyn Write, machine: &Machine, findings: &[Finding]) -> io::Result<()> {
    title(to, machine)?;
    findings::summary(to, findings)?;
    findings::head(to, findings)
}

/// One line: tool, host, kernel, CPUs, preemption model.
pub(crate) fn title(to: &mut dyn Write, machine: &Machine) -> io::Result<()> {
    let or_unknown = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".into());
    write!(to, "{BOLD}rtproof {}{BOLD:#}   ", env!("CARGO_PKG_VERSION"))?;
    write!(to, "{}  ", or_unknown(&machine.hostname))?;
    write!(to, "Linux {} {}  ", or_unknown(&machine.kernel), or_unknown(&machine.arch))?;
    if let Some(cpus) = machine.cpus_online {
        write!(to, "{cpus} CPU{}  ", if cpus == 1 { "" } else { "s" })?;
    }
    write!(to, "{}", machine.preemption)?;
    for inside in [&machine.hypervisor, &machine.container].into_iter().flatten() {
        write!(to, "  in {inside}")?;
    }
    writeln!(to)
}

/// A line above everything, where something is wrong with the record itself.
///
/// # Errors
/// When writing fails.
pub fn banner(to: &mut dyn Write, banner: Option<&str>) -> io::Result<()> {
    match banner {
        Some(text) => wrapped(to, &format!("{BAD}!{BAD:#} "), "  ", text),
        None => Ok(()),
    }
}

/// What `explain` looked at, and what the user must know of it.
///
/// # Errors
/// When writing fails.
pub fn told(to: &mut dyn Write, about: &str, notes: &[String]) -> io::Result<()> {
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
///
/// # Errors
/// When writing fails.
pub fn note(to: &mut dyn Write, text: &str) -> io::Result<()> {
    wrapped(to, "", "", text)
}

/// What to do next, one line each.
///
/// # Errors
/// When writing fails.
pub fn hint(to: &mut dyn Write, commands: &[&str]) -> io::Result<()> {
    if !commands.is_empty() {
        writeln!(to)?;
    }
    commands.iter().try_for_each(|command| writeln!(to, "{DIM}{command}{DIM:#}"))
}

/// Where the files are, those that are there.
///
/// # Errors
/// When writing fails.
pub fn files(
    to: &mut dyn Write,
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

/// Most columns of text: longer lines are hard to read.
const WIDTH_MAX: usize = 100;
/// Fewest: prefixes alone take half of it.
const WIDTH_MIN: usize = 60;

/// Columns of text: those of the terminal, within bounds; elsewhere always the same.
fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        size.map_or(WIDTH_MAX, |size| usize::from(size.ws_col).clamp(WIDTH_MIN, WIDTH_MAX))
    })
}

/// Writes text broken into lines: `first` before the first, `next` before the others. Prefixes may
/// hold colours, which take no room. Groups of digits stay together.
///
/// # Errors
/// When writing fails.
pub fn wrapped(to: &mut dyn Write, first: &str, next: &str, text: &str) -> io::Result<()> {
    wrapped_in(width(), to, first, next, text)
}

/// Whether a word is a unit, alone or before a mark.
fn is_unit(word: &str) -> bool {
    ["%", "ns", "µs", "ms", "s"].contains(&word.trim_end_matches([',', '.', ';', ':', ')']))
}

/// The same, so many columns wide.
fn wrapped_in(
    columns: usize,
    to: &mut dyn Write,
    first: &str,
    next: &str,
    text: &str,
) -> io::Result<()> {
    let length = |prefix: &str| anstream::adapter::strip_str(prefix).to_string().chars().count();
    let (mut prefix, mut room) = (first, columns.saturating_sub(length(first)));
    let mut line = String::new();
    let mut used = 0;
    let mut words = text.split([' ', '\n']).filter(|word| !word.is_empty()).peekable();
    while let Some(first) = words.next() {
        let mut word = first.to_owned();
        // A number keeps its unit.
        while let Some(unit) = words.next_if(|next| is_unit(next)) {
            word.push(' ');
            word.push_str(unit);
        }
        let word_length = length(&word);
        if used > 0 && used + 1 + word_length > room {
            writeln!(to, "{prefix}{line}")?;
            (prefix, room) = (next, columns.saturating_sub(length(next)));
            line.clear();
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += word_length;
    }
    writeln!(to, "{prefix}{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_unit_at_the_end_of_a_line() {
        let mut out = Vec::new();
        wrapped_in(24, &mut out, "", "  ", "higher by +83 % to +96 %, (67.5 → 128 µs) in 10 s.")
            .expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "higher by +83 % to\n  +96 %, (67.5 → 128 µs)\n  in 10 s.\n");
    }
}
