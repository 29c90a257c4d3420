//! The content of a capture: what there was under each path.

#[cfg(test)]
mod capture_tests;

pub(crate) use super::write::CaptureRecorder;

use std::{
    collections::BTreeMap,
    fmt::Write,
    io::{self, Read},
};

/// Largest capture that is read: /proc/interrupts of the largest machines, four times.
pub const CAPTURE_BYTES_MAX: u64 = 128 << 20;

/// Longest path and target of a link, as in the kernel (PATH_MAX).
pub(super) const PATH_BYTES_MAX: usize = 4096;

/// First line of every file, with the version of the format.
pub(super) const FIRST_LINE: &str = "rtproof capture 1";

/// Last line: a file without it was cut off.
pub(super) const LAST_LINE: &str = "== end";

/// A machine as a file keeps it: every path that was read, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    pub(crate) origin: CaptureOrigin,
    /// Comments at the head, without their `#`.
    pub(crate) about: Vec<String>,
    /// By path, or by the name of a system call.
    pub(crate) entries: BTreeMap<String, CaptureEntry>,
}

/// Where a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureOrigin {
    /// On the machine itself: what was absent, the machine does not have.
    Live {
        /// By root, which may read everything.
        by_root: bool,
    },
    /// From a folder, which may hold a part of the machine.
    Folder,
    /// From single files, which hold a part of it.
    Files,
}

/// Captured content of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaptureEntry {
    /// A file and its bytes.
    File(Vec<u8>),
    /// Some lines of a file, of which the others were not read.
    Lines(String),
    /// A gzip file and the text inside.
    Gzip(String),
    /// The names in a folder, sorted.
    Folder(Vec<String>),
    /// A symbolic link and its target.
    Link(String),
    /// Something whose content was not read.
    There,
    /// Refused, with the kernel's error number.
    Denied(i32),
    /// Refused with an error that has no number.
    Failed(String),
    Absent,
    /// It names the machine and was left out.
    Redacted,
    /// The answer to a system call.
    Call(String),
}

/// What is wrong with a capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {text}")]
pub struct CaptureError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, what was expected, the next step.
    pub text: String,
}

impl Capture {
    /// Reads a file. The outer error is of the reading, the inner one of what was read.
    ///
    /// # Errors
    /// When it cannot be read, or is no capture.
    pub fn read(from: impl Read) -> io::Result<Result<Self, CaptureError>> {
        let mut bytes = Vec::new();
        from.take(CAPTURE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(Self::parse(&bytes))
    }

    /// A machine of these files and no others: for tests, and for questions of what would be.
    pub fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut capture =
            Self { origin: CaptureOrigin::Folder, about: Vec::new(), entries: BTreeMap::new() };
        for (path, bytes) in files {
            capture.set_file(path, bytes);
        }
        capture
    }

    /// Puts a file in the place of whatever was there.
    pub fn set_file(&mut self, path: &str, bytes: &[u8]) {
        self.entries.insert(clean(path), CaptureEntry::File(bytes.to_vec()));
    }

    /// Makes a path absent.
    pub fn set_absent(&mut self, path: &str) {
        self.entries.insert(clean(path), CaptureEntry::Absent);
    }

    /// Makes a path refused, for want of rights.
    pub fn set_denied(&mut self, path: &str) {
        let error = rustix::io::Errno::ACCESS.raw_os_error();
        self.entries.insert(clean(path), CaptureEntry::Denied(error));
    }

    /// What is in it: paths, and system calls.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Where it was taken.
    pub const fn origin(&self) -> CaptureOrigin {
        self.origin
    }

    /// Number of paths and calls.
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }
}

/// A path with one `/` between names and no dots; `..` takes the name before it away.
pub(crate) fn clean(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Where a link leads.
pub(super) fn follow(path: &str, target: &str) -> String {
    if target.starts_with('/') {
        return clean(target);
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    clean(&format!("{folder}/{target}"))
}

// Bytes as one line of text and back: `\\` for a backslash, `\xNN` for what is no text.

/// Whether text needs no escapes: whatever an editor shows and keeps.
pub(super) fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t')
}

/// One line of plain text.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut line = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => line.push_str("\\\\"),
                '\t' => line.push(c),
                _ if c.is_control() => {
                    let mut buffer = [0; 4];
                    put_hex(&mut line, c.encode_utf8(&mut buffer).as_bytes());
                }
                _ => line.push(c),
            }
        }
        put_hex(&mut line, chunk.invalid());
    }
    line
}

fn put_hex(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(line, "\\x{byte:02X}");
    }
}

/// The bytes behind a line; `None` where a backslash begins neither escape.
pub(super) fn unescape(line: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest {
            [b'\\', after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [b'x', high, low, after @ ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let value = digit(high)? << 4 | digit(low)?;
                bytes.push(u8::try_from(value).ok()?);
                rest = after;
            }
            _ => return None,
        }
    }
    Some(bytes)
}

/// [`unescape`], for results that must be text.
pub(super) fn unescape_text(line: &str) -> Option<String> {
    String::from_utf8(unescape(line)?).ok()
}
