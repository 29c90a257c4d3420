//! Rows of what was imported, and what may be written of them.

use rusqlite::{Connection, Result, params};

use super::rows::{int, json, opt_int, run, word};
use crate::import::{Imported, ImportedThread};

/// Writes all of it.
pub(super) fn write(conn: &Connection, imported: &Imported) -> Result<()> {
    let omitted = imported.omitted.as_ref().map(json).transpose()?;
    run(
        conn,
        "INSERT INTO import VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, \
         ?14, ?15)",
        params![
            imported.tool,
            imported.tool_version,
            imported.dialect,
            imported.source,
            imported.digest,
            imported.command,
            imported.machine,
            imported.started_s,
            int(imported.resolution_ns)?,
            opt_int(imported.censored_above_ns)?,
            opt_int(imported.period_ns)?,
            opt_int(imported.duration_ns)?,
            json(&imported.doubts)?,
            json(&imported.remarks)?,
            omitted,
        ],
    )?;
    (0..).zip(&imported.threads).try_for_each(|(number, row)| thread(conn, number, row))
}

fn thread(conn: &Connection, number: i64, thread: &ImportedThread) -> Result<()> {
    run(
        conn,
        "INSERT INTO import_thread VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            number,
            thread.cpu,
            thread.label,
            word(&thread.kind)?,
            int(thread.n)?,
            opt_int(thread.min_ns)?,
            opt_int(thread.max_ns)?,
            thread.max_is_at_least,
            thread.mean_ns,
            int(thread.overflow)?,
            opt_int(thread.expected)?,
            opt_int(thread.period_ns)?,
            json(&thread.told)?,
        ],
    )?;
    thread.bins.iter().try_for_each(|bin| {
        let values = params![number, int(bin.low_ns)?, int(bin.high_ns)?, int(bin.n)?];
        run(conn, "INSERT INTO bin VALUES (?1, ?2, ?3, ?4)", values)
    })
}
