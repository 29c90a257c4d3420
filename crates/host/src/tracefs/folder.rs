//! The folder of one instance below `tracing/instances`, and what each kind of recording does with
//! its files.

#![expect(clippy::disallowed_methods, reason = "files of tracefs, of the live machine only")]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::{fs::OFlags, io::Errno};

use super::{TracefsError, globals, guard::Guard, name::Name, refused_io, shown};
use crate::{Reading, Root};

/// How long removing waits for one that still reads.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Instances that one process may have.
const NUMBER_MAX: u32 = 63;

/// What the kernel counts of one CPU's ring since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub entries: u64,
    /// Events that were overwritten before they were read.
    pub overrun: u64,
    /// Events lost because the ring was full of nested ones.
    pub commit_overrun: u64,
    /// Events that were not written because the ring was full and may not be overwritten.
    pub dropped: u64,
    /// Events that were read.
    pub read: u64,
}

impl Stats {
    pub(super) fn read(root: &Root, path: &str) -> Reading<Self> {
        root.read_text(path).map(|text| parse_stats(&text))
    }
}

/// One instance's folder. Its guard removes it where this process cannot any more.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) root: Root,
    pub(super) path: String,
    _guard: Guard,
}

impl Folder {
    /// Makes a new one, named by this process. The guard comes first: it takes a while to make an
    /// instance, and a process that is killed meanwhile would leave it behind.
    pub(super) fn make(root: &Root, top: &str) -> Result<Self, TracefsError> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let own = Name::own(root);
        let path = |number| format!("{top}/instances/{}", Name { number, ..own }.text());
        let is_free = |path: &String| !root.exists(path);
        let path =
            (0..=NUMBER_MAX).map(path).find(is_free).ok_or_else(|| TracefsError::Refused {
                path: shown(&format!("{top}/instances")),
                why: format!("this process has {} instances already", NUMBER_MAX + 1),
            })?;
        let guard = Guard::start(&path, &globals::state(globals::STATE, &path));
        let guard = guard.map_err(|error| TracefsError::Refused {
            path: shown(&path),
            why: format!("removing it when rtproof is killed takes a shell: {error}"),
        })?;
        fs::create_dir(&path).map_err(|error| refused_io(root, &path, error))?;
        Ok(Self { root: root.clone(), path, _guard: guard })
    }

    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Writes a file of the instance, in one write(2): the kernel takes each as a command.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), TracefsError> {
        self.try_write(name, text).map_err(|error| refused_io(&self.root, &self.file(name), error))
    }

    /// The same, with the kernel's own answer.
    pub(super) fn try_write(&self, name: &str, text: &str) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.file(name));
        file.and_then(|mut file| file.write_all(text.as_bytes()))
    }

    /// Whether nobody else records events, at the top or in another instance.
    pub(super) fn is_alone(&self, top: &str) -> bool {
        let names = self.root.list_dir(&format!("{top}/instances"));
        let others = names.value().into_iter().flatten();
        let others = others.map(|name| format!("{top}/instances/{name}"));
        let mut all = others.filter(|path| *path != self.path).chain([top.to_owned()]);
        let is_off = |text: Reading<String>| text.value().is_some_and(|text| text.trim() == "0");
        all.all(|path| is_off(self.root.read_text(&format!("{path}/events/enable"))))
    }

    /// Opens a file of a CPU for reads that never wait.
    pub(super) fn pipe(&self, cpu: u32, name: &str) -> Result<File, TracefsError> {
        let path = self.file(&format!("per_cpu/cpu{cpu}/{name}"));
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        file.map_err(|error| refused_io(&self.root, &path, error))
    }

    pub(super) fn stats(&self, cpu: u32) -> Reading<Stats> {
        Stats::read(&self.root, &self.file(&format!("per_cpu/cpu{cpu}/stats")))
    }

    /// Removes it; a reader may keep it for a while.
    pub(super) fn remove(&self) {
        let is_busy = |error: io::Error| error.raw_os_error() == Some(Errno::BUSY.raw_os_error());
        let start = Instant::now();
        while fs::remove_dir(&self.path).is_err_and(is_busy) && start.elapsed() < REMOVE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Removes what dead processes left. In a container processes outside are hidden, so that all
/// of theirs would look dead: nothing is removed there. An instance that is being read cannot be
/// removed, whoever reads it.
pub(super) fn remove_stale(root: &Root, top: &str) -> Vec<String> {
    if !root.in_initial_namespaces() {
        return Vec::new();
    }
    let names = root.list_dir(&format!("{top}/instances"));
    let is_stale = |text: &&String| Name::parse(text).is_some_and(|name| name.is_stale(root));
    let stale = names.value().into_iter().flatten().filter(is_stale);
    let removed = stale.filter(|name| fs::remove_dir(format!("{top}/instances/{name}")).is_ok());
    removed.cloned().collect()
}

fn parse_stats(text: &str) -> Stats {
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    Stats {
        entries: count("entries"),
        overrun: count("overrun"),
        commit_overrun: count("commit overrun"),
        dropped: count("dropped events"),
        read: count("read events"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_ring() {
        let text = "entries: 3\noverrun: 7\ncommit overrun: 1\nbytes: 9\noldest event ts:     0.0\n\
                    now ts:   9.0\ndropped events: 2\nread events: 5\n";
        let wanted = Stats { entries: 3, overrun: 7, commit_overrun: 1, dropped: 2, read: 5 };
        assert_eq!(parse_stats(text), wanted);
        assert_eq!(parse_stats(""), Stats::default());
    }
}
