//! The index of a matrix as one HTML page: all cells in a picture and a table, with links to their
//! reports.

use std::{
    io::{self, Write},
    path::Path,
};

use maud::{Markup, html};

use rtproof_judge::{
    report::MachineSummary,
    units::{self, grouped, us_column},
};
use rtproof_results::{
    Answer,
    measure::{Cell, CellResult, CellState, Index, MeasurePlan, SpikeCount, ThreadResult},
};
use rtproof_stats::paired::{PAIRS, PAIRS_MIN};

use super::{summary, time};
use crate::svg::ranges::{self, RangeRow};
use crate::text::{self, BAD, BOLD, DIM, Terminal, TextPage, WARN, title_line, wrapped};
use crate::timeline::fitted;

/// Rows of the picture, at most: the table has all.
const DRAWN_MAX: usize = 150;

/// Causes of spikes in sight; the others are closed.
const SPIKES_FIRST: usize = 10;

pub fn page(index: &Index, answer: &Answer) -> String {
    let host = index.machine.as_ref().and_then(|machine| machine.hostname.as_deref());
    let host = host.unwrap_or("unknown machine");
    let body = html! {
        (header(index, host))
        main.measured {
            section.sheet #answer {
                p.sentence { (answer.result) }
                (summary::short_html(answer))
            }
            nav.contents aria-label="Printing" { (crate::html::print_all()) }
            (picture(index))
            (numbers(index))
            (cells(index))
            (spikes(index))
            (moments_html(index))
            (changes(index))
            (idle(index))
        }
        footer {
            p { "Made by rtproof " (index.tool_version) ". The numbers are in index.json." }
        }
        (crate::html::script())
    };
    crate::html::page(&format!("Measured – {host}"), Some(index.tool_version), &body)
}

fn header(index: &Index, host: &str) -> Markup {
    let line: Vec<String> = index
        .machine
        .iter()
        .flat_map(|machine| {
            let kernel = machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}"));
            let cpus = machine.cpus_online.map(|n| units::count(n, "CPU"));
            let preemption = Some(machine.preemption.clone());
            [machine.model.clone(), machine.cpu_model.clone(), cpus, kernel, preemption]
        })
        .flatten()
        .collect();
    html! {
        header {
            p.tool { "rtproof · measured, not judged" }
            h1 { (host) }
            p { (line.join(" · ")) }
            p.quiet {
                (units::count(index.cells.len(), "cell")) ": "
                (index.count(CellState::Done)) " done"
                @for (state, word) in [
                    (CellState::CutShort, "cut short"),
                    (CellState::Failed, "failed"),
                    (CellState::Missing, "not measured"),
                ] {
                    @let n = index.count(state);
                    @if n > 0 { ", " (n) " " (word) }
                }
            }
        }
    }
}

fn name_html(cell: &CellResult, thread: &ThreadResult) -> String {
    let of = &cell.cell;
    let mut parts = vec![
        format!("{} {}", of.number, thread.workload),
        format!("CPU {}", thread.cpu),
        of.scheduling(),
        units::ns(of.period_ns),
        of.load.clone(),
    ];
    parts.extend((!of.condition.is_empty()).then(|| of.condition.clone()));
    parts.join(" · ")
}

fn picture(index: &Index) -> Markup {
    let title = "From the smallest sample to the largest";
    let mut rows = Vec::new();
    let mut last = None;
    for (cell, thread) in index.rows() {
        let (Some(min), Some(max)) = (thread.samples.min_ns, thread.samples.max_ns) else {
            continue;
        };
        let quantiles = &thread.quantiles;
        rows.push(RangeRow {
            name: name_html(cell, thread),
            ends_ns: [min, max],
            median_ns: quantiles.p50_ns,
            quantiles_ns: [quantiles.p5_ns, quantiles.p95_ns, quantiles.p99_ns, quantiles.p999_ns],
            begins: last != Some(&thread.workload),
        });
        last = Some(&thread.workload);
    }
    if rows.is_empty() {
        let none = crate::html::no_chart("chart-ranges", title, "Nothing was measured.");
        return html! { section #ranges { (none) } };
    }
    let all = rows.len();
    rows.truncate(DRAWN_MAX);
    let text = format!(
        "{} of {}: the line goes from the smallest to the largest sample, the large dot is the \
         median, small ones are p5, p95, p99 and p99.9, the ring is the maximum.",
        units::count(rows.len(), "row"),
        all
    );
    html! {
        section #ranges {
            h2 { "All cells" }
            (crate::html::figure(&crate::html::Figure {
                title,
                text: &text,
                picture: ranges::draw_ranges(&rows, (title, &text)),
                legend: Markup::default(),
                table: None,
            }))
        }
    }
}

