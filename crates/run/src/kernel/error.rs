//! What goes wrong with sources, patches, configurations and builds.

use std::{io, path::PathBuf};

use rtproof_results::kernel::bisect::KernelBisectNext;

/// An error of a kernel's source, configuration or build.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The source, the folder or a file cannot be used.
    #[error("{}: {why}", path.display())]
    Path {
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A file or a folder cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// Root would run what another user could have written.
    #[error("{why}; or do all of it as that user (--user)")]
    Distrusted {
        /// Which path, and why.
        why: io::Error,
    },
    /// A program that is needed is not here.
    #[error(
        "{program} is needed and missing ({why}); install it, on Debian: apt-get install {package}"
    )]
    Missing {
        program: String,
        why: String,
        /// The package that has it on Debian.
        package: String,
    },
    #[error(
        "{step} failed ({status}){hint}:\n{}\nlog: {}",
        indented(lines), log.display()
    )]
    Failed {
        step: String,
        /// How the program ended.
        status: String,
        /// What is known of the reason, with its own punctuation.
        hint: String,
        /// The program's own lines.
        lines: Vec<String>,
        /// Everything that it wrote.
        log: PathBuf,
    },
    /// A patch does not apply.
    #[error("{0}")]
    Patch(Box<PatchFailure>),
    /// QEMU, a guest or what came out of it.
    #[error("{0:#}")]
    Guest(#[from] anyhow::Error),
    /// Not an error: the work goes on in the next boot of this machine.
    #[error("the work goes on after a reboot")]
    Reboots(Box<KernelBisectNext>),
    /// `git rebase` stopped at a conflict.
    #[error("{text}")]
    Conflict {
        /// Which commit, which files, how to go on.
        text: String,
    },
}

/// A patch that does not apply.
#[derive(Debug)]
pub struct PatchFailure {
    pub patch: PathBuf,
    pub applied: usize,
    /// The source, which is not changed.
    pub origin: PathBuf,
    pub lines: Vec<String>,
    /// Hunks that were rejected.
    pub rejected: Vec<String>,
    pub log: PathBuf,
}

impl std::fmt::Display for PatchFailure {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            to,
            "{}: does not apply ({} before it did); the source in {} is as before:\n{}\n\
             rejected:\n{}\nlog: {}",
            self.patch.display(),
            self.applied,
            self.origin.display(),
            indented(&self.lines),
            indented(&self.rejected),
            self.log.display()
        )
    }
}

impl KernelError {
    /// A path that cannot be used.
    pub(crate) fn path(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Path { path: path.into(), why: why.into() }
    }

    /// An error of the file system.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { path, error }
    }
}

fn indented(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}
