//! What was imported as a page: the tool, its series, what may mislead. Pictures of it are in the
//! pages of `rtproof compare`.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;

use rtproof_judge::units::{self, grouped, us_column};
use rtproof_record::import::{Doubt, Imported, ImportedThread, Omitted, SampleKind, ToolValue};
use rtproof_stats::quantile::Q;

use crate::text::{self, BOLD, DIM, Terminal, WARN, wrapped};

pub fn imported_html(imported: &Imported, banner: Option<&str>) -> String {
    let version = imported.tool_version.as_deref().unwrap_or("(version unknown)");
    let title = format!("{} – imported", imported.source);
    let body = html! {
        @if let Some(banner) = banner { (crate::html::banner(banner)) }
        header {
            h1 { "Imported: " (imported.source) }
            p { (imported.tool) " " (version) ", format " (imported.dialect) }
        }
        main {
            section aria-labelledby="series" {
                h2 #series { "What it measured" }
                div.scroll { (table_html(imported)) }
            }
            @if !imported.doubts.is_empty() {
                section aria-labelledby="doubts" {
                    h2 #doubts { "What may mislead" }
                    ul { @for doubt in &imported.doubts { li { (doubt.text) } } }
                }
            }
            section aria-labelledby="about" {
                h2 #about { "What is known of it" }
                (about(imported))
            }
            @if !imported.remarks.is_empty() {
                section aria-labelledby="said" {
                    h2 #said { "What else the tool said" }
                    ul { @for remark in &imported.remarks { li { (remark) } } }
                }
            }
        }
    };
    crate::html::page(&title, None, &body)
}

fn table_html(imported: &Imported) -> Markup {
    html! {
        table {
            caption { "Times in µs, in the steps of the tool." }
            thead {
                tr {
                    th scope="col" { "series" }
                    th scope="col" { "what" }
                    @for name in ["n", "min", "mean"] { th scope="col" { (name) } }
                    @for (name, _) in QUANTILES { th scope="col" { (name) } }
                    th scope="col" { "max" }
                    th scope="col" { "skipped" }
                }
            }
            tbody { @for series in series(imported) { (row_html(&series)) } }
        }
    }
}

fn row_html(series: &ImportedSeries) -> Markup {
    let time = |ns: Option<u64>| ns.map_or("-".into(), us_column);
    let quantile = |ppm: u32| {
        let found = series.quantiles.iter().find(|quantile| quantile.ppm == ppm);
        found.map_or("-".into(), |quantile| reading_html(quantile.value))
    };
    html! {
        tr {
            th scope="row" { (series.label) }
            td { (series.kind.words()) }
            td { (grouped(series.n)) }
            td { (time(series.min_ns)) }
            td { (time(series.mean_ns.map(|ns| ns.max(0.0) as u64))) }
            @for (_, ppm) in QUANTILES { td { (quantile(ppm)) } }
            td { (series.max.map_or("-".into(), reading_html)) }
            td { (series.omitted.map_or("-".into(), grouped)) }
        }
    }
}

fn reading_html(reading: ToolValue) -> String {
    format!("{}{}", if reading.at_least { "≥ " } else { "" }, us_column(reading.ns))
}

fn about(imported: &Imported) -> Markup {
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "not in the file".into());
    let time = |ns: Option<u64>| ns.map_or("unknown".into(), units::ns);
    let rows = [
        ("machine", or(&imported.machine)),
        ("command", or(&imported.command)),
        ("period", time(imported.period_ns)),
        ("duration", time(imported.duration_ns)),
        ("step of its values", units::ns(imported.resolution_ns)),
        ("SHA-256 of the file", imported.digest.clone()),
    ];
    html! { dl { @for (name, text) in rows { dt { (name) } dd { (text) } } } }
}

// What was imported as data: what text and `--json` show of it.

/// Version of the JSON form. Fields may be added under one version; none changes or goes.
pub const SCHEMA: &str = "rtproof/import/1";

/// Quantiles shown: name and parts per million.
pub const QUANTILES: [(&str, u32); 7] = [
    ("p5", 50_000),
    ("p50", 500_000),
    ("p95", 950_000),
    ("p99", 990_000),
    ("p99.9", 999_000),
    ("p99.99", 999_900),
    ("p99.999", 999_990),
];

/// JSON document about a file that was imported.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImportedDocument {
    schema: &'static str,
    /// Record that was written; null: none was asked for.
    record: Option<PathBuf>,
    tool: String,
    /// Its version; null: the file does not say.
    tool_version: Option<String>,
    /// Format of the file.
    format: String,
    /// Name of the file.
    source: String,
    /// SHA-256 of the file.
    digest: String,
    /// Command line that made it; null: unknown.
    command: Option<String>,
    /// Host and kernel as the file says them; null: it does not.
    machine: Option<String>,
    /// Start, seconds since 1970; null: unknown.
    started_s: Option<i64>,
    /// Step of the tool's values.
    resolution_ns: u64,
    /// Values from here on have no value of their own; null: all have.
    censored_above_ns: Option<u64>,
    /// Period of the first thread; null: unknown.
    period_ns: Option<u64>,
    /// How long it measured; null: unknown.
    duration_ns: Option<u64>,
    /// Wake-ups that the tool skipped; null: none can be counted.
    omitted: Option<Omitted>,
    doubts: Vec<Doubt>,
    /// What else the tool said.
    remarks: Vec<String>,
    /// Series, in the order of the file.
    series: Vec<ImportedSeries>,
}

