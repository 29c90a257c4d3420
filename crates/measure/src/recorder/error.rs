//! Why nothing is recorded.

use rtproof_host::tracefs::TracefsError;
use rtproof_trace::format::FormatError;

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The kernel's events are not available.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// They cannot be read.
    #[error("{file}: {error}; please report this kernel's file")]
    Format {
        /// File below `events`.
        file: String,
        error: FormatError,
    },
    #[error("no CPU to record; name some with --cpus")]
    NoCpus,
    /// The thread could not be made.
    #[error("cannot start the recorder's thread: {0}; check `ulimit -u`")]
    Thread(std::io::Error),
    /// Nothing is read without a request.
    #[error(
        "one CPU does all: its events are read for an answer only, and nobody looks for late \
         wake-ups in them"
    )]
    Frozen,
    /// The thread is gone.
    #[error("the recorder has stopped")]
    Stopped,
}
