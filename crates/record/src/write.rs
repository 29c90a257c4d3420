//! The writer: one transaction a second, so that a kill or a power cut loses at most one second.
//!
//! The journal is SQLite's rollback journal in DELETE mode: between two commits the record is one
//! complete file, which may be copied or read at any time. A write-ahead log would save one fsync
//! but would leave the last seconds in a second file that a copy forgets. `synchronous = EXTRA` is
//! FULL plus an fsync of the folder after the journal is gone; without it a power cut could bring
//! the journal back and take the last committed second away.
//!
//! A failed append leaves file and writer as they were: the same tick may be given again.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, Result, ToSql, params, types::Null};

use rtproof_host::Reading;
use rtproof_stats::{Moments, Sample};

use crate::effects::{EffectTick, Imported, KNOBS_MAX, SLICES_MAX};
use crate::error::{Contradiction, WriteError, bound};
use crate::finish::Finished;
use crate::rows::{Row, insert, insert_into, on_conflict, put_values, replace, run, update};
use crate::run::{
    HostCpuSecond, HostSecond, IDLE_READINGS_MAX, MARKS_MAX, RunHead, RunTail, Second, Snapshot,
    SurroundingsTick, TOP_MAX, ThreadEnd, ThreadTick, Tick,
};
use crate::schema::{APPLICATION_ID, BLOCK, TABLES, VERSION};
use crate::spikes::{
    CAUSES_MAX, CauseDocument, CauseEntry, EVENTS_MAX, SPIKES_MAX, Spike, SpikeTick, WINDOWS_MAX,
};
use crate::{close, open_database, rows, seal, transact};

/// Writes one record. Use it from one thread on a housekeeping CPU.
#[derive(Debug)]
pub struct Writer {
    conn: Connection,
    path: PathBuf,
    threads: BTreeMap<u32, ThreadState>,
    spikes: SpikesState,
    effects: EffectsState,
    surroundings: MeasureState,
    host: HostState,
}

