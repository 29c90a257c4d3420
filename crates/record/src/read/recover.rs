//! Opening the file: as it stands, or after SQLite has rolled back a write that was cut off.

#[cfg(test)]
mod long_tests;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    fs::{self, DirBuilder},
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, limits::Limit, params};

use rtproof_stats::Moments;

use super::check::{check_second, coarse, histogram, second, thread_of};
use crate::Options;
use crate::error::{BUSY_SECONDS, Fault, ReadError};
use crate::rows::{RowColumns, RowResult, each, fault};
use crate::run::{Second, Thread};
use crate::schema::BLOCK;

/// Longest text or blob taken from a file, in bytes.
const LENGTH_MAX: i32 = 256 << 20;

/// As SQLite advises for files of others (<https://www.sqlite.org/security.html>); no statement of
/// a reader comes near them.
const SQLITE_LIMITS: [(Limit, i32); 8] = [
    (Limit::SQLITE_LIMIT_LENGTH, LENGTH_MAX),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 20),
    (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// An open record; `copy` is removed after it is closed.
pub(super) struct OpenRecord {
    pub(super) conn: Connection,
    _copy: Option<Copy>,
}

/// Opens a sealed file without a lock and without looking for a journal.
pub(super) fn immutable(path: &Path) -> Result<OpenRecord, ReadError> {
    let absolute =
        crate::absolute(path).map_err(|source| ReadError::Open { path: path.into(), source })?;
    let mut uri = String::from("file:");
    for &byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'_' | b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(byte as char);
            }
            _ => write!(uri, "%{byte:02x}").expect("a String takes all"),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let conn = open(Path::new(&uri), flags).map_err(|error| Fault::from(error).at(path, true))?;
    Ok(OpenRecord { conn, _copy: None })
}

/// Opens an unsealed file. A cut-off write is rolled back in place, or in a copy where the file may
/// not be written.
pub(super) fn unsealed(path: &Path) -> Result<OpenRecord, ReadError> {
    let fault = |error| Fault::Sqlite(error).at(path, false);
    // SQLite would wait for a pipe.
    match crate::open_file(&journal(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(ReadError::Recover { path: path.into(), why: error.to_string() });
        }
        _ => {}
    }
    match open(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Ok(conn) => return Ok(OpenRecord { conn, _copy: None }),
        Err(error) if !needs_writing(&error) => return Err(fault(error)),
        Err(_) => {}
    }
    match open(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
        Ok(conn) => return Ok(OpenRecord { conn, _copy: None }),
        Err(error) if !needs_writing(&error) => return Err(fault(error)),
        Err(_) => {}
    }
    in_copy(path)
}

/// Rolls a cut-off write back in a copy, which needs room for the file in the temporary folder.
fn in_copy(path: &Path) -> Result<OpenRecord, ReadError> {
    let recover = |why: String| ReadError::Recover { path: path.into(), why };
    let copy = Copy::of(path).map_err(|error| recover(error.to_string()))?;
    let conn = open(&copy.file, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| recover(error.to_string()))?;
    Ok(OpenRecord { conn, _copy: Some(copy) })
}

/// Opens and reads once: a journal is only looked for by the first read.
fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(BUSY_SECONDS))?;
    // The file may be damaged or made to harm.
    for (limit, most) in SQLITE_LIMITS {
        conn.set_limit(limit, most)?;
    }
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    conn.execute_batch(
        "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;",
    )?;
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    Ok(conn)
}

fn needs_writing(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
    )
}

/// A private copy of a record and its journal.
pub(super) struct Copy {
    folder: PathBuf,
    pub(super) file: PathBuf,
}

/// Bytes of a record that is copied.
const COPY_MAX: u64 = 16 << 30;

impl Copy {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rtproof-read-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // Fails if someone else made it: nothing is followed, nothing overwritten.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let copy = Self { file: folder.join("copy"), folder };
        bytes(path, &copy.file)?;
        match bytes(&journal(path), &journal(&copy.file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(copy),
        }
    }
}

/// Copies content without permissions: the copy of a read-only file is to be written.
fn bytes(from: &Path, to: &Path) -> io::Result<()> {
    let from = crate::open_file(from)?;
    if from.metadata()?.len() > COPY_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 16 GiB"));
    }
    // It may grow meanwhile.
    io::copy(&mut from.take(COPY_MAX), &mut crate::create_new(to)?).map(drop)
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Left over in the temporary folder at worst.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// SQLite's rollback journal of a file.
fn journal(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("-journal");
    name.into()
}

// A long run, as it is shown: minutes in place of seconds, as many of them in one as keep the
// whole short, so that a day of 64 CPUs fits into memory and is read in a moment.
//
// Sums, extremes and histograms stay exact; what is lost is when within a piece something was.
// Where that matters it is kept: minutes in which a load begins or ends, or a thread was changed,
// are read second by second.

