//! The journal: what a machine was before each change, on disk before the change is made.
//!
//! One file for each apply, `/var/lib/rtproof/tune/NNNN.journal`. Each line begins with a checksum
//! over itself and all lines before it; see [`script`] for what the lines say.

mod error;
mod lock;
pub mod script;

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

pub use self::error::JournalError;
use self::{
    lock::Lock,
    script::{Entry, Header, Line, Script, ScriptError, VERSION},
};
use super::{
    machine::{FOLDER, Machine},
    writes::{is_absent, open_real},
};
use crate::refusal::READ_BYTES_MAX;

/// One journal.
#[derive(Debug)]
pub struct Journal {
    /// The file as the user knows it.
    name: String,
    real: PathBuf,
    pub(super) script: Script,
    /// Open for appending, once something is to be written.
    file: Option<File>,
    lock: Option<Lock>,
}

/// A line of a list of journals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number, of the file's name.
    pub number: u32,
    /// The file, as a path of the machine.
    pub path: String,
    /// What was requested; empty where it cannot be read.
    pub what: String,
    /// When, in nanoseconds since 1970.
    pub started_ns: i64,
    /// Changes that were made and are not undone.
    pub in_force: usize,
    /// Changes that were made.
    pub changes: usize,
    /// Whether everything was undone.
    pub closed: bool,
    /// Whether the machine has been started anew since.
    pub earlier_boot: bool,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

impl Journal {
    /// A new journal, and the lock that keeps a second rtproof out as long as it is held.
    ///
    /// # Errors
    /// Another rtproof is at it, or the journal cannot be written. Nothing is changed then.
    pub fn begin(machine: &Machine<'_>, what: String) -> Result<Self, JournalError> {
        make_folders(machine).map_err(|error| io_error(FOLDER, error))?;
        let lock = Lock::take(machine)?;
        let number = numbers(machine)?.last().map_or(1, |last| last + 1);
        let path = path_of(number);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = Header {
            format: script::FORMAT.into(),
            version: VERSION,
            machine: machine.machine_id(),
            boot: machine.boot_id(),
            rtproof: env!("CARGO_PKG_VERSION").into(),
            started_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            what,
        };
        let real = machine.root.entry(&path).map_err(|error| io_error(&path, error))?;
        let made = machine.gate.step().and_then(|()| {
            let mut options = OpenOptions::new();
            machine.gate.own_file(&path, options.read(true).write(true).create_new(true))
        });
        let file = made.map_err(|error| io_error(&path, error))?;
        let script = Script::new(header.clone());
        let mut journal =
            Self { name: path.clone(), real, script, file: Some(file), lock: Some(lock) };
        let headed = journal.write(machine, &Line::Header(header));
        headed.map_err(|error| io_error(&path, error))?;
        machine.gate.sync_folder_of(&path).map_err(|error| io_error(&path, error))?;
        Ok(journal)
    }

    /// A journal of this machine to be undone or looked at: a file that the user names (a copy will
    /// do), or the newest that is not undone.
    ///
    /// # Errors
    /// There is none; it is damaged, or another machine's.
    pub fn open(machine: &Machine<'_>, path: Option<&Path>) -> Result<Self, JournalError> {
        match path {
            Some(path) => Self::open_at(machine, &path.display().to_string(), path.to_owned()),
            None => {
                for number in numbers(machine)?.into_iter().rev() {
                    let path = path_of(number);
                    let real = machine.root.place(&path).map_err(|error| io_error(&path, error))?;
                    match Self::open_at(machine, &path, real) {
                        Ok(journal) if journal.script.closed => {}
                        // Killed before its first line was whole: nothing was done.
                        Err(JournalError::Corrupt {
                            source: ScriptError { what: script::Wrong::Empty, .. },
                            ..
                        }) => {}
                        other => return other,
                    }
                }
                Err(JournalError::NoneOpen)
            }
        }
    }

