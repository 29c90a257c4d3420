//! [`Root`]: the one gate to machine paths.
//!
//! Everything read about a machine comes through here, so that a captured machine (a folder with
//! its /proc, /sys, /etc ..., or one file of `rtproof capture`) is read by the same code as the
//! live one, and so that an error becomes one of the four states of a [`Reading`] in one place. A
//! captured machine never borrows from the live one: its symbolic links are resolved inside, and
//! what only a system call knows is read from the live machine alone.

mod config;
mod device;
mod disk;
mod error;

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, OnceLock},
};

use self::{config::build_config, disk::Disk};
use crate::{
    Capture, CpuList, Reading,
    capture::{CAPTURE_BYTES_MAX, Origin, Recorder},
    refusal::{READ_BYTES_MAX, Refusal, Surroundings},
    text::{between, excerpt},
};

pub(crate) use self::device::Messages;
pub use self::error::RootError;

/// A machine: the live one, or a captured one in a folder or a file.
#[derive(Clone, Debug)]
pub struct Root {
    source: Source,
    /// What may stand behind a refused read; found out at the first one.
    surroundings: OnceLock<Surroundings>,
    /// Takes down every question and its answer.
    recorder: Option<Arc<Recorder>>,
}

#[derive(Clone, Debug)]
enum Source {
    Disk(Disk),
    Capture(Arc<Capture>),
}

impl Root {
    /// The machine that rtproof runs on.
    pub const fn live() -> Self {
        Self::of(Source::Disk(Disk::live()))
    }

    const fn of(source: Source) -> Self {
        Self { source, surroundings: OnceLock::new(), recorder: None }
    }

    /// A captured machine: a folder that holds its proc, sys, etc ... `/` itself is the live
    /// machine.
    ///
    /// # Errors
    /// The folder is not there, may not be opened, or is not a folder.
    pub fn dir(path: impl AsRef<Path>) -> Result<Self, RootError> {
        Ok(Self::of(Source::Disk(Disk::folder(path.as_ref())?)))
    }

    /// A captured machine: a folder, a file of `rtproof capture`, or the build configuration of its
    /// kernel and nothing else; the path decides by itself.
    ///
    /// # Errors
    /// As [`Root::dir`]; a file that is none of these or is damaged, with the line.
    pub fn open_path(path: impl AsRef<Path>) -> Result<Self, RootError> {
        let path = path.as_ref();
        let open = |source| RootError::Open { path: path.into(), source };
        if fs::metadata(path).map_err(open)?.is_dir() {
            return Self::dir(path);
        }
        let file = crate::input::open(path).map_err(open)?;
        let mut bytes = Vec::new();
        file.take(CAPTURE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(open)?;
        let damaged = |source| RootError::Capture { path: path.into(), source };
        if let Some(config) = build_config(&bytes) {
            let packed = config.map_err(damaged)?;
            return Ok(Self::captured(Capture::of_files([("/proc/config.gz", &packed[..])])));
        }
        Ok(Self::captured(Capture::parse(&bytes).map_err(damaged)?))
    }

    /// A machine as a capture file keeps it.
    pub fn captured(capture: Capture) -> Self {
        Self::of(Source::Capture(Arc::new(capture)))
    }

    /// The same machine, with every question and its answer taken down.
    pub(crate) fn recorded(&self, recorder: Arc<Recorder>) -> Self {
        Self { recorder: Some(recorder), ..Self::of(self.source.clone()) }
    }

    /// Whether this is the machine we run on.
    pub const fn is_live(&self) -> bool {
        matches!(&self.source, Source::Disk(disk) if disk.is_live())
    }

    /// Where the answers were taken.
    pub(crate) fn origin(&self) -> Origin {
        match &self.source {
            Source::Capture(capture) => capture.origin(),
            Source::Disk(disk) if disk.is_live() => {
                Origin::Live { by_root: rustix::process::geteuid().is_root() }
            }
            Source::Disk(_) => Origin::Folder,
        }
    }

    /// Whether what is absent was not on the machine: the live one, and what was captured of one.
    /// A folder may hold a part.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.origin(), Origin::Live { .. })
    }

    /// The bytes of a file, at most 32 MiB.
    pub fn read_bytes(&self, path: &str) -> Reading<Vec<u8>> {
        match self.bytes(path) {
            Ok(bytes) if bytes.len() as u64 > READ_BYTES_MAX => {
                let start = String::from_utf8_lossy(&bytes[..80]).into_owned();
                Reading::malformed(path, &start, "at most 32 MiB")
            }
            Ok(bytes) => Reading::known(path, bytes),
            Err(refusal) => self.refused(path, &refusal),
        }
    }

