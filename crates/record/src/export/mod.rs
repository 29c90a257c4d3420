//! Records in the forms that other tools open: an [`Exporter`] each, and a line in [`FORMATS`].
//!
//! Every export is computed from the run that was read back, so all formats hold the same numbers.

mod csv;
mod json;
mod tools;

pub use json::{RecordDocument, SCHEMA as JSON_SCHEMA};

use std::io::{self, BufWriter, Write};

use thiserror::Error;

use rtproof_stats::{
    Bin, Bins,
    moving::{Lengths, MovingStep, STATISTICS, Spans, Values},
};

use crate::import::SampleKind;
use crate::run::Thread;
use crate::{Opened, Run};

pub const FORMATS: &[Exporter] =
    &[json::JSON, csv::CSV, tools::HDR, tools::CYCLICTEST, tools::JUNIT, tools::TAP];

/// The exporter with an id and the table to write; `None`: the default table.
///
/// # Errors
/// If there is no such format or table; the error lists all.
pub fn choose<'a>(
    id: &str,
    table: Option<&'a str>,
) -> Result<(&'static Exporter, &'a str), ExportError> {
    let found = FORMATS.iter().find(|format| format.id == id);
    let exporter = found.ok_or_else(|| ExportError::UnknownFormat {
        requested: id.into(),
        known: FORMATS.iter().map(|format| format.id).collect::<Vec<_>>().join(", "),
    })?;
    let (format, tables) = (exporter.id, exporter.tables);
    match table {
        None => Ok((exporter, tables.first().copied().unwrap_or_default())),
        Some(table) if tables.contains(&table) => Ok((exporter, table)),
        Some(table) if tables.is_empty() => {
            Err(ExportError::NoTables { format, requested: table.into() })
        }
        Some(table) => Err(ExportError::UnknownTable { format, requested: table.into(), tables }),
    }
}

/// Writes a record in a format; `table` as in [`choose`].
///
/// # Errors
/// If there is no such format or table, or writing fails.
pub fn export(
    opened: &Opened,
    id: &str,
    table: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let (exporter, table) = choose(id, table)?;
    let mut out = BufWriter::new(out);
    (exporter.write)(opened, table, &mut out)?;
    Ok(out.flush()?)
}

/// Writes the table of moving statistics with the lengths asked for.
///
/// # Errors
/// If the run does not have such lengths, or writing fails.
pub fn export_moving(
    opened: &Opened,
    asked: Lengths,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    if opened.run.imported.is_some() {
        let what = "moving statistics of another tool's result, which holds no seconds".into();
        return Err(ExportError::Content { format: "csv", what });
    }
    let spans = crate::spans(&opened.run, asked)?;
    let mut out = BufWriter::new(out);
    moving_head(&mut out)?;
    moving_rows(&opened.run, spans, &mut out)?;
    Ok(out.flush()?)
}

/// One form of export.
pub struct Exporter {
    /// Name on the command line.
    pub id: &'static str,
    /// The content, and what opens it.
    pub title: &'static str,
    /// Usual ending of a file's name, without the dot.
    pub extension: &'static str,
    /// Tables to choose from, the default first; empty if an export holds the whole record.
    pub tables: &'static [&'static str],
    /// Writes one table, or the whole record if there are none; fails if the record holds what the
    /// format cannot.
    write: fn(&Opened, &str, &mut dyn Write) -> Result<(), ExportError>,
}