    /// A journal of this machine by its number.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_number(machine: &Machine<'_>, number: u32) -> Result<Self, JournalError> {
        let path = path_of(number);
        match machine.root.place(&path) {
            Ok(real) => Self::open_at(machine, &path, real),
            Err(error) if is_absent(&error) => Err(JournalError::Missing(path)),
            Err(error) => Err(io_error(&path, error)),
        }
    }

    fn open_at(machine: &Machine<'_>, name: &str, real: PathBuf) -> Result<Self, JournalError> {
        let script = read_script(name, &real)?;
        let here = machine.machine_id();
        if script.header.machine != here {
            let found = script.header.machine;
            return Err(JournalError::Foreign { path: name.into(), found, here });
        }
        Ok(Self { name: name.to_owned(), real, script, file: None, lock: None })
    }

    /// The journals of the machine, oldest first. One that cannot be read says why.
    ///
    /// # Errors
    /// The folder cannot be listed; no folder is an empty list.
    pub fn list(machine: &Machine<'_>) -> Result<Vec<Summary>, JournalError> {
        let boot = machine.boot_id();
        let summary = |number| {
            let path = path_of(number);
            let mut summary = Summary { number, path: path.clone(), ..Summary::default() };
            let opened = machine
                .root
                .place(&path)
                .map_err(|error| io_error(&path, error))
                .and_then(|real| Self::open_at(machine, &path, real));
            match opened {
                Ok(journal) => {
                    let script = journal.script;
                    summary.closed = script.closed;
                    summary.changes = script.made().count();
                    let in_force = script.made().filter(|entry| !entry.is_settled());
                    let in_force = in_force.count();
                    summary.in_force = if script.closed { 0 } else { in_force };
                    summary.earlier_boot = script.header.boot != boot;
                    summary.started_ns = script.header.started_ns;
                    summary.what = script.header.what;
                }
                // Killed before its first line was whole: nothing was done, nothing is reported.
                Err(JournalError::Corrupt {
                    source: ScriptError { what: script::Wrong::Empty, .. },
                    ..
                }) => return None,
                Err(error) => summary.problem = Some(error.to_string()),
            }
            Some(summary)
        };
        Ok(numbers(machine)?.into_iter().filter_map(summary).collect())
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.name
    }

    /// Its first line.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.script.header
    }

    /// Its changes, in the order in which they were made.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.script.entries
    }

    /// Whether everything was undone.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.script.closed
    }

    /// Removes a journal of the machine of which everything was undone, e.g. of a change that was
    /// only tried. Any other stays.
    ///
    /// # Errors
    /// When it cannot be removed; nothing was lost then.
    pub fn discard(self, machine: &Machine<'_>) -> Result<(), JournalError> {
        if !self.is_closed() || !self.name.starts_with(FOLDER) {
            return Ok(());
        }
        machine.gate.remove(&self.name).map_err(|error| io_error(&self.name, error))
    }

    /// Takes the lock and opens the file for appending, before anything is written to the machine.
    pub(super) fn prepare(&mut self, machine: &Machine<'_>) -> Result<(), JournalError> {
        if self.lock.is_none() {
            make_folders(machine).map_err(|error| io_error(FOLDER, error))?;
            self.lock = Some(Lock::take(machine)?);
            // Another rtproof may have written to it before it let go of the lock.
            self.script = read_script(&self.name, &self.real)?;
        }
        if self.file.is_none() {
            let opened = open_real(&self.real, true);
            let file = opened.map_err(|source| JournalError::Io {
                path: self.name.clone(),
                source,
                next: "; an undo is written down too: copy it to where it can be written",
            })?;
            self.file = Some(file);
        }
        Ok(())
    }

    /// Appends a line, and returns when it is on disk.
    pub(super) fn write(&mut self, machine: &Machine<'_>, line: &Line) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(io::Error::other("the journal is not open for writing"));
        };
        let text = self.script.text_of(line)?;
        #[cfg(test)]
        if machine.gate.faults.is_last() && machine.gate.faults.tears() {
            file.seek(SeekFrom::Start(self.script.length))?;
            file.write_all(&text.as_bytes()[..text.len() / 2])?;
        }
        machine.gate.step()?;
        let written = append(machine, file, self.script.length, &text);
        if let Err(error) = written {
            // What is there of the line would make the next one unreadable.
            let _ = file.set_len(self.script.length);
            return Err(error);
        }
        self.script.take(line, &text);
        Ok(())
    }
}

#[cfg_attr(not(test), expect(unused_variables, reason = "for tests a disk that is full"))]
fn append(machine: &Machine<'_>, file: &mut File, at: u64, text: &str) -> io::Result<()> {
    // A line that was torn by a kill is overwritten.
    if file.metadata()?.len() != at {
        file.set_len(at)?;
    }
    #[cfg(test)]
    machine.gate.faults.line()?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

fn read_script(name: &str, real: &Path) -> Result<Script, JournalError> {
    let file = match open_real(real, false) {
        Err(error) if is_absent(&error) => return Err(JournalError::Missing(name.into())),
        opened => opened.map_err(|error| io_error(name, error))?,
    };
    let mut bytes = Vec::new();
    let read = file.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| io_error(name, error))?;
    if bytes.len() as u64 > READ_BYTES_MAX {
        return Err(io_error(name, io::Error::other("larger than the 32 MiB of a journal")));
    }
    Script::parse(&bytes).map_err(|source| JournalError::Corrupt { path: name.into(), source })
}

fn io_error(path: &str, source: io::Error) -> JournalError {
    let next = match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => "; mount it writable: nothing is changed without it",
        io::ErrorKind::StorageFull => "; make room: nothing is changed without it",
        io::ErrorKind::PermissionDenied => "; run it as root",
        _ => "",
    };
    JournalError::Io { path: path.into(), source, next }
}

fn path_of(number: u32) -> String {
    format!("{FOLDER}/{number:04}.journal")
}

/// Numbers of the journals, ascending.
fn numbers(machine: &Machine<'_>) -> Result<Vec<u32>, JournalError> {
    let names = machine.root.list_dir(FOLDER);
    let names = match names.value() {
        Some(names) => names,
        None if names.is_absent() => return Ok(Vec::new()),
        None => {
            let why = io::Error::other(names.why_unknown().unwrap_or_default());
            return Err(io_error(FOLDER, why));
        }
    };
    let number = |name: &String| name.strip_suffix(".journal")?.parse().ok();
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The folders of the journals, for root alone to look into.
fn make_folders(machine: &Machine<'_>) -> io::Result<()> {
    let mut path = String::new();
    for part in FOLDER.split('/').skip(1) {
        path = format!("{path}/{part}");
        if !machine.root.exists(&path) {
            let is_own = path.starts_with("/var/lib/rtproof");
            machine.gate.make_folder(&path, if is_own { 0o700 } else { 0o755 })?;
        }
    }
    Ok(())
}