/// One series of samples.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImportedSeries {
    pub label: String,
    /// CPU; null: the file does not say.
    pub cpu: Option<u32>,
    /// What a sample is.
    pub kind: SampleKind,
    pub n: u64,
    /// Smallest; null: the tool does not say.
    pub min_ns: Option<u64>,
    /// Mean: of the values where each sample has one, else as the tool says it; null: unknown.
    pub mean_ns: Option<f64>,
    /// Largest; null: there is none.
    pub max: Option<ToolValue>,
    /// Quantiles that there are samples for.
    pub quantiles: Vec<QuantileOf>,
    /// Samples without value, at the far end.
    pub overflow: u64,
    /// Samples that were due; null: unknown.
    pub expected: Option<u64>,
    /// Wake-ups that the tool skipped; null: unknown.
    pub omitted: Option<u64>,
}

/// One quantile that another tool's file yields.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct QuantileOf {
    /// Name, e.g. p99.9.
    pub name: &'static str,
    /// Which one, parts per million.
    pub ppm: u32,
    /// Its value, in the tool's own steps.
    pub value: ToolValue,
}

impl ImportedDocument {
    /// A file with its series.
    pub fn of(imported: &Imported, record: Option<PathBuf>) -> Self {
        Self {
            schema: SCHEMA,
            record,
            tool: imported.tool.clone(),
            tool_version: imported.tool_version.clone(),
            format: imported.dialect.clone(),
            source: imported.source.clone(),
            digest: imported.digest.clone(),
            command: imported.command.clone(),
            machine: imported.machine.clone(),
            started_s: imported.started_s,
            resolution_ns: imported.resolution_ns,
            censored_above_ns: imported.censored_above_ns,
            period_ns: imported.period_ns,
            duration_ns: imported.duration_ns,
            omitted: imported.omitted.clone(),
            doubts: imported.doubts.clone(),
            remarks: imported.remarks.clone(),
            series: series(imported),
        }
    }
}

/// All series of a file.
pub fn series(imported: &Imported) -> Vec<ImportedSeries> {
    let of = |(i, thread): (usize, &ImportedThread)| ImportedSeries {
        label: thread.label.clone(),
        cpu: thread.cpu,
        kind: thread.kind,
        n: thread.n,
        min_ns: thread.min_ns,
        mean_ns: thread.mean(),
        max: thread.largest(),
        quantiles: quantiles(thread, imported.resolution_ns),
        overflow: thread.overflow,
        expected: thread.expected,
        omitted: imported.omitted_of(i),
    };
    imported.threads.iter().enumerate().map(of).collect()
}

fn quantiles(thread: &ImportedThread, step_ns: u64) -> Vec<QuantileOf> {
    let of = |&(name, ppm): &(&'static str, u32)| {
        // A quantile needs as many samples as it has parts, or it is but the largest or smallest.
        let enough = Q { above: u64::from(1_000_000 - ppm), of: 1_000_000 }.is_carried_by(thread.n);
        let value = thread.quantile(f64::from(ppm) / 1e6, step_ns).filter(|_| enough)?;
        Some(QuantileOf { name, ppm, value })
    };
    QUANTILES.iter().filter_map(of).collect()
}

// What was imported, as text: the tool, a row for each series, what may mislead.

/// Lines of remarks shown; all are in the record.
const REMARKS_SHOWN: usize = 12;

/// All of it; `record`: where it was written.
pub fn imported_text(
    to: &mut Terminal,
    imported: &Imported,
    record: Option<&Path>,
) -> io::Result<()> {
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
    table_text(to, imported)?;
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

fn table_text(to: &mut Terminal, imported: &Imported) -> io::Result<()> {
    let all = series(imported);
    let kinds: Vec<SampleKind> = all.iter().map(|series| series.kind).collect();
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
        rows.push(row_text(series, ppms, counts_omitted, mixed));
    }
    text::table(to, "  ", &rows, &["p5", "p95", "p90", "p50", "p99.99"])
}

fn row_text(
    series: &ImportedSeries,
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
        cells.push(found.map_or_else(dash, |quantile| reading_text(quantile.value)));
    }
    cells.push(series.max.map_or_else(dash, reading_text));
    if counts_omitted {
        cells.push(series.omitted.map_or_else(dash, grouped));
    }
    cells
}

/// A value, or the least that it is.
fn reading_text(reading: ToolValue) -> String {
    let at_least = if reading.at_least { "≥" } else { "" };
    format!("{at_least}{}", us_column(reading.ns))
}
