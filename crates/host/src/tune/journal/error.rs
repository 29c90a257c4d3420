//! Why a journal cannot be used.

use std::io;

use super::script::ScriptError;
use crate::tune::machine::FOLDER;

/// Why a journal cannot be used. Nothing was written to the machine.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// No journal there.
    #[error("{0}: no journal; `rtproof tune status` lists those that there are")]
    Missing(String),
    /// Nothing that could be undone.
    #[error("{FOLDER}: no journal of changes that are in force; there is nothing to undo")]
    NoneOpen,
    /// It cannot be read or written.
    #[error("{path}: {source}{next}")]
    Io {
        /// The file.
        path: String,
        /// What was met.
        source: io::Error,
        /// The next step, after a semicolon.
        next: &'static str,
    },
    /// It was damaged, or made by hand.
    #[error("{path}:{source}; nothing was written; use an undamaged copy of it")]
    Corrupt {
        /// The file.
        path: String,
        /// What is wrong, in which line.
        source: ScriptError,
    },
    /// Written on another machine.
    #[error(
        "{path}: written on another machine ({found}; this one is {here}); nothing was written: \
         use it there"
    )]
    Foreign {
        /// The file.
        path: String,
        /// Hash of that machine's id.
        found: String,
        /// Hash of this machine's id.
        here: String,
    },
    /// Another rtproof is running.
    #[error(
        "{path}: another rtproof (process {pid}) is changing this machine; wait until it has ended"
    )]
    Locked {
        /// The lock.
        path: String,
        /// Who holds it.
        pid: String,
    },
}
