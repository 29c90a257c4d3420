//! The seal: a SHA-256 over every byte of the file, kept in the file itself.
//!
//! The digest's own 64 digits count as zeros. They are found by the mark before them, which carries
//! the run's identity and stands once in the file, so no knowledge of SQLite's page format is
//! needed: anything that can search bytes and compute SHA-256 can check a record. It tells damage
//! and edits from the original; it is no signature: anyone who can edit the file can seal it again.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use memchr::memmem;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The text before the identity.
const PREFIX: &[u8] = b"rtproof-seal-1:";

const ID_LEN: usize = 32;

/// Length of the digest in hex digits.
pub(crate) const DIGITS: usize = 64;

const MARK_LEN: usize = PREFIX.len() + ID_LEN + 1 + DIGITS;

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// A file with more marks than this is no record: one is right.
const MARKS_MAX: usize = 16;

/// One mark in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealMark {
    /// Identity of the run it names.
    pub(crate) run_id: String,
    /// The digits: zeros until sealed.
    pub(crate) digits: String,
    /// Where the digits start.
    pub(crate) digits_at: u64,
}

impl SealMark {
    /// Whether a digest was filled in.
    pub(crate) fn is_closed(&self) -> bool {
        self.digits.bytes().any(|digit| digit != b'0')
    }
}

/// Text of a mark that waits for its digest.
pub(crate) fn open_mark(run_id: &str) -> String {
    format!("rtproof-seal-1:{run_id}:{}", "0".repeat(DIGITS))
}

/// Whether `id` is 32 lower-case hex digits: the seal is found in the file's bytes by it.
pub(crate) fn is_run_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads the text of a mark; `None` if it is invalid.
pub(crate) fn parse(bytes: &[u8]) -> Option<SealMark> {
    let rest = bytes.strip_prefix(PREFIX)?;
    let hex = |part: &[u8]| {
        let is_hex = part.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        is_hex.then(|| String::from_utf8_lossy(part).into_owned())
    };
    let (id, rest) = rest.split_at_checked(ID_LEN)?;
    let digits = rest.strip_prefix(b":").filter(|digits| digits.len() == DIGITS)?;
    Some(SealMark { run_id: hex(id)?, digits: hex(digits)?, digits_at: 0 })
}

/// All marks in a file, [`MARKS_MAX`] at most.
pub(crate) fn find(path: &Path) -> io::Result<Vec<SealMark>> {
    Ok(walk(&mut crate::open_file(path)?, CHUNK, |_| {})?.marks)
}

/// Result of one pass over a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct SealScan {
    /// Its marks, [`MARKS_MAX`] at most.
    pub(crate) marks: Vec<SealMark>,
    /// Digest of the file with the digits of its one mark as zeros; `None`: it has not one mark.
    digest: Option<String>,
}

impl SealScan {
    /// Whether the file is as it was when it was sealed.
    pub(crate) fn is_whole(&self) -> bool {
        let [mark] = &self.marks[..] else { return false };
        mark.is_closed() && self.digest.as_ref() == Some(&mark.digits)
    }
}

/// Looks for marks and makes the digest in one walk.
pub(crate) fn scan(path: &Path) -> io::Result<SealScan> {
    let mut hash = Sha256::new();
    let mut scan = walk(&mut crate::open_file(path)?, CHUNK, |bytes| hash.update(bytes))?;
    scan.digest = (scan.marks.len() == 1).then(|| hex(hash));
    Ok(scan)
}

/// Walks over a file. `take` gets all of it, the digits of the first mark as zeros; the digits of
/// others are left, and where there are too many marks the walk ends early.
fn walk(file: &mut impl Read, chunk: usize, mut take: impl FnMut(&[u8])) -> io::Result<SealScan> {
    let finder = memmem::Finder::new(PREFIX);
    let mut scan = SealScan::default();
    let mut buffer: Vec<u8> = Vec::with_capacity(chunk + MARK_LEN);
    let mut start: u64 = 0; // offset in the file of the buffer's first byte
    loop {
        let read = file.by_ref().take(chunk as u64).read_to_end(&mut buffer)?;
        // What may be the beginning of a mark that lies across the edge is looked at with the rest.
        let done = (buffer.len() + 1).saturating_sub(MARK_LEN);
        let mut at = 0;
        while let Some(found) = finder.find(&buffer[at..]).map(|found| at + found) {
            at = found + 1;
            let Some(bytes) = buffer.get_mut(found..found + MARK_LEN) else { break };
            if let Some(mark) = parse(bytes) {
                if scan.marks.is_empty() {
                    bytes[MARK_LEN - DIGITS..].fill(b'0');
                }
                let digits_at = start + (found + MARK_LEN - DIGITS) as u64;
                scan.marks.push(SealMark { digits_at, ..mark });
            }
        }
        if read == 0 || scan.marks.len() >= MARKS_MAX {
            take(&buffer);
            return Ok(scan);
        }
        take(&buffer[..done]);
        buffer.drain(..done);
        start += done as u64;
    }
}

