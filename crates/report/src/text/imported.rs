//! What was imported, as text: the tool, a row for each series, what may mislead.

use std::{
    io::{self, Write},
    path::Path,
};

use rtproof_judge::units::{self, grouped, us_column};
use rtproof_record::import::{Imported, Kind, ToolValue};

use crate::{
    imported::{QUANTILES, Series, series},
    text::sheet::{self, BOLD, DIM, Sheet, WARN, wrapped},
};

/// Lines of remarks shown; all are in the record.
const REMARKS_SHOWN: usize = 12;

/// All of it; `record`: where it was written.
pub fn imported(to: &mut Sheet, imported: &Imported, record: Option<&Path>) -> io::Result<()> {
    let version = imported.tool_version.as_deref().unwrap_or("(version unknown)");
    let text = format!("{} {version}, {} ({})", imported.tool, imported.source, imported.dialect);
    wrapped(to, &format!("{BOLD}Imported{BOLD:#} "), "         ", &text)?;
    for (name, text) in [("machine", &imported.machine), ("command", &imported.command)] {
        let text = text.as_deref().unwrap_or("not in the file");
        wrapped(to, &format!("         {DIM}{name}{DIM:#} "), "           ", text)?;
    }
    let known = |ns: Option<u64>| ns.map_or("unknown".into(), units::ns);
    let text = format!(
        "period {}, duration {}, step {}",
        known(imported.period_ns),
        known(imported.duration_ns),
        units::ns(imported.resolution_ns)
    );
    wrapped(to, "         ", "         ", &text)?;
    table(to, imported)?;
    for doubt in &imported.doubts {
        wrapped(to, &format!("         {WARN}!{WARN:#} "), "           ", &doubt.text)?;
    }
    for remark in imported.remarks.iter().take(REMARKS_SHOWN) {
        wrapped(to, &format!("         {DIM}it said:{DIM:#} "), "           ", remark)?;
    }
    let more = imported.remarks.len().saturating_sub(REMARKS_SHOWN);
    if more > 0 {
        writeln!(to, "         {DIM}and {more} lines more{DIM:#}")?;
    }
    match record {
        Some(record) => writeln!(to, "         record {}", record.display()),
        None => Ok(()),
    }
}

fn table(to: &mut Sheet, imported: &Imported) -> io::Result<()> {
    let all = series(imported);
    let kinds: Vec<Kind> = all.iter().map(|series| series.kind).collect();
    let mixed = kinds.windows(2).any(|pair| pair[0] != pair[1]);
    let mut head: Vec<String> = vec![String::new(), "n".into(), "min".into(), "mean".into()];
    let has = |ppm: u32| all.iter().any(|s| s.quantiles.iter().any(|q| q.ppm == ppm));
    let shown: Vec<_> = QUANTILES.iter().filter(|(_, ppm)| has(*ppm)).collect();
    head.extend(shown.iter().map(|(name, _)| (*name).into()));
    head.push("max".into());
    let counts_omitted = imported.omitted.is_some();
    if counts_omitted {
        head.push("skipped".into());
    }
    let mut rows = vec![head];
    for series in &all {
        let ppms = shown.iter().map(|(_, ppm)| *ppm);
        rows.push(row(series, ppms, counts_omitted, mixed));
    }
    sheet::table(to, "  ", &rows, &["p5", "p95", "p90", "p50", "p99.99"])
}

fn row(
    series: &Series,
    ppms: impl Iterator<Item = u32>,
    counts_omitted: bool,
    mixed: bool,
) -> Vec<String> {
    let dash = || "-".to_owned();
    let name = match mixed {
        true => format!("{}, {}", series.label, series.kind.words()),
        false => series.label.clone(),
    };
    let mut cells = vec![name, grouped(series.n), series.min_ns.map_or_else(dash, us_column)];
    cells.push(series.mean_ns.map_or_else(dash, |ns| us_column(ns.max(0.0) as u64)));
    for ppm in ppms {
        let found = series.quantiles.iter().find(|quantile| quantile.ppm == ppm);
        cells.push(found.map_or_else(dash, |quantile| reading(quantile.value)));
    }
    cells.push(series.max.map_or_else(dash, reading));
    if counts_omitted {
        cells.push(series.omitted.map_or_else(dash, grouped));
    }
    cells
}

/// A value, or the least that it is.
fn reading(reading: ToolValue) -> String {
    let at_least = if reading.at_least { "≥" } else { "" };
    format!("{at_least}{}", us_column(reading.ns))
}
