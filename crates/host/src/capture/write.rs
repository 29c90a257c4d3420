//! A capture as text: one form for one content, sorted, so that two captures can be compared.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    sync::{Mutex, PoisonError},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use rustix::io::Errno;

use super::form::{
    Capture, CaptureEntry, CaptureOrigin, FIRST_LINE, LAST_LINE, PATH_BYTES_MAX, clean, escape,
    follow, is_plain,
};
use crate::reading::{LINKS_MAX, READ_BYTES_MAX, ReadRefusal};
use crate::text::excerpt;

impl Capture {
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n{}\n", self.origin.line());
        for line in &self.about {
            text += &format!("#{line}\n");
        }
        for (name, entry) in &self.entries {
            put(&mut text, &escape(name.as_bytes()), entry);
        }
        text + LAST_LINE + "\n"
    }
}

impl CaptureOrigin {
    /// Every origin, for the parser.
    pub(super) const ALL: [Self; 4] =
        [Self::Live { by_root: true }, Self::Live { by_root: false }, Self::Folder, Self::Files];

    /// Second line of the file.
    pub(super) const fn line(self) -> &'static str {
        match self {
            Self::Live { by_root: true } => "from live, read by root",
            Self::Live { by_root: false } => "from live, read by a user",
            Self::Folder => "from folder",
            Self::Files => "from files",
        }
    }
}

fn put(text: &mut String, name: &str, entry: &CaptureEntry) {
    let plain = |text: &str| lines(text.split('\n'), str::to_owned);
    let (kind, body) = match entry {
        CaptureEntry::File(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if is_plain(text) => ("file", plain(text)),
            _ => ("escaped", lines(bytes.split(|byte| *byte == b'\n'), escape)),
        },
        CaptureEntry::Lines(text) => ("lines", plain(text)),
        CaptureEntry::Gzip(text) => ("gzip", plain(text)),
        CaptureEntry::Folder(names) => ("folder", names.iter().map(|name| line(name)).collect()),
        CaptureEntry::Link(target) => ("link", line(target)),
        CaptureEntry::Call(answer) => ("call", line(answer)),
        CaptureEntry::Failed(why) => ("failed", line(why)),
        CaptureEntry::Denied(number) => ("denied", line(&super::parse::errno_name(*number))),
        CaptureEntry::There => ("there", String::new()),
        CaptureEntry::Absent => ("absent", String::new()),
        CaptureEntry::Redacted => ("redacted", String::new()),
    };
    text.push_str(&format!("== {name} {kind}\n{body}"));
}

fn line(text: &str) -> String {
    format!("|{}\n", escape(text.as_bytes()))
}

/// Lines of a file: the last begins with `:` where the file ends without a line's end.
fn lines<T: Default + PartialEq + Copy>(
    lines: impl Iterator<Item = T>,
    show: impl Fn(T) -> String,
) -> String {
    let mut lines = lines.peekable();
    let mut text = String::new();
    while let Some(line) = lines.next() {
        match lines.peek() {
            Some(_) => text.push_str(&format!("|{}\n", show(line))),
            None if line == T::default() => {}
            None => text.push_str(&format!(":{}\n", show(line))),
        }
    }
    text
}

// A capture answers as the machine did.

