//! The doors to files that the user names, and that another user may have made or replaced: read,
//! write. [`crate::trusted`] is the third, for files that are obeyed.
//!
//! A path is walked name by name, each held by a descriptor. A symbolic link is followed only if it
//! belongs to root or to the caller and no folder before it belongs to, or can be written by,
//! another user. What is reached is looked at before it is opened, so that no device acts and no
//! pipe is waited for.
#![expect(clippy::disallowed_methods, reason = "this is the door")]

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::{File, Metadata, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            ffi::OsStringExt,
            fs::{FileTypeExt, MetadataExt, PermissionsExt},
        },
    },
    path::{Component, Path},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags},
    fs::{AtFlags, CWD, Mode, OFlags},
    io::Errno,
    process::geteuid,
};

/// Links of one path, as in the kernel.
const LINKS_MAX: u32 = 40;

/// How long the reader of a named pipe may take to open it, and then to read on.
const READER_LIMIT: Duration = Duration::from_secs(2);

/// Bytes of a name beside which there is room for the ending of a part.
const NAME_MAX: usize = 240;

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Found {
    Given(Given),
    Entry(Entry),
}

/// A name in a folder; the folder is held, and what has the name now.
#[derive(Debug)]
pub(crate) struct Entry {
    folder: File,
    /// Whether another user could put something else there.
    is_foreign: bool,
    name: OsString,
    /// Opened by O_PATH; `None`: nothing has the name.
    pub(crate) file: Option<File>,
}

impl Entry {
    fn kind(&self) -> io::Result<Option<Metadata>> {
        self.file.as_ref().map(File::metadata).transpose()
    }
}

/// Walks a path. `last`: also a link at its end is followed.
pub(crate) fn find(path: &Path, last: bool) -> io::Result<Found> {
    let mut names = VecDeque::new();
    let mut at = begin(path, &mut names)?;
    let mut is_foreign = is_foreign(&at.metadata()?);
    let mut links = 0;
    let mut file = Some(at.try_clone()?);
    while let Some(name) = names.pop_front() {
        let is_end = names.is_empty();
        if is_end && let Some(given) = given(&at, &name)? {
            return Ok(Found::Given(given));
        }
        let opened = pin(&at, &name, OFlags::NOFOLLOW);
        let next = match opened {
            Err(error) if is_end && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Found::Entry(Entry { folder: at, is_foreign, name, file: None }));
            }
            opened => opened?,
        };
        let of = next.metadata()?;
        let next = if of.is_symlink() && (last || !is_end) {
            if is_foreign || !is_own(of.uid()) {
                let why = format!(
                    "{} is a symbolic link of another user, or in a folder where another user can \
                     write; name the file itself",
                    Path::new(&name).display()
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            if !is_of_process(&at)? {
                let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
                let target = OsString::from_vec(target.into_bytes());
                if let Some(top) = into_front(Path::new(&target), &mut names)? {
                    at = top;
                }
                file = Some(at.try_clone()?);
                continue;
            }
            // The kernel knows where it leads: its text is no path.
            pin(&at, &name, OFlags::empty())?
        } else {
            next
        };
        if is_end {
            return Ok(Found::Entry(Entry { folder: at, is_foreign, name, file: Some(next) }));
        }
        let of = next.metadata()?;
        if !of.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        is_foreign |= self::is_foreign(&of);
        at = next;
        file = Some(at.try_clone()?);
    }
    Ok(Found::Entry(Entry { folder: at, is_foreign, name: ".".into(), file }))
}

/// The folder that a path begins in; its names are queued.
fn begin(path: &Path, names: &mut VecDeque<OsString>) -> io::Result<File> {
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    match into_front(path, names)? {
        Some(top) => Ok(top),
        None => pin(&CWD, OsStr::new("."), OFlags::DIRECTORY),
    }
}

