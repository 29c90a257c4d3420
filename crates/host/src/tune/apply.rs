//! Making changes: each is written down with what was there, made, and read back.

use std::io;

use super::{
    error::ChangeError,
    journal::{
        Journal,
        script::{Item, Line},
    },
    machine::Machine,
    outcome::Outcome,
    state::State,
    undo::{Undone, undo_all, undo_one},
    writes::why_not_writable,
};
use crate::change::Change;

/// How changes are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether a change that fails is left out instead of taking all back. Left out either way is
    /// a task or an interrupt that has ended since it was named, and an interrupt that the kernel
    /// keeps where it is: that cannot be known before (managed interrupts, kernels before 6.10).
    pub keep_going: bool,
}

/// What happens while changes are applied.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The machine was so already.
    WasSo {
        /// Number of the change, from 0.
        n: usize,
        change: &'a Change,
    },
    /// It is about to be made.
    Begin {
        /// Number of the change, from 0.
        n: usize,
        change: &'a Change,
        before: &'a State,
    },
    /// It was made and read back.
    Done {
        /// Number of the change, from 0.
        n: usize,
        change: &'a Change,
        after: &'a State,
        note: Option<&'a str>,
    },
    /// It was not made, or is not in force.
    Failed { n: usize, change: &'a Change, why: &'a str },
    /// It is undone, because another one failed.
    Undone(&'a Undone),
}

/// Outcome of applying a list of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Changes that were made.
    pub done: usize,
    /// Changes that were active already.
    pub was_so: usize,
    /// Changes that failed, and why: with [`Options::keep_going`] alone.
    pub failed: Vec<(Change, String)>,
    /// Changes that could not be made and are no failure, and why: see [`Options::keep_going`].
    pub left_out: Vec<(Change, String)>,
    /// Changes that are made and not in force yet, and what they wait for.
    pub pending: Vec<(Change, String)>,
}

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A place cannot be written. Nothing was changed.
    #[error("{0}; nothing was changed")]
    NotWritable(ChangeError),
    /// A change failed, and those before it were undone.
    #[error("{why}; {}", rolled_back(undone))]
    Failed {
        change: Box<Change>,
        why: String,
        /// What became of it and those before it.
        undone: Vec<Undone>,
    },
    /// The journal could not be written; what was changed was undone.
    #[error("{path}: {source}; {}", rolled_back(undone))]
    Journal {
        path: String,
        source: io::Error,
        /// What became of the changes made so far.
        undone: Vec<Undone>,
    },
}

/// How a roll-back ended, as a phrase.
fn rolled_back(undone: &[Undone]) -> String {
    let is_left = |undone: &&Undone| {
        matches!(undone.outcome, Outcome::Failed { .. } | Outcome::LeftAlone { .. })
    };
    let left: Vec<String> =
        undone.iter().filter(is_left).map(|undone| undone.change.target()).collect();
    match (undone.len(), left.len()) {
        (0, _) => "nothing was changed".into(),
        (_, 0) => "everything was taken back".into(),
        _ => format!("taken back, except for {}", left.join(", ")),
    }
}

/// What becomes of one change.
enum Step {
    WasSo,
    Done(Option<String>),
    Failed { why: String, is_tolerated: bool },
}

impl Step {
    const fn failed(why: String) -> Self {
        Self::Failed { why, is_tolerated: false }
    }
}