impl Capture {
    /// The bytes of a file.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, ReadRefusal> {
        match self.find(path, true)? {
            CaptureEntry::File(bytes) => Ok(bytes.clone()),
            CaptureEntry::Gzip(text) => pack(text).map_err(ReadRefusal::from),
            CaptureEntry::Folder(_) => Err(Errno::ISDIR.into()),
            other => Err(refusal(other)),
        }
    }

    /// The bytes of a file, or its recorded lines.
    pub(crate) fn excerpt(&self, path: &str, keys: &[&str]) -> Result<Vec<u8>, ReadRefusal> {
        match self.find(path, true)? {
            // A line that was not read is not a line that the file lacks.
            CaptureEntry::Lines(lines) => match excerpt(lines.as_bytes(), keys) {
                Some(_) => Ok(lines.clone().into_bytes()),
                None => Err(ReadRefusal::NotCaptured),
            },
            _ => self.bytes(path),
        }
    }

    /// The names in a folder.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, ReadRefusal> {
        match self.find(path, true)? {
            CaptureEntry::Folder(names) => Ok(names.clone()),
            CaptureEntry::File(_) | CaptureEntry::Lines(_) | CaptureEntry::Gzip(_) => {
                Err(Errno::NOTDIR.into())
            }
            other => Err(refusal(other)),
        }
    }

    /// The target of a link.
    pub(crate) fn link(&self, path: &str) -> Result<String, ReadRefusal> {
        match self.find(path, false)? {
            CaptureEntry::Link(target) => Ok(target.clone()),
            CaptureEntry::File(_)
            | CaptureEntry::Lines(_)
            | CaptureEntry::Gzip(_)
            | CaptureEntry::Folder(_)
            | CaptureEntry::There => Err(Errno::INVAL.into()),
            other => Err(refusal(other)),
        }
    }

    /// Whether the path exists.
    pub(crate) fn exists(&self, path: &str) -> Result<(), ReadRefusal> {
        match self.find(path, false)? {
            CaptureEntry::Denied(_)
            | CaptureEntry::Failed(_)
            | CaptureEntry::Absent
            | CaptureEntry::Call(_) => Err(Errno::NOENT.into()),
            _ => Ok(()),
        }
    }

    /// The answer to a system call.
    pub(crate) fn call(&self, call: &str) -> Result<String, ReadRefusal> {
        match self.entries.get(call) {
            Some(CaptureEntry::Call(answer)) => Ok(answer.clone()),
            Some(other) => Err(refusal(other)),
            None => Err(ReadRefusal::NotCaptured),
        }
    }

    /// Whether something that was there is below a folder, with a name below it that `is` takes.
    pub(crate) fn has_below(&self, folder: &str, is: impl Fn(&str) -> bool) -> bool {
        let prefix = format!("{}/", clean(folder).trim_end_matches('/'));
        let below = self.entries.range(prefix.clone()..);
        let mut below = below.take_while(|(path, _)| path.starts_with(&prefix));
        let was_there =
            |entry: &CaptureEntry| !matches!(entry, CaptureEntry::Absent | CaptureEntry::Failed(_));
        below.any(|(path, entry)| was_there(entry) && is(&path[prefix.len()..]))
    }

    /// Files of /proc and /sys, and those of them that hold no byte though they must.
    pub(crate) fn count_files(&self, may_be_empty: fn(&str) -> bool) -> (u64, u64) {
        let is_of_kernel = |path: &str| path.starts_with("/proc/") || path.starts_with("/sys/");
        let entries = self.entries.iter().filter(|(path, _)| is_of_kernel(path));
        entries.fold((0, 0), |(all, empty), (path, entry)| match entry {
            CaptureEntry::File(bytes) => {
                (all + 1, empty + u64::from(bytes.is_empty() && !may_be_empty(path)))
            }
            CaptureEntry::Lines(_) | CaptureEntry::Gzip(_) => (all + 1, empty),
            _ => (all, empty),
        })
    }

    /// The entry of a path: its own, or where the links on the way lead.
    fn find(&self, path: &str, follow_last: bool) -> Result<&CaptureEntry, ReadRefusal> {
        let mut path = clean(path);
        for _ in 0..=LINKS_MAX {
            if path.len() > PATH_BYTES_MAX {
                return Err(Errno::NAMETOOLONG.into());
            }
            path = match self.entries.get(&path) {
                Some(CaptureEntry::Link(target)) if follow_last => follow(&path, target),
                Some(entry) => return Ok(entry),
                None => self.follow_above(&path)?,
            };
        }
        Err(Errno::LOOP.into())
    }

    /// The path with the first link above it followed. Below what is absent all is absent.
    fn follow_above(&self, path: &str) -> Result<String, ReadRefusal> {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
            match self.entries.get(&path[..at]) {
                Some(CaptureEntry::Link(target)) => {
                    return Ok(clean(&format!("{}{}", follow(&path[..at], target), &path[at..])));
                }
                Some(CaptureEntry::Absent) => return Err(Errno::NOENT.into()),
                _ => {}
            }
        }
        // Files that are a tree answer as a folder does.
        if self.origin == CaptureOrigin::Files && self.entries.contains_key("/") {
            return Err(Errno::NOENT.into());
        }
        Err(ReadRefusal::NotCaptured)
    }
}