/// Queues the names of a path before others; the root folder, if it begins there.
fn into_front(path: &Path, names: &mut VecDeque<OsString>) -> io::Result<Option<File>> {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => names.push_front(name.into()),
            Component::ParentDir => names.push_front("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let top = || pin(&CWD, OsStr::new("/"), OFlags::DIRECTORY);
    path.is_absolute().then(top).transpose()
}

fn pin(at: &impl AsFd, name: &OsStr, more: OFlags) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | more;
    Ok(rustix::fs::openat(at, name, flags, Mode::empty())?.into())
}

/// Whether links in a folder are the kernel's of a process: descriptors, program, namespaces.
fn is_of_process(folder: &File) -> io::Result<bool> {
    let is_proc = rustix::fs::fstatfs(folder)?.f_type == rustix::fs::PROC_SUPER_MAGIC;
    // Those of the top folder are ordinary ones.
    Ok(is_proc && folder.metadata()?.ino() != 1)
}

/// A descriptor of this process, if the name in the folder is that of one.
fn given(folder: &File, name: &OsStr) -> io::Result<Option<Given>> {
    let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
        return Ok(None);
    };
    if !is_of_process(folder)? {
        return Ok(None);
    }
    let own = pin(&CWD, OsStr::new("/proc/self/fd"), OFlags::DIRECTORY)?.metadata()?;
    let of = folder.metadata()?;
    if (of.dev(), of.ino()) != (own.dev(), own.ino()) {
        return Ok(None);
    }
    let file = pin(folder, name, OFlags::empty())?;
    Ok(Some(Given { number, file }))
}

/// A descriptor that the process was given by whoever started it: `/dev/stdin`, `<(...)`.
#[derive(Debug)]
pub(crate) struct Given {
    number: i32,
    /// What it is open for, by O_PATH.
    file: File,
}

impl Given {
    /// The descriptor itself, with its place in a file and its rights.
    pub(crate) fn file(&self, options: &mut OpenOptions) -> io::Result<File> {
        let own = match self.number {
            0 => io::stdin().as_fd().try_clone_to_owned().ok(),
            1 => io::stdout().as_fd().try_clone_to_owned().ok(),
            2 => io::stderr().as_fd().try_clone_to_owned().ok(),
            number => {
                let pid = rustix::process::getpid();
                let none = rustix::process::PidfdFlags::empty();
                let process = rustix::process::pidfd_open(pid, none);
                let none = rustix::process::PidfdGetfdFlags::empty();
                process.and_then(|of| rustix::process::pidfd_getfd(of, number, none)).ok()
            }
        };
        // Before Linux 5.6, and in some containers, there is no other handle of it than its name.
        own.map_or_else(
            || options.open(format!("/proc/self/fd/{}", self.file.as_raw_fd())),
            |own| Ok(own.into()),
        )
    }
}

/// Users who could have done whatever this does: root, the caller, whoever owns the root folder (in
/// a user namespace that is nobody), and who called sudo.
fn is_own(uid: u32) -> bool {
    static OTHERS: OnceLock<(Option<u32>, Option<u32>)> = OnceLock::new();
    let (top, sudo) = OTHERS.get_or_init(|| {
        let top = Path::new("/").symlink_metadata().ok().map(|of| of.uid());
        let sudo = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        // Root sets the variable as it likes; the login's number is the kernel's.
        let login = std::fs::read_to_string("/proc/self/loginuid").ok();
        let login = login.and_then(|uid| uid.trim().parse().ok());
        (top, sudo.filter(|_| geteuid().is_root() && sudo == login))
    });
    uid == 0 || uid == geteuid().as_raw() || *top == Some(uid) || *sudo == Some(uid)
}

/// Whether others decide which names a folder has. In one like /tmp each decides about his own.
fn is_foreign(folder: &Metadata) -> bool {
    let of_own_group = !geteuid().is_root() && folder.gid() == rustix::process::getegid().as_raw();
    let by_others = if of_own_group { 0o002 } else { 0o022 };
    !is_own(folder.uid()) || folder.mode() & by_others != 0 && folder.mode() & 0o1000 == 0
}

