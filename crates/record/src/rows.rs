//! Rows of the tables as values: the columns of each are listed here once, for the writer and the
//! reader. Statements are made from the tables' own columns, prepared once and kept.

use rusqlite::{Connection, Row as SqlRow, ToSql, types::FromSql};
use serde::de::DeserializeOwned;

use rtproof_model::{CauseCpu, RecorderSummary};
use rtproof_stats::{Bin, Sample};

use crate::effects::{Effect, Imported, ImportedThread, KnobResult, Slice, TrialSummary};
use crate::error::Fault;
use crate::run::{
    CpuIdleState, HostCpuSecond, HostSecond, IdleTime, Mark, Note, RecordedLoad, ThreadEnd,
    ThreadInfo,
};
use crate::schema::{self, Table};
use crate::spikes::{KeptSpike, SpikeSummary};

/// Most wake-ups of one thread in one run: 5 us for 44 years. Sums over 2^15 threads fit 64 bits.
pub(crate) const COUNT_MAX: u64 = 1 << 48;

pub(crate) type RowResult<T> = Result<T, Fault>;

type Written<T = ()> = rusqlite::Result<T>;

/// A value that is one row of a table, but for the key before it and the columns behind it.
pub(crate) trait Row: Sized {
    /// Name of the table.
    const TABLE: &'static str;
    /// Hands over the values of the columns.
    fn put(&self, write: &mut dyn FnMut(&[&dyn ToSql]) -> Written) -> Written;
    fn take(c: &mut RowColumns<'_, '_>) -> RowResult<Self>;
}

macro_rules! rows {
    ($($type:ident in $table:literal { $($field:ident: $kind:ident),* $(; $rest:ident)? })*) => {$(
        impl Row for $type {
            const TABLE: &'static str = $table;

            fn put(&self, write: &mut dyn FnMut(&[&dyn ToSql]) -> Written) -> Written {
                write(&[$(&put::$kind(&self.$field)?),*])
            }

            fn take(c: &mut RowColumns<'_, '_>) -> RowResult<Self> {
                Ok(Self { $($field: c.$kind()?,)* $($rest: Default::default(),)? })
            }
        }
    )*};
}

// Columns in the order of the tables, each with the way it is written and read; after the
// semicolon, what other tables hold.
rows! {
    ThreadInfo in "thread" {
        number: get, cpu: get, tid: get, workload: get, policy: word, priority: get, locked: get,
        period_ns: uint, first_due_ns: uint
    }
    ThreadEnd in "thread" {
        reason: word, scheduled: uint, faults_minor: uint, faults_major: uint, cpu_time_ns: uint,
        preemptions: uint
    }
    Sample in "top" { due_ns: uint, latency_ns: uint }
    HostSecond in "host" {
        at_ns: uint, interrupts: opt_uint, context_switches: opt_uint, temp_max_mc: get; cpus
    }
    HostCpuSecond in "host_cpu" { cpu: get, busy_ms: uint, steal_ms: uint, freq_hz: opt_uint }
    RecordedLoad in "load" {
        name: get, from_ns: uint, to_ns: uint, detail: get, unit: get, work: uint, error: get
    }
    Note in "note" { at_ns: uint, id: get, text: get, weakens: get }
    SpikeSummary in "recorder" {
        threshold_ns: uint, adaptive: get, seen: count, explained: count, incomplete: count,
        unexamined: count, dropped: count, sum_ns: uint, certain_ns: uint, recorder: recorder
    }
    CauseCpu in "cause_cpu" { cpu: get, count: count, worst_ns: uint, sum_ns: uint }
    KeptSpike in "window" { number: get, thread: get, due_ns: uint, latency_ns: uint, window: json }
    TrialSummary in "trial" {
        seed: uint, design: word, pairs: get, slice_ns: uint, margin_ppm: uint, level_ppb: uint,
        detectable_ppm: opt_uint
    }
    KnobResult in "knob" {
        number: get, name: get, changes: json, how: word, decision: word, kept: get, why: get;
        effects
    }
    Effect in "effect" {
        statistic: word, pairs: get, off_ns: uint, on_ns: uint, ratio_ppm: uint, low_ppm: opt_uint,
        high_ppm: opt_uint, p_ppb: opt_uint, adjusted_ppb: opt_uint
    }
    Slice in "slice" {
        number: get, part: word, pair: get, on: json, from_ns: uint, to_ns: uint, scheduled: count,
        p999_ns: opt_uint, max_ns: opt_uint, missed: count
    }
    Mark in "mark" {
        thread: get, since_ns: uint, at_ns: uint, kind: word, before: get, after: get
    }
    CpuIdleState in "idle_state" { cpu: get, state: get, name: get, exit_us: opt_uint }
    IdleTime in "host_idle" { cpu: get, state: get, entered: uint, residency_us: uint }
    Imported in "import" {
        tool: get, tool_version: get, dialect: get, source: get, digest: get, command: get,
        machine: get, started_s: get, resolution_ns: uint, censored_above_ns: opt_uint,
        period_ns: opt_uint, duration_ns: opt_uint, doubts: json, remarks: json, omitted: opt_json;
        threads
    }
    ImportedThread in "import_thread" {
        cpu: get, label: get, kind: word, n: count, min_ns: opt_uint, max_ns: opt_uint,
        max_is_at_least: get, mean_ns: get, overflow: count, expected: opt_uint,
        period_ns: opt_uint, quantiles: json; bins
    }
    Bin in "bin" { low_ns: uint, high_ns: uint, n: count }
}

