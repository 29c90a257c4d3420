//! Changing a machine: one [`Change`] at a time, written down before it is made, read back after,
//! and undone exactly.
//!
//! What is to change and why is decided by `rtproof_judge::plan`; this module does it. Everything
//! that rtproof ever writes to a machine goes through it.

pub mod drift;
pub mod engine;
#[cfg(test)]
mod faults;
pub mod held;
pub mod journal;
pub mod kinds;
pub mod script;
pub mod staging;
#[cfg(test)]
mod tests;
mod text;
mod witness;
mod writes;

pub use drift::{DriftClue, Suspect, suspects};
pub use engine::{
    ApplyError, ApplyEvent, ApplyOptions, ApplySummary, ChangeStanding, Standing, UNNOTED,
    UndoError, UndoneChange, apply, status, undo,
};
pub use journal::{Journal, JournalError, JournalSummary};
pub use kinds::account::{Accounts, may_change_groups};
pub use kinds::kind::{ChangeProperties, MachinePart, Switching};
pub use kinds::unit::{ServiceManager, Systemctl, ToolAnswer};
pub use script::{Gone, Item, JournalEntry, Outcome, Stage};
pub use staging::Staging;
pub use writes::TreeFile;

pub use crate::change::{
    AddedPackage, Bytes, Change, Compare, INITRD_PROGRAMS, IrqName, PackageManager, STAGING,
    Scheduling, TaskName, UnitState,
};

use std::{cell::Cell, io};

use kinds::account::AccountTools;
use kinds::package::{PackageTools, Packages};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use writes::{Gate, is_mounted_read_only, why_not_writable};

use crate::facts::platform::{FirmwareItem, TICKS, firmware_text};
use crate::reading::ReadRefusal;
use crate::{CpuList, Reading, Root, facts, reading};

// Why a change cannot be made or undone: each error names the path, what was found, and the next
// step.

/// Why a state cannot be read, or a change not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A value that the kernel does not have.
    #[error("{path}: not there: this kernel or machine does not have it; leave this change out")]
    Missing { path: String },
    /// What the change is about has ended, or was taken away.
    #[error("{what}: gone")]
    Gone { what: String },
    /// The kernel said no.
    #[error("{path}: {why}")]
    Refused {
        path: String,
        /// The error, and the reason behind it.
        why: String,
    },
    /// Something is not what it has to be.
    #[error("{path}: holds {found}, expected {expected}")]
    Unexpected { path: String, found: String, expected: String },
    /// A place where rtproof never writes.
    #[error("{why}")]
    Elsewhere {
        /// The place, and why not.
        why: String,
    },
    /// A folder that others use by now.
    #[error("{path}: not empty")]
    NotEmpty { path: String },
    /// Only a live machine has it.
    #[error("{what}: a folder of files has none; run it on the machine itself")]
    NotLive { what: String },
    /// Groups of users in a folder: the tools would change root into it, and load what is there.
    #[error(
        "{what}: groups are changed on the machine itself alone: in a folder their tools would run \
         the folder's own libraries as root; leave it out with --skip CHECK=REASON"
    )]
    AccountElsewhere {
        /// What was to be changed.
        what: String,
    },
    /// There is no systemd to ask.
    #[error("{unit}: systemd does not run here (no /run/systemd/system); stop or start it by hand")]
    NoSystemd { unit: String },
    /// The machine was opened to be read.
    #[error("{path}: this machine was opened for reading only")]
    ReadOnly {
        /// What was to be changed.
        path: String,
    },
}

impl ChangeError {
    /// A state that does not belong to a change: a journal that was put together by hand.
    fn not_expected(state: &State, expected: &str) -> Self {
        let found = serde_json::to_string(state).unwrap_or_default();
        let found = found.chars().take(80).collect();
        Self::Unexpected { path: "journal".into(), found, expected: expected.into() }
    }

    /// A reading that a state is made of. A refusal is no absence, which undo would restore.
    fn present<T>(reading: Reading<T>) -> Result<Option<T>, Self> {
        match reading.state {
            reading::ReadingState::Denied { ref why } => {
                Err(Self::Refused { path: reading.path, why: why.clone() })
            }
            _ => Ok(reading.into_value()),
        }
    }

