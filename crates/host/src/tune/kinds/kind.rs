//! What every kind of change can do.

pub(crate) use crate::knob::Rank;
pub(crate) use crate::tune::{ChangeError, Machine, State};

use crate::change::Change;
use crate::tune::text;

/// The part of a machine that a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachinePart {
    Kernel,
    Irqs,
    Tasks,
    Units,
    /// Files that survive a reboot.
    Files,
    Accounts,
    /// Packages of the distribution.
    Packages,
    /// The boot loader and its memory.
    Loader,
}

/// How an experiment can switch a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Switching {
    /// To and fro, at any time.
    Toggled,
    /// To and fro, but once: it moves too much along.
    Once,
    /// It acts after the next login, service or boot.
    Later,
}

/// Where a change belongs, and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeProperties {
    /// The part of the machine that it is about.
    pub part: MachinePart,
    /// When it is made, compared with other changes.
    pub rank: Rank,
    /// How an experiment can switch it.
    pub pace: Switching,
    /// Whether it is still there after a reboot.
    pub is_durable: bool,
}

impl ChangeProperties {
    /// A change that a reboot undoes.
    pub(super) const fn lost_at_reboot(part: MachinePart, rank: Rank, pace: Switching) -> Self {
        Self { part, rank, pace, is_durable: false }
    }
}

/// One kind of change, with the fields of one change of it.
pub(crate) trait Kind {
    /// What it is about, in a word that no other change of a plan has: two changes with the same
    /// target contradict each other or are one.
    fn target(&self) -> String;

    /// What it is about, as a plan shows it.
    fn title(&self) -> String {
        self.target()
    }

    /// What it sets, as one line: the target and the wanted value.
    fn line(&self) -> String {
        format!("{} = {}", self.target(), self.wanted())
    }

    /// The wanted value in a few words, without the target.
    fn wanted(&self) -> String;

    /// The wanted state as a plan shows it, in one line.
    fn after(&self) -> String {
        text::shown(&self.wanted())
    }

    /// A state that was there before as a plan shows it, in one line.
    fn before(&self, state: &State) -> String {
        text::state(state)
    }

    /// The lines that go and that come.
    fn lines(&self, before: Option<&State>) -> (Vec<String>, Vec<String>) {
        let old = before.map_or_else(|| "?".into(), |state| self.before(state));
        (vec![old], vec![self.after()])
    }

    /// The names and values in it, which a file of another tool has to be able to hold.
    fn texts(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Looks whether rtproof writes to such a place at all, whoever asks for it: a plan and a
    /// journal are files that others may have made. Else says why not.
    fn may_be_made(&self) -> Result<(), String>;

    /// Where it belongs, and how long it lasts.
    fn nature(&self) -> ChangeProperties;

    /// The file or folder outside of the kernel's file systems that it is about. A change waits
    /// for a newer one of the same file that could not be undone.
    fn file(&self) -> Option<&str> {
        None
    }

    /// A file whose folder has to be writable.
    fn needs_writable(&self) -> Option<&str> {
        self.file()
    }

    /// Whether systemd has to read its files again afterwards.
    fn concerns_units(&self) -> bool {
        false
    }

    /// Whether the kernel may refuse it without that being an error.
    fn may_be_refused(&self) -> bool {
        false
    }

    /// The change with the identity of its task or interrupt filled in, or the packages that it
    /// adds; `None`: as it is.
    fn named(&self, _machine: &Machine<'_>) -> Result<Option<Change>, ChangeError> {
        Ok(None)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError>;

    /// State after it, with coupled values.
    fn state_after(&self, machine: &Machine<'_>, _before: &State) -> Result<State, ChangeError> {
        self.state(machine)
    }

    /// Whether a state is as wanted.
    fn is_done(&self, machine: &Machine<'_>, state: &State) -> bool;

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError>;

    fn pending(&self, _machine: &Machine<'_>) -> Option<String> {
        None
    }

    /// Whose state it is: as before the change, ours, or that of another program.
    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        states.side(|state| self.is_done(machine, state))
    }

    /// Whether a part of it is still ours while another part is not.
    fn is_partly_ours(&self, _three: StateComparison<'_>) -> bool {
        false
    }

    /// Removes what a write that was cut short left.
    fn clean(&self, _machine: &Machine<'_>) -> Result<(), ChangeError> {
        Ok(())
    }

    /// Restores what was there before.
    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError>;
}

// Three-way comparison: state before, state that we applied, current state.

/// Whose value is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// As before the change.
    Before,
    /// As the change left it, or half way there.
    Ours,
    Theirs,
}

impl Owner {
    /// Ours, or that of another program.
    pub(super) const fn ours_if(is_ours: bool) -> Self {
        if is_ours { Self::Ours } else { Self::Theirs }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StateComparison<'s> {
    pub(crate) before: &'s State,
    /// After it; unknown where the process was killed before it was read.
    pub(crate) after: Option<&'s State>,
    pub(crate) current: &'s State,
    /// Whether an undo was begun and, as far as is known, not ended.
    pub(crate) undoing: bool,
}

impl StateComparison<'_> {
    /// Whose state it is, where a state is one value.
    pub(crate) fn side(self, is_done: impl Fn(&State) -> bool) -> Owner {
        if self.before == self.current {
            return Owner::Before;
        }
        let is_ours = match self.after {
            Some(after) => after == self.current,
            None => is_done(self.current),
        };
        Owner::ours_if(is_ours)
    }

    /// Whether a change or its undo may have been cut short: then what is half way is ours.
    pub(super) const fn may_be_halfway(&self) -> bool {
        self.after.is_none() || self.undoing
    }
}
