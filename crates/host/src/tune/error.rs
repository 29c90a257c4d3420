//! Why a change cannot be made or undone: each error names the path, what was found, and the next
//! step.

use std::io;

use rustix::io::Errno;

use super::state::State;
use crate::{Reading, Root, reading, refusal::Refusal};

/// Why a state cannot be read, or a change not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A value that the kernel does not have.
    #[error("{path}: not there: this kernel or machine does not have it; leave this change out")]
    Missing { path: String },
    /// What the change is about has ended, or was taken away.
    #[error("{what}: gone")]
    Gone { what: String },
    /// The kernel said no.
    #[error("{path}: {why}")]
    Refused {
        path: String,
        /// The error, and the reason behind it.
        why: String,
    },
    /// Something is not what it has to be.
    #[error("{path}: holds {found}, expected {expected}")]
    Unexpected { path: String, found: String, expected: String },
    /// A place where rtproof never writes.
    #[error("{why}")]
    Elsewhere {
        /// The place, and why not.
        why: String,
    },
    /// A folder that others use by now.
    #[error("{path}: not empty")]
    NotEmpty { path: String },
    /// Only a live machine has it.
    #[error("{what}: a folder of files has none; run it on the machine itself")]
    NotLive { what: String },
    /// Groups of users in a folder: the tools would change root into it, and load what is there.
    #[error(
        "{what}: groups are changed on the machine itself alone: in a folder their tools would run \
         the folder's own libraries as root; leave it out with --skip CHECK=REASON"
    )]
    AccountElsewhere {
        /// What was to be changed.
        what: String,
    },
    /// There is no systemd to ask.
    #[error("{unit}: systemd does not run here (no /run/systemd/system); stop or start it by hand")]
    NoSystemd { unit: String },
    /// The machine was opened to be read.
    #[error("{path}: this machine was opened for reading only")]
    ReadOnly {
        /// What was to be changed.
        path: String,
    },
}

impl ChangeError {
    /// A state that does not belong to a change: a journal that was put together by hand.
    pub(super) fn not_expected(state: &State, expected: &str) -> Self {
        let found = serde_json::to_string(state).unwrap_or_default();
        let found = found.chars().take(80).collect();
        Self::Unexpected { path: "journal".into(), found, expected: expected.into() }
    }

    /// What is there of what a state is made of. A refusal is no absence: undo would go by it.
    pub(super) fn there<T>(reading: Reading<T>) -> Result<Option<T>, Self> {
        match reading.state {
            reading::State::Denied { ref why } => {
                Err(Self::Refused { path: reading.path, why: why.clone() })
            }
            _ => Ok(reading.into_value()),
        }
    }

    /// A refusal, with the reason behind it where that is known.
    pub(crate) fn refused(root: &Root, path: &str, error: io::Error) -> Self {
        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
        let reading: Reading<()> = root.refused(path, &Refusal::from(error));
        let mut why = match reading.state {
            reading::State::Absent => return Self::Missing { path: path.into() },
            _ => reading.why_unknown().unwrap_or_default(),
        };
        let hint = match errno {
            Some(Errno::IO | Errno::PERM) if path.starts_with("/proc/irq/") => {
                "; a managed interrupt, which the kernel alone places: boot with \
                 isolcpus=managed_irq"
            }
            Some(Errno::IO) => "; the device or the firmware did not take it",
            Some(Errno::BUSY) => "; something uses it: stop that first",
            Some(Errno::INVAL) => "; the kernel does not take this value",
            Some(Errno::NOSPC) => "; make room and try again",
            Some(Errno::ROFS) => "; mount it writable first",
            Some(Errno::PERM | Errno::ACCESS) if is_of_files(path) => {
                "; look whether it or its folder is immutable (lsattr)"
            }
            _ => "",
        };
        why += hint;
        Self::Refused { path: path.into(), why }
    }

    /// What a reading without a value says.
    pub(crate) fn unread<T>(reading: Reading<T>) -> Self {
        let path = reading.path;
        match reading.state {
            reading::State::Malformed { found, expected } => {
                Self::Unexpected { path, found: format!("\"{found}\""), expected }
            }
            reading::State::Denied { why } => {
                Self::Refused { path, why: format!("refused: {why}") }
            }
            _ => Self::Missing { path },
        }
    }
}

fn is_of_files(path: &str) -> bool {
    !["/proc/", "/sys/", "/dev/"].iter().any(|top| path.starts_with(top))
}
