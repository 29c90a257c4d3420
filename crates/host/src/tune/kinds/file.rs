//! Files and links under /etc, /boot and /run.

use std::io;

use super::kind::{
    ChangeError, ChangeProperties, Kind, Machine, MachinePart, Owner, Rank, State, StateComparison,
    Switching,
};
use super::value::when_free;
use crate::change::{self, Bytes, MODE_MAX};
use crate::tune::text;
use crate::tune::writes::WantedFile;

/// The whole content of one file; `None`: no file.
pub(super) struct FileChange<'a> {
    pub(super) path: &'a str,
    pub(super) content: Option<&'a Bytes>,
    pub(super) mode: Option<u32>,
}

impl Kind for FileChange<'_> {
    fn target(&self) -> String {
        self.path.to_owned()
    }

    fn line(&self) -> String {
        let away = if self.content.is_none() { " away" } else { "" };
        format!("{}{away}", self.path)
    }

    fn wanted(&self) -> String {
        match self.content {
            Some(content) => format!("a file of {} bytes", content.0.len()),
            None => "no file".into(),
        }
    }

    fn after(&self) -> String {
        let content = self.content.map_or_else(|| self.wanted(), text::first_line);
        text::with_mode(content, self.mode)
    }

    fn lines(&self, before: Option<&State>) -> (Vec<String>, Vec<String>) {
        text::file(self.content, before)
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.path]
    }

    fn may_be_made(&self) -> Result<(), String> {
        change::check_file(self.path)?;
        match self.mode.filter(|mode| mode & !MODE_MAX != 0) {
            Some(mode) => Err(format!(
                "{}: mode {mode:04o}; rtproof gives no file the rights of its owner",
                self.path
            )),
            None => Ok(()),
        }
    }

    fn nature(&self) -> ChangeProperties {
        of_files(
            self.path,
            if self.path.starts_with("/run/") { Switching::Once } else { Switching::Later },
        )
    }

    fn file(&self) -> Option<&str> {
        Some(self.path)
    }

    fn concerns_units(&self) -> bool {
        self.path.contains("/systemd/")
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.state_at(self.path)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        match (self.content, state) {
            (None, State::Absent) => true,
            (Some(content), State::File { bytes, mode, .. }) => {
                bytes == content && self.mode.is_none_or(|wanted| wanted == *mode)
            }
            _ => false,
        }
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        machine.write_file(self.path, self.content, self.mode, before)
    }

    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        if is_same(states.before, states.current) {
            return Owner::Before;
        }
        Owner::ours_if(match states.after {
            Some(after) => is_same(after, states.current),
            None => self.is_done(machine, states.current),
        })
    }

    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        machine.clean(self.path)
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        machine.restore_file(self.path, states.before, states.current)
    }
}

/// Of what is made under a path. Only what is no file of the kernel's outlasts a reboot.
pub(super) fn of_files(path: &str, pace: Switching) -> ChangeProperties {
    let is_durable = !["/proc/", "/sys/", "/run/", "/dev/"].iter().any(|top| path.starts_with(top));
    let part = if is_durable { MachinePart::Files } else { MachinePart::Kernel };
    ChangeProperties { part, rank: Rank::Files, pace, is_durable }
}

/// Whether a file has these permissions.
fn has_mode(state: &State, wanted: u32) -> bool {
    matches!(state, State::File { mode, .. } if *mode == wanted)
}

/// Whether two files are the same but for their times and labels, which others may refresh.
fn is_same(a: &State, b: &State) -> bool {
    match (a, b) {
        (
            State::File { bytes: a, mode: ma, uid: ua, gid: ga, .. },
            State::File { bytes: b, mode: mb, uid: ub, gid: gb, .. },
        ) => (a, ma, ua, ga) == (b, mb, ub, gb),
        _ => a == b,
    }
}

