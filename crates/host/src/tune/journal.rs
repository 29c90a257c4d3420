//! The journal: what a machine was before each change, on disk before the change is made.
//!
//! One file for each apply, `/var/lib/rtproof/tune/NNNN.journal`. Each line begins with a checksum
//! over itself and all lines before it; see [`super::script`] for what the lines say.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::{fs::FlockOperation, io::Errno};

use super::script::{
    Item, JournalEntry, JournalHeader, JournalLine, JournalScript, PlannedChange, ScriptError,
    VERSION,
};
use super::writes::is_absent;
use super::{FOLDER, Machine, held, witness};
use crate::change::Change;
use crate::reading::READ_BYTES_MAX;
use crate::trusted;

/// An open journal file: what was changed, and what was there before.
#[derive(Debug)]
pub struct Journal {
    /// The file as the user knows it.
    name: String,
    real: PathBuf,
    pub(super) script: JournalScript,
    /// Open for appending, once something is to be written.
    file: Option<File>,
    lock: Option<Lock>,
    /// Whether a part of it does not hold: then nothing is added to it.
    damaged: bool,
}

/// A file as it is read.
pub(super) struct Text {
    pub(super) script: JournalScript,
    damaged: bool,
}

/// A line of a list of journals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalSummary {
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
    /// Whether that is because only its mark in /run is left: what it says is in force.
    pub is_missing: bool,
}

const MACHINE_ID: &str = "/etc/machine-id";

