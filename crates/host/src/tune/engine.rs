//! The engine: applies changes, undoes them, and says where each stands.

use std::io;

use super::journal::{Journal, JournalError};
use super::script::{Gone, Item, JournalEntry, JournalLine, Outcome, Stage};
use super::text::is_partition;
use super::writes::why_not_writable;
use super::{ChangeError, Machine, State};
use crate::change::Change;
use crate::tune::kinds::kind::{Owner, StateComparison};

// Making changes: each is written down with what was there, made, and read back.

/// How changes are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Whether a change that fails is left out instead of taking all back. Left out either way is
    /// a task or an interrupt that has ended since it was named, and an interrupt that the kernel
    /// keeps where it is: that cannot be known before (managed interrupts, kernels before 6.10).
    pub keep_going: bool,
}

/// What happens while changes are applied.
#[derive(Clone, Copy, Debug)]
pub enum ApplyEvent<'a> {
    /// The change was already in force.
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
    Undone(&'a UndoneChange),
}

/// Outcome of applying a list of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplySummary {
    /// Changes that were made.
    pub done: usize,
    /// Changes that were active already.
    pub was_so: usize,
    /// Changes that failed, and why: with [`ApplyOptions::keep_going`] alone.
    pub failed: Vec<(Change, String)>,
    /// Changes that could not be made and are no failure, and why: see
    /// [`ApplyOptions::keep_going`].
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
        undone: Vec<UndoneChange>,
    },
    /// The journal could not be written; what was changed was undone.
    #[error("{path}: {source}; {}", rolled_back(undone))]
    Journal {
        path: String,
        source: io::Error,
        /// What became of the changes made so far.
        undone: Vec<UndoneChange>,
    },
}

