//! The rows of each part of a run. Every statement is prepared once and kept.

use std::collections::BTreeMap;

use rtproof_host::Reading;
use rusqlite::{Connection, Result, ToSql, params};
use serde::Serialize;

use super::{blocks, measure, plan::Step};
use crate::{
    counters::{COUNTERS, Field},
    pairs,
    run::{HostSecond, Load, Note, Second, ThreadEnd, ThreadInfo},
    tick::{Head, Snapshot, Tail, ThreadTick, Tick},
};

/// An unsigned number as SQLite's signed one.
pub(super) fn int(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

pub(super) fn opt_int(value: Option<u64>) -> Result<Option<i64>> {
    value.map(int).transpose()
}

pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// A unit variant's name, as serde writes it.
pub(super) fn word(value: &impl Serialize) -> Result<String> {
    Ok(json(value)?.trim_matches('"').to_owned())
}

pub(super) fn run(conn: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<()> {
    conn.prepare_cached(sql)?.execute(values).map(drop)
}

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
            json(&meta.command)?,
            int(meta.started_realtime_ns)?,
            int(meta.started_monotonic_ns)?,
            json(&head.options)?,
            json(&head.cost)?,
            identity.boot_id.value(),
            head.facts.condition_id,
        ],
    )?;
    let memory = identity.memory_bytes.value().copied();
    let text = |reading: &Reading<String>| reading.value().cloned();
    run(
        conn,
        "INSERT INTO machine VALUES (1, ?1, ?2, ?3, ?4, ?5)",
        params![
            text(&identity.machine_id),
            text(&identity.hostname),
            text(&identity.model),
            text(&identity.cpu_model),
            opt_int(memory)?,
        ],
    )?;
    snapshot(conn, "start", &head.facts)
}

fn snapshot(conn: &Connection, taken: &str, snapshot: &Snapshot) -> Result<()> {
    run(conn, "INSERT INTO facts VALUES (?1, ?2)", params![taken, json(&snapshot.facts)?])?;
    for row in &snapshot.rows {
        run(
            conn,
            "INSERT INTO fact VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![taken, row.key, word(&row.state)?, row.value, row.path, word(&row.class)?],
        )?;
    }
    Ok(())
}

pub(super) fn thread(conn: &Connection, info: &ThreadInfo) -> Result<()> {
    run(
        conn,
        "INSERT INTO thread (number, cpu, tid, workload, policy, priority, locked, period_ns, \
         first_due_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            info.number,
            info.cpu,
            info.tid,
            info.workload,
            word(&info.policy)?,
            info.priority,
            info.locked,
            int(info.period_ns)?,
            int(info.first_due_ns)?,
        ],
    )
}

pub(super) fn thread_ends(conn: &Connection, ends: &[(u32, ThreadEnd)]) -> Result<()> {
    for (number, end) in ends {
        run(
            conn,
            "UPDATE thread SET end_reason = ?2, scheduled = ?3, faults_minor = ?4, \
             faults_major = ?5, cpu_time_ns = ?6, preemptions = ?7 WHERE number = ?1",
            params![
                number,
                word(&end.reason)?,
                int(end.scheduled)?,
                int(end.faults_minor)?,
                int(end.faults_major)?,
                int(end.cpu_time_ns)?,
                int(end.preemptions)?,
            ],
        )?;
    }
    Ok(())
}

pub(super) fn second(conn: &Connection, tick: &ThreadTick, step: &Step) -> Result<()> {
    stat(conn, tick.number, step.second, &tick.second)?;
    measure::intervals(conn, tick.number, step.second, &tick.second.intervals)?;
    for (view, coarse) in [("wake", &tick.second.wake), ("missed", &tick.second.missed)] {
        if coarse.is_empty() {
            continue;
        }
        run(
            conn,
            "INSERT INTO hist_second VALUES (?1, ?2, ?3, ?4)",
            params![step.second, tick.number, view, pairs::encode(coarse)],
        )?;
    }
    if let Some((at, block)) = &step.block {
        blocks::thread(conn, tick.number, *at, block)?;
    }
    for sample in &step.top_out {
        run(
            conn,
            "DELETE FROM top WHERE thread = ?1 AND due_ns = ?2",
            params![tick.number, int(sample.due_ns)?],
        )?;
    }
    for sample in &step.top_in {
        run(
            conn,
            "INSERT INTO top VALUES (?1, ?2, ?3)",
            params![tick.number, int(sample.due_ns)?, int(sample.latency_ns)?],
        )?;
    }
    Ok(())
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
                params![thread, view, bucket, int(n)?],
            )?;
        }
    }
    Ok(())
}