    /// A refusal, with the reason behind it where that is known.
    pub(crate) fn refused(root: &Root, path: &str, error: io::Error) -> Self {
        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
        let reading: Reading<()> = root.refused(path, &ReadRefusal::from(error));
        let mut why = match reading.state {
            reading::ReadingState::Absent => return Self::Missing { path: path.into() },
            _ => reading.why_unknown().unwrap_or_default(),
        };
        let hint = match errno {
            Some(Errno::IO | Errno::PERM) if path.starts_with("/proc/irq/") => {
                "; a managed interrupt, which the kernel alone places: boot with \
                 isolcpus=managed_irq"
            }
            Some(Errno::IO) => "; the device or the firmware did not take it",
            Some(Errno::BUSY) => "; something uses it: stop that first",
            Some(Errno::INVAL) => "; the kernel does not take this value",
            Some(Errno::NOSPC) => "; make room and try again",
            Some(Errno::ROFS) => "; mount it writable first",
            Some(Errno::PERM | Errno::ACCESS) if is_of_files(path) => {
                "; look whether it or its folder is immutable (lsattr)"
            }
            _ => "",
        };
        why += hint;
        Self::Refused { path: path.into(), why }
    }

    /// What a reading without a value says.
    pub(crate) fn unread<T>(reading: Reading<T>) -> Self {
        let path = reading.path;
        match reading.state {
            reading::ReadingState::Malformed { found, expected } => {
                Self::Unexpected { path, found: format!("\"{found}\""), expected }
            }
            reading::ReadingState::Denied { why } => {
                Self::Refused { path, why: format!("refused: {why}") }
            }
            _ => Self::Missing { path },
        }
    }
}

fn is_of_files(path: &str) -> bool {
    !["/proc/", "/sys/", "/dev/"].iter().any(|top| path.starts_with(top))
}

// `Machine`: a machine that may be changed, and the rights needed for that.

/// Folder of the journals and their lock.
pub const FOLDER: &str = "/var/lib/rtproof/tune";

/// Scheduling of tasks; `rtproof_measure::LiveTasks` asks the kernel.
pub trait Tasks {
    /// All of how a task is scheduled.
    ///
    /// # Errors
    /// ESRCH once it has ended, EPERM.
    fn scheduling(&self, tid: u32) -> io::Result<Scheduling>;

    /// Sets what is not `None`; the rest stays.
    ///
    /// # Errors
    /// ESRCH once it has ended, EPERM, EINVAL for what the kernel does not take.
    fn set(&self, tid: u32, to: &Scheduling) -> io::Result<()>;
}

/// A machine whose state is read, and changed where it was opened for that.
pub struct Machine<'a> {
    root: &'a Root,
    gate: Gate<'a>,
    /// `None` for a folder: a thread id of it means nothing here.
    tasks: Option<&'a dyn Tasks>,
    /// `None` for a folder.
    units: Option<&'a dyn ServiceManager>,
    /// `None` for a folder.
    accounts: Option<&'a dyn Accounts>,
    /// `None` for a folder.
    packages: Option<&'a dyn Packages>,
    /// Receives the lines of what works for long: of a package manager.
    show: Option<&'a dyn Fn(&str)>,
    may_write: bool,
    /// Whether journals of other users are obeyed: whoever asked has looked through them.
    obeys_others: bool,
    /// Whether what can be verified of a damaged journal is enough.
    takes_damaged: bool,
    /// Whether unit files changed since systemd read them.
    units_stale: Cell<bool>,
}

/// Why a machine cannot be changed. Nothing was.
#[derive(Debug, thiserror::Error)]
pub enum NotTunable {
    /// A capture holds answers, not files.
    #[error(
        "a capture file is a machine as it was and cannot be changed; give a folder with --root, \
         or run on the machine itself"
    )]
    Capture,
    #[error("only root can change this machine; run it with sudo")]
    NotRoot,
    /// A container sees the kernel's files and may not write them.
    #[error("{path} is mounted read-only{by}; run it on the host")]
    Container {
        /// /proc/sys or /sys.
        path: &'static str,
        /// The container, where one is detected.
        by: String,
    },
    /// There is no place for the journal, without which nothing is changed.
    #[error(
        "{path}: {why}; the journal that makes every change undoable is kept in {FOLDER}: make it \
         writable"
    )]
    NoJournal {
        path: String,
        /// Why it cannot be written.
        why: io::Error,
    },
}

