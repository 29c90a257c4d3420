//! Rows of blocks: a minute as one, written beside its last second.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, ToSql, params};

use super::measure::last_reading;
use crate::{
    pairs,
    rows::{insert_into, put, put_values},
    run::{HostCpuSecond, HostSecond, Second},
    schema::BLOCK,
};

/// CPUs of the readings of the present block.
#[derive(Clone, Debug, Default)]
pub(super) struct HostState {
    readings: u64,
    cpus: BTreeMap<u32, HostCpuSecond>,
}

impl HostState {
    /// The state after a tick, and the CPUs of the block that it completes.
    pub(super) fn after(&self, host: Option<&HostSecond>) -> (Self, Vec<HostCpuSecond>) {
        let mut state = self.clone();
        let Some(host) = host else { return (state, Vec::new()) };
        state.readings += 1;
        for row in &host.cpus {
            let cpu = state.cpus.entry(row.cpu).or_default();
            cpu.cpu = row.cpu;
            cpu.busy_ms = cpu.busy_ms.saturating_add(row.busy_ms);
            cpu.steal_ms = cpu.steal_ms.saturating_add(row.steal_ms);
            cpu.freq_hz = row.freq_hz.or(cpu.freq_hz);
        }
        let is_last = state.readings.is_multiple_of(BLOCK);
        let cpus = if is_last { std::mem::take(&mut state.cpus) } else { BTreeMap::new() };
        (state, cpus.into_values().collect())
    }
}

/// Writes a block of a thread.
pub(super) fn thread(conn: &Connection, thread: u32, at: i64, block: &Second) -> Result<()> {
    let (sum, sum2, _) = block.intervals.power_sums();
    let more = params![
        pairs::encode(&block.wake),
        pairs::encode(&block.missed),
        put::uint(&block.intervals.count())?,
        put::opt_uint(&block.intervals.min())?,
        put::opt_uint(&block.intervals.max())?,
        sum.to_string(),
        sum2.to_string(),
    ];
    of_seconds(conn, "block", (at, thread), block, more)
}

/// Writes a block of the CPUs of the host; its last reading is the last one there is.
pub(super) fn host(conn: &Connection, cpus: &[HostCpuSecond]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let host = last_reading(conn)?;
    cpus.iter().try_for_each(|row| insert_into(conn, "host_block", params![host], row))
}

/// Writes a row of a table of seconds: its key, the columns that all such tables have, the others.
pub(super) fn of_seconds(
    conn: &Connection,
    table: &str,
    (at, number): (i64, u32),
    second: &Second,
    more: &[&dyn ToSql],
) -> Result<()> {
    let totals = &second.totals;
    let (sum, sum2, higher) = totals.wake.power_sums();
    let common: [&dyn ToSql; 18] = [
        &at,
        &number,
        &put::uint(&second.from_ns)?,
        &put::uint(&second.to_ns)?,
        &put::uint(&totals.wake.count())?,
        &put::opt_uint(&totals.wake.min())?,
        &put::opt_uint(&totals.wake.max())?,
        &put::uint(&second.max_at_ns)?,
        &sum.to_string(),
        &sum2.to_string(),
        &higher.map(|(sum3, _)| sum3.to_string()),
        &higher.map(|(_, sum4)| sum4.to_string()),
        &put::uint(&totals.missed)?,
        &totals.missed_sum_ns.to_string(),
        &put::uint(&totals.late_sampled)?,
        &put::uint(&totals.late_missed)?,
        &put::uint(&totals.late_clusters)?,
        &put::uint(&totals.early)?,
    ];
    let values = [&common[..], more].concat();
    put_values(conn, ("INSERT", table, ""), &values)
}