impl Writer {
    /// Makes the record with all that is known before the first wake-up; it is on disk when this
    /// returns.
    ///
    /// # Errors
    /// If a file of that name exists, the folder cannot be written to, or the disk is full. A file
    /// that was begun is removed again.
    pub fn create(path: &Path, head: &RunHead) -> Result<Self, WriteError> {
        check_head(path, head)?;
        match crate::create_new(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(WriteError::Exists { path: path.into() });
            }
            Err(source) => {
                return Err(WriteError::Create { path: path.into(), source });
            }
        }
        Self::begin(path, head).inspect_err(|_| {
            // Nothing in it is worth keeping, and the name is wanted for the next try.
            let _ = fs::remove_file(path);
        })
    }

    fn begin(path: &Path, head: &RunHead) -> Result<Self, WriteError> {
        const DOING: &str = "making the record";
        let absolute = crate::absolute(path).map_err(|error| WriteError::io(path, DOING, error))?;
        let mut conn =
            open_database(&absolute).map_err(|error| WriteError::sqlite(path, DOING, error))?;
        transact(&mut conn, |tx| {
            tx.pragma_update(None, "application_id", APPLICATION_ID)?;
            tx.pragma_update(None, "user_version", VERSION)?;
            for table in TABLES {
                tx.execute_batch(&table.create_sql(VERSION))?;
            }
            self::write_head(tx, head)
        })
        .map_err(|error| WriteError::sqlite(path, DOING, error))?;
        crate::sync_folder(&absolute).map_err(|error| WriteError::io(path, DOING, error))?;
        Ok(Self {
            conn,
            path: absolute,
            threads: BTreeMap::new(),
            spikes: SpikesState::default(),
            effects: EffectsState::default(),
            surroundings: MeasureState::default(),
            host: HostState::default(),
        })
    }

    /// Where the record is, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one second; it is on disk when this returns. One transaction: all of it or nothing.
    ///
    /// # Errors
    /// If the disk is full or fails, a reader holds the file locked, or the tick contradicts itself
    /// or the seconds before it. The record is then as before the call.
    pub fn append(&mut self, tick: &Tick) -> Result<(), WriteError> {
        let planned = plan(&self.path, &self.threads, tick)?;
        let known =
            |number| self.threads.contains_key(&number) || planned.threads.contains_key(&number);
        let path = &self.path;
        let inconsistent = |subject: &'static str| {
            move |what: Contradiction| WriteError::inconsistent(path, subject, what)
        };
        let spikes = self.spikes.after(&tick.spikes, known).map_err(inconsistent("spikes"))?;
        let effects = self.effects.after(&tick.effects).map_err(inconsistent("effects"))?;
        let (before, has_host) = (self.surroundings, tick.host.is_some());
        let surroundings = before
            .after(&tick.surroundings, |number| known(*number), has_host)
            .map_err(inconsistent("watched"))?;
        let (host, host_block) = self.host.after(tick.host.as_ref());
        transact(&mut self.conn, |tx| {
            tick.started.iter().try_for_each(|row| insert(tx, &[], row))?;
            for (thread, step) in tick.threads.iter().zip(&planned.steps) {
                second(tx, thread, step)?;
            }
            histograms(tx, &tick.threads)?;
            thread_ends(tx, &tick.ended)?;
            rest(tx, tick)?;
            self::host(tx, &host_block)?;
            write_spikes(tx, &tick.spikes)?;
            write_effects(tx, &tick.effects)?;
            before.write(tx, &tick.surroundings)
        })
        .map_err(|error| WriteError::sqlite(&self.path, "writing a second", error))?;
        self.threads.extend(planned.threads);
        self.spikes = spikes;
        self.effects = effects;
        self.surroundings = surroundings;
        self.host = host;
        Ok(())
    }

    /// Writes what another tool measured: all of it, once, into a record without threads.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn import(&mut self, imported: &Imported) -> Result<(), WriteError> {
        let inconsistent = |what| WriteError::inconsistent(&self.path, "import", what);
        imported.check().map_err(inconsistent)?;
        if !self.threads.is_empty() {
            return Err(inconsistent("the record has threads of its own".into()));
        }
        transact(&mut self.conn, |tx| {
            insert(tx, params![1], imported)?;
            for (number, thread) in (0_i64..).zip(&imported.threads) {
                insert(tx, params![number], thread)?;
                thread.bins.iter().try_for_each(|bin| insert(tx, params![number], bin))?;
            }
            Ok(())
        })
        .map_err(|error| WriteError::sqlite(&self.path, "writing the import", error))
    }

    /// Writes the end of the run and closes the file, ready to be read back, judged and sealed.
    ///
    /// # Errors
    /// As [`Writer::append`]. The record stays a torn one then.
    pub fn finish(mut self, tail: &RunTail) -> Result<Finished, WriteError> {
        const DOING: &str = "writing the end of the run";
        check_ends(&self.path, &self.threads, &tail.threads)?;
        transact(&mut self.conn, |tx| self::tail(tx, tail))
            .map_err(|error| WriteError::sqlite(&self.path, DOING, error))?;
        close(self.conn, &self.path, DOING)?;
        Ok(Finished::new(self.path))
    }
}

// Rows of blocks: a minute as one, written beside its last second.

/// CPUs of the readings of the present block.
#[derive(Clone, Debug, Default)]
struct HostState {
    readings: u64,
    cpus: BTreeMap<u32, HostCpuSecond>,
}

