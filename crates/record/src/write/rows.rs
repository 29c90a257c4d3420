//! The rows of each part of a run. Every statement is prepared once and kept.

use std::collections::BTreeMap;

use rtproof_host::Reading;
use rusqlite::{Connection, Result, params, types::Null};

use super::{
    blocks::{self, of_seconds},
    measure,
    plan::Step,
};
use crate::{
    pairs,
    rows::{Row, insert, put, put_values, run, update},
    run::{HostSecond, ThreadEnd},
    tick::{Head, Snapshot, Tail, ThreadTick, Tick},
};

pub(super) fn head(conn: &Connection, head: &Head) -> Result<()> {
    let meta = &head.meta;
    let identity = &head.facts.facts.identity;
    run(
        conn,
        "INSERT INTO run (id, run_id, tool_version, command, started_realtime_ns, \
         started_monotonic_ns, options, cost, boot_id, condition_start) \
         VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            meta.run_id,
            meta.tool_version,
            put::json(&meta.command)?,
            put::uint(&meta.started_realtime_ns)?,
            put::uint(&meta.started_monotonic_ns)?,
            put::json(&head.options)?,
            put::json(&head.cost)?,
            identity.boot_id.value(),
            head.facts.condition_id,
        ],
    )?;
    let memory = identity.memory_bytes.value().copied();
    let text = |reading: &Reading<String>| reading.value().cloned();
    let values = params![
        1,
        text(&identity.machine_id),
        text(&identity.hostname),
        text(&identity.model),
        text(&identity.cpu_model),
        put::opt_uint(&memory)?,
    ];
    put_values(conn, ("INSERT", "machine", ""), values)?;
    snapshot(conn, "start", &head.facts)
}

fn snapshot(conn: &Connection, taken: &str, snapshot: &Snapshot) -> Result<()> {
    run(conn, "INSERT INTO facts VALUES (?1, ?2)", params![taken, put::json(&snapshot.facts)?])?;
    for row in &snapshot.rows {
        let (state, class) = (put::word(&row.state)?, put::word(&row.class)?);
        let values = params![taken, row.key, state, row.value, row.path, class];
        put_values(conn, ("INSERT", "fact", ""), values)?;
    }
    Ok(())
}

pub(super) fn thread_ends(conn: &Connection, ends: &[(u32, ThreadEnd)]) -> Result<()> {
    for (number, end) in ends {
        const SQL: &str = "UPDATE thread SET end_reason = ?2, scheduled = ?3, faults_minor = ?4, \
                           faults_major = ?5, cpu_time_ns = ?6, preemptions = ?7 WHERE number = ?1";
        end.put(&mut |values| run(conn, SQL, &[params![number], values].concat()))?;
    }
    Ok(())
}

pub(super) fn second(conn: &Connection, tick: &ThreadTick, step: &Step) -> Result<()> {
    of_seconds(conn, "stat", (step.second, tick.number), &tick.second, &[])?;
    measure::intervals(conn, tick.number, step.second, &tick.second.intervals)?;
    for (view, coarse) in [("wake", &tick.second.wake), ("missed", &tick.second.missed)] {
        if coarse.is_empty() {
            continue;
        }
        let values = params![step.second, tick.number, view, pairs::encode(coarse)];
        put_values(conn, ("INSERT", "hist_second", ""), values)?;
    }
    if let Some((at, block)) = &step.block {
        blocks::thread(conn, tick.number, *at, block)?;
    }
    for sample in &step.top_out {
        let values = params![tick.number, put::uint(&sample.due_ns)?];
        run(conn, "DELETE FROM top WHERE thread = ?1 AND due_ns = ?2", values)?;
    }
    step.top_in.iter().try_for_each(|row| insert(conn, params![tick.number], row))
}

/// Adds the seconds of a tick to the whole-run histograms.
pub(super) fn histograms(conn: &Connection, ticks: &[ThreadTick]) -> Result<()> {
    // More than one second of a thread in a tick is rare; each bucket is touched once all the same.
    let mut sums: BTreeMap<(u32, &str), Vec<(u16, u64)>> = BTreeMap::new();
    for tick in ticks {
        for (view, fine) in [("wake", &tick.wake_fine), ("missed", &tick.missed_fine)] {
            if !fine.is_empty() {
                pairs::merge(sums.entry((tick.number, view)).or_default(), fine);
            }
        }
    }
    for ((thread, view), sum) in sums {
        for (bucket, n) in sum {
            run(
                conn,
                "INSERT INTO hist VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT DO UPDATE SET n = n + excluded.n",
                params![thread, view, bucket, put::uint(&n)?],
            )?;
        }
    }
    Ok(())
}

/// What belongs to no thread.
pub(super) fn rest(conn: &Connection, tick: &Tick) -> Result<()> {
    if let Some(origin) = tick.origin {
        let times = params![put::uint(&origin.realtime_ns)?, put::uint(&origin.monotonic_ns)?];
        run(conn, "UPDATE run SET started_realtime_ns = ?1, started_monotonic_ns = ?2", times)?;
    }
    if let Some(host) = &tick.host {
        host_second(conn, host)?;
    }
    tick.notes.iter().try_for_each(|row| insert(conn, params![Null], row))?;
    tick.loads.iter().try_for_each(|row| update(conn, "name, from_ns", params![Null], row))
}

fn host_second(conn: &Connection, host: &HostSecond) -> Result<()> {
    insert(conn, params![Null], host)?;
    let number = conn.last_insert_rowid();
    host.cpus.iter().try_for_each(|row| insert(conn, params![number], row))
}

pub(super) fn tail(conn: &Connection, tail: &Tail) -> Result<()> {
    thread_ends(conn, &tail.threads)?;
    if let Some(options) = &tail.options {
        run(conn, "UPDATE run SET options = ?1", params![put::json(options)?])?;
    }
    let condition = tail.facts.as_ref().and_then(|facts| facts.condition_id.as_ref());
    run(
        conn,
        "UPDATE run SET ended = ?1, condition_end = ?2",
        params![put::json(&tail.ended)?, condition],
    )?;
    match &tail.facts {
        Some(facts) => snapshot(conn, "end", facts),
        None => Ok(()),
    }
}
