//! Rows back into a [`Run`]. Every number is checked to be one that a run can have.

use std::collections::BTreeMap;

use rtproof_stats::{Histogram, Layout, Moments, Sample};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;

use super::{
    Detail,
    check::{COUNT_MAX, SECONDS_MAX, totals},
    long,
};
use crate::{
    Beside, Judgement, Run,
    counters::{self, Field},
    error::Fault,
    pairs,
    run::{
        HostCpuSecond, HostSecond, Load, Meta, Note, Second, Thread, ThreadEnd, ThreadInfo, Totals,
    },
};

pub(super) type Result<T> = std::result::Result<T, Fault>;

pub(super) fn fault<T>(what: String) -> Result<T> {
    Err(Fault::Content(what))
}

/// The one row of a table that must have one.
fn one<T>(conn: &Connection, sql: &str, read: impl FnOnce(&Row<'_>) -> Result<T>) -> Result<T> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    match rows.next()? {
        Some(row) => read(row),
        None => fault(format!("no row for `{sql}`")),
    }
}

/// Calls `read` for each row.
pub(super) fn each(
    conn: &Connection,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> Result<()>,
) -> Result<()> {
    each_in(conn, sql, [], read)
}

/// The same, of a statement with parameters.
pub(super) fn each_in(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    mut read: impl FnMut(&Row<'_>) -> Result<()>,
) -> Result<()> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        read(row)?;
    }
    Ok(())
}

/// Columns of one row, left to right.
pub(super) struct Columns<'a, 'b> {
    row: &'a Row<'b>,
    at: usize,
}

impl<'a, 'b> Columns<'a, 'b> {
    pub(super) const fn new(row: &'a Row<'b>) -> Self {
        Self { row, at: 0 }
    }

    pub(super) fn get<T: rusqlite::types::FromSql>(&mut self) -> Result<T> {
        self.at += 1;
        Ok(self.row.get(self.at - 1)?)
    }

    fn name(&self) -> &str {
        self.row.as_ref().column_name(self.at - 1).unwrap_or("?")
    }

    pub(super) fn uint(&mut self) -> Result<u64> {
        let value: i64 = self.get()?;
        u64::try_from(value).or_else(|_| fault(format!("{} is {value}", self.name())))
    }

    pub(super) fn opt_uint(&mut self) -> Result<Option<u64>> {
        match self.get::<Option<i64>>()? {
            None => Ok(None),
            Some(value) => match u64::try_from(value) {
                Ok(value) => Ok(Some(value)),
                Err(_) => fault(format!("{} is {value}", self.name())),
            },
        }
    }

    pub(super) fn count(&mut self) -> Result<u64> {
        let value = self.uint()?;
        if value > COUNT_MAX {
            return fault(format!("{} is {value}, expected {COUNT_MAX} at most", self.name()));
        }
        Ok(value)
    }

    pub(super) fn sum(&mut self) -> Result<u128> {
        let text: String = self.get()?;
        text.parse().or_else(|_| fault(format!("{} is \"{text}\"", self.name())))
    }

    fn opt_sum(&mut self) -> Result<Option<u128>> {
        match self.get::<Option<String>>()? {
            None => Ok(None),
            Some(_) => {
                self.at -= 1;
                self.sum().map(Some)
            }
        }
    }

    pub(super) fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        let text: String = self.get()?;
        serde_json::from_str(&text)
            .or_else(|error| fault(format!("{} is not as expected: {error}", self.name())))
    }

    /// A unit variant by its name.
    pub(super) fn word<T: DeserializeOwned>(&mut self) -> Result<T> {
        let text: String = self.get()?;
        serde_json::from_value(text.into())
            .or_else(|error| fault(format!("{} is not as expected: {error}", self.name())))
    }
}

/// What the file says of itself: identity of the run and text of the seal.
pub(super) fn claim(conn: &Connection) -> Result<(String, Option<String>)> {
    let run_id: String = one(conn, "SELECT run_id FROM run", |row| Ok(row.get(0)?))?;
    if !crate::write::is_run_id(&run_id) {
        return fault(format!("run_id is \"{run_id}\", expected 32 hex digits"));
    }
    let mark = conn.query_row("SELECT mark FROM seal", [], |row| row.get(0)).optional()?;
    Ok((run_id, mark))
}

pub(super) fn judgement(conn: &Connection) -> Result<Option<Judgement>> {
    let sql = "SELECT finding.document, verdict.document, summary FROM finding, verdict";
    let mut judgement = None;
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        judgement = Some(Judgement { findings: c.json()?, verdict: c.json()?, summary: c.get()? });
        Ok(())
    })?;
    Ok(judgement)
}