/// How values are written; [`RowColumns`] reads each in the same way.
pub(crate) mod put {
    use super::Written;
    use serde::Serialize;

    pub(crate) fn get<T>(value: &T) -> Written<&T> {
        Ok(value)
    }

    /// An unsigned number as SQLite's signed one.
    pub(crate) fn uint(value: &u64) -> Written<i64> {
        i64::try_from(*value).map_err(unwritten)
    }

    pub(crate) use super::put::uint as count;

    pub(crate) fn opt_uint(value: &Option<u64>) -> Written<Option<i64>> {
        value.as_ref().map(uint).transpose()
    }

    pub(crate) fn json(value: &impl Serialize) -> Written<String> {
        serde_json::to_string(value).map_err(unwritten)
    }

    pub(super) use super::put::json as recorder;

    pub(super) fn opt_json<T: Serialize>(value: &Option<T>) -> Written<Option<String>> {
        value.as_ref().map(json).transpose()
    }

    /// A unit variant's name, as serde writes it.
    pub(crate) fn word(value: &impl Serialize) -> Written<String> {
        Ok(json(value)?.trim_matches('"').to_owned())
    }

    fn unwritten(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
        rusqlite::Error::ToSqlConversionFailure(Box::new(error))
    }
}

pub(crate) fn run(conn: &Connection, sql: &str, values: &[&dyn ToSql]) -> Written {
    conn.prepare_cached(sql)?.execute(values).map(drop)
}

/// Writes a row of a table by its values; columns behind them are NULL.
pub(crate) fn put_values(
    conn: &Connection,
    (verb, table, rest): (&str, &str, &str),
    values: &[&dyn ToSql],
) -> Written {
    let columns = schema::table(table).map_or(0, |table| table.columns.len());
    let place = |at| if at < values.len() { "?" } else { "NULL" };
    let places = (0..columns).map(place).collect::<Vec<_>>().join(", ");
    run(conn, &format!("{verb} INTO {table} VALUES ({places}){rest}"), values)
}

fn put_row(
    conn: &Connection,
    how: (&str, &str, &str),
    key: &[&dyn ToSql],
    row: &impl Row,
) -> Written {
    row.put(&mut |values| put_values(conn, how, &[key, values].concat()))
}

/// Writes a new row; the key comes first.
pub(crate) fn insert<R: Row>(conn: &Connection, key: &[&dyn ToSql], row: &R) -> Written {
    insert_into(conn, R::TABLE, key, row)
}

/// As [`insert`], into another table of the same columns.
pub(crate) fn insert_into(
    conn: &Connection,
    table: &str,
    key: &[&dyn ToSql],
    row: &impl Row,
) -> Written {
    put_row(conn, ("INSERT", table, ""), key, row)
}

/// Writes a row in place of the one there may be.
pub(crate) fn replace<R: Row>(conn: &Connection, key: &[&dyn ToSql], row: &R) -> Written {
    put_row(conn, ("INSERT OR REPLACE", R::TABLE, ""), key, row)
}

/// Writes a row, or changes all but the first column of the one that has the same `unique`
/// columns: rows of other tables that refer to it stay.
pub(crate) fn update<R: Row>(
    conn: &Connection,
    unique: &str,
    key: &[&dyn ToSql],
    row: &R,
) -> Written {
    put_row(conn, ("INSERT", R::TABLE, &on_conflict(R::TABLE, unique)), key, row)
}

/// The end of a statement that changes the row there may be.
pub(crate) fn on_conflict(table: &str, unique: &str) -> String {
    let columns = schema::table(table).map_or(&[][..], |Table { columns, .. }| columns);
    let set = columns.iter().skip(1).map(|column| format!("{0} = excluded.{0}", column.name));
    format!(" ON CONFLICT ({unique}) DO UPDATE SET {}", set.collect::<Vec<_>>().join(", "))
}

/// A fault of the content.
pub(crate) fn fault<T>(what: impl Into<String>) -> RowResult<T> {
    Err(Fault::Content(what.into()))
}

