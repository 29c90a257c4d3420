//! The second witness of what is applied: a mark in /run, beside the journal. A state folder that
//! is lost, or a journal that is deleted, does not make a changed machine look untouched.
//!
//! `/run/rtproof/NNNN.applied` is there from before the first change until the last one is undone.
//! /run goes with a reboot, and with it the values of the running kernel. A machine without /run
//! (an image) has no second witness.

use serde::{Deserialize, Serialize};

use super::Machine;
use super::script::JournalScript;
use super::writes::is_absent;
use crate::trusted;

/// Folder of the marks, for anybody to look into: they hold no values.
const FOLDER: &str = "/run/rtproof";

/// What a mark says of its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AppliedMark {
    pub(super) number: u32,
    /// Changes that were planned.
    pub(super) changes: usize,
    /// Checksum of the journal's first line.
    digest: String,
    /// Boot in which it was made; empty for a folder without one.
    boot: String,
}

fn path_of(number: u32) -> String {
    format!("{FOLDER}/{number:04}.applied")
}

/// Marks a journal as applied. Its own first line is on disk by now, and nothing is changed yet.
pub(super) fn mark(
    machine: &Machine<'_>,
    journal: &JournalScript,
    number: u32,
) -> std::io::Result<()> {
    if !machine.root.exists("/run") {
        return Ok(());
    }
    if !machine.root.exists(FOLDER) {
        machine.gate.make_folder(FOLDER, 0o755)?;
    }
    trusted::folder(&machine.root.place(FOLDER)?)?;
    let mark = AppliedMark {
        number,
        changes: journal.header.planned.len(),
        digest: journal.digest.clone(),
        boot: machine.boot_id(),
    };
    let text = serde_json::to_string(&mark).map_err(std::io::Error::other)? + "\n";
    machine.gate.new_file(&path_of(number), text.as_bytes()).map(drop)
}

/// Removes the mark of a journal, of whichever copy of it; the folder with the last one.
pub(super) fn remove(machine: &Machine<'_>, journal: &JournalScript) -> std::io::Result<()> {
    for number in numbers(machine) {
        if of(machine, number).is_some_and(|mark| mark.is_of(journal)) {
            match machine.gate.remove(&path_of(number)) {
                Err(error) if !is_absent(&error) => return Err(error),
                _ => {}
            }
        }
    }
    // Not empty while another journal is in force.
    let _ = machine.gate.remove_folder(FOLDER);
    Ok(())
}

/// Numbers of the marks.
pub(super) fn numbers(machine: &Machine<'_>) -> Vec<u32> {
    let names = machine.root.list_dir(FOLDER).into_value().unwrap_or_default();
    names.iter().filter_map(|name| name.strip_suffix(".applied")?.parse().ok()).collect()
}

/// The mark of a number. One that cannot be read still says that something is applied.
pub(super) fn of(machine: &Machine<'_>, number: u32) -> Option<AppliedMark> {
    let path = path_of(number);
    if !machine.root.exists(&path) {
        return None;
    }
    let text = machine.root.read_text(&path).into_value().unwrap_or_default();
    let unread = AppliedMark { number, changes: 0, digest: String::new(), boot: machine.boot_id() };
    Some(serde_json::from_str(&text).unwrap_or(unread))
}

impl AppliedMark {
    pub(super) fn is_of(&self, journal: &JournalScript) -> bool {
        self.digest == journal.digest
    }

    /// What is known without the journal, and what can be done.
    pub(super) fn without_journal(&self, machine: &Machine<'_>, journal: &str) -> String {
        let mark = path_of(self.number);
        let what = match self.changes {
            0 => "applied, journal missing".to_owned(),
            n => format!("applied ({n} planned), journal missing"),
        };
        let now = machine.boot_id();
        let is_earlier = !self.boot.is_empty() && !now.is_empty() && self.boot != now;
        // Only what has the form of a checksum is repeated.
        let is_hex =
            !self.digest.is_empty() && self.digest.bytes().all(|it| it.is_ascii_hexdigit());
        let copy = match is_hex {
            true => format!("a copy of it (its first word is {})", self.digest),
            false => "a copy of it".to_owned(),
        };
        let boot = match is_earlier {
            true => {
                "values of the running kernel went with the reboot, files that it changed did not"
            }
            false => "a reboot takes the values of the running kernel back, not files",
        };
        format!(
            "{journal}: {what}: {mark} was written before the first change; put {copy} there and \
             run rtproof tune undo; without one, {boot}: remove the mark when the machine is as \
             you want it"
        )
    }
}