impl HostState {
    /// The state after a tick, and the CPUs of the block that it completes.
    fn after(&self, host: Option<&HostSecond>) -> (Self, Vec<HostCpuSecond>) {
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
fn thread(conn: &Connection, thread: u32, at: i64, block: &Second) -> Result<()> {
    let (sum, sum2, _) = block.intervals.power_sums();
    let more = params![
        crate::run::encode(&block.wake),
        crate::run::encode(&block.missed),
        rows::put::uint(&block.intervals.count())?,
        rows::put::opt_uint(&block.intervals.min())?,
        rows::put::opt_uint(&block.intervals.max())?,
        sum.to_string(),
        sum2.to_string(),
    ];
    of_seconds(conn, "block", (at, thread), block, more)
}

/// Writes a block of the CPUs of the host; its last reading is the last one there is.
fn host(conn: &Connection, cpus: &[HostCpuSecond]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let host = last_reading(conn)?;
    cpus.iter().try_for_each(|row| insert_into(conn, "host_block", params![host], row))
}

/// Writes a row of a table of seconds: its key, the columns that all such tables have, the others.
fn of_seconds(
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
        &rows::put::uint(&second.from_ns)?,
        &rows::put::uint(&second.to_ns)?,
        &rows::put::uint(&totals.wake.count())?,
        &rows::put::opt_uint(&totals.wake.min())?,
        &rows::put::opt_uint(&totals.wake.max())?,
        &rows::put::uint(&second.max_at_ns)?,
        &sum.to_string(),
        &sum2.to_string(),
        &higher.map(|(sum3, _)| sum3.to_string()),
        &higher.map(|(_, sum4)| sum4.to_string()),
        &rows::put::uint(&totals.missed)?,
        &totals.missed_sum_ns.to_string(),
        &rows::put::uint(&totals.late_sampled)?,
        &rows::put::uint(&totals.late_missed)?,
        &rows::put::uint(&totals.late_clusters)?,
        &rows::put::uint(&totals.early)?,
    ];
    let values = [&common[..], more].concat();
    put_values(conn, ("INSERT", table, ""), &values)
}

// Rows of effects, and what may be written of them.

/// What the writer remembers of the rows there are.
#[derive(Clone, Debug, Default)]
struct EffectsState {
    knobs: BTreeSet<u32>,
    slices: usize,
}

impl EffectsState {
    /// The state after a tick, or why it cannot be written.
    fn after(&self, tick: &EffectTick) -> std::result::Result<Self, Contradiction> {
        let mut state = self.clone();
        state.knobs.extend(tick.knobs.iter().map(|knob| knob.number));
        for slice in &tick.slices {
            if slice.number as usize != state.slices {
                return Err(format!("slice {}, expected {}", slice.number, state.slices).into());
            }
            state.slices += 1;
            if let Some(number) = slice.on.iter().find(|number| !state.knobs.contains(number)) {
                return Err(format!(
                    "slice {} with knob {number}, which is not there",
                    slice.number
                )
                .into());
            }
        }
        bound("knobs", state.knobs.len(), KNOBS_MAX)?;
        bound("slices", state.slices, SLICES_MAX)?;
        Ok(state)
    }
}

/// Writes what a second brought.
fn write_effects(conn: &Connection, tick: &EffectTick) -> Result<()> {
    tick.trial.iter().try_for_each(|row| replace(conn, params![1], row))?;
    for knob in &tick.knobs {
        update(conn, "number", &[], knob)?;
        run(conn, "DELETE FROM effect WHERE knob = ?1", params![knob.number])?;
        knob.effects.iter().try_for_each(|row| insert(conn, params![knob.number], row))?;
    }
    tick.slices.iter().try_for_each(|row| insert(conn, &[], row))
}

// Rows of the surroundings of a measurement, and limits of their number.

/// What the writer remembers of the rows there are.
#[derive(Clone, Copy, Debug, Default)]
struct MeasureState {
    marks: usize,
    readings: u64,
}

impl MeasureState {
    /// The state after a tick, or why it cannot be written.
    fn after(
        self,
        tick: &SurroundingsTick,
        known: impl Fn(&u32) -> bool,
        has_host: bool,
    ) -> std::result::Result<Self, Contradiction> {
        if let Some(mark) = tick.marks.iter().find(|mark| !known(&mark.thread)) {
            return Err(format!("a mark of thread {}, which never started", mark.thread).into());
        }
        if let Some(mark) = tick.marks.iter().find(|mark| mark.since_ns > mark.at_ns) {
            return Err(format!("a mark from {} to {} ns", mark.since_ns, mark.at_ns).into());
        }
        if tick.idle.is_some() && !has_host {
            return Err("idle times without the host counters of the same moment".into());
        }
        let state = Self {
            marks: self.marks + tick.marks.len(),
            readings: self.readings + u64::from(tick.idle.is_some()),
        };
        if state.marks > MARKS_MAX || state.readings > IDLE_READINGS_MAX {
            return Err(format!(
                "{} marks and {} readings of idle states, expected {MARKS_MAX} and \
                 {IDLE_READINGS_MAX} at most",
                state.marks, state.readings
            )
            .into());
        }
        Ok(state)
    }

