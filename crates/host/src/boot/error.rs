//! Why a boot loader cannot be read or changed.

use super::cmdline::WordError;

/// Why the boot loader cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// A file or folder cannot be read, lacks what is needed, or is not ours to write.
    #[error("{path}: {why}")]
    File {
        /// The file or folder.
        path: String,
        /// Why, and what to do.
        why: String,
    },
    /// A file does not hold what it should.
    #[error("{path}:{line}: {what}; {next}")]
    Text {
        path: String,
        /// Line, from 1.
        line: usize,
        what: String,
        next: &'static str,
    },
    /// A word cannot be on the command line.
    #[error(transparent)]
    Word(#[from] WordError),
}

impl BootError {
    pub(super) fn file(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self::File { path: path.into(), why: why.into() }
    }

    /// The entry is not there when it is read back.
    pub(super) fn not_written(path: impl Into<String>) -> Self {
        let why = "our entry is not there when it is read back; report this with the file";
        Self::file(path, why)
    }
}
