//! [`Root`]: the one gate to machine paths.
//!
//! Everything read about a machine comes through here, so that a captured machine (a folder with
//! its /proc, /sys, /etc ..., or one file of `rtproof capture`) is read by the same code as the
//! live one, and so that an error becomes one of the four states of a [`Reading`] in one place. A
//! captured machine never borrows from the live one: its symbolic links are resolved inside, and
//! what only a system call knows is read from the live machine alone.

#![expect(clippy::disallowed_methods, reason = "this is the gate")]

mod disk;
#[cfg(test)]
mod tests;

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    str::FromStr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{fs::OFlags, io::Errno};

use self::disk::Disk;
use crate::capture::form::{CaptureError, CaptureOrigin, CaptureRecorder};
use crate::reading::{
    COPIED_EMPTY, NOT_COPIED, NOT_GIVEN, NOT_IN_COPY, READ_BYTES_MAX, ReadRefusal, RefusalContext,
};
use crate::text::{between, excerpt};
use crate::{Capture, CpuList, Reading};

/// A machine: the live one, or a captured one in a folder or a file.
#[derive(Clone, Debug)]
pub struct Root {
    source: Source,
    /// Possible reasons of a refused read; determined at the first one.
    surroundings: OnceLock<RefusalContext>,
    /// Takes down every question and its answer.
    recorder: Option<Arc<CaptureRecorder>>,
    /// For who judges: what a copy left out is unknown, not missing. Whether a file without a byte
    /// was read.
    judged: Option<Arc<AtomicBool>>,
}