/// Applies changes in their order.
///
/// # Errors
/// One failed and `keep_going` is not set, or the journal could not be written: then everything
/// was undone.
pub fn apply(
    machine: &Machine<'_>,
    journal: &mut Journal,
    items: &[Item],
    options: Options,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Applied, ApplyError> {
    writable(machine, items).map_err(ApplyError::NotWritable)?;
    let mut applied = Applied::default();
    for item in items {
        let n = journal.entries().len();
        let step = match make(machine, journal, item, n, progress) {
            Ok(step) => step,
            Err(source) => {
                let path = journal.path().to_owned();
                let undone = roll_back(machine, journal, progress);
                return Err(ApplyError::Journal { path, source, undone });
            }
        };
        // As it was named: the thread id or number that it has now.
        let change = journal.entries().get(n).map_or(&item.change, |entry| &entry.item.change);
        match step {
            Step::WasSo => applied.was_so += 1,
            Step::Done(note) => {
                applied.done += 1;
                applied.pending.extend(note.map(|note| (change.clone(), note)));
            }
            Step::Failed { why, is_tolerated } => {
                let change = change.clone();
                progress(Progress::Failed { n, change: &change, why: &why });
                if !options.keep_going && !is_tolerated {
                    let undone = roll_back(machine, journal, progress);
                    return Err(ApplyError::Failed { change: Box::new(change), why, undone });
                }
                if journal.entries().get(n).is_some_and(|entry| !entry.is_settled()) {
                    let undone = undo_one(machine, journal, n, &mut None);
                    progress(Progress::Undone(&undone));
                }
                let list = if is_tolerated { &mut applied.left_out } else { &mut applied.failed };
                list.push((change, why));
            }
        }
    }
    if let Err(error) = machine.reload_units() {
        let why = error.to_string();
        if !options.keep_going {
            let undone = roll_back(machine, journal, progress);
            let change = items.last().map(|item| item.change.clone());
            let Some(change) = change else { return Ok(applied) };
            return Err(ApplyError::Failed { change: Box::new(change), why, undone });
        }
        applied.failed.extend(items.last().map(|item| (item.change.clone(), why)));
    }
    Ok(applied)
}

/// Makes one change. An error is the journal's.
fn make(
    machine: &Machine<'_>,
    journal: &mut Journal,
    item: &Item,
    n: usize,
    progress: &mut dyn FnMut(Progress<'_>),
) -> io::Result<Step> {
    let named = machine.named(item.change.clone());
    let looked = named.and_then(|change| Ok((machine.state(&change)?, change)));
    let (before, change) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            let is_tolerated = matches!(error, ChangeError::Gone { .. });
            let why = error.to_string();
            let line = Line::Refused { n, item: item.clone(), why: why.clone() };
            journal.write(machine, &line)?;
            return Ok(Step::Failed { why, is_tolerated });
        }
    };
    let item = Item { change, checks: item.checks.clone() };
    let change = item.change.clone();
    if machine.is_done(&change, &before) {
        journal.write(machine, &Line::Same { n, item, state: before })?;
        progress(Progress::WasSo { n, change: &change });
        return Ok(Step::WasSo);
    }
    progress(Progress::Begin { n, change: &change, before: &before });
    journal.write(machine, &Line::Begin { n, item, before: before.clone() })?;
    let written = machine.write(&change, &before);
    let after = change.kind().state_after(machine, &before);
    let is_kept = change.kind().may_be_refused() && written.is_err();
    let is_ended = matches!(written, Err(ChangeError::Gone { .. }));
    let why = match (written, &after) {
        (Err(error), _) => Some(error.to_string()),
        (Ok(()), Err(error)) => Some(format!("written, and cannot be read back: {error}")),
        (Ok(()), Ok(after)) if !machine.is_done(&change, after) => Some(format!(
            "{}: written and not in force: reads {}",
            change.target(),
            change.before(after)
        )),
        _ => None,
    };
    if let Some(why) = why {
        let line = Line::Failed { n, why: why.clone(), after: after.ok() };
        journal.write(machine, &line)?;
        return Ok(Step::Failed { why, is_tolerated: is_kept || is_ended });
    }
    let Ok(after) = after else { return Ok(Step::failed("cannot be read back".into())) };
    let note = change.kind().pending(machine);
    journal.write(machine, &Line::Done { n, after: after.clone(), note: note.clone() })?;
    progress(Progress::Done { n, change: &change, after: &after, note: note.as_deref() });
    Ok(Step::Done(note))
}

fn roll_back(
    machine: &Machine<'_>,
    journal: &mut Journal,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Vec<Undone> {
    undo_all(machine, journal, &mut |undone| progress(Progress::Undone(undone)), &mut None)
}

/// Looks whether the folders of the files can be written, so that an immutable /etc is found before
/// anything is changed.
fn writable(machine: &Machine<'_>, items: &[Item]) -> Result<(), ChangeError> {
    for item in items {
        let kind = item.change.kind();
        let Some(path) = kind.needs_writable() else { continue };
        let Some((folder, _)) = path.rsplit_once('/') else { continue };
        if machine.state(&item.change).is_ok_and(|now| machine.is_done(&item.change, &now)) {
            continue;
        }
        match why_not_writable(machine.root(), if folder.is_empty() { "/" } else { folder }) {
            Ok(None) => {}
            Ok(Some((path, error))) => {
                return Err(ChangeError::refused(machine.root(), &path, error));
            }
            Err(error) => return Err(ChangeError::refused(machine.root(), folder, error)),
        }
    }
    Ok(())
}