impl<'a> Machine<'a> {
    /// A machine that is to be changed: the live one, or a folder with the files of one. In a
    /// folder only files are changed; tasks and running units are the live machine's alone.
    ///
    /// # Errors
    /// When it cannot be changed. Nothing is tried out.
    pub fn new(root: &'a Root, tasks: &'a dyn Tasks) -> Result<Self, NotTunable> {
        let machine = Self::to_undo(root, tasks)?;
        let journal = |path: &str, why| NotTunable::NoJournal { path: path.into(), why };
        match why_not_writable(root, FOLDER) {
            Ok(None) => Ok(machine),
            Ok(Some((path, why))) => Err(journal(&path, why)),
            Err(why) => Err(journal(FOLDER, why)),
        }
    }

    /// As [`Machine::new`], also where no journal can be written: what is undone needs none.
    ///
    /// # Errors
    /// When it cannot be changed. Nothing is tried out.
    pub fn to_undo(root: &'a Root, tasks: &'a dyn Tasks) -> Result<Self, NotTunable> {
        if root.is_capture() {
            return Err(NotTunable::Capture);
        }
        if root.is_live() {
            if !rustix::process::geteuid().is_root() {
                return Err(NotTunable::NotRoot);
            }
            if let Some(path) =
                ["/proc/sys", "/sys"].into_iter().find(|path| is_mounted_read_only(path))
            {
                return Err(NotTunable::Container { path, by: container(root) });
            }
        }
        Ok(Self { may_write: true, ..Self::for_reading(root, tasks) })
    }

    /// Obeys journals that another user could have written.
    #[must_use]
    pub fn obeying_others(self) -> Self {
        Self { obeys_others: true, ..self }
    }

    /// Takes what can be verified of a damaged journal.
    #[must_use]
    pub fn taking_damaged(self) -> Self {
        Self { takes_damaged: true, ..self }
    }

    /// A machine of which only the state is read, also a capture and without root: for a plan, and
    /// for the status of what was changed. Every attempt to change it is refused.
    pub fn for_reading(root: &'a Root, tasks: &'a dyn Tasks) -> Self {
        Self {
            root,
            gate: Gate::new(root),
            tasks: root.is_live().then_some(tasks),
            units: root.is_live().then_some(&Systemctl),
            accounts: root.is_live().then_some(&AccountTools),
            packages: root.is_live().then_some(&PackageTools),
            show: None,
            may_write: false,
            obeys_others: false,
            takes_damaged: false,
            units_stale: Cell::new(false),
        }
    }

    /// A folder with tasks and units that are played: for tests.
    ///
    /// # Errors
    /// As [`Machine::new`]; the live machine is refused as well.
    pub fn played(
        root: &'a Root,
        tasks: &'a dyn Tasks,
        units: &'a dyn ServiceManager,
    ) -> Result<Self, NotTunable> {
        if root.is_live() {
            return Err(NotTunable::NotRoot);
        }
        let machine = Self::new(root, tasks)?;
        Ok(Self { tasks: Some(tasks), units: Some(units), ..machine })
    }

    /// With tools for groups that are played.
    #[cfg(test)]
    fn with_accounts(self, accounts: &'a dyn Accounts) -> Self {
        Self { accounts: Some(accounts), ..self }
    }

    /// With packages that are played.
    #[cfg(test)]
    fn with_packages(self, packages: &'a dyn Packages) -> Self {
        Self { packages: Some(packages), ..self }
    }

    /// Shows the lines of a package manager at work.
    #[must_use]
    pub fn showing(self, show: &'a dyn Fn(&str)) -> Self {
        Self { show: Some(show), ..self }
    }