impl Machine<'_> {
    /// What is under a path, links not followed.
    pub(crate) fn state_at(&self, path: &str) -> Result<State, ChangeError> {
        self.gate.state_at(path).map_err(|error| self.refusal(path, error))
    }

    /// Removes what a write that was cut short left beside a file.
    pub(super) fn clean(&self, path: &str) -> Result<(), ChangeError> {
        self.gate.clean(path).map_err(|error| self.refusal(path, error))
    }

    pub(crate) fn write_file(
        &self,
        path: &str,
        content: Option<&Bytes>,
        mode: Option<u32>,
        before: &State,
    ) -> Result<(), ChangeError> {
        let Some(content) = content else { return self.remove_entry(path, before) };
        let mut wanted = WantedFile {
            bytes: &content.0,
            mode: mode.unwrap_or(text::USUAL_MODE),
            mode_may_differ: mode.is_none(),
            owner: None,
            modified_ns: None,
            attributes: &[],
            sealed: false,
        };
        match before {
            State::Absent | State::Link { .. } => {}
            State::File { mode: old, uid, gid, attributes, .. } => {
                wanted.mode = mode.unwrap_or(*old);
                wanted.owner = Some((*uid, *gid));
                wanted.attributes = attributes;
            }
            other => return Err(self.in_the_way(path, other)),
        }
        self.note_unit_file(path);
        self.gate.file(path, &wanted).map_err(|error| self.refusal(path, error))
    }

    fn remove_entry(&self, path: &str, there: &State) -> Result<(), ChangeError> {
        self.note_unit_file(path);
        match there {
            State::Absent => Ok(()),
            State::File { .. } | State::Link { .. } => {
                self.gate.remove(path).map_err(|error| self.refusal(path, error))
            }
            other => Err(self.in_the_way(path, other)),
        }
    }

    pub(super) fn in_the_way(&self, path: &str, there: &State) -> ChangeError {
        let found = if *there == State::Folder { "a folder" } else { "something else" };
        ChangeError::Unexpected {
            path: path.into(),
            found: found.into(),
            expected: "a file".into(),
        }
    }

    /// Puts a file, link or nothing back.
    pub(super) fn restore_file(
        &self,
        path: &str,
        before: &State,
        current: &State,
    ) -> Result<(), ChangeError> {
        let put = match before {
            State::Absent => return self.remove_entry(path, current),
            State::Link { to } => self.gate.link(path, to),
            // Root's own journal says what was there; what others wrote gives no rights.
            State::File { mode, .. }
                if self.obeys_others && mode & !MODE_MAX != 0 && !has_mode(current, *mode) =>
            {
                return Err(ChangeError::Elsewhere {
                    why: format!("{path}: mode {mode:04o} from a journal of others"),
                });
            }
            State::File { bytes, mode, uid, gid, modified_ns, attributes } => self.gate.file(
                path,
                &WantedFile {
                    bytes: &bytes.0,
                    mode: *mode,
                    mode_may_differ: false,
                    owner: Some((*uid, *gid)),
                    modified_ns: Some(*modified_ns),
                    attributes,
                    sealed: true,
                },
            ),
            other => return Err(self.in_the_way(path, other)),
        };
        self.note_unit_file(path);
        put.map_err(|error| self.refusal(path, error))
    }

    /// systemd reads its files again on request only.
    fn note_unit_file(&self, path: &str) {
        if ["/etc/systemd/", "/run/systemd/"].iter().any(|top| path.starts_with(top)) {
            self.units_stale.set(true);
        }
    }
}

// Folders: a control group, or one of ours under /etc.

/// Permissions of a new folder.
const NEW_FOLDER: u32 = 0o755;

/// One folder, undone by removing it when it is empty.
pub(super) struct FolderChange<'a> {
    pub(super) path: &'a str,
}

impl Kind for FolderChange<'_> {
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
            true => change::check_plain(self.path),
            false => change::check_file(self.path),
        }
    }

    fn nature(&self) -> ChangeProperties {
        // A control group.
        let is_kernels = ["/proc/", "/sys/"].iter().any(|top| self.path.starts_with(top));
        of_files(self.path, if is_kernels { Switching::Toggled } else { Switching::Later })
    }

    fn file(&self) -> Option<&str> {
        Some(self.path)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.state_at(self.path)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        *state == State::Folder
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.make_folder(self.path)
    }

    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        match (states.before, states.current) {
            (State::Absent, State::Folder) => Owner::Ours,
            _ => states.side(|state| self.is_done(machine, state)),
        }
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        match states.before {
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
    fn remove_folder(&self, path: &str) -> Result<(), ChangeError> {
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
pub(super) fn example() -> change::Change {
    change::Change::Folder { path: "/etc/rtproof.d".into() }
}
