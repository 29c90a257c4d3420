//! Rows of what is watched beside a measurement, and what may be written of them.

use rtproof_stats::Moments;
use rusqlite::{Connection, Result, params};

use super::rows::{int, opt_int, run, word};
use crate::beside::{BesideTick, IDLE_READINGS_MAX, IdleState, IdleTime, MARKS_MAX, Mark};

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
    ) -> std::result::Result<Self, String> {
        if let Some(mark) = tick.marks.iter().find(|mark| !known(&mark.thread)) {
            return Err(format!("a mark of thread {}, which never started", mark.thread));
        }
        if let Some(mark) = tick.marks.iter().find(|mark| mark.since_ns > mark.at_ns) {
            return Err(format!("a mark from {} to {} ns", mark.since_ns, mark.at_ns));
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
            ));
        }
        Ok(state)
    }

    /// Writes what a second brought. `self`: the state before it; the row of host counters is the
    /// last one there is.
    pub(super) fn write(self, conn: &Connection, tick: &BesideTick) -> Result<()> {
        (self.marks..).zip(&tick.marks).try_for_each(|(number, row)| mark(conn, number, row))?;
        tick.states.iter().try_for_each(|row| state(conn, row))?;
        let Some(times) = &tick.idle else { return Ok(()) };
        let host: i64 =
            conn.prepare_cached("SELECT max(number) FROM host")?.query_row([], |row| row.get(0))?;
        times.iter().try_for_each(|row| time(conn, host, row))
    }
}

/// Writes the intervals of a second.
pub(super) fn intervals(conn: &Connection, thread: u32, at: i64, of: &Moments) -> Result<()> {
    let (Some(min), Some(max)) = (of.min(), of.max()) else { return Ok(()) };
    let (sum, sum2, _) = of.power_sums();
    run(
        conn,
        "INSERT INTO interval VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            at,
            thread,
            int(of.count())?,
            int(min)?,
            int(max)?,
            sum.to_string(),
            sum2.to_string()
        ],
    )
}

fn mark(conn: &Connection, number: usize, mark: &Mark) -> Result<()> {
    run(
        conn,
        "INSERT INTO mark VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            int(number as u64)?,
            mark.thread,
            int(mark.since_ns)?,
            int(mark.at_ns)?,
            word(&mark.kind)?,
            mark.before,
            mark.after,
        ],
    )
}

fn state(conn: &Connection, state: &IdleState) -> Result<()> {
    run(
        conn,
        "INSERT OR REPLACE INTO idle_state VALUES (?1, ?2, ?3, ?4)",
        params![state.cpu, state.state, state.name, opt_int(state.exit_us)?],
    )
}

fn time(conn: &Connection, host: i64, time: &IdleTime) -> Result<()> {
    run(
        conn,
        "INSERT INTO host_idle VALUES (?1, ?2, ?3, ?4, ?5)",
        params![host, time.cpu, time.state, int(time.entered)?, int(time.residency_us)?],
    )
}
