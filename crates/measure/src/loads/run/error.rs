//! Why a load is not running, in words that name the next step.

use std::path::{Path, PathBuf};

/// The next step, where a worker cannot be started because /proc is missing.
fn without_proc(program: &Path, source: &std::io::Error) -> &'static str {
    let is_missing = source.kind() == std::io::ErrorKind::NotFound;
    if is_missing && program.starts_with("/proc") {
        "; /proc is not mounted, and loads are started through it: mount -t proc proc /proc"
    } else {
        ""
    }
}

/// Why a load is not running.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No CPU to run on.
    #[error("{load}: no load CPUs are given: name at least one, e.g. 0")]
    NoCpus { load: String },
    /// stress-ng is wanted and not there.
    #[error(
        "{load}: {source}: install it (`apt install stress-ng`, `dnf install stress-ng`), use the \
         loads that are built in (cpu+memory+net+disk+fork), or `cmd:PATH` for another one"
    )]
    NoStressNg {
        load: String,
        /// Where it was looked for.
        source: std::io::Error,
    },
    /// The directory cannot be handed to a worker.
    #[error("{load}: the directory {} is not UTF-8: name another", dir.display())]
    Directory { load: String, dir: PathBuf },
    /// The worker could not be started.
    #[error(
        "{load}: cannot start {}: {source}{}",
        program.display(),
        without_proc(program, source)
    )]
    Start { load: String, program: PathBuf, source: std::io::Error },
    /// It could not work, or ended without a request.
    #[error("{load}: {what}")]
    Failed {
        load: String,
        /// What went wrong, and the next step.
        what: String,
    },
}