/// A run, and whether its seconds are put together.
pub(super) fn run(conn: &Connection, detail: Detail, version: i32) -> Result<(Run, bool)> {
    let (meta, options, cost) = one(
        conn,
        "SELECT run_id, tool_version, command, started_realtime_ns, started_monotonic_ns, \
         options, cost FROM run",
        |row| {
            let mut c = Columns::new(row);
            let meta = Meta {
                run_id: c.get()?,
                tool_version: c.get()?,
                command: c.json()?,
                started_realtime_ns: c.uint()?,
                started_monotonic_ns: c.uint()?,
                ended: None,
            };
            Ok((meta, c.json()?, c.json()?))
        },
    )?;
    let ended =
        conn.query_row("SELECT ended FROM run", [], |row| row.get::<_, Option<String>>(0))?;
    let ended = match ended {
        None => None,
        Some(text) => serde_json::from_str(&text)
            .or_else(|error| fault(format!("ended is not as expected: {error}")))?,
    };
    let facts = |taken: &str| {
        let sql = format!("SELECT document FROM facts WHERE taken = '{taken}'");
        one(conn, &sql, |row| Columns::new(row).json())
    };
    let has_end: bool =
        conn.query_row("SELECT count(*) FROM facts WHERE taken = 'end'", [], |row| row.get(0))?;
    let blocks = match detail {
        Detail::Shown(limits) if version >= 5 => long::Blocks::of(conn, &options, limits)?,
        _ => None,
    };
    let run = Run {
        meta: Meta { ended, ..meta },
        options,
        facts_start: facts("start")?,
        facts_end: if has_end { Some(facts("end")?) } else { None },
        cost,
        threads: threads(conn, blocks.as_ref())?,
        host: host(conn, blocks.is_some(), version)?,
        loads: loads(conn)?,
        notes: notes(conn)?,
        spikes: None,
        effects: None,
        beside: Beside::default(),
        imported: None,
    };
    Ok((run, blocks.is_some()))
}

fn threads(conn: &Connection, blocks: Option<&long::Blocks>) -> Result<Vec<Thread>> {
    let mut threads = BTreeMap::new();
    each(
        conn,
        "SELECT number, cpu, tid, workload, policy, priority, locked, period_ns, first_due_ns, \
         end_reason, scheduled, faults_minor, faults_major, cpu_time_ns, preemptions FROM thread",
        |row| {
            let thread = thread(&mut Columns::new(row))?;
            threads.insert(thread.info.number, thread);
            Ok(())
        },
    )?;
    match blocks {
        Some(blocks) => blocks.seconds(conn, &mut threads)?,
        None => {
            seconds(conn, &mut threads)?;
            second_histograms(conn, &mut threads)?;
        }
    }
    for thread in threads.values_mut() {
        thread.totals = totals(&thread.seconds).map_err(Fault::Content)?;
    }
    histograms(conn, &mut threads)?;
    top(conn, &mut threads)?;
    Ok(threads.into_values().collect())
}

fn thread(c: &mut Columns<'_, '_>) -> Result<Thread> {
    let info = ThreadInfo {
        number: c.get()?,
        cpu: c.get()?,
        tid: c.get()?,
        workload: c.get()?,
        policy: c.word()?,
        priority: c.get()?,
        locked: c.get()?,
        period_ns: c.uint()?,
        first_due_ns: c.uint()?,
    };
    let end = match c.get::<Option<String>>()? {
        None => None,
        Some(_) => {
            c.at -= 1;
            Some(ThreadEnd {
                reason: c.word()?,
                scheduled: c.uint()?,
                faults_minor: c.uint()?,
                faults_major: c.uint()?,
                cpu_time_ns: c.uint()?,
                preemptions: c.uint()?,
            })
        }
    };
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

pub(super) fn of(threads: &mut BTreeMap<u32, Thread>, number: u32) -> Result<&mut Thread> {
    match threads.get_mut(&number) {
        Some(thread) => Ok(thread),
        None => fault(format!("rows of thread {number}, which table thread does not have")),
    }
}

/// Columns of a second, in the order in which [`second`] takes them.
pub(super) const SECOND: &str = "from_ns, to_ns, n, min_ns, max_ns, max_at_ns, sum_ns, sum2, sum3, \
                                 sum4, missed, missed_sum_ns, late_sampled, late_missed, \
                                 late_clusters, early";

fn seconds(conn: &Connection, threads: &mut BTreeMap<u32, Thread>) -> Result<()> {
    each(
        conn,
        &format!("SELECT thread, second, {SECOND} FROM stat ORDER BY second, thread"),
        |row| {
            let mut c = Columns::new(row);
            let thread = of(threads, c.get()?)?;
            let number = c.uint()?;
            if number != thread.seconds.len() as u64 || number >= SECONDS_MAX {
                return fault(format!(
                    "second {number} of thread {}, expected {}",
                    thread.info.number,
                    thread.seconds.len()
                ));
            }
            thread.seconds.push(second(&mut c)?);
            Ok(())
        },
    )
}

pub(super) fn second(c: &mut Columns<'_, '_>) -> Result<Second> {
    let (from_ns, to_ns) = (c.uint()?, c.uint()?);
    let n = c.count()?;
    let extremes = (c.opt_uint()?, c.opt_uint()?);
    let max_at_ns = c.uint()?;
    let sums = (c.sum()?, c.sum()?);
    let higher = c.opt_sum()?.zip(c.opt_sum()?);
    let wake = match (n, extremes) {
        (0, (None, None)) => Moments::default(),
        (1.., (Some(min), Some(max))) => Moments::from_parts(n, (min, max), sums, higher),
        _ => return fault(format!("{n} samples with extremes {extremes:?}")),
    };
    let totals = Totals {
        wake,
        missed: c.count()?,
        missed_sum_ns: c.sum()?,
        late_sampled: c.count()?,
        late_missed: c.count()?,
        late_clusters: c.count()?,
        early: c.count()?,
    };
    Ok(Second {
        from_ns,
        to_ns,
        totals,
        max_at_ns,
        wake: Vec::new(),
        missed: Vec::new(),
        intervals: Moments::default(),
    })
}

fn second_histograms(conn: &Connection, threads: &mut BTreeMap<u32, Thread>) -> Result<()> {
    each(conn, "SELECT thread, second, view, data FROM hist_second", |row| {
        let mut c = Columns::new(row);
        let thread = of(threads, c.get()?)?;
        let (number, view): (u64, String) = (c.uint()?, c.get()?);
        let data = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(second) = thread.seconds.get_mut(at) else {
            return fault(format!(
                "a histogram of second {number}, which table stat does not have"
            ));
        };
        let pairs = pairs::decode(data, Layout::COARSE).map_err(Fault::Content)?;
        match view.as_str() {
            "wake" => second.wake = pairs,
            _ => second.missed = pairs,
        }
        Ok(())
    })
}

fn histograms(conn: &Connection, threads: &mut BTreeMap<u32, Thread>) -> Result<()> {
    each(conn, "SELECT thread, view, bucket, n FROM hist", |row| {
        let mut c = Columns::new(row);
        let thread = of(threads, c.get()?)?;
        let view: String = c.get()?;
        let histogram = if view == "wake" { &mut thread.wake } else { &mut thread.missed };
        let (bucket, n) = (c.uint()?, c.count()?);
        let bucket = usize::try_from(bucket).unwrap_or(usize::MAX);
        histogram.add_bucket(bucket, n).or_else(|error| fault(format!("table hist: {error}")))
    })
}

fn top(conn: &Connection, threads: &mut BTreeMap<u32, Thread>) -> Result<()> {
    let sql = "SELECT thread, due_ns, latency_ns FROM top ORDER BY latency_ns DESC, due_ns";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        let thread = of(threads, c.get()?)?;
        thread.top.push(Sample { due_ns: c.uint()?, latency_ns: c.uint()? });
        Ok(())
    })
}