/// Ends of the names of files that hold a list, and of those that hold the same as a mask.
const MASKS: &[(&str, &str)] =
    &[("/shared_cpu_list", "/shared_cpu_map"), ("_list", ""), ("/cpulist", "/cpumap")];

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
        Self { source, surroundings: OnceLock::new(), recorder: None, judged: None }
    }

    /// A captured machine: a folder that holds its proc, sys, etc ... `/` itself is the live
    /// machine.
    ///
    /// # Errors
    /// The folder is not there, may not be opened, or is not a folder.
    pub fn dir(path: impl AsRef<Path>) -> Result<Self, RootError> {
        Ok(Self::of(Source::Disk(Disk::folder(path.as_ref())?)))
    }

    /// A machine as a capture file keeps it.
    pub fn captured(capture: Capture) -> Self {
        Self::of(Source::Capture(Arc::new(capture)))
    }

    /// The same machine, with every question and its answer recorded.
    pub(crate) fn recorded(&self, recorder: Arc<CaptureRecorder>) -> Self {
        Self { recorder: Some(recorder), ..Self::of(self.source.clone()) }
    }

    /// Whether this is the machine we run on.
    pub const fn is_live(&self) -> bool {
        matches!(&self.source, Source::Disk(disk) if disk.is_live())
    }

    /// Where the answers were taken.
    pub(crate) fn origin(&self) -> CaptureOrigin {
        match &self.source {
            Source::Capture(capture) => capture.origin(),
            Source::Disk(disk) if disk.is_live() => {
                CaptureOrigin::Live { by_root: rustix::process::geteuid().is_root() }
            }
            Source::Disk(_) => CaptureOrigin::Folder,
        }
    }

    /// Whether what is absent was not on the machine: the live one, and what was captured of one.
    /// A folder may hold a part.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.origin(), CaptureOrigin::Live { .. })
    }

    /// The bytes of a file, at most 32 MiB.
    pub fn read_bytes(&self, path: &str) -> Reading<Vec<u8>> {
        match self.bytes(path) {
            Ok(bytes) if bytes.len() as u64 > READ_BYTES_MAX => {
                let start = String::from_utf8_lossy(&bytes[..80]).into_owned();
                Reading::malformed(path, &start, "at most 32 MiB")
            }
            Ok(bytes) if bytes.is_empty() && self.is_hollow(path) => hollow(path),
            Ok(bytes) => Reading::known(path, bytes),
            Err(refusal) => self.refused_file(path, &refusal),
        }
    }

    /// The same machine for who judges it by what its files hold. Who changes files of a folder
    /// takes them as they are.
    pub(crate) fn judged(&self) -> Self {
        Self { judged: Some(Arc::default()), ..self.clone() }
    }

    /// Whether a file of no bytes is what a copy made of one that had some: tar, scp, rsync and git
    /// believe that files of /proc and /sys are as long as their inodes say.
    fn is_hollow(&self, path: &str) -> bool {
        let Some(seen) = self.judged.as_ref().filter(|_| !self.is_whole()) else { return false };
        let is_hollow = !may_be_empty(path);
        seen.fetch_or(is_hollow, Ordering::Relaxed);
        is_hollow
    }

    /// Files of a copy's /proc and /sys, and those without the bytes that they had; `None`: none
    /// of those that were read is empty.
    pub(crate) fn hollow_files(&self) -> Option<(u64, u64)> {
        let is_seen = self.judged.as_ref().is_some_and(|seen| seen.load(Ordering::Relaxed));
        is_seen.then(|| match &self.source {
            Source::Disk(disk) => disk.count_files(may_be_empty),
            Source::Capture(capture) => capture.count_files(may_be_empty),
        })
    }

    /// What the user gave in place of a whole machine, and what was left of it.
    pub(crate) fn given(&self) -> Option<String> {
        let given = match &self.source {
            Source::Disk(disk) => disk.part().map(str::to_owned),
            Source::Capture(capture) => capture.call(GIVEN).ok(),
        }?;
        self.note(|recorder| recorder.call(GIVEN, &Ok(given.clone())));
        Some(given)
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

    /// The CPUs of a file in the kernel's list format, else of the mask that the kernel keeps
    /// beside it; an empty file and `(null)` are the empty list.
    pub fn cpu_list(&self, path: &str) -> Reading<CpuList> {
        let list = self.read_text(path);
        let list = list.parsed("a list of CPUs like 0-3,8", |text| match text.trim() {
            // A mask that was never allocated.
            "(null)" => Some(CpuList::default()),
            list => CpuList::parse(list, None).ok(),
        });
        let mask = MASKS.iter().find_map(|(list, mask)| Some((path.strip_suffix(list)?, mask)));
        let (None, Some((stem, end))) = (list.value(), mask) else {
            return list;
        };
        let mask = self.cpu_mask(&format!("{stem}{end}"));
        let says_more = mask.value().is_some() || (list.is_absent() && !mask.is_absent());
        if says_more { mask } else { list }
    }

    /// The CPUs of a file that holds a mask.
    pub(crate) fn cpu_mask(&self, path: &str) -> Reading<CpuList> {
        let mask = self.trimmed(path);
        mask.parsed("a mask of CPUs in hexadecimal", |mask| CpuList::parse_mask(mask).ok())
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
            Source::Disk(disk) => disk.bytes(path).map_err(ReadRefusal::from),
            Source::Capture(capture) => capture.excerpt(path, keys),
        };
        self.note(|recorder| recorder.excerpt(path, keys, &answer));
        match answer {
            Ok(bytes) if bytes.is_empty() && self.is_hollow(path) => hollow(path),
            Ok(bytes) => match excerpt(&bytes, keys) {
                Some(lines) => Reading::known(path, lines),
                None => {
                    let expected = format!("lines {}", keys.join(", "));
                    Reading::malformed(path, &String::from_utf8_lossy(&bytes), expected)
                }
            },
            Err(refusal) => self.refused_file(path, &refusal),
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
            Source::Disk(disk) => disk.exists(path).map_err(ReadRefusal::from),
            Source::Capture(capture) => capture.exists(path),
        };
        self.note(|recorder| recorder.record_exists(path, &answer));
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
            // What single files answer, such as a text of ethtool.
            Source::Capture(capture) if capture.origin() == CaptureOrigin::Files => {
                match capture.call(call) {
                    Err(ReadRefusal::NotCaptured) => return None,
                    answer => answer,
                }
            }
            _ if !self.is_whole() => return None,
            Source::Capture(capture) => capture.call(call),
            Source::Disk(_) => ask().map_err(ReadRefusal::from),
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
            let log = kernel_log(&keep)?;
            let from = word(log.from_start, "from boot", "from later");
            let to = word(log.to_end, "to the end", "not to the end");
            Ok([vec![from, to], log.lines].concat().join("\n"))
        };
        let called = match self.given_log(&keep) {
            Some(text) => {
                self.note(|recorder| recorder.call("kernel log", &Ok(text.clone())));
                Reading::known(DEVICE, text)
            }
            None => match self.call("kernel log", ask) {
                Some(called) => called,
                None => return Reading::absent(DEVICE),
            },
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

    /// The log that the user gave as a text.
    fn given_log(&self, keep: &impl Fn(&str) -> Option<String>) -> Option<String> {
        let Source::Capture(capture) = &self.source else { return None };
        let is_given = capture.origin() == CaptureOrigin::Files;
        let bytes = is_given.then(|| capture.bytes("/dev/kmsg").ok()).flatten()?;
        let text = String::from_utf8_lossy(&bytes);
        let (head, messages) = text.lines().enumerate().partition::<Vec<_>, _>(|(at, _)| *at < 2);
        let head = head.into_iter().map(|(_, line)| line.to_owned());
        let kept = messages.into_iter().filter_map(|(_, message)| keep(message));
        Some(head.chain(kept).collect::<Vec<_>>().join("\n"))
    }

    /// A register of a CPU, for root where the msr module is loaded. Absent for a folder.
    pub(crate) fn register(&self, cpu: u32, register: u32) -> Reading<u64> {
        let path = format!("/dev/cpu/{cpu}/msr");
        let call = format!("msr {register:#x} of cpu {cpu}");
        let ask = || self::register(cpu, register).map(|value| value.to_string());
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

    fn bytes(&self, path: &str) -> Result<Vec<u8>, ReadRefusal> {
        let answer = match &self.source {
            Source::Disk(disk) => disk.bytes(path).map_err(ReadRefusal::from),
            Source::Capture(capture) => capture.bytes(path),
        };
        self.note(|recorder| recorder.bytes(path, &answer));
        answer
    }

    fn names(&self, path: &str) -> Result<Vec<String>, ReadRefusal> {
        let answer = match &self.source {
            Source::Disk(disk) => disk.names(path).map_err(ReadRefusal::from),
            Source::Capture(capture) => capture.names(path),
        };
        self.note(|recorder| recorder.names(path, &answer));
        answer
    }

    fn link(&self, path: &str) -> Result<String, ReadRefusal> {
        let answer = match &self.source {
            Source::Disk(disk) => disk.link(path).map_err(ReadRefusal::from),
            Source::Capture(capture) => capture.link(path),
        };
        self.note(|recorder| recorder.link(path, &answer));
        answer
    }

    fn note(&self, take_down: impl FnOnce(&CaptureRecorder)) {
        if let Some(recorder) = &self.recorder {
            take_down(recorder);
        }
    }

    pub(crate) fn refused<T>(&self, path: &str, refusal: &ReadRefusal) -> Reading<T> {
        if self.judged.is_some() && !self.is_whole() {
            if self.origin() == CaptureOrigin::Files && *refusal == ReadRefusal::NotCaptured {
                return Reading::denied(path, NOT_GIVEN);
            }
            let top = ["/proc", "/sys"].into_iter().find(|top| is_below(path, top));
            if let Some(top) = top.filter(|top| refusal.is_absent() && !self.has_folder(top)) {
                return self.lacking(path, format!("{top} {NOT_COPIED}"));
            }
        }
        refusal.reading(path, || self.surroundings.get_or_init(|| self.refusal_context()))
    }

    /// As [`Root::refused`], of a file: one that a copy lacks beside others of its folder may have
    /// been on the machine.
    fn refused_file<T>(&self, path: &str, refusal: &ReadRefusal) -> Reading<T> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_of_kernel = ["/proc/", "/sys/"].iter().any(|top| path.starts_with(top));
        let is_judged = self.judged.is_some() && !self.is_whole();
        if is_judged && is_of_kernel && refusal.is_absent() && self.has_files(folder) {
            return self.lacking(path, NOT_IN_COPY.into());
        }
        self.refused(path, refusal)
    }

    /// What a copy lacks; a capture of the copy says why, too.
    fn lacking<T>(&self, path: &str, why: String) -> Reading<T> {
        self.note(|recorder| recorder.bytes(path, &Err(ReadRefusal::Text(why.clone()))));
        Reading::denied(path, why)
    }

    /// Whether a copy holds the folder.
    pub(crate) fn has_folder(&self, path: &str) -> bool {
        match &self.source {
            Source::Disk(disk) => disk.exists(path).is_ok(),
            Source::Capture(capture) => capture.has_below(path, |_| true),
        }
    }

    fn has_files(&self, folder: &str) -> bool {
        match &self.source {
            Source::Disk(disk) => disk.has_files(folder),
            Source::Capture(_) if self.origin() != CaptureOrigin::Files => false,
            Source::Capture(capture) => capture.has_below(folder, |below| !below.contains('/')),
        }
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

    fn refusal_context(&self) -> RefusalContext {
        let lockdown = self.bytes("/sys/kernel/security/lockdown").ok();
        let mode = lockdown.as_deref().map(String::from_utf8_lossy);
        let mode = mode.and_then(|text| between(&text, '[', ']').map(str::to_owned));
        let marks = ["/run/.containerenv", "/.dockerenv", "/run/systemd/container"];
        RefusalContext {
            lockdown: mode.filter(|mode| mode != "none"),
            container: marks.iter().any(|mark| self.exists(mark)) && !self.in_initial_namespaces(),
            unprivileged: match (self.origin(), self.is_live()) {
                (CaptureOrigin::Live { by_root: false }, true) => Some("run as root"),
                (CaptureOrigin::Live { by_root: false }, false) => Some("capture it as root"),
                _ => None,
            },
        }
    }
}

// Devices that answer record by record or at an offset: the kernel's log and the registers of a
// CPU. Of the live machine alone; a capture keeps what was made of the answer.

/// Most records read: some 20 ms. The buffer of a machine with hundreds of CPUs may hold more.
const RECORDS_MAX: usize = 16_384;

/// Longer than any record (kernel/printk/internal.h, `PRINTK_MESSAGE_MAX`).
const RECORD_BYTES_MAX: usize = 8_192;

/// The kernel's log as far as its buffer still holds it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Messages {
    /// Whether the first message since boot is among them: nothing was overwritten.
    pub(crate) from_start: bool,
    /// Whether all were read up to now.
    pub(crate) to_end: bool,
    /// First lines of the messages, without level and time.
    pub(crate) lines: Vec<String>,
}

