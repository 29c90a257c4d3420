//! The mark of a journal that waits for a confirmation. What removes the mark decides: a
//! confirmation keeps the changes, a rollback timer whose time is up undoes them. Removing it is
//! one step of the file system, so that only one of the two can do it.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
};

use super::{
    machine::{FOLDER, Machine},
    writes::is_absent,
};
use crate::Root;

fn path(number: u32) -> String {
    format!("{FOLDER}/{number:04}.unconfirmed")
}

/// Of a journal whose time is up: kept until its changes are undone.
fn expired(number: u32) -> String {
    format!("{FOLDER}/{number:04}.expired")
}

/// How a journal waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// It has to be confirmed.
    Pending,
    /// It was not, and the rollback timer is undoing it, or was killed while it did.
    Expired,
}

/// How a journal waits; `None`: it does not.
#[must_use]
pub fn of(root: &Root, number: u32) -> Option<Confirmation> {
    let is_there = |path: String| root.read_bytes(&path).value().is_some();
    match () {
        () if is_there(path(number)) => Some(Confirmation::Pending),
        () if is_there(expired(number)) => Some(Confirmation::Expired),
        () => None,
    }
}

/// Marks a journal, on disk before anything is changed.
///
/// # Errors
/// When the mark cannot be written.
pub fn set(machine: &Machine<'_>, number: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true);
    let path = path(number);
    let mut file = machine.gate.own_file(&path, options)?;
    writeln!(file, "waits for: rtproof tune confirm")?;
    file.sync_all()?;
    machine.gate.sync_folder_of(&path)
}

/// Confirms a journal; `false`: it does not wait, or its time was up before.
///
/// # Errors
/// When the mark cannot be taken away.
pub fn confirm(machine: &Machine<'_>, number: u32) -> io::Result<bool> {
    remove(machine, &path(number))
}

/// Says that time is up; `false`: it was confirmed before.
///
/// # Errors
/// When the mark cannot be moved.
pub fn expire(machine: &Machine<'_>, number: u32) -> io::Result<bool> {
    let (from, to) = (path(number), expired(number));
    let root = machine.root();
    match fs::rename(root.entry(&from)?, root.entry(&to)?) {
        Ok(()) => machine.gate.sync_folder_of(&to).map(|()| true),
        // Expired before, by a rollback timer that was killed then.
        Err(error) if is_absent(&error) => Ok(of(root, number) == Some(Confirmation::Expired)),
        Err(error) => Err(error),
    }
}

/// Removes the mark of a journal that was undone.
///
/// # Errors
/// When a mark cannot be taken away.
pub fn clear(machine: &Machine<'_>, number: u32) -> io::Result<()> {
    remove(machine, &path(number))?;
    remove(machine, &expired(number))?;
    Ok(())
}

fn remove(machine: &Machine<'_>, path: &str) -> io::Result<bool> {
    let real = match machine.root().entry(path) {
        Err(error) if is_absent(&error) => return Ok(false),
        real => real?,
    };
    match fs::remove_file(real) {
        Ok(()) => machine.gate.sync_folder_of(path).map(|()| true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}