/// How much is read of a long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadDetail {
    /// Every second of the run by itself.
    Seconds,
    /// Of a long run, minutes and more in one.
    Shown(Limits),
}

/// What is kept in memory, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Seconds of all threads up to which a run is read second by second.
    seconds: u64,
    /// Pieces of all threads that a long run is cut into, but for the ones below.
    pieces: u64,
    /// Seconds of all threads that are read round the edges.
    edge_seconds: u64,
}

/// A day and a half of one CPU, or half an hour of 64, is read second by second.
pub(super) const LONG_LIMITS: Limits =
    Limits { seconds: 1 << 17, pieces: 3 << 12, edge_seconds: 1 << 15 };

/// How a long run is read.
#[derive(Debug)]
pub(super) struct ReadBlocks {
    /// Blocks in a piece.
    per_piece: u64,
    /// Times, ascending, at which a piece must not lap.
    edges: Vec<u64>,
    /// Whether the blocks that lap are read second by second.
    by_second: bool,
}

/// A thread while it is read.
#[derive(Debug, Default)]
struct Place {
    blocks: u64,
    piece: Option<Second>,
}

/// Seconds of threads, by their numbers.
type Found = BTreeMap<u32, Vec<Second>>;

impl ReadBlocks {
    /// `None`: the run is short enough to be read whole.
    pub(super) fn of(
        conn: &Connection,
        options: &Options,
        limits: Limits,
    ) -> RowResult<Option<Self>> {
        let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        // A table that claims more is found out by its rows.
        let blocks = number("SELECT coalesce(max(block) + 1, 0) FROM block")?.unsigned_abs();
        let threads = number("SELECT count(*) FROM thread")?.unsigned_abs();
        let all = blocks.saturating_mul(threads);
        if all.saturating_mul(BLOCK) <= limits.seconds {
            return Ok(None);
        }
        let mut edges: Vec<u64> =
            options.phases.iter().flat_map(|phase| [phase.from_ns, phase.to_ns]).collect();
        each(conn, "SELECT since_ns, at_ns FROM mark", [], |c| {
            edges.extend([c.uint()?, c.uint()?]);
            Ok(())
        })?;
        edges.sort_unstable();
        edges.dedup();
        let seconds = (edges.len() as u64).saturating_mul(threads).saturating_mul(BLOCK);
        let by_second = seconds <= limits.edge_seconds;
        Ok(Some(Self { per_piece: all.div_ceil(limits.pieces), edges, by_second }))
    }

    /// Fills the seconds of the threads.
    pub(super) fn seconds(
        &self,
        conn: &Connection,
        threads: &mut BTreeMap<u32, Thread>,
    ) -> RowResult<()> {
        let mut places: BTreeMap<u32, Place> =
            threads.keys().map(|&number| (number, Place::default())).collect();
        let mut lapping = (u64::MAX, Found::new());
        each(conn, "SELECT * FROM block ORDER BY block, thread", [], |c| {
            let (at, number) = (c.uint()?, c.get()?);
            let thread = thread_of(threads, number)?;
            let place = places.entry(number).or_default();
            if at != place.blocks {
                return fault(format!("block {at} of thread {number}, expected {}", place.blocks));
            }
            place.blocks += 1;
            if at % self.per_piece == 0 {
                thread.seconds.extend(place.piece.take());
            }
            let block = block(c)?;
            if !self.splits(&block) {
                match &mut place.piece {
                    Some(piece) if piece.to_ns <= block.from_ns => piece.merge(&block),
                    Some(_) => return fault(format!("block {at} of thread {number} laps")),
                    none => *none = Some(block),
                }
                return Ok(());
            }
            thread.seconds.extend(place.piece.take());
            if !self.by_second {
                thread.seconds.push(block);
                return Ok(());
            }
            if lapping.0 != at {
                lapping = (at, seconds(conn, at)?);
            }
            thread.seconds.extend(lapping.1.remove(&number).unwrap_or_default());
            Ok(())
        })?;
        let mut rest: BTreeMap<u64, Found> = BTreeMap::new();
        for (number, place) in places {
            let thread = thread_of(threads, number)?;
            thread.seconds.extend(place.piece);
            // The incomplete rest is less than a block.
            let found = match rest.entry(place.blocks) {
                std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
                std::collections::btree_map::Entry::Vacant(none) => {
                    none.insert(seconds(conn, place.blocks)?)
                }
            };
            thread.seconds.extend(found.remove(&number).unwrap_or_default());
        }
        Ok(())
    }

    /// Whether an edge lies within a block.
    fn splits(&self, block: &Second) -> bool {
        let next = self.edges.partition_point(|&edge| edge <= block.from_ns);
        self.edges.get(next).is_some_and(|&edge| edge < block.to_ns)
    }
}

