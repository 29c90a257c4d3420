//! One run as one file; other tools' results in and out.
#![doc = include_str!("../README.md")]
#![expect(clippy::disallowed_methods, reason = "the user's own file")]

#[cfg(test)]
extern crate self as rtproof_record;

#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
pub mod effects;
mod error;
pub mod export;
mod finish;
pub mod import;
mod read;
mod rows;
pub mod run;
pub mod schema;
mod seal;
pub mod spikes;
mod write;

pub use effects::{EffectTick, Effects};
pub use error::{ReadError, WriteError};
pub use finish::Finished;
pub use read::follow::{Follower, News};
pub use read::{Opened, read, read_shown, read_shown_with};
pub use run::{
    BudgetClass, ClockOrigin, Judgement, Options, Requirement, Run, RunHead, RunTail, Snapshot,
    Start, Surroundings, SurroundingsTick, TOP_MAX, ThreadTick, Tick,
};
pub use seal::SealState;
pub use spikes::{RecordedSpikes, SpikeTick};
pub use write::Writer;

pub use rtproof_model::run::Clock;

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use effects::{KNOBS_MAX, SLICES_MAX};
use error::BUSY_SECONDS;
use run::{MARKS_MAX, STATES_MAX, Thread};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use rtproof_stats::moving::{self, Lengths, MovingRow, MovingStep, Spans, SpansError};

// A record's database, opened for writing.

/// Opens an existing record for writing.
pub(crate) fn open_database(path: &Path) -> rusqlite::Result<Connection> {
    // Its path is absolute and has no links; whoever may write to a folder could put one there.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
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

// The only place that opens files: records belong to the user and are no part of the machine, so
// they do not go through `host::Root`.

/// Makes a file; fails if there is one. It names the machine's processes: nobody else reads it, nor
/// what SQLite keeps beside it, which gets the same mode.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    rtproof_host::door::create_new(path, 0o600)
}

pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    rtproof_host::door::read(path)
}

pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Absolute, without links: what is renamed and synced is the file itself.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Makes the name of a file durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

// How much a record may hold: more is refused before memory is taken for it. A day of 512 CPUs
// fits many times over.

/// Measured threads: one for each CPU that Linux can have.
const THREADS: u64 = 8192;

/// Most rows of each table but those of seconds and buckets: to count these takes as long as to
/// read them, and what is kept of them in memory is about as large as in the file.
const ROWS_MAX: &[(&str, u64)] = &[
    ("run", 1),
    ("machine", 1),
    ("facts", 2),
    ("fact", 4_000_000),
    ("thread", THREADS),
    ("load", 10_000),
    ("note", 20_000),
    ("finding", 1),
    ("verdict", 1),
    ("seal", 1),
    ("recorder", 1),
    ("spike", spikes::SPIKES_MAX as u64),
    ("cause", spikes::CAUSES_MAX as u64),
    ("cause_cpu", (spikes::CAUSES_MAX * spikes::CPUS_MAX) as u64),
    ("window", spikes::WINDOWS_MAX as u64),
    ("trial", 1),
    ("knob", KNOBS_MAX as u64),
    ("effect", 100 * KNOBS_MAX as u64),
    ("slice", SLICES_MAX as u64),
    ("mark", MARKS_MAX as u64),
    ("idle_state", THREADS * STATES_MAX as u64),
    ("import", 1),
    ("import_thread", effects::THREADS_MAX as u64),
    ("bin", effects::BINS_MAX as u64),
];

/// Most rows of a table; `None`: as many as the file holds.
pub fn rows_max(table: &str) -> Option<u64> {
    ROWS_MAX.iter().find(|(name, _)| *name == table).map(|&(_, most)| most)
}

// Statistics over time of a run: its rows, and the step of time that they have.

const SECOND_NS: u64 = 1_000_000_000;

/// Lengths for a run. A step is a second, or as many as rows of a long run are of
/// ([`read_shown`]) or the longest period takes.
///
/// # Errors
/// Lengths asked for that this run does not have.
pub fn spans(run: &Run, requested: Lengths) -> Result<Spans, SpansError> {
    let seconds = || run.threads.iter().flat_map(|thread| &thread.seconds);
    let mut lengths: Vec<u64> =
        seconds().map(|second| second.to_ns.saturating_sub(second.from_ns)).collect();
    lengths.sort_unstable();
    // Single rows are longer where collecting was delayed.
    let usual_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(SECOND_NS);
    let period_ns = run.threads.iter().map(|thread| thread.info.period_ns).max().unwrap_or(0);
    // Due times are multiples of the period: a row is up to a period shorter or longer.
    let rows_ns = usual_ns.saturating_add(SECOND_NS / 2) / SECOND_NS * SECOND_NS;
    let step_ns = rows_ns.max(period_ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS));
    let end_ns = seconds().map(|second| second.to_ns).max().unwrap_or(0);
    Spans::of(step_ns.max(SECOND_NS), end_ns, requested)
}

/// Hands each step of some threads to `see`, in order of time.
pub fn each_step(threads: &[Thread], spans: Spans, see: impl FnMut(MovingStep)) {
    let mut rows: Vec<MovingRow<'_>> = threads.iter().flat_map(rows).collect();
    moving::each(&mut rows, u32::try_from(threads.len()).unwrap_or(u32::MAX), spans, see);
}

fn rows(thread: &Thread) -> impl Iterator<Item = MovingRow<'_>> {
    thread.seconds.iter().map(|second| MovingRow {
        thread: thread.info.number,
        from_ns: second.from_ns,
        to_ns: second.to_ns,
        wake: &second.totals.wake,
        missed: second.totals.missed,
        cells: &second.wake,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TABLES;

    #[test]
    fn limits_are_of_tables_and_can_be_counted() {
        for (name, most) in ROWS_MAX {
            assert!(TABLES.iter().any(|table| table.name == *name), "{name}");
            assert!(*most <= 1 << 22, "{name}: counting {most} rows takes seconds");
        }
        assert_eq!(rows_max("stat"), None);
    }
}
