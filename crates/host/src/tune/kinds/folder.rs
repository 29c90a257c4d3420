//! Folders: a control group, or one of ours under /etc.

use std::io;

use crate::tune::kind::{ChangeError, Kind, Machine, Nature, Pace, Side, State, Three, places};
use crate::tune::kinds::{busy::when_free, file::of_files};

/// Permissions of a new folder.
const NEW_FOLDER: u32 = 0o755;

/// One folder, undone by removing it when it is empty.
pub(super) struct Folder<'a> {
    pub(super) path: &'a str,
}

impl Kind for Folder<'_> {
    fn target(&self) -> String {
        self.path.to_owned()
    }

    fn line(&self) -> String {
        self.target()
    }

    fn wanted(&self) -> String {
        "a folder".into()
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.path]
    }

    fn may_be_made(&self) -> Result<(), String> {
        match self.path.starts_with("/sys/fs/cgroup/") {
            true => places::plain(self.path),
            false => places::file(self.path),
        }
    }

    fn nature(&self) -> Nature {
        // A control group.
        let is_kernels = ["/proc/", "/sys/"].iter().any(|top| self.path.starts_with(top));
        of_files(self.path, if is_kernels { Pace::Toggled } else { Pace::Later })
    }

    fn file(&self) -> Option<&str> {
        Some(self.path)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.look(self.path)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        *state == State::Folder
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.make_folder(self.path)
    }

    fn side(&self, machine: &Machine<'_>, three: Three<'_>) -> Side {
        match (three.before, three.current) {
            (State::Absent, State::Folder) => Side::Ours,
            _ => three.side(|state| self.is_done(machine, state)),
        }
    }

    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        match three.before {
            State::Absent => machine.remove_folder(self.path),
            other => Err(ChangeError::not_expected(other, "the state of this change")),
        }
    }
}

impl Machine<'_> {
    pub(super) fn make_folder(&self, path: &str) -> Result<(), ChangeError> {
        self.gate.make_folder(path, NEW_FOLDER).map_err(|error| self.refusal(path, error))
    }

    /// Removes a folder if it is empty.
    pub(super) fn remove_folder(&self, path: &str) -> Result<(), ChangeError> {
        match when_free(|| self.gate.remove_folder(path)) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err(ChangeError::NotEmpty { path: path.into() })
            }
            removed => removed.map_err(|error| self.refusal(path, error)),
        }
    }

    /// Removes a folder, or leaves it where it is not empty.
    pub(super) fn remove_if_empty(&self, folder: &str) -> Result<(), ChangeError> {
        match self.remove_folder(folder) {
            Err(ChangeError::NotEmpty { .. }) => Ok(()),
            removed => removed,
        }
    }
}

#[cfg(test)]
pub(super) fn example() -> crate::change::Change {
    crate::change::Change::Folder { path: "/etc/rtproof.d".into() }
}