fn block(c: &mut RowColumns<'_, '_>) -> RowResult<Second> {
    let second = second(c)?;
    let (wake, missed) = (coarse(c)?, coarse(c)?);
    let n = c.count()?;
    let extremes = (c.opt_uint()?, c.opt_uint()?);
    let sums = (c.sum()?, c.sum()?);
    let intervals = match extremes {
        (Some(min), Some(max)) if n > 0 => Moments::from_parts(n, (min, max), sums, None),
        (None, None) if n == 0 => Moments::default(),
        _ => return fault(format!("{n} intervals with extremes {extremes:?}")),
    };
    let block = Second { wake, missed, intervals, ..second };
    check_second(&block)?;
    Ok(block)
}

/// The seconds of a block, of all threads.
fn seconds(conn: &Connection, block: u64) -> RowResult<Found> {
    let mut found = Found::new();
    let range = [block.saturating_mul(BLOCK), block.saturating_add(1).saturating_mul(BLOCK)];
    let range = range.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let params = params![range[0], range[1]];
    const WITHIN: &str = "WHERE second >= ?1 AND second < ?2 ORDER BY second, thread";
    each(conn, &format!("SELECT * FROM stat {WITHIN}"), params, |c| {
        let (at, thread): (i64, u32) = (c.get()?, c.get()?);
        let seconds = found.entry(thread).or_default();
        if usize::try_from(at - range[0]) != Ok(seconds.len()) {
            return fault(format!("second {at} of thread {thread}, expected another"));
        }
        let second = second(c)?;
        check_second(&second)?;
        seconds.push(second);
        Ok(())
    })?;
    each(conn, &format!("SELECT * FROM hist_second {WITHIN}"), params, |c| {
        let (at, thread) = (c.get()?, c.get()?);
        histogram(c, place(&mut found, range[0], at, thread)?)
    })?;
    each(conn, &format!("SELECT * FROM interval {WITHIN}"), params, |c| {
        let second = place(&mut found, range[0], c.get()?, c.get()?)?;
        let (n, extremes) = (c.count()?, (c.uint()?, c.uint()?));
        second.intervals = Moments::from_parts(n, extremes, (c.sum()?, c.sum()?), None);
        Ok(())
    })?;
    Ok(found)
}

fn place(found: &mut Found, from: i64, at: i64, thread: u32) -> RowResult<&mut Second> {
    let seconds = found.get_mut(&thread);
    let second = seconds.and_then(|seconds| seconds.get_mut(usize::try_from(at - from).ok()?));
    second.map_or_else(|| fault(format!("rows of second {at}, which table stat does not have")), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database whose last transaction was cut off after its pages were written.
    fn cut_off(folder: &Path) -> PathBuf {
        let original = folder.join("original");
        let conn = Connection::open(&original).unwrap();
        conn.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1); BEGIN; DELETE FROM t")
            .unwrap();
        conn.cache_flush().unwrap();
        let path = folder.join("x.rtproof");
        fs::copy(&original, &path).unwrap();
        fs::copy(journal(&original), journal(&path)).unwrap();
        path
    }

    fn rows(source: &OpenRecord) -> i64 {
        source.conn.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_copy_is_rolled_back_and_the_file_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = cut_off(folder.path());
        let size = fs::metadata(journal(&path)).unwrap().len();
        for file in [&path, &journal(&path)] {
            let mut read_only = fs::metadata(file).unwrap().permissions();
            read_only.set_readonly(true);
            fs::set_permissions(file, read_only).unwrap();
        }
        let source = in_copy(&path).unwrap();
        assert_eq!(rows(&source), 1);
        assert_eq!(fs::metadata(journal(&path)).unwrap().len(), size);
        let copy = source._copy.as_ref().unwrap();
        assert!(!fs::metadata(&copy.file).unwrap().permissions().readonly());
        let folder = copy.folder.clone();
        drop(source);
        assert!(!folder.exists());
    }

    #[test]
    fn a_file_that_may_be_written_is_rolled_back_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = cut_off(folder.path());
        assert_eq!(rows(&unsealed(&path).unwrap()), 1);
        assert!(!journal(&path).exists());
    }

    #[test]
    fn a_copy_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = in_copy(&folder.path().join("x.rtproof")).err().unwrap();
        let text = error.to_string();
        assert!(text.contains("x.rtproof") && text.contains("Copy both files"), "{text}");
    }

    #[test]
    fn what_a_record_has_no_use_for_is_not_built_in() {
        let conn = Connection::open_in_memory().unwrap();
        for module in ["fts3(a)", "fts5(a)", "rtree(a, b, c)", "dbstat"] {
            let sql = format!("CREATE VIRTUAL TABLE temp.x USING {module}");
            let error = conn.execute(&sql, []).unwrap_err().to_string();
            assert!(error.contains("no such module"), "{module}: {error}");
        }
        assert!(conn.query_row("SELECT load_extension('x')", [], |_| Ok(())).is_err());
    }
}