    pub const fn root(&self) -> &'a Root {
        self.root
    }

    /// An error of the system, as that of a change.
    fn refusal(&self, path: &str, error: io::Error) -> ChangeError {
        ChangeError::refused(self.root, path, error)
    }

    fn may_write(&self, path: &str) -> Result<(), ChangeError> {
        if self.may_write { Ok(()) } else { Err(ChangeError::ReadOnly { path: path.into() }) }
    }

    /// This boot; empty where a folder has none.
    fn boot_id(&self) -> String {
        self.root.trimmed("/proc/sys/kernel/random/boot_id").value().cloned().unwrap_or_default()
    }

    /// Hash of /etc/machine-id; empty where there is none.
    ///
    /// # Errors
    /// It exists but cannot be read: the owner of the journal is unknown then.
    fn machine_id(&self) -> io::Result<String> {
        let id = self.root.trimmed("/etc/machine-id");
        match id.value() {
            Some(id) if id.is_empty() => Ok(String::new()),
            Some(id) => Ok(facts::hash(id)),
            None if id.is_absent() => Ok(String::new()),
            None => Err(io::Error::other(id.why_unknown().unwrap_or_default())),
        }
    }
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("root", self.root).finish_non_exhaustive()
    }
}

/// The container that we are in, as a phrase.
fn container(root: &Root) -> String {
    match facts::virt::Virt::container(root) {
        Some(name) => format!(" (inside a container: {name})"),
        None => String::new(),
    }
}

// The state of the target of a change, exact enough to be restored.

/// The state of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum State {
    Absent,
    /// Bytes of a value of the running kernel, as read.
    Value {
        bytes: Bytes,
        /// The files that move with it, with their bytes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        couples: Vec<(String, Bytes)>,
    },
    File {
        bytes: Bytes,
        mode: u32,
        uid: u32,
        gid: u32,
        /// Last modification, nanoseconds since 1970.
        modified_ns: i64,
        /// Extended attributes (security labels), by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes: Vec<(String, Bytes)>,
    },
    /// A symbolic link, and where it leads.
    Link {
        /// Target as the link states it, not resolved.
        to: String,
    },
    Folder,
    /// A file or folder that was put in place whole.
    Tree {
        /// Itself and, of a folder, all that is in it, by path.
        files: Vec<TreeFile>,
    },
    /// Scheduling of a task.
    Task {
        scheduling: Scheduling,
    },
    Unit {
        active: bool,
        /// Links that enable or mask it (path, text), in the folders of systemd and of the boot
        /// scripts under /etc and /run.
        links: Vec<(String, String)>,
        /// The folders that hold such links (`multi-user.target.wants`), whatever is in them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folders: Vec<String>,
    },
    /// A property of a unit.
    Property {
        /// Its value as `systemctl show` gives it.
        value: String,
        /// The drop-in that an earlier `set-property --runtime` left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drop_in: Option<Bytes>,
    },
    /// A group of users.
    Group {
        gid: u32,
        /// The users that are listed for it, in the order of the file.
        members: Vec<String>,
    },
    /// Whether a user is in a group.
    Member {
        /// The group's number; `None`: there is no such group.
        gid: Option<u32>,
        /// Whether the user is in it: listed, or as the user's first group.
        is_member: bool,
    },
    /// Packages, each as its manager has it.
    Packages {
        /// In the order of the change.
        packages: Vec<PackageState>,
    },
    /// The switch of a CPU, and what the kernel moves when it is set.
    Hotplug {
        /// Bytes of the switch.
        bytes: Bytes,
        /// Affinity of every task that may use a CPU that goes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<(TaskName, CpuList)>,
        /// Affinity of every interrupt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        irqs: Vec<(IrqName, CpuList)>,
        /// CPUs of the groups (`cpuset.cpus`), and the tasks of those of version 1 that would be
        /// left without one (`tasks`).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<(String, Bytes)>,
    },
}

/// A package as its manager has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PackageState {
    pub name: String,
    /// dpkg's word: `installed`, `config-files` (removed, its settings kept), `not-installed`, or
    /// a state half way (`unpacked`, `half-configured` ...).
    pub status: String,
    /// Version; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

// Writing the ticks of the firmware's list. They are a statement of the user, and no tuning: they
// change nothing, and no undo takes them away.

/// Writes all ticks of a machine, whole or not at all.
///
/// # Errors
/// The machine was opened for reading, or the file cannot be written.
pub fn write_ticks(machine: &Machine<'_>, ticks: &[FirmwareItem]) -> Result<(), ChangeError> {
    machine.may_write(TICKS)?;
    let before = machine.state_at(TICKS)?;
    machine.write_file(TICKS, Some(&Bytes(firmware_text(ticks).into_bytes())), None, &before)
}
