//! The one gate to writes. Each of its functions is one thing that the machine sees: there before,
//! or there after; what cannot be one thing (a file and its owner) is made beside and moved into
//! place.

#![expect(clippy::disallowed_methods, reason = "this is the gate")]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{IFlags, OFlags, RenameFlags, Timespec, Timestamps},
    io::Errno,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::State;
use crate::Root;
use crate::change::Bytes;
use crate::reading::READ_BYTES_MAX;
use crate::text::hex;

/// Attributes that seal the bytes they were made for: new bytes get none.
const SEALS: &[&str] = &["security.ima", "security.evm"];

/// Writes to one machine.
#[derive(Debug)]
pub(crate) struct Gate<'a> {
    pub(super) root: &'a Root,
    #[cfg(test)]
    pub(crate) faults: super::faults::Faults,
}

/// A file as it is to be.
#[derive(Debug)]
pub(crate) struct WantedFile<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) mode: u32,
    /// Whether the file system may have permissions of its own (FAT).
    pub(crate) mode_may_differ: bool,
    pub(crate) owner: Option<(u32, u32)>,
    /// Last modification; `None`: now.
    pub(crate) modified_ns: Option<i64>,
    pub(crate) attributes: &'a [(String, Bytes)],
    /// Whether the attributes that seal the content are set too.
    pub(crate) sealed: bool,
}

