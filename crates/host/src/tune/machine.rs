//! [`Machine`]: a machine that may be changed, and who may do that.

use std::{cell::Cell, io};

use super::{
    accounts::{AccountTools, Accounts},
    error::ChangeError,
    packages::{PackageTools, Packages},
    systemctl::{Systemctl, Units},
    writes::{Gate, is_mounted_read_only, why_not_writable},
};
use crate::{Root, change::Scheduling, facts::identity};

/// Folder of the journals and their lock.
pub const FOLDER: &str = "/var/lib/rtproof/tune";

/// Scheduling of tasks; `rtproof_measure::scheduling::LiveTasks` asks the kernel.
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
    pub(super) root: &'a Root,
    pub(super) gate: Gate<'a>,
    /// `None` for a folder: a thread id of it means nothing here.
    pub(super) tasks: Option<&'a dyn Tasks>,
    /// `None` for a folder.
    pub(super) units: Option<&'a dyn Units>,
    /// `None` for a folder.
    pub(super) accounts: Option<&'a dyn Accounts>,
    /// `None` for a folder.
    pub(super) packages: Option<&'a dyn Packages>,
    /// Receives the lines of what works for long: of a package manager.
    pub(super) show: Option<&'a dyn Fn(&str)>,
    pub(super) may_write: bool,
    /// Whether journals of other users are obeyed: whoever asked has looked through them.
    pub(super) obeys_others: bool,
    /// Whether what can be verified of a damaged journal is enough.
    pub(super) takes_damaged: bool,
    /// Whether unit files changed since systemd read them.
    pub(super) units_stale: Cell<bool>,
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
        units: &'a dyn Units,
    ) -> Result<Self, NotTunable> {
        if root.is_live() {
            return Err(NotTunable::NotRoot);
        }
        let machine = Self::new(root, tasks)?;
        Ok(Self { tasks: Some(tasks), units: Some(units), ..machine })
    }

    /// With tools for groups that are played.
    #[cfg(test)]
    pub(super) fn with_accounts(self, accounts: &'a dyn Accounts) -> Self {
        Self { accounts: Some(accounts), ..self }
    }

    /// With packages that are played.
    #[cfg(test)]
    pub(super) fn with_packages(self, packages: &'a dyn Packages) -> Self {
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
    pub(super) fn refusal(&self, path: &str, error: io::Error) -> ChangeError {
        ChangeError::refused(self.root, path, error)
    }

    pub(super) fn may_write(&self, path: &str) -> Result<(), ChangeError> {
        if self.may_write { Ok(()) } else { Err(ChangeError::ReadOnly { path: path.into() }) }
    }

    /// This boot; empty where a folder has none.
    pub(super) fn boot_id(&self) -> String {
        self.root.trimmed("/proc/sys/kernel/random/boot_id").value().cloned().unwrap_or_default()
    }

    /// Hash of /etc/machine-id; empty where there is none.
    ///
    /// # Errors
    /// It is there and cannot be read: nobody knows then whose journal it is.
    pub(super) fn machine_id(&self) -> io::Result<String> {
        let id = self.root.trimmed("/etc/machine-id");
        match id.value() {
            Some(id) if id.is_empty() => Ok(String::new()),
            Some(id) => Ok(identity::hash(id)),
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
    match crate::facts::virt::Virt::container(root) {
        Some(name) => format!(" (inside a container: {name})"),
        None => String::new(),
    }
}