/// Opens what is held by O_PATH: that, whatever has its name now. Never waits.
pub(crate) fn reopen(entry: &Entry, access: OFlags) -> io::Result<File> {
    let held = entry.file.as_ref().ok_or(Errno::NOENT)?;
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let path = format!("/proc/self/fd/{}", held.as_raw_fd());
    match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        // Where there is no /proc: by name, if that is still what is held.
        Err(Errno::NOENT) => {
            let flags = flags | OFlags::NOFOLLOW;
            let file = rustix::fs::openat(&entry.folder, &entry.name, flags, Mode::empty())?;
            let file = File::from(file);
            let (held, opened) = (held.metadata()?, file.metadata()?);
            match (held.dev(), held.ino()) == (opened.dev(), opened.ino()) {
                true => Ok(file),
                false => Err(io::Error::other("it was replaced meanwhile; try again")),
            }
        }
        opened => Ok(opened?.into()),
    }
}

fn no_regular_file() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "a pipe, a socket or a device, no regular file; copy what it holds into one",
    )
}

// Reading.

/// Opens a file to be read: a regular one, or a pipe that the process was given. Never waits for a
/// program that the user did not name.
///
/// # Errors
/// It cannot be opened, is no regular file, or a link of another user leads to it.
pub fn read(path: &Path) -> io::Result<File> {
    let entry = match find(path, true)? {
        Found::Given(given) => {
            let kind = given.file.metadata()?.file_type();
            if kind.is_fifo() {
                return given.file(OpenOptions::new().read(true));
            }
            let folder = pin(&CWD, OsStr::new("/proc/self/fd"), OFlags::DIRECTORY)?;
            let name = given.number.to_string().into();
            Entry { folder, is_foreign: false, name, file: Some(given.file) }
        }
        Found::Entry(entry) => entry,
    };
    let kind = entry.kind()?.ok_or(Errno::NOENT)?.file_type();
    match () {
        () if kind.is_file() => reopen(&entry, OFlags::RDONLY),
        () if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        () => Err(no_regular_file()),
    }
}

/// Whether another user could change a file, or what its name leads to.
///
/// # Errors
/// Nothing is there, or a link of another user leads to it.
pub fn is_others(path: &Path) -> io::Result<bool> {
    let Found::Entry(entry) = find(path, true)? else { return Ok(false) };
    let of = entry.kind()?.ok_or(Errno::NOENT)?;
    Ok(entry.is_foreign || !is_own(of.uid()))
}

/// All bytes of a file.
///
/// # Errors
/// As [`read`], and when there are more than `limit`.
pub fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    bytes_of(read(path)?, limit)
}

/// All bytes of an open file.
///
/// # Errors
/// It cannot be read, or there are more than `limit`.
pub fn bytes_of(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let large = || {
        let why = format!("too large: more than {limit} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    };
    if file.metadata()?.len() > limit {
        return Err(large());
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(large()) } else { Ok(bytes) }
}

/// As [`read_bytes`], of a text.
///
/// # Errors
/// As there, and when it is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read_bytes(path, limit)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

// Writing: files for the user, whole or not there.

/// Where an output goes.
enum Output {
    /// As it comes: a descriptor, a named pipe, a terminal, `/dev/null`.
    Stream(Box<dyn Write>),
    /// Into a new file, which then gets the name.
    Name(Entry),
}

/// Writes a file beside its place and moves it there when it is on disk. A descriptor that the
/// process was given, a pipe, a terminal and `/dev/null` are written to as they are. Another
/// symbolic link is replaced and never followed.
///
/// # Errors
/// Those of `fill`, and of the file system; a regular file of that name is left as it was.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let entry = match output(path)? {
        Output::Stream(mut stream) => {
            fill(&mut stream)?;
            return Ok(stream.flush()?);
        }
        Output::Name(entry) => entry,
    };
    let (temporary, mut file) = part(&entry)?;
    let moved = keep_mode(&entry, &file)
        .and_then(|()| fill(&mut file))
        .and_then(|()| Ok(file.sync_all()?))
        .and_then(|()| {
            let folder = &entry.folder;
            Ok(rustix::fs::renameat(folder, &temporary, folder, &entry.name)?)
        });
    moved.inspect_err(|_| {
        // What was begun is of no use.
        let _ = rustix::fs::unlinkat(&entry.folder, &temporary, AtFlags::empty());
    })
}

