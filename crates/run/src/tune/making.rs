//! Changes while they are made and undone, and what the journal says of each at the end.

use anyhow::Context as _;
use rtproof_host::tune::{
    self, Applied, ApplyError, Change, Entry, Gone, Item, Journal, Machine, Options, Outcome,
    Stage, Summary, UndoError, Undone as UndoneChange, confirmation,
};
use rtproof_judge::units;
use rtproof_results::{
    Ended,
    tune::outcome::{JournalUndone, Made, MadeOutcome, TakenBack, TakenBackOutcome},
};

use super::rollback;

/// Changes while they are made or undone.
pub trait Progress {
    /// So many changes follow.
    fn begin(&mut self, changes: usize);

    fn change(&mut self, change: &Change);

    /// All are made or undone.
    fn end(&mut self);
}

#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: usize) {}

    fn change(&mut self, _: &Change) {}

    fn end(&mut self) {}
}

/// Applies items and reports progress.
///
/// # Errors
/// Those of `tune::apply`.
pub fn apply(
    machine: &Machine<'_>,
    journal: &mut Journal,
    items: &[Item],
    options: Options,
    progress: &mut dyn Progress,
) -> Result<Applied, ApplyError> {
    progress.begin(items.len());
    let made = tune::apply(machine, journal, items, options, &mut |step| match step {
        tune::Progress::WasSo { change, .. } | tune::Progress::Begin { change, .. } => {
            progress.change(change);
        }
        tune::Progress::Done { .. } | tune::Progress::Failed { .. } | tune::Progress::Undone(_) => {
        }
    });
    progress.end();
    made
}

/// `3 changes`.
pub fn count(changes: usize) -> String {
    units::count(changes, "change")
}

/// Number of a journal of this machine: that of its file. A copy somewhere else has none, whatever
/// it is called: what waits for the confirmation of another journal is not its to end.
pub fn number(journal: &Journal) -> u32 {
    let name = journal.path().strip_prefix(tune::FOLDER).and_then(|rest| rest.strip_prefix('/'));
    name.and_then(|name| name.split('.').next()?.parse().ok()).unwrap_or(0)
}

/// What the journal says of each change that was planned, and of those that failed which the engine
/// tolerated.
pub fn outcomes(planned: Vec<Made>, entries: &[Entry], applied: Option<&Applied>) -> Vec<Made> {
    let left_out = applied.map_or(&[][..], |applied| &applied.left_out);
    let mut all = planned;
    for (made, entry) in all.iter_mut().zip(entries) {
        if let Some(found) = &entry.before {
            made.old = entry.item.change.before(found);
        }
        made.why.clone_from(&entry.note);
        made.outcome = match (&entry.stage, &entry.undone) {
            (Stage::WasSo, _) => MadeOutcome::AsWanted,
            (Stage::Failed(why) | Stage::Refused(why), _) => {
                made.why = Some(why.clone());
                match left_out.iter().any(|(change, _)| *change == entry.item.change) {
                    true => MadeOutcome::LeftOut,
                    false => MadeOutcome::Failed,
                }
            }
            (Stage::Begun | Stage::Done, None) => MadeOutcome::Applied,
            (Stage::Begun | Stage::Done, Some(outcome)) => {
                made.why = why(outcome, &entry.item.change);
                MadeOutcome::RolledBack
            }
        };
    }
    all
}

/// How an apply ended that was not rolled back. What was left out is reported, and is no failure.
pub fn ended(applied: &Applied) -> Ended {
    if applied.failed.is_empty() { Ended::Done } else { Ended::MachineFailed }
}

fn why(outcome: &Outcome, change: &Change) -> Option<String> {
    match outcome {
        Outcome::Failed { why } => Some(why.clone()),
        Outcome::LeftAlone { found } => Some(format!("left alone: found {}", change.before(found))),
        Outcome::Restored | Outcome::WasBefore | Outcome::Gone { .. } => None,
    }
}

