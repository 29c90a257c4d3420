//! Reading a record: sealed ones without touching them, torn ones after rolling back what was cut
//! off, damaged ones never further than a clear error.
//!
//! A sealed file is opened `immutable`: no lock, no journal, no side file, so it may lie on a
//! read-only medium. Anything that is not proven whole by its seal goes through SQLite's own
//! `quick_check` first, which visits each page once: after it, no walk over the file can run in
//! circles or be longer than the file.

mod check;
pub(crate) mod follow;
mod recover;
mod run;

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread::Thread,
    time::Duration,
};

use recover::ReadDetail;
use rusqlite::Connection;

use rtproof_stats::{Bin, Bins, Moments};

use crate::effects::{
    BINS_MAX, Effect, Effects, Imported, ImportedThread, KNOBS_MAX, KnobResult, SLICES_MAX,
    SliceStatistic, THREADS_MAX, TrialSummary,
};
use crate::error::{Fault, ReadError};
use crate::rows::{Row, RowResult, each, each_of, fault, list, room};
use crate::run::{
    IDLE_READINGS_MAX, IdleReading, IdleTime, Judgement, MARKS_MAX, STATES_MAX, Surroundings,
};
use crate::schema::{APPLICATION_ID, TABLES, VERSION};
use crate::seal::SealState;
use crate::{Run, seal};

/// A record that was read.
#[derive(Clone, Debug)]
pub struct Opened {
    pub run: Run,
    /// Integrity of the record.
    pub state: SealState,
    /// What was judged when the run ended; `None` if the run was torn before that.
    pub judgement: Option<Judgement>,
}

/// Reads a record, of a run that goes on as well: what is committed is read. Every second of it is
/// in memory then.
///
/// # Errors
/// If the file is no record, is of a newer version, is damaged, or cannot be read. Every error says
/// what was found, what was expected and the next step.
pub fn read(path: &Path) -> Result<Opened, ReadError> {
    Ok(read_in(path, ReadDetail::Seconds, |_| ())?.0)
}

/// Reads a record to be judged and shown. Of a long run many seconds are one
/// ([`Thread::seconds`](crate::run::Thread::seconds)): sums, extremes and histograms are exact, and
/// a day of 64 CPUs fits into memory.
pub fn read_shown(path: &Path) -> Result<Opened, ReadError> {
    Ok(read_shown_with(path, |_| ())?.0)
}

/// As [`read_shown`], with what `work` makes of the run of a large file while its digest is still
/// being made: that takes as long as reading it. `None`: the file is small, or it is not sealed and
/// whole.
pub fn read_shown_with<T>(
    path: &Path,
    work: impl FnOnce(&Run) -> T,
) -> Result<(Opened, Option<T>), ReadError> {
    read_in(path, ReadDetail::Shown(recover::LONG_LIMITS), work)
}

fn read_in<T>(
    path: &Path,
    detail: ReadDetail,
    work: impl FnOnce(&Run) -> T,
) -> Result<(Opened, Option<T>), ReadError> {
    check_header(path)?;
    // SQLite opens the file by its name, more than once: no other user may be able to put another
    // file there in between.
    let is_others = rtproof_host::door::is_others(path)
        .map_err(|source| ReadError::Open { path: path.into(), source })?;
    if !is_others {
        return read_own(path, detail, work);
    }
    let copy = recover::Copy::of(path)
        .map_err(|error| ReadError::Recover { path: path.into(), why: error.to_string() })?;
    read_own(&copy.file, detail, work).map_err(|error| error.of(path))
}

fn read_own<T>(
    path: &Path,
    detail: ReadDetail,
    work: impl FnOnce(&Run) -> T,
) -> Result<(Opened, Option<T>), ReadError> {
    let open = |source| ReadError::Open { path: path.into(), source };
    let (scan, hoped) = read_while_checking(path, detail, work);
    let scan = scan.map_err(open)?;
    if let Some(contents) = hoped.filter(|_| scan.is_whole()) {
        let (contents, made) = contents.map_err(|fault| fault.at(path, true))?;
        let state = seal::state(path, contents.row.as_deref(), &contents.run_id, &scan);
        let state = state.map_err(open)?;
        if matches!(state, SealState::Sealed { .. }) {
            let opened = contents.opened(state).map_err(|fault| fault.at(path, true))?;
            return Ok((opened, Some(made)));
        }
    }
    let sealed = scan.marks.iter().any(seal::SealMark::is_closed);
    let source = if sealed { recover::immutable(path) } else { recover::unsealed(path) }?;
    let at = |fault: Fault| fault.at(path, sealed);
    let conn = &source.conn;
    conn.execute_batch("BEGIN").map_err(|error| at(error.into()))?; // one moment of the file
    if is_empty(conn).map_err(|error| at(error.into()))? {
        return Err(ReadError::Empty { path: path.into() });
    }
    let version = check_schema(conn).map_err(at)?;
    let (run_id, row) = run::claim(conn).map_err(at)?;
    let state = seal::state(path, row.as_deref(), &run_id, &scan).map_err(open)?;
    if !matches!(state, SealState::Sealed { .. }) {
        quick_check(conn).map_err(at)?;
    }
    let contents = contents(conn, version, detail).map_err(at)?;
    Ok((contents.opened(state).map_err(at)?, None))
}

