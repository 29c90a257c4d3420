//! The live machine, or a folder with the files of one: questions to a file system.
//!
//! Inside a folder links are followed here and not by the kernel, so that neither
//! `/etc/x -> /usr/y` nor `..` leaves it (openat2(RESOLVE_IN_ROOT) would do, but needs Linux 5.6).

#![expect(clippy::disallowed_methods, reason = "this is the gate")]

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Component, Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};

use super::error::RootError;
use crate::refusal::{LINKS_MAX, READ_BYTES_MAX};

/// Read at once: most files whole. `read_to_end` would ask for 32 bytes, then 32, then 64 ...,
/// because the size of a file of the kernel is not known.
const CHUNK_BYTES: usize = 8 << 10;

/// Where the files are.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// Folder of a captured machine, `None` for the live one.
    dir: Option<PathBuf>,
}

impl Disk {
    pub(super) const fn live() -> Self {
        Self { dir: None }
    }

    /// `/` itself is the live machine.
    pub(super) fn folder(path: &Path) -> Result<Self, RootError> {
        let open = |source| RootError::Open { path: path.into(), source };
        let dir = fs::canonicalize(path).map_err(open)?;
        if !fs::metadata(&dir).map_err(open)?.is_dir() {
            return Err(RootError::NotAFolder(path.into()));
        }
        fs::read_dir(&dir).map_err(open)?;
        Ok(Self { dir: (dir != Path::new("/")).then_some(dir) })
    }

    pub(super) const fn is_live(&self) -> bool {
        self.dir.is_none()
    }

    /// At most one byte more than is taken.
    pub(super) fn bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut file = self.open(path)?.take(READ_BYTES_MAX + 1);
        let mut bytes = Vec::new();
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(bytes),
                Ok(length) => bytes.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sorted by byte.
    pub(super) fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.resolve(path, true)?)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn link(&self, path: &str) -> io::Result<String> {
        let target = self.resolve(path, false).and_then(fs::read_link)?;
        Ok(target.to_string_lossy().into_owned())
    }

    pub(super) fn look(&self, path: &str) -> io::Result<()> {
        self.resolve(path, false).and_then(fs::symlink_metadata).map(drop)
    }

    /// Never blocks: a FIFO in a captured tree is opened without waiting for its writer, and then
    /// turned away.
    pub(super) fn open(&self, path: &str) -> io::Result<File> {
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let real = self.resolve(path, true)?;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(real)?;
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(Errno::ISDIR.into());
        }
        if !kind.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        Ok(file)
    }

    /// Where a path is; its last part need not be there, and is not followed where it is a link.
    pub(super) fn entry(&self, path: &str) -> io::Result<PathBuf> {
        let path = Path::new(path);
        let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else {
            return Err(Errno::INVAL.into());
        };
        let folder = folder.to_str().ok_or(Errno::INVAL)?;
        Ok(self.resolve(folder, true)?.join(name))
    }

    pub(super) fn resolve(&self, path: &str, follow_last: bool) -> io::Result<PathBuf> {
        let Some(dir) = &self.dir else {
            return Ok(Path::new("/").join(path));
        };
        let mut links = 0;
        let mut inside = PathBuf::new();
        let mut todo = parts(Path::new(path));
        while let Some(part) = todo.pop() {
            if part == ".." {
                inside.pop();
                continue;
            }
            let here = dir.join(&inside).join(&part);
            let is_link = fs::symlink_metadata(&here)?.file_type().is_symlink();
            if !is_link || (todo.is_empty() && !follow_last) {
                inside.push(part);
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            let target = fs::read_link(&here)?;
            if target.is_absolute() {
                inside.clear();
            }
            todo.extend(parts(&target));
        }
        Ok(dir.join(inside))
    }
}

/// Components in reverse, to be popped; only names and `..`.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}