/// The outcome of undoing one change.
pub fn taken_back(entries: &[Entry], undone: &UndoneChange) -> TakenBack {
    let change = undone.change.clone();
    let entry = entries.iter().find(|entry| entry.item.change == change);
    let ours = change.after();
    let old = entry.and_then(|entry| entry.before.as_ref());
    let old = old.map_or_else(|| "?".into(), |state| change.before(state));
    let (outcome, now, why) = match &undone.outcome {
        Outcome::Restored => (TakenBackOutcome::Restored, old, None),
        Outcome::WasBefore => (TakenBackOutcome::WasBefore, old, None),
        Outcome::Gone { why } => {
            (TakenBackOutcome::Gone, String::new(), Some(gone(*why).to_owned()))
        }
        Outcome::LeftAlone { found } => (TakenBackOutcome::LeftAlone, change.before(found), None),
        Outcome::Failed { why } => (TakenBackOutcome::Failed, String::new(), Some(why.clone())),
    };
    TakenBack { change, ours, now, outcome, why }
}

/// Refuses to take a journal back before a newer one that has changed the same: it would find
/// another value and leave it, and the newer one would then put this one's back for good.
///
/// # Errors
/// The newer journal, and what both have changed; the journals cannot be listed.
pub fn refuse_older(machine: &Machine<'_>, journal: &Journal) -> anyhow::Result<()> {
    let number = number(journal);
    if number == 0 || journal.is_closed() {
        return Ok(());
    }
    let targets = |journal: &Journal| -> Vec<String> {
        let open = journal.entries().iter().filter(|entry| !entry.is_settled());
        open.map(|entry| entry.item.change.target()).collect()
    };
    let ours = targets(journal);
    for newer in Journal::list(machine)? {
        if newer.number <= number || newer.closed || newer.problem.is_some() {
            continue;
        }
        let theirs = targets(&Journal::open_number(machine, newer.number)?);
        if let Some(target) = ours.iter().find(|target| theirs.contains(target)) {
            let newer = newer.number;
            anyhow::bail!(
                "journal {newer} has changed {target} after journal {number}; nothing was written; \
                 take the newer one back first: rtproof tune undo --journal {newer}, or --all"
            );
        }
    }
    Ok(())
}

/// Takes a journal back: everything that is still as it was applied, newest first.
///
/// # Errors
/// Nothing could be begun, or the journal not be written to its end.
pub fn take_back(
    machine: &Machine<'_>,
    journal: &mut Journal,
    progress: &mut dyn Progress,
) -> anyhow::Result<JournalUndone> {
    progress.begin(journal.entries().len());
    let undone = tune::undo(machine, journal, &mut |it| progress.change(&it.change));
    progress.end();
    let (undone, unrecorded) = match undone {
        Err(UndoError::Unrecorded { undone, source, .. }) => (undone, Some(source.to_string())),
        undone => (undone?, None),
    };
    let entries = journal.entries();
    let number = number(journal);
    let mut changes: Vec<TakenBack> = undone.iter().map(|it| taken_back(entries, it)).collect();
    changes.extend(journal.unnoted(machine).into_iter().map(unnoted));
    if journal.is_closed() && number > 0 {
        confirmation::clear(machine, number)?;
        rollback::dismiss(machine.root(), number);
    }
    Ok(JournalUndone {
        journal: number,
        path: journal.path().to_owned(),
        title: journal.header().what.clone(),
        changes,
        unrecorded,
    })
}

/// Removes what marks a closed journal as that of a program: power that fails, or a kill of run and
/// guard, between the two steps of an undo leaves the mark.
///
/// # Errors
/// The journals cannot be listed, or a mark cannot be removed.
pub fn sweep_marks(machine: &Machine<'_>) -> anyhow::Result<()> {
    let root = machine.root();
    for Summary { number, .. } in Journal::list(machine)?.into_iter().filter(|it| it.closed) {
        if confirmation::is_of_program(root, number) && !confirmation::is_guarded(root, number) {
            confirmation::clear(machine, number)
                .with_context(|| format!("the mark of journal {number}"))?;
        }
    }
    Ok(())
}

