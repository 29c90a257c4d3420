//! Why a path cannot be a captured machine.

use std::{io, path::PathBuf};

use crate::capture::CaptureError;

/// Why a path cannot be a captured machine.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// It cannot be opened.
    #[error(
        "{path}: {source}; give a file of `rtproof capture`, or the top folder of a captured \
         machine, the one that holds proc and sys"
    )]
    Open { path: PathBuf, source: io::Error },
    #[error(
        "{0}: is not a folder; give the top folder of a captured machine, the one that holds \
         proc and sys"
    )]
    NotAFolder(PathBuf),
    /// Not the file of a captured machine, or damaged.
    #[error("{path}:{source}")]
    Capture {
        path: PathBuf,
        /// What is wrong, and in which line.
        source: CaptureError,
    },
}
