//! Where the files of a kernel are prepared before a journal names them: a folder of rtproof's own,
//! one at a time. Nothing in it is in force; it goes with the process, or, after a kill, with the
//! next trial or undo.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use rustix::{fs::FlockOperation, io::Errno};

use super::{journal::make_folders, machine::Machine, tree, writes::is_absent};
use crate::change::{Change, places::STAGING};

/// Who is at it.
const LOCK: &str = "/var/lib/rtproof/tune/kernel.lock";

/// The folder, held until it is dropped.
#[derive(Debug)]
pub struct Staging {
    real: PathBuf,
    _lock: File,
}

impl Staging {
    /// An empty folder; what a run that was killed left in it is removed.
    ///
    /// # Errors
    /// Another rtproof is at it, or it cannot be made.
    pub fn begin(machine: &Machine<'_>) -> io::Result<Self> {
        make_folders(machine)?;
        let Some(lock) = lock(machine)? else {
            return Err(io::Error::other(format!(
                "{LOCK}: another rtproof prepares a kernel; wait until it is done"
            )));
        };
        let real = machine.root.entry(STAGING)?;
        empty(&real)?;
        machine.gate.make_folder(STAGING, 0o700)?;
        Ok(Self { real, _lock: lock })
    }

    /// The folder, of the system that rtproof runs on.
    pub fn path(&self) -> &Path {
        &self.real
    }

    /// The change that puts something that is prepared in its place.
    pub fn placed(&self, name: &str, path: String) -> io::Result<Change> {
        let files = tree::read(&self.real.join(name))?.unwrap_or_default();
        Ok(Change::Placed {
            path,
            from: format!("{STAGING}/{name}"),
            digest: tree::digest(&files),
            files: tree::count(&files),
            bytes: tree::bytes(&files),
        })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What stays is removed by the next one.
        let _ = empty(&self.real);
    }
}

impl Machine<'_> {
    /// Removes what a run that was killed had prepared; what another one is at stays.
    pub fn sweep_staging(&self) -> io::Result<()> {
        let real = match self.root.entry(STAGING) {
            Ok(real) if fs::symlink_metadata(&real).is_ok() => real,
            _ => return Ok(()),
        };
        match lock(self)? {
            Some(_lock) => empty(&real),
            None => Ok(()),
        }
    }

    /// Bytes that are free on the file system of a path, for root; of the first folder above it
    /// that is there.
    ///
    /// # Errors
    /// The file system does not say so.
    pub fn free_bytes(&self, path: &str) -> io::Result<u64> {
        let mut path = path;
        loop {
            let real = self.root.place(path);
            match real.and_then(|real| Ok(rustix::fs::statvfs(real)?)) {
                Ok(there) => return Ok(there.f_bavail.saturating_mul(there.f_frsize)),
                Err(error) if is_absent(&error) && path.len() > 1 => {
                    path = path.rsplit_once('/').map_or("/", |(above, _)| above);
                    path = if path.is_empty() { "/" } else { path };
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether two paths are on one file system, as far as it is known.
    pub fn is_same_disk(&self, one: &str, other: &str) -> bool {
        let device = |path: &str| {
            use std::os::unix::fs::MetadataExt;
            Some(fs::metadata(self.root.place(path).ok()?).ok()?.dev())
        };
        device(one).is_some() && device(one) == device(other)
    }

    /// Bytes of a file; `None`: it is not there or cannot be read.
    pub fn file_bytes(&self, path: &str) -> Option<u64> {
        Some(fs::metadata(self.root.place(path).ok()?).ok()?.len())
    }
}

/// The lock; `None`: another process has it.
fn lock(machine: &Machine<'_>) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = machine.gate.own_file(LOCK, options.write(true).create(true).truncate(false))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn empty(real: &Path) -> io::Result<()> {
    match fs::remove_dir_all(real) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}
