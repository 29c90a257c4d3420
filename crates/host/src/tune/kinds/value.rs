//! Values of the running kernel: one file, and the files whose values move with it.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use super::kind::{
    ChangeError, ChangeProperties, Kind, Machine, MachinePart, Owner, Rank, State, StateComparison,
    Switching,
};
use crate::change::{self, Bytes, Compare};
use crate::tune::text::{self, meaning};

/// A value with what it takes to put it back.
#[derive(Clone, Copy)]
pub(super) struct ValueChange<'a> {
    pub(super) path: &'a str,
    pub(super) value: &'a str,
    pub(super) compare: Compare,
    /// Files whose values move with it.
    pub(super) couples: &'a [String],
}

/// Rounds over the files that move each other: a value that is refused while its pair holds
/// another (`vm.dirty_bytes` takes no 0) is right once the pair is.
const ROUNDS: usize = 3;

impl Kind for ValueChange<'_> {
    fn target(&self) -> String {
        let path = self.path;
        match self.compare {
            // Features and controllers are one file with a word for each.
            Compare::Word => format!("{path} {}", self.value.trim_start_matches("NO_")),
            Compare::Controller => format!("{path} {}", self.value.trim_start_matches(['+', '-'])),
            _ => path.to_owned(),
        }
    }

    fn title(&self) -> String {
        self.path.to_owned()
    }

    fn wanted(&self) -> String {
        self.value.to_owned()
    }

    fn before(&self, state: &State) -> String {
        let State::Value { bytes, .. } = state else { return text::state(state) };
        let text = bytes.text();
        let mut words = text.split_whitespace();
        match self.compare {
            Compare::Word => {
                let plain = self.value.trim_start_matches("NO_");
                let found = words.find(|word| word.trim_start_matches("NO_") == plain);
                found.unwrap_or("not there").into()
            }
            Compare::Controller => {
                let plain = self.value.trim_start_matches(['+', '-']);
                let has = words.any(|word| word == plain);
                format!("{}{plain}", if has { '+' } else { '-' })
            }
            _ => text::state(state),
        }
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.path, self.value]
    }

    fn may_be_made(&self) -> Result<(), String> {
        self.couples.iter().map(String::as_str).chain([self.path]).try_for_each(change::check_value)
    }

    fn nature(&self) -> ChangeProperties {
        ChangeProperties::lost_at_reboot(MachinePart::Kernel, Rank::Values, Switching::Toggled)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.value_state(self.path, self.couples)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Value { bytes, .. } if self.holds(bytes))
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.write_value(self.path, self.value)
    }

    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        match (states.before, states.current) {
            (State::Value { .. }, State::Value { .. }) => machine.value_side(*self, states),
            _ => states.side(|state| self.is_done(machine, state)),
        }
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        machine.restore_value(*self, states)
    }
}

impl<'a> ValueChange<'a> {
    /// A value of one file.
    pub(super) const fn of(path: &'a str, value: &'a str, compare: Compare) -> Self {
        Self { path, value, compare, couples: &[] }
    }

    /// Whether the read bytes equal the wanted value.
    pub(super) fn holds(&self, bytes: &Bytes) -> bool {
        text::is_done(self.compare, self.value, &bytes.text())
    }

    pub(super) fn is_same(&self, a: &Bytes, b: &Bytes) -> bool {
        let meaning = |bytes: &Bytes| meaning(self.compare, self.value, &bytes.text());
        // A partition is identified by what was written: it turns invalid by itself.
        let is_kind = text::is_partition(self.path)
            && text::written_kind(&a.text()) == text::written_kind(&b.text());
        a == b || is_kind || meaning(a) == meaning(b)
    }
}

