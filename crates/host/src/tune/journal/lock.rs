//! One rtproof at a time changes a machine.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, Write},
    thread,
    time::{Duration, Instant},
};

use rustix::{fs::FlockOperation, io::Errno};

use super::error::JournalError;
use crate::tune::machine::{FOLDER, Machine};

/// Longest wait for what this process itself holds, and time between two tries.
const OWN_MAX: Duration = Duration::from_millis(500);
const OWN_POLL: Duration = Duration::from_millis(2);

/// Held until it is dropped, or its process ends in any way.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, at once or not at all.
    pub(super) fn take(machine: &Machine<'_>) -> Result<Self, JournalError> {
        let path = format!("{FOLDER}/lock");
        let io = |source| JournalError::Io { path: path.clone(), source, next: "" };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = match machine.gate.own_file(&path, options) {
            // To hold it, it need not be written.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => machine
                .gate
                .own_file(&path, OpenOptions::new().read(true))
                .map_err(|_| io(error))?,
            opened => opened.map_err(io)?,
        };
        let own = std::process::id().to_string();
        let end = Instant::now() + OWN_MAX;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {
                    let mut pid = String::new();
                    let _ = file.rewind();
                    let _ = (&file).take(32).read_to_string(&mut pid);
                    // A child of ours that has not executed its program yet has our files, too.
                    if pid.trim() == own && Instant::now() < end {
                        thread::sleep(OWN_POLL);
                        continue;
                    }
                    let pid = match pid.trim() {
                        "" => "unknown".to_owned(),
                        pid => pid.to_owned(),
                    };
                    return Err(JournalError::Locked { path, pid });
                }
                Err(errno) => return Err(io(errno.into())),
            }
        }
        // For whoever meets it; it holds without a name, too.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}