impl Journal {
    /// A new journal of what is to be changed, and the lock that keeps a second rtproof out as long
    /// as it is held. Its file appears with its first line whole, then its mark in /run.
    ///
    /// # Errors
    /// Another rtproof holds the lock, or the journal cannot be written. Nothing is changed then.
    pub fn begin(
        machine: &Machine<'_>,
        what: String,
        items: &[Item],
    ) -> Result<Self, JournalError> {
        make_folders(machine).map_err(|error| io_error(FOLDER, error))?;
        let folder = machine.root.place(FOLDER).map_err(|error| io_error(FOLDER, error))?;
        trusted::folder(&folder).map_err(|error| io_error(FOLDER, error))?;
        let lock = Lock::take(machine)?;
        let number = numbers(machine)?.last().map_or(1, |last| last + 1);
        let path = path_of(number);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = JournalHeader {
            format: super::script::FORMAT.into(),
            version: VERSION,
            machine: machine.machine_id().map_err(|error| io_error(MACHINE_ID, error))?,
            boot: machine.boot_id(),
            rtproof: env!("CARGO_PKG_VERSION").into(),
            started_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            what,
            planned: items.iter().map(|item| planned(machine, &item.change)).collect(),
        };
        let begun = || {
            let mut script = JournalScript::new(header.clone());
            let line = JournalLine::Header(header);
            let text = script.text_of(&line)?;
            let file = machine.gate.new_file(&path, text.as_bytes())?;
            script.take(&line, &text, text.len());
            Ok((machine.root.entry(&path)?, script, file))
        };
        let (real, script, file) = begun().map_err(|error| io_error(&path, error))?;
        held::add(number, machine.root, &lock.file);
        let (file, lock) = (Some(file), Some(lock));
        let journal = Self { name: path, real, script, file, lock, damaged: false };
        if let Err(error) = witness::mark(machine, &journal.script, number) {
            // A mark that is there nevertheless keeps its journal.
            let _ = journal.unmark(machine).and_then(|()| machine.gate.remove(&journal.name));
            return Err(io_error("/run/rtproof", error));
        }
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
                    match Self::open_number(machine, number) {
                        Ok(journal) if journal.script.closed => {}
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
    /// As [`Journal::open`]; only its mark in /run is there, or the file is another journal's.
    pub fn open_number(machine: &Machine<'_>, number: u32) -> Result<Self, JournalError> {
        let path = path_of(number);
        let opened = match machine.root.place(&path) {
            Ok(real) => Self::open_at(machine, &path, real),
            Err(error) if is_absent(&error) => Err(JournalError::Missing(path.clone())),
            Err(error) => Err(io_error(&path, error)),
        };
        let Some(mark) = witness::of(machine, number) else { return opened };
        match opened {
            Err(JournalError::Missing(_)) => {}
            Ok(journal) if !mark.is_of(&journal.script) => {}
            opened => return opened,
        }
        Err(JournalError::Lost(mark.without_journal(machine, &path)))
    }

    /// Looks whether the file under its name holds what was written: a folder that was moved or
    /// removed meanwhile takes the undo with it.
    pub(super) fn confirm_on_disk(&self, machine: &Machine<'_>) -> io::Result<()> {
        let found = (machine.root.place(&self.name).map_err(|error| io_error(&self.name, error)))
            .and_then(|real| read(machine, &self.name, &real));
        match found {
            Ok(found) if found.script == self.script => Ok(()),
            found => {
                let why = found.err().map_or("holds other lines".into(), |error| error.to_string());
                Err(io::Error::other(format!(
                    "was moved, removed or replaced while the changes were made ({why}); leave \
                     {FOLDER} alone and apply again"
                )))
            }
        }
    }

    fn open_at(machine: &Machine<'_>, name: &str, real: PathBuf) -> Result<Self, JournalError> {
        let Text { script, damaged } = read(machine, name, &real)?;
        let here = machine.machine_id().map_err(|error| io_error(MACHINE_ID, error))?;
        if script.header.machine != here {
            let found = script.header.machine;
            return Err(JournalError::Foreign { path: name.into(), found, this_machine: here });
        }
        Ok(Self { name: name.to_owned(), real, script, file: None, lock: None, damaged })
    }

    /// The journals of the machine, oldest first. One that cannot be read says why.
    ///
    /// # Errors
    /// The folder cannot be listed; no folder is an empty list.
    pub fn list(machine: &Machine<'_>) -> Result<Vec<JournalSummary>, JournalError> {
        let summary = |number| {
            let path = path_of(number);
            let mut summary =
                JournalSummary { number, path: path.clone(), ..JournalSummary::default() };
            match Self::open_number(machine, number) {
                Ok(journal) => {
                    summary.earlier_boot = journal.is_of_earlier_boot(machine);
                    let script = journal.script;
                    summary.closed = script.closed;
                    summary.changes = script.made().count();
                    let in_force = script.made().filter(|entry| !entry.is_settled());
                    let in_force = in_force.count();
                    summary.in_force = if script.closed { 0 } else { in_force };
                    summary.started_ns = script.header.started_ns;
                    summary.what = script.header.what;
                }
                Err(error) => {
                    summary.is_missing = matches!(error, JournalError::Lost(_));
                    summary.problem = Some(error.to_string());
                }
            }
            summary
        };
        Ok(numbers(machine)?.into_iter().map(summary).collect())
    }

    pub fn path(&self) -> &str {
        &self.name
    }

    pub const fn header(&self) -> &JournalHeader {
        &self.script.header
    }

    /// Its changes, in the order in which they were made.
    pub fn entries(&self) -> &[JournalEntry] {
        &self.script.entries
    }

    /// Whether everything was undone.
    pub const fn is_closed(&self) -> bool {
        self.script.closed
    }

    /// Whether only a part of it could be verified.
    pub const fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Whether it was written before the machine was started anew. A boot that cannot be asked for
    /// is no other.
    pub fn is_of_earlier_boot(&self, machine: &Machine<'_>) -> bool {
        let (then, now) = (&self.header().boot, machine.boot_id());
        !then.is_empty() && !now.is_empty() && *then != now
    }

    /// Changes that were planned, of which the journal says nothing, and that are there all the
    /// same: the journal was cut, or another program made them.
    pub fn planned_only(&self, machine: &Machine<'_>) -> Vec<Change> {
        let is_earlier_boot = self.is_of_earlier_boot(machine);
        let is_there = |change: &Change| {
            let named = machine.named(change.clone());
            named.is_ok_and(|change| {
                machine.state(&change).is_ok_and(|state| machine.is_done(&change, &state))
            })
        };
        let lasts = |change: &Change| !is_earlier_boot || change.nature().is_durable;
        let planned = self.script.planned_only().filter(|planned| !planned.was_so);
        planned
            .map(|planned| &planned.change)
            .filter(|change| lasts(change) && is_there(change))
            .cloned()
            .collect()
    }

    /// Puts a damaged journal of the machine aside, once nothing of it is left to be done: as
    /// `NNNN.damaged`, for whoever wants to look at it.
    ///
    /// # Errors
    /// When it cannot be renamed; nothing was lost then.
    pub fn put_aside(self, machine: &Machine<'_>) -> Result<(), JournalError> {
        match self.name.strip_suffix(".journal").filter(|_| self.name.starts_with(FOLDER)) {
            Some(name) => {
                self.unmark(machine).map_err(|error| io_error(&self.name, error))?;
                let moved = machine.gate.rename(&self.name, &format!("{name}.damaged"));
                moved.map_err(|error| io_error(&self.name, error))
            }
            None => Ok(()),
        }
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
        let removed = self.unmark(machine).and_then(|()| machine.gate.remove(&self.name));
        removed.map_err(|error| io_error(&self.name, error))
    }

    /// Removes its mark in /run: nothing of it is in force.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn unmark(&self, machine: &Machine<'_>) -> io::Result<()> {
        witness::remove(machine, &self.script)
    }

    /// Takes the lock and opens the file for appending, before anything is written to the machine.
    /// `Ok(Some(error))`: nothing can be written down; what is undone is found again by its state.
    pub(super) fn prepare(
        &mut self,
        machine: &Machine<'_>,
    ) -> Result<Option<io::Error>, JournalError> {
        let mut unwritable = None;
        if self.lock.is_none() {
            match make_folders(machine) {
                Err(error) if is_full(&error) => unwritable = Some(error),
                made => made.map_err(|error| io_error(FOLDER, error))?,
            }
            match Lock::take(machine) {
                Err(JournalError::Io { source, .. }) if is_full(&source) => {
                    unwritable = Some(source);
                }
                taken => self.lock = Some(taken?),
            }
            // Another rtproof may have written to it before it let go of the lock.
            let Text { script, damaged } = read(machine, &self.name, &self.real)?;
            (self.script, self.damaged) = (script, damaged);
        }
        if self.damaged {
            let why = "a damaged journal is left as it is";
            return Ok(Some(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        if self.file.is_none() {
            match trusted::open_to_write(&self.real) {
                Ok(file) => self.file = Some(file),
                Err(error) if is_full(&error) => unwritable = Some(error),
                Err(error) if machine.obeys_others && trusted::is_distrust(&error) => {
                    unwritable = Some(error);
                }
                Err(error) => return Err(io_error(&self.name, error)),
            }
        }
        Ok(unwritable)
    }

    /// Appends a line, and returns when it is on disk.
    pub(super) fn write(&mut self, machine: &Machine<'_>, line: &JournalLine) -> io::Result<()> {
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
            // A partial line would make the next one unreadable.
            let _ = file.set_len(self.script.length);
            return Err(error);
        }
        self.script.take(line, &text, text.len());
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

/// Reads a journal, of which every line has to hold unless the machine takes what does.
pub(super) fn read(machine: &Machine<'_>, name: &str, real: &Path) -> Result<Text, JournalError> {
    let opened = match trusted::open(real) {
        Err(error) if machine.obeys_others && trusted::is_distrust(&error) => {
            crate::door::read(real)
        }
        opened => opened,
    };
    let file = match opened {
        Err(error) if is_absent(&error) => return Err(JournalError::Missing(name.into())),
        opened => opened.map_err(|error| io_error(name, error))?,
    };
    let mut bytes = Vec::new();
    let read = file.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| io_error(name, error))?;
    if bytes.len() as u64 > READ_BYTES_MAX {
        return Err(io_error(name, io::Error::other("larger than the 32 MiB of a journal")));
    }
    let (script, wrong) = JournalScript::verified(&bytes);
    let empty = ScriptError { line: 1, what: super::script::Wrong::Empty };
    match (script, wrong) {
        (Some(script), None) => Ok(Text { script, damaged: false }),
        (Some(script), Some(_)) if machine.takes_damaged => Ok(Text { script, damaged: true }),
        (Some(script), Some(source)) => Err(JournalError::Corrupt {
            path: name.into(),
            source,
            verified: Some(script.entries.len()),
            named: script.planned_only().map(|planned| planned.change.target()).collect(),
        }),
        (None, wrong) => Err(JournalError::Corrupt {
            path: name.into(),
            source: wrong.unwrap_or(empty),
            verified: None,
            named: super::script::named(&bytes),
        }),
    }
}

/// A change as a journal plans it.
pub(super) fn planned(machine: &Machine<'_>, change: &Change) -> PlannedChange {
    let named = machine.named(change.clone()).unwrap_or_else(|_| change.clone());
    let was_so = machine.state(&named).is_ok_and(|state| machine.is_done(&named, &state));
    PlannedChange { change: change.clone(), was_so }
}

/// Whether a place takes no writes, be it for now.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), ReadOnlyFilesystem | StorageFull | QuotaExceeded)
}

fn io_error(path: &str, source: io::Error) -> JournalError {
    if trusted::is_distrust(&source) {
        return JournalError::Distrusted(source);
    }
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

/// Numbers of the journals, and of the marks of what is applied, ascending.
fn numbers(machine: &Machine<'_>) -> Result<Vec<u32>, JournalError> {
    let names = machine.root.list_dir(FOLDER);
    let names = match names.value() {
        Some(names) => names.as_slice(),
        None if names.is_absent() => &[],
        None => {
            let why = io::Error::other(names.why_unknown().unwrap_or_default());
            return Err(io_error(FOLDER, why));
        }
    };
    let number = |name: &String| name.strip_suffix(".journal")?.parse().ok();
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.extend(witness::numbers(machine));
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The folders of the journals, for root alone to look into.
pub(super) fn make_folders(machine: &Machine<'_>) -> io::Result<()> {
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

/// Why a journal cannot be used. Nothing was written to the machine.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{0}: no journal; `rtproof tune status` lists those that there are")]
    Missing(String),
    /// Something is applied, and the file that says what was there before is not there.
    #[error("{0}")]
    Lost(String),
    /// Nothing that could be undone.
    #[error("{FOLDER}: no journal of changes that are in force; there is nothing to undo")]
    NoneOpen,
    /// It cannot be read or written.
    #[error("{path}: {source}{next}")]
    Io {
        path: String,
        source: io::Error,
        /// The next step, after a semicolon.
        next: &'static str,
    },
    /// It was damaged, or made by hand.
    #[error("{path}:{source}; nothing of it was undone; {}", offer(.verified, .named))]
    Corrupt {
        path: String,
        /// What is wrong, in which line.
        source: ScriptError,
        /// Changes that the lines before it hold; `None`: not even its first line holds.
        verified: Option<usize>,
        /// What it names behind that, as far as it can be read: verified where its first line is.
        named: Vec<String>,
    },
    /// Another user could have written it.
    #[error("{0}")]
    Distrusted(io::Error),
    /// Written on another machine.
    #[error(
        "{path}: written on another machine ({found}; this one is {this_machine}); nothing was \
         written: use it there"
    )]
    Foreign {
        path: String,
        /// Hash of that machine's id.
        found: String,
        /// Hash of this machine's id.
        this_machine: String,
    },
    /// Another rtproof is running.
    #[error(
        "{path}: another rtproof (process {pid}) is changing this machine; wait until it has ended"
    )]
    Locked { path: String, pid: String },
}

/// Things that are named in one sentence.
const NAMED_MAX: usize = 12;

/// What can be done with a damaged journal.
fn offer(verified: &Option<usize>, named: &[String]) -> String {
    let mut list = named.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if named.len() > NAMED_MAX {
        list += &format!(" and {} more", named.len() - NAMED_MAX);
    }
    match (verified, named.is_empty()) {
        (None, true) => "use an undamaged copy of it: it may have changed this machine".into(),
        (None, false) => format!(
            "use an undamaged copy of it; it may have changed {list} (read from damaged lines)"
        ),
        (Some(verified), true) => format!(
            "use an undamaged copy, or undo the {verified} of its changes that can be verified \
             with --damaged; of further ones nothing is known"
        ),
        (Some(verified), false) => format!(
            "use an undamaged copy, or undo the {verified} of its changes that can be verified \
             with --damaged; it planned as well: {list}"
        ),
    }
}

// One rtproof at a time changes a machine.

/// Longest wait for what this process itself holds, and time between two tries.
const OWN_MAX: Duration = Duration::from_millis(500);

const OWN_POLL: Duration = Duration::from_millis(2);

/// Held until it is dropped, or its process ends in any way.
#[derive(Debug)]
pub(super) struct Lock {
    file: Arc<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A panic ends the process, which undoes first.
        if !thread::panicking() {
            held::remove(&self.file);
        }
    }
}