fn numbers(index: &Index) -> Markup {
    let rows: Vec<_> = index.rows().collect();
    let part = |value: Option<f64>| value.map_or(crate::html::NONE.into(), |v| format!("{v:.3}"));
    let table = crate::html::table(
        rows,
        &[
            ("#cell", &|(cell, _)| {
                html! { a href={ (cell.cell.name) ".html" } { (cell.cell.number) } }
            }),
            ("workload", &|(_, thread)| html! { (thread.workload) }),
            ("of", &|(_, thread)| html! { (thread.quantity.replace('_', "-")) }),
            ("#CPU", &|(_, thread)| html! { (thread.cpu) }),
            ("policy", &|(cell, _)| html! { (cell.cell.scheduling()) }),
            ("#period", &|(cell, _)| html! { (units::ns(cell.cell.period_ns)) }),
            ("load", &|(cell, _)| html! { (cell.cell.load) }),
            ("condition", &|(cell, _)| {
                html! {
                    (cell.cell.condition)
                    @if cell.cell.repetition > 1 { " r" (cell.cell.repetition) }
                }
            }),
            ("#n", &|(_, thread)| html! { (grouped(thread.samples.n)) }),
            ("#missed", &|(_, thread)| html! { (grouped(thread.missed)) }),
            ("#mean", &|(_, thread)| html! { (crate::html::us_mean(thread.samples.mean_ns)) }),
            ("#sd", &|(_, thread)| html! { (crate::html::us_mean(thread.samples.sd_ns)) }),
            ("#rms", &|(_, thread)| html! { (crate::html::us_mean(thread.samples.rms_ns)) }),
            ("#min", &|(_, thread)| html! { (crate::html::us(thread.samples.min_ns)) }),
            ("#p5", &|(_, thread)| html! { (crate::html::us(thread.quantiles.p5_ns)) }),
            ("#p50", &|(_, thread)| html! { (crate::html::us(thread.quantiles.p50_ns)) }),
            ("#p95", &|(_, thread)| html! { (crate::html::us(thread.quantiles.p95_ns)) }),
            ("#p99", &|(_, thread)| html! { (crate::html::us(thread.quantiles.p99_ns)) }),
            ("#p99.9", &|(_, thread)| html! { (crate::html::us(thread.quantiles.p999_ns)) }),
            ("#max", &|(_, thread)| html! { (crate::html::us(thread.samples.max_ns)) }),
            ("#cv", &|(_, thread)| html! { (part(thread.cv)) }),
            ("#spread", &|(_, thread)| html! { (part(thread.spread)) }),
        ],
    );
    html! {
        section #numbers {
            h2 { "The numbers" }
            p.quiet {
                "Microseconds. sd is about the mean, rms about the nominal value (0 for lateness; \
                 none for a duration); cv = sd / mean, spread = (max - min) / median. A quantile \
                 that the samples do not carry is left open."
            }
            (crate::html::scroll("The numbers", &table))
            (intervals(index))
        }
    }
}

/// Moments of all cells, folded: nothing is decided by them.
fn moments_html(index: &Index) -> Markup {
    let rows: Vec<_> = index.rows().collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let rows =
        rows.into_iter().map(|(cell, thread)| (name_html(cell, thread), &thread.distribution));
    html! {
        (crate::html::folded("Moments", &html! {
            section #moments {
                p.quiet { (super::distribution::CONVENTION) }
                (crate::html::scroll("Moments", &super::distribution::moments_html(rows)))
            }
        }))
    }
}

