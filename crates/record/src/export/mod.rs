//! Records in the forms that other tools open. One file per format and one line in [`FORMATS`].
//!
//! Every export is computed from the run that was read back, so all formats hold the same numbers.

mod csv;
mod cyclictest;
mod format;
mod hdr;
mod json;
mod junit;
mod moving;
mod series;

use std::io::{BufWriter, Write};

pub use self::format::{ExportError, Exporter};
pub use json::{Document, SCHEMA as JSON_SCHEMA};
pub use moving::TABLE as MOVING_TABLE;

use rtproof_stats::moving::Lengths;

use crate::Opened;

pub const FORMATS: &[Exporter] =
    &[json::JSON, csv::CSV, hdr::HDR, cyclictest::CYCLICTEST, junit::JUNIT];

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
        asked: id.into(),
        known: FORMATS.iter().map(|format| format.id).collect::<Vec<_>>().join(", "),
    })?;
    let (format, tables) = (exporter.id, exporter.tables);
    match table {
        None => Ok((exporter, tables.first().copied().unwrap_or_default())),
        Some(table) if tables.contains(&table) => Ok((exporter, table)),
        Some(table) if tables.is_empty() => {
            Err(ExportError::NoTables { format, asked: table.into() })
        }
        Some(table) => Err(ExportError::UnknownTable { format, asked: table.into(), tables }),
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
    let spans = crate::moving::spans(&opened.run, asked)?;
    let mut out = BufWriter::new(out);
    moving::head(&mut out)?;
    moving::rows(&opened.run, spans, &mut out)?;
    Ok(out.flush()?)
}