/// Readings of the host; `long`: their CPUs put together.
fn host(conn: &Connection, long: bool, version: i32) -> Result<Vec<HostSecond>> {
    let mut host = Vec::new();
    let mut numbers = BTreeMap::new();
    let names: String =
        counters::of_version(version).map(|counter| format!(", {}", counter.name)).collect();
    each(conn, &format!("SELECT number, at_ns{names} FROM host ORDER BY number"), |row| {
        let mut c = Columns::new(row);
        numbers.insert(c.get::<i64>()?, host.len());
        let mut second = HostSecond { at_ns: c.uint()?, ..HostSecond::default() };
        for counter in counters::of_version(version) {
            match counter.field {
                Field::Count(_, put) => put(&mut second, c.opt_uint()?),
                Field::Signed(_, put) => put(&mut second, c.get()?),
            }
        }
        host.push(second);
        Ok(())
    })?;
    const CPUS: &str = "SELECT host, cpu, busy_ms, steal_ms, freq_hz FROM";
    let sql = if long {
        format!(
            "{CPUS} host_block UNION ALL {CPUS} host_cpu WHERE host > (SELECT coalesce(max(host), \
             0) FROM host_block) ORDER BY host, cpu"
        )
    } else {
        format!("{CPUS} host_cpu ORDER BY host, cpu")
    };
    each(conn, &sql, |row| {
        let mut c = Columns::new(row);
        let number: i64 = c.get()?;
        let Some(&at) = numbers.get(&number) else {
            return fault(format!("CPUs of reading {number}, which table host does not have"));
        };
        host[at].cpus.push(HostCpuSecond {
            cpu: c.get()?,
            busy_ms: c.uint()?,
            steal_ms: c.uint()?,
            freq_hz: c.opt_uint()?,
        });
        Ok(())
    })?;
    Ok(host)
}

fn loads(conn: &Connection) -> Result<Vec<Load>> {
    let mut loads = Vec::new();
    let sql = "SELECT name, detail, unit, work, from_ns, to_ns, error FROM load ORDER BY number";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        loads.push(Load {
            name: c.get()?,
            detail: c.get()?,
            unit: c.get()?,
            work: c.uint()?,
            from_ns: c.uint()?,
            to_ns: c.uint()?,
            error: c.get()?,
        });
        Ok(())
    })?;
    Ok(loads)
}

fn notes(conn: &Connection) -> Result<Vec<Note>> {
    let mut notes = Vec::new();
    let sql = "SELECT at_ns, id, text, weakens FROM note ORDER BY at_ns, number";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        notes.push(Note { at_ns: c.uint()?, id: c.get()?, text: c.get()?, weakens: c.get()? });
        Ok(())
    })?;
    Ok(notes)
}
