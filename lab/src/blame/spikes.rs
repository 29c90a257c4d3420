//! All spikes of a record, as its own table has them: read with SQL, not with rtproof's code.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spike {
    /// When the wake-up was due, CLOCK_MONOTONIC.
    pub due_ns: u64,
    pub latency_ns: u64,
    /// The cause with the largest share; `None`: it was not examined.
    pub cause: Option<String>,
    pub culprit: String,
    /// Whether it was examined, and no events were lost or missing.
    pub complete: bool,
}

/// The spikes of a record.
///
/// # Errors
/// It cannot be read, or has no such table.
pub fn spikes(record: &Path) -> Result<Vec<Spike>> {
    let failed = || format!("{}: spikes", record.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let file = Connection::open_with_flags(record, flags).with_context(failed)?;
    read(&file).with_context(failed)
}

fn read(file: &Connection) -> Result<Vec<Spike>> {
    let origin_ns: i64 =
        file.query_row("SELECT started_monotonic_ns FROM run", [], |row| row.get(0))?;
    let mut rows = file.prepare(
        "SELECT due_ns, latency_ns, cause, culprit, complete FROM spike ORDER BY due_ns",
    )?;
    let spikes = rows.query_map([], |row| {
        let due_ns: i64 = row.get(0)?;
        Ok(Spike {
            due_ns: (origin_ns + due_ns).unsigned_abs(),
            latency_ns: row.get::<_, i64>(1)?.unsigned_abs(),
            cause: row.get(2)?,
            culprit: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
            complete: row.get::<_, Option<bool>>(4)?.unwrap_or(false),
        })
    })?;
    Ok(spikes.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_clock() {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(
            "CREATE TABLE run (started_monotonic_ns INTEGER);
             INSERT INTO run VALUES (1000);
             CREATE TABLE spike (thread, due_ns, latency_ns, cause, culprit, complete);
             INSERT INTO spike VALUES (0, 50, 7, NULL, NULL, 0);
             INSERT INTO spike VALUES (0, 20, 9, 'preempted', 'hog [RR 99]', 1);",
        )
        .unwrap();
        let spikes = read(&file).unwrap();
        assert_eq!(spikes[0].due_ns, 1020);
        assert_eq!(spikes[0].cause.as_deref(), Some("preempted"));
        assert!(spikes[0].complete);
        assert_eq!((spikes[1].due_ns, spikes[1].cause.as_deref()), (1050, None));
        assert!(!spikes[1].complete);
    }

    #[test]
    fn a_record_that_is_not_there_is_named() {
        let error = format!("{:#}", spikes(Path::new("/no/such.rtproof")).unwrap_err());
        assert!(error.starts_with("/no/such.rtproof: spikes"), "{error}");
    }
}
