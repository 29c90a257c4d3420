//! Rows of spikes, and what may be written of them.

use std::collections::BTreeSet;

use rusqlite::{Connection, Result, params};

use super::rows::{int, json, run};
use crate::spikes::{
    CAUSES_MAX, CauseDocument, CauseEntry, EVENTS_MAX, Kept, SPIKES_MAX, Spike, SpikeTick,
    WINDOWS_MAX,
};

/// What the writer remembers of the rows there are.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    listed: usize,
    kept: BTreeSet<u32>,
}

impl State {
    /// The state after a tick, or why it cannot be written; `known`: whether a thread exists.
    pub(super) fn after(
        &self,
        tick: &SpikeTick,
        known: impl Fn(u32) -> bool,
    ) -> std::result::Result<Self, String> {
        if let Some(summary) = &tick.summary {
            summary.check()?;
        }
        for cause in &tick.causes {
            // How many were explained is checked where the whole run is there.
            cause.check(u64::MAX)?;
        }
        let threads = tick.list.iter().map(|s| s.thread).chain(tick.kept.iter().map(|k| k.thread));
        if let Some(number) = threads.into_iter().find(|&number| !known(number)) {
            return Err(format!("a spike of thread {number}, which has not started"));
        }
        let listed = self.listed + tick.list.len();
        let mut kept = self.kept.clone();
        if let Some(number) = tick.dropped.iter().find(|&number| !kept.remove(number)) {
            return Err(format!("window {number} is to go, but is not there"));
        }
        if let Some(twice) = tick.kept.iter().find(|new| !kept.insert(new.number)) {
            return Err(format!("window {} comes twice", twice.number));
        }
        let most = tick.kept.iter().map(|kept| kept.window.events.len()).max().unwrap_or(0);
        for (what, n, max) in [
            ("spikes", listed, SPIKES_MAX),
            ("windows", kept.len(), WINDOWS_MAX),
            ("causes", tick.causes.len(), CAUSES_MAX),
            ("events of a window", most, EVENTS_MAX),
        ] {
            if n > max {
                return Err(format!("{n} {what}, expected {max} at most"));
            }
        }
        Ok(Self { listed, kept })
    }
}

/// Writes what a second brought.
pub(super) fn write(conn: &Connection, tick: &SpikeTick) -> Result<()> {
    if let Some(summary) = &tick.summary {
        run(
            conn,
            "INSERT OR REPLACE INTO recorder VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                int(summary.threshold_ns)?,
                summary.adaptive,
                int(summary.seen)?,
                int(summary.explained)?,
                int(summary.incomplete)?,
                int(summary.unexamined)?,
                int(summary.dropped)?,
                int(summary.sum_ns)?,
                int(summary.certain_ns)?,
                json(&summary.recorder)?,
            ],
        )?;
    }
    tick.causes.iter().try_for_each(|row| cause(conn, row))?;
    tick.list.iter().try_for_each(|row| spike(conn, row))?;
    for number in &tick.dropped {
        run(conn, "DELETE FROM window WHERE number = ?1", params![number])?;
    }
    tick.kept.iter().try_for_each(|row| window(conn, row))
}

fn spike(conn: &Connection, spike: &Spike) -> Result<()> {
    let why = spike.why.as_ref();
    run(
        conn,
        "INSERT INTO spike VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            spike.thread,
            int(spike.due_ns)?,
            int(spike.latency_ns)?,
            why.map(|why| &why.cause),
            why.map(|why| &why.culprit),
            why.is_some_and(|why| why.complete),
        ],
    )
}

fn cause(conn: &Connection, CauseEntry { number, row: cause }: &CauseEntry) -> Result<()> {
    run(
        conn,
        "INSERT INTO cause VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (number) \
         DO UPDATE SET top = excluded.top, count = excluded.count, worst_ns = excluded.worst_ns, \
         sum_ns = excluded.sum_ns, ambiguous_ns = excluded.ambiguous_ns, words = excluded.words",
        params![
            number,
            cause.cause,
            cause.culprit,
            int(cause.top)?,
            int(cause.count)?,
            int(cause.worst_ns)?,
            int(cause.sum_ns)?,
            int(cause.ambiguous_ns)?,
            json(&CauseDocument::of(cause))?,
        ],
    )?;
    for cpu in &cause.cpus {
        run(
            conn,
            "INSERT OR REPLACE INTO cause_cpu VALUES (?1, ?2, ?3, ?4, ?5)",
            params![number, cpu.cpu, int(cpu.count)?, int(cpu.worst_ns)?, int(cpu.sum_ns)?],
        )?;
    }
    Ok(())
}

fn window(conn: &Connection, kept: &Kept) -> Result<()> {
    run(
        conn,
        "INSERT INTO window VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            kept.number,
            kept.thread,
            int(kept.due_ns)?,
            int(kept.latency_ns)?,
            json(&kept.window)?
        ],
    )
}