/// A change of which the journal says nothing.
fn unnoted(change: Change) -> TakenBack {
    let (ours, why) = (change.after(), Some(tune::UNNOTED.to_owned()));
    TakenBack { change, now: ours.clone(), ours, outcome: TakenBackOutcome::Unnoted, why }
}

/// How an undo ended: 1: something could not be put back; 2: something else has changed
/// something since, and it was left alone.
pub fn undo_ended(undone: &[JournalUndone]) -> Ended {
    let any = |outcome| {
        let all = undone.iter().flat_map(|journal| &journal.changes);
        all.into_iter().any(|it| it.outcome == outcome)
    };
    match () {
        () if any(TakenBackOutcome::Failed) => Ended::ToolFailed,
        () if any(TakenBackOutcome::LeftAlone) || any(TakenBackOutcome::Unnoted) => {
            Ended::MachineFailed
        }
        () => Ended::Done,
    }
}

/// What an undo left, as a phrase: how it ended.
pub fn undo_phrase(undone: &[TakenBack]) -> String {
    let is_left = |it: &&TakenBack| {
        use TakenBackOutcome::{Failed, LeftAlone, Unnoted};
        matches!(it.outcome, Failed | LeftAlone | Unnoted)
    };
    let left: Vec<String> = undone.iter().filter(is_left).map(|it| it.change.target()).collect();
    match left.is_empty() {
        true => "everything was taken back".into(),
        false => {
            format!("taken back, except for {}; rtproof tune status tells more", left.join(", "))
        }
    }
}

const fn gone(why: Gone) -> &'static str {
    match why {
        Gone::Reboot => "with the reboot",
        Gone::Ended => "what it was about has ended",
        Gone::Removed => "the kernel has no such file any more",
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they read")]
mod tests {
    use std::fs;

    use rtproof_host::{
        CpuList, Root,
        tune::{Compare, IrqName, Item, Machine, Options, apply},
    };
    use rtproof_measure::LiveTasks;

    use super::*;

    fn value(path: &str) -> Change {
        let (path, value) = (path.into(), "2".into());
        Change::Value { path, value, compare: Compare::Text, couples: Vec::new() }
    }

    #[test]
    fn what_is_left_out_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/sys")).unwrap();
        fs::create_dir_all(dir.path().join("var/lib")).unwrap();
        fs::write(dir.path().join("proc/sys/x"), "1\n").unwrap();
        let root = Root::dir(dir.path()).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let (hwirq, chip) = (String::new(), String::new());
        let irq = IrqName { number: 9, actions: "eth9".into(), hwirq, chip };
        let gone = Change::Irq { irq, cpus: CpuList::new([0]) };
        let run = |changes: &[Change]| {
            let item = |change: &Change| Item { change: change.clone(), checks: Vec::new() };
            let items: Vec<Item> = changes.iter().map(item).collect();
            let planned =
                changes.iter().map(|change| Made::of(change.clone(), Vec::new(), None)).collect();
            let mut journal = Journal::begin(&machine, String::new(), &[]).unwrap();
            let options = Options { keep_going: true };
            let applied = apply(&machine, &mut journal, &items, options, &mut |_| {}).unwrap();
            let made = outcomes(planned, journal.entries(), Some(&applied));
            (made.iter().map(|it| it.outcome).collect::<Vec<_>>(), ended(&applied))
        };
        assert_eq!(
            run(&[gone.clone(), value("/proc/sys/x")]),
            (vec![MadeOutcome::LeftOut, MadeOutcome::Applied], Ended::Done)
        );
        // A name that only says so is none.
        assert_eq!(
            run(&[gone, value("/proc/sys/x: gone")]),
            (vec![MadeOutcome::LeftOut, MadeOutcome::Failed], Ended::MachineFailed)
        );
    }
}
