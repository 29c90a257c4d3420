//! The mark of a journal that waits for a confirmation, and what becomes of it: `unconfirmed`, then
//! `confirmed`, or `expired` when time was up. A journal of `rtproof run` is marked `running`.
//! Renaming it is one step of the file system, so that
//! only one of the two can do it; only a mark that says so is a confirmation, never a missing one.
//! Whoever takes the changes back holds a lock on the mark, which ends with it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
};

use rustix::{fs::FlockOperation, io::Errno};

use super::{
    machine::{FOLDER, Machine},
    writes::is_absent,
};
use crate::{Root, trusted};

/// How a journal waits, or waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// It has to be confirmed.
    Pending,
    /// It was not, and the rollback timer is undoing it, or was killed while it did.
    Expired,
    Confirmed,
    /// It needs no confirmation: a program runs, and it is undone at its end.
    Running,
}

impl Confirmation {
    const ALL: [Self; 4] = [Self::Pending, Self::Expired, Self::Confirmed, Self::Running];

    fn path(self, number: u32) -> String {
        let ending = match self {
            Self::Pending => "unconfirmed",
            Self::Expired => "expired",
            Self::Confirmed => "confirmed",
            Self::Running => "running",
        };
        format!("{FOLDER}/{number:04}.{ending}")
    }
}

/// What the mark of a journal says; `None`: there is none, or it cannot be read.
pub fn of(root: &Root, number: u32) -> Option<Confirmation> {
    let is_there = |of: &Confirmation| root.read_bytes(&of.path(number)).value().is_some();
    Confirmation::ALL.into_iter().find(is_there)
}

/// Whether a journal waits: its changes are undone, or should be.
pub fn is_unconfirmed(root: &Root, number: u32) -> bool {
    matches!(of(root, number), Some(Confirmation::Pending | Confirmation::Expired))
}

/// Whether a journal is undone when a program ends.
pub fn is_of_program(root: &Root, number: u32) -> bool {
    of(root, number) == Some(Confirmation::Running)
}

/// Marks a journal that has to be confirmed, on disk before anything is changed.
pub fn set(machine: &Machine<'_>, number: u32) -> io::Result<()> {
    mark(machine, Confirmation::Pending.path(number), "waits for: rtproof tune confirm")
}

/// Marks a journal that is undone when a program ends, on disk before anything is changed.
pub fn set_running(machine: &Machine<'_>, number: u32) -> io::Result<()> {
    mark(machine, Confirmation::Running.path(number), "undone when the program of rtproof run ends")
}

fn mark(machine: &Machine<'_>, path: String, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true);
    let mut file = machine.gate.own_file(&path, options)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    machine.gate.sync_folder_of(&path)
}

/// The lock of whoever takes a journal back, for as long as the file is open; `None`: there is no
/// mark, or another has it.
pub fn guard(root: &Root, number: u32) -> Option<File> {
    lock(root, number, FlockOperation::NonBlockingLockExclusive).ok().flatten()
}

/// Whether another process holds that lock. What cannot be asked is not guarded.
pub fn is_guarded(root: &Root, number: u32) -> bool {
    let asked = lock(root, number, FlockOperation::NonBlockingLockShared);
    asked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

fn lock(root: &Root, number: u32, how: FlockOperation) -> io::Result<Option<File>> {
    let Some(of) = of(root, number) else { return Ok(None) };
    let file = trusted::open(&root.entry(&of.path(number))?)?;
    match rustix::fs::flock(&file, how) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

/// Confirms a journal; `false`: it does not wait, or its time was up before.
pub fn confirm(machine: &Machine<'_>, number: u32) -> io::Result<bool> {
    rename(machine, number, Confirmation::Confirmed)
}

/// Says that time is up; `false`: it was confirmed before, or has no mark.
pub fn expire(machine: &Machine<'_>, number: u32) -> io::Result<bool> {
    let now = rename(machine, number, Confirmation::Expired)?;
    // Expired before, by a rollback timer that was killed then.
    Ok(now || of(machine.root(), number) == Some(Confirmation::Expired))
}

fn rename(machine: &Machine<'_>, number: u32, to: Confirmation) -> io::Result<bool> {
    let (from, to) = (Confirmation::Pending.path(number), to.path(number));
    let root = machine.root();
    let from = match root.entry(&from) {
        Err(error) if is_absent(&error) => return Ok(false),
        from => from?,
    };
    match fs::rename(from, root.entry(&to)?) {
        Ok(()) => machine.gate.sync_folder_of(&to).map(|()| true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the marks of a journal that was undone.
///
/// # Errors
/// When a mark cannot be taken away.
pub fn clear(machine: &Machine<'_>, number: u32) -> io::Result<()> {
    Confirmation::ALL.into_iter().try_for_each(|of| remove(machine, &of.path(number)))
}

fn remove(machine: &Machine<'_>, path: &str) -> io::Result<()> {
    let real = match machine.root().entry(path) {
        Err(error) if is_absent(&error) => return Ok(()),
        real => real?,
    };
    match fs::remove_file(real) {
        Ok(()) => machine.gate.sync_folder_of(path),
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
