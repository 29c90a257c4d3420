//! Changes while they are made and taken back: progress on stderr, and what the journal says of
//! each at the end.

use std::io::{IsTerminal, Write};

use rtproof_host::tune::{
    Change, Entry, Gone, Journal, Outcome, Progress, Stage, Undone as UndoneChange,
};
use rtproof_judge::units;

use super::outcome::{Applied, Made, MadeOutcome, TakenBack, TakenBackOutcome};
use crate::{
    exit,
    render::text::{after, before, target},
};

/// Progress: one line that is written over on a terminal, nothing elsewhere.
#[derive(Debug)]
pub struct Making {
    of: usize,
    made: usize,
    is_shown: bool,
}

impl Making {
    /// Of so many changes.
    #[must_use]
    pub fn new(of: usize) -> Self {
        Self { of, made: 0, is_shown: std::io::stderr().is_terminal() }
    }

    /// What happens while changes are applied.
    pub fn apply(&mut self, step: &Progress<'_>) {
        match step {
            Progress::WasSo { change, .. } | Progress::Begin { change, .. } => self.tell(change),
            Progress::Done { .. } | Progress::Failed { .. } | Progress::Undone(_) => {}
        }
    }

    /// One more.
    pub fn tell(&mut self, change: &Change) {
        self.made += 1;
        if self.is_shown {
            let (made, of) = (self.made, self.of);
            let target: String = target(change).chars().take(60).collect();
            // Progress that nobody sees is no loss.
            let _ = write!(std::io::stderr(), "\r\x1b[K{made}/{of} {target}");
        }
    }

    /// Wipes the line.
    pub fn end(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// `3 changes`.
#[must_use]
pub fn count(changes: usize) -> String {
    units::count(changes, "change")
}

/// Number of a journal of this machine: that of its file.
#[must_use]
pub fn number(journal: &Journal) -> u32 {
    let name = journal.path().rsplit('/').next().unwrap_or_default();
    name.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// What the journal says of each change that was planned.
#[must_use]
pub fn outcomes(planned: Vec<Made>, entries: &[Entry]) -> Vec<Made> {
    let mut all = planned;
    for (made, entry) in all.iter_mut().zip(entries) {
        if let Some(found) = &entry.before {
            made.old = before(&entry.item.change, found);
        }
        made.why.clone_from(&entry.note);
        made.outcome = match (&entry.stage, &entry.undone) {
            (Stage::WasSo, _) => MadeOutcome::AsWanted,
            (Stage::Failed(why) | Stage::Refused(why), _) => {
                made.why = Some(why.clone());
                MadeOutcome::Failed
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

/// Exit code of an apply that was not rolled back. An interrupt that the kernel keeps where it is,
/// and a task that has ended, are told, and are no failure.
#[must_use]
pub fn code(applied: &Applied) -> u8 {
    let counts = |it: &Made| {
        let is_gone = it.why.as_ref().is_some_and(|why| why.ends_with(": gone"));
        let is_tolerated = is_gone || matches!(it.change, Change::Irq { .. });
        it.outcome == MadeOutcome::Failed && !is_tolerated
    };
    let failed = applied.changes.iter().any(counts);
    if failed { exit::REFUSED } else { exit::ACCEPTED }
}

fn why(outcome: &Outcome, change: &Change) -> Option<String> {
    match outcome {
        Outcome::Failed { why } => Some(why.clone()),
        Outcome::LeftAlone { found } => {
            Some(format!("left alone: found {}", before(change, found)))
        }
        Outcome::Restored | Outcome::WasBefore | Outcome::Gone { .. } => None,
    }
}

/// What became of one change that was to be taken back.
#[must_use]
pub fn taken_back(entries: &[Entry], undone: &UndoneChange) -> TakenBack {
    let change = undone.change.clone();
    let entry = entries.iter().find(|entry| entry.item.change == change);
    let ours = after(&change);
    let old = entry.and_then(|entry| entry.before.as_ref());
    let old = old.map_or_else(|| "?".into(), |state| before(&change, state));
    let (outcome, now, why) = match &undone.outcome {
        Outcome::Restored => (TakenBackOutcome::Restored, old, None),
        Outcome::WasBefore => (TakenBackOutcome::WasBefore, old, None),
        Outcome::Gone { why } => {
            (TakenBackOutcome::Gone, String::new(), Some(gone(*why).to_owned()))
        }
        Outcome::LeftAlone { found } => (TakenBackOutcome::LeftAlone, before(&change, found), None),
        Outcome::Failed { why } => (TakenBackOutcome::Failed, String::new(), Some(why.clone())),
    };
    TakenBack { change, ours, now, outcome, why }
}

const fn gone(why: Gone) -> &'static str {
    match why {
        Gone::Reboot => "with the reboot",
        Gone::Ended => "what it was about has ended",
        Gone::Removed => "the kernel has no such file any more",
    }
}