/// Reads /dev/kmsg; never waits for a message. `keep` makes of a message what is kept of it.
fn kernel_log(keep: impl Fn(&str) -> Option<String>) -> io::Result<Messages> {
    read_log(&mut open("/dev/kmsg")?, keep)
}

/// Name of the entry that says what was given; see [`Root::given`].
pub(crate) const GIVEN: &str = "given";

fn hollow<T>(path: &str) -> Reading<T> {
    Reading::denied(path, COPIED_EMPTY)
}

fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a live kernel may give no byte for the file. All else below /proc and /sys ends with a
/// line feed at least.
fn may_be_empty(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    let (Some(top @ ("proc" | "sys")), Some(first)) = (parts.next(), parts.next()) else {
        return true;
    };
    let last = path.rsplit('/').next().unwrap_or_default();
    match (top, first) {
        // Kernel threads have no memory, some machines no bus, lock or module, and properties of
        // the device tree may be names alone.
        ("proc", "bus" | "device-tree" | "dma" | "locks" | "modules" | "net") => true,
        ("proc", _) if first.starts_with(|c: char| c.is_ascii_digit()) => matches!(
            last,
            "cmdline" | "environ" | "maps" | "numa_maps" | "smaps" | "smaps_rollup" | "stack"
        ),
        ("proc", _) => false,
        // What is set there, and what an interrupt has no name for.
        (_, "fs") => true,
        (_, "firmware") => true,
        (_, "kernel") => {
            matches!(parts.next(), Some("irq" | "tracing" | "debug" | "security" | "config"))
        }
        _ => last == "uevent",
    }
}

