//! The answer in a few lines: the verdict, why wake-ups were late, what to do next.

use std::io;

use rtproof_judge::{
    Report,
    causes::{Spikes, title},
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
    let mut classes: Vec<(&str, u64, u64, &str)> = Vec::new();
    for row in &spikes.causes {
        match classes.iter_mut().find(|class| class.0 == row.cause) {
            Some(class) => {
                class.1 += row.sum_ns;
                class.2 += row.ambiguous_ns;
            }
            None => classes.push((&row.cause, row.sum_ns, row.ambiguous_ns, &row.culprit)),
        }
    }
    classes.sort_by_key(|class| std::cmp::Reverse(class.1));
    let percent = |ns: u64| (100 * u128::from(ns) / u128::from(spikes.sum_ns.max(1))) as u64;
    let named = classes.iter().filter(|class| percent(class.1) >= SHARE_MIN).take(CLASSES_MAX);
    let named: Vec<String> = named
        .map(|&(cause, sum_ns, ambiguous_ns, culprit)| {
            let certain = percent(sum_ns.saturating_sub(ambiguous_ns));
            let certain = match certain == percent(sum_ns) {
                true => String::new(),
                false => format!(" ({certain} % for certain)"),
            };
            let who = if culprit.is_empty() { String::new() } else { format!(": {culprit}") };
            let name = title(cause).split(':').next().unwrap_or_default();
            format!("{} % {name}{who}{certain}", percent(sum_ns))
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
