//! One variable of GRUB's environment block, the others untouched.

use crate::grubenv;
use crate::tune::kind::{
    ChangeError, Kind, Machine, Nature, Pace, Part, Rank, Side, State, Three, places, text,
};

pub(super) struct GrubEnv<'a> {
    pub(super) path: &'a str,
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

impl Kind for GrubEnv<'_> {
    fn target(&self) -> String {
        format!("{} {}", self.path, self.key)
    }

    fn title(&self) -> String {
        self.path.to_owned()
    }

    fn wanted(&self) -> String {
        self.value.to_owned()
    }

    fn after(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    fn before(&self, state: &State) -> String {
        let State::File { bytes, .. } = state else { return text::state(state) };
        let is_it = |line: &&str| line.split_once('=').is_some_and(|(name, _)| name == self.key);
        let text = bytes.text();
        let line = text.lines().find(is_it);
        line.map_or_else(|| format!("{} not set", self.key), text::cut)
    }

    fn may_be_made(&self) -> Result<(), String> {
        places::file(self.path)
    }

    fn nature(&self) -> Nature {
        Nature { part: Part::Loader, rank: Rank::BootLoader, pace: Pace::Later, is_durable: true }
    }

    fn file(&self) -> Option<&str> {
        Some(self.path)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let state = machine.look(&machine.grub_path(self.path)?)?;
        if let State::File { bytes, .. } = &state {
            self.block(grubenv::get(bytes, self.key))?;
        }
        Ok(state)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        self.value_in(state).as_deref() == Some(self.value.as_bytes())
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        let real = machine.grub_path(self.path)?;
        let block = match before {
            State::File { bytes, .. } => bytes.clone(),
            State::Absent => grubenv::empty(),
            other => return Err(machine.in_the_way(self.path, other)),
        };
        let new = self.block(grubenv::with(&block, self.key, Some(self.value.as_bytes())))?;
        machine.write_file(&real, Some(&new), None, before)
    }

    fn side(&self, _: &Machine<'_>, three: Three<'_>) -> Side {
        let (before, current) = (three.before, three.current);
        let (was, is) = (self.value_in(before), self.value_in(current));
        match is {
            _ if *current == State::Absent && *before != State::Absent => Side::Theirs,
            _ if is == was && !(*before == State::Absent && current != before) => Side::Before,
            Some(is) if is == self.value.as_bytes() => Side::Ours,
            // GRUB clears what it boots once.
            Some(is) if is.is_empty() && self.key == "next_entry" => Side::Ours,
            None if self.key == "next_entry" => Side::Ours,
            _ => Side::Theirs,
        }
    }

    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        machine.clean(&machine.grub_path(self.path)?)
    }

    /// Restores the whole old block where nothing else has changed, else the variable alone.
    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        let Three { before, current, .. } = three;
        let real = machine.grub_path(self.path)?;
        let State::File { bytes: now, .. } = current else {
            return machine.restore_file(&real, before, current);
        };
        let old = match before {
            State::File { bytes, .. } => bytes.clone(),
            _ => grubenv::empty(),
        };
        if grubenv::is_same_but_for(&old, now, self.key) {
            return machine.restore_file(&real, before, current);
        }
        let was = self.block(grubenv::get(&old, self.key))?;
        let new = self.block(grubenv::with(now, self.key, was.as_deref()))?;
        machine.write_file(&real, Some(&new), None, current)
    }
}

impl GrubEnv<'_> {
    fn value_in(&self, state: &State) -> Option<Vec<u8>> {
        let State::File { bytes, .. } = state else { return None };
        grubenv::get(bytes, self.key).ok().flatten()
    }

    fn block<T>(&self, made: Result<T, grubenv::BlockError>) -> Result<T, ChangeError> {
        made.map_err(|error| ChangeError::Refused {
            path: self.path.into(),
            why: error.to_string(),
        })
    }
}

impl Machine<'_> {
    /// The block, wherever a link to it leads: distributions link it into the EFI partition.
    pub(super) fn grub_path(&self, path: &str) -> Result<String, ChangeError> {
        self.gate.followed(path).map_err(|error| self.refusal(path, error))
    }
}
