//! What makes a format of another tool.

use thiserror::Error;

use crate::imported::Imported;

/// Largest file that is read.
pub const BYTES_MAX: u64 = 512 << 20;
/// One format of one tool.
pub struct Importer {
    /// Name on the command line and in records.
    pub id: &'static str,
    /// Tool and format, for help.
    pub title: &'static str,
    /// Whether these bytes are of this format, by their content.
    pub(super) detect: fn(&[u8]) -> bool,
    /// Reads them; an error if anything differs from what the tool writes.
    pub(super) read: fn(&[u8], &Hints) -> Result<Imported, ImportError>,
}

/// What the user knows of a file that the file does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Name of the file, for messages and the record.
    pub name: String,
    /// Format, by its id; `None`: by content.
    pub format: Option<String>,
    /// Command line that made it.
    pub command: Option<String>,
    /// Period of the first thread.
    pub period_ns: Option<u64>,
    /// How long it measured.
    pub duration_ns: Option<u64>,
    /// Nanoseconds in one unit of its values, where the format does not fix it.
    pub unit_ns: Option<u64>,
}

impl Hints {
    /// The error of a byte.
    pub(super) fn at_byte(&self, offset: usize, what: impl Into<String>) -> ImportError {
        let (name, what) = (self.name.clone(), what.into());
        ImportError::Byte { name, offset: offset as u64, what }
    }
}

/// A file could not be imported.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImportError {
    #[error("{name}: empty; the tool wrote nothing, look at its own messages")]
    Empty { name: String },
    #[error("{name}: cannot be read ({why})")]
    Unreadable { name: String, why: String },
    /// Larger than any result.
    #[error(
        "{name}: {bytes} bytes, expected {BYTES_MAX} at most; import the histogram of the tool, \
         not its samples"
    )]
    Huge { name: String, bytes: u64 },
    /// No importer knows it.
    #[error(
        "{name}: not the result of a tool that rtproof knows (begins with {begins}); give it as \
         the tool wrote it, or name its format with --format: {known}"
    )]
    Unknown {
        name: String,
        /// Its first bytes.
        begins: String,
        /// Ids of the known formats.
        known: String,
    },
    /// It is a trace: events, not results.
    #[error(
        "{name}: this is a trace of kernel events or an analysis of one, not a result; use: \
         rtproof explain {name}"
    )]
    Trace { name: String },
    /// There is no such format.
    #[error("\"{asked}\" is not a format; choose one of {known}")]
    UnknownFormat {
        asked: String,
        /// Ids of the known formats.
        known: String,
    },
    /// A line is not what it should be.
    #[error("{name}, line {line}: {what}")]
    Line {
        name: String,
        /// Line, from 1 on.
        line: u64,
        /// What stands there and what was expected.
        what: String,
    },
    /// A byte is not what it should be.
    #[error("{name}, byte {offset}: {what}")]
    Byte {
        name: String,
        /// Offset, from 0 on.
        offset: u64,
        /// What stands there and what was expected.
        what: String,
    },
}