fn intervals(index: &Index) -> Markup {
    let rows: Vec<_> =
        index.rows().filter_map(|(c, t)| Some((c, t, t.intervals.as_ref()?))).collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let us =
        |ns: Option<f64>| ns.map_or(crate::html::NONE.into(), |ns| format!("{:.3}", ns / 1000.0));
    let table = crate::html::table(
        rows,
        &[
            ("#cell", &|(cell, _, _)| html! { (cell.cell.number) }),
            ("workload", &|(_, thread, _)| html! { (thread.workload) }),
            ("#CPU", &|(_, thread, _)| html! { (thread.cpu) }),
            ("#n", &|(_, _, of)| html! { (grouped(of.n)) }),
            ("#mean", &|(_, _, of)| html! { (us(of.mean_ns)) }),
            ("#sd", &|(_, _, of)| html! { (us(of.sd_ns)) }),
            ("#rms", &|(_, _, of)| html! { (us(of.rms_ns)) }),
            ("#min", &|(_, _, of)| html! { (crate::html::us(of.min_ns)) }),
            ("#max", &|(_, _, of)| html! { (crate::html::us(of.max_ns)) }),
        ],
    );
    html! {
        h3 { "Intervals from one wake-up to the next, µs" }
        (crate::html::scroll("Intervals", &table))
    }
}

fn changes(index: &Index) -> Markup {
    if index.segments().next().is_none() {
        return Markup::default();
    }
    html! {
        (crate::html::folded("Threads that were changed from outside", &html! {
            section #changes {
                p.quiet { "Whole seconds; those in which a thread was changed are left out." }
                @let segments = time::segments(index.segments().map(|s| s.1));
                (crate::html::scroll("Between the changes", &segments))
            }
        }))
    }
}

fn spikes(index: &Index) -> Markup {
    let rows: Vec<_> =
        index.rows().flat_map(|(c, t)| t.spikes.iter().map(move |s| (c, t, s))).collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let (first, rest) = rows.split_at(rows.len().min(SPIKES_FIRST));
    let table = |rows: &[(&CellResult, &ThreadResult, &SpikeCount)]| {
        crate::html::table(
            rows,
            &[
                ("#cell", &|(cell, _, _)| html! { (cell.cell.number) }),
                ("workload", &|(_, thread, _)| html! { (thread.workload) }),
                ("#CPU", &|(_, thread, _)| html! { (thread.cpu) }),
                ("~cause", &|(_, _, spike)| html! { (spike.title) }),
                ("~who", &|(_, _, spike)| html! { (spike.culprit) }),
                ("#spikes", &|(_, _, spike)| html! { (grouped(spike.count)) }),
                ("#worst, µs", &|(_, _, spike)| html! { (crate::html::us(Some(spike.worst_ns))) }),
                ("#sum, µs", &|(_, _, spike)| html! { (crate::html::us(Some(spike.sum_ns))) }),
            ],
        )
    };
    let title = "Spikes by cause";
    html! {
        section #spikes {
            h2 { (title) }
            @for cell in &index.cells {
                @if let Some(spikes) = &cell.spikes {
                    p { "Cell " (cell.cell.number) ": " (spikes) }
                }
            }
            (crate::html::scroll(title, &table(first)))
            @if !rest.is_empty() {
                details.more {
                    summary { (rest.len()) " more" }
                    (crate::html::scroll("More spikes by cause", &table(rest)))
                }
            }
        }
    }
}

fn idle(index: &Index) -> Markup {
    let cells: Vec<_> =
        index.cells.iter().filter(|cell| !cell.surroundings.idle.is_empty()).collect();
    if cells.is_empty() {
        return Markup::default();
    }
    html! {
        (crate::html::folded("Idle states", &html! {
            section #idle {
                @for cell in cells {
                    details.numbers {
                        summary { "Cell " (cell.cell.number) ": " (cell.cell.title()) }
                        (crate::html::scroll("Idle states", &time::idle_html(&cell.surroundings)))
                    }
                }
            }
        }))
    }
}

fn state(state: CellState) -> Markup {
    let (class, icon, word) = match state {
        CellState::Done => ("good", "check", "done"),
        CellState::CutShort => ("doubtful", "warn", "cut short"),
        CellState::Failed => ("bad", "cross", "failed"),
        CellState::Missing => ("idle", "dash", "not measured"),
    };
    html! { span class={ "status " (class) } { (crate::html::icon(icon)) (word) } }
}