    /// The text of a file, at most 32 MiB; bytes that are not UTF-8 become U+FFFD.
    pub fn read_text(&self, path: &str) -> Reading<String> {
        self.read_bytes(path).map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// The text of a file without surrounding white space (and NULs, which end the strings of a
    /// device tree).
    pub fn trimmed(&self, path: &str) -> Reading<String> {
        self.read_text(path)
            .map(|text| text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
    }

    /// The one number that a file holds; `expected` names it for the malformed state.
    pub fn number<T: FromStr>(&self, path: &str, expected: &str) -> Reading<T> {
        self.read_text(path).parsed(expected, |text| text.trim().parse().ok())
    }

    /// A CPU list in the kernel's format; an empty file and `(null)` are the empty list.
    pub fn cpu_list(&self, path: &str) -> Reading<CpuList> {
        self.read_text(path).parsed("a list of CPUs like 0-3,8", |text| match text.trim() {
            // A mask that was never allocated.
            "(null)" => Some(CpuList::default()),
            list => CpuList::parse(list, None).ok(),
        })
    }

    /// The choice in brackets of a file like `always [madvise] never`.
    pub fn bracketed(&self, path: &str, open: char, close: char) -> Reading<String> {
        let expected = format!("one choice in {open}{close}");
        self.read_text(path).parsed(&expected, |text| between(text, open, close).map(str::to_owned))
    }

    /// The lines `KEY: ...` of a file, one for each key, in the order of the file: for files of
    /// which a few lines matter and that are read by the thousand. A capture keeps only these.
    pub fn excerpt(&self, path: &str, keys: &[&str]) -> Reading<String> {
        let answer = match &self.source {
            Source::Disk(disk) => disk.bytes(path).map_err(Refusal::from),
            Source::Capture(capture) => capture.excerpt(path, keys),
        };
        self.note(|recorder| recorder.excerpt(path, keys, &answer));
        match answer {
            Ok(bytes) => match excerpt(&bytes, keys) {
                Some(lines) => Reading::known(path, lines),
                None => {
                    let expected = format!("lines {}", keys.join(", "));
                    Reading::malformed(path, &String::from_utf8_lossy(&bytes), expected)
                }
            },
            Err(refusal) => self.refused(path, &refusal),
        }
    }

    /// Names in a folder, sorted by byte; `.` and `..` left out.
    pub fn list_dir(&self, path: &str) -> Reading<Vec<String>> {
        match self.names(path) {
            Ok(names) => Reading::known(path, names),
            Err(refusal) => self.refused(path, &refusal),
        }
    }

    /// Numbers N of the entries `PREFIXN` of a folder, ascending: `cpu` gives 0 for `cpu0` and
    /// leaves `cpufreq` out.
    pub fn list_numbered(&self, path: &str, prefix: &str) -> Reading<Vec<u32>> {
        self.list_dir(path).map(|names| {
            let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
            let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
            numbers.sort_unstable();
            numbers
        })
    }

    /// Target of a symbolic link as it is written.
    pub fn read_link(&self, path: &str) -> Reading<String> {
        match self.link(path) {
            Ok(target) => Reading::known(path, target),
            Err(refusal) if refusal.is_no_link() => {
                Reading::malformed(path, "no symbolic link", "a symbolic link")
            }
            Err(refusal) => self.refused(path, &refusal),
        }
    }

    /// Whether there is something under this path, be it a link that leads nowhere. False also
    /// where looking is refused: use a read where the difference matters.
    pub fn exists(&self, path: &str) -> bool {
        let answer = match &self.source {
            Source::Disk(disk) => disk.look(path).map_err(Refusal::from),
            Source::Capture(capture) => capture.look(path),
        };
        self.note(|recorder| recorder.look(path, &answer));
        answer.is_ok()
    }

    /// What a system call returns on the live machine, or returned at the capture; `None` for a
    /// folder, for which there is no call.
    pub(crate) fn call(
        &self,
        call: &str,
        ask: impl FnOnce() -> io::Result<String>,
    ) -> Option<Reading<String>> {
        let answer = match &self.source {
            _ if !self.is_whole() => return None,
            Source::Capture(capture) => capture.call(call),
            Source::Disk(_) => ask().map_err(Refusal::from),
        };
        self.note(|recorder| recorder.call(call, &answer));
        Some(match answer {
            Ok(answer) => Reading::known(call, answer),
            Err(refusal) => self.refused(call, &refusal),
        })
    }

    /// Messages of the kernel's log; `keep` makes of each what is kept, and nothing else gets into
    /// a capture. Absent for a folder.
    pub(crate) fn kernel_log(&self, keep: impl Fn(&str) -> Option<String>) -> Reading<Messages> {
        const DEVICE: &str = "/dev/kmsg";
        let word = |is: bool, yes: &str, no: &str| if is { yes.to_owned() } else { no.to_owned() };
        let ask = || {
            let log = device::kernel_log(keep)?;
            let from = word(log.from_start, "from boot", "from later");
            let to = word(log.to_end, "to the end", "not to the end");
            Ok([vec![from, to], log.lines].concat().join("\n"))
        };
        let Some(called) = self.call("kernel log", ask) else {
            return Reading::absent(DEVICE);
        };
        called.with_path(DEVICE).map(|text| {
            let mut lines = text.lines();
            Messages {
                from_start: lines.next() == Some("from boot"),
                to_end: lines.next() == Some("to the end"),
                lines: lines.map(str::to_owned).collect(),
            }
        })
    }

    /// A register of a CPU, for root where the msr module is loaded. Absent for a folder.
    pub(crate) fn register(&self, cpu: u32, register: u32) -> Reading<u64> {
        let path = format!("/dev/cpu/{cpu}/msr");
        let call = format!("msr {register:#x} of cpu {cpu}");
        let ask = || device::register(cpu, register).map(|value| value.to_string());
        let called = self.call(&call, ask).unwrap_or_else(|| Reading::absent(""));
        called.with_path(path).parsed("a number", |text| text.parse().ok())
    }

    /// Opens a file to be read again and again.
    pub(crate) fn open(&self, path: &str) -> Reading<File> {
        match &self.source {
            Source::Disk(disk) => match disk.open(path) {
                Ok(file) => Reading::known(path, file),
                Err(error) => self.refused(path, &error.into()),
            },
            Source::Capture(_) => Reading::denied(path, "a captured machine does not change"),
        }
    }

    /// Where a path of the machine is, links followed; for what writes.
    pub(crate) fn place(&self, path: &str) -> io::Result<PathBuf> {
        self.disk()?.resolve(path, true)
    }

    /// Where a path of the machine is, its last part not followed where it is a link; that part
    /// need not be there.
    pub(crate) fn entry(&self, path: &str) -> io::Result<PathBuf> {
        self.disk()?.entry(path)
    }

    /// Whether this is a capture: answers, no files.
    pub const fn is_capture(&self) -> bool {
        matches!(self.source, Source::Capture(_))
    }

    /// Whether questions and answers are recorded.
    pub(crate) const fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    fn disk(&self) -> io::Result<&Disk> {
        match &self.source {
            Source::Disk(disk) => Ok(disk),
            Source::Capture(_) => Err(io::Error::other("a captured machine has no files")),
        }
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        let answer = match &self.source {
            Source::Disk(disk) => disk.bytes(path).map_err(Refusal::from),
            Source::Capture(capture) => capture.bytes(path),
        };
        self.note(|recorder| recorder.bytes(path, &answer));
        answer
    }

    fn names(&self, path: &str) -> Result<Vec<String>, Refusal> {
        let answer = match &self.source {
            Source::Disk(disk) => disk.names(path).map_err(Refusal::from),
            Source::Capture(capture) => capture.names(path),
        };
        self.note(|recorder| recorder.names(path, &answer));
        answer
    }

    fn link(&self, path: &str) -> Result<String, Refusal> {
        let answer = match &self.source {
            Source::Disk(disk) => disk.link(path).map_err(Refusal::from),
            Source::Capture(capture) => capture.link(path),
        };
        self.note(|recorder| recorder.link(path, &answer));
        answer
    }

    fn note(&self, take_down: impl FnOnce(&Recorder)) {
        if let Some(recorder) = &self.recorder {
            take_down(recorder);
        }
    }

    pub(crate) fn refused<T>(&self, path: &str, refusal: &Refusal) -> Reading<T> {
        refusal.reading(path, || self.surroundings.get_or_init(|| self.look_around()))
    }

    /// Whether we see the machine's own processes and control groups: then the marks of a container
    /// runtime are left over from the image that the file system was made of. The numbers are the
    /// kernel's (include/linux/proc_ns.h, `PROC_PID_INIT_INO`, `PROC_CGROUP_INIT_INO`).
    pub(crate) fn in_initial_namespaces(&self) -> bool {
        let is = |name: &str, number: &str| {
            let link = self.link(&format!("/proc/self/ns/{name}"));
            link.is_ok_and(|target| target == format!("{name}:[{number}]"))
        };
        is("pid", "4026531836") && is("cgroup", "4026531835")
    }

    fn look_around(&self) -> Surroundings {
        let lockdown = self.bytes("/sys/kernel/security/lockdown").ok();
        let mode = lockdown.as_deref().map(String::from_utf8_lossy);
        let mode = mode.and_then(|text| between(&text, '[', ']').map(str::to_owned));
        let marks = ["/run/.containerenv", "/.dockerenv", "/run/systemd/container"];
        Surroundings {
            lockdown: mode.filter(|mode| mode != "none"),
            container: marks.iter().any(|mark| self.exists(mark)) && !self.in_initial_namespaces(),
            unprivileged: self.origin() == Origin::Live { by_root: false },
        }
    }
}

#[cfg(test)]
mod tests;