/// Content read before the seal is verified, and the value made of it; `None`: nothing.
type ReadAttempt<T> = Option<Result<(Contents, T), Fault>>;

/// Files from this size on are read while they are hashed.
const LARGE_BYTES: u64 = 16 << 20;

/// Reads a large file in the hope that it is sealed and whole, while another thread finds out
/// whether it is. What is read counts for nothing where it is not; reading ends then, wherever it
/// was.
fn read_while_checking<T>(
    path: &Path,
    detail: ReadDetail,
    work: impl FnOnce(&Run) -> T,
) -> (io::Result<seal::SealScan>, ReadAttempt<T>) {
    let is_large = crate::open_file(path).and_then(|file| file.metadata());
    let is_large = is_large.is_ok_and(|metadata| metadata.len() >= LARGE_BYTES);
    let source = is_large.then(|| recover::immutable(path).ok()).flatten();
    let Some(source) = source else { return (seal::scan(path), None) };
    let (conn, done) = (&source.conn, AtomicBool::new(false));
    let interrupt = conn.get_interrupt_handle();
    std::thread::scope(|scope| {
        let scanner = scope.spawn(|| {
            let scan = seal::scan(path);
            let is_whole = scan.as_ref().is_ok_and(seal::SealScan::is_whole);
            while !is_whole && !done.load(Ordering::Relaxed) {
                // One call ends the statement that runs; the next one may have begun since.
                interrupt.interrupt();
                std::thread::park_timeout(Duration::from_millis(1));
            }
            scan
        });
        let contents = {
            // Even if reading panics the other thread must end.
            let _ends = Ends(&done, scanner.thread());
            check_schema(conn).and_then(|version| contents(conn, version, detail))
        };
        let contents = contents.map(|contents| {
            let made = work(&contents.run);
            (contents, made)
        });
        let scan = scanner.join().unwrap_or_else(|_| Err(io::Error::other("the scan panicked")));
        (scan, Some(contents))
    })
}

/// Ends the interrupting when it is dropped.
struct Ends<'a>(&'a AtomicBool, &'a Thread);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

/// What a file holds, whatever that is worth.
struct Contents {
    run_id: String,
    row: Option<String>,
    run: Run,
    /// An error where the documents cannot be read.
    judgement: Result<Option<Judgement>, Fault>,
}

impl Contents {
    /// What an altered record says of its verdict counts for nothing, so it need not be readable.
    fn opened(self, state: SealState) -> Result<Opened, Fault> {
        let judgement = match (self.judgement, &state) {
            (Err(_), SealState::Altered { .. }) => None,
            (judgement, _) => judgement?,
        };
        Ok(Opened { run: self.run, state, judgement })
    }
}

fn contents(conn: &Connection, version: i32, detail: ReadDetail) -> Result<Contents, Fault> {
    let (run_id, row) = run::claim(conn)?;
    let (mut run, is_long) = run::run(conn, detail, version)?;
    if version >= 2 {
        run.spikes = run::spikes(conn)?;
    }
    if version >= 3 {
        run.effects = effects(conn)?;
    }
    if version >= 4 {
        if !is_long {
            intervals(conn, &mut run.threads)?;
        }
        run.surroundings = read_surroundings(conn)?;
        run.imported = imported(conn)?;
    }
    check::run(&run)?;
    let judgement = run::judgement(conn);
    Ok(Contents { run_id, row, run, judgement })
}

