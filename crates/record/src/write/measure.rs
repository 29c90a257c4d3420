//! Rows of what is watched beside a measurement, and what may be written of them.

use rtproof_stats::Moments;
use rusqlite::{Connection, Result, params};

use crate::error::Contradiction;
use crate::{
    beside::{BesideTick, IDLE_READINGS_MAX, MARKS_MAX},
    rows::{insert, put, put_values, replace},
};

/// What the writer remembers of the rows there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    marks: usize,
    readings: u64,
}

impl State {
    /// The state after a tick, or why it cannot be written.
    pub(super) fn after(
        self,
        tick: &BesideTick,
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
    pub(super) fn write(self, conn: &Connection, tick: &BesideTick) -> Result<()> {
        let mut marks = (self.marks as u64..).zip(&tick.marks);
        marks.try_for_each(|(number, row)| insert(conn, params![put::uint(&number)?], row))?;
        tick.states.iter().try_for_each(|row| replace(conn, &[], row))?;
        let Some(times) = &tick.idle else { return Ok(()) };
        let host = last_reading(conn)?;
        times.iter().try_for_each(|row| insert(conn, params![host], row))
    }
}

/// Number of the last reading of the host.
pub(super) fn last_reading(conn: &Connection) -> Result<i64> {
    conn.prepare_cached("SELECT max(number) FROM host")?.query_row([], |row| row.get(0))
}

/// Writes the intervals of a second.
pub(super) fn intervals(conn: &Connection, thread: u32, at: i64, of: &Moments) -> Result<()> {
    let (Some(min), Some(max)) = (of.min(), of.max()) else { return Ok(()) };
    let (sum, sum2, _) = of.power_sums();
    let (sum, sum2) = (sum.to_string(), sum2.to_string());
    let [n, min, max] = [of.count(), min, max].map(|number| put::uint(&number));
    put_values(conn, ("INSERT", "interval", ""), params![at, thread, n?, min?, max?, sum, sum2])
}
