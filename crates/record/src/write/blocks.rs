//! Rows of blocks: a minute as one, written beside its last second.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, params};

use super::rows::{int, of_seconds, opt_int, run};
use crate::{
    pairs,
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
        int(block.intervals.count())?,
        opt_int(block.intervals.min())?,
        opt_int(block.intervals.max())?,
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
    let host: i64 =
        conn.prepare_cached("SELECT max(number) FROM host")?.query_row([], |row| row.get(0))?;
    cpus.iter().try_for_each(|cpu| {
        run(
            conn,
            "INSERT INTO host_block VALUES (?1, ?2, ?3, ?4, ?5)",
            params![host, cpu.cpu, int(cpu.busy_ms)?, int(cpu.steal_ms)?, opt_int(cpu.freq_hz)?],
        )
    })
}
