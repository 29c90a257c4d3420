//! The lines of a journal, as data: written, read, verified. No file is touched here.
//!
//! A line is the checksum of the line before and of its own JSON (16 hexadecimal digits of
//! SHA-256), a space, the JSON, and a line's end. A journal that was cut short is one whose last
//! line is not whole; any other damage breaks the chain at its line.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::State;
use crate::change::Change;
use crate::text::hex;

/// Version of the lines.
pub const VERSION: u32 = 1;

/// Format name in the first line.
pub const FORMAT: &str = "rtproof tune journal";

/// Hexadecimal digits of a checksum.
const DIGITS: usize = 16;

/// What is to be applied: a change, and the checks that ask for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    pub change: Change,
    /// Checks whose findings ask for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
}

/// First line of a journal: its format, machine and boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalHeader {
    pub format: String,
    /// Version of the lines.
    pub version: u32,
    /// Hash of the machine's id; empty where it has none.
    pub machine: String,
    /// Boot in which it was written; empty for a folder without one.
    pub boot: String,
    pub rtproof: String,
    /// When, in nanoseconds since 1970.
    pub started_ns: i64,
    pub what: String,
    /// What is to be changed, in order: a journal that is shorter was cut. Those of earlier
    /// versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<PlannedChange>,
}

/// A change that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedChange {
    pub change: Change,
    /// Whether it was already in force before anything was changed.
    pub was_so: bool,
}

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "line")]
pub enum JournalLine {
    Header(JournalHeader),
    /// Already in force: nothing is done.
    Same {
        n: usize,
        item: Item,
        state: State,
    },
    /// A change that is about to be made.
    Begin {
        n: usize,
        item: Item,
        before: State,
    },
    /// A change that could not be begun.
    Refused {
        n: usize,
        item: Item,
        why: String,
    },
    /// It was made, and read back.
    Done {
        n: usize,
        after: State,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// It was not made, or is not in force.
    Failed {
        n: usize,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<State>,
    },
    /// It is about to be undone.
    Undoing {
        n: usize,
    },
    /// It was undone, or left.
    Undone {
        n: usize,
        outcome: Outcome,
    },
    /// Nothing is left to be undone.
    Closed,
}

/// One change, as far as the journal knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// The change and the checks that request it.
    pub item: Item,
    /// What was there before; `None` for one that could not be begun.
    pub before: Option<State>,
    /// State after it; `None` if it was not read: a kill.
    pub after: Option<State>,
    /// How far it got.
    pub stage: Stage,
    pub note: Option<String>,
    /// Whether it was about to be undone.
    pub undoing: bool,
    /// What became of it when it was undone.
    pub undone: Option<Outcome>,
}

/// How far a change got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Already in force before the change.
    WasSo,
    /// Begun and, as far as the journal knows, not ended.
    Begun,
    /// Made and read back.
    Done,
    Failed(String),
    /// Could not be begun, and why.
    Refused(String),
}

impl JournalEntry {
    /// Whether there is nothing left to be undone.
    pub fn is_settled(&self) -> bool {
        let is_undone = |outcome: &Outcome| !matches!(outcome, Outcome::Failed { .. });
        self.before.is_none()
            || self.stage == Stage::WasSo
            || self.undone.as_ref().is_some_and(is_undone)
    }
}

/// What is wrong with a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
pub struct ScriptError {
    /// Number of the line, from 1.
    pub line: usize,
    pub what: Wrong,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Not one whole line.
    #[error("no whole line; expected a journal of rtproof tune")]
    Empty,
    /// The checksum is not that of the lines up to here.
    #[error("damaged: the checksum does not hold")]
    Checksum,
    /// The JSON is not a line.
    #[error("not a line of a journal: {0}")]
    Json(String),
    /// The first line is not a header, or of another version.
    #[error("not a journal of rtproof tune, version 1; use the rtproof that wrote it")]
    Header,
    /// A line that cannot be where it is.
    #[error("a line out of order")]
    Order,
}

