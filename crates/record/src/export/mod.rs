//! Records in the forms that other tools open. One file per format and one line in [`FORMATS`].
//!
//! Every export is computed from the run that was read back, so all formats tell the same numbers.

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
pub trait Format: Sync {
    /// Name on the command line.
    fn id(&self) -> &'static str;
    /// What it is and what opens it.
    fn about(&self) -> &'static str;
    /// Usual ending of a file's name, without the dot.
    fn extension(&self) -> &'static str;
    /// Tables to choose from, the default first; empty if an export holds the whole record.
    fn tables(&self) -> &'static [&'static str];
    /// Writes one table, or all if there is no choice; `table` is one of [`Format::tables`].
    ///
    /// # Errors
    /// If `out` fails or the record holds what the format cannot.
    fn write(&self, opened: &Opened, table: &str, out: &mut dyn Write) -> Result<(), ExportError>;
}

/// All formats.
pub const FORMATS: &[&dyn Format] =
    &[&json::Json, &csv::Csv, &hdr::Hdr, &cyclictest::Cyclictest, &junit::Junit];

/// A record could not be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// There is no such format.
    #[error("\"{asked}\" is not a format; choose one of {}", names())]
    UnknownFormat {
        /// What was asked for.
        asked: String,
    },
    /// The format has no such table.
    #[error("{format} has no table \"{asked}\"; choose one of {}", tables.join(", "))]
    UnknownTable {
        /// The format.
        format: &'static str,
        /// What was asked for.
        asked: String,
        /// What there is.
        tables: &'static [&'static str],
    },
    /// The format holds whole records only.
    #[error("{format} holds the whole record; leave \"{asked}\" away")]
    NoTables {
        /// The format.
        format: &'static str,
        /// What was asked for.
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
    FORMATS.iter().map(|format| format.id()).collect::<Vec<_>>().join(", ")
}

/// The format of a name.
///
/// # Errors
/// If there is none; the error lists all.
pub fn format(id: &str) -> Result<&'static dyn Format, ExportError> {
    let found = FORMATS.iter().find(|format| format.id() == id);
    found.copied().ok_or_else(|| ExportError::UnknownFormat { asked: id.into() })
}

/// Writes a record in a format; `table`: which part, where there is a choice (`None`: the default).
///
/// # Errors
/// If there is no such format or table, or writing fails.
pub fn export(
    opened: &Opened,
    id: &str,
    table: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let format = format(id)?;
    let (id, tables) = (format.id(), format.tables());
    let table = match (table, tables) {
        (Some(asked), []) => {
            return Err(ExportError::NoTables { format: id, asked: asked.into() });
        }
        (None, []) => "",
        (None, [first, ..]) => first,
        (Some(asked), _) if tables.contains(&asked) => asked,
        (Some(asked), _) => {
            return Err(ExportError::UnknownTable { format: id, asked: asked.into(), tables });
        }
    };
    let mut out = BufWriter::new(out);
    format.write(opened, table, &mut out)?;
    Ok(out.flush()?)
}
