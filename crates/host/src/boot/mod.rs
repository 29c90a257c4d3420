//! The boot loader: what boots next, and a second entry, "real-time", beside it.
//!
//! Nothing is written here. [`detect`] reads; [`Loader::real_time`] says as a list of [`Change`]s
//! what makes the entry, what boots it once and what makes it the default; the engine
//! ([`crate::tune`]) makes them and takes them back. The entry that boots now is never edited, and
//! no file of a distribution is made anew: where our lines stand in a file of others, they stand
//! between two marks.
//!
//! One file for each boot loader; each says what it reads and writes. docs/boot.md is for users.

mod block;
pub mod cmdline;
mod efi;
mod elsewhere;
mod entries;
mod extlinux;
mod grub;
mod pe;
mod raspberry;
mod storage;
mod systemd_boot;
mod view;

#[cfg(test)]
mod tests;

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

pub use self::cmdline::{Wish, Word, WordError};
use self::view::View;
use crate::{Root, tune::Change};

/// Title of our entry in menus.
pub const TITLE: &str = "rtproof real-time";
/// Identity of our entry, where a boot loader has one.
pub const ID: &str = "rtproof-real-time";

/// After a panic the kernel resets by itself, in seconds: else nobody would see that it fell back.
const PANIC: &str = "panic=10";

/// Where nothing is written.
const NOTHING_WRITTEN: &str = "nothing is written here, so nothing falls back by itself: keep the \
                               old command line at hand";
/// Where nothing falls back.
const BY_HAND: &str = "nothing falls back by itself: choose the old entry in the boot menu";
/// How a trial ends that does not come up; who forgets the choice stands before it.
const AFTER_A_TRIAL: &str = "after a reset, a panic (after which the kernel resets by itself) or a \
                             power cycle the old default boots; a kernel that hangs without a \
                             panic needs a watchdog or a hand on the power switch";

/// Which boot loader, and how it is told about entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Kind {
    /// GRUB 2 with entries in grub.cfg (Debian, Ubuntu, openSUSE, Arch).
    Grub,
    /// GRUB 2 with one file for each entry (Fedora, RHEL).
    GrubEntries,
    /// systemd-boot with one file for each entry.
    SystemdBoot,
    /// systemd-boot with unified kernel images.
    UnifiedImage,
    /// extlinux.conf, read by extlinux or U-Boot.
    Extlinux,
    /// The firmware of a Raspberry Pi.
    RaspberryPi,
    /// Nothing that may be written: somebody else keeps the command line.
    Elsewhere,
}

/// One entry of a boot loader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Title as the menu shows it.
    pub title: String,
    /// Identity, as the boot loader chooses it.
    pub id: String,
    /// Path of the kernel as the boot loader has it.
    pub kernel: String,
    /// Paths of its initial RAM disks.
    pub initrd: Vec<String>,
    /// The kernel's command line, without what the boot loader puts before it.
    pub cmdline: String,
    /// The file that says so.
    pub file: String,
    /// Line in that file, from 1.
    pub line: usize,
}

/// The boot loader of a machine.
#[derive(Debug)]
pub struct Loader {
    /// Which one.
    pub kind: Kind,
    /// Its name, for people.
    pub name: String,
    /// Files that say what boots.
    pub files: Vec<String>,
    /// What boots next when nobody chooses, our own entry left out of account.
    pub default: Option<Entry>,
    /// What our entry is a copy of: the entry of the running kernel, else the default.
    pub base: Option<Entry>,
    /// Whether the firmware checks signatures; `None` without UEFI or where it cannot be told.
    pub secure_boot: Option<bool>,
    /// Why our entry cannot be booted once with a way back; `None` when it can.
    pub no_trial: Option<String>,
    /// Why no entry can be written; `None` when it can.
    pub no_entry: Option<String>,
    /// Identity of our entry.
    pub id: String,
    /// Bytes of a command line that the kernel takes.
    limit: usize,
    method: Box<dyn Method>,
}

/// Our entry, as changes for the engine. Each list is complete by itself and made in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BootChanges {
    /// Make the entry. The default stays the default.
    pub entry: Vec<Change>,
    /// Boot it once, with the next boot. Empty where that cannot be done safely (see
    /// [`Loader::no_trial`]) and where [`BootChanges::reboot`] is all that it takes.
    pub trial: Vec<Change>,
    /// Make it the default.
    pub confirm: Vec<Change>,
    /// What reboot(2) has to be told for the trial, e.g. `0 tryboot`; `None`: a plain reboot.
    pub reboot: Option<String>,
    /// What happens when it does not come up, as a sentence.
    pub fallback: String,
    /// Command line of the entry, as it was read back from the changes.
    pub cmdline: String,
    /// What a human has to do where nothing may be written.
    pub printed: Option<String>,
}

