//! A capture answers as the machine did.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use rustix::io::Errno;

use super::form::{Capture, Entry, PATH_BYTES_MAX, clean, follow};
use crate::{
    refusal::{LINKS_MAX, Refusal},
    text::excerpt,
};

impl Capture {
    /// The bytes of a file.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        match self.find(path, true)? {
            Entry::File(bytes) => Ok(bytes.clone()),
            Entry::Gzip(text) => pack(text).map_err(Refusal::from),
            Entry::Folder(_) => Err(Errno::ISDIR.into()),
            other => Err(refusal(other)),
        }
    }

    /// The bytes of a file, or those lines of it that were taken down.
    pub(crate) fn excerpt(&self, path: &str, keys: &[&str]) -> Result<Vec<u8>, Refusal> {
        match self.find(path, true)? {
            // A line that was not read is not a line that the file lacks.
            Entry::Lines(lines) => match excerpt(lines.as_bytes(), keys) {
                Some(_) => Ok(lines.clone().into_bytes()),
                None => Err(Refusal::NotCaptured),
            },
            _ => self.bytes(path),
        }
    }

    /// The names in a folder.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, Refusal> {
        match self.find(path, true)? {
            Entry::Folder(names) => Ok(names.clone()),
            Entry::File(_) | Entry::Lines(_) | Entry::Gzip(_) => Err(Errno::NOTDIR.into()),
            other => Err(refusal(other)),
        }
    }

    /// The target of a link.
    pub(crate) fn link(&self, path: &str) -> Result<String, Refusal> {
        match self.find(path, false)? {
            Entry::Link(target) => Ok(target.clone()),
            Entry::File(_) | Entry::Lines(_) | Entry::Gzip(_) | Entry::Folder(_) | Entry::There => {
                Err(Errno::INVAL.into())
            }
            other => Err(refusal(other)),
        }
    }

    /// Whether there is something.
    pub(crate) fn look(&self, path: &str) -> Result<(), Refusal> {
        match self.find(path, false)? {
            Entry::Denied(_) | Entry::Failed(_) | Entry::Absent | Entry::Call(_) => {
                Err(Errno::NOENT.into())
            }
            _ => Ok(()),
        }
    }

    /// The answer to a system call.
    pub(crate) fn call(&self, call: &str) -> Result<String, Refusal> {
        match self.entries.get(call) {
            Some(Entry::Call(answer)) => Ok(answer.clone()),
            Some(other) => Err(refusal(other)),
            None => Err(Refusal::NotCaptured),
        }
    }

    /// The entry of a path: its own, or where the links on the way lead.
    fn find(&self, path: &str, follow_last: bool) -> Result<&Entry, Refusal> {
        let mut path = clean(path);
        for _ in 0..=LINKS_MAX {
            if path.len() > PATH_BYTES_MAX {
                return Err(Errno::NAMETOOLONG.into());
            }
            path = match self.entries.get(&path) {
                Some(Entry::Link(target)) if follow_last => follow(&path, target),
                Some(entry) => return Ok(entry),
                None => self.follow_above(&path)?,
            };
        }
        Err(Errno::LOOP.into())
    }

    /// The path with the first link above it followed. Below what is absent all is absent.
    fn follow_above(&self, path: &str) -> Result<String, Refusal> {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
            match self.entries.get(&path[..at]) {
                Some(Entry::Link(target)) => {
                    return Ok(clean(&format!("{}{}", follow(&path[..at], target), &path[at..])));
                }
                Some(Entry::Absent) => return Err(Errno::NOENT.into()),
                _ => {}
            }
        }
        Err(Refusal::NotCaptured)
    }
}

/// Why an entry is no answer.
fn refusal(entry: &Entry) -> Refusal {
    match entry {
        Entry::Absent => Errno::NOENT.into(),
        Entry::Denied(number) => Refusal::Errno(*number),
        Entry::Failed(text) => Refusal::Text(text.clone()),
        Entry::Redacted => Refusal::Redacted,
        _ => Refusal::NotCaptured,
    }
}

/// Packed for readers that unpack; what takes time in packing is left out.
fn pack(text: &str) -> std::io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(text.as_bytes())?;
    gzip.finish()
}
