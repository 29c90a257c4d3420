//! Records what is read from a machine and what it answers.

use std::{
    collections::BTreeMap,
    io::Read,
    sync::{Mutex, PoisonError},
};

use flate2::read::GzDecoder;
use rustix::io::Errno;

use super::{
    escape::is_plain,
    form::{Entry, PATH_BYTES_MAX, clean, follow},
};
use crate::{
    refusal::{READ_BYTES_MAX, Refusal},
    text::excerpt,
};

/// Largest text taken out of a gzip file.
const UNPACKED_BYTES_MAX: u64 = 8 << 20;

/// Questions and answers so far. Of two different answers the first is kept, unless the later one
/// says more.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    entries: Mutex<BTreeMap<String, Entry>>,
}

impl Recorder {
    pub(crate) fn bytes(&self, path: &str, answer: &Result<Vec<u8>, Refusal>) {
        self.take_down(path, true, answer, |bytes| {
            if bytes.len() as u64 > READ_BYTES_MAX {
                return Entry::Denied(Errno::FBIG.raw_os_error());
            }
            unpack(bytes).map_or_else(|| Entry::File(bytes.clone()), Entry::Gzip)
        });
    }

    /// Only the requested lines; the whole file where it lacks one of them.
    pub(crate) fn excerpt(&self, path: &str, keys: &[&str], answer: &Result<Vec<u8>, Refusal>) {
        self.take_down(path, true, answer, |bytes| {
            let lines = excerpt(bytes, keys).filter(|lines| is_plain(lines));
            lines.map_or_else(|| Entry::File(bytes.clone()), Entry::Lines)
        });
    }

    pub(crate) fn names(&self, path: &str, answer: &Result<Vec<String>, Refusal>) {
        self.take_down(path, true, answer, |names| {
            let mut names = names.clone();
            names.sort_unstable();
            names.dedup();
            Entry::Folder(names)
        });
    }

    pub(crate) fn link(&self, path: &str, answer: &Result<String, Refusal>) {
        self.take_down(path, false, answer, |target| Entry::Link(target.clone()));
    }

    pub(crate) fn look(&self, path: &str, answer: &Result<(), Refusal>) {
        self.take_down(path, false, answer, |()| Entry::There);
    }

    pub(crate) fn call(&self, call: &str, answer: &Result<String, Refusal>) {
        let entry = match answer {
            Ok(answer) => Some(Entry::Call(answer.clone())),
            Err(refusal) => entry_of(refusal),
        };
        if let Some(entry) = entry {
            self.lock().entry(call.to_owned()).or_insert(entry);
        }
    }

    /// What was taken down.
    pub(crate) fn entries(&self) -> BTreeMap<String, Entry> {
        self.lock().clone()
    }

    fn take_down<T>(
        &self,
        path: &str,
        follows: bool,
        answer: &Result<T, Refusal>,
        entry: impl FnOnce(&T) -> Entry,
    ) {
        let entry = match answer {
            Ok(value) => Some(entry(value)),
            // readlink(2) of what is no link: there is something.
            Err(Refusal::Errno(number)) if !follows && *number == Errno::INVAL.raw_os_error() => {
                Some(Entry::There)
            }
            Err(refusal) => entry_of(refusal),
        };
        let path = clean(path);
        // No machine has a longer one; a damaged capture may lead to it.
        if let Some(entry) = entry.filter(|_| path.len() <= PATH_BYTES_MAX) {
            insert(&mut self.lock(), path, entry, follows);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `None` for what a capture did not know either.
fn entry_of(refusal: &Refusal) -> Option<Entry> {
    match refusal {
        _ if refusal.is_absent() => Some(Entry::Absent),
        Refusal::Errno(number) => Some(Entry::Denied(*number)),
        Refusal::Text(text) => Some(Entry::Failed(text.clone())),
        Refusal::Redacted => Some(Entry::Redacted),
        Refusal::NotCaptured => None,
    }
}

/// A path read both as a link and for what is behind it has two entries: the link's, and its
/// target's.
fn insert(entries: &mut BTreeMap<String, Entry>, path: String, entry: Entry, follows: bool) {
    match (entries.get(&path), &entry) {
        (Some(Entry::Link(target)), new) if follows && !matches!(new, Entry::Link(_)) => {
            let behind = follow(&path, target);
            keep_better(entries, behind, entry);
        }
        (Some(old), Entry::Link(target)) if !matches!(old, Entry::Link(_) | Entry::There) => {
            let (behind, old) = (follow(&path, target), old.clone());
            entries.insert(path, entry);
            keep_better(entries, behind, old);
        }
        _ => keep_better(entries, path, entry),
    }
}

fn keep_better(entries: &mut BTreeMap<String, Entry>, path: String, entry: Entry) {
    if let (Some(Entry::Lines(old)), Entry::Lines(new)) = (entries.get_mut(&path), &entry) {
        return add_lines(old, new);
    }
    let worth = |entry: &Entry| match entry {
        Entry::Absent => 0,
        Entry::There => 1,
        Entry::Denied(_) | Entry::Failed(_) => 2,
        Entry::Lines(_) => 3,
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
