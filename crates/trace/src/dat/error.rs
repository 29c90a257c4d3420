//! What can be wrong with a trace.dat file, where, and what to do about it.

use std::io;

/// What is wrong with a trace.dat file.
#[derive(Debug, thiserror::Error)]
pub enum DatError {
    /// It could not be read.
    #[error("offset {at}: {source}; try a copy of the file on this machine")]
    Io {
        /// Where.
        at: u64,
        source: io::Error,
    },
    /// It is another kind of file.
    #[error(
        "begins with {begins:02x?}; expected 17 08 44 \"tracing\": not a trace.dat file. \
         Record one with `trace-cmd record`"
    )]
    Foreign {
        /// Its first bytes.
        begins: Vec<u8>,
    },
    /// Something else is there than should be.
    #[error("offset {at}: {found}; expected {expected}. {next}")]
    Bad {
        /// Where in the file.
        at: u64,
        found: String,
        expected: &'static str,
        /// The next step to take.
        next: &'static str,
    },
}

/// The next step for a file that ends before its time.
pub(super) const TORN: &str =
    "The file is torn: copy it again; after a killed `trace-cmd record` run `trace-cmd restore`";
/// The next step for a file that nobody writes.
pub(super) const DAMAGED: &str =
    "The file is damaged: see whether `trace-cmd report` reads it, or record again";

impl DatError {
    pub(super) fn damaged(at: u64, found: impl Into<String>, expected: &'static str) -> Self {
        Self::Bad { at, found: found.into(), expected, next: DAMAGED }
    }

    pub(super) fn torn(at: u64, expected: &'static str) -> Self {
        Self::Bad { at, found: "the file ends".into(), expected, next: TORN }
    }

    /// What happened while the bytes of a section were read.
    pub(super) fn reading(at: u64, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::torn(at, "more bytes"),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                Self::damaged(at, source.to_string(), "compressed bytes")
            }
            _ => Self::Io { at, source },
        }
    }
}