fn stat(conn: &Connection, number: u32, at: i64, second: &Second) -> Result<()> {
    of_seconds(conn, "stat", (at, number), second, &[])
}

/// Writes a row of a table of seconds: what it is of, what all such tables have, what else there
/// is.
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
        &int(second.from_ns)?,
        &int(second.to_ns)?,
        &int(totals.wake.count())?,
        &opt_int(totals.wake.min())?,
        &opt_int(totals.wake.max())?,
        &int(second.max_at_ns)?,
        &sum.to_string(),
        &sum2.to_string(),
        &higher.map(|(sum3, _)| sum3.to_string()),
        &higher.map(|(_, sum4)| sum4.to_string()),
        &int(totals.missed)?,
        &totals.missed_sum_ns.to_string(),
        &int(totals.late_sampled)?,
        &int(totals.late_missed)?,
        &int(totals.late_clusters)?,
        &int(totals.early)?,
    ];
    let values = [&common[..], more].concat();
    let places = vec!["?"; values.len()].join(", ");
    run(conn, &format!("INSERT INTO {table} VALUES ({places})"), &values)
}

/// What belongs to no thread.
pub(super) fn rest(conn: &Connection, tick: &Tick) -> Result<()> {
    if let Some(origin) = tick.origin {
        let times = params![int(origin.realtime_ns)?, int(origin.monotonic_ns)?];
        run(conn, "UPDATE run SET started_realtime_ns = ?1, started_monotonic_ns = ?2", times)?;
    }
    if let Some(host) = &tick.host {
        host_second(conn, host)?;
    }
    tick.notes.iter().try_for_each(|row| note(conn, row))?;
    tick.loads.iter().try_for_each(|row| load(conn, row))
}

fn host_second(conn: &Connection, host: &HostSecond) -> Result<()> {
    let (mut names, mut holes) = ("at_ns".to_owned(), "?1".to_owned());
    let mut values = vec![Some(int(host.at_ns)?)];
    for counter in COUNTERS {
        values.push(match counter.field {
            Field::Count(take, _) => opt_int(take(host))?,
            Field::Signed(take, _) => take(host),
        });
        names = names + ", " + counter.name;
        holes += &format!(", ?{}", values.len());
    }
    let sql = format!("INSERT INTO host ({names}) VALUES ({holes})");
    conn.prepare_cached(&sql)?.execute(rusqlite::params_from_iter(values))?;
    let number = conn.last_insert_rowid();
    for cpu in &host.cpus {
        run(
            conn,
            "INSERT INTO host_cpu VALUES (?1, ?2, ?3, ?4, ?5)",
            params![number, cpu.cpu, int(cpu.busy_ms)?, int(cpu.steal_ms)?, opt_int(cpu.freq_hz)?,],
        )?;
    }
    Ok(())
}

fn note(conn: &Connection, note: &Note) -> Result<()> {
    run(
        conn,
        "INSERT INTO note (at_ns, id, text, weakens) VALUES (?1, ?2, ?3, ?4)",
        params![int(note.at_ns)?, note.id, note.text, note.weakens],
    )
}

fn load(conn: &Connection, load: &Load) -> Result<()> {
    run(
        conn,
        "INSERT INTO load (name, from_ns, to_ns, detail, unit, work, error) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
         ON CONFLICT (name, from_ns) DO UPDATE SET to_ns = excluded.to_ns, \
         detail = excluded.detail, unit = excluded.unit, work = excluded.work, \
         error = excluded.error",
        params![
            load.name,
            int(load.from_ns)?,
            int(load.to_ns)?,
            load.detail,
            load.unit,
            int(load.work)?,
            load.error,
        ],
    )
}

pub(super) fn tail(conn: &Connection, tail: &Tail) -> Result<()> {
    thread_ends(conn, &tail.threads)?;
    let condition = tail.facts.as_ref().and_then(|facts| facts.condition_id.as_ref());
    run(
        conn,
        "UPDATE run SET ended = ?1, condition_end = ?2",
        params![json(&tail.ended)?, condition],
    )?;
    match &tail.facts {
        Some(facts) => snapshot(conn, "end", facts),
        None => Ok(()),
    }
}