/// How far our entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Standing {
    /// There is none.
    Absent,
    /// It is there and boots when it is chosen.
    Written,
    /// It boots with the next boot, once.
    Armed,
    /// It is the default.
    Default,
}

/// Why the boot loader cannot be read or told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// A file cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// A file does not hold what it should.
    #[error("{path}:{line}: {what}; {next}")]
    Text {
        /// The file.
        path: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
        /// What to do.
        next: &'static str,
    },
    /// There is no entry to copy.
    #[error("{path}: {why}")]
    NoEntry {
        /// The file or folder.
        path: String,
        /// What was looked for, and what to do.
        why: String,
    },
    /// A file that would be written is somebody else's.
    #[error("{path}: {why}")]
    Taken {
        /// The file.
        path: String,
        /// Whose it is, and what to do.
        why: String,
    },
    /// A word cannot be on the command line.
    #[error(transparent)]
    Word(#[from] WordError),
    /// The entry is not there when it is read back.
    #[error("{path}: our entry is not there when it is read back; report this with the file")]
    NotWritten {
        /// The file.
        path: String,
    },
}

/// What a boot loader's file gives for our entry.
struct Written {
    changes: Vec<Change>,
    printed: Option<String>,
}

/// What differs from boot loader to boot loader.
trait Method: Debug + Send + Sync {
    /// Makes the entry with edited words.
    fn write(&self, view: &View<'_>, words: &[Word]) -> Result<Written, BootError>;

    /// Our entry, read from the files.
    fn entry(&self, view: &View<'_>) -> Result<Option<Entry>, BootError>;

    /// Boots it once.
    fn trial(&self, view: &View<'_>) -> Result<Vec<Change>, BootError>;

    /// Makes it the default; it is there.
    fn confirm(&self, view: &View<'_>) -> Result<Vec<Change>, BootError>;

    /// How far it is.
    fn standing(&self, view: &View<'_>) -> Result<Standing, BootError>;

    /// Takes it out, for when no journal is there to do so: what others wrote stays.
    fn removal(&self, view: &View<'_>) -> Result<Vec<Change>, BootError>;

    /// Bytes that the boot loader puts before the command line of an entry.
    fn added_bytes(&self, entry: &Entry) -> usize {
        let _ = entry;
        0
    }

    /// What reboot(2) is told for the trial.
    fn reboot(&self) -> Option<String> {
        None
    }

    /// What happens when the trial does not come up.
    fn fallback(&self) -> String {
        BY_HAND.into()
    }

    /// What happens where there is no trial.
    fn by_hand(&self) -> String {
        BY_HAND.into()
    }
}

/// What more than one boot loader wants to know.
struct Around {
    /// Release of the running kernel.
    release: Option<String>,
    /// Its command line.
    cmdline: Option<String>,
    firmware: efi::Firmware,
    limit: usize,
}

impl Around {
    fn read(root: &Root) -> Self {
        let release = root.trimmed("/proc/sys/kernel/osrelease").value().cloned();
        let of_version = || {
            let version = root.trimmed("/proc/version");
            version.value()?.split_whitespace().nth(2).map(str::to_owned)
        };
        Self {
            release: release.or_else(of_version).filter(|release| !release.is_empty()),
            cmdline: root.trimmed("/proc/cmdline").value().cloned(),
            firmware: efi::Firmware::read(root),
            limit: cmdline::limit(root),
        }
    }

    /// Whether the running kernel was started by a boot loader that says what it started, as GRUB
    /// does; `true` where the command line is not known.
    fn has_boot_image(&self) -> bool {
        self.cmdline.as_deref().is_none_or(|line| cmdline::has(line, "BOOT_IMAGE"))
    }

    /// Whether a kernel's file is that of the running kernel.
    fn is_running(&self, kernel: &str) -> bool {
        let name = kernel.rsplit('/').next().unwrap_or_default();
        let is_it = |release| name.strip_suffix(release).is_some_and(|kind| kind.ends_with('-'));
        self.release.as_deref().is_some_and(is_it)
    }
}

/// Looks for one boot loader.
type Detector = fn(&View<'_>, &Around) -> Result<Option<Loader>, BootError>;

/// Reads the boot loader of a machine.
///
/// # Errors
/// A file of it cannot be read or understood.
pub fn detect(root: &Root) -> Result<Loader, BootError> {
    let view = View::new(root);
    let around = Around::read(root);
    if let Some(loader) = elsewhere::detect(&view, &around) {
        return Ok(loader);
    }
    // Who says that it started this system did; else files tell, the most telling first.
    let is_systemd = around.firmware.loader.as_deref().is_some_and(|n| n.starts_with("systemd"));
    let detectors: [Detector; 4] = match is_systemd {
        true => [systemd_boot::detect, raspberry::detect, grub::detect, extlinux::detect],
        false => [raspberry::detect, grub::detect, systemd_boot::detect, extlinux::detect],
    };
    for detect in detectors {
        if let Some(loader) = detect(&view, &around)? {
            return Ok(loader);
        }
    }
    Ok(elsewhere::unknown(&view, &around))
}

impl Loader {
    /// Our entry: a copy of [`Loader::base`] with these words.
    ///
    /// # Errors
    /// A word that cannot be there, a line that is too long, a file of somebody else in the way, an
    /// entry that does not read back as asked.
    pub fn real_time(&self, root: &Root, words: &[Word]) -> Result<BootChanges, BootError> {
        let here = View::new(root);
        let base = self.base.as_ref().map_or("", |base| base.cmdline.as_str());
        let mut words = words.to_vec();
        let is_panic = |word: &Word| word.name() == "panic";
        if self.no_entry.is_none() && !cmdline::has(base, PANIC) && !words.iter().any(is_panic) {
            words.push(Word::set(PANIC));
        }
        let written = self.method.write(&here, &words)?;
        if let Some(why) = &self.no_entry {
            let cmdline = cmdline::edited(base, &words)?;
            cmdline::fits(&cmdline, 0, self.limit)?;
            return Ok(BootChanges {
                entry: vec![],
                trial: vec![],
                confirm: vec![],
                reboot: None,
                fallback: NOTHING_WRITTEN.into(),
                cmdline,
                printed: written.printed.or_else(|| Some(format!("{why}\n"))),
            });
        }
        let then = View::with(root, &written.changes);
        let Some(entry) = self.method.entry(&then)? else {
            return Err(BootError::NotWritten { path: self.files.join(", ") });
        };
        cmdline::check(&entry.cmdline, &words)?;
        cmdline::fits(&entry.cmdline, self.method.added_bytes(&entry), self.limit)?;
        let (trial, reboot, mut fallback) = match self.no_trial {
            Some(_) => (vec![], None, self.method.by_hand()),
            None => (self.method.trial(&then)?, self.method.reboot(), self.method.fallback()),
        };
        if !cmdline::resets_on_panic(&entry.cmdline) {
            fallback += "; the entry says panic=0, so after a panic it does not reset by itself";
        }
        let confirm = self.method.confirm(&then)?;
        Ok(BootChanges {
            entry: written.changes,
            trial,
            confirm,
            reboot,
            fallback,
            cmdline: entry.cmdline,
            printed: written.printed,
        })
    }

    /// Our entry as the files have it now, for the parse back: `None` when there is none. Its
    /// kernel beside that of [`Loader::default`] tells whether the default has a newer one.
    ///
    /// # Errors
    /// A file cannot be read or understood.
    pub fn entry(&self, root: &Root) -> Result<Option<Entry>, BootError> {
        self.method.entry(&View::new(root))
    }

    /// The command line of our entry as the files have it now.
    ///
    /// # Errors
    /// As [`Loader::entry`].
    pub fn entry_cmdline(&self, root: &Root) -> Result<Option<String>, BootError> {
        Ok(self.entry(root)?.map(|entry| entry.cmdline))
    }

    /// How far our entry is.
    ///
    /// # Errors
    /// A file cannot be read or understood.
    pub fn standing(&self, root: &Root) -> Result<Standing, BootError> {
        self.method.standing(&View::new(root))
    }

    /// What boots our entry once, from the files as they are now; empty where
    /// [`Loader::no_trial`] says why.
    ///
    /// # Errors
    /// There is no entry of ours.
    pub fn trial(&self, root: &Root) -> Result<Vec<Change>, BootError> {
        self.there(root)?;
        match self.no_trial {
            Some(_) => Ok(vec![]),
            None => self.method.trial(&View::new(root)),
        }
    }

    /// What makes our entry the default, from the files as they are now.
    ///
    /// # Errors
    /// There is no entry of ours, or a file cannot be read or understood.
    pub fn confirm(&self, root: &Root) -> Result<Vec<Change>, BootError> {
        self.there(root)?;
        self.method.confirm(&View::new(root))
    }

    /// What takes our entry out, from the files as they are now, for when no journal is there to do
    /// so. What others wrote stays to the byte.
    ///
    /// # Errors
    /// A file cannot be read or understood.
    pub fn removal(&self, root: &Root) -> Result<Vec<Change>, BootError> {
        self.method.removal(&View::new(root))
    }

    fn there(&self, root: &Root) -> Result<(), BootError> {
        if self.entry(root)?.is_some() {
            return Ok(());
        }
        let why = "there is no entry of rtproof; make it first".into();
        Err(BootError::NoEntry { path: self.files.join(", "), why })
    }
}
