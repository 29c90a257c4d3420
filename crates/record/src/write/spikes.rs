//! Rows of spikes, and what may be written of them.

use std::collections::BTreeSet;

use rusqlite::{Connection, Result, params};

use crate::error::{Contradiction, bound};
use crate::{
    rows::{insert, on_conflict, put, put_values, replace, run},
    spikes::{
        CAUSES_MAX, CauseDocument, CauseEntry, EVENTS_MAX, SPIKES_MAX, Spike, SpikeTick,
        WINDOWS_MAX,
    },
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
    ) -> std::result::Result<Self, Contradiction> {
        if let Some(summary) = &tick.summary {
            summary.check()?;
        }
        for cause in &tick.causes {
            // How many were explained is checked where the whole run is there.
            cause.check(u64::MAX)?;
        }
        let threads = tick.list.iter().map(|s| s.thread).chain(tick.kept.iter().map(|k| k.thread));
        if let Some(number) = threads.into_iter().find(|&number| !known(number)) {
            return Err(format!("a spike of thread {number}, which has not started").into());
        }
        let listed = self.listed + tick.list.len();
        let mut kept = self.kept.clone();
        if let Some(number) = tick.dropped.iter().find(|&number| !kept.remove(number)) {
            return Err(format!("window {number} is to go, but is not there").into());
        }
        if let Some(twice) = tick.kept.iter().find(|new| !kept.insert(new.number)) {
            return Err(format!("window {} comes twice", twice.number).into());
        }
        let most = tick.kept.iter().map(|kept| kept.window.events.len()).max().unwrap_or(0);
        bound("spikes", listed, SPIKES_MAX)?;
        bound("windows", kept.len(), WINDOWS_MAX)?;
        bound("causes", tick.causes.len(), CAUSES_MAX)?;
        bound("events of a window", most, EVENTS_MAX)?;
        Ok(Self { listed, kept })
    }
}

/// Writes what a second brought.
pub(super) fn write(conn: &Connection, tick: &SpikeTick) -> Result<()> {
    tick.summary.iter().try_for_each(|row| replace(conn, params![1], row))?;
    tick.causes.iter().try_for_each(|row| cause(conn, row))?;
    tick.list.iter().try_for_each(|row| spike(conn, row))?;
    for number in &tick.dropped {
        run(conn, "DELETE FROM window WHERE number = ?1", params![number])?;
    }
    tick.kept.iter().try_for_each(|row| insert(conn, &[], row))
}

fn spike(conn: &Connection, spike: &Spike) -> Result<()> {
    let why = spike.why.as_ref();
    let values = params![
        spike.thread,
        put::uint(&spike.due_ns)?,
        put::uint(&spike.latency_ns)?,
        why.map(|why| &why.cause),
        why.map(|why| &why.culprit),
        why.is_some_and(|why| why.complete),
    ];
    put_values(conn, ("INSERT", "spike", ""), values)
}

fn cause(conn: &Connection, CauseEntry { number, row: cause }: &CauseEntry) -> Result<()> {
    let values = params![
        number,
        cause.cause,
        cause.culprit,
        put::uint(&cause.top)?,
        put::uint(&cause.count)?,
        put::uint(&cause.worst_ns)?,
        put::uint(&cause.sum_ns)?,
        put::uint(&cause.ambiguous_ns)?,
        put::json(&CauseDocument::of(cause))?,
    ];
    put_values(conn, ("INSERT", "cause", &on_conflict("cause", "number")), values)?;
    cause.cpus.iter().try_for_each(|row| replace(conn, params![number], row))
}
