//! Why a program was not started: each has an exit code of its own, so that a script can tell it
//! from the program's.

use crate::usage::Usage;

/// Why a program was not started, or not undone.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The command line is wrong.
    #[error(transparent)]
    Usage(#[from] Usage),
    /// There is no such program.
    #[error("{0}")]
    NotFound(String),
    /// The program cannot be executed.
    #[error("{0}")]
    NotExecutable(String),
    /// A signal came before the program was started.
    #[error("{0}")]
    Interrupted(String, i32),
    /// It could not be set up; what was changed is undone.
    #[error("{0:#}")]
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for LaunchError {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Usage>() {
            Ok(usage) => Self::Usage(usage),
            Err(error) => Self::Failed(error),
        }
    }
}
