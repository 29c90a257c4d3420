//! What every kind of change can do. One file for each kind, below [`super::kinds`].

use super::{error::ChangeError, machine::Machine, state::State, three::Side, three::Three};
use crate::{Root, change::Change};

/// One kind of change, with the fields of one change of it.
pub(super) trait Kind {
    /// What it is about, in a word that no other change of a plan has: two changes with the same
    /// target contradict each other or are one.
    fn target(&self) -> String;

    /// What it sets, as one line: the target and the wanted value.
    fn line(&self) -> String;

    /// Whether it is still there after a reboot.
    fn is_durable(&self) -> bool {
        false
    }

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

    /// The change with the identity of its task or interrupt filled in; `None`: as it is.
    fn named(&self, _root: &Root) -> Result<Option<Change>, ChangeError> {
        Ok(None)
    }

    /// What is there now.
    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError>;

    /// What it left, with what it moved along.
    fn state_after(&self, machine: &Machine<'_>, _before: &State) -> Result<State, ChangeError> {
        self.state(machine)
    }

    /// Whether a state is as wanted.
    fn is_done(&self, machine: &Machine<'_>, state: &State) -> bool;

    /// Makes the change.
    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError>;

    /// What is not in force yet.
    fn pending(&self, _machine: &Machine<'_>) -> Option<String> {
        None
    }

    /// Whose state it is: as before the change, ours, or that of another program.
    fn side(&self, machine: &Machine<'_>, three: Three<'_>) -> Side {
        three.side(|state| self.is_done(machine, state))
    }

    /// Whether a part of it is still ours while another part is not.
    fn is_partly_ours(&self, _three: Three<'_>) -> bool {
        false
    }

    /// Removes what a write that was cut short left.
    fn clean(&self, _machine: &Machine<'_>) -> Result<(), ChangeError> {
        Ok(())
    }

    /// Restores what was there before.
    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError>;
}
