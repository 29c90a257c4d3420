//! Opening the file: as it stands, or after SQLite has rolled back a write that was cut off.

use std::{
    ffi::OsString,
    fmt::Write as _,
    fs::{self, DirBuilder},
    io,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, limits::Limit};

use crate::{
    error::{BUSY_SECONDS, Fault, ReadError},
    file,
};

/// Longest text or blob taken from a file, in bytes.
const LENGTH_MAX: i32 = 256 << 20;

/// As SQLite advises for files of others (<https://www.sqlite.org/security.html>); no statement of
/// a reader comes near them.
const LIMITS: [(Limit, i32); 8] = [
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
pub(super) struct Source {
    pub(super) conn: Connection,
    _copy: Option<Copy>,
}

/// Opens a sealed file without a lock and without looking for a journal.
pub(super) fn immutable(path: &Path) -> Result<Source, ReadError> {
    let absolute =
        file::absolute(path).map_err(|source| ReadError::Open { path: path.into(), source })?;
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
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let conn = open(Path::new(&uri), flags).map_err(|error| Fault::from(error).at(path, true))?;
    Ok(Source { conn, _copy: None })
}

/// Opens an unsealed file. A cut-off write is rolled back in place, or in a copy where the file may
/// not be written.
pub(super) fn unsealed(path: &Path) -> Result<Source, ReadError> {
    let fault = |error| Fault::Sqlite(error).at(path, false);
    match open(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Ok(conn) => return Ok(Source { conn, _copy: None }),
        Err(error) if !needs_writing(&error) => return Err(fault(error)),
        Err(_) => {}
    }
    match open(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
        Ok(conn) => return Ok(Source { conn, _copy: None }),
        Err(error) if !needs_writing(&error) => return Err(fault(error)),
        Err(_) => {}
    }
    in_copy(path)
}

/// Rolls a cut-off write back in a copy, which needs room for the file in the temporary folder.
pub(super) fn in_copy(path: &Path) -> Result<Source, ReadError> {
    let recover = |why: String| ReadError::Recover { path: path.into(), why };
    let copy = Copy::of(path).map_err(|error| recover(error.to_string()))?;
    let conn = open(&copy.file, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| recover(error.to_string()))?;
    Ok(Source { conn, _copy: Some(copy) })
}

/// Opens and reads once: a journal is only looked for by the first read.
fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(BUSY_SECONDS))?;
    // The file may be damaged or made to harm.
    for (limit, most) in LIMITS {
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
struct Copy {
    folder: PathBuf,
    file: PathBuf,
}

impl Copy {
    fn of(path: &Path) -> io::Result<Self> {
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
    let mut from = file::open(from)?;
    io::copy(&mut from, &mut file::create_new(to)?).map(drop)
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

    fn rows(source: &Source) -> i64 {
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
