//! Where the files of a kernel are prepared, how files and folders are put in place whole, and the
//! mark of a journal that waits for a confirmation.

#![expect(clippy::disallowed_methods, reason = "the gate's other half")]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FlockOperation, RenameFlags},
    io::Errno,
};

use super::journal::make_folders;
use super::writes::{Gate, TreeFile, is_absent, read_tree, temporary_path};
use super::{FOLDER, Machine, writes};
use crate::change::{Change, STAGING};
use crate::{Root, task, trusted};

// Where the files of a kernel are prepared before a journal names them: a folder of rtproof's own,
// one at a time. Nothing in it is in force; it goes with the process, or, after a kill, with the
// next trial or undo.

/// The process that holds the lock.
const LOCK: &str = "/var/lib/rtproof/tune/kernel.lock";

/// The folder, held until it is dropped.
#[derive(Debug)]
pub struct Staging {
    real: PathBuf,
    _lock: File,
}

impl Staging {
    /// An empty folder; what a run that was killed left in it is removed.
    ///
    /// # Errors
    /// Another rtproof holds the lock, or it cannot be made.
    pub fn begin(machine: &Machine<'_>) -> io::Result<Self> {
        make_folders(machine)?;
        let Some(lock) = lock_staging(machine)? else {
            return Err(io::Error::other(format!(
                "{LOCK}: another rtproof prepares a kernel; wait until it is done"
            )));
        };
        let real = machine.root.entry(STAGING)?;
        empty(&real)?;
        machine.gate.make_folder(STAGING, 0o700)?;
        Ok(Self { real, _lock: lock })
    }

    /// The folder, of the system that rtproof runs on.
    pub fn path(&self) -> &Path {
        &self.real
    }

    /// The change that puts something that is prepared in its place.
    pub fn placed(&self, name: &str, path: String) -> io::Result<Change> {
        let files = read_tree(&self.real.join(name))?.unwrap_or_default();
        Ok(Change::Placed {
            path,
            from: format!("{STAGING}/{name}"),
            digest: writes::digest(&files),
            files: writes::tree_count(&files),
            bytes: writes::tree_bytes(&files),
        })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What stays is removed by the next one.
        let _ = empty(&self.real);
    }
}