    /// Writes what a second brought. `self`: the state before it; the row of host counters is the
    /// last one there is.
    fn write(self, conn: &Connection, tick: &SurroundingsTick) -> Result<()> {
        let mut marks = (self.marks as u64..).zip(&tick.marks);
        marks
            .try_for_each(|(number, row)| insert(conn, params![rows::put::uint(&number)?], row))?;
        tick.states.iter().try_for_each(|row| replace(conn, &[], row))?;
        let Some(times) = &tick.idle else { return Ok(()) };
        let host = last_reading(conn)?;
        times.iter().try_for_each(|row| insert(conn, params![host], row))
    }
}

/// Number of the last reading of the host.
fn last_reading(conn: &Connection) -> Result<i64> {
    conn.prepare_cached("SELECT max(number) FROM host")?.query_row([], |row| row.get(0))
}

/// Writes the intervals of a second.
fn intervals(conn: &Connection, thread: u32, at: i64, of: &Moments) -> Result<()> {
    let (Some(min), Some(max)) = (of.min(), of.max()) else { return Ok(()) };
    let (sum, sum2, _) = of.power_sums();
    let (sum, sum2) = (sum.to_string(), sum2.to_string());
    let [n, min, max] = [of.count(), min, max].map(|number| rows::put::uint(&number));
    put_values(conn, ("INSERT", "interval", ""), params![at, thread, n?, min?, max?, sum, sum2])
}

// Checks a tick before it is written, and updates the writer's memory.
//
// A record that contradicts itself is worth less than none, so each tick is checked before a byte
// is written: same counts in sums and histograms, seconds in order, threads known.

/// What the writer remembers of a thread.
#[derive(Clone, Debug, Default)]
struct ThreadState {
    /// Number of its next second.
    next_second: i64,
    /// Where its last second ended.
    to_ns: u64,
    /// Its largest samples, largest first.
    top: Vec<Sample>,
    /// What the present block holds so far.
    block: Option<Second>,
}

/// Rows that one [`ThreadTick`] writes besides its own.
#[derive(Debug)]
struct Step {
    /// Number of the second.
    second: i64,
    /// Samples that are now among the largest.
    top_in: Vec<Sample>,
    /// Samples that no longer are.
    top_out: Vec<Sample>,
    /// The block that the second completes, with its number.
    block: Option<(i64, Second)>,
}

/// A tick that may be written.
#[derive(Debug)]
struct Planned {
    /// One for each of the tick's threads.
    steps: Vec<Step>,
    /// State of the threads that changed, once the tick is on disk.
    threads: BTreeMap<u32, ThreadState>,
}

/// Checks a tick against the threads' state and works out what it changes.
fn plan(
    path: &Path,
    threads: &BTreeMap<u32, ThreadState>,
    tick: &Tick,
) -> Result<Planned, WriteError> {
    let bad = |thread: u32, what: Contradiction| {
        WriteError::inconsistent(path, &format!("thread {thread}"), what)
    };
    let mut changed = BTreeMap::new();
    for info in &tick.started {
        let twice = changed.insert(info.number, ThreadState::default()).is_some();
        if twice || threads.contains_key(&info.number) {
            return Err(bad(info.number, "started twice, expected once".into()));
        }
    }
    let mut steps = Vec::with_capacity(tick.threads.len());
    for thread in &tick.threads {
        thread.check().map_err(|what| bad(thread.number, what))?;
        if let Some(state) = threads.get(&thread.number) {
            changed.entry(thread.number).or_insert_with(|| state.clone());
        }
        let state = changed
            .get_mut(&thread.number)
            .ok_or_else(|| bad(thread.number, "not started, expected to be".into()))?;
        steps.push(state.step(thread).map_err(|what| bad(thread.number, what))?);
    }
    let known = |number: &u32| threads.contains_key(number) || changed.contains_key(number);
    if let Some((number, _)) = tick.ended.iter().find(|(number, _)| !known(number)) {
        return Err(bad(*number, "ended, but never started".into()));
    }
    Ok(Planned { steps, threads: changed })
}

/// Whether all threads that ended had started.
fn check_ends(
    path: &Path,
    threads: &BTreeMap<u32, ThreadState>,
    ends: &[(u32, ThreadEnd)],
) -> Result<(), WriteError> {
    let tick = Tick { ended: ends.to_vec(), ..Tick::default() };
    plan(path, threads, &tick).map(drop)
}

/// Whether the head can be read back.
fn check_head(path: &Path, head: &RunHead) -> Result<(), WriteError> {
    let id = &head.meta.run_id;
    if !seal::is_run_id(id) {
        let what = format!("\"{id}\", expected 32 lower-case hex digits");
        return Err(WriteError::inconsistent(path, "run id", what));
    }
    Ok(())
}

impl ThreadState {
    fn step(&mut self, tick: &ThreadTick) -> Result<Step, Contradiction> {
        if tick.second.from_ns < self.to_ns {
            return Err(format!(
                "second from {} ns, but the one before it ends at {} ns",
                tick.second.from_ns, self.to_ns
            )
            .into());
        }
        let second = self.next_second;
        self.next_second += 1;
        self.to_ns = tick.second.to_ns;
        let before: BTreeSet<u64> = self.top.iter().map(|sample| sample.due_ns).collect();
        let (top_in, top_out) = self.offer(&before, &tick.top)?;
        match &mut self.block {
            Some(block) => block.merge(&tick.second),
            none => *none = Some(tick.second.clone()),
        }
        const SECONDS: i64 = BLOCK.cast_signed();
        let is_last = self.next_second % SECONDS == 0;
        let block = self.block.take_if(|_| is_last).map(|block| (second / SECONDS, block));
        Ok(Step { second, top_in, top_out, block })
    }

