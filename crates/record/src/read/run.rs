//! Rows back into a [`Run`]. Every number is checked to be one that a run can have.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};

use rtproof_model::{CauseCpu, CauseRow};
use rtproof_stats::{Histogram, Layout, Sample};

use super::check::{SECONDS_MAX, histogram, second, thread_of, totals};
use super::recover::{ReadBlocks, ReadDetail};
use crate::rows::{Row, RowColumns, RowResult, each, each_of, fault, list, room};
use crate::run::{
    HostCpuSecond, HostSecond, Judgement, Meta, Thread, ThreadEnd, ThreadInfo, Totals,
};
use crate::spikes::{
    CAUSES_MAX, CPUS_MAX, CauseDocument, CauseEntry, MainCause, RecordedSpikes, SPIKES_MAX, Spike,
    SpikeSummary, WINDOWS_MAX,
};
use crate::{Run, Surroundings, seal};

/// The one row of a table that must have one.
fn one<T>(
    conn: &Connection,
    sql: &str,
    read: impl Fn(&mut RowColumns<'_, '_>) -> RowResult<T>,
) -> RowResult<T> {
    let mut found = None;
    each(conn, sql, [], |c| {
        found = Some(read(c)?);
        Ok(())
    })?;
    found.map_or_else(|| fault(format!("no row for `{sql}`")), Ok)
}

/// What the file says of itself: identity of the run and text of the seal.
pub(super) fn claim(conn: &Connection) -> RowResult<(String, Option<String>)> {
    let run_id: String = one(conn, "SELECT run_id FROM run", |c| c.get())?;
    if !seal::is_run_id(&run_id) {
        return fault(format!("run_id is \"{run_id}\", expected 32 hex digits"));
    }
    let mark = conn.query_row("SELECT mark FROM seal", [], |row| row.get(0)).optional()?;
    Ok((run_id, mark))
}

pub(super) fn judgement(conn: &Connection) -> RowResult<Option<Judgement>> {
    let sql = "SELECT finding.document, verdict.document, summary FROM finding, verdict";
    let mut judgement = None;
    each(conn, sql, [], |c| {
        judgement = Some(Judgement { findings: c.json()?, verdict: c.json()?, summary: c.get()? });
        Ok(())
    })?;
    Ok(judgement)
}

/// A run, and whether its seconds are put together.
pub(super) fn run(conn: &Connection, detail: ReadDetail, version: i32) -> RowResult<(Run, bool)> {
    let (meta, options, cost) = one(
        conn,
        "SELECT run_id, tool_version, command, started_realtime_ns, started_monotonic_ns, \
         options, cost, ended FROM run",
        |c| {
            let meta = Meta {
                run_id: c.get()?,
                tool_version: c.get()?,
                command: c.json()?,
                started_realtime_ns: c.uint()?,
                started_monotonic_ns: c.uint()?,
                ended: None,
            };
            let (options, cost) = (c.json()?, c.json()?);
            Ok((Meta { ended: c.opt_json()?, ..meta }, options, cost))
        },
    )?;
    let facts = |taken: &str| {
        let sql = format!("SELECT document FROM facts WHERE taken = '{taken}'");
        one(conn, &sql, |c| c.json())
    };
    let has_end: bool =
        conn.query_row("SELECT count(*) FROM facts WHERE taken = 'end'", [], |row| row.get(0))?;
    let blocks = match detail {
        ReadDetail::Shown(limits) if version >= 5 => ReadBlocks::of(conn, &options, limits)?,
        _ => None,
    };
    let run = Run {
        meta,
        options,
        facts_start: facts("start")?,
        facts_end: if has_end { Some(facts("end")?) } else { None },
        cost,
        threads: threads(conn, blocks.as_ref())?,
        host: host(conn, blocks.is_some())?,
        loads: list(conn, 1, "ORDER BY number", usize::MAX)?,
        notes: list(conn, 1, "ORDER BY at_ns, number", usize::MAX)?,
        spikes: None,
        effects: None,
        surroundings: Surroundings::default(),
        imported: None,
    };
    Ok((run, blocks.is_some()))
}

fn threads(conn: &Connection, blocks: Option<&ReadBlocks>) -> RowResult<Vec<Thread>> {
    let mut threads = BTreeMap::new();
    each(conn, "SELECT * FROM thread", [], |c| {
        let thread = thread(c)?;
        threads.insert(thread.info.number, thread);
        Ok(())
    })?;
    match blocks {
        Some(blocks) => blocks.seconds(conn, &mut threads)?,
        None => {
            seconds(conn, &mut threads)?;
            second_histograms(conn, &mut threads)?;
        }
    }
    for thread in threads.values_mut() {
        thread.totals = totals(&thread.seconds)?;
    }
    histograms(conn, &mut threads)?;
    top(conn, &mut threads)?;
    Ok(threads.into_values().collect())
}

