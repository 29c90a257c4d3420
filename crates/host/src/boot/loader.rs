//! A boot loader, its entries, and what makes ours.

pub(super) use super::cmdline::Word;
pub(super) use super::{BootError, BootView};
pub(super) use crate::change::Change;

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{cmdline, efi};
use crate::Root;

/// Title of our entry in menus.
pub const TITLE: &str = "rtproof real-time";

/// Identity of our entry, where a boot loader has one.
pub const ID: &str = "rtproof-real-time";

/// After a panic the kernel resets by itself, in seconds: else no one would see that it fell back.
pub(super) const PANIC: &str = "panic=10";

/// Where nothing is written.
pub(super) const NOTHING_WRITTEN: &str =
    "nothing is written here, so nothing falls back by itself: keep the old command line at hand";

/// Where nothing falls back.
pub(super) const MANUAL: &str =
    "nothing falls back by itself: choose the old entry in the boot menu";

/// How a trial ends that does not come up; what forgets the choice is put before it.
pub(super) const AFTER_A_TRIAL: &str = concat!(
    "after a reset, a panic (after which the kernel resets by itself) or a power cycle the old ",
    "default boots; a kernel that hangs without a panic needs a watchdog or a hand on the power ",
    "switch",
);

/// Which boot loader, and how it learns of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoaderKind {
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
    /// Nothing that may be written: the command line is kept elsewhere.
    Elsewhere,
}

/// One entry of a boot loader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootEntry {
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
    pub kind: LoaderKind,
    /// Its name, for people.
    pub name: String,
    /// Files that say what boots.
    pub files: Vec<String>,
    /// What boots next without a choice, our own entry not considered.
    pub default: Option<BootEntry>,
    /// What our entry is a copy of: the entry of the running kernel, else the default.
    pub base: Option<BootEntry>,
    /// Whether that is an entry of the kernel that was asked for: the running one, if no other.
    pub is_of_release: bool,
    /// Kernels of all entries but ours, as the boot loader has them.
    pub kernels: Vec<String>,
    /// Whether the firmware checks signatures; `None` without UEFI or where it is not known.
    pub secure_boot: Option<bool>,
    /// Why our entry cannot be booted once with a way back; `None` when it can.
    pub no_trial: Option<String>,
    /// Why no entry can be written; `None` when it can.
    pub no_entry: Option<String>,
    /// Identity of our entry.
    pub id: String,
    /// Bytes of a command line that the kernel takes.
    pub(super) limit: usize,
    pub(super) method: Box<dyn Method>,
}

/// Our entry, as changes for the engine. Each list is complete by itself and made in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootChanges {
    /// Make the entry. The default stays the default.
    pub entry: Vec<Change>,
    /// Boot it once, with the next boot. Empty where that cannot be done safely (see
    /// [`Loader::no_trial`]) and where [`BootChanges::reboot`] is all that it takes.
    pub trial: Vec<Change>,
    /// Make it the default.
    pub confirm: Vec<Change>,
    /// The argument of reboot(2) for the trial, e.g. `0 tryboot`; `None`: a plain reboot.
    pub reboot: Option<String>,
    /// What happens when it does not come up, as a sentence.
    pub fallback: String,
    /// Command line of the entry, as it was read back from the changes.
    pub cmdline: String,
    /// What a human has to do where nothing may be written.
    pub printed: Option<String>,
}

/// How far our entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OwnEntryState {
    Absent,
    /// It is there and boots when it is chosen.
    Written,
    /// It boots with the next boot, once.
    Armed,
    /// It is the default.
    Default,
}

/// What a boot loader's file gives for our entry.
pub(super) struct WrittenEntry {
    pub(super) changes: Vec<Change>,
    pub(super) printed: Option<String>,
}