    /// Merges the largest samples of a second; returns (new ones, displaced ones).
    fn offer(
        &mut self,
        before: &BTreeSet<u64>,
        samples: &[Sample],
    ) -> Result<(Vec<Sample>, Vec<Sample>), Contradiction> {
        let mut seen = before.clone();
        if let Some(twice) = samples.iter().find(|sample| !seen.insert(sample.due_ns)) {
            return Err(format!("two largest samples were due at {} ns", twice.due_ns).into());
        }
        let mut all = std::mem::take(&mut self.top);
        all.extend_from_slice(samples);
        all.sort_unstable_by_key(|sample| (std::cmp::Reverse(sample.latency_ns), sample.due_ns));
        let rest = all.split_off(all.len().min(TOP_MAX));
        let is_old = |sample: &&Sample| before.contains(&sample.due_ns);
        let top_in = all.iter().filter(|sample| !is_old(sample)).copied().collect();
        let top_out = rest.iter().filter(is_old).copied().collect();
        self.top = all;
        Ok((top_in, top_out))
    }
}

// The rows of each part of a run. Every statement is prepared once and kept.

fn write_head(conn: &Connection, head: &RunHead) -> Result<()> {
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
            rows::put::json(&meta.command)?,
            rows::put::uint(&meta.started_realtime_ns)?,
            rows::put::uint(&meta.started_monotonic_ns)?,
            rows::put::json(&head.options)?,
            rows::put::json(&head.cost)?,
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
        rows::put::opt_uint(&memory)?,
    ];
    put_values(conn, ("INSERT", "machine", ""), values)?;
    snapshot(conn, "start", &head.facts)
}

fn snapshot(conn: &Connection, taken: &str, snapshot: &Snapshot) -> Result<()> {
    run(
        conn,
        "INSERT INTO facts VALUES (?1, ?2)",
        params![taken, rows::put::json(&snapshot.facts)?],
    )?;
    for row in &snapshot.rows {
        let (state, class) = (rows::put::word(&row.state)?, rows::put::word(&row.class)?);
        let values = params![taken, row.key, state, row.value, row.path, class];
        put_values(conn, ("INSERT", "fact", ""), values)?;
    }
    Ok(())
}