fn cells(index: &Index) -> Markup {
    let table = crate::html::table(
        &index.cells,
        &[
            ("#cell", &|cell| html! { (cell.cell.number) }),
            ("~what", &|cell| html! { (cell.cell.title()) }),
            ("for", &|cell| html! { (units::duration(cell.cell.duration_ns)) }),
            ("begun", &|cell| {
                let started_ns = cell.started_realtime_ns;
                html! { (started_ns.map_or(crate::html::NONE.into(), crate::html::wall_clock)) }
            }),
            ("state", &|cell| state(cell.state)),
            ("files", &|cell| {
                html! { @if cell.started_realtime_ns.is_some() {
                    a href={ (cell.cell.name) ".html" } { "report" } " "
                    a href={ (cell.cell.name) ".rtproof" } { "record" }
                } }
            }),
            ("~to know", &|cell| {
                html! { @if let Some(why) = &cell.why { (why) " " }
                @if !cell.notes.is_empty() {
                    details { summary { (units::count(cell.notes.len(), "note")) }
                        ul { @for note in &cell.notes { li { (note) } } }
                    }
                } }
            }),
        ],
    );
    html! {
        section #cells {
            h2 { "Cells" }
            @for condition in &index.conditions {
                @if let Some(before) = &condition.before {
                    p { (condition.name) ": made by " code { (before) }
                        @if let Some(after) = &condition.after {
                            ", taken back by " code { (after) }
                        }
                    }
                }
            }
            (crate::html::scroll("Cells", &table))
        }
    }
}

// The cells of a matrix as text: what will be measured, and what was.

/// The cells to be measured and the time they take.
pub fn plan(to: &mut Terminal, plan: &MeasurePlan) -> io::Result<()> {
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
    before(to, plan)
}

