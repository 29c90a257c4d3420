//! Rows of what is watched beside a measurement, read back. Records before version 4 have none.

use rtproof_stats::Moments;
use rusqlite::Connection;

use crate::{
    beside::{Beside, IDLE_READINGS_MAX, IdleReading, IdleTime, MARKS_MAX, STATES_MAX},
    rows::{Result, Row, each, fault, list, room},
    run::Thread,
};

/// CPUs that a record may have idle states of.
const CPUS_MAX: usize = 8192;

/// All of it, of a record that has the tables.
pub(super) fn beside(conn: &Connection) -> Result<Beside> {
    Ok(Beside {
        marks: list(conn, 1, "ORDER BY number", MARKS_MAX)?,
        states: list(conn, 0, "ORDER BY cpu, state", CPUS_MAX * STATES_MAX as usize)?,
        idle: idle(conn)?,
    })
}

/// Intervals of the threads' seconds.
pub(super) fn intervals(conn: &Connection, threads: &mut [Thread]) -> Result<()> {
    let sql = "SELECT thread, second, n, min_ns, max_ns, sum_ns, sum2 FROM interval";
    each(conn, sql, [], |c| {
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

fn idle(conn: &Connection) -> Result<Vec<IdleReading>> {
    let mut readings: Vec<IdleReading> = Vec::new();
    let mut last = None;
    // A row whose reading is missing has no time.
    let sql = "SELECT host, at_ns, host_idle.cpu, state, entered, residency_us FROM host_idle LEFT \
               JOIN host ON host.number = host_idle.host ORDER BY host, host_idle.cpu, state";
    each(conn, sql, [], |c| {
        let host: i64 = c.get()?;
        let Some(at_ns) = c.opt_uint()? else {
            return fault(format!("idle times of reading {host}, which table host does not have"));
        };
        if last != Some(host) {
            room("host_idle", readings.len(), IDLE_READINGS_MAX as usize)?;
            last = Some(host);
            readings.push(IdleReading { at_ns, times: Vec::new() });
        }
        let time = IdleTime::take(c)?;
        if let Some(reading) = readings.last_mut() {
            reading.times.push(time);
        }
        Ok(())
    })?;
    Ok(readings)
}
