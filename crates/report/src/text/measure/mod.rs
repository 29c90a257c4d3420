//! The cells of a matrix as text: what will be measured, and what was.

mod overview;
mod paired;

use std::{
    io::{self, Write},
    path::Path,
};

use rtproof_judge::{
    report::Machine,
    units::{self, grouped, us_column},
};
use rtproof_results::measure::{
    index::{CellResult, Index, State, ThreadResult},
    plan::Plan,
};

use crate::text::sheet::{self, BAD, BOLD, DIM, Sheet, WARN, title, wrapped};

/// The cells to be measured and the time they take.
pub fn plan(to: &mut Sheet, plan: &Plan) -> io::Result<()> {
    for cell in &plan.cells {
        writeln!(
            to,
            "{:>5}  {}, {}",
            cell.number,
            cell.title(),
            units::duration(cell.duration_ns)
        )?;
    }
    takes(to, plan)?;
    paired::before(to, plan)
}

fn takes(to: &mut Sheet, plan: &Plan) -> io::Result<()> {
    let measuring: u64 = plan.cells.iter().fold(0, |sum, c| sum.saturating_add(c.duration_ns));
    let text = format!(
        "{BOLD}Plan{BOLD:#}     {}, {} of measuring, about {} in all",
        units::count(plan.cells.len(), "cell"),
        units::duration(measuring),
        units::duration(plan.estimate_ns() / 1_000_000_000 * 1_000_000_000),
    );
    writeln!(to, "{text}")
}

/// What is printed before anything is measured.
pub fn begin(to: &mut Sheet, machine: &Machine, plan: &Plan) -> io::Result<()> {
    title(to, machine)?;
    takes(to, plan)?;
    paired::before(to, plan)
}

pub fn index(to: &mut Sheet, index: &Index, folder: &Path, verbose: bool) -> io::Result<()> {
    let mut shown: Vec<&str> = Vec::new();
    for cell in &index.cells {
        of_cell(to, cell)?;
        notes(to, cell, &mut shown)?;
        if verbose {
            moments(to, cell)?;
        }
    }
    let mut counts = vec![format!("{} done", index.count(State::Done))];
    for (state, word) in [
        (State::CutShort, "cut short"),
        (State::Failed, "failed"),
        (State::Missing, "not measured"),
    ] {
        match index.count(state) {
            0 => {}
            n => counts.push(format!("{n} {word}")),
        }
    }
    writeln!(to, "{BOLD}Cells{BOLD:#}    {}", counts.join(", "))?;
    overview::overview(to, index)?;
    paired::compared(to, index)?;
    writeln!(to, "         index {}", folder.join("index.html").display())
}

const HEADS: [&str; 14] = [
    "n", "missed", "mean", "sd", "rms", "min", "p5", "p50", "p95", "p99", "p99.9", "max", "cv",
    "spread",
];

/// Of them what a narrow terminal has no room for; the page and JSON have all of it.
const SPARE: [&str; 7] = ["rms", "spread", "cv", "p5", "p95", "sd", "mean"];

fn of_cell(to: &mut Sheet, cell: &CellResult) -> io::Result<()> {
    let name = format!("{BOLD}{:>5}{BOLD:#}  ", cell.cell.number);
    wrapped(to, &name, "       ", &cell.cell.title())?;
    match (cell.state, &cell.why) {
        (State::Missing, _) => return writeln!(to, "       {DIM}not measured{DIM:#}"),
        (State::Failed, why) => {
            let why = why.as_deref().unwrap_or("failed");
            return wrapped(to, &format!("       {BAD}!{BAD:#} "), "         ", why);
        }
        (State::CutShort, Some(why)) => {
            wrapped(
                to,
                &format!("       {WARN}!{WARN:#} "),
                "         ",
                &format!("cut short: {why}"),
            )?;
        }
        _ => {}
    }
    table(to, &cell.threads)?;
    if let Some(spikes) = &cell.spikes {
        wrapped(to, "       ", "         ", spikes)?;
    }
    crate::text::beside::changes(to, &cell.beside)?;
    crate::text::beside::states(to, &cell.beside)
}

fn table(to: &mut Sheet, threads: &[ThreadResult]) -> io::Result<()> {
    let mut rows: Vec<Vec<String>> =
        vec![[String::new()].into_iter().chain(HEADS.map(String::from)).collect()];
    let mixed = threads.windows(2).any(|two| two[0].workload != two[1].workload);
    rows.extend(threads.iter().map(|thread| row(thread, mixed)));
    sheet::table(to, "       ", &rows, &SPARE)?;
    for thread in threads {
        if let Some(intervals) = &thread.intervals {
            let us = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.3}", ns / 1000.0));
            let whole = |ns: Option<u64>| us(ns.map(|ns| ns as f64));
            let text = format!(
                "CPU {} intervals: n {}, mean {}, sd {}, rms about the period {}, min {}, max {} \
                 µs",
                thread.cpu,
                grouped(intervals.n),
                us(intervals.mean_ns),
                us(intervals.sd_ns),
                us(intervals.rms_ns),
                whole(intervals.min_ns),
                whole(intervals.max_ns),
            );
            wrapped(to, "       ", "         ", &text)?;
        }
    }
    Ok(())
}

fn row(thread: &ThreadResult, mixed: bool) -> Vec<String> {
    let time = |ns: Option<u64>| ns.map_or("-".into(), us_column);
    let mean = |ns: Option<f64>| time(ns.map(|ns| ns.round() as u64));
    let part = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
    let (samples, quantiles) = (&thread.samples, &thread.quantiles);
    let name = match mixed {
        true => format!("CPU {} {}", thread.cpu, thread.workload),
        false => format!("CPU {} {}", thread.cpu, thread.quantity.replace('_', "-")),
    };
    vec![
        name,
        grouped(samples.n),
        grouped(thread.missed),
        mean(samples.mean_ns),
        mean(samples.sd_ns),
        mean(samples.rms_ns),
        time(samples.min_ns),
        time(quantiles.p5_ns),
        time(quantiles.p50_ns),
        time(quantiles.p95_ns),
        time(quantiles.p99_ns),
        time(quantiles.p999_ns),
        time(samples.max_ns),
        part(thread.cv),
        part(thread.spread),
    ]
}

/// What must be known of a cell: own cost, lost cycles, where time went. Said once where it is the
/// same of several cells.
fn notes<'a>(to: &mut Sheet, cell: &'a CellResult, shown: &mut Vec<&'a str>) -> io::Result<()> {
    for note in &cell.notes {
        if shown.contains(&note.as_str()) {
            continue;
        }
        shown.push(note);
        wrapped(to, &format!("       {WARN}!{WARN:#} "), "         ", note)?;
    }
    Ok(())
}

/// Moments of the cell's CPUs; docs/statistics.md has the conventions.
fn moments(to: &mut Sheet, cell: &CellResult) -> io::Result<()> {
    if cell.threads.is_empty() {
        return Ok(());
    }
    let named = |thread: &'_ ThreadResult| format!("CPU {} moments", thread.cpu);
    let rows: Vec<_> = cell.threads.iter().map(|of| (named(of), &of.distribution)).collect();
    crate::text::distribution::moments(to, "       ", &rows)?;
    cell.threads.iter().try_for_each(|thread| {
        crate::text::distribution::estimates(to, "       ", &thread.distribution)
    })
}