/// Digest of a file, lower-case hex, with the digits at `digits_at` taken as zeros.
pub(crate) fn digest(path: &Path, digits_at: u64) -> io::Result<String> {
    let mut file = crate::open_file(path)?;
    let mut hash = Sha256::new();
    hash_some(&mut file.by_ref().take(digits_at), &mut hash)?;
    hash.update([b'0'; DIGITS]);
    file.seek(SeekFrom::Start(digits_at + DIGITS as u64))?;
    hash_some(&mut file, &mut hash)?;
    Ok(hex(hash))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_some(from: &mut impl Read, hash: &mut Sha256) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => hash.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// State of the seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
#[schemars(rename = "Seal")]
pub enum SealState {
    /// Every byte is as it was sealed.
    Sealed {
        /// SHA-256, 64 hex digits.
        digest: String,
    },
    Torn,
    /// Changed after it was sealed.
    Altered {
        /// What does not match.
        why: String,
    },
}

/// Compares what the file says of its seal (`row`), its identity and the marks in its bytes.
pub(crate) fn state(
    path: &Path,
    row: Option<&str>,
    run_id: &str,
    scan: &SealScan,
) -> io::Result<SealState> {
    let altered = |why: &str| Ok(SealState::Altered { why: why.into() });
    let own: Vec<&SealMark> = scan.marks.iter().filter(|mark| mark.run_id == run_id).collect();
    let closed = own.iter().any(|mark| mark.is_closed());
    let Some(row) = row else {
        return if closed { altered("its seal was taken out") } else { Ok(SealState::Torn) };
    };
    let Some(row) = parse(row.as_bytes()).filter(|mark| mark.run_id == run_id) else {
        return altered("its seal is not that of this run");
    };
    if !row.is_closed() && !closed {
        return Ok(SealState::Torn);
    }
    let [mark] = own[..] else {
        return altered("its seal stands in it more than once or not at all");
    };
    let digest = match &scan.digest {
        Some(digest) => digest.clone(),
        None => digest(path, mark.digits_at)?,
    };
    if digest == mark.digits && digest == row.digits {
        return Ok(SealState::Sealed { digest });
    }
    altered("its bytes do not match its seal")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(id: char, digit: char) -> String {
        format!("rtproof-seal-1:{}:{}", id.to_string().repeat(ID_LEN), digit.to_string().repeat(64))
    }

    #[test]
    fn finds_marks_across_every_chunk_edge() {
        let text = format!("rrtp{}rtproof-seal-1:x{}r", mark('a', '0'), mark('b', 'f'));
        for chunk in 1..300 {
            let mut seen = Vec::new();
            let take = |bytes: &[u8]| seen.extend_from_slice(bytes);
            let marks = walk(&mut text.as_bytes(), chunk, take).unwrap().marks;
            assert_eq!(seen, text.as_bytes(), "the first mark's digits are zeros as they are");
            assert_eq!(marks.len(), 2, "chunk {chunk}");
            assert_eq!(marks[0].digits_at, 4 + 48);
            assert!(!marks[0].is_closed() && marks[1].is_closed());
            let at = marks[1].digits_at as usize;
            assert_eq!(&text[at..at + DIGITS], marks[1].digits);
        }
    }

    #[test]
    fn a_closed_mark_is_hashed_as_zeros_across_every_chunk_edge() {
        let text = |digit| format!("x{}rest", mark('a', digit));
        for chunk in 1..200 {
            let mut seen = Vec::new();
            let take = |bytes: &[u8]| seen.extend_from_slice(bytes);
            let scan = walk(&mut text('e').as_bytes(), chunk, take).unwrap();
            assert_eq!(seen, text('0').as_bytes(), "chunk {chunk}");
            assert_eq!(scan.marks[0].digits, "e".repeat(DIGITS));
        }
    }

    #[test]
    fn takes_only_whole_marks() {
        for text in [mark('g', '0'), mark('A', '0'), mark('a', 'F'), mark('a', '0')[1..].into()] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        let cut = walk(&mut &mark('a', '1').as_bytes()[..111], 7, |_| {}).unwrap();
        assert_eq!(cut.marks, []);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own file")]
    fn digest_is_that_of_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, format!("abc{}", "7".repeat(DIGITS))).unwrap();
        // printf 'abc%064d' 0 | sha256sum
        let expected = "4df47bcd192cbb5670f2488ebc09949450dad57e1a9f6ebfcc6ee5fa8182dcdf";
        assert_eq!(digest(&path, 3).unwrap(), expected);
    }
}
