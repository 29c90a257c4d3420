//! Moving statistics as text: each statistic beside the cumulative one, where time has no samples,
//! and with `--moving` the windows over time.

use std::io;

use rtproof_judge::{
    Report,
    moving::{Moving, Range},
    units::{self, grouped},
};
use rtproof_stats::moving::{PERCENTILE_ERROR, STATISTICS, Statistic};

use crate::{
    distribution::number,
    text::sheet::{BOLD, DIM, Sheet, WARN, wrapped},
};

const INDENT: &str = "         ";
/// Rows of the windows over time.
const ROWS_MAX: usize = 24;
/// Gaps named in text.
const GAPS_MAX: usize = 4;

/// Each statistic in a line, gaps and missed wake-ups; `is_full`: the windows over time, too.
pub fn moving(to: &mut Sheet, report: &Report, is_full: bool) -> io::Result<()> {
    use std::io::Write;
    let moving = &report.moving;
    if moving.is_empty() {
        return Ok(());
    }
    let (window, half_life) = lengths(moving);
    writeln!(
        to,
        "{BOLD}Moving{BOLD:#}   window {window}, half-life {half_life}, a value each {}, all CPUs \
         together",
        units::duration(moving.spans.step_ns)
    )?;
    rows(to, &summary(moving))?;
    absent(to, moving)?;
    if is_full {
        writeln!(to, "  {DIM}windows of {window} that end at{DIM:#}")?;
        rows(to, &over_time(moving))?;
    }
    let text = format!(
        "Times in µs, of the samples alone. Mean, sd, g1 and g2 come from exact sums; sd has n - \
         1, or the weights. Percentiles lie up to {:.1} % above the sample; - where too few samples \
         carry one.",
        100.0 * PERCENTILE_ERROR
    );
    wrapped(to, &format!("{INDENT}{DIM}"), INDENT, &format!("{text}{DIM:#}"))
}

fn lengths(moving: &Moving) -> (String, String) {
    (units::duration(moving.spans.window_ns), units::duration(moving.spans.half_life_ns))
}

/// A value with the figures that its kind has.
fn shown(statistic: &Statistic, value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(ns) if statistic.is_time => format!("{:.3}", ns / 1000.0),
        Some(value) => number(value),
    }
}

fn summary(moving: &Moving) -> Vec<Vec<String>> {
    let heads =
        ["", "all", "window: low", "at", "high", "at", "last", "by age: low", "high", "last"];
    let mut rows = vec![heads.map(String::from).to_vec()];
    for (line, statistic) in moving.statistics.iter().zip(&STATISTICS) {
        let value = |value| shown(statistic, value);
        let of = |range: Option<Range>, of: fn(Range) -> f64| value(range.map(of));
        let at = |range: Option<Range>, of: fn(Range) -> u64| {
            range.map_or("-".into(), |range| units::duration(of(range)))
        };
        let (windowed, aged) = (line.windowed, line.exponential);
        rows.push(vec![
            statistic.name.into(),
            value(line.cumulative),
            of(windowed, |range| range.low),
            at(windowed, |range| range.low_at_ns),
            of(windowed, |range| range.high),
            at(windowed, |range| range.high_at_ns),
            value(windowed.and_then(|range| range.last)),
            of(aged, |range| range.low),
            of(aged, |range| range.high),
            value(aged.and_then(|range| range.last)),
        ]);
    }
    rows
}

/// The windows at a few moments, the last one among them.
fn over_time(moving: &Moving) -> Vec<Vec<String>> {
    let mut heads = vec!["at".to_owned()];
    heads.extend(["n", "missed", "gaps"].map(String::from));
    heads.extend(
        STATISTICS.iter().map(|of| of.name.replace("skewness ", "").replace("kurtosis ", "")),
    );
    let mut rows = vec![heads];
    let every = moving.rows.len().div_ceil(ROWS_MAX).max(1);
    for step in moving.rows.iter().rev().step_by(every).rev() {
        let windowed = step.windowed.as_ref();
        let mut row = vec![
            units::duration(step.to_ns),
            windowed.map_or("-".into(), |of| grouped(of.n as u64)),
            grouped(step.window_missed),
            grouped(step.window_gaps),
        ];
        row.extend(STATISTICS.iter().map(|of| shown(of, windowed.and_then(of.of))));
        rows.push(row);
    }
    rows
}

/// Rows in columns, the first one as the head.
fn rows(to: &mut Sheet, rows: &[Vec<String>]) -> io::Result<()> {
    super::sheet::columns(to, "  ", rows)
}

/// Time without samples and missed wake-ups.
fn absent(to: &mut Sheet, moving: &Moving) -> io::Result<()> {
    if let Some(text) = crate::distribution::gaps(moving, GAPS_MAX) {
        wrapped(to, &format!("{INDENT}{WARN}!{WARN:#} "), "           ", &text)?;
    }
    Ok(())
}
