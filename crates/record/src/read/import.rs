//! Rows of what was imported back into [`Imported`]. Records before version 4 have none.

use rtproof_stats::{Bin, Bins};
use rusqlite::Connection;

use crate::{
    imported::{BINS_MAX, Imported, ImportedThread, THREADS_MAX},
    rows::{Result, Row, each_of, fault, list, room},
};

/// What a record that has the tables was imported from; `None`: it was measured.
pub(super) fn imported(conn: &Connection) -> Result<Option<Imported>> {
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
