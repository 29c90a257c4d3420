//! The kinds of change, by subject. Whoever adds a kind adds a variant to [`Change`], a struct that
//! implements `Kind` in the file of its subject, and a line to `Change::kind`.

macro_rules! of_kind {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty)?) -> $result:ty;)*) => {
        impl Change {
            $($(#[$doc])*
            pub fn $name(&self, $($argument: $type)?) -> $result {
                self.kind().$name($($argument)?)
            })*
        }
    };
}

pub(super) mod account;
mod boot;
mod file;
mod hotplug;
pub(super) mod kind;
pub(super) mod package;
pub mod task;
pub(super) mod unit;
mod value;

pub(crate) use hotplug::CPU_GROUPS;
use kind::{ChangeError, ChangeProperties, Kind, Machine, Owner, State, StateComparison};

use crate::change::{Change, Compare};

of_kind! {
    /// What it is about, in a word that no other change of a plan has: two changes with the same
    /// target contradict each other or are one.
    target() -> String;
    /// What it sets, as one line: the target and the wanted value.
    line() -> String;
    /// What it is about, as a plan shows it.
    title() -> String;
    /// The wanted value in a few words, without the target.
    wanted() -> String;
    /// The wanted state as a plan shows it, in one line.
    after() -> String;
    /// A state that was there before as a plan shows it, in one line.
    before(state: &State) -> String;
    /// The lines that go and that come.
    lines(before: Option<&State>) -> (Vec<String>, Vec<String>);
    /// Where it belongs, and how long it lasts.
    nature() -> ChangeProperties;
}

impl Change {
    /// Looks whether rtproof writes to such a place at all.
    pub fn may_be_made(&self) -> Result<(), String> {
        self.kind().may_be_made()
    }

    pub(super) fn kind(&self) -> Box<dyn Kind + '_> {
        match self {
            Self::Value { path, value, compare, couples } => {
                Box::new(value::ValueChange { path, value, compare: *compare, couples })
            }
            Self::Irq { irq, cpus } => Box::new(task::IrqChange { irq, cpus }),
            Self::Task { task, set } => Box::new(task::TaskChange { task, set }),
            Self::Hotplug { path, value } => Box::new(hotplug::Hotplug { path, value }),
            Self::Folder { path } => Box::new(file::FolderChange { path }),
            Self::File { path, content, mode } => {
                Box::new(file::FileChange { path, content: content.as_ref(), mode: *mode })
            }
            Self::Placed { path, from, digest, files, bytes } => {
                Box::new(boot::PlacedChange { path, from, digest, files: *files, bytes: *bytes })
            }
            Self::Initrd { path, release, program } => {
                Box::new(boot::Initrd { path, release, program })
            }
            Self::GrubEnv { path, key, value } => Box::new(boot::GrubEnv { path, key, value }),
            Self::EfiVariable { name, value } => Box::new(boot::EfiVariable { name, value }),
            Self::Unit { unit, want } => Box::new(unit::UnitChange { unit, want: *want }),
            Self::Property { unit, property, value } => {
                Box::new(unit::PropertyChange { unit, property, value })
            }
            Self::Group { name } => Box::new(account::GroupChange { name }),
            Self::Member { group, user } => Box::new(account::Member { group, user }),
            Self::Package { manager, name, adds } => {
                Box::new(package::Package { manager: *manager, name, adds })
            }
        }
    }

    /// The names and values in it, which a file of another tool has to be able to hold.
    pub fn texts(&self) -> Vec<String> {
        self.kind().texts().into_iter().map(str::to_owned).collect()
    }

    /// Whether a file of a control group that is not there yet comes with it: the group is made, or
    /// its parent hands the controller down.
    pub fn brings(&self, file: &str) -> bool {
        let Some((group, file)) = file.rsplit_once('/') else { return false };
        let is_group = |path: &str| path.starts_with("/sys/fs/cgroup/");
        match self {
            Self::Folder { path } => is_group(path) && group == path,
            Self::Value { path, value, compare: Compare::Controller, .. } => {
                let parent = path.rsplit_once('/').map(|(parent, _)| parent);
                let is_of =
                    |name| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
                is_group(path)
                    && group.rsplit_once('/').map(|(parent, _)| parent) == parent
                    && value.trim().strip_prefix('+').is_some_and(is_of)
            }
            _ => false,
        }
    }
}

/// Changes that the tests of the engine make, undo, and kill at each step.
#[cfg(test)]
pub(super) fn examples() -> Vec<Change> {
    let mut examples = vec![file::example()];
    examples.extend(account::examples());
    examples.extend(boot::examples());
    examples.push(package::example());
    examples
}

impl Machine<'_> {
    /// What is there now.
    ///
    /// # Errors
    /// It is not there, gone, or cannot be read.
    pub fn state(&self, change: &Change) -> Result<State, ChangeError> {
        change.kind().state(self)
    }

    /// Whether a state is as wanted already.
    pub fn is_done(&self, change: &Change, state: &State) -> bool {
        change.kind().is_done(self, state)
    }

    /// The change with the identity of its task or interrupt filled in.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn named(&self, change: Change) -> Result<Change, ChangeError> {
        let named = change.kind().named(self)?;
        Ok(named.unwrap_or(change))
    }

    pub(super) fn write(&self, change: &Change, before: &State) -> Result<(), ChangeError> {
        self.may_change(change)?;
        change.kind().write(self, before)
    }

    /// Whose state it is.
    pub(super) fn side(&self, change: &Change, states: StateComparison<'_>) -> Owner {
        change.kind().side(self, states)
    }

    /// Restores what was there before.
    pub(super) fn restore(
        &self,
        change: &Change,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        self.may_change(change)?;
        change.kind().restore(self, states)
    }

    fn may_change(&self, change: &Change) -> Result<(), ChangeError> {
        self.may_write(&change.target())?;
        change.may_be_made().map_err(|why| ChangeError::Elsewhere { why })
    }
}
