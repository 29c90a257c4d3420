//! Rows of spikes back into [`Spikes`]. Records of version 1 have none.

use std::collections::BTreeMap;

use rtproof_model::{CauseCpu, CauseRow};
use rusqlite::Connection;

use crate::{
    rows::{Columns, Result, Row, each, each_of, fault, list, room},
    spikes::{
        CAUSES_MAX, CPUS_MAX, CauseDocument, CauseEntry, SPIKES_MAX, Spike, Spikes, Summary,
        WINDOWS_MAX, Why,
    },
};

/// The spikes of a record that has the tables; `None`: nothing was written of them.
pub(super) fn spikes(conn: &Connection) -> Result<Option<Spikes>> {
    let Some(summary) = list::<Summary>(conn, 1, "", 1)?.pop() else {
        return Ok(None);
    };
    let kept = list(conn, 0, "ORDER BY number", WINDOWS_MAX)?;
    Ok(Some(Spikes { summary, causes: causes(conn)?, list: spike_list(conn)?, kept }))
}

/// A row of table spike.
pub(super) fn spike(c: &mut Columns<'_, '_>) -> Result<Spike> {
    let (thread, due_ns, latency_ns) = (c.get()?, c.uint()?, c.uint()?);
    let (cause, culprit): (Option<String>, Option<String>) = (c.get()?, c.get()?);
    let complete: bool = c.get()?;
    let why = match (cause, culprit) {
        (Some(cause), Some(culprit)) => Some(Why { cause, culprit, complete }),
        (None, None) if !complete => None,
        _ => return fault(format!("the spike at {due_ns} ns has half a cause")),
    };
    Ok(Spike { thread, due_ns, latency_ns, why })
}

fn spike_list(conn: &Connection) -> Result<Vec<Spike>> {
    let mut list = Vec::new();
    each(conn, "SELECT * FROM spike ORDER BY thread, due_ns", [], |c| {
        room("spike", list.len(), SPIKES_MAX)?;
        list.push(spike(c)?);
        Ok(())
    })?;
    Ok(list)
}

pub(super) fn causes(conn: &Connection) -> Result<Vec<CauseEntry>> {
    let mut causes: BTreeMap<u32, CauseEntry> = BTreeMap::new();
    each(conn, "SELECT * FROM cause", [], |c| {
        room("cause", causes.len(), CAUSES_MAX)?;
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
    each_of(conn, "ORDER BY cause, cpu", |number: u32, cpu: CauseCpu| {
        let Some(cause) = causes.get_mut(&number) else {
            return fault(format!("CPUs of cause {number}, which table cause does not have"));
        };
        room(CauseCpu::TABLE, cause.row.cpus.len(), CPUS_MAX)?;
        cause.row.cpus.push(cpu);
        Ok(())
    })?;
    Ok(causes.into_values().collect())
}
