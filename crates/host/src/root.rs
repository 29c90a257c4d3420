//! [`Root`]: the one gate to machine paths.
//!
//! Everything read about a machine comes through here, so that a captured machine (a folder with
//! its /proc, /sys, /etc ...) is read by the same code as the live one, and so that an error
//! becomes one of the four states of a [`Reading`] in one place. A captured machine never borrows
//! from the live one: its symbolic links are resolved inside its folder, and nothing here asks the
//! running kernel by system call.

#![expect(clippy::disallowed_methods, reason = "this is the gate")]

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Component, Path, PathBuf},
    str::FromStr,
    sync::OnceLock,
};

use rustix::{fs::OFlags, io::Errno};

use crate::{CpuList, Reading};

/// Largest file read whole: /proc/interrupts of 1024 CPUs and 2000 interrupts is about 25 MB, any
/// other file far smaller.
const READ_BYTES_MAX: u64 = 32 << 20;

/// Symbolic links followed for one path, as in the kernel (MAXSYMLINKS).
const LINKS_MAX: u32 = 40;

/// A machine: the live one, or a captured one in a folder.
#[derive(Clone, Debug)]
pub struct Root {
    /// Folder of a captured machine, `None` for the live one.
    dir: Option<PathBuf>,
    /// What may stand behind a refused read; found out at the first one.
    surroundings: OnceLock<Surroundings>,
}

/// Why a folder cannot be a captured machine.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// The folder cannot be opened.
    #[error(
        "{path}: {source}; give the top folder of a captured machine, the one that holds proc \
         and sys"
    )]
    Open {
        /// The path given.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Not a folder.
    #[error(
        "{0}: is not a folder; give the top folder of a captured machine, the one that holds \
         proc and sys"
    )]
    NotAFolder(PathBuf),
}

/// What explains a refused read.
#[derive(Clone, Debug)]
struct Surroundings {
    /// Lockdown mode other than none.
    lockdown: Option<String>,
    container: bool,
    /// Live machine and not root.
    unprivileged: bool,
}

impl Root {
    /// The live machine.
    #[must_use]
    pub const fn live() -> Self {
        Self { dir: None, surroundings: OnceLock::new() }
    }

    /// A captured machine: a folder that holds its proc, sys, etc ... `/` itself is the live
    /// machine.
    ///
    /// # Errors
    /// The folder is not there, may not be opened, or is not a folder.
    pub fn dir(path: impl AsRef<Path>) -> Result<Self, RootError> {
        let path = path.as_ref();
        let open = |source| RootError::Open { path: path.into(), source };
        let dir = fs::canonicalize(path).map_err(open)?;
        if !fs::metadata(&dir).map_err(open)?.is_dir() {
            return Err(RootError::NotAFolder(path.into()));
        }
        fs::read_dir(&dir).map_err(open)?;
        if dir == Path::new("/") {
            return Ok(Self::live());
        }
        Ok(Self { dir: Some(dir), surroundings: OnceLock::new() })
    }