impl Machine<'_> {
    /// Removes files staged by a killed run; those of a running one stay.
    pub fn sweep_staging(&self) -> io::Result<()> {
        let real = match self.root.entry(STAGING) {
            Ok(real) if fs::symlink_metadata(&real).is_ok() => real,
            _ => return Ok(()),
        };
        match lock_staging(self)? {
            Some(_lock) => empty(&real),
            None => Ok(()),
        }
    }

    /// Bytes that are free on the file system of a path, for root; of the first folder above it
    /// that is there.
    ///
    /// # Errors
    /// The file system does not say so.
    pub fn free_bytes(&self, path: &str) -> io::Result<u64> {
        let mut path = path;
        loop {
            let real = self.root.place(path);
            match real.and_then(|real| Ok(rustix::fs::statvfs(real)?)) {
                Ok(there) => return Ok(there.f_bavail.saturating_mul(there.f_frsize)),
                Err(error) if is_absent(&error) && path.len() > 1 => {
                    path = path.rsplit_once('/').map_or("/", |(above, _)| above);
                    path = if path.is_empty() { "/" } else { path };
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether two paths are on one file system, as far as it is known.
    pub fn is_same_disk(&self, one: &str, other: &str) -> bool {
        let device = |path: &str| {
            use std::os::unix::fs::MetadataExt;
            Some(fs::metadata(self.root.place(path).ok()?).ok()?.dev())
        };
        device(one).is_some() && device(one) == device(other)
    }

    /// Bytes of a file; `None`: it is not there or cannot be read.
    pub fn file_bytes(&self, path: &str) -> Option<u64> {
        Some(fs::metadata(self.root.place(path).ok()?).ok()?.len())
    }
}

/// The lock; `None`: another process has it.
fn lock_staging(machine: &Machine<'_>) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = machine.gate.own_file(LOCK, options.write(true).create(true).truncate(false))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn empty(real: &Path) -> io::Result<()> {
    match fs::remove_dir_all(real) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

// The mark of a journal that waits for a confirmation, and what becomes of it: `unconfirmed`, then
// `confirmed`, or `expired` when time was up. A journal of `rtproof run` is marked `running`.
// Renaming it is one step of the file system, so that
// only one of the two can do it; only a mark that says so is a confirmation, never a missing one.
// Whoever takes the changes back holds a lock on the mark, which ends with it.

/// How a journal waits, or waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// It has to be confirmed.
    Pending,
    /// It was not, and the rollback timer is undoing it, or was killed while it did.
    Expired,
    Confirmed,
    /// It needs no confirmation: a program runs, and it is undone at its end.
    Running,
}

impl Confirmation {
    const ALL: [Self; 4] = [Self::Pending, Self::Expired, Self::Confirmed, Self::Running];

    fn path(self, number: u32) -> String {
        let ending = match self {
            Self::Pending => "unconfirmed",
            Self::Expired => "expired",
            Self::Confirmed => "confirmed",
            Self::Running => "running",
        };
        format!("{FOLDER}/{number:04}.{ending}")
    }
}

/// What the mark of a journal says; `None`: there is none, or it cannot be read.
pub fn confirmation_of(root: &Root, number: u32) -> Option<Confirmation> {
    let is_there = |of: &Confirmation| root.read_bytes(&of.path(number)).value().is_some();
    Confirmation::ALL.into_iter().find(is_there)
}

/// Whether a journal waits: its changes are undone, or should be.
pub fn is_unconfirmed(root: &Root, number: u32) -> bool {
    matches!(confirmation_of(root, number), Some(Confirmation::Pending | Confirmation::Expired))
}

/// Whether a journal is undone when a program ends.
pub fn is_of_program(root: &Root, number: u32) -> bool {
    confirmation_of(root, number) == Some(Confirmation::Running)
}

/// Marks a journal that has to be confirmed, on disk before anything is changed.
pub fn set_confirmation(machine: &Machine<'_>, number: u32) -> io::Result<()> {
    mark(machine, Confirmation::Pending.path(number), "waits for: rtproof tune confirm")
}

/// Marks a journal that is undone when a program ends, on disk before anything is changed.
pub fn set_running(machine: &Machine<'_>, number: u32) -> io::Result<()> {
    mark(machine, Confirmation::Running.path(number), "undone when the program of rtproof run ends")
}

fn mark(machine: &Machine<'_>, path: String, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true);
    let mut file = machine.gate.own_file(&path, options)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    machine.gate.sync_folder_of(&path)
}

/// The lock of whoever takes a journal back, for as long as the file is open; `None`: there is no
/// mark, or another has it.
pub fn guard(root: &Root, number: u32) -> Option<File> {
    lock_confirmation(root, number, FlockOperation::NonBlockingLockExclusive).ok().flatten()
}

/// Whether another process holds that lock. What cannot be asked is not guarded.
pub fn is_guarded(root: &Root, number: u32) -> bool {
    let asked = lock_confirmation(root, number, FlockOperation::NonBlockingLockShared);
    asked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Whether the process that holds that lock is stopped: it takes nothing back until it goes on. The
/// kernel lists who holds a lock; where it does not, nobody is known to be stopped.
pub fn is_guard_stopped(root: &Root, number: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Some(of) = confirmation_of(root, number) else { return false };
    let mark = root.place(&of.path(number)).and_then(fs::metadata);
    let live = Root::live();
    let locks = live.read_text("/proc/locks");
    let (Ok(mark), Some(locks)) = (mark, locks.value()) else { return false };
    // `1: FLOCK  ADVISORY  WRITE 812 fd:00:1311 0 EOF`; the device is the kernel's own, not stat's.
    locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, _, pid, file, ..] = words.as_slice() else { return false };
        let is_it = file.rsplit(':').next() == Some(&mark.ino().to_string());
        is_it && pid.parse().is_ok_and(|pid| task::is_stopped(&live, pid))
    })
}

fn lock_confirmation(root: &Root, number: u32, how: FlockOperation) -> io::Result<Option<File>> {
    let Some(of) = confirmation_of(root, number) else { return Ok(None) };
    let file = trusted::open(&root.entry(&of.path(number))?)?;
    match rustix::fs::flock(&file, how) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

/// Confirms a journal; `false`: it does not wait, or its time was up before.
pub fn confirm(machine: &Machine<'_>, number: u32) -> io::Result<bool> {
    rename(machine, number, Confirmation::Confirmed)
}

/// Says that time is up; `false`: it was confirmed before, or has no mark.
pub fn expire(machine: &Machine<'_>, number: u32) -> io::Result<bool> {
    let now = rename(machine, number, Confirmation::Expired)?;
    // Expired before, by a rollback timer that was killed then.
    Ok(now || confirmation_of(machine.root(), number) == Some(Confirmation::Expired))
}

fn rename(machine: &Machine<'_>, number: u32, to: Confirmation) -> io::Result<bool> {
    let (from, to) = (Confirmation::Pending.path(number), to.path(number));
    let root = machine.root();
    let from = match root.entry(&from) {
        Err(error) if is_absent(&error) => return Ok(false),
        from => from?,
    };
    match fs::rename(from, root.entry(&to)?) {
        Ok(()) => machine.gate.sync_folder_of(&to).map(|()| true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the marks of a journal that was undone.
///
/// # Errors
/// When a mark cannot be taken away.
pub fn clear(machine: &Machine<'_>, number: u32) -> io::Result<()> {
    Confirmation::ALL.into_iter().try_for_each(|of| remove(machine, &of.path(number)))
}

fn remove(machine: &Machine<'_>, path: &str) -> io::Result<()> {
    let real = match machine.root().entry(path) {
        Err(error) if is_absent(&error) => return Ok(()),
        real => real?,
    };
    match fs::remove_file(real) {
        Ok(()) => machine.gate.sync_folder_of(path),
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

// Files and folders that are put in place whole, and removed so: one thing that the machine sees.

/// The label by which SELinux decides on access to a file.
const LABEL: &str = "security.selinux";

impl Gate<'_> {
    /// What is at a path.
    pub(super) fn tree(&self, path: &str) -> io::Result<Option<Vec<TreeFile>>> {
        match self.root.entry(path) {
            Ok(real) => read_tree(&real),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts what is prepared in place, where nothing is: whole, or not at all.
    pub(super) fn place(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.root.entry(from)?, self.root.entry(to)?);
        self.step()?;
        label(&from, &to, LABEL)?;
        // What is in it has to be on disk before its name is.
        self.step()?;
        rustix::fs::syncfs(File::open(&from)?)?;
        self.step()?;
        match rename_new(&from, &to) {
            Err(error) if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {}
            renamed => return renamed.and_then(|()| self.sync_folder(&to)),
        }
        let temporary = temporary_path(&to)?;
        self.remove_all(&temporary)?;
        self.step()?;
        let placed = copy(&from, &temporary).and_then(|()| {
            rustix::fs::syncfs(File::open(&temporary)?)?;
            self.step()?;
            rename_new(&temporary, &to)
        });
        if placed.is_err() {
            let _ = self.remove_all(&temporary);
        }
        placed.and_then(|()| self.sync_folder(&to))
    }

    /// Removes it whole: at once under its name, then what was in it.
    pub(super) fn remove_tree(&self, path: &str) -> io::Result<()> {
        let real = self.root.entry(path)?;
        let temporary = temporary_path(&real)?;
        self.remove_all(&temporary)?;
        self.step()?;
        fs::rename(&real, &temporary)?;
        self.sync_folder(&real)?;
        self.remove_all(&temporary)
    }

    /// Removes the files of it that are still as they were, and folders that are empty then.
    pub(super) fn remove_of_tree(&self, path: &str, ours: &[TreeFile]) -> io::Result<()> {
        let real = self.root.entry(path)?;
        for file in read_tree(&real)?.unwrap_or_default().iter().rev() {
            if !ours.contains(file) {
                continue;
            }
            let place = if file.path.is_empty() { real.clone() } else { real.join(&file.path) };
            self.step()?;
            match file.is_folder() {
                false => fs::remove_file(&place)?,
                true => match fs::remove_dir(&place) {
                    Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                    removed => removed?,
                },
            }
        }
        self.sync_folder(&real)
    }

    /// Removes what a [`Gate::place`] or [`Gate::remove_tree`] that was cut short left.
    pub(super) fn clean_tree(&self, path: &str) -> io::Result<()> {
        match self.root.entry(path) {
            Ok(real) => self.remove_all(&temporary_path(&real)?),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn remove_all(&self, real: &Path) -> io::Result<()> {
        match fs::symlink_metadata(real) {
            Ok(meta) => {
                self.step()?;
                if meta.is_dir() { fs::remove_dir_all(real) } else { fs::remove_file(real) }
            }
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Gives what is to be moved the label of the folder that it comes into, as if it had been made
/// there: with SELinux udev loads no module that has the label of /var/lib.
fn label(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let Some(folder) = to.parent() else { return Ok(()) };
    let mut value = [0; 4096];
    let length = match rustix::fs::lgetxattr(folder, name, &mut value[..]) {
        Ok(length) => length,
        Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    for file in read_tree(from)?.unwrap_or_default() {
        let path = if file.path.is_empty() { from.to_owned() } else { from.join(&file.path) };
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::lsetxattr(&path, name, &value[..length], flags)?;
    }
    Ok(())
}

/// Renames to a name that nothing has.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system without this flag (NFS, FAT).
        Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(to).is_err() => {
            fs::rename(from, to)
        }
        renamed => Ok(renamed?),
    }
}

/// Copies a file, or a folder with the files in it, with permissions and times.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(from)?;
    if meta.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return fs::set_permissions(to, meta.permissions());
    }
    if !meta.is_file() {
        return Err(io::Error::other(format!("{}: no regular file", from.display())));
    }
    let mut source = File::open(from)?;
    let mut target = File::options().write(true).create_new(true).open(to)?;
    io::copy(&mut source, &mut target)?;
    // Permissions of a FAT are its own.
    let _ = target.set_permissions(meta.permissions());
    target.set_modified(meta.modified()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;
    use crate::tune::writes::{digest, tree_bytes, tree_count};

    #[test]
    fn what_comes_into_a_folder_has_its_label() {
        let tree = Tree::new(&[("from/x/one", "1"), ("lib/other", "")]);
        let (from, lib) = (tree.path().join("from"), tree.path().join("lib"));
        let flags = rustix::fs::XattrFlags::empty();
        assert!(label(&from, &lib.join("a"), "user.label").is_ok(), "none there");
        if rustix::fs::setxattr(&lib, "user.label", b"modules", flags).is_err() {
            return; // A file system without attributes.
        }
        label(&from, &lib.join("a"), "user.label").unwrap();
        for path in ["from", "from/x", "from/x/one"] {
            let mut value = [0; 16];
            let length = rustix::fs::getxattr(tree.path().join(path), "user.label", &mut value[..]);
            assert_eq!(&value[..length.unwrap()], b"modules", "{path}");
        }
    }

    #[test]
    fn a_tree_is_copied_with_times_and_compared_without_those_of_folders() {
        let tree = Tree::new(&[("a/x/one", "1"), ("a/two", "22"), ("a/y/z/three", "")]);
        let (from, to) = (tree.path().join("a"), tree.path().join("b"));
        copy(&from, &to).unwrap();
        let (one, two) = (read_tree(&from).unwrap().unwrap(), read_tree(&to).unwrap().unwrap());
        assert_eq!(one, two);
        assert_eq!((tree_count(&one), tree_bytes(&one), one.len()), (3, 3, 7));
        assert_eq!(digest(&one), digest(&two));
        fs::write(to.join("two"), "23").unwrap();
        assert_ne!(digest(&one), digest(&read_tree(&to).unwrap().unwrap()));
        assert_eq!(read_tree(&tree.path().join("c")).unwrap(), None);
        assert!(rename_new(&from, &to).is_err(), "taken");
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
        assert!(copy(&from, &tree.path().join("d")).is_err(), "no links");
    }
}
