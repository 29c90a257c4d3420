//! A file or folder that was put in place whole: what is in it, by name, size, kind and time, so
//! that undo removes what is still as it was put there, and nothing else.

#![expect(clippy::disallowed_methods, reason = "this is the gate's other half")]

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::{
    fs::{CWD, RenameFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::writes::{Gate, beside, is_absent};
use crate::text::hex;

/// Files and folders of one tree that are read: a distribution's kernel has some 5 000.
const FILES_MAX: usize = 200_000;

/// The label by which SELinux decides who may do what with a file.
const LABEL: &str = "security.selinux";

/// One file, folder or link of a tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeFile {
    /// Path below the top; empty for the top itself.
    pub path: String,
    /// Kind and permissions, as stat(2) has them.
    pub mode: u32,
    /// Size in bytes; 0 for a folder.
    #[serde(default)]
    pub bytes: u64,
    /// Last modification, nanoseconds since 1970; 0 for a folder, which others may touch.
    #[serde(default)]
    pub modified_ns: i64,
}

/// What is at a path, its top first; `None`: nothing.
pub(super) fn read(real: &Path) -> io::Result<Option<Vec<TreeFile>>> {
    let top = match fs::symlink_metadata(real) {
        Ok(meta) => meta,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut files = vec![entry(String::new(), &top)];
    let mut folders = if top.is_dir() { vec![String::new()] } else { Vec::new() };
    while let Some(folder) = folders.pop() {
        for entry_of in fs::read_dir(real.join(&folder))? {
            let entry_of = entry_of?;
            let name = entry_of.file_name();
            let name = name.to_str().ok_or_else(|| io::Error::other("a name that is no text"))?;
            let path = if folder.is_empty() { name.into() } else { format!("{folder}/{name}") };
            let meta = entry_of.metadata()?;
            if meta.is_dir() {
                folders.push(path.clone());
            }
            files.push(entry(path, &meta));
            if files.len() > FILES_MAX {
                return Err(io::Error::other(format!("more than {FILES_MAX} files")));
            }
        }
    }
    files.sort_unstable();
    Ok(Some(files))
}

fn entry(path: String, meta: &fs::Metadata) -> TreeFile {
    let is_folder = meta.is_dir();
    let modified_ns = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
    TreeFile {
        path,
        mode: meta.mode(),
        bytes: if is_folder { 0 } else { meta.len() },
        modified_ns: if is_folder { 0 } else { modified_ns },
    }
}

/// Names, kinds, sizes and times as one number.
pub(super) fn digest(files: &[TreeFile]) -> String {
    let mut digest = Sha256::new();
    for TreeFile { path, mode, bytes, modified_ns } in files {
        digest.update(format!("{path}\0{mode} {bytes} {modified_ns}\n"));
    }
    hex(&digest.finalize()[..16])
}

/// Bytes of all files.
pub(super) fn bytes(files: &[TreeFile]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

/// Files and links, folders not counted.
pub(super) fn count(files: &[TreeFile]) -> usize {
    files.iter().filter(|file| !file.is_folder()).count()
}

impl TreeFile {
    /// Whether it is a folder.
    #[must_use]
    pub const fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }
}

impl Gate<'_> {
    /// What is at a path.
    pub(super) fn tree(&self, path: &str) -> io::Result<Option<Vec<TreeFile>>> {
        match self.root.entry(path) {
            Ok(real) => read(&real),
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
        let beside = beside(&to)?;
        self.remove_all(&beside)?;
        self.step()?;
        let placed = copy(&from, &beside).and_then(|()| {
            rustix::fs::syncfs(File::open(&beside)?)?;
            self.step()?;
            rename_new(&beside, &to)
        });
        if placed.is_err() {
            let _ = self.remove_all(&beside);
        }
        placed.and_then(|()| self.sync_folder(&to))
    }

    /// Removes it whole: at once under its name, then what was in it.
    pub(super) fn remove_tree(&self, path: &str) -> io::Result<()> {
        let real = self.root.entry(path)?;
        let beside = beside(&real)?;
        self.remove_all(&beside)?;
        self.step()?;
        fs::rename(&real, &beside)?;
        self.sync_folder(&real)?;
        self.remove_all(&beside)
    }

    /// Removes the files of it that are still as they were, and folders that are empty then.
    pub(super) fn remove_of_tree(&self, path: &str, ours: &[TreeFile]) -> io::Result<()> {
        let real = self.root.entry(path)?;
        for file in read(&real)?.unwrap_or_default().iter().rev() {
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
            Ok(real) => self.remove_all(&beside(&real)?),
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
    for file in read(from)?.unwrap_or_default() {
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
        let (one, two) = (read(&from).unwrap().unwrap(), read(&to).unwrap().unwrap());
        assert_eq!(one, two);
        assert_eq!((count(&one), bytes(&one), one.len()), (3, 3, 7));
        assert_eq!(digest(&one), digest(&two));
        fs::write(to.join("two"), "23").unwrap();
        assert_ne!(digest(&one), digest(&read(&to).unwrap().unwrap()));
        assert_eq!(read(&tree.path().join("c")).unwrap(), None);
        assert!(rename_new(&from, &to).is_err(), "taken");
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
        assert!(copy(&from, &tree.path().join("d")).is_err(), "no links");
    }
}