    /// Whether this is the machine we run on.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.dir.is_none()
    }

    /// The bytes of a file, at most 32 MiB.
    #[must_use]
    pub fn read_bytes(&self, path: &str) -> Reading<Vec<u8>> {
        let bytes = self.open_file(path).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        match bytes {
            Ok(bytes) if bytes.len() as u64 > READ_BYTES_MAX => {
                let start = String::from_utf8_lossy(&bytes[..80]).into_owned();
                Reading::malformed(path, &start, "at most 32 MiB")
            }
            Ok(bytes) => Reading::known(path, bytes),
            Err(error) => self.refused(path, &error),
        }
    }

    /// The text of a file, at most 32 MiB; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn read_text(&self, path: &str) -> Reading<String> {
        self.read_bytes(path).map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// The text of a file without surrounding white space (and NULs, which end the strings of a
    /// device tree).
    #[must_use]
    pub fn trimmed(&self, path: &str) -> Reading<String> {
        self.read_text(path)
            .map(|text| text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
    }

    /// The one number that a file holds; `expected` names it for the malformed state.
    #[must_use]
    pub fn number<T: FromStr>(&self, path: &str, expected: &str) -> Reading<T> {
        self.read_text(path).and_then(|path, text| match text.trim().parse() {
            Ok(number) => Reading::known(path, number),
            Err(_) => Reading::malformed(path, &text, expected),
        })
    }

    /// A CPU list in the kernel's format; an empty file and `(null)` are the empty list.
    #[must_use]
    pub fn cpu_list(&self, path: &str) -> Reading<CpuList> {
        self.read_text(path).and_then(|path, text| match text.trim() {
            "(null)" => Reading::known(path, CpuList::default()),
            list => match CpuList::parse(list, None) {
                Ok(cpus) => Reading::known(path, cpus),
                Err(_) => Reading::malformed(path, &text, "a list of CPUs like 0-3,8"),
            },
        })
    }

    /// The choice in brackets of a file like `always [madvise] never`.
    #[must_use]
    pub fn bracketed(&self, path: &str, open: char, close: char) -> Reading<String> {
        self.read_text(path).and_then(|path, text| match between(&text, open, close) {
            Some(choice) => Reading::known(path, choice.to_owned()),
            None => Reading::malformed(path, &text, format!("one choice in {open}{close}")),
        })
    }

    /// Names in a folder, sorted by byte; `.` and `..` left out.
    #[must_use]
    pub fn list_dir(&self, path: &str) -> Reading<Vec<String>> {
        let names = self.resolve(path, true).and_then(|real| {
            let mut names = Vec::new();
            for entry in fs::read_dir(real)? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort_unstable();
            Ok(names)
        });
        match names {
            Ok(names) => Reading::known(path, names),
            Err(error) => self.refused(path, &error),
        }
    }

    /// Numbers N of the entries `PREFIXN` of a folder, ascending: `cpu` gives 0 for `cpu0` and
    /// leaves `cpufreq` out.
    #[must_use]
    pub fn list_numbered(&self, path: &str, prefix: &str) -> Reading<Vec<u32>> {
        self.list_dir(path).map(|names| {
            let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
            let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
            numbers.sort_unstable();
            numbers
        })
    }

    /// Target of a symbolic link as it is written.
    #[must_use]
    pub fn read_link(&self, path: &str) -> Reading<String> {
        match self.resolve(path, false).and_then(fs::read_link) {
            Ok(target) => Reading::known(path, target.to_string_lossy().into_owned()),
            // EINVAL of readlink(2): there is something, and it is no link.
            Err(error) if errno(&error) == Some(Errno::INVAL) => {
                Reading::malformed(path, "no symbolic link", "a symbolic link")
            }
            Err(error) => self.refused(path, &error),
        }
    }

    /// Whether there is something under this path, be it a link that leads nowhere. False also
    /// where looking is refused: use a read where the difference matters.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.resolve(path, false).and_then(fs::symlink_metadata).is_ok()
    }

    /// Opens a file to be read again and again.
    pub(crate) fn open(&self, path: &str) -> Reading<File> {
        match self.open_file(path) {
            Ok(file) => Reading::known(path, file),
            Err(error) => self.refused(path, &error),
        }
    }

    /// Never blocks: a FIFO in a captured tree is opened without waiting for its writer, and then
    /// turned away.
    fn open_file(&self, path: &str) -> io::Result<File> {
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

    /// The path to open. Inside a captured machine links are followed here and not by the kernel,
    /// so that neither `/etc/x -> /usr/y` nor `..` leaves its folder (openat2(RESOLVE_IN_ROOT)
    /// would do, but needs Linux 5.6).
    fn resolve(&self, path: &str, follow_last: bool) -> io::Result<PathBuf> {
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

    fn refused<T>(&self, path: &str, error: &io::Error) -> Reading<T> {
        let surroundings = || self.surroundings.get_or_init(|| self.look_around());
        reading_of_error(path, error, surroundings)
    }

    /// Whether we see the machine's own processes and control groups: then the marks of a container
    /// runtime are left over from the image that the file system was made of. The numbers are the
    /// kernel's (include/linux/proc_ns.h, `PROC_PID_INIT_INO`, `PROC_CGROUP_INIT_INO`).
    pub(crate) fn in_initial_namespaces(&self) -> bool {
        let is = |name: &str, number: &str| {
            let link =
                self.resolve(&format!("/proc/self/ns/{name}"), false).and_then(fs::read_link);
            link.is_ok_and(|target| target.as_os_str() == format!("{name}:[{number}]").as_str())
        };
        is("pid", "4026531836") && is("cgroup", "4026531835")
    }

    fn look_around(&self) -> Surroundings {
        let lockdown = self
            .open_file("/sys/kernel/security/lockdown")
            .and_then(io::read_to_string)
            .ok()
            .and_then(|text| between(&text, '[', ']').map(str::to_owned))
            .filter(|mode| mode != "none");
        let marks = ["/run/.containerenv", "/.dockerenv", "/run/systemd/container"];
        Surroundings {
            lockdown,
            container: marks.iter().any(|mark| self.exists(mark)) && !self.in_initial_namespaces(),
            unprivileged: self.is_live() && !rustix::process::geteuid().is_root(),
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

fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw_os_error)
}

/// The state that a failed read stands for.
fn reading_of_error<'a, T>(
    path: &str,
    error: &io::Error,
    surroundings: impl FnOnce() -> &'a Surroundings,
) -> Reading<T> {
    match errno(error) {
        // ESRCH: the task of a /proc/PID file is gone.
        Some(Errno::NOENT | Errno::NOTDIR | Errno::NODEV | Errno::SRCH) => Reading::absent(path),
        Some(refusal @ (Errno::ACCESS | Errno::PERM)) => {
            let why = why_refused(path, refusal, surroundings());
            Reading::denied(path, format!("{error}{why}"))
        }
        _ => Reading::denied(path, error.to_string()),
    }
}

/// What stands behind a refusal. Lockdown answers EPERM (security/lockdown/lockdown.c) and hides
/// debugfs; EACCES elsewhere is file permissions.
fn why_refused(path: &str, refusal: Errno, around: &Surroundings) -> String {
    let hidden = ["/sys/kernel/debug", "/sys/kernel/tracing", "/dev/", "/proc/kcore"];
    let by_lockdown = refusal == Errno::PERM || hidden.iter().any(|dir| path.starts_with(dir));
    let mut why = String::new();
    if let (true, Some(mode)) = (by_lockdown, &around.lockdown) {
        why += &format!("; the kernel is locked down ({mode})");
    }
    if around.container {
        why += "; inside a container";
    }
    if around.unprivileged {
        why += "; run as root to read it";
    }
    why
}

/// The text between the first `open` and the next `close`.
pub(crate) fn between(text: &str, open: char, close: char) -> Option<&str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests;
