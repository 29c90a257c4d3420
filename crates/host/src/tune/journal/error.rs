//! Why a journal cannot be used.

use std::io;

use super::script::ScriptError;
use crate::tune::machine::FOLDER;

/// Why a journal cannot be used. Nothing was written to the machine.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{0}: no journal; `rtproof tune status` lists those that there are")]
    Missing(String),
    /// Nothing that could be undone.
    #[error("{FOLDER}: no journal of changes that are in force; there is nothing to undo")]
    NoneOpen,
    /// It cannot be read or written.
    #[error("{path}: {source}{next}")]
    Io {
        path: String,
        source: io::Error,
        /// The next step, after a semicolon.
        next: &'static str,
    },
    /// It was damaged, or made by hand.
    #[error("{path}:{source}; nothing of it was undone; {}", offer(.verified, .named))]
    Corrupt {
        path: String,
        /// What is wrong, in which line.
        source: ScriptError,
        /// Changes that the lines before it hold; `None`: not even its first line holds.
        verified: Option<usize>,
        /// What it names behind that, as far as it can be read: verified where its first line is.
        named: Vec<String>,
    },
    /// Another user could have written it.
    #[error("{0}")]
    Distrusted(io::Error),
    /// Written on another machine.
    #[error(
        "{path}: written on another machine ({found}; this one is {here}); nothing was written: \
         use it there"
    )]
    Foreign {
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
    Locked { path: String, pid: String },
}

/// Things that are named in one sentence.
const NAMED_MAX: usize = 12;

/// What can be done with a damaged journal.
fn offer(verified: &Option<usize>, named: &[String]) -> String {
    let mut list = named.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if named.len() > NAMED_MAX {
        list += &format!(" and {} more", named.len() - NAMED_MAX);
    }
    match (verified, named.is_empty()) {
        (None, true) => "use an undamaged copy of it: it may have changed this machine".into(),
        (None, false) => format!(
            "use an undamaged copy of it; it may have changed {list} (read from damaged lines)"
        ),
        (Some(verified), true) => format!(
            "use an undamaged copy, or undo the {verified} of its changes that can be verified \
             with --damaged; of further ones nothing is known"
        ),
        (Some(verified), false) => format!(
            "use an undamaged copy, or undo the {verified} of its changes that can be verified \
             with --damaged; it planned as well: {list}"
        ),
    }
}
