//! Rows of what is watched beside a measurement, read back. Records before version 4 have none.

use rtproof_stats::Moments;
use rusqlite::Connection;

use super::{
    rows::{Columns, Result, each, fault},
    spikes::room,
};
use crate::{
    beside::{
        Beside, IDLE_READINGS_MAX, IdleReading, IdleState, IdleTime, MARKS_MAX, Mark, STATES_MAX,
    },
    run::Thread,
};

/// CPUs that a record may have idle states of.
const CPUS_MAX: usize = 8192;

/// All of it, of a record that has the tables.
pub(super) fn beside(conn: &Connection) -> Result<Beside> {
    Ok(Beside { marks: marks(conn)?, states: states(conn)?, idle: idle(conn)? })
}

/// Intervals of the threads' seconds.
pub(super) fn intervals(conn: &Connection, threads: &mut [Thread]) -> Result<()> {
    let sql = "SELECT thread, second, n, min_ns, max_ns, sum_ns, sum2 FROM interval";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        let (number, at): (u32, u64) = (c.get()?, c.uint()?);
        let found = threads.binary_search_by_key(&number, |thread| thread.info.number);
        let thread = found.ok().and_then(|found| threads.get_mut(found));
        let second = thread.and_then(|t| t.seconds.get_mut(usize::try_from(at).ok()?));
        let Some(second) = second else {
            return fault(format!("intervals of second {at}, which table stat does not have"));
        };
        let (n, min_ns, max_ns) = (c.count()?, c.uint()?, c.uint()?);
        let (sum, sum2) = (c.sum()?, c.sum()?);
        let [low, high] = [min_ns, max_ns].map(|ns| u128::from(ns) * u128::from(n));
        if n == 0 || min_ns > max_ns || sum < low || sum > high {
            return fault(format!("{n} intervals from {min_ns} to {max_ns} ns sum to {sum} ns"));
        }
        second.intervals = Moments::from_parts(n, (min_ns, max_ns), (sum, sum2), None);
        Ok(())
    })
}

fn marks(conn: &Connection) -> Result<Vec<Mark>> {
    let mut marks = Vec::new();
    let sql = "SELECT thread, since_ns, at_ns, kind, before, after FROM mark ORDER BY number";
    each(conn, sql, |row| {
        room("mark", marks.len(), MARKS_MAX)?;
        let mut c = Columns::new(row);
        marks.push(Mark {
            thread: c.get()?,
            since_ns: c.uint()?,
            at_ns: c.uint()?,
            kind: c.word()?,
            before: c.get()?,
            after: c.get()?,
        });
        Ok(())
    })?;
    Ok(marks)
}

fn states(conn: &Connection) -> Result<Vec<IdleState>> {
    let mut states = Vec::new();
    let sql = "SELECT cpu, state, name, exit_us FROM idle_state ORDER BY cpu, state";
    each(conn, sql, |row| {
        room("idle_state", states.len(), CPUS_MAX * STATES_MAX as usize)?;
        let mut c = Columns::new(row);
        let (cpu, state) = (c.get()?, c.get()?);
        states.push(IdleState { cpu, state, name: c.get()?, exit_us: c.opt_uint()? });
        Ok(())
    })?;
    Ok(states)
}

fn idle(conn: &Connection) -> Result<Vec<IdleReading>> {
    let mut readings: Vec<IdleReading> = Vec::new();
    let mut last = None;
    // A row whose reading is missing has no time.
    let sql = "SELECT host, at_ns, host_idle.cpu, state, entered, residency_us FROM host_idle LEFT \
               JOIN host ON host.number = host_idle.host ORDER BY host, host_idle.cpu, state";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        let host: i64 = c.get()?;
        let Some(at_ns) = c.opt_uint()? else {
            return fault(format!("idle times of reading {host}, which table host does not have"));
        };
        if last != Some(host) {
            room("host_idle", readings.len(), IDLE_READINGS_MAX as usize)?;
            last = Some(host);
            readings.push(IdleReading { at_ns, times: Vec::new() });
        }
        let time = IdleTime {
            cpu: c.get()?,
            state: c.get()?,
            entered: c.uint()?,
            residency_us: c.uint()?,
        };
        if let Some(reading) = readings.last_mut() {
            reading.times.push(time);
        }
        Ok(())
    })?;
    Ok(readings)
}