/// One read(2) of the device is one record: `6,0,0,-;Linux version ...`, then lines of its
/// properties (Documentation/ABI/testing/dev-kmsg).
fn read_log(device: &mut impl Read, keep: impl Fn(&str) -> Option<String>) -> io::Result<Messages> {
    let mut log = Messages::default();
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    for at in 0..RECORDS_MAX {
        let length = match device.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            // Overwritten while it was read: the next one is there.
            Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => continue,
            Err(error) => return Err(error),
        };
        if length == 0 {
            log.to_end = true;
            break;
        }
        let record = String::from_utf8_lossy(&buffer[..length]);
        let Some((head, message)) = record.split_once(';') else { continue };
        if at == 0 {
            log.from_start = head.split(',').nth(1) == Some("0");
        }
        log.lines.extend(message.lines().next().and_then(&keep));
    }
    Ok(log)
}

/// A register of a CPU (msr(4)). The CPU is interrupted for it.
fn register(cpu: u32, register: u32) -> io::Result<u64> {
    let mut value = [0; 8];
    open(&format!("/dev/cpu/{cpu}/msr"))?.read_exact_at(&mut value, u64::from(register))?;
    Ok(u64::from_le_bytes(value))
}

fn open(path: &str) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Why a path cannot be a captured machine.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// It cannot be opened.
    #[error(
        "{path}: {source}; give a file of `rtproof capture`, or the top folder of a captured \
         machine, the one that holds proc and sys"
    )]
    Open { path: PathBuf, source: io::Error },
    #[error(
        "{0}: is not a folder; give the top folder of a captured machine, the one that holds \
         proc and sys"
    )]
    NotAFolder(PathBuf),
    /// Nothing that a machine can be made from, and why.
    #[error("{path}: {why}")]
    Text { path: PathBuf, why: String },
    #[error(
        "{one} and {two} contradict each other: {what}; give files of one machine and one boot"
    )]
    Contradiction { one: String, two: String, what: String },
    /// Not the file of a captured machine, or damaged.
    #[error("{path}:{source}")]
    Capture {
        path: PathBuf,
        /// What is wrong, and in which line.
        source: CaptureError,
    },
}