/// Why an entry is no answer.
fn refusal(entry: &CaptureEntry) -> ReadRefusal {
    match entry {
        CaptureEntry::Absent => Errno::NOENT.into(),
        CaptureEntry::Denied(number) => ReadRefusal::Errno(*number),
        CaptureEntry::Failed(text) => ReadRefusal::Text(text.clone()),
        CaptureEntry::Redacted => ReadRefusal::Redacted,
        _ => ReadRefusal::NotCaptured,
    }
}

/// Packed for readers that unpack; what takes time in packing is left out.
fn pack(text: &str) -> std::io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(text.as_bytes())?;
    gzip.finish()
}

// Records what is read from a machine and what it answers.

/// Largest text taken out of a gzip file.
const UNPACKED_BYTES_MAX: u64 = 8 << 20;

/// Questions and answers so far. Of two different answers the first is kept, unless the later one
/// says more.
#[derive(Debug, Default)]
pub(crate) struct CaptureRecorder {
    entries: Mutex<BTreeMap<String, CaptureEntry>>,
}

impl CaptureRecorder {
    pub(crate) fn bytes(&self, path: &str, answer: &Result<Vec<u8>, ReadRefusal>) {
        self.take_down(path, true, answer, |bytes| {
            if bytes.len() as u64 > READ_BYTES_MAX {
                return CaptureEntry::Denied(Errno::FBIG.raw_os_error());
            }
            unpack(bytes).map_or_else(|| CaptureEntry::File(bytes.clone()), CaptureEntry::Gzip)
        });
    }

    /// Only the requested lines; the whole file where it lacks one of them.
    pub(crate) fn excerpt(&self, path: &str, keys: &[&str], answer: &Result<Vec<u8>, ReadRefusal>) {
        self.take_down(path, true, answer, |bytes| {
            let lines = excerpt(bytes, keys).filter(|lines| is_plain(lines));
            lines.map_or_else(|| CaptureEntry::File(bytes.clone()), CaptureEntry::Lines)
        });
    }

    pub(crate) fn names(&self, path: &str, answer: &Result<Vec<String>, ReadRefusal>) {
        self.take_down(path, true, answer, |names| {
            let mut names = names.clone();
            names.sort_unstable();
            names.dedup();
            CaptureEntry::Folder(names)
        });
    }

    pub(crate) fn link(&self, path: &str, answer: &Result<String, ReadRefusal>) {
        self.take_down(path, false, answer, |target| CaptureEntry::Link(target.clone()));
    }

    pub(crate) fn record_exists(&self, path: &str, answer: &Result<(), ReadRefusal>) {
        self.take_down(path, false, answer, |()| CaptureEntry::There);
    }

    pub(crate) fn call(&self, call: &str, answer: &Result<String, ReadRefusal>) {
        let entry = match answer {
            Ok(answer) => Some(CaptureEntry::Call(answer.clone())),
            Err(refusal) => entry_of(refusal),
        };
        if let Some(entry) = entry {
            self.lock().entry(call.to_owned()).or_insert(entry);
        }
    }

