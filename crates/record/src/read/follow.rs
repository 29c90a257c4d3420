//! A record while its run goes on: what is new since the last look, in one moment of the file.
//!
//! The writer commits once a second; a look holds a shared lock for some milliseconds, and the
//! writer waits for it. Only new rows are read, so that a look costs the same after a week.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension, params};

use rtproof_stats::{Histogram, Layout};

use super::check::{check_second, histogram, second};
use super::recover::OpenRecord;
use super::run::{causes, spike};
use super::{check_header, check_rows, check_schema, is_empty, quick_check, recover};
use crate::error::{Fault, ReadError};
use crate::rows::{COUNT_MAX, Row, RowResult, each, each_of, fault, list, room};
use crate::run::{MARKS_MAX, Mark, Note, RecordedLoad, RunEnd, Second, ThreadInfo};
use crate::schema::{TABLES, VERSION};
use crate::spikes::{CauseEntry, KeptSpike, Spike, SpikeSummary};
use crate::{ClockOrigin, Options};

/// Seconds of each thread that are handed out one by one with the first look.
const RECENT: u64 = 120;

/// An explanation comes so long after its spike, at most: spikes are not listed in their order.
const LATE_ANSWER_NS: u64 = 10_000_000_000;

/// Spikes that one look hands out, at most.
const SPIKES_AT_ONCE: usize = 20_000;

/// Reads a record that is being written.
pub struct Follower {
    path: PathBuf,
    source: OpenRecord,
    /// What the run was asked for.
    pub options: Options,
    pub command: Vec<String>,
    /// Next second of each thread.
    next: BTreeMap<u32, u64>,
    /// Spikes of the last seconds that were handed out, by thread and due time.
    seen: BTreeMap<u32, BTreeSet<u64>>,
    notes: i64,
    marks: usize,
    explained: Option<u64>,
    is_first: bool,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What a run added to its record since the last look.
#[derive(Debug, Default)]
pub struct News {
    /// The first wake-up on two clocks.
    pub origin: Option<ClockOrigin>,
    pub started: Vec<ThreadInfo>,
    /// With the first look: all that was before it, by thread, with its whole histogram.
    pub earlier: Vec<(u32, Second)>,
    /// With the first look: the last seconds of that one by one.
    pub recent: Vec<(u32, Second)>,
    /// New seconds, in the order of time for each thread.
    pub seconds: Vec<(u32, Second)>,
    pub summary: Option<SpikeSummary>,
    /// All causes, where one has changed.
    pub causes: Option<Vec<CauseEntry>>,
    pub spikes: Vec<Spike>,
    /// Spikes whose events are kept now: thread and due time.
    pub kept: Vec<(u32, u64)>,
    pub notes: Vec<Note>,
    /// Loads as they are.
    pub loads: Vec<RecordedLoad>,
    /// Threads that were changed from outside, new ones.
    pub marks: Vec<Mark>,
    /// How the run ended.
    pub ended: Option<RunEnd>,
}

impl Follower {
    /// Opens a record of a run that goes on. One that has ended is opened, too: the first look says
    /// so.
    ///
    /// # Errors
    /// As [`read`](super::read); a record of an older version.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        check_header(path)?;
        let source = recover::unsealed(path)?;
        let at = |fault: Fault| fault.at(path, false);
        if is_empty(&source.conn).map_err(|error| at(error.into()))? {
            return Err(ReadError::Empty { path: path.into() });
        }
        let (options, command) = head(&source.conn).map_err(at)?;
        Ok(Self {
            path: path.into(),
            source,
            options,
            command,
            next: BTreeMap::new(),
            seen: BTreeMap::new(),
            notes: 0,
            marks: 0,
            explained: None,
            is_first: true,
        })
    }

    /// What is new since the last look.
    ///
    /// # Errors
    /// The file is damaged, or its writer holds it for seconds.
    pub fn poll(&mut self) -> Result<News, ReadError> {
        let path = self.path.clone();
        let begin = self.source.conn.execute_batch("BEGIN");
        let news = begin.map_err(Fault::from).and_then(|()| self.news());
        // Nothing was written: ending it gives the lock back.
        let _ = self.source.conn.execute_batch("ROLLBACK");
        news.map_err(|fault| fault.at(&path, false))
    }