fn thread_ends(conn: &Connection, ends: &[(u32, ThreadEnd)]) -> Result<()> {
    for (number, end) in ends {
        const SQL: &str = "UPDATE thread SET end_reason = ?2, scheduled = ?3, faults_minor = ?4, \
                           faults_major = ?5, cpu_time_ns = ?6, preemptions = ?7 WHERE number = ?1";
        end.put(&mut |values| run(conn, SQL, &[params![number], values].concat()))?;
    }
    Ok(())
}

fn second(conn: &Connection, tick: &ThreadTick, step: &Step) -> Result<()> {
    of_seconds(conn, "stat", (step.second, tick.number), &tick.second, &[])?;
    intervals(conn, tick.number, step.second, &tick.second.intervals)?;
    for (view, coarse) in [("wake", &tick.second.wake), ("missed", &tick.second.missed)] {
        if coarse.is_empty() {
            continue;
        }
        let values = params![step.second, tick.number, view, crate::run::encode(coarse)];
        put_values(conn, ("INSERT", "hist_second", ""), values)?;
    }
    if let Some((at, block)) = &step.block {
        thread(conn, tick.number, *at, block)?;
    }
    for sample in &step.top_out {
        let values = params![tick.number, rows::put::uint(&sample.due_ns)?];
        run(conn, "DELETE FROM top WHERE thread = ?1 AND due_ns = ?2", values)?;
    }
    step.top_in.iter().try_for_each(|row| insert(conn, params![tick.number], row))
}

/// Adds the seconds of a tick to the whole-run histograms.
fn histograms(conn: &Connection, ticks: &[ThreadTick]) -> Result<()> {
    // More than one second of a thread in a tick is rare; each bucket is touched once all the same.
    let mut sums: BTreeMap<(u32, &str), Vec<(u16, u64)>> = BTreeMap::new();
    for tick in ticks {
        for (view, fine) in [("wake", &tick.wake_fine), ("missed", &tick.missed_fine)] {
            if !fine.is_empty() {
                crate::run::merge(sums.entry((tick.number, view)).or_default(), fine);
            }
        }
    }
    for ((thread, view), sum) in sums {
        for (bucket, n) in sum {
            run(
                conn,
                "INSERT INTO hist VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT DO UPDATE SET n = n + excluded.n",
                params![thread, view, bucket, rows::put::uint(&n)?],
            )?;
        }
    }
    Ok(())
}

/// Rows that belong to no thread.
fn rest(conn: &Connection, tick: &Tick) -> Result<()> {
    if let Some(origin) = tick.origin {
        let times =
            params![rows::put::uint(&origin.realtime_ns)?, rows::put::uint(&origin.monotonic_ns)?];
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

fn tail(conn: &Connection, tail: &RunTail) -> Result<()> {
    thread_ends(conn, &tail.threads)?;
    if let Some(options) = &tail.options {
        run(conn, "UPDATE run SET options = ?1", params![rows::put::json(options)?])?;
    }
    let condition = tail.facts.as_ref().and_then(|facts| facts.condition_id.as_ref());
    run(
        conn,
        "UPDATE run SET ended = ?1, condition_end = ?2",
        params![rows::put::json(&tail.ended)?, condition],
    )?;
    match &tail.facts {
        Some(facts) => snapshot(conn, "end", facts),
        None => Ok(()),
    }
}

// Rows of spikes, and what may be written of them.

/// What the writer remembers of the rows there are.
#[derive(Clone, Debug, Default)]
struct SpikesState {
    listed: usize,
    kept: BTreeSet<u32>,
}

impl SpikesState {
    /// The state after a tick, or why it cannot be written; `known`: whether a thread exists.
    fn after(
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
fn write_spikes(conn: &Connection, tick: &SpikeTick) -> Result<()> {
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
        rows::put::uint(&spike.due_ns)?,
        rows::put::uint(&spike.latency_ns)?,
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
        rows::put::uint(&cause.top)?,
        rows::put::uint(&cause.count)?,
        rows::put::uint(&cause.worst_ns)?,
        rows::put::uint(&cause.sum_ns)?,
        rows::put::uint(&cause.ambiguous_ns)?,
        rows::put::json(&CauseDocument::of(cause))?,
    ];
    put_values(conn, ("INSERT", "cause", &on_conflict("cause", "number")), values)?;
    cause.cpus.iter().try_for_each(|row| replace(conn, params![number], row))
}