impl Machine<'_> {
    pub(super) fn bytes(&self, path: &str) -> Result<Bytes, ChangeError> {
        let reading = self.root.read_bytes(path);
        match reading.value() {
            Some(bytes) => Ok(Bytes(bytes.clone())),
            None => Err(ChangeError::unread(reading)),
        }
    }

    /// The state of a value. What moves with it may be a file that this kernel lacks.
    pub(super) fn value_state(&self, path: &str, couples: &[String]) -> Result<State, ChangeError> {
        let bytes = self.bytes(path)?;
        let mut with = Vec::new();
        for couple in couples {
            match self.bytes(couple) {
                Ok(bytes) => with.push((couple.clone(), bytes)),
                Err(ChangeError::Missing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(State::Value { bytes, couples: with })
    }

    /// Writes a value as `echo` does, with a line's end.
    pub(super) fn write_value(&self, path: &str, value: &str) -> Result<(), ChangeError> {
        let line = format!("{}\n", value.strip_suffix('\n').unwrap_or(value));
        let written = when_free(|| self.gate.value(path, line.as_bytes()));
        written.map_err(|error| self.refusal(path, error))
    }

    /// Writes back what was read: the bytes in a folder, what the kernel takes for them on a live
    /// machine.
    pub(super) fn write_back(
        &self,
        value: ValueChange<'_>,
        before: &Bytes,
    ) -> Result<(), ChangeError> {
        if self.root.is_live() {
            let text = before.text();
            let back = text::written_back(value.path, value.compare, value.value, &text);
            return self.write_value(value.path, &back);
        }
        let written = self.gate.value(value.path, &before.0);
        written.map_err(|error| self.refusal(value.path, error))
    }

    /// Whose value is there.
    pub(super) fn value_side(&self, value: ValueChange<'_>, states: StateComparison<'_>) -> Owner {
        let (Some((before, old)), Some((current, now))) =
            (parts(states.before), parts(states.current))
        else {
            return Owner::Theirs;
        };
        if self.is_torn(current, states) {
            return Owner::Ours;
        }
        if value.is_same(before, current) {
            // Killed after the value was put back and before what moves with it was.
            let is_moved = matches!(states.before, State::Hotplug { .. })
                || old.iter().any(|(path, bytes)| {
                    now.iter().any(|(name, now)| name == path && now != bytes)
                });
            return if states.undoing && is_moved { Owner::Ours } else { Owner::Before };
        }
        let is_ours = match states.after.and_then(parts) {
            Some((after, _)) => value.is_same(after, current),
            // Killed between write and read-back: as wanted.
            None => value.holds(current),
        };
        Owner::ours_if(is_ours)
    }

    /// In a folder a value is a file: opened, so empty, and not yet written when the process was
    /// killed.
    pub(super) fn is_torn(&self, current: &Bytes, states: StateComparison<'_>) -> bool {
        let was_empty = parts(states.before).is_some_and(|(before, _)| before.0.is_empty());
        !self.root.is_live() && states.may_be_halfway() && current.0.is_empty() && !was_empty
    }

    /// Puts a value back, and what moved with it unless another program has set that since.
    pub(super) fn restore_value(
        &self,
        value: ValueChange<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        let (main, couples) = parts(states.before)
            .ok_or_else(|| ChangeError::not_expected(states.before, "a value"))?;
        let is_theirs = |path: &String, before: &Bytes| {
            let now = couple(states.current, path);
            let after = states.after.and_then(|after| couple(after, path));
            let is_other = |now: &Bytes| now != before && after.is_some_and(|after| now != after);
            !states.may_be_halfway() && now.is_some_and(is_other)
        };
        let as_text = |path| ValueChange::of(path, "", Compare::Text);
        let mut all = vec![(value, main)];
        let ours = couples.iter().filter(|(path, bytes)| !is_theirs(path, bytes));
        all.extend(ours.map(|(path, bytes)| (as_text(path.as_str()), bytes)));
        let mut refused = None;
        for _ in 0..ROUNDS {
            let mut is_settled = true;
            for (value, bytes) in &all {
                if value.is_same(&self.bytes(value.path)?, bytes) {
                    continue;
                }
                is_settled = false;
                if let Err(error) = self.write_back(*value, bytes) {
                    refused.get_or_insert(error);
                }
            }
            if is_settled {
                return Ok(());
            }
        }
        match refused {
            Some(error) if all.iter().any(|(value, bytes)| !self.holds_bytes(*value, bytes)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn holds_bytes(&self, value: ValueChange<'_>, bytes: &Bytes) -> bool {
        self.bytes(value.path).is_ok_and(|now| value.is_same(&now, bytes))
    }
}

/// The bytes of a value, and of what moves with it.
pub(super) fn parts(state: &State) -> Option<(&Bytes, &[(String, Bytes)])> {
    match state {
        State::Value { bytes, couples } => Some((bytes, couples)),
        State::Hotplug { bytes, .. } => Some((bytes, &[])),
        _ => None,
    }
}

fn couple<'s>(state: &'s State, path: &str) -> Option<&'s Bytes> {
    let (_, couples) = parts(state)?;
    couples.iter().find(|(name, _)| name == path).map(|(_, bytes)| bytes)
}

// What is busy for a moment: the kernel keeps what a killed process held for some milliseconds, a
// control group until its last process is gone, the bandwidth of a deadline task up to a period.

const LONGEST: Duration = Duration::from_secs(1);

const POLL: Duration = Duration::from_millis(20);

/// Does something, again as long as it is refused as busy, for a second at most.
pub(super) fn when_free(mut act: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let end = Instant::now() + LONGEST;
    loop {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {
                thread::sleep(POLL);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_busy_is_waited_for() {
        let times = |kind: io::ErrorKind, refusals: u32| {
            let mut tried = 0;
            let done = when_free(|| {
                tried += 1;
                if tried > refusals { Ok(()) } else { Err(kind.into()) }
            });
            (tried, done.is_ok())
        };
        assert_eq!(times(io::ErrorKind::ResourceBusy, 3), (4, true));
        assert_eq!(times(io::ErrorKind::PermissionDenied, 3), (1, false));
        assert!(!times(io::ErrorKind::ResourceBusy, u32::MAX).1);
    }
}