    /// The events round a spike, where they are kept.
    ///
    /// # Errors
    /// As [`Follower::look`].
    pub fn window(&self, thread: u32, due_ns: u64) -> Result<Option<KeptSpike>, ReadError> {
        let sql = "SELECT * FROM window WHERE thread = ? AND due_ns = ?";
        let mut kept = None;
        each(&self.source.conn, sql, params![thread, due_ns.cast_signed()], |c| {
            kept = Some(KeptSpike::take(c)?);
            Ok(())
        })
        .map_err(|fault| fault.at(&self.path, false))?;
        Ok(kept)
    }

    fn news(&mut self) -> RowResult<News> {
        let conn = &self.source.conn;
        // The file may come from a stranger, and has grown.
        check_rows(conn, VERSION)?;
        let mut news = News { ended: ended(conn)?, origin: origin(conn)?, ..News::default() };
        each(conn, "SELECT * FROM thread ORDER BY number", [], |c| {
            let info = ThreadInfo::take(c)?;
            if let Entry::Vacant(free) = self.next.entry(info.number) {
                free.insert(0);
                news.started.push(info);
            }
            Ok(())
        })?;
        if std::mem::take(&mut self.is_first) {
            self.earlier_seconds(&mut news)?;
        } else {
            news.seconds = self.seconds()?;
        }
        self.spikes(&mut news)?;
        let conn = &self.source.conn;
        each(conn, "SELECT * FROM note WHERE number > ? ORDER BY number", [self.notes], |c| {
            self.notes = c.get()?;
            news.notes.push(Note::take(c)?);
            Ok(())
        })?;
        news.loads = list(conn, 1, "ORDER BY number", usize::MAX)?;
        each_of(conn, "ORDER BY number", |_: i64, mark: Mark| {
            room(Mark::TABLE, news.marks.len(), MARKS_MAX)?;
            news.marks.push(mark);
            Ok(())
        })?;
        let all = news.marks.len();
        news.marks.drain(..self.marks.min(all));
        self.marks = all;
        Ok(news)
    }

    /// All seconds so far as one for each thread, and the last ones.
    fn earlier_seconds(&mut self, news: &mut News) -> RowResult<()> {
        let conn = &self.source.conn;
        let mut past: BTreeMap<u32, Second> = BTreeMap::new();
        each(conn, "SELECT * FROM stat ORDER BY second, thread", [], |c| {
            let (number, thread) = (c.uint()?, c.get()?);
            let Some(next) = self.next.get_mut(&thread) else { return unknown("stat", thread) };
            *next = number + 1;
            let second = checked(second(c)?)?;
            match past.get_mut(&thread) {
                Some(sums) => {
                    sums.merge(&second);
                    let totals = &sums.totals;
                    if totals.wake.count().max(totals.missed) > COUNT_MAX {
                        return fault(format!("more than {COUNT_MAX} wake-ups"));
                    }
                }
                None => drop(past.insert(thread, second)),
            }
            Ok(())
        })?;
        let mut whole: BTreeMap<u32, Histogram> = BTreeMap::new();
        each(conn, "SELECT * FROM hist WHERE view = 'wake'", [], |c| {
            let (thread, _): (u32, String) = (c.get()?, c.get()?);
            if !past.contains_key(&thread) {
                // Each takes tens of kilobytes: none for a thread without a second.
                return unknown("hist", thread);
            }
            let bucket = usize::try_from(c.uint()?).unwrap_or(usize::MAX);
            let histogram = whole.entry(thread).or_insert_with(|| Histogram::new(Layout::FINE));
            let n = c.count()?;
            histogram.add_bucket(bucket, n).or_else(|error| fault(format!("table hist: {error}")))
        })?;
        for (thread, histogram) in whole {
            let Some(sums) = past.get_mut(&thread) else { continue };
            let coarse = histogram.coarsened(Layout::COARSE);
            sums.wake = coarse.buckets().map(|(bucket, n)| (bucket as u16, n)).collect();
        }
        news.earlier = past.into_iter().collect();
        let next = self.next.clone();
        self.next.values_mut().for_each(|next| *next = next.saturating_sub(RECENT));
        news.recent = self.seconds()?;
        self.next = next;
        Ok(())
    }

