//! The answer in a few lines: the verdict, why wake-ups were late, what to do next.

use std::io;

use rtproof_judge::{
    Report,
    causes::{Spikes, classes},
    units::grouped,
};

use super::sheet::{BOLD, Sheet, wrapped};
use super::verdict;

/// Classes of causes that are named.
const CLASSES_MAX: usize = 3;
/// Of all lateness, in percent: less is not worth a line.
const SHARE_MIN: u64 = 3;

/// Writes it. `next`: a command that can be pasted.
///
/// # Errors
/// When writing fails.
pub fn answer(to: &mut Sheet, report: &Report, next: Option<&str>) -> io::Result<()> {
    verdict::sentence(to, report)?;
    if let Some(why) = report.spikes.as_ref().and_then(why) {
        wrapped(to, &format!("{BOLD}Why{BOLD:#}      "), "         ", &why)?;
    }
    self::next(to, next)
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

/// The largest classes of causes, with their share of all lateness that was explained.
fn why(spikes: &Spikes) -> Option<String> {
    if let Some(why) = spikes.recorder.off.as_ref().filter(|_| spikes.seen > 0) {
        return Some(format!("not known: nothing was recorded ({why})"));
    }
    let percent = |ns: u64| (100 * u128::from(ns) / u128::from(spikes.sum_ns.max(1))) as u64;
    let classes = classes(spikes);
    let named = classes.iter().filter(|class| percent(class.sum_ns) >= SHARE_MIN);
    let named: Vec<String> = named
        .take(CLASSES_MAX)
        .map(|class| {
            let certain = percent(class.certain_ns());
            let certain = match certain == percent(class.sum_ns) {
                true => String::new(),
                false => format!(" ({certain} % for certain)"),
            };
            let culprit = class.rows.first().map_or("", |row| &row.culprit);
            let who = match (culprit, class.rows.len()) {
                ("", _) => String::new(),
                (culprit, 1) => format!(": {culprit}"),
                (culprit, _) => format!(": most of all {culprit}"),
            };
            format!("{} % {}{who}{certain}", percent(class.sum_ns), class.title)
        })
        .collect();
    let of = match spikes.explained == spikes.seen {
        true => "of all lateness".to_owned(),
        false => format!(
            "of the lateness of {} of {} spikes",
            grouped(spikes.explained),
            grouped(spikes.seen)
        ),
    };
    (!named.is_empty()).then(|| format!("{of}: {}", named.join("; ")))
}
