//! Rows of what was imported back into [`Imported`]. Records before version 4 have none.

use rtproof_stats::{Bin, Bins};
use rusqlite::Connection;

use super::{
    rows::{Columns, Result, each, fault},
    spikes::room,
};
use crate::import::{BINS_MAX, Imported, ImportedThread, THREADS_MAX};

/// What a record that has the tables was imported from; `None`: it was measured.
pub(super) fn imported(conn: &Connection) -> Result<Option<Imported>> {
    let mut imported = None;
    let sql = "SELECT tool, tool_version, dialect, source, digest, command, machine, started_s, \
               resolution_ns, censored_above_ns, period_ns, duration_ns, doubts, remarks, omitted \
               FROM import";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        imported = Some(Imported {
            tool: c.get()?,
            tool_version: c.get()?,
            dialect: c.get()?,
            source: c.get()?,
            digest: c.get()?,
            command: c.get()?,
            machine: c.get()?,
            started_s: c.get()?,
            resolution_ns: c.uint()?,
            censored_above_ns: c.opt_uint()?,
            period_ns: c.opt_uint()?,
            duration_ns: c.opt_uint()?,
            doubts: c.json()?,
            remarks: c.json()?,
            omitted: match c.get::<Option<String>>()? {
                None => None,
                Some(text) => match serde_json::from_str(&text) {
                    Ok(omitted) => Some(omitted),
                    Err(error) => return fault(format!("omitted is not as expected: {error}")),
                },
            },
            threads: Vec::new(),
        });
        Ok(())
    })?;
    let Some(mut imported) = imported else {
        return Ok(None);
    };
    imported.threads = threads(conn)?;
    imported.check().or_else(fault)?;
    Ok(Some(imported))
}

fn threads(conn: &Connection) -> Result<Vec<ImportedThread>> {
    let mut threads = Vec::new();
    let sql = "SELECT number, cpu, label, kind, n, min_ns, max_ns, max_is_at_least, mean_ns, \
               overflow, expected, period_ns, told FROM import_thread ORDER BY number";
    each(conn, sql, |row| {
        room("import_thread", threads.len(), THREADS_MAX)?;
        let mut c = Columns::new(row);
        let number = c.uint()?;
        if number != threads.len() as u64 {
            return fault(format!("import_thread {number}, expected {}", threads.len()));
        }
        threads.push(ImportedThread {
            cpu: c.get()?,
            label: c.get()?,
            kind: c.word()?,
            n: c.count()?,
            min_ns: c.opt_uint()?,
            max_ns: c.opt_uint()?,
            max_is_at_least: c.get()?,
            mean_ns: c.get()?,
            overflow: c.count()?,
            expected: c.opt_uint()?,
            period_ns: c.opt_uint()?,
            told: c.json()?,
            bins: Bins::default(),
        });
        Ok(())
    })?;
    bins(conn, &mut threads)?;
    Ok(threads)
}

fn bins(conn: &Connection, threads: &mut [ImportedThread]) -> Result<()> {
    let mut all: Vec<Vec<Bin>> = threads.iter().map(|_| Vec::new()).collect();
    each(conn, "SELECT thread, low_ns, high_ns, n FROM bin ORDER BY thread, low_ns", |row| {
        let mut c = Columns::new(row);
        let number = c.uint()?;
        let of = usize::try_from(number).ok().and_then(|number| all.get_mut(number));
        let Some(of) = of else {
            return fault(format!("bins of {number}, which table import_thread does not have"));
        };
        room("bin", of.len(), BINS_MAX)?;
        of.push(Bin { low_ns: c.uint()?, high_ns: c.uint()?, n: c.count()? });
        Ok(())
    })?;
    for (thread, list) in threads.iter_mut().zip(all) {
        thread.bins = Bins::from_bins(list).or_else(|error| fault(error.to_string()))?;
    }
    Ok(())
}