    /// Seconds that were not handed out yet.
    fn seconds(&mut self) -> RowResult<Vec<(u32, Second)>> {
        let Some(&from) = self.next.values().min() else { return Ok(Vec::new()) };
        let conn = &self.source.conn;
        let mut new: BTreeMap<(u64, u32), Second> = BTreeMap::new();
        let sql = "SELECT * FROM stat WHERE second >= ? ORDER BY second, thread";
        each(conn, sql, [from.cast_signed()], |c| {
            let (number, thread) = (c.uint()?, c.get()?);
            let Some(next) = self.next.get_mut(&thread) else {
                return unknown("stat", thread);
            };
            if number >= *next {
                *next = number + 1;
                new.insert((number, thread), checked(second(c)?)?);
            }
            Ok(())
        })?;
        each(conn, "SELECT * FROM hist_second WHERE second >= ?", [from.cast_signed()], |c| {
            let key = (c.uint()?, c.get()?);
            new.get_mut(&key).map_or(Ok(()), |second| histogram(c, second))
        })?;
        Ok(new.into_iter().map(|((_, thread), second)| (thread, second)).collect())
    }

    fn spikes(&mut self, news: &mut News) -> RowResult<()> {
        let conn = &self.source.conn;
        news.summary = list::<SpikeSummary>(conn, 1, "", 1)?.pop();
        let explained = news.summary.as_ref().map(|summary| summary.explained);
        if explained != self.explained {
            news.causes = Some(causes(conn)?);
            self.explained = explained;
        }
        for &thread in self.next.keys() {
            let seen = self.seen.entry(thread).or_default();
            let last_ns = seen.last().copied().unwrap_or(0);
            let from_ns = last_ns.saturating_sub(LATE_ANSWER_NS);
            *seen = seen.split_off(&from_ns);
            let sql = "SELECT * FROM spike WHERE thread = ? AND due_ns >= ? ORDER BY due_ns";
            each(conn, sql, params![thread, from_ns.cast_signed()], |c| {
                let spike = spike(c)?;
                if news.spikes.len() < SPIKES_AT_ONCE && seen.insert(spike.due_ns) {
                    news.spikes.push(spike);
                }
                Ok(())
            })?;
        }
        each(conn, "SELECT thread, due_ns FROM window", [], |c| {
            room("window", news.kept.len(), crate::spikes::WINDOWS_MAX)?;
            news.kept.push((c.get()?, c.uint()?));
            Ok(())
        })
    }
}

/// A row of a thread that the record does not have.
fn unknown<T>(table: &str, thread: u32) -> RowResult<T> {
    fault(format!("table {table} has thread {thread}, which has no row or no second before"))
}

/// A second whose numbers can be: sums of such seconds fit.
fn checked(second: Second) -> RowResult<Second> {
    check_second(&second)?;
    Ok(second)
}

/// The options, once the tables are those of this version.
fn head(conn: &Connection) -> RowResult<(Options, Vec<String>)> {
    let version = check_schema(conn)?;
    let newest = TABLES.iter().map(|table| table.since).max().unwrap_or(version);
    if version < newest {
        return fault(format!(
            "it is of version {version} and the tables of {newest} are needed to follow a run; \
             read it with rtproof report"
        ));
    }
    quick_check(conn)?;
    let mut head = None;
    each(conn, "SELECT options, command FROM run", [], |c| {
        head = Some((c.json()?, c.json()?));
        Ok(())
    })?;
    head.map_or_else(|| fault("table run has no row"), Ok)
}

fn ended(conn: &Connection) -> RowResult<Option<RunEnd>> {
    let mut ended = None;
    each(conn, "SELECT ended FROM run", [], |c| {
        ended = c.opt_json()?;
        Ok(())
    })?;
    Ok(ended)
}

/// Times of the first wake-up: estimates until there is a second.
fn origin(conn: &Connection) -> RowResult<Option<ClockOrigin>> {
    let sql = "SELECT started_realtime_ns, started_monotonic_ns FROM run";
    let row = conn.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
    Ok(row.optional()?.map(|(realtime, monotonic)| ClockOrigin {
        realtime_ns: realtime.unsigned_abs(),
        monotonic_ns: monotonic.unsigned_abs(),
    }))
}