#[cfg(test)]
mod device_tests {
    use super::*;

    /// Answers read by read, as the device does.
    struct Records(Vec<io::Result<&'static str>>);

    impl Read for Records {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop() {
                Some(Ok(record)) => {
                    buffer[..record.len()].copy_from_slice(record.as_bytes());
                    Ok(record.len())
                }
                Some(Err(error)) => Err(error),
                None => Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }

    fn read(mut records: Vec<io::Result<&'static str>>) -> io::Result<Messages> {
        records.reverse();
        let keep = |line: &str| line.contains("tsc").then(|| line.to_owned());
        read_log(&mut Records(records), keep)
    }

    #[test]
    fn records_are_filtered_and_properties_left_out() {
        let log = read(vec![
            Ok("6,0,0,-;Linux version 6.1\n"),
            Err(Errno::PIPE.into()),
            Ok("4,7,12,-;tsc: bad; very\n SUBSYSTEM=tsc\n DEVICE=x\n"),
        ])
        .unwrap();
        let lines = vec!["tsc: bad; very".to_owned()];
        assert_eq!(log, Messages { from_start: true, to_end: true, lines });
        assert!(!read(vec![Ok("6,5,0,-;x\n")]).unwrap().from_start);
    }

    #[test]
    fn refusals_are_reported_and_an_endless_log_ends() {
        assert!(read(vec![Err(Errno::PERM.into())]).is_err());
        let endless = (0..RECORDS_MAX + 5).map(|_| Ok("6,0,0,-;x\n")).collect();
        assert!(!read(endless).unwrap().to_end);
    }
}