/// A journal that was read, or is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalScript {
    pub header: JournalHeader,
    /// The changes, in the order in which they were made.
    pub entries: Vec<JournalEntry>,
    /// Whether nothing is left to be undone.
    pub closed: bool,
    /// Checksum of the first line, which names the journal.
    pub(super) digest: String,
    /// Checksum of the last line.
    last: String,
    /// Bytes of the whole lines.
    pub length: u64,
}

impl JournalScript {
    pub(super) fn new(header: JournalHeader) -> Self {
        let (digest, last) = (String::new(), String::new());
        Self { header, entries: Vec::new(), closed: false, digest, last, length: 0 }
    }

    /// Reads a journal. A last line that is not whole was being written when the power went or the
    /// process was killed: what it speaks of was not done yet, and it is left out.
    pub fn parse(bytes: &[u8]) -> Result<Self, ScriptError> {
        match Self::verified(bytes) {
            (_, Some(error)) => Err(error),
            (script, None) => script.ok_or(ScriptError { line: 1, what: Wrong::Empty }),
        }
    }

    /// The lines that hold, and what is wrong with the next one; a last line that is not whole is
    /// nothing wrong.
    pub fn verified(bytes: &[u8]) -> (Option<Self>, Option<ScriptError>) {
        let mut script = None;
        let read = Self::read(bytes, &mut script);
        (script, read.err())
    }

    fn read(bytes: &[u8], script: &mut Option<Self>) -> Result<(), ScriptError> {
        let mut rest = bytes;
        let mut number = 0;
        while !rest.is_empty() {
            number += 1;
            let wrong = |what| ScriptError { line: number, what };
            let Some(end) = rest.iter().position(|&byte| byte == b'\n') else { break };
            let (line, after) = rest.split_at(end + 1);
            let last = script.as_ref().map_or("", |script| script.last.as_str());
            let Some((checksum, json)) = verified(last, &line[..end]) else {
                // Blocks that never got to the disk read as zeros.
                if after.is_empty() && line.contains(&0) {
                    break;
                }
                return Err(wrong(Wrong::Checksum));
            };
            let parsed: JournalLine = serde_json::from_str(json)
                .map_err(|error| wrong(Wrong::Json(error.to_string())))?;
            let script = match (&mut *script, &parsed) {
                (None, JournalLine::Header(header)) if is_known(header) => {
                    script.insert(Self::new(header.clone()))
                }
                (None, _) => return Err(wrong(Wrong::Header)),
                (Some(script), _) if script.follows(&parsed) => script,
                _ => return Err(wrong(Wrong::Order)),
            };
            script.take(&parsed, checksum, line.len());
            rest = after;
        }
        Ok(())
    }

    /// Planned changes that the journal does not mention: it ended before them, or
    /// was cut.
    pub fn planned_only(&self) -> impl Iterator<Item = &PlannedChange> {
        self.header.planned.iter().skip(self.entries.len())
    }

    /// Changes that were begun.
    pub fn made(&self) -> impl Iterator<Item = &JournalEntry> {
        self.entries.iter().filter(|entry| {
            !matches!(entry.stage, Stage::WasSo | Stage::Refused(_)) && entry.before.is_some()
        })
    }

    /// A line as it is appended next.
    ///
    /// # Errors
    /// When it has no form as JSON.
    pub fn text_of(&self, line: &JournalLine) -> io::Result<String> {
        let json = serde_json::to_string(line).map_err(io::Error::other)?;
        Ok(format!("{} {json}\n", checksum(&self.last, &json)))
    }

    /// Takes in a line that was read or appended.
    pub(super) fn take(&mut self, line: &JournalLine, checksum: &str, length: usize) {
        self.apply(line);
        self.last = checksum[..DIGITS].to_owned();
        if let JournalLine::Header(_) = line {
            self.digest.clone_from(&self.last);
        }
        self.length += length as u64;
    }