/// How a roll-back ended, as a phrase.
fn rolled_back(undone: &[UndoneChange]) -> String {
    let is_left = |undone: &&UndoneChange| {
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
    options: ApplyOptions,
    progress: &mut dyn FnMut(ApplyEvent<'_>),
) -> Result<ApplySummary, ApplyError> {
    writable(machine, items).map_err(ApplyError::NotWritable)?;
    let mut applied = ApplySummary::default();
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
                progress(ApplyEvent::Failed { n, change: &change, why: &why });
                if !options.keep_going && !is_tolerated {
                    let undone = roll_back(machine, journal, progress);
                    return Err(ApplyError::Failed { change: Box::new(change), why, undone });
                }
                if journal.entries().get(n).is_some_and(|entry| !entry.is_settled()) {
                    let undone = undo_one(machine, journal, n, &mut None);
                    progress(ApplyEvent::Undone(&undone));
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
    if let Err(source) = journal.confirm_on_disk(machine) {
        let path = journal.path().to_owned();
        let undone = roll_back(machine, journal, progress);
        return Err(ApplyError::Journal { path, source, undone });
    }
    Ok(applied)
}

/// Makes one change. An error is the journal's.
fn make(
    machine: &Machine<'_>,
    journal: &mut Journal,
    item: &Item,
    n: usize,
    progress: &mut dyn FnMut(ApplyEvent<'_>),
) -> io::Result<Step> {
    let named = machine.named(item.change.clone());
    let looked = named.and_then(|change| Ok((machine.state(&change)?, change)));
    let (before, change) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            let is_tolerated = matches!(error, ChangeError::Gone { .. });
            let why = error.to_string();
            let line = JournalLine::Refused { n, item: item.clone(), why: why.clone() };
            journal.write(machine, &line)?;
            return Ok(Step::Failed { why, is_tolerated });
        }
    };
    let item = Item { change, checks: item.checks.clone() };
    let change = item.change.clone();
    if machine.is_done(&change, &before) {
        journal.write(machine, &JournalLine::Same { n, item, state: before })?;
        progress(ApplyEvent::WasSo { n, change: &change });
        return Ok(Step::WasSo);
    }
    progress(ApplyEvent::Begin { n, change: &change, before: &before });
    journal.write(machine, &JournalLine::Begin { n, item, before: before.clone() })?;
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
        let line = JournalLine::Failed { n, why: why.clone(), after: after.ok() };
        journal.write(machine, &line)?;
        return Ok(Step::Failed { why, is_tolerated: is_kept || is_ended });
    }
    let Ok(after) = after else { return Ok(Step::failed("cannot be read back".into())) };
    let note = change.kind().pending(machine);
    journal.write(machine, &JournalLine::Done { n, after: after.clone(), note: note.clone() })?;
    progress(ApplyEvent::Done { n, change: &change, after: &after, note: note.as_deref() });
    Ok(Step::Done(note))
}

fn roll_back(
    machine: &Machine<'_>,
    journal: &mut Journal,
    progress: &mut dyn FnMut(ApplyEvent<'_>),
) -> Vec<UndoneChange> {
    undo_all(machine, journal, &mut |undone| progress(ApplyEvent::Undone(undone)), &mut None)
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

// Status of changes in force: nothing is written.

/// The status of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeStanding {
    pub change: Change,
    /// Checks that request it.
    pub checks: Vec<String>,
    pub standing: Standing,
}

/// The status of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As it was applied.
    AsApplied,
    /// Another program has changed it since.
    Changed {
        found: State,
        /// Whether that is what was there before it was applied.
        is_old: bool,
    },
    /// Undone, lost with a reboot, or what it was about has ended.
    Gone,
    /// It could not be made, and nothing of it is left.
    NotMade { why: String },
    /// It cannot be read; or it could not be made, nor the part that was made be undone.
    Unreadable { why: String },
}

/// Of a change that was planned, is there, and is not in the journal.
pub const UNNOTED: &str = "as planned, and the journal does not say what was there \
                           before: it was cut short, or another program set it";

/// The status of each change of a journal, in the order in which they were made. Those that were
/// found done already are among them.
pub fn status(machine: &Machine<'_>, journal: &Journal) -> Vec<ChangeStanding> {
    let is_earlier_boot = journal.is_of_earlier_boot(machine);
    let of_entry = |entry: &JournalEntry| ChangeStanding {
        change: entry.item.change.clone(),
        checks: entry.item.checks.clone(),
        standing: standing_of(machine, entry, is_earlier_boot),
    };
    let unnoted = |change| ChangeStanding {
        change,
        checks: Vec::new(),
        standing: Standing::Unreadable { why: UNNOTED.into() },
    };
    let unnoted = journal.planned_only(machine).into_iter().map(unnoted);
    journal.entries().iter().map(of_entry).chain(unnoted).collect()
}

fn standing_of(machine: &Machine<'_>, entry: &JournalEntry, is_earlier_boot: bool) -> Standing {
    let change = &entry.item.change;
    let failed = match &entry.stage {
        Stage::Refused(why) | Stage::Failed(why) => Some(why.clone()),
        Stage::WasSo | Stage::Begun | Stage::Done => None,
    };
    let is_undone = entry.undone.is_some() && entry.is_settled();
    match failed {
        Some(why) if entry.is_settled() => return Standing::NotMade { why },
        _ if is_undone || (is_earlier_boot && !change.nature().is_durable) => {
            return Standing::Gone;
        }
        Some(why) => return Standing::Unreadable { why },
        None => {}
    }
    let found = match machine.state(change) {
        Ok(found) => found,
        Err(ChangeError::Gone { .. } | ChangeError::Missing { .. }) => return Standing::Gone,
        Err(error) => return Standing::Unreadable { why: error.to_string() },
    };
    let is_ours = entry.before.as_ref().is_some_and(|before| {
        let after = entry.after.as_ref();
        let states = StateComparison { before, after, current: &found, undoing: entry.undoing };
        entry.stage != Stage::WasSo && machine.side(change, states) == Owner::Ours
    });
    // A partition that has turned invalid is still ours, and isolates nothing.
    let holds = match change {
        Change::Value { path, .. } if is_partition(path) => machine.is_done(change, &found),
        _ => is_ours || machine.is_done(change, &found),
    };
    let is_old = entry.before.as_ref() == Some(&found);
    if holds { Standing::AsApplied } else { Standing::Changed { found, is_old } }
}

// Undoing changes: newest first, and only what is still as we left it.

/// Undo of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoneChange {
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
        /// Outcome of each change.
        undone: Vec<UndoneChange>,
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
    progress: &mut dyn FnMut(&UndoneChange),
) -> Result<Vec<UndoneChange>, UndoError> {
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
fn undo_all(
    machine: &Machine<'_>,
    journal: &mut Journal,
    progress: &mut dyn FnMut(&UndoneChange),
    unrecorded: &mut Option<io::Error>,
) -> Vec<UndoneChange> {
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
                    UndoneChange { change, outcome: Outcome::Failed { why } }
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
        let undone = UndoneChange { change, outcome: Outcome::Failed { why: error.to_string() } };
        progress(&undone);
        all.push(undone);
    }
    if unrecorded.is_none() && !journal.is_closed() {
        let is_left = |entry: &JournalEntry| !entry.is_settled();
        if !journal.entries().iter().any(is_left) && journal.planned_only(machine).is_empty() {
            *unrecorded = journal.write(machine, &JournalLine::Closed).err();
        }
    }
    if journal.is_closed() {
        // One that stays is no lie: its journal says that nothing is in force.
        let _ = journal.unmark(machine);
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

fn undo_one(
    machine: &Machine<'_>,
    journal: &mut Journal,
    n: usize,
    unrecorded: &mut Option<io::Error>,
) -> UndoneChange {
    let entry = journal.entries()[n].clone();
    let is_earlier_boot = journal.is_of_earlier_boot(machine);
    let mut begun = || {
        if unrecorded.is_none()
            && let Err(error) = journal.write(machine, &JournalLine::Undoing { n })
        {
            unrecorded.get_or_insert(error);
        }
    };
    let outcome = outcome(machine, &entry, is_earlier_boot, &mut begun);
    let line = JournalLine::Undone { n, outcome: outcome.clone() };
    if unrecorded.is_none()
        && let Err(error) = journal.write(machine, &line)
    {
        *unrecorded = Some(error);
    }
    UndoneChange { change: entry.item.change, outcome }
}

fn outcome(
    machine: &Machine<'_>,
    entry: &JournalEntry,
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
    let states = StateComparison {
        before,
        after: entry.after.as_ref(),
        current: &current,
        undoing: entry.undoing,
    };
    let side = machine.side(change, states);
    match side {
        Owner::Before => return Outcome::WasBefore,
        Owner::Theirs if !change.kind().is_partly_ours(states) => {
            return Outcome::LeftAlone { found: current };
        }
        Owner::Ours | Owner::Theirs => {}
    }
    begun();
    match machine.restore(change, states) {
        Ok(()) if side == Owner::Theirs => {
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
            let states = StateComparison { before, after: None, current: &now, undoing: false };
            match machine.side(change, states) {
                Owner::Before => Outcome::Restored,
                _ => Outcome::Failed {
                    why: format!("{}: reads {}", change.target(), change.before(&now)),
                },
            }
        }
        Err(error) => without_state(&error),
    }
}

/// Outcome if a state cannot be read.
fn without_state(error: &ChangeError) -> Outcome {
    match error {
        ChangeError::Gone { .. } => Outcome::Gone { why: Gone::Ended },
        ChangeError::Missing { .. } => Outcome::Gone { why: Gone::Removed },
        other => Outcome::Failed { why: other.to_string() },
    }
}
