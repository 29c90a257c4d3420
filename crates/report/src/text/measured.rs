//! The measurement as a table: CPUs as rows, the account and the quantiles as columns.

use std::io::{self, Write};

use rtproof_judge::{
    Report,
    report::Measured,
    units::{self, grouped, us_column},
};
use rtproof_model::run::APPLICATION;
use rtproof_record::run::ThreadInfo;
use rtproof_stats::quantile::Q;

use crate::text::sheet::{BAD, BOLD, DIM, Ink, Sheet, WARN, wrapped};

/// What was asked, what was measured, what must be known of it.
pub fn measured(to: &mut Sheet, report: &Report) -> io::Result<()> {
    asked(to, report)?;
    table(to, report)?;
    cost(to, report)?;
    for note in report.notes.iter().take(NOTES_MAX) {
        let style = if note.weakens { BAD } else { WARN };
        wrapped(to, &format!("         {style}!{style:#} "), "           ", &note.text)?;
    }
    if report.notes.len() > NOTES_MAX {
        let more = report.notes.len() - NOTES_MAX;
        writeln!(to, "         and {more} more: rtproof export --format csv --table notes")?;
    }
    super::beside::changes(to, &report.beside)?;
    for load in report.loads.iter().filter(|load| load.error.is_none()) {
        let seconds = (load.to_ns.saturating_sub(load.from_ns)) as f64 / 1e9;
        let rate = if seconds > 0.0 { load.work as f64 / seconds } else { 0.0 };
        let rate = rate_text(rate, &load.unit);
        let comma = if load.detail.is_empty() { "" } else { ", " };
        let text = format!("load {}: {rate}{comma}{}", load.name, load.detail);
        wrapped(to, &format!("         {DIM}"), "           ", &format!("{text}{DIM:#}"))?;
    }
    Ok(())
}

/// Most notes in text: a run has a handful.
const NOTES_MAX: usize = 200;

fn asked(to: &mut Sheet, report: &Report) -> io::Result<()> {
    let options = &report.options;
    let policy = match options.policy.name().to_uppercase() {
        name if options.priority > 0 => format!("{name} {}", options.priority),
        name => name,
    };
    let load: Vec<&str> = match options.phases.as_slice() {
        // A program of `rtproof run`.
        [] => vec!["what ran beside it"],
        phases => phases.iter().map(|phase| phase.name.as_str()).collect(),
    };
    let text = format!(
        "{}  {policy}  period {}  load {}  {}",
        units::cpus(&options.cpus),
        units::ns(options.period_ns),
        load.join(", then "),
        report.duration_text(),
    );
    writeln!(to, "{BOLD}Measure{BOLD:#}  {text}")
}

const HEADS: [&str; 11] =
    ["", "scheduled", "missed", "late", "min", "p5", "p50", "p95", "p99", "p99.9", "max"];
/// Columns of [`HEADS`] that a terminal of 80 columns has no room for: p5 and p95.
const WIDE: [usize; 2] = [5, 7];
/// Columns of a terminal from which on these are shown.
const WIDE_MIN: usize = 100;

fn table(to: &mut Sheet, report: &Report) -> io::Result<()> {
    let budget_ns = report.options.requirement.budget_ns;
    let columns = to.page.columns;
    let mut rows = vec![HEADS.map(String::from)];
    rows.extend(report.cpus.iter().map(|cpu| row(&label(&cpu.thread), &cpu.measured, columns)));
    if report.cpus.len() > 1 {
        rows.push(row("all", &report.all, columns));
    }
    if report.phases.len() > 1 {
        rows.extend(report.phases.iter().map(|phase| row(&phase.name, &phase.measured, columns)));
    }
    let skip = |column: usize| {
        column == 3 && budget_ns.is_none() || columns < WIDE_MIN && WIDE.contains(&column)
    };
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    for (i, row) in rows.iter().enumerate() {
        let style = if i == 0 { DIM } else { Ink::PLAIN };
        write!(to, "  {style}{:<w$}", row[0], w = widths[0])?;
        for column in (1..HEADS.len()).filter(|&column| !skip(column)) {
            let pad = widths[column] - row[column].chars().count();
            let is_late = i > 0 && column == 3 && row[3] != "0";
            let style = if is_late { BAD } else { style };
            write!(to, "  {}{style}{}{style:#}", " ".repeat(pad), row[column])?;
        }
        writeln!(to, "{style:#}{}", if i == 0 { "   µs" } else { "" })?;
    }
    Ok(())
}

/// A thread of a program has a name of its own.
fn label(thread: &ThreadInfo) -> String {
    match thread.workload.strip_prefix(APPLICATION) {
        Some(name) => format!("{name} CPU {}", thread.cpu),
        None => format!("CPU {}", thread.cpu),
    }
}

/// Columns that the numbers of a row take, without [`WIDE`] and with it.
const NUMBERS_WIDTH: [usize; 2] = [72, 88];

/// A name, cut where the terminal has no room for it.
fn fitting(name: &str, width: usize) -> String {
    let numbers = NUMBERS_WIDTH[usize::from(width >= WIDE_MIN)];
    let room = width.saturating_sub(numbers).max(6);
    match name.chars().count() <= room {
        true => name.into(),
        false => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

fn row(name: &str, measured: &Measured, columns: usize) -> [String; 11] {
    let time = |ns: Option<u64>| ns.map_or("-".into(), us_column);
    let [p5, p50, p95, p99, p99_9] = Q::TABLE.map(|q| time(measured.wake_ns(q)));
    [
        fitting(name, columns),
        grouped(measured.scheduled),
        grouped(measured.missed),
        grouped(measured.late),
        time(measured.min_ns),
        p5,
        p50,
        p95,
        p99,
        p99_9,
        time(measured.max_ns),
    ]
}

fn cost(to: &mut Sheet, report: &Report) -> io::Result<()> {
    let cost = &report.cost;
    let text = format!(
        "clock read {} ns, step {} ns, resolution {} ns; recording {} ns a sample; shortest \
         period {}",
        cost.clock_read_ps.div_ceil(1000),
        cost.clock_step_ns,
        cost.clock_getres_ns,
        cost.record_ps.div_ceil(1000),
        units::ns(cost.floor_ns)
    );
    wrapped(to, &format!("         {DIM}"), "           ", &format!("{text}{DIM:#}"))
}

/// A rate with a prefix: `1.2 M ops/s`; bytes with a binary one, as on the page: `1.2 GiB/s`.
fn rate_text(rate: f64, unit: &str) -> String {
    if unit == "bytes" {
        return format!("{}/s", crate::html::bytes(rate.round() as u64));
    }
    let (value, prefix) = match rate {
        r if r >= 1e9 => (r / 1e9, "G "),
        r if r >= 1e6 => (r / 1e6, "M "),
        r if r >= 1e3 => (r / 1e3, "k "),
        r => (r, ""),
    };
    format!("{value:.1} {prefix}{unit}/s")
}

#[cfg(test)]
mod tests {
    use super::rate_text;

    #[test]
    fn bytes_have_the_units_of_the_page() {
        assert_eq!(rate_text(1_610_612_736.0, "bytes"), "1.5 GiB/s");
        assert_eq!(rate_text(1_500_000.0, "ops"), "1.5 M ops/s");
    }
}