    /// Copy of the entries recorded so far, by name.
    pub(crate) fn entries(&self) -> BTreeMap<String, CaptureEntry> {
        self.lock().clone()
    }

    fn take_down<T>(
        &self,
        path: &str,
        follows: bool,
        answer: &Result<T, ReadRefusal>,
        entry: impl FnOnce(&T) -> CaptureEntry,
    ) {
        let entry = match answer {
            Ok(value) => Some(entry(value)),
            // readlink(2) of what is no link: there is something.
            Err(ReadRefusal::Errno(number))
                if !follows && *number == Errno::INVAL.raw_os_error() =>
            {
                Some(CaptureEntry::There)
            }
            Err(refusal) => entry_of(refusal),
        };
        let path = clean(path);
        // No machine has a longer one; a damaged capture may lead to it.
        if let Some(entry) = entry.filter(|_| path.len() <= PATH_BYTES_MAX) {
            insert(&mut self.lock(), path, entry, follows);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, CaptureEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `None` for what a capture did not know either.
fn entry_of(refusal: &ReadRefusal) -> Option<CaptureEntry> {
    match refusal {
        _ if refusal.is_absent() => Some(CaptureEntry::Absent),
        ReadRefusal::Errno(number) => Some(CaptureEntry::Denied(*number)),
        ReadRefusal::Text(text) => Some(CaptureEntry::Failed(text.clone())),
        ReadRefusal::Redacted => Some(CaptureEntry::Redacted),
        ReadRefusal::NotCaptured => None,
    }
}

/// A path read both as a link and for what is behind it has two entries: the link's, and its
/// target's.
fn insert(
    entries: &mut BTreeMap<String, CaptureEntry>,
    path: String,
    entry: CaptureEntry,
    follows: bool,
) {
    match (entries.get(&path), &entry) {
        (Some(CaptureEntry::Link(target)), new)
            if follows && !matches!(new, CaptureEntry::Link(_)) =>
        {
            let behind = follow(&path, target);
            keep_better(entries, behind, entry);
        }
        (Some(old), CaptureEntry::Link(target))
            if !matches!(old, CaptureEntry::Link(_) | CaptureEntry::There) =>
        {
            let (behind, old) = (follow(&path, target), old.clone());
            entries.insert(path, entry);
            keep_better(entries, behind, old);
        }
        _ => keep_better(entries, path, entry),
    }
}

fn keep_better(entries: &mut BTreeMap<String, CaptureEntry>, path: String, entry: CaptureEntry) {
    if let (Some(CaptureEntry::Lines(old)), CaptureEntry::Lines(new)) =
        (entries.get_mut(&path), &entry)
    {
        return add_lines(old, new);
    }
    let worth = |entry: &CaptureEntry| match entry {
        CaptureEntry::Absent => 0,
        CaptureEntry::There => 1,
        CaptureEntry::Denied(_) | CaptureEntry::Failed(_) => 2,
        CaptureEntry::Lines(_) => 3,
        _ => 4,
    };
    if entries.get(&path).is_none_or(|old| worth(old) < worth(&entry)) {
        entries.insert(path, entry);
    }
}

/// Adds the lines whose keys are new.
fn add_lines(old: &mut String, new: &str) {
    let key = |line: &str| line.split_once(':').map(|(key, _)| key.to_owned());
    let known: Vec<Option<String>> = old.lines().map(key).collect();
    for line in new.lines().filter(|line| !known.contains(&key(line))) {
        old.push_str(line);
        old.push('\n');
    }
}

/// The text in a gzip file, which people can read and compare.
fn unpack(bytes: &[u8]) -> Option<String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    let mut text = String::new();
    let mut unpacked = GzDecoder::new(bytes).take(UNPACKED_BYTES_MAX + 1);
    unpacked.read_to_string(&mut text).ok()?;
    (text.len() as u64 <= UNPACKED_BYTES_MAX && is_plain(&text)).then_some(text)
}