impl<'a> Gate<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self {
            root,
            #[cfg(test)]
            faults: super::faults::Faults::default(),
        }
    }

    /// Before each single write: in tests the place to die.
    #[inline]
    pub(crate) fn step(&self) -> io::Result<()> {
        super::held::may_go_on();
        #[cfg(test)]
        self.faults.step()?;
        Ok(())
    }

    /// Writes a value of the kernel: one open, one write, one close. Never makes a file.
    pub(crate) fn value(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let real = self.root.place(path)?;
        let is_live = self.root.is_live();
        self.step()?;
        #[cfg(test)]
        self.faults.value(path)?;
        #[cfg(test)]
        let shown = self.faults.shown(path, bytes);
        #[cfg(test)]
        let bytes = shown.as_slice();
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(!is_live)
            .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
            .open(real)?;
        if is_live && !is_of_kernel(rustix::fs::fstatfs(&file)?.f_type) && !is_mounted(&file) {
            return Err(io::Error::other("no file of the running kernel"));
        }
        #[cfg(test)]
        self.faults.step()?;
        match file.write(bytes)? {
            written if written == bytes.len() => Ok(()),
            written => Err(io::Error::other(format!(
                "took {written} of {} bytes; expected all in one write",
                bytes.len()
            ))),
        }
    }

    /// Writes a variable of the firmware in one write, its guard against deletion lifted for that.
    pub(crate) fn variable(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let real = self.root.entry(path)?;
        self.lift_guard(&real)?;
        self.step()?;
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(!self.root.is_live())
            .mode(0o644)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&real)
            .and_then(|mut file| file.write_all(bytes));
        // Put back even where the write failed; the kernel guards most variables from the start.
        self.guard(&real);
        written
    }

    /// Removes a variable of the firmware.
    pub(crate) fn remove_variable(&self, path: &str) -> io::Result<()> {
        let real = self.root.entry(path)?;
        self.lift_guard(&real)?;
        self.step()?;
        fs::remove_file(real)
    }

    fn lift_guard(&self, real: &Path) -> io::Result<()> {
        let Ok(file) = File::open(real) else { return Ok(()) };
        let Ok(flags) = rustix::fs::ioctl_getflags(&file) else { return Ok(()) };
        if flags.contains(IFlags::IMMUTABLE) {
            self.step()?;
            rustix::fs::ioctl_setflags(&file, flags - IFlags::IMMUTABLE)?;
        }
        Ok(())
    }

    /// On efivarfs alone: elsewhere the flag would keep a file from being removed.
    fn guard(&self, real: &Path) {
        if !self.root.is_live() {
            return;
        }
        if let Ok(file) = File::open(real)
            && let Ok(flags) = rustix::fs::ioctl_getflags(&file)
        {
            let _ = rustix::fs::ioctl_setflags(&file, flags | IFlags::IMMUTABLE);
        }
    }

    /// What is under a path: file, link, folder or nothing. A link is not followed.
    pub(crate) fn state_at(&self, path: &str) -> io::Result<State> {
        match self.root.entry(path) {
            Ok(real) => state_of_path(&real),
            Err(error) if is_absent(&error) => Ok(State::Absent),
            Err(error) => Err(error),
        }
    }

    /// The path with its last link followed, as a path of the machine.
    pub(crate) fn followed(&self, path: &str) -> io::Result<String> {
        let mut path = path.to_owned();
        for _ in 0..crate::reading::LINKS_MAX {
            let State::Link { to } = self.state_at(&path)? else { return Ok(path) };
            path = match to.strip_prefix('/') {
                Some(_) => to,
                None => format!("{}/{to}", path.rsplit_once('/').map_or("", |(folder, _)| folder)),
            };
        }
        Err(Errno::LOOP.into())
    }

    /// Puts a file in place of whatever file or link is there.
    pub(crate) fn file(&self, path: &str, wanted: &WantedFile<'_>) -> io::Result<()> {
        let real = self.root.entry(path)?;
        let temporary = temporary_path(&real)?;
        self.remove_if_there(&temporary)?;
        let placed = self.write_temporary(&temporary, wanted).and_then(|()| {
            self.step()?;
            fs::rename(&temporary, &real)
        });
        if placed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        placed.and_then(|()| self.sync_folder(&real))
    }

    fn write_temporary(&self, temporary: &Path, wanted: &WantedFile<'_>) -> io::Result<()> {
        self.step()?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(temporary)?;
        self.step()?;
        file.write_all(wanted.bytes)?;
        let now = file.metadata()?;
        if let Some((uid, gid)) = wanted.owner
            && (now.uid(), now.gid()) != (uid, gid)
        {
            self.step()?;
            fchown(&file, Some(uid), Some(gid))?;
        }
        if now.mode() & 0o7777 != wanted.mode {
            self.step()?;
            let set = file.set_permissions(fs::Permissions::from_mode(wanted.mode));
            if !wanted.mode_may_differ {
                set?;
            }
        }
        for (name, value) in wanted.attributes {
            let is_seal = SEALS.contains(&name.as_str());
            if is_seal && !wanted.sealed {
                continue;
            }
            self.step()?;
            let flags = rustix::fs::XattrFlags::empty();
            match rustix::fs::fsetxattr(&file, name.as_str(), &value.0, flags) {
                // The kernel makes seals itself where it is set up to.
                Err(_) if is_seal => {}
                set => set?,
            }
        }
        if let Some(ns) = wanted.modified_ns {
            self.step()?;
            set_modified(&file, ns)?;
        }
        self.step()?;
        file.sync_all()
    }

    /// Puts a symbolic link in place of whatever file or link is there.
    pub(crate) fn link(&self, path: &str, to: &str) -> io::Result<()> {
        let real = self.root.entry(path)?;
        if fs::symlink_metadata(&real).is_err() {
            self.step()?;
            std::os::unix::fs::symlink(to, &real)?;
            return self.sync_folder(&real);
        }
        let temporary = temporary_path(&real)?;
        self.remove_if_there(&temporary)?;
        self.step()?;
        std::os::unix::fs::symlink(to, &temporary)?;
        self.step()?;
        let placed = fs::rename(&temporary, &real);
        if placed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        placed.and_then(|()| self.sync_folder(&real))
    }

    /// Removes a file or link.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        let real = self.root.entry(path)?;
        self.step()?;
        fs::remove_file(&real)?;
        self.sync_folder(&real)
    }

    /// Gives a file of rtproof's own another name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.root.entry(from)?, self.root.entry(to)?);
        self.step()?;
        fs::rename(from, &to)?;
        self.sync_folder(&to)
    }

    pub(crate) fn make_folder(&self, path: &str, mode: u32) -> io::Result<()> {
        let real = self.root.entry(path)?;
        self.step()?;
        std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), mode).create(&real)?;
        #[cfg(test)]
        self.faults.group(&real, true)?;
        self.sync_folder(&real)
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, path: &str) -> io::Result<()> {
        let real = self.root.entry(path)?;
        self.step()?;
        #[cfg(test)]
        self.faults.group(&real, false)?;
        fs::remove_dir(&real)?;
        self.sync_folder(&real)
    }

    /// Removes what a write that was cut short left beside a file.
    pub(crate) fn clean(&self, path: &str) -> io::Result<()> {
        match self.root.entry(path) {
            Ok(real) => self.remove_if_there(&temporary_path(&real)?),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn remove_if_there(&self, real: &Path) -> io::Result<()> {
        if fs::symlink_metadata(real).is_ok() {
            self.step()?;
            fs::remove_file(real)?;
        }
        Ok(())
    }

    /// A rename is on disk when its folder is. File systems of the kernel have nothing to sync.
    pub(super) fn sync_folder(&self, real: &Path) -> io::Result<()> {
        let Some(folder) = real.parent() else { return Ok(()) };
        self.step()?;
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
            synced => synced,
        }
    }

    /// Opens or makes a file of rtproof's own under /var/lib.
    pub(crate) fn own_file(&self, path: &str, options: &mut OpenOptions) -> io::Result<File> {
        let real = self.root.entry(path)?;
        let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed();
        options.mode(0o600).custom_flags(flags).open(real)
    }

    /// Makes a file of rtproof's own that is whole on disk before it has its name, and keeps it
    /// open.
    pub(crate) fn new_file(&self, path: &str, bytes: &[u8]) -> io::Result<File> {
        let real = self.root.entry(path)?;
        let temporary = temporary_path(&real)?;
        self.remove_if_there(&temporary)?;
        let made = || {
            self.step()?;
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .custom_flags((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed())
                .open(&temporary)?;
            self.step()?;
            file.write_all(bytes)?;
            file.sync_all()?;
            self.step()?;
            // Another file of this name is never replaced.
            let cwd = rustix::fs::CWD;
            match rustix::fs::renameat_with(cwd, &temporary, cwd, &real, RenameFlags::NOREPLACE) {
                // A file system without this flag (NFS, FAT).
                Err(Errno::INVAL | Errno::NOSYS) if !real.exists() => {
                    fs::rename(&temporary, &real)?
                }
                renamed => renamed?,
            }
            Ok(file)
        };
        let file = made().inspect_err(|_: &io::Error| {
            let _ = fs::remove_file(&temporary);
        })?;
        self.sync_folder(&real)?;
        Ok(file)
    }

    /// Syncs the folder of a file.
    pub(crate) fn sync_folder_of(&self, path: &str) -> io::Result<()> {
        self.sync_folder(&self.root.entry(path)?)
    }
}

/// Whether a file is mounted over another by itself: root did that, in place of one of the
/// kernel's.
fn is_mounted(file: &File) -> bool {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
    let asked = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
    asked.is_ok_and(|it| it.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Whether a file system holds values of the kernel: proc, sysfs, control groups of both versions,
/// tracefs, debugfs, resctrl (include/uapi/linux/magic.h).
fn is_of_kernel(magic: rustix::fs::FsWord) -> bool {
    [0x9fa0, 0x6265_6572, 0x6367_7270, 0x0027_e0eb, 0x7472_6163, 0x6462_6720, 0x0765_5821]
        .contains(&magic)
}

/// Why a folder of the machine cannot be written to, or the first of its folders above that is
/// there; nothing is tried out.
pub(crate) fn why_not_writable(root: &Root, path: &str) -> io::Result<Option<(String, io::Error)>> {
    let mut path = path;
    let there = |path: &str| {
        let real = root.place(path)?;
        fs::metadata(&real).map(|_| real)
    };
    let real = loop {
        match there(path) {
            Ok(real) => break real,
            Err(error) if is_absent(&error) && path.len() > 1 => {
                path = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
                path = if path.is_empty() { "/" } else { path };
            }
            Err(error) => return Err(error),
        }
    };
    if let Ok(folder) = File::open(&real)
        && let Ok(flags) = rustix::fs::ioctl_getflags(&folder)
        && flags.contains(IFlags::IMMUTABLE)
    {
        let error = io::Error::other("immutable (chattr +i)");
        return Ok(Some((path.to_owned(), error)));
    }
    let refused = rustix::fs::access(&real, rustix::fs::Access::WRITE_OK).err();
    Ok(refused.map(|errno| (path.to_owned(), errno.into())))
}

/// Whether a place of the live machine is mounted read-only.
pub(crate) fn is_mounted_read_only(path: &str) -> bool {
    rustix::fs::statvfs(path)
        .is_ok_and(|there| there.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Whether an error says that there is no such file.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The name under which a file is made before it is moved into place: always the same one, so
/// that what a kill left is found, and one that no program takes for a file of its own.
pub(super) fn temporary_path(real: &Path) -> io::Result<PathBuf> {
    let name = real.file_name().ok_or(Errno::INVAL)?;
    let digest = Sha256::digest(name.as_encoded_bytes());
    let digits = hex(&digest[..4]);
    Ok(real.with_file_name(format!(".rtproof-{digits}.new")))
}

fn state_of_path(real: &Path) -> io::Result<State> {
    let meta = match fs::symlink_metadata(real) {
        Ok(meta) => meta,
        Err(error) if is_absent(&error) => return Ok(State::Absent),
        Err(error) => return Err(error),
    };
    if meta.is_dir() {
        return Ok(State::Folder);
    }
    if meta.is_symlink() {
        let to = fs::read_link(real)?;
        let to = to.to_str().ok_or_else(|| io::Error::other("a link whose text is not UTF-8"))?;
        return Ok(State::Link { to: to.to_owned() });
    }
    if !meta.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(real)?
        .take(READ_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > READ_BYTES_MAX {
        return Err(io::Error::other("larger than the 32 MiB that are saved"));
    }
    Ok(State::File {
        bytes: Bytes(bytes),
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
        modified_ns: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
        attributes: attributes(real)?,
    })
}

/// Extended attributes by name; none where the file system has none.
fn attributes(real: &Path) -> io::Result<Vec<(String, Bytes)>> {
    let mut names = vec![0; 64 << 10];
    let length = match rustix::fs::llistxattr(real, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Err(errno) => return Err(errno.into()),
    };
    let mut attributes = Vec::new();
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let mut value = vec![0; 64 << 10];
        match rustix::fs::lgetxattr(real, name, &mut value[..]) {
            Ok(length) => attributes.push((name.to_owned(), Bytes(value[..length].to_vec()))),
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    attributes.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(attributes)
}

fn set_modified(file: &File, ns: i64) -> io::Result<()> {
    let at =
        Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) };
    let times = Timestamps { last_access: at, last_modification: at };
    Ok(rustix::fs::futimens(file, &times)?)
}

// A file or folder that was put in place whole: what is in it, by name, size, kind and time, so
// that undo removes what is still as it was put there, and nothing else.

/// Files and folders of one tree that are read: a distribution's kernel has some 5 000.
const FILES_MAX: usize = 200_000;

/// One file, folder or link of a tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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
pub(super) fn read_tree(real: &Path) -> io::Result<Option<Vec<TreeFile>>> {
    let top = match fs::symlink_metadata(real) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
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
pub(super) fn tree_bytes(files: &[TreeFile]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

/// Files and links, folders not counted.
pub(super) fn tree_count(files: &[TreeFile]) -> usize {
    files.iter().filter(|file| !file.is_folder()).count()
}

impl TreeFile {
    /// Whether it is a folder.
    pub const fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }
}