fn takes(to: &mut Terminal, plan: &MeasurePlan) -> io::Result<()> {
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
pub fn begin(to: &mut Terminal, machine: &MachineSummary, plan: &MeasurePlan) -> io::Result<()> {
    title_line(to, machine)?;
    takes(to, plan)?;
    before(to, plan)
}

pub fn index(to: &mut Terminal, index: &Index, folder: &Path, verbose: bool) -> io::Result<()> {
    let mut shown: Vec<&str> = Vec::new();
    for cell in &index.cells {
        of_cell(to, cell)?;
        notes(to, cell, &mut shown)?;
        if verbose {
            moments_text(to, cell)?;
        }
    }
    let mut counts = vec![format!("{} done", index.count(CellState::Done))];
    for (state, word) in [
        (CellState::CutShort, "cut short"),
        (CellState::Failed, "failed"),
        (CellState::Missing, "not measured"),
    ] {
        match index.count(state) {
            0 => {}
            n => counts.push(format!("{n} {word}")),
        }
    }
    writeln!(to, "{BOLD}Cells{BOLD:#}    {}", counts.join(", "))?;
    overview(to, index)?;
    compared(to, index)?;
    writeln!(to, "         index {}", folder.join("index.html").display())
}

const CELL_HEADS: [&str; 14] = [
    "n", "missed", "mean", "sd", "rms", "min", "p5", "p50", "p95", "p99", "p99.9", "max", "cv",
    "spread",
];

/// Of them what a narrow terminal has no room for; the page and JSON have all of it.
const SPARE: [&str; 7] = ["rms", "spread", "cv", "p5", "p95", "sd", "mean"];

fn of_cell(to: &mut Terminal, cell: &CellResult) -> io::Result<()> {
    let name = format!("{BOLD}{:>5}{BOLD:#}  ", cell.cell.number);
    wrapped(to, &name, "       ", &cell.cell.title())?;
    match (cell.state, &cell.why) {
        (CellState::Missing, _) => return writeln!(to, "       {DIM}not measured{DIM:#}"),
        (CellState::Failed, why) => {
            let why = why.as_deref().unwrap_or("failed");
            return wrapped(to, &format!("       {BAD}!{BAD:#} "), "         ", why);
        }
        (CellState::CutShort, Some(why)) => {
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
    time::changes_text(to, &cell.surroundings)?;
    time::states(to, &cell.surroundings)
}

fn table(to: &mut Terminal, threads: &[ThreadResult]) -> io::Result<()> {
    let mut rows: Vec<Vec<String>> =
        vec![[String::new()].into_iter().chain(CELL_HEADS.map(String::from)).collect()];
    let mixed = threads.windows(2).any(|two| two[0].workload != two[1].workload);
    rows.extend(threads.iter().map(|thread| cell_row(thread, mixed)));
    text::table(to, "       ", &rows, &SPARE)?;
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

fn cell_row(thread: &ThreadResult, mixed: bool) -> Vec<String> {
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

/// Caveats of a cell: own cost, lost cycles, where time went. Said once where it is the
/// same of several cells.
fn notes<'a>(to: &mut Terminal, cell: &'a CellResult, shown: &mut Vec<&'a str>) -> io::Result<()> {
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
fn moments_text(to: &mut Terminal, cell: &CellResult) -> io::Result<()> {
    if cell.threads.is_empty() {
        return Ok(());
    }
    let named = |thread: &'_ ThreadResult| format!("CPU {} moments", thread.cpu);
    let rows: Vec<_> = cell.threads.iter().map(|of| (named(of), &of.distribution)).collect();
    super::distribution::moments_text(to, "       ", &rows)?;
    cell.threads
        .iter()
        .try_for_each(|thread| super::distribution::estimates(to, "       ", &thread.distribution))
}

// All cells in one table, a line a cell: where to look first.

const OVERVIEW_HEADS: [&str; 7] = ["p5", "p50", "p95", "p99", "p99.9", "max", "missed"];

/// Columns of a bar, the largest of all.
const BAR: usize = 8;

/// Fewest columns in which a cause is worth its place.
const CAUSE_MIN: usize = 16;

/// A cell by its worst CPU.
struct Row<'a> {
    name: String,
    worst: &'a ThreadResult,
    cells: [String; OVERVIEW_HEADS.len()],
}

/// The table; nothing for a single cell.
fn overview(to: &mut Terminal, index: &Index) -> io::Result<()> {
    let rows: Vec<Row<'_>> =
        index.cells.iter().filter_map(|cell| overview_row(cell, index)).collect();
    if rows.len() < 2 {
        return Ok(());
    }
    let TextPage { columns, glyphs } = to.page;
    let widths: Vec<usize> = (0..OVERVIEW_HEADS.len())
        .map(|at| rows.iter().map(|row| row.cells[at].chars().count()).max().unwrap_or(0))
        .zip(OVERVIEW_HEADS)
        .map(|(wide, head)| wide.max(head.len()))
        .collect();
    let figures: usize = widths.iter().map(|width| width + 2).sum::<usize>() + BAR + 2;
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let room = longest.min(columns.saturating_sub(7 + figures).max(16));
    let heads = widths.iter().zip(OVERVIEW_HEADS).map(|(width, head)| format!("  {head:>width$}"));
    let heads: String = heads.collect();
    writeln!(to, "       {DIM}{:room$}{heads}  µs{DIM:#}", "")?;
    let of = |row: &Row<'_>| row.worst.samples.max_ns.unwrap_or(0).max(1) as f64;
    let most = rows.iter().map(of).fold(1.0, f64::max);
    for (row, cell) in rows.iter().zip(index.cells.iter().filter(|cell| !cell.threads.is_empty())) {
        let filled = (of(row) / most * BAR as f64).ceil() as usize;
        let bar: String = std::iter::repeat_n(glyphs.blocks[0], filled).collect();
        let name = fitted(&rtproof_host::text::harmless_line(&row.name), room);
        let figures =
            row.cells.iter().zip(&widths).map(|(text, width)| format!("  {text:>width$}"));
        let figures: String = figures.collect();
        let line = format!("{:>5}  {name:<room$}{figures}  {bar:<BAR$}", cell.cell.number);
        let left = columns.saturating_sub(line.chars().count() + 2);
        let cause = row.worst.spikes.first().filter(|_| left >= CAUSE_MIN);
        let cause = cause.map_or_else(String::new, |cause| {
            format!(
                "  {DIM}{}{DIM:#}",
                fitted(&rtproof_host::text::harmless_line(cause.class()), left)
            )
        });
        writeln!(to, "{}{cause}", if cause.is_empty() { line.trim_end() } else { &line })?;
    }
    Ok(())
}

fn overview_row<'a>(cell: &'a CellResult, index: &Index) -> Option<Row<'a>> {
    let worst = cell.threads.iter().max_by_key(|thread| thread.samples.max_ns)?;
    let time = |ns: Option<u64>| ns.map_or("-".into(), us_column);
    let missed: u64 = cell.threads.iter().map(|thread| thread.missed).sum();
    let quantiles = &worst.quantiles;
    let cells = [
        time(quantiles.p5_ns),
        time(quantiles.p50_ns),
        time(quantiles.p95_ns),
        time(quantiles.p99_ns),
        time(quantiles.p999_ns),
        time(worst.samples.max_ns),
        grouped(missed),
    ];
    let mut name = name_text(&cell.cell, index);
    if cell.threads.len() > 1 {
        name += &format!(", worst CPU {}", worst.cpu);
    }
    Some(Row { name, worst, cells })
}

/// What distinguishes a cell from the others.
fn name_text(cell: &Cell, index: &Index) -> String {
    let parts = |cell: &Cell| cell.title().split(", ").map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = index.cells.iter().map(|cell| parts(&cell.cell)).collect();
    let own = parts(cell);
    let is_own = |part: &&String| all.iter().any(|other| !other.contains(part));
    let named: Vec<String> = own.iter().filter(is_own).cloned().collect();
    if named.is_empty() { cell.doing() } else { named.join(", ") }
}

// Two states of the machine compared: how many pairs there are, and what they decide.

/// Combinations that are named, at most.
const SHOWN: usize = 20;

/// Columns before the text.
const MARGIN: &str = "         ";

/// Whether so many repetitions can decide between two conditions; before anything is measured.
fn before(to: &mut Terminal, plan: &MeasurePlan) -> io::Result<()> {
    let [first, second] = plan.conditions.as_slice() else { return Ok(()) };
    let pairs = plan.cells.iter().map(|cell| cell.repetition).max().unwrap_or(0) as usize;
    let text = match pairs {
        0..PAIRS_MIN => format!(
            "{pairs} of {} and {}: shown, not decided; --repeat {PAIRS_MIN} decides on large \
             changes, --repeat {PAIRS} on smaller ones",
            first.name, second.name
        ),
        _ => format!(
            "{pairs} of {} and {}: enough to decide ({PAIRS_MIN} are needed; {PAIRS} find smaller \
             changes)",
            first.name, second.name
        ),
    };
    wrapped(to, &format!("{BOLD}Pairs{BOLD:#}    "), MARGIN, &text)
}

/// What the pairs decide, a line a combination.
fn compared(to: &mut Terminal, index: &Index) -> io::Result<()> {
    for (at, pair) in index.compared.iter().take(SHOWN).enumerate() {
        let head = if at == 0 { format!("{BOLD}Compare{BOLD:#}  ") } else { MARGIN.into() };
        let text = format!("{}: {}", pair.what, pair.sentence);
        wrapped(to, &head, "           ", &text)?;
        let least = match pair.detectable_ratio {
            Some(ratio) => format!(
                "{} pairs find a change of p99.9 by a factor of {ratio:.2} four times in five",
                pair.pairs
            ),
            None if pair.pairs < pair.pairs_min => format!(
                "pairs: {}, needed: {}; more: --repeat {}",
                pair.pairs,
                pair.pairs_min,
                pair.pairs_min.max(PAIRS)
            ),
            None => format!("pairs: {}; the smallest change they find is unknown", pair.pairs),
        };
        wrapped(to, &format!("           {DIM}"), "           ", &format!("{least}{DIM:#}"))?;
    }
    let more = match index.compared.len() {
        0 | 1 => return Ok(()),
        n if n > SHOWN => format!("{} more are in index.json. ", n - SHOWN),
        _ => String::new(),
    };
    let text = format!(
        "{more}Each comparison has its own confidence of 95 %: of twenty without a difference, one \
         may still decide."
    );
    wrapped(to, MARGIN, MARGIN, &text)
}
