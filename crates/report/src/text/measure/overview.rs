//! All cells in one table, a line a cell: where to look first.

use std::io::{self, Write};

use rtproof_host::harmless;
use rtproof_judge::units::{grouped, us_column};
use rtproof_results::measure::{
    index::{CellResult, Index, ThreadResult},
    plan::Cell,
};

use crate::text::{
    sheet::{DIM, Page, Sheet},
    timeline::fitted,
};

const HEADS: [&str; 7] = ["p5", "p50", "p95", "p99", "p99.9", "max", "missed"];
/// Columns of a bar, the largest of all.
const BAR: usize = 8;
/// Fewest columns in which a cause is worth its place.
const CAUSE_MIN: usize = 16;

/// A cell by its worst CPU.
struct Row<'a> {
    name: String,
    worst: &'a ThreadResult,
    cells: [String; HEADS.len()],
}

/// The table; nothing for a single cell.
pub(super) fn overview(to: &mut Sheet, index: &Index) -> io::Result<()> {
    let rows: Vec<Row<'_>> = index.cells.iter().filter_map(|cell| row(cell, index)).collect();
    if rows.len() < 2 {
        return Ok(());
    }
    let Page { columns, glyphs } = to.page;
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|at| rows.iter().map(|row| row.cells[at].chars().count()).max().unwrap_or(0))
        .zip(HEADS)
        .map(|(wide, head)| wide.max(head.len()))
        .collect();
    let figures: usize = widths.iter().map(|width| width + 2).sum::<usize>() + BAR + 2;
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let room = longest.min(columns.saturating_sub(7 + figures).max(16));
    let heads = widths.iter().zip(HEADS).map(|(width, head)| format!("  {head:>width$}"));
    let heads: String = heads.collect();
    writeln!(to, "       {DIM}{:room$}{heads}  µs{DIM:#}", "")?;
    let of = |row: &Row<'_>| row.worst.samples.max_ns.unwrap_or(0).max(1) as f64;
    let most = rows.iter().map(of).fold(1.0, f64::max);
    for (row, cell) in rows.iter().zip(index.cells.iter().filter(|cell| !cell.threads.is_empty())) {
        let filled = (of(row) / most * BAR as f64).ceil() as usize;
        let bar: String = std::iter::repeat_n(glyphs.blocks[0], filled).collect();
        let name = fitted(&harmless::line(&row.name), room);
        let figures =
            row.cells.iter().zip(&widths).map(|(text, width)| format!("  {text:>width$}"));
        let figures: String = figures.collect();
        let line = format!("{:>5}  {name:<room$}{figures}  {bar:<BAR$}", cell.cell.number);
        let left = columns.saturating_sub(line.chars().count() + 2);
        let cause = row.worst.spikes.first().filter(|_| left >= CAUSE_MIN);
        let cause = cause.map_or_else(String::new, |cause| {
            format!("  {DIM}{}{DIM:#}", fitted(&harmless::line(cause.class()), left))
        });
        writeln!(to, "{}{cause}", if cause.is_empty() { line.trim_end() } else { &line })?;
    }
    Ok(())
}

fn row<'a>(cell: &'a CellResult, index: &Index) -> Option<Row<'a>> {
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
    let mut name = name(&cell.cell, index);
    if cell.threads.len() > 1 {
        name += &format!(", worst CPU {}", worst.cpu);
    }
    Some(Row { name, worst, cells })
}

/// What distinguishes a cell from the others.
fn name(cell: &Cell, index: &Index) -> String {
    let parts = |cell: &Cell| cell.title().split(", ").map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = index.cells.iter().map(|cell| parts(&cell.cell)).collect();
    let own = parts(cell);
    let is_own = |part: &&String| all.iter().any(|other| !other.contains(part));
    let named: Vec<String> = own.iter().filter(is_own).cloned().collect();
    if named.is_empty() { cell.doing() } else { named.join(", ") }
}