impl Lock {
    /// Takes the lock, at once or not at all.
    pub(super) fn take(machine: &Machine<'_>) -> Result<Self, JournalError> {
        let path = format!("{FOLDER}/lock");
        let io = |source| JournalError::Io { path: path.clone(), source, next: "" };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = match machine.gate.own_file(&path, options) {
            // To hold it, it need not be written.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => machine
                .gate
                .own_file(&path, OpenOptions::new().read(true))
                .map_err(|_| io(error))?,
            opened => opened.map_err(io)?,
        };
        let own = std::process::id().to_string();
        let end = Instant::now() + OWN_MAX;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {
                    let mut pid = String::new();
                    let _ = file.rewind();
                    let _ = (&file).take(32).read_to_string(&mut pid);
                    // A child of ours that has not executed its program yet has our files, too.
                    if pid.trim() == own && Instant::now() < end {
                        thread::sleep(OWN_POLL);
                        continue;
                    }
                    let pid = match pid.trim() {
                        "" => "unknown".to_owned(),
                        pid => pid.to_owned(),
                    };
                    return Err(JournalError::Locked { path, pid });
                }
                Err(errno) => return Err(io(errno.into())),
            }
        }
        // For whoever meets it; it holds without a name, too.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { file: Arc::new(file) })
    }
}
