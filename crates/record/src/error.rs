//! What can go wrong with a record, each with the path, what was expected and the next step.
//!
//! Each text holds its cause. `Error::source()` does not return it again: a printed chain would
//! repeat it. Fields are named `r#source` because thiserror looks for `source`.

use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;
use thiserror::Error;

/// A record could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// There is a file already.
    #[error(
        "{}: a file is already there, and a record never overwrites one; name another file or \
         move this one away",
        path.display()
    )]
    Exists { path: PathBuf },
    /// The file cannot be made.
    #[error(
        "{}: the record cannot be made there ({source}); name a file in a folder that exists and \
         that you may write to",
        path.display()
    )]
    Create { path: PathBuf, r#source: io::Error },
    /// The disk is full.
    #[error(
        "{}: no space left while {doing}; what was written before can be read (rtproof report); \
         free space or name a file on another disk",
        path.display()
    )]
    Full {
        path: PathBuf,
        /// What was being written.
        doing: &'static str,
    },
    /// Another program holds the file.
    #[error(
        "{}: the record could not be locked for {seconds} seconds while {doing}: another program \
         has it (fuser -v FILE names it), or this kernel has no file locks (no /proc/locks)",
        path.display()
    )]
    Busy {
        path: PathBuf,
        /// What was being written.
        doing: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The measurement contradicts itself.
    #[error(
        "{}: {subject}: {what}; this second is not written; it is a defect of rtproof: please \
         report it with the record",
        path.display()
    )]
    Inconsistent {
        path: PathBuf,
        subject: String,
        /// What was found and what was expected.
        what: String,
    },
    /// The record is not in the state that the step needs.
    #[error("{}: {what}, expected a record that is not sealed; {next}", path.display())]
    State {
        path: PathBuf,
        what: String,
        /// The next step to take.
        next: &'static str,
    },
    #[error(
        "{}: {doing} failed ({source}); whether what was written before is still there, rtproof \
         report tells; check the file, the disk and the kernel log",
        path.display()
    )]
    Sqlite {
        path: PathBuf,
        /// What was being written.
        doing: &'static str,
        r#source: rusqlite::Error,
    },
    /// The operating system failed.
    #[error(
        "{}: {doing} failed ({source}); whether what was written before is still there, rtproof \
         report tells; check the file, the disk and the kernel log",
        path.display()
    )]
    Io {
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        r#source: io::Error,
    },
    /// The record cannot be read back.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// How long a commit waits for a reader to let go.
pub(crate) const BUSY_SECONDS: u64 = 5;

/// What does not fit together, with what was expected.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct Contradiction(String);

impl From<String> for Contradiction {
    fn from(what: String) -> Self {
        Self(what)
    }
}

impl From<&str> for Contradiction {
    fn from(what: &str) -> Self {
        Self(what.into())
    }
}

impl From<Contradiction> for String {
    fn from(Contradiction(what): Contradiction) -> Self {
        what
    }
}

/// Refuses more of something than a record may hold.
pub(crate) fn bound(what: &str, found: usize, most: usize) -> Result<(), Contradiction> {
    if found > most {
        return Err(format!("{found} {what}, expected {most} at most").into());
    }
    Ok(())
}

impl WriteError {
    pub(crate) fn inconsistent(path: &Path, subject: &str, what: impl Into<String>) -> Self {
        Self::Inconsistent { path: path.into(), subject: subject.into(), what: what.into() }
    }

    /// Sorts an SQLite error by what the user can do about it.
    pub(crate) fn sqlite(path: &Path, doing: &'static str, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path, doing },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { path, doing, seconds: BUSY_SECONDS }
            }
            _ => Self::Sqlite { path, doing, source },
        }
    }

    /// Sorts an operating-system error by what the user can do about it.
    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path, doing },
            _ => Self::Io { path, doing, source },
        }
    }
}