/// Calls `read` for each row of a query.
pub(crate) fn each(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    mut read: impl FnMut(&mut RowColumns<'_, '_>) -> RowResult<()>,
) -> RowResult<()> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        read(&mut RowColumns { row, at: 0 })?;
    }
    Ok(())
}

/// Calls `read` for each row of a table with the column before it, e.g. what it is a row of.
pub(crate) fn each_of<K: FromSql, R: Row>(
    conn: &Connection,
    order: &str,
    mut read: impl FnMut(K, R) -> RowResult<()>,
) -> RowResult<()> {
    each(conn, &format!("SELECT * FROM {} {order}", R::TABLE), [], |c| read(c.get()?, R::take(c)?))
}

/// The rows of a table without its first `skipped` columns; more than `most` are refused before
/// they take memory.
pub(crate) fn list<R: Row>(
    conn: &Connection,
    skipped: usize,
    order: &str,
    most: usize,
) -> RowResult<Vec<R>> {
    let mut list = Vec::new();
    each(conn, &format!("SELECT * FROM {} {order}", R::TABLE), [], |c| {
        room(R::TABLE, list.len(), most)?;
        c.at = skipped;
        list.push(R::take(c)?);
        Ok(())
    })?;
    Ok(list)
}

/// Refuses more rows than a record has, before they take memory.
pub(crate) fn room(table: &str, len: usize, most: usize) -> RowResult<()> {
    if len >= most {
        return fault(format!("table {table} has more than {most} rows"));
    }
    Ok(())
}

/// Columns of one row, left to right.
pub(crate) struct RowColumns<'a, 'b> {
    row: &'a SqlRow<'b>,
    at: usize,
}

impl RowColumns<'_, '_> {
    pub(crate) fn get<T: FromSql>(&mut self) -> RowResult<T> {
        self.at += 1;
        Ok(self.row.get(self.at - 1)?)
    }

    /// Bytes, without a copy.
    pub(crate) fn blob<T>(&mut self, read: impl FnOnce(&[u8]) -> RowResult<T>) -> RowResult<T> {
        self.at += 1;
        read(self.row.get_ref(self.at - 1)?.as_blob().map_err(rusqlite::Error::from)?)
    }

    /// A column that may be NULL, read by `read` where it is not.
    pub(crate) fn opt<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> RowResult<T>,
    ) -> RowResult<Option<T>> {
        // A column that came later than this record.
        if self.at >= self.row.as_ref().column_count() {
            self.at += 1;
            return Ok(None);
        }
        match self.row.get_ref(self.at)? {
            rusqlite::types::ValueRef::Null => {
                self.at += 1;
                Ok(None)
            }
            _ => read(self).map(Some),
        }
    }

    fn name(&self) -> &str {
        self.row.as_ref().column_name(self.at - 1).unwrap_or("?")
    }

    pub(crate) fn uint(&mut self) -> RowResult<u64> {
        let value: i64 = self.get()?;
        u64::try_from(value).or_else(|_| fault(format!("{} is {value}", self.name())))
    }

    pub(crate) fn opt_uint(&mut self) -> RowResult<Option<u64>> {
        self.opt(Self::uint)
    }

    pub(crate) fn count(&mut self) -> RowResult<u64> {
        let value = self.uint()?;
        if value > COUNT_MAX {
            return fault(format!("{} is {value}, expected {COUNT_MAX} at most", self.name()));
        }
        Ok(value)
    }

    pub(crate) fn sum(&mut self) -> RowResult<u128> {
        let text: String = self.get()?;
        text.parse().or_else(|_| fault(format!("{} is \"{text}\"", self.name())))
    }

    pub(crate) fn json<T: DeserializeOwned>(&mut self) -> RowResult<T> {
        let text: String = self.get()?;
        self.expected(serde_json::from_str(&text))
    }

    pub(crate) fn opt_json<T: DeserializeOwned>(&mut self) -> RowResult<Option<T>> {
        self.opt(Self::json)
    }

    /// A unit variant by its name.
    pub(crate) fn word<T: DeserializeOwned>(&mut self) -> RowResult<T> {
        let text: String = self.get()?;
        self.expected(serde_json::from_value(text.into()))
    }

    fn expected<T>(&self, read: serde_json::Result<T>) -> RowResult<T> {
        read.or_else(|error| fault(format!("{} is not as expected: {error}", self.name())))
    }

    /// How kernel events were recorded; what another version wrote is read as far as it goes.
    fn recorder(&mut self) -> RowResult<RecorderSummary> {
        let document: serde_json::Value = self.json()?;
        Ok(serde_json::from_value(document).unwrap_or_else(|error| RecorderSummary {
            off: Some(format!("the record does not say it in words that are known here ({error})")),
            ..RecorderSummary::default()
        }))
    }
}