/// Whether an output can be written there; nothing is left behind, even if killed meanwhile.
///
/// # Errors
/// When it cannot.
pub fn try_new(path: &Path) -> io::Result<()> {
    let Output::Name(entry) = output(path)? else { return Ok(()) };
    // A file without a name; not every file system has them, and none asks for the name's length.
    if entry.name.len() < NAME_MAX {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        if rustix::fs::openat(&entry.folder, ".", flags, Mode::RUSR).is_ok() {
            return Ok(());
        }
    }
    let (temporary, _) = part(&entry)?;
    Ok(rustix::fs::unlinkat(&entry.folder, &temporary, AtFlags::empty())?)
}

/// Makes a file that is not there yet; a link of that name is not followed.
///
/// # Errors
/// When it cannot, or there is one.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    match find(path, false)? {
        Found::Entry(entry) if entry.file.is_none() => create(&entry.folder, &entry.name, mode),
        _ => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Makes a file that grows, in place of a regular one or a link of that name.
///
/// # Errors
/// When it cannot, or the name is of something else.
pub fn create_anew(path: &Path, mode: u32) -> io::Result<File> {
    let Found::Entry(entry) = find(path, false)? else {
        return Err(io::ErrorKind::AlreadyExists.into());
    };
    match entry.kind()? {
        None => {}
        Some(of) if of.is_file() || of.is_symlink() => {
            rustix::fs::unlinkat(&entry.folder, &entry.name, AtFlags::empty())?;
        }
        Some(of) if of.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(_) => return Err(no_regular_file()),
    }
    create(&entry.folder, &entry.name, mode)
}

fn create(folder: &File, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode))?.into())
}

fn output(path: &Path) -> io::Result<Output> {
    let entry = match find(path, false)? {
        Found::Given(given) => return given_output(&given),
        Found::Entry(entry) => entry,
    };
    let Some(of) = entry.kind()? else { return Ok(Output::Name(entry)) };
    let kind = of.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if kind.is_symlink() {
        // Such as /dev/stdout; what else links lead to is not written.
        return Ok(match find(path, true) {
            Ok(Found::Given(given)) => return given_output(&given),
            _ => Output::Name(entry),
        });
    }
    let stream = match &entry.file {
        Some(_) if kind.is_fifo() && is_own(of.uid()) => Some(pipe(&entry)?),
        Some(_) if kind.is_char_device() && is_harmless(&of) => {
            Some(reopen(&entry, OFlags::WRONLY)?)
        }
        _ => None,
    };
    match stream {
        Some(file) => Ok(Output::Stream(Box::new(Hurried(file)))),
        None if kind.is_file() => Ok(Output::Name(entry)),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a device, a socket or the pipe of another user, which is not written to; name a file",
        )),
    }
}

fn given_output(given: &Given) -> io::Result<Output> {
    Ok(Output::Stream(Box::new(given.file(OpenOptions::new().write(true).truncate(true))?)))
}

/// Null, zero, full; terminals. Writing to another device does something.
fn is_harmless(device: &Metadata) -> bool {
    let (major, minor) = (rustix::fs::major(device.rdev()), rustix::fs::minor(device.rdev()));
    matches!((major, minor), (1, 3 | 5 | 7) | (4 | 5 | 136..=143, _))
}

