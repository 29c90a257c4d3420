//! Undoing changes: newest first, and only what is still as we left it.

use std::io;

use super::{
    error::ChangeError,
    journal::{
        Journal, JournalError,
        script::{Entry, Line},
    },
    machine::Machine,
    outcome::{Gone, Outcome},
    state::State,
    three::{Side, Three},
};
use crate::change::Change;

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    pub change: Change,
    pub outcome: Outcome,
}

/// Why an undo did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// Nothing was written to the machine.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nothing was written to the machine.
    #[error(transparent)]
    NotWritable(#[from] ChangeError),
    /// The machine is as it was, and the journal does not say so.
    #[error(
        "{path}: {source}; {} changes were undone all the same: make room and run the undo again \
         to close the journal", undone.len()
    )]
    Unrecorded {
        path: String,
        /// What became of each change.
        undone: Vec<Undone>,
        /// Why it could not be written.
        source: io::Error,
    },
}

/// Undoes every change of a journal that is not yet undone. When nothing is left, the journal
/// is closed; a second undo has nothing to do.
///
/// # Errors
/// When nothing could be begun, or the journal not be written to the end.
pub fn undo(
    machine: &Machine<'_>,
    journal: &mut Journal,
    progress: &mut dyn FnMut(&Undone),
) -> Result<Vec<Undone>, UndoError> {
    if journal.is_closed() {
        return Ok(Vec::new());
    }
    machine.may_write(journal.path())?;
    let mut unrecorded = journal.prepare(machine)?;
    let undone = undo_all(machine, journal, progress, &mut unrecorded);
    match unrecorded {
        None => Ok(undone),
        Some(source) => {
            Err(UndoError::Unrecorded { path: journal.path().to_owned(), undone, source })
        }
    }
}

/// As [`undo`], with a journal that is being written. A journal that cannot be written does not
/// keep the machine from being put back: what is not on record is found to be as before next time.
pub(super) fn undo_all(
    machine: &Machine<'_>,
    journal: &mut Journal,
    progress: &mut dyn FnMut(&Undone),
    unrecorded: &mut Option<io::Error>,
) -> Vec<Undone> {
    let mut all = Vec::new();
    if journal
        .entries()
        .iter()
        .any(|entry| entry.undoing && entry.item.change.kind().concerns_units())
    {
        // An undo that was killed may have ended before systemd reloaded.
        machine.units_stale.set(true);
    }
    // Newest first; then once more what failed, as what held it may be gone.
    let mut again = false;
    for is_last in [false, true] {
        let mut stuck: Vec<String> = Vec::new();
        for n in (0..journal.entries().len()).rev() {
            if (is_last && !again) || journal.entries()[n].is_settled() {
                continue;
            }
            let undone = match waits_for(&journal.entries()[n].item.change, &stuck) {
                Some(why) => {
                    let change = journal.entries()[n].item.change.clone();
                    Undone { change, outcome: Outcome::Failed { why } }
                }
                None => undo_one(machine, journal, n, unrecorded),
            };
            let has_failed = matches!(undone.outcome, Outcome::Failed { .. });
            if let (true, Some(path)) = (has_failed, undone.change.kind().file()) {
                stuck.push(path.to_owned());
            }
            // An older change may hold it: while there is a partition of CPUs, no task outside
            // gets them back (kind root: seen on Linux 7.2).
            if has_failed && !is_last {
                again = true;
                continue;
            }
            progress(&undone);
            all.push(undone);
        }
    }
    let reloaded = machine.reload_units();
    if let Err(error) = reloaded {
        let change = Change::Property {
            unit: "systemd".into(),
            property: "daemon-reload".into(),
            value: String::new(),
        };
        let undone = Undone { change, outcome: Outcome::Failed { why: error.to_string() } };
        progress(&undone);
        all.push(undone);
    }
    if unrecorded.is_none() && !journal.is_closed() {
        let is_left = |entry: &Entry| !entry.is_settled();
        if !journal.entries().iter().any(is_left) && journal.unnoted(machine).is_empty() {
            *unrecorded = journal.write(machine, &Line::Closed).err();
        }
    }
    all
}

/// Why a change has to wait for a newer one that could not be undone: it is of the same file, made
/// the folder that the file is in, or is in the folder that the newer one is about. Out of
/// order, neither would be put back to the byte.
fn waits_for(change: &Change, stuck: &[String]) -> Option<String> {
    let kind = change.kind();
    let own = kind.file()?;
    let is_in = |path: &str, folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let path = stuck.iter().find(|path| is_in(path, own) || is_in(own, path))?;
    Some(format!("{own}: waits for {path}, which could not be put back"))
}

pub(super) fn undo_one(
    machine: &Machine<'_>,
    journal: &mut Journal,
    n: usize,
    unrecorded: &mut Option<io::Error>,
) -> Undone {
    let entry = journal.entries()[n].clone();
    let is_earlier_boot = journal.is_of_earlier_boot(machine);
    let mut begun = || {
        if unrecorded.is_none()
            && let Err(error) = journal.write(machine, &Line::Undoing { n })
        {
            unrecorded.get_or_insert(error);
        }
    };
    let outcome = outcome(machine, &entry, is_earlier_boot, &mut begun);
    let line = Line::Undone { n, outcome: outcome.clone() };
    if unrecorded.is_none()
        && let Err(error) = journal.write(machine, &line)
    {
        *unrecorded = Some(error);
    }
    Undone { change: entry.item.change, outcome }
}

fn outcome(
    machine: &Machine<'_>,
    entry: &Entry,
    is_earlier_boot: bool,
    begun: &mut dyn FnMut(),
) -> Outcome {
    let change = &entry.item.change;
    let Some(before) = &entry.before else { return Outcome::WasBefore };
    if is_earlier_boot && !change.nature().is_durable {
        return Outcome::Gone { why: Gone::Reboot };
    }
    let current = match change.kind().clean(machine).and_then(|()| machine.state(change)) {
        Ok(current) => current,
        Err(error) => return without_state(&error),
    };
    let three =
        Three { before, after: entry.after.as_ref(), current: &current, undoing: entry.undoing };
    let side = machine.side(change, three);
    match side {
        Side::Before => return Outcome::WasBefore,
        Side::Theirs if !change.kind().is_partly_ours(three) => {
            return Outcome::LeftAlone { found: current };
        }
        Side::Ours | Side::Theirs => {}
    }
    begun();
    match machine.restore(change, three) {
        Ok(()) if side == Side::Theirs => {
            // Of a folder, what others have in it.
            let left = matches!(current, State::Tree { .. }).then(|| machine.state(change));
            let found = left.and_then(Result::ok).unwrap_or(current);
            return Outcome::LeftAlone { found };
        }
        Ok(()) => {}
        Err(ChangeError::NotEmpty { .. }) => return Outcome::LeftAlone { found: current },
        Err(error) => return without_state(&error),
    }
    match machine.state(change) {
        Ok(now) => {
            let three = Three { before, after: None, current: &now, undoing: false };
            match machine.side(change, three) {
                Side::Before => Outcome::Restored,
                _ => Outcome::Failed {
                    why: format!("{}: reads {}", change.target(), change.before(&now)),
                },
            }
        }
        Err(error) => without_state(&error),
    }
}

/// What it means that a state cannot be read.
fn without_state(error: &ChangeError) -> Outcome {
    match error {
        ChangeError::Gone { .. } => Outcome::Gone { why: Gone::Ended },
        ChangeError::Missing { .. } => Outcome::Gone { why: Gone::Removed },
        other => Outcome::Failed { why: other.to_string() },
    }
}