fn thread(c: &mut RowColumns<'_, '_>) -> RowResult<Thread> {
    let (info, end) = (ThreadInfo::take(c)?, c.opt(ThreadEnd::take)?);
    Ok(Thread {
        info,
        totals: Totals::default(),
        end,
        wake: Histogram::new(Layout::FINE),
        missed: Histogram::new(Layout::FINE),
        top: Vec::new(),
        seconds: Vec::new(),
    })
}

fn seconds(conn: &Connection, threads: &mut BTreeMap<u32, Thread>) -> RowResult<()> {
    each(conn, "SELECT * FROM stat ORDER BY second, thread", [], |c| {
        let number = c.uint()?;
        let thread = thread_of(threads, c.get()?)?;
        if number != thread.seconds.len() as u64 || number >= SECONDS_MAX {
            return fault(format!(
                "second {number} of thread {}, expected {}",
                thread.info.number,
                thread.seconds.len()
            ));
        }
        thread.seconds.push(second(c)?);
        Ok(())
    })
}

fn second_histograms(conn: &Connection, threads: &mut BTreeMap<u32, Thread>) -> RowResult<()> {
    each(conn, "SELECT * FROM hist_second", [], |c| {
        let number = c.uint()?;
        let thread = thread_of(threads, c.get()?)?;
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(second) = thread.seconds.get_mut(at) else {
            return fault(format!(
                "a histogram of second {number}, which table stat does not have"
            ));
        };
        histogram(c, second)
    })
}

fn histograms(conn: &Connection, threads: &mut BTreeMap<u32, Thread>) -> RowResult<()> {
    each(conn, "SELECT * FROM hist", [], |c| {
        let thread = thread_of(threads, c.get()?)?;
        let view: String = c.get()?;
        let histogram = if view == "wake" { &mut thread.wake } else { &mut thread.missed };
        let (bucket, n) = (c.uint()?, c.count()?);
        let bucket = usize::try_from(bucket).unwrap_or(usize::MAX);
        histogram.add_bucket(bucket, n).or_else(|error| fault(format!("table hist: {error}")))
    })
}

fn top(conn: &Connection, threads: &mut BTreeMap<u32, Thread>) -> RowResult<()> {
    each_of(conn, "ORDER BY latency_ns DESC, due_ns", |number, sample: Sample| {
        thread_of(threads, number)?.top.push(sample);
        Ok(())
    })
}

/// Readings of the host; `long`: their CPUs put together.
fn host(conn: &Connection, long: bool) -> RowResult<Vec<HostSecond>> {
    let mut host = Vec::new();
    let mut numbers = BTreeMap::new();
    each_of(conn, "ORDER BY number", |number: i64, reading: HostSecond| {
        numbers.insert(number, host.len());
        host.push(reading);
        Ok(())
    })?;
    let sql = if long {
        "SELECT * FROM host_block UNION ALL SELECT * FROM host_cpu WHERE host > (SELECT \
         coalesce(max(host), 0) FROM host_block) ORDER BY host, cpu"
    } else {
        "SELECT * FROM host_cpu ORDER BY host, cpu"
    };
    each(conn, sql, [], |c| {
        let number: i64 = c.get()?;
        let Some(&at) = numbers.get(&number) else {
            return fault(format!("CPUs of reading {number}, which table host does not have"));
        };
        let reading: &mut HostSecond = &mut host[at];
        reading.cpus.push(HostCpuSecond::take(c)?);
        Ok(())
    })?;
    Ok(host)
}

// Rows of spikes back into `RecordedSpikes`. Records of version 1 have none.

/// The spikes of a record that has the tables; `None`: nothing was written of them.
pub(super) fn spikes(conn: &Connection) -> RowResult<Option<RecordedSpikes>> {
    let Some(summary) = list::<SpikeSummary>(conn, 1, "", 1)?.pop() else {
        return Ok(None);
    };
    let kept = list(conn, 0, "ORDER BY number", WINDOWS_MAX)?;
    Ok(Some(RecordedSpikes { summary, causes: causes(conn)?, list: spike_list(conn)?, kept }))
}

/// A row of table spike.
pub(super) fn spike(c: &mut RowColumns<'_, '_>) -> RowResult<Spike> {
    let (thread, due_ns, latency_ns) = (c.get()?, c.uint()?, c.uint()?);
    let (cause, culprit): (Option<String>, Option<String>) = (c.get()?, c.get()?);
    let complete: bool = c.get()?;
    let why = match (cause, culprit) {
        (Some(cause), Some(culprit)) => Some(MainCause { cause, culprit, complete }),
        (None, None) if !complete => None,
        _ => return fault(format!("the spike at {due_ns} ns has half a cause")),
    };
    Ok(Spike { thread, due_ns, latency_ns, why })
}

fn spike_list(conn: &Connection) -> RowResult<Vec<Spike>> {
    let mut list = Vec::new();
    each(conn, "SELECT * FROM spike ORDER BY thread, due_ns", [], |c| {
        room("spike", list.len(), SPIKES_MAX)?;
        list.push(spike(c)?);
        Ok(())
    })?;
    Ok(list)
}

pub(super) fn causes(conn: &Connection) -> RowResult<Vec<CauseEntry>> {
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