/// What differs from boot loader to boot loader.
pub(super) trait Method: Debug + Send + Sync {
    /// Makes the entry with edited words.
    fn write(&self, view: &BootView<'_>, words: &[Word]) -> Result<WrittenEntry, BootError>;

    /// Our entry, read from the files.
    fn entry(&self, view: &BootView<'_>) -> Result<Option<BootEntry>, BootError>;

    fn trial(&self, _: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![])
    }

    /// Makes it the default; it is there.
    fn confirm(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError>;

    /// Keeps the default that is there when a kernel is installed; `None` where that is not known.
    fn keep(&self, _: &BootView<'_>) -> Result<Option<Change>, BootError> {
        Ok(None)
    }

    /// Whether our entry is the one for the next boot alone.
    fn is_armed(&self, _: &BootView<'_>) -> Result<bool, BootError> {
        Ok(false)
    }

    /// Whether our entry is the default.
    fn is_default(&self, view: &BootView<'_>) -> Result<bool, BootError>;

    /// Takes it out, for when no journal is there to do so: what others wrote stays.
    fn removal(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError>;

    /// Boots another kernel than the base does.
    fn take(&mut self, _: super::KernelFiles) -> Result<(), String> {
        Err("its entries cannot be made for a kernel of rtproof's own; install the package and \
             give --kernel VERSION"
            .into())
    }

    /// Bytes that the boot loader puts before the command line of an entry.
    fn added_bytes(&self, _: &BootEntry) -> usize {
        0
    }

    /// The argument of reboot(2) for the trial.
    fn reboot(&self) -> Option<String> {
        None
    }

    /// What happens when the trial does not come up.
    fn fallback(&self) -> String {
        MANUAL.into()
    }

    /// What happens where there is no trial.
    fn manual_step(&self) -> String {
        MANUAL.into()
    }
}

/// What more than one boot loader wants to know.
pub(super) struct LoaderContext {
    /// Release of the running kernel.
    pub(super) release: Option<String>,
    pub(super) cmdline: Option<String>,
    pub(super) firmware: efi::Firmware,
    pub(super) limit: usize,
}

impl LoaderContext {
    pub(super) fn read(root: &Root) -> Self {
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
    pub(super) fn has_boot_image(&self) -> bool {
        self.cmdline.as_deref().is_none_or(|line| cmdline::has(line, "BOOT_IMAGE"))
    }

    /// Whether a kernel's file is that of the running kernel.
    pub(super) fn is_running(&self, kernel: &str) -> bool {
        let name = kernel.rsplit('/').next().unwrap_or_default();
        let is_it = |release| name.strip_suffix(release).is_some_and(|kind| kind.ends_with('-'));
        self.release.as_deref().is_some_and(is_it)
    }
}

impl Loader {
    /// Our entry: a copy of [`Loader::base`] with these words.
    ///
    /// # Errors
    /// A word that cannot be there, a line that is too long, a foreign file in the way, an
    /// entry that does not read back as requested.
    pub fn real_time(&self, root: &Root, words: &[Word]) -> Result<BootChanges, BootError> {
        let here = BootView::new(root);
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
        let then = BootView::with(root, &written.changes);
        let Some(entry) = self.method.entry(&then)? else {
            return Err(BootError::not_written(self.files.join(", ")));
        };
        cmdline::check(&entry.cmdline, &words)?;
        cmdline::fits(&entry.cmdline, self.method.added_bytes(&entry), self.limit)?;
        let (trial, reboot, mut fallback) = match self.no_trial {
            Some(_) => (vec![], None, self.method.manual_step()),
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
    /// kernel beside that of [`Loader::default`] shows whether the default has a newer one.
    pub fn entry(&self, root: &Root) -> Result<Option<BootEntry>, BootError> {
        self.method.entry(&BootView::new(root))
    }

    /// The command line of our entry as the files have it now.
    ///
    /// # Errors
    /// As [`Loader::entry`].
    pub fn entry_cmdline(&self, root: &Root) -> Result<Option<String>, BootError> {
        Ok(self.entry(root)?.map(|entry| entry.cmdline))
    }

    /// How far our entry is.
    pub fn entry_state(&self, root: &Root) -> Result<OwnEntryState, BootError> {
        let view = BootView::new(root);
        Ok(match () {
            () if self.method.entry(&view)?.is_none() => OwnEntryState::Absent,
            () if self.method.is_armed(&view)? => OwnEntryState::Armed,
            () if self.method.is_default(&view)? => OwnEntryState::Default,
            () => OwnEntryState::Written,
        })
    }

    /// What boots our entry once, from the files as they are now; empty where
    /// [`Loader::no_trial`] says why.
    ///
    /// # Errors
    /// There is no entry of ours.
    pub fn trial(&self, root: &Root) -> Result<Vec<Change>, BootError> {
        self.require_entry(root)?;
        match self.no_trial {
            Some(_) => Ok(vec![]),
            None => self.method.trial(&BootView::new(root)),
        }
    }

    /// What makes our entry the default, from the files as they are now.
    ///
    /// # Errors
    /// There is no entry of ours, or a file cannot be read or understood.
    pub fn confirm(&self, root: &Root) -> Result<Vec<Change>, BootError> {
        self.require_entry(root)?;
        self.method.confirm(&BootView::new(root))
    }

    /// What keeps the default that is there when a kernel is installed; `None`: the kernel that
    /// comes may become the default.
    pub fn keep(&self, root: &Root) -> Result<Option<Change>, BootError> {
        self.method.keep(&BootView::new(root))
    }

    /// What takes our entry out, from the files as they are now, for when no journal is there to do
    /// so. What others wrote stays to the byte.
    pub fn removal(&self, root: &Root) -> Result<Vec<Change>, BootError> {
        self.method.removal(&BootView::new(root))
    }

    /// Lets our entry boot a kernel of rtproof's own, with everything else of the base.
    ///
    /// # Errors
    /// The boot loader has no such entries, or where it finds [`super::FOLDER`] is not known.
    pub fn take_kernel(&mut self, root: &Root, kernel: &super::OwnKernel) -> Result<(), BootError> {
        if let Some(why) = &self.no_entry {
            return Err(BootError::file(&self.name, why));
        }
        let Some(base) = &self.base else {
            return Err(BootError::file(&self.name, "there is no entry to copy"));
        };
        let folder = super::folder(root, &base.kernel)?;
        let here = |path: String| path.replacen(super::FOLDER, &folder, 1);
        let files = super::KernelFiles {
            base: super::release_of(&base.kernel),
            kernel: here(kernel.image()),
            initrd: kernel.initrd().map(here),
            release: kernel.release.clone(),
        };
        self.method.take(files).map_err(|why| BootError::file(&self.name, why))
    }

    fn require_entry(&self, root: &Root) -> Result<(), BootError> {
        if self.entry(root)?.is_some() {
            return Ok(());
        }
        let why = "there is no entry of rtproof; make it first";
        Err(BootError::file(self.files.join(", "), why))
    }
}
