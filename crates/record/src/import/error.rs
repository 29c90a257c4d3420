//! Errors in files of other tools: the place, what is there, what to do.

use thiserror::Error;

/// A file could not be imported.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImportError {
    /// Nothing in it.
    #[error("{name}: empty; the tool wrote nothing, look at its own messages")]
    Empty {
        /// The file.
        name: String,
    },
    /// It cannot be read.
    #[error("{name}: cannot be read ({why})")]
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        why: String,
    },
    /// Larger than any result.
    #[error(
        "{name}: {bytes} bytes, expected {} at most; import the histogram of the tool, not its \
         samples",
        super::BYTES_MAX
    )]
    Huge {
        /// The file.
        name: String,
        /// Its size.
        bytes: u64,
    },
    /// No importer knows it.
    #[error(
        "{name}: not the result of a tool that rtproof knows (begins with {begins}); known are {}",
        super::names()
    )]
    Unknown {
        /// The file.
        name: String,
        /// Its first bytes.
        begins: String,
    },
    /// There is no such format.
    #[error("\"{asked}\" is not a format; choose one of {}", super::names())]
    UnknownFormat {
        /// The requested format.
        asked: String,
    },
    /// A line is not what it should be.
    #[error("{name}, line {line}: {what}")]
    Line {
        /// The file.
        name: String,
        /// Line, from 1 on.
        line: u64,
        /// What stands there and what was expected.
        what: String,
    },
    /// A byte is not what it should be.
    #[error("{name}, byte {offset}: {what}")]
    Byte {
        /// The file.
        name: String,
        /// Offset, from 0 on.
        offset: u64,
        /// What stands there and what was expected.
        what: String,
    },
}