/// A named pipe, once it is read.
fn pipe(entry: &Entry) -> io::Result<File> {
    let began = Instant::now();
    loop {
        match reopen(entry, OFlags::WRONLY) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                if began.elapsed() > READER_LIMIT {
                    return Err(io::Error::new(error.kind(), "a pipe that nobody reads"));
                }
                thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
}

/// A stream that may be full, but not for long.
struct Hurried(File);

impl Write for Hurried {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
            let mut polled = [PollFd::new(&self.0, PollFlags::OUT)];
            let limit = rustix::time::Timespec::try_from(READER_LIMIT).ok();
            match rustix::event::poll(&mut polled, limit.as_ref()) {
                Ok(0) => {
                    let why = format!("nobody reads it for {} s", READER_LIMIT.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A file of ours that is replaced keeps who may read it.
fn keep_mode(entry: &Entry, file: &File) -> anyhow::Result<()> {
    let Some(old) = entry.kind()? else { return Ok(()) };
    if old.is_file() && old.uid() == geteuid().as_raw() {
        file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
    }
    Ok(())
}

/// A new file beside the one to be; what a run that was cut off left there is not touched.
fn part(entry: &Entry) -> io::Result<(OsString, File)> {
    let named = |ending: String| {
        let mut name = entry.name.clone();
        name.push(ending);
        name
    };
    let mut names = (2..100_u32).map(|number| named(format!(".{number}.part")));
    let mut temporary = named(".part".into());
    loop {
        // It names the machine's processes: it is private, unless the user changes that later.
        match create(&entry.folder, &temporary, 0o600) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                temporary = names.next().ok_or(error)?;
            }
            made => return made.map(|file| (temporary, file)),
        }
    }
}

/// Refuses a target whose writing would destroy the record that it is computed from.
///
/// # Errors
/// Usage, when it is the record under any name, or its journal; else when it is a folder.
pub fn check_target(record: &Path, target: &Path) -> anyhow::Result<()> {
    let mut journal = OsString::from(record);
    journal.push("-journal");
    if is_same(record, target) || is_same(Path::new(&journal), target) {
        return Err(usage(format!(
            "{}: this is the record itself, which is never written over; name another file",
            target.display()
        )));
    }
    anyhow::ensure!(!target.is_dir(), "{}: a folder; name a file in it", target.display());
    Ok(())
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    one == other || id(one).is_some_and(|one| id(other) == Some(one))
}

// A wrong request: an option, a name or a value that the user has to correct.

/// A wrong request. The program reports it plainly and does nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// A usage error as the error of a command.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Why a value or a name cannot be used; the caller adds where it stood.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl From<String> for Invalid {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for Invalid {
    fn from(why: &str) -> Self {
        Self(why.into())
    }
}

impl From<Invalid> for String {
    fn from(why: Invalid) -> Self {
        why.0
    }
}

impl std::ops::Deref for Invalid {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{chown, symlink},
        process::Command,
    };

    use super::*;

    fn fifo(path: &Path) {
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }

    fn write(path: &Path, text: &str) -> anyhow::Result<()> {
        write_whole(path, |to| Ok(to.write_all(text.as_bytes())?))
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_stays() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("precious"), "mine").unwrap();
        symlink(at("precious"), at("page.html")).unwrap();
        write(&at("page.html"), "page").unwrap();
        let text = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!((text("precious"), text("page.html")), ("mine".into(), "page".into()));
        assert!(!fs::symlink_metadata(at("page.html")).unwrap().is_symlink());
        write(Path::new("/dev/null"), "page").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        // A name that leads to this process's memory is no given descriptor.
        assert!(write(Path::new("/proc/self/mem"), "page").is_err());
        symlink("/proc/self/mem", at("mem")).unwrap();
        write(&at("mem"), "page").unwrap();
        assert_eq!(text("mem"), "page");
    }

    #[test]
    fn files_are_private_unless_requested_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        write(&path, "page").unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        write(&path, "page").unwrap();
        assert_eq!(mode(), 0o644);
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "text").unwrap();
        fifo(&at("pipe"));
        let kind = |path: &Path| read(path).map_err(|error| error.kind()).err();
        assert_eq!(kind(&at("file")), None);
        assert_eq!(kind(dir.path()), Some(io::ErrorKind::IsADirectory));
        assert_eq!(kind(Path::new("/")), Some(io::ErrorKind::IsADirectory));
        assert_eq!(kind(&at("none")), Some(io::ErrorKind::NotFound));
        assert_eq!(kind(Path::new("")), Some(io::ErrorKind::NotFound));
        assert_eq!(kind(&at("file/more")), Some(io::ErrorKind::NotADirectory));
        assert_eq!(kind(&at("pipe")), Some(io::ErrorKind::InvalidInput));
        assert_eq!(kind(Path::new("/dev/null")), Some(io::ErrorKind::InvalidInput));
        symlink("round", at("round")).unwrap();
        assert!(kind(&at("round")).is_some());
        assert!(read_bytes(&at("file"), 3).unwrap_err().to_string().contains("too large"));
        assert_eq!(read_text(&at("file/../file"), 4).ok(), None);
        assert_eq!(read_text(&at("./file"), 4).unwrap(), "text");
        // As outputs: the pipe has no reader.
        assert!(write(&at("pipe"), "x").unwrap_err().to_string().contains("nobody reads"));
        assert!(create_anew(&at("pipe"), 0o600).is_err());
        assert!(create_new(&at("file"), 0o600).is_err());
        assert!(try_new(dir.path()).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left behind");
    }

    #[test]
    fn given_descriptors_are_used_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (input, output) = rustix::pipe::pipe().unwrap();
        let name = |fd: &dyn AsRawFd| format!("/dev/fd/{}", fd.as_raw_fd());
        write(Path::new(&name(&output)), "piped").unwrap();
        let from = name(&input);
        drop(output);
        assert_eq!(read_text(Path::new(&from), 10).unwrap(), "piped");
        let path = dir.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"before ").unwrap();
        let link = dir.path().join("link");
        symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link).unwrap();
        write(&link, "after").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "before after");
    }

    /// As root, with links of user 1000, also above the last name.
    #[test]
    fn links_of_others_are_not_followed() {
        if !geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let own = |path: &Path| chown(path, Some(1000), Some(1000)).unwrap();
        for name in ["theirs", "ours", "sticky"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("ours/secret"), "secret").unwrap();
        symlink(at("ours"), at("theirs/up")).unwrap();
        symlink(at("ours/secret"), at("theirs/secret")).unwrap();
        symlink(at("ours"), at("sticky/up")).unwrap();
        symlink(at("ours"), at("sticky/root-s")).unwrap();
        symlink(at("theirs"), at("by-root")).unwrap();
        own(&at("theirs"));
        fs::set_permissions(at("sticky"), Permissions::from_mode(0o1777)).unwrap();
        std::os::unix::fs::lchown(at("sticky/up"), Some(1000), None).unwrap();
        for path in ["theirs/up/secret", "theirs/secret", "sticky/up/secret", "by-root/secret"] {
            let error = read(&at(path)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{path}: {error}");
        }
        assert!(read(&at("sticky/root-s/secret")).is_ok());
        for path in ["theirs/up/new", "sticky/up/new", "by-root/up/new"] {
            assert!(write(&at(path), "x").is_err(), "{path}");
            assert!(create_new(&at(path), 0o600).is_err(), "{path}");
            assert!(create_anew(&at(path), 0o600).is_err(), "{path}");
            assert!(try_new(&at(path)).is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(at("ours")).unwrap().count(), 1);
        fifo(&at("theirs/pipe"));
        own(&at("theirs/pipe"));
        assert!(write(&at("theirs/pipe"), "x").unwrap_err().to_string().contains("another user"));
    }

    /// A name that another process keeps exchanging between a file, a link and a pipe.
    #[test]
    fn what_changes_between_look_and_use_is_never_followed() {
        if !geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("secret"), "secret").unwrap();
        let folder = at("theirs");
        fs::create_dir(&folder).unwrap();
        chown(&folder, Some(1000), Some(1000)).unwrap();
        let script = "cd \"$0\"; mkfifo pipe; echo theirs >file; ln -s ../secret link; \
                      while :; do mv -f file x; mv -f x file; ln file x; mv -f x name; \
                      ln -s ../secret x; mv -f x name; mkfifo x; mv -f x name; done";
        let mut racer = Command::new("/bin/sh")
            .args(["-c", script])
            .arg(&folder)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        for _ in 0..1000 {
            let text = read_text(&folder.join("name"), 100);
            assert!(!matches!(text.as_deref(), Ok("secret")), "a link was followed");
            // What is written replaces the name, or fails.
            let _ = create_anew(&folder.join("name"), 0o600);
        }
        racer.kill().unwrap();
        racer.wait().unwrap();
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(fs::read_to_string(at("secret")).unwrap(), "secret");
    }
}