/// A record could not be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// There is no such format.
    #[error("\"{requested}\" is not a format; choose one of {known}")]
    UnknownFormat {
        requested: String,
        /// Ids of the formats.
        known: String,
    },
    /// The format has no such table.
    #[error("{format} has no table \"{requested}\"; choose one of {}", tables.join(", "))]
    UnknownTable {
        format: &'static str,
        requested: String,
        /// The tables of the format.
        tables: &'static [&'static str],
    },
    /// The format holds whole records only.
    #[error("{format} holds the whole record; leave \"{requested}\" away")]
    NoTables { format: &'static str, requested: String },
    /// The record holds what the format cannot.
    #[error("{format} cannot hold {what}; use another format, e.g. json")]
    Content {
        format: &'static str,
        /// What it cannot hold.
        what: String,
    },
    /// Lengths of a window that the run does not have.
    #[error(transparent)]
    Spans(#[from] rtproof_stats::moving::SpansError),
    #[error("the export could not be written ({0}); check the disk and the name")]
    Io(#[from] io::Error),
}

// Moving statistics as CSV: a row for each step, of all CPUs together and of each one.

/// Name of the table.
pub const MOVING_TABLE: &str = "moving";

type MovingKind = (&'static str, fn(&MovingStep) -> Option<&Values>);

const KINDS: [MovingKind; 3] = [
    ("cumulative", |step| step.cumulative.as_ref()),
    ("windowed", |step| step.windowed.as_ref()),
    ("exponential", |step| step.exponential.as_ref()),
];

/// Writes the names of the columns.
fn moving_head(out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "cpu,from_ns,to_ns,window_ns,half_life_ns,sampled,missed,gaps,window_missed,window_gaps"
    )?;
    for (kind, _) in KINDS {
        write!(out, ",{kind}_n")?;
        for statistic in &STATISTICS {
            write!(out, ",{kind}_{}", statistic.id)?;
        }
    }
    writeln!(out)
}

/// Writes the rows. No CPU: all together.
fn moving_rows(run: &Run, spans: Spans, out: &mut dyn Write) -> io::Result<()> {
    write_moving(&run.threads, "", spans, out)?;
    if run.threads.len() < 2 {
        return Ok(());
    }
    run.threads.iter().try_for_each(|thread| {
        write_moving(std::slice::from_ref(thread), &thread.info.cpu.to_string(), spans, out)
    })
}

fn write_moving(
    threads: &[Thread],
    cpu: &str,
    spans: Spans,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut done = Ok(());
    crate::each_step(threads, spans, |step| {
        if done.is_ok() {
            done = row(&step, cpu, spans, out);
        }
    });
    done
}

fn row(step: &MovingStep, cpu: &str, spans: Spans, out: &mut dyn Write) -> io::Result<()> {
    let MovingStep { from_ns, to_ns, n, missed, gaps, window_missed, window_gaps, .. } = step;
    let Spans { window_ns, half_life_ns, .. } = spans;
    write!(
        out,
        "{cpu},{from_ns},{to_ns},{window_ns},{half_life_ns},{n},{missed},{gaps},{window_missed},\
         {window_gaps}"
    )?;
    for (_, values) in KINDS {
        let values = values(step);
        cell(out, values.map(|values| values.n))?;
        for statistic in &STATISTICS {
            cell(out, values.and_then(statistic.of))?;
        }
    }
    writeln!(out)
}

/// A value, or nothing where there is none.
fn cell(out: &mut dyn Write, value: Option<f64>) -> io::Result<()> {
    match value {
        Some(value) => write!(out, ",{value}"),
        None => write!(out, ","),
    }
}

// Common input of distribution formats: each thread's cells, of our run or imported.

struct ExportSeries {
    /// `t0.cpu1`, or as the other tool names it.
    tag: String,
    cpu: Option<u32>,
    kind: SampleKind,
    bins: Bins,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    mean_ns: Option<f64>,
    /// Samples, also where there are no cells.
    n: u64,
    /// Samples without value, in the last cell.
    overflow: u64,
    /// Wake-ups due while the thread was still late.
    missed: Option<u64>,
    /// Later than the budget, sampled and missed.
    late: u64,
}

/// All threads of a run.
fn series_of(run: &Run) -> Vec<ExportSeries> {
    if let Some(imported) = &run.imported {
        let omitted = imported.omitted.as_ref();
        let of = |(i, thread): (usize, &crate::import::ImportedThread)| ExportSeries {
            tag: thread.label.clone(),
            cpu: thread.cpu,
            kind: thread.kind,
            bins: thread.bins.clone(),
            min_ns: thread.min_ns,
            max_ns: thread.max_ns,
            mean_ns: thread.mean_ns,
            n: thread.n,
            overflow: thread.overflow,
            missed: omitted.and_then(|omitted| omitted.by_thread.get(i).copied()),
            late: 0,
        };
        return imported.threads.iter().enumerate().map(of).collect();
    }
    let of = |thread: &Thread| ExportSeries {
        tag: format!("t{}.cpu{}", thread.info.number, thread.info.cpu),
        cpu: Some(thread.info.cpu),
        kind: SampleKind::Latency,
        bins: Bins::of(&thread.wake),
        min_ns: thread.totals.wake.min(),
        max_ns: thread.totals.wake.max(),
        mean_ns: thread.totals.wake.mean(),
        n: thread.totals.wake.count(),
        overflow: 0,
        missed: Some(thread.totals.missed),
        late: thread.totals.late(),
    };
    run.threads.iter().map(of).collect()
}

impl ExportSeries {
    /// Counts by value: each cell at its upper edge, but the smallest and the largest sample where
    /// they are, so that what is read back has the same extremes.
    fn values(&self) -> Vec<(u64, u64)> {
        let cells: Vec<&Bin> = self.bins.iter().collect();
        let mut values = Vec::with_capacity(cells.len() + 2);
        let last = cells.len().saturating_sub(1);
        for (i, bin) in cells.iter().enumerate() {
            let at = bin.high_ns.min(self.max_ns.unwrap_or(u64::MAX)).max(bin.low_ns);
            let mut n = bin.n;
            if i == 0
                && let Some(min_ns) = self.min_ns
            {
                values.push((min_ns, 1));
                n -= 1;
            }
            if n > 0
                && i == last
                && let Some(max_ns) = self.max_ns
            {
                values.push((max_ns, 1));
                n -= 1;
            }
            if n > 0 {
                values.push((at, n));
            }
        }
        values.sort_unstable();
        values
    }
}
