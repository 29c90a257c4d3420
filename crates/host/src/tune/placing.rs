//! Files and folders that are put in place whole, and removed so: one thing that the machine sees.

#![expect(clippy::disallowed_methods, reason = "the gate's other half")]

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use rustix::{
    fs::{CWD, RenameFlags},
    io::Errno,
};

use super::{
    tree::{TreeFile, read},
    writes::{Gate, beside, is_absent},
};

/// The label by which SELinux decides who may do what with a file.
const LABEL: &str = "security.selinux";

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
    use crate::{
        testing::Tree,
        tune::tree::{bytes, count, digest},
    };

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
