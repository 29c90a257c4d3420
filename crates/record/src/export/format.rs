//! What makes a form of export.

use std::io::{self, Write};

use thiserror::Error;

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
    pub(super) write: fn(&Opened, &str, &mut dyn Write) -> Result<(), ExportError>,
}

/// A record could not be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// There is no such format.
    #[error("\"{asked}\" is not a format; choose one of {known}")]
    UnknownFormat {
        asked: String,
        /// Ids of the formats.
        known: String,
    },
    /// The format has no such table.
    #[error("{format} has no table \"{asked}\"; choose one of {}", tables.join(", "))]
    UnknownTable {
        format: &'static str,
        asked: String,
        /// The tables of the format.
        tables: &'static [&'static str],
    },
    /// The format holds whole records only.
    #[error("{format} holds the whole record; leave \"{asked}\" away")]
    NoTables { format: &'static str, asked: String },
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
