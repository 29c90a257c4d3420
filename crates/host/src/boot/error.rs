//! Why a boot loader cannot be read or changed.

use super::cmdline::WordError;

/// Why the boot loader cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// A file cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// A file does not hold what it should.
    #[error("{path}:{line}: {what}; {next}")]
    Text {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
        /// What to do.
        next: &'static str,
    },
    /// There is no entry to copy.
    #[error("{path}: {why}")]
    NoEntry {
        /// The file or folder.
        path: String,
        /// What was looked for, and what to do.
        why: String,
    },
    /// A file that would be written is not ours.
    #[error("{path}: {why}")]
    Taken {
        /// The file.
        path: String,
        /// Whose it is, and what to do.
        why: String,
    },
    /// A word cannot be on the command line.
    #[error(transparent)]
    Word(#[from] WordError),
    /// The entry is not there when it is read back.
    #[error("{path}: our entry is not there when it is read back; report this with the file")]
    NotWritten {
        /// The file.
        path: String,
    },
}