    /// Whether a line can come next.
    fn follows(&self, line: &JournalLine) -> bool {
        let entry = |n: &usize| self.entries.get(*n).filter(|entry| entry.before.is_some());
        match line {
            JournalLine::Header(_) => false,
            JournalLine::Same { n, .. }
            | JournalLine::Begin { n, .. }
            | JournalLine::Refused { n, .. } => *n == self.entries.len() && !self.closed,
            JournalLine::Done { n, .. } | JournalLine::Failed { n, .. } => {
                entry(n).is_some_and(|entry| entry.stage == Stage::Begun)
            }
            JournalLine::Undoing { n } | JournalLine::Undone { n, .. } => entry(n).is_some(),
            JournalLine::Closed => true,
        }
    }

    fn apply(&mut self, line: &JournalLine) {
        let new = |item: &Item, before: Option<State>, stage| JournalEntry {
            item: item.clone(),
            before,
            after: None,
            stage,
            note: None,
            undoing: false,
            undone: None,
        };
        match line {
            JournalLine::Header(_) => {}
            JournalLine::Same { item, state, .. } => {
                self.entries.push(new(item, Some(state.clone()), Stage::WasSo));
            }
            JournalLine::Begin { item, before, .. } => {
                self.entries.push(new(item, Some(before.clone()), Stage::Begun));
            }
            JournalLine::Refused { item, why, .. } => {
                self.entries.push(new(item, None, Stage::Refused(why.clone())));
            }
            JournalLine::Done { n, after, note } => {
                self.entries[*n].after = Some(after.clone());
                self.entries[*n].note.clone_from(note);
                self.entries[*n].stage = Stage::Done;
            }
            JournalLine::Failed { n, why, after } => {
                self.entries[*n].after.clone_from(after);
                self.entries[*n].stage = Stage::Failed(why.clone());
            }
            JournalLine::Undoing { n } => self.entries[*n].undoing = true,
            JournalLine::Undone { n, outcome } => self.entries[*n].undone = Some(outcome.clone()),
            JournalLine::Closed => self.closed = true,
        }
    }
}

/// Names in the lines of a damaged journal, whatever their checksums: to be read, not to
/// be obeyed.
pub fn named(bytes: &[u8]) -> Vec<String> {
    let change = |line: &[u8]| match serde_json::from_slice(line.get(DIGITS + 1..)?).ok()? {
        JournalLine::Begin { item, .. } => Some(item.change.target()),
        _ => None,
    };
    bytes.split(|&byte| byte == b'\n').filter_map(change).collect()
}

fn is_known(header: &JournalHeader) -> bool {
    header.format == FORMAT && header.version == VERSION
}

/// The checksum and the JSON of a line, where the one is that of the other.
fn verified<'l>(last: &str, line: &'l [u8]) -> Option<(&'l str, &'l str)> {
    let line = std::str::from_utf8(line).ok()?;
    let (found, json) = line.split_at_checked(DIGITS)?;
    let json = json.strip_prefix(' ')?;
    (checksum(last, json) == found).then_some((found, json))
}

/// The checksum of a line: `last` is that of the line before, empty for the first.
pub fn checksum(last: &str, json: &str) -> String {
    let digest = Sha256::new().chain_update(last).chain_update(json).finalize();
    hex(&digest[..DIGITS / 2])
}

/// Outcome of the undo of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "became")]
pub enum Outcome {
    /// It is as before, and that was read back.
    Restored,
    /// It was as before already.
    WasBefore,
    /// There is nothing left that could be undone.
    Gone { why: Gone },
    /// Another program has changed it since: its value stays.
    LeftAlone { found: State },
    /// It could not be undone; another undo tries again.
    Failed { why: String },
}

/// Why there is nothing left to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gone {
    /// A value of the running kernel, and the machine has been started anew.
    Reboot,
    /// The task has ended, or the interrupt was given back.
    Ended,
    /// The kernel has no such file any more: a device or module that was taken away.
    Removed,
}
