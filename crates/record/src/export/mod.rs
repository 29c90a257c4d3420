//! Records in the forms that other tools open. One file per format and one line in [`FORMATS`].
//!
//! Every export is computed from the run that was read back, so all formats hold the same numbers.

mod csv;
mod cyclictest;
mod hdr;
mod json;
mod junit;
mod series;

use std::io::{self, BufWriter, Write};

use thiserror::Error;

pub use json::{Document, SCHEMA as JSON_SCHEMA};

use crate::Opened;

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

/// All formats.
pub const FORMATS: &[Exporter] =
    &[json::JSON, csv::CSV, hdr::HDR, cyclictest::CYCLICTEST, junit::JUNIT];

/// A record could not be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// There is no such format.
    #[error("\"{asked}\" is not a format; choose one of {}", names())]
    UnknownFormat {
        /// The request.
        asked: String,
    },
    /// The format has no such table.
    #[error("{format} has no table \"{asked}\"; choose one of {}", tables.join(", "))]
    UnknownTable {
        /// The format.
        format: &'static str,
        /// The request.
        asked: String,
        /// The tables of the format.
        tables: &'static [&'static str],
    },
    /// The format holds whole records only.
    #[error("{format} holds the whole record; leave \"{asked}\" away")]
    NoTables {
        /// The format.
        format: &'static str,
        /// The request.
        asked: String,
    },
    /// The record holds what the format cannot.
    #[error("{format} cannot hold {what}; use another format, e.g. json")]
    Content {
        /// The format.
        format: &'static str,
        /// What it cannot hold.
        what: String,
    },
    /// Writing failed.
    #[error("the export could not be written ({0}); check the disk and the name")]
    Io(#[from] io::Error),
}

fn names() -> String {
    FORMATS.iter().map(|format| format.id).collect::<Vec<_>>().join(", ")
}

/// The exporter with an id and the table to write; `None`: the default table.
///
/// # Errors
/// If there is no such format or table; the error lists all.
pub fn choose<'a>(
    id: &str,
    table: Option<&'a str>,
) -> Result<(&'static Exporter, &'a str), ExportError> {
    let found = FORMATS.iter().find(|format| format.id == id);
    let exporter = found.ok_or_else(|| ExportError::UnknownFormat { asked: id.into() })?;
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