/// A record could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{}: cannot be read ({source}); check the name and your rights", path.display())]
    Open { path: PathBuf, r#source: io::Error },
    /// The file holds nothing yet.
    #[error(
        "{}: the record is empty: the run ended before its first wake-up; nothing can be \
         recovered, run again",
        path.display()
    )]
    Empty { path: PathBuf },
    /// The file is something else.
    #[error(
        "{}: not an rtproof record: found {found}, expected an SQLite file with application id \
         0x52545046 (RTPF); name a *.rtproof file, or use `rtproof import` for other tools' files",
        path.display()
    )]
    NotARecord { path: PathBuf, found: String },
    /// The file was written by a newer rtproof.
    #[error(
        "{}: schema version {found}, expected {} or lower; update rtproof",
        path.display(),
        crate::schema::VERSION
    )]
    Newer { path: PathBuf, found: i32 },
    /// The file is damaged.
    #[error(
        "{}: the record is damaged: {what}{}; use an undamaged copy; `sqlite3 FILE .recover` may \
         save parts",
        path.display(),
        if *sealed { ", and it was changed after it was sealed" } else { "" }
    )]
    Damaged {
        path: PathBuf,
        /// What was found and what was expected.
        what: String,
        /// Whether the file carries a seal that it no longer matches.
        sealed: bool,
    },
    /// A write was cut off and cannot be rolled back.
    #[error(
        "{}: its last write was cut off, and the part in `{}-journal` cannot be rolled back \
         ({why}). Copy both files to a folder that you may write to, and read them there",
        path.display(),
        path.display()
    )]
    Recover { path: PathBuf, why: String },
    /// Another program is writing the file.
    #[error(
        "{}: the record could not be locked for {BUSY_SECONDS} seconds: another program has it \
         (wait for the run to end), or this kernel has no file locks (no /proc/locks)",
        path.display()
    )]
    Busy { path: PathBuf },
}

impl ReadError {
    /// The error of a copy as that of the file.
    pub(crate) fn of(mut self, file: &Path) -> Self {
        let (Self::Open { path, .. }
        | Self::Empty { path }
        | Self::NotARecord { path, .. }
        | Self::Newer { path, .. }
        | Self::Damaged { path, .. }
        | Self::Recover { path, .. }
        | Self::Busy { path }) = &mut self;
        *path = file.into();
        self
    }
}

/// A fault of the content, before the path is known to it.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    /// A value is not what it can be.
    Content(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(source: rusqlite::Error) -> Self {
        Self::Sqlite(source)
    }
}

impl From<Contradiction> for Fault {
    fn from(Contradiction(what): Contradiction) -> Self {
        Self::Content(what)
    }
}

impl Fault {
    /// The error for `path`; `sealed`: it carries a seal that it does not match.
    pub(crate) fn at(self, path: &Path, sealed: bool) -> ReadError {
        let path = path.to_owned();
        match self {
            Self::Sqlite(source) => match source.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    ReadError::Busy { path }
                }
                _ => ReadError::Damaged { path, what: source.to_string(), sealed },
            },
            Self::Content(what) => ReadError::Damaged { path, what, sealed },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn the_cause_is_reported_once() {
        let cause = || io::Error::from(io::ErrorKind::PermissionDenied);
        let sqlite = || rusqlite::Error::InvalidQuery;
        let path = PathBuf::from("/x");
        let read = || ReadError::Open { path: path.clone(), source: cause() };
        for (error, cause) in [
            (WriteError::Create { path: path.clone(), source: cause() }, cause().to_string()),
            (WriteError::io(&path, "testing", cause()), cause().to_string()),
            (WriteError::sqlite(&path, "testing", sqlite()), sqlite().to_string()),
            (read().into(), cause().to_string()),
        ] {
            assert_eq!(error.to_string().matches(&cause).count(), 1, "{error}");
            assert!(error.source().is_none(), "{error:?}");
        }
        assert!(read().source().is_none());
    }
}
