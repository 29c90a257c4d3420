//! Questions to a file system: the live machine, or a folder with the files of one.
//!
//! Inside a folder links are followed here and not by the kernel, so that neither
//! `/etc/x -> /usr/y` nor `..` leaves it (openat2(RESOLVE_IN_ROOT) would do, but needs Linux 5.6).

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Component, Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};

use super::RootError;
use crate::reading::{LINKS_MAX, READ_BYTES_MAX};

/// Read at once: most files whole. `read_to_end` would ask for 32 bytes, then 32, then 64 ...,
/// because the size of a file of the kernel is not known.
const CHUNK_BYTES: usize = 8 << 10;

/// Where the files are.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// Folder of a captured machine, `None` for the live one.
    dir: Option<PathBuf>,
    /// The folder of the machine that it is, where it is not all of one.
    part: Option<&'static str>,
}

impl Disk {
    pub(super) const fn live() -> Self {
        Self { dir: None, part: None }
    }

    /// `/` itself is the live machine.
    pub(super) fn folder(path: &Path) -> Result<Self, RootError> {
        let open = |source| RootError::Open { path: path.into(), source };
        let dir = fs::canonicalize(path).map_err(open)?;
        if !fs::metadata(&dir).map_err(open)?.is_dir() {
            return Err(RootError::NotAFolder(path.into()));
        }
        fs::read_dir(&dir).map_err(open)?;
        let dir = (dir != Path::new("/")).then_some(dir);
        Ok(Self { part: dir.as_deref().and_then(part_of), dir })
    }

    /// The folder of the machine that this is, where it is not all of one: a /proc or a /sys.
    pub(super) const fn part(&self) -> Option<&'static str> {
        self.part
    }

    /// Files of /proc and /sys, and those of them that hold no byte though they must.
    pub(super) fn count_files(&self, may_be_empty: fn(&str) -> bool) -> (u64, u64) {
        let (mut all, mut empty) = (0, 0);
        let Some(dir) = &self.dir else { return (all, empty) };
        let mut folders = match self.part {
            Some(part) => vec![(dir.clone(), format!("/{part}"))],
            None => ["proc", "sys"].map(|top| (dir.join(top), format!("/{top}"))).into(),
        };
        while let Some((folder, path)) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = format!("{path}/{}", entry.file_name().to_string_lossy());
                // Of the entry itself: a link leads to a file that is counted where it is.
                match entry.metadata() {
                    Ok(of) if of.is_dir() && all < COUNTED_MAX => {
                        folders.push((entry.path(), path));
                    }
                    Ok(of) if of.is_file() => {
                        all += 1;
                        empty += u64::from(of.len() == 0 && !may_be_empty(&path));
                    }
                    _ => {}
                }
            }
        }
        (all, empty)
    }

    pub(super) fn has_files(&self, folder: &str) -> bool {
        let entries = self.resolve(folder, true).and_then(fs::read_dir);
        let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|of| of.is_file());
        entries.is_ok_and(|entries| entries.flatten().any(|entry| is_file(&entry)))
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

    /// Names in a folder, sorted by their bytes.
    pub(super) fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        if let (Some(part), true) = (self.part, parts(Path::new(path)).is_empty()) {
            return Ok(vec![part.to_owned()]);
        }
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

    pub(super) fn exists(&self, path: &str) -> io::Result<()> {
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
            let here = self.inside(dir, &inside.join(&part))?;
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
        self.inside(dir, &inside)
    }

    /// Where a path without links is below the folder.
    fn inside(&self, dir: &Path, path: &Path) -> io::Result<PathBuf> {
        match self.part {
            None => Ok(dir.join(path)),
            Some(part) => Ok(dir.join(path.strip_prefix(part).map_err(|_| Errno::NOENT)?)),
        }
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

/// Files that are counted before a count is given up: more than any /proc and /sys have.
const COUNTED_MAX: u64 = 1 << 20;

/// What only the top of a /proc or of a /sys holds. Both may hold `sys`, and a machine's top any
/// of these beside its proc.
const PARTS: [(&str, &[&str]); 2] = [
    (
        "proc",
        &[
            "cpuinfo",
            "cmdline",
            "interrupts",
            "loadavg",
            "meminfo",
            "stat",
            "uptime",
            "version",
            "config.gz",
            "sys/kernel/osrelease",
            "self/status",
            "1/status",
            "irq/default_smp_affinity",
        ],
    ),
    ("sys", &["devices/system", "class/dmi", "class/net", "kernel/mm", "bus/pci", "fs/cgroup"]),
];

/// The folder of a machine that this one is by what it holds; `None`: a machine's top, or nothing
/// that is known.
fn part_of(dir: &Path) -> Option<&'static str> {
    let has = |name: &str| dir.join(name).exists();
    if ["proc", "sys/devices", "sys/class", "sys/module", "boot"].into_iter().any(has) {
        return None;
    }
    PARTS.iter().find(|(_, marks)| marks.iter().any(|mark| has(mark))).map(|(part, _)| *part)
}
