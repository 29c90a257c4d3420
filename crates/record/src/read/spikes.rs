//! Rows of spikes back into [`Spikes`]. Records of version 1 have none.

use std::collections::BTreeMap;

use rtproof_model::{CauseCpu, CauseRow, Recorder};
use rusqlite::Connection;

use super::rows::{Columns, Result, each, fault};
use crate::spikes::{
    CAUSES_MAX, CPUS_MAX, CauseDocument, CauseEntry, Kept, SPIKES_MAX, Spike, Spikes, Summary,
    WINDOWS_MAX, Why,
};

/// The spikes of a record that has the tables; `None`: nothing was written of them.
pub(super) fn spikes(conn: &Connection) -> Result<Option<Spikes>> {
    let mut summary = None;
    each(
        conn,
        "SELECT threshold_ns, adaptive, seen, explained, incomplete, unexamined, dropped, sum_ns, \
         certain_ns, document FROM recorder",
        |row| {
            let mut c = Columns::new(row);
            summary = Some(Summary {
                threshold_ns: c.uint()?,
                adaptive: c.get()?,
                seen: c.count()?,
                explained: c.count()?,
                incomplete: c.count()?,
                unexamined: c.count()?,
                dropped: c.count()?,
                sum_ns: c.uint()?,
                certain_ns: c.uint()?,
                recorder: recorder(c.json()?),
            });
            Ok(())
        },
    )?;
    let Some(summary) = summary else {
        return Ok(None);
    };
    Ok(Some(Spikes { summary, causes: causes(conn)?, list: list(conn)?, kept: kept(conn)? }))
}

/// Refuses more rows than a record has, before they take memory.
pub(super) fn room(table: &str, len: usize, most: usize) -> Result<()> {
    if len >= most {
        return fault(format!("table {table} has more than {most} rows"));
    }
    Ok(())
}

/// How kernel events were recorded; what another version wrote is read as far as it goes.
fn recorder(document: serde_json::Value) -> Recorder {
    serde_json::from_value(document).unwrap_or_else(|error| Recorder {
        off: Some(format!("the record does not say it in words that are known here ({error})")),
        ..Recorder::default()
    })
}

fn list(conn: &Connection) -> Result<Vec<Spike>> {
    let mut list = Vec::new();
    let sql = "SELECT thread, due_ns, latency_ns, complete, cause, culprit FROM spike";
    each(conn, &format!("{sql} ORDER BY thread, due_ns"), |row| {
        room("spike", list.len(), SPIKES_MAX)?;
        let mut c = Columns::new(row);
        let (thread, due_ns, latency_ns) = (c.get()?, c.uint()?, c.uint()?);
        let complete: bool = c.get()?;
        let (cause, culprit): (Option<String>, Option<String>) = (c.get()?, c.get()?);
        let why = match (cause, culprit) {
            (Some(cause), Some(culprit)) => Some(Why { cause, culprit, complete }),
            (None, None) if !complete => None,
            _ => return fault(format!("the spike at {due_ns} ns has half a cause")),
        };
        list.push(Spike { thread, due_ns, latency_ns, why });
        Ok(())
    })?;
    Ok(list)
}

fn causes(conn: &Connection) -> Result<Vec<CauseEntry>> {
    let mut causes: BTreeMap<u32, CauseEntry> = BTreeMap::new();
    let sql = "SELECT number, cause, culprit, top, count, worst_ns, sum_ns, ambiguous_ns, words \
               FROM cause";
    each(conn, sql, |row| {
        room("cause", causes.len(), CAUSES_MAX)?;
        let mut c = Columns::new(row);
        let number = c.get()?;
        let mut row = CauseRow {
            cause: c.get()?,
            culprit: c.get()?,
            top: c.count()?,
            count: c.count()?,
            worst_ns: c.uint()?,
            sum_ns: c.uint()?,
            ambiguous_ns: c.uint()?,
            ..CauseRow::default()
        };
        let CauseDocument { title, owner, checks, remedies } = c.json()?;
        (row.title, row.owner, row.checks, row.remedies) = (title, owner, checks, remedies);
        causes.insert(number, CauseEntry { number, row });
        Ok(())
    })?;
    let sql = "SELECT cause, cpu, count, worst_ns, sum_ns FROM cause_cpu ORDER BY cause, cpu";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        let number: u32 = c.get()?;
        let Some(cause) = causes.get_mut(&number) else {
            return fault(format!("CPUs of cause {number}, which table cause does not have"));
        };
        room("cause_cpu", cause.row.cpus.len(), CPUS_MAX)?;
        cause.row.cpus.push(CauseCpu {
            cpu: c.get()?,
            count: c.count()?,
            worst_ns: c.uint()?,
            sum_ns: c.uint()?,
        });
        Ok(())
    })?;
    Ok(causes.into_values().collect())
}

fn kept(conn: &Connection) -> Result<Vec<Kept>> {
    let mut kept = Vec::new();
    let sql = "SELECT number, thread, due_ns, latency_ns, document FROM window ORDER BY number";
    each(conn, sql, |row| {
        room("window", kept.len(), WINDOWS_MAX)?;
        let mut c = Columns::new(row);
        kept.push(Kept {
            number: c.get()?,
            thread: c.get()?,
            due_ns: c.uint()?,
            latency_ns: c.uint()?,
            window: c.json()?,
        });
        Ok(())
    })?;
    Ok(kept)
}