/// What the first hundred bytes say (<https://www.sqlite.org/fileformat.html>, section 1.3).
fn check_header(path: &Path) -> Result<(), ReadError> {
    let path = path.to_owned();
    let mut header = Vec::with_capacity(100);
    match crate::open_file(&path).and_then(|file| file.take(100).read_to_end(&mut header)) {
        Ok(_) => {}
        Err(source) if source.kind() == io::ErrorKind::IsADirectory => {
            return Err(ReadError::NotARecord { path, found: "a folder".into() });
        }
        Err(source) => return Err(ReadError::Open { path, source }),
    }
    if header.is_empty() {
        return Err(ReadError::Empty { path });
    }
    if !header.starts_with(b"SQLite format 3\0") || header.len() < 100 {
        return Err(ReadError::NotARecord { path, found: "no SQLite header".into() });
    }
    let number = |at: usize| {
        i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (application, version) = (number(68), number(60));
    if application != APPLICATION_ID {
        let found = format!("an SQLite file with application id {application:#010x}");
        return Err(ReadError::NotARecord { path, found });
    }
    if version > VERSION {
        return Err(ReadError::Newer { path, found: version });
    }
    // A record is never in WAL mode; SQLite would make files beside one that says so.
    if version < 1 || header[18] != 1 || header[19] != 1 {
        let what = format!(
            "its header says schema version {version} and journal versions {}, {}, expected 1 \
             to {VERSION} and 1, 1",
            header[18], header[19]
        );
        return Err(ReadError::Damaged { path, what, sealed: false });
    }
    Ok(())
}

/// Whether the very first write was cut off and rolled back.
fn is_empty(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// The tables must be the ones of the file's version, to the letter, and nothing may stand beside
/// them: a view, a trigger, a virtual table, a generated column or an index would run code of the
/// file. Returns the version.
fn check_schema(conn: &Connection) -> Result<i32, Fault> {
    let version: i32 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let expected = || TABLES.iter().filter(|table| table.since <= version);
    let mut missing: Vec<&str> = expected().map(|table| table.name).collect();
    each(conn, "SELECT type, name, tbl_name, sql FROM sqlite_schema", [], |c| {
        let (kind, name, of): (String, String, String) = (c.get()?, c.get()?, c.get()?);
        let sql: Option<String> = c.get()?;
        let table = expected().find(|table| table.name == of);
        match (kind.as_str(), table, sql) {
            // SQLite makes it for a constraint of the table.
            ("index", Some(_), None) if name.starts_with("sqlite_autoindex_") => return Ok(()),
            ("table", Some(table), Some(sql)) if name == of => {
                if sql != table.create_sql(version) {
                    return fault(format!(
                        "table {name} has other columns, expected the tables of schema version \
                         {version}"
                    ));
                }
                missing.retain(|missing| *missing != name);
                return Ok(());
            }
            _ => {}
        }
        fault(format!("{kind} {name} is none of the tables of schema version {version}"))
    })?;
    if let Some(name) = missing.first() {
        return fault(format!(
            "table {name} is missing, expected the tables of schema version {version}"
        ));
    }
    check_rows(conn, version)?;
    Ok(version)
}

/// Refuses a table that has more rows than a run can write.
fn check_rows(conn: &Connection, version: i32) -> Result<(), Fault> {
    for table in TABLES.iter().filter(|table| table.since <= version) {
        let name = table.name;
        let Some(most) = crate::rows_max(name) else { continue };
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT {})", most + 1);
        let rows: i64 = conn.query_row(&sql, [], |row| row.get(0))?;
        if rows.unsigned_abs() > most {
            return fault(format!("table {name} has more than {most} rows, the most it may have"));
        }
    }
    Ok(())
}

fn quick_check(conn: &Connection) -> Result<(), Fault> {
    let answer: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match answer.as_str() {
        "ok" => Ok(()),
        _ => Err(Fault::Content(answer)),
    }
}

// Rows of effects back into `Effects`. Records before version 3 have none.

/// The effects in a record that has the tables; `None`: nothing was tried.
fn effects(conn: &Connection) -> RowResult<Option<Effects>> {
    let Some(trial) = list::<TrialSummary>(conn, 1, "", 1)?.pop() else {
        return Ok(None);
    };
    let mut knobs: BTreeMap<u32, KnobResult> = BTreeMap::new();
    for knob in list::<KnobResult>(conn, 0, "", KNOBS_MAX)? {
        knobs.insert(knob.number, knob);
    }
    each_of(conn, "ORDER BY knob, statistic DESC", |number: u32, effect: Effect| {
        let Some(knob) = knobs.get_mut(&number) else {
            return fault(format!("an effect of knob {number}, which table knob does not have"));
        };
        room(Effect::TABLE, knob.effects.len(), SliceStatistic::ALL.len())?;
        knob.effects.push(effect);
        Ok(())
    })?;
    let slices = list(conn, 0, "ORDER BY number", SLICES_MAX)?;
    Ok(Some(Effects { trial, knobs: knobs.into_values().collect(), slices }))
}

// Rows of what was imported back into `Imported`. Records before version 4 have none.

/// What a record that has the tables was imported from; `None`: it was measured.
fn imported(conn: &Connection) -> RowResult<Option<Imported>> {
    let Some(mut imported) = list::<Imported>(conn, 1, "", 1)?.pop() else {
        return Ok(None);
    };
    let threads = &mut imported.threads;
    each_of(conn, "ORDER BY number", |number: i64, thread: ImportedThread| {
        room(ImportedThread::TABLE, threads.len(), THREADS_MAX)?;
        if usize::try_from(number) != Ok(threads.len()) {
            return fault(format!("import_thread {number}, expected {}", threads.len()));
        }
        threads.push(thread);
        Ok(())
    })?;
    let mut all: Vec<Vec<Bin>> = threads.iter().map(|_| Vec::new()).collect();
    each_of(conn, "ORDER BY thread, low_ns", |number: i64, bin: Bin| {
        let of = usize::try_from(number).ok().and_then(|number| all.get_mut(number));
        let Some(of) = of else {
            return fault(format!("bins of {number}, which table import_thread does not have"));
        };
        room(Bin::TABLE, of.len(), BINS_MAX)?;
        of.push(bin);
        Ok(())
    })?;
    for (thread, list) in threads.iter_mut().zip(all) {
        thread.bins = Bins::from_bins(list).or_else(|error| fault(error.to_string()))?;
    }
    imported.check()?;
    Ok(Some(imported))
}

// Rows of the surroundings of a measurement, read back. Records before version 4 have none.

/// CPUs that a record may have idle states of.
const CPUS_MAX: usize = 8192;

/// All of it, of a record that has the tables.
fn read_surroundings(conn: &Connection) -> RowResult<Surroundings> {
    Ok(Surroundings {
        marks: list(conn, 1, "ORDER BY number", MARKS_MAX)?,
        states: list(conn, 0, "ORDER BY cpu, state", CPUS_MAX * STATES_MAX as usize)?,
        idle: idle(conn)?,
    })
}

/// Intervals of the threads' seconds.
fn intervals(conn: &Connection, threads: &mut [crate::run::Thread]) -> RowResult<()> {
    let sql = "SELECT thread, second, n, min_ns, max_ns, sum_ns, sum2 FROM interval";
    each(conn, sql, [], |c| {
        let (number, at): (u32, u64) = (c.get()?, c.uint()?);
        let found = threads.binary_search_by_key(&number, |thread| thread.info.number);
        let thread = found.ok().and_then(|found| threads.get_mut(found));
        let second = thread.and_then(|t| t.seconds.get_mut(usize::try_from(at).ok()?));
        let Some(second) = second else {
            return fault(format!("intervals of second {at}, which table stat does not have"));
        };
        let (n, min_ns, max_ns) = (c.count()?, c.uint()?, c.uint()?);
        let (sum, sum2) = (c.sum()?, c.sum()?);
        let [low, high] = [min_ns, max_ns].map(|ns| u128::from(ns) * u128::from(n));
        if n == 0 || min_ns > max_ns || sum < low || sum > high {
            return fault(format!("{n} intervals from {min_ns} to {max_ns} ns sum to {sum} ns"));
        }
        second.intervals = Moments::from_parts(n, (min_ns, max_ns), (sum, sum2), None);
        Ok(())
    })
}

fn idle(conn: &Connection) -> RowResult<Vec<IdleReading>> {
    let mut readings: Vec<IdleReading> = Vec::new();
    let mut last = None;
    // A row whose reading is missing has no time.
    let sql = "SELECT host, at_ns, host_idle.cpu, state, entered, residency_us FROM host_idle LEFT \
               JOIN host ON host.number = host_idle.host ORDER BY host, host_idle.cpu, state";
    each(conn, sql, [], |c| {
        let host: i64 = c.get()?;
        let Some(at_ns) = c.opt_uint()? else {
            return fault(format!("idle times of reading {host}, which table host does not have"));
        };
        if last != Some(host) {
            room("host_idle", readings.len(), IDLE_READINGS_MAX as usize)?;
            last = Some(host);
            readings.push(IdleReading { at_ns, times: Vec::new() });
        }
        let time = IdleTime::take(c)?;
        if let Some(reading) = readings.last_mut() {
            reading.times.push(time);
        }
        Ok(())
    })?;
    Ok(readings)
}
