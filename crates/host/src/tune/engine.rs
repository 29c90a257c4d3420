//! Each kind of change: its state, whether that is as wanted, how it is made, whose it is by now,
//! how it is put back. One `match` for each question, the work in the file of the kind.

use super::{
    change::{Change, Compare},
    file, grubenv, irq,
    machine::Machine,
    side::{Side, Three},
    state::State,
    tasks,
    trouble::Trouble,
    units,
    value::Value,
};

/// A state that does not belong to a change: a journal that was put together by hand.
pub(super) fn not_expected(state: &State, expected: &str) -> Trouble {
    let found = serde_json::to_string(state).unwrap_or_default();
    let found = found.chars().take(80).collect();
    Trouble::Unexpected { path: "journal".into(), found, expected: expected.into() }
}

/// A change of one file of the kernel as a value.
fn as_value(change: &Change) -> Option<Value<'_>> {
    match change {
        Change::Value { path, value, compare, .. } => {
            Some(Value { path, value, compare: *compare })
        }
        Change::Hotplug { path, value } => Some(Value { path, value, compare: Compare::Text }),
        _ => None,
    }
}

impl Machine<'_> {
    /// What is there now.
    ///
    /// # Errors
    /// It is not there, gone, or cannot be read.
    pub fn state(&self, change: &Change) -> Result<State, Trouble> {
        match change {
            Change::Value { path, couples, .. } => self.value_state(path, couples),
            Change::Hotplug { path, value } => self.hotplug_state(path, value),
            Change::Irq { irq, .. } => self.irq_state(irq),
            Change::Task { task, .. } => self.task_state(task),
            Change::Folder { path } | Change::File { path, .. } => self.look(path),
            Change::GrubEnv { path, key, .. } => {
                let real = self.grub_path(path)?;
                let state = self.look(&real)?;
                if let State::File { bytes, .. } = &state {
                    grubenv::get(bytes, key).map_err(|error| Trouble::Refused {
                        path: path.clone(),
                        why: error.to_string(),
                    })?;
                }
                Ok(state)
            }
            Change::EfiVariable { name, .. } => self.efi_state(name),
            Change::Unit { unit, .. } => self.unit_state(unit),
            Change::Property { unit, property, .. } => self.property_state(unit, property),
        }
    }

    /// Whether a state is as wanted already.
    #[must_use]
    pub fn is_done(&self, change: &Change, state: &State) -> bool {
        match (change, state) {
            (Change::Value { .. }, State::Value { bytes, .. })
            | (Change::Hotplug { .. }, State::Hotplug { bytes, .. }) => {
                as_value(change).is_some_and(|value| value.is_done(bytes))
            }
            (Change::Irq { cpus, .. }, State::Value { bytes, .. }) => {
                irq::value("", &cpus.to_string()).is_done(bytes)
            }
            (Change::Task { set, .. }, State::Task { scheduling }) => {
                tasks::is_done(set, scheduling)
            }
            (Change::Folder { .. }, State::Folder) => true,
            (Change::File { content, mode, .. }, state) => {
                file::is_done(content.as_ref(), *mode, state)
            }
            (Change::GrubEnv { key, value, .. }, State::File { bytes, .. }) => {
                grubenv::get(bytes, key).is_ok_and(|now| now.as_deref() == Some(value.as_bytes()))
            }
            (Change::EfiVariable { value, .. }, State::Value { bytes, .. }) => {
                *bytes == file::efi_bytes(value)
            }
            (Change::Unit { unit, want }, State::Unit { .. }) => {
                self.unit_is_done(unit, *want, state)
            }
            (Change::Property { value, .. }, State::Property { value: now, .. }) => {
                units::is_same_property(value, now)
            }
            _ => false,
        }
    }

    /// The change with the identity of its task or interrupt filled in.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn named(&self, change: Change) -> Result<Change, Trouble> {
        Ok(match change {
            Change::Task { task, set } => {
                Change::Task { task: tasks::find(self.root, &task)?, set }
            }
            Change::Irq { irq: name, cpus } => {
                let number = irq::find(self.root, &name)?;
                Change::Irq { irq: irq::identify(self.root, number), cpus }
            }
            other => other,
        })
    }

    /// Makes the change.
    pub(super) fn write(&self, change: &Change, before: &State) -> Result<(), Trouble> {
        self.may_write(&change.target())?;
        match change {
            Change::Value { path, value, .. } | Change::Hotplug { path, value } => {
                self.write_value(path, value)
            }
            Change::Irq { irq: name, cpus } => {
                let number = irq::find(self.root, name)?;
                self.write_value(&irq::file(number), &cpus.to_string())
            }
            Change::Task { task, set } => self.set_task(task, set),
            Change::Folder { path } => self.make_folder(path),
            Change::File { path, content, mode } => {
                self.write_file(path, content.as_ref(), *mode, before)
            }
            Change::GrubEnv { path, key, value } => self.write_grub(path, key, value, before),
            Change::EfiVariable { name, value } => self.write_efi(name, &file::efi_bytes(value)),
            Change::Unit { unit, want } => self.write_unit(unit, *want, before),
            Change::Property { unit, property, value } => {
                self.write_property(unit, property, value)
            }
        }
    }

    /// What there is to say of a change that was made: what is not in force yet.
    pub(super) fn note(&self, change: &Change) -> Option<String> {
        match change {
            Change::Irq { irq, cpus } => self.irq_pending(irq, cpus),
            _ => None,
        }
    }

    /// What a change left, with what it moved along.
    pub(super) fn state_after(&self, change: &Change, before: &State) -> Result<State, Trouble> {
        match change {
            Change::Hotplug { path, .. } => self.hotplug_left(path, before),
            _ => self.state(change),
        }
    }

    /// Whose state it is.
    pub(super) fn side(&self, change: &Change, three: Three<'_>) -> Side {
        let Three { before, after, current, .. } = three;
        match (change, before, current) {
            (Change::Value { .. }, State::Value { .. }, State::Value { .. })
            | (Change::Hotplug { .. }, State::Hotplug { .. }, State::Hotplug { .. }) => {
                as_value(change).map_or(Side::Theirs, |value| self.value_side(value, three))
            }
            (Change::Irq { cpus, .. }, ..) => {
                self.value_side(irq::value("", &cpus.to_string()), three)
            }
            (Change::Task { set, .. }, ..) => tasks::side(set, three),
            (Change::Folder { .. }, State::Absent, State::Folder) => Side::Ours,
            (Change::File { content, mode, .. }, ..) => file::side(content.as_ref(), *mode, three),
            (Change::GrubEnv { key, value, .. }, ..) => {
                file::grub_side(key, value, before, current)
            }
            (Change::EfiVariable { .. }, _, State::Value { bytes, .. })
                if self.is_torn(bytes, three) =>
            {
                Side::Ours
            }
            (Change::Unit { unit, want }, ..) => self.unit_side(unit, *want, three),
            (Change::Property { value, .. }, ..) => units::property_side(value, three),
            _ if before == current => Side::Before,
            _ => match after {
                Some(after) if after == current => Side::Ours,
                None if self.is_done(change, current) => Side::Ours,
                _ => Side::Theirs,
            },
        }
    }

    /// Puts back what was before.
    pub(super) fn restore(&self, change: &Change, three: Three<'_>) -> Result<(), Trouble> {
        self.may_write(&change.target())?;
        let Three { before, current, .. } = three;
        match (change, before) {
            (Change::Value { path, value, compare, .. }, _) => {
                self.restore_value(Value { path, value, compare: *compare }, three)
            }
            (Change::Hotplug { path, value }, State::Hotplug { .. }) => {
                let value = Value { path, value, compare: Compare::Text };
                self.restore_hotplug(value, three)
            }
            (Change::Irq { irq: name, .. }, _) => {
                let path = irq::file(irq::find(self.root, name)?);
                self.restore_value(irq::value(&path, ""), three)
            }
            (Change::Task { task, set }, _) => self.restore_task(task, set, three),
            (Change::Folder { path }, State::Absent) => self.remove_folder(path),
            (Change::File { path, .. }, _) => self.restore_file(path, before, current),
            (Change::GrubEnv { path, key, .. }, _) => self.restore_grub(path, key, before, current),
            (Change::EfiVariable { name, .. }, State::Value { bytes, .. }) => {
                self.write_efi(name, bytes)
            }
            (Change::EfiVariable { name, .. }, State::Absent) => self.remove_efi(name),
            (Change::Unit { unit, .. }, State::Unit { .. }) => {
                self.restore_unit(unit, before, current)
            }
            (Change::Property { unit, property, .. }, State::Property { .. }) => {
                self.restore_property(unit, property, before)
            }
            (_, other) => Err(not_expected(other, "the state of this change")),
        }
    }

    /// Removes what a write that was cut short left.
    pub(super) fn clean(&self, change: &Change) -> Result<(), Trouble> {
        let path = match change {
            Change::File { path, .. } => path.clone(),
            Change::GrubEnv { path, .. } => self.grub_path(path)?,
            Change::Property { unit, .. } => return self.clean_property(unit),
            _ => return Ok(()),
        };
        self.gate.clean(&path).map_err(|error| self.refusal(&path, error))
    }

    /// Whether a part of a task is still as we set it, while another is somebody else's.
    pub(super) fn is_partly_ours(&self, change: &Change, three: Three<'_>) -> bool {
        matches!(change, Change::Task { set, .. } if tasks::has_ours(set, three))
    }
}
