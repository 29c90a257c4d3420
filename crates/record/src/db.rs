//! A record's database, opened for writing.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::error::{BUSY_SECONDS, WriteError};

/// Opens an existing record for writing.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(Duration::from_secs(BUSY_SECONDS))?;
    conn.set_prepared_statement_cache_capacity(32);
    // 4 MiB hold the pages that one second of 64 threads touches, so that no transaction spills.
    conn.execute_batch(
        "PRAGMA journal_mode = DELETE;
         PRAGMA synchronous = EXTRA;
         PRAGMA foreign_keys = ON;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -4096;",
    )?;
    Ok(conn)
}

/// Runs `body` in one transaction; an error leaves nothing of it behind.
pub(crate) fn transact(
    conn: &mut Connection,
    body: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    body(&tx)?;
    tx.commit()
}

pub(crate) fn close(conn: Connection, path: &Path, doing: &'static str) -> Result<(), WriteError> {
    conn.close().map_err(|(_, error)| WriteError::sqlite(path, doing, error))
}
