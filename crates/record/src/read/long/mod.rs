//! A long run, as it is shown: minutes in place of seconds, as many of them in one as keep the
//! whole short, so that a day of 64 CPUs fits into memory and is read in a moment.
//!
//! Sums, extremes and histograms stay exact; what is lost is when within a piece something was.
//! Where that matters it is kept: minutes in which a load begins or ends, or a thread was changed,
//! are read second by second.

use std::collections::BTreeMap;

use rtproof_stats::Moments;
use rusqlite::{Connection, params};

use super::{
    check::check_second,
    second::{coarse, histogram, of, second},
};
use crate::{
    Options,
    rows::{Columns, Result, each, fault},
    run::{Second, Thread},
    schema::BLOCK,
};

/// How much is read of a long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Every second.
    Seconds,
    /// Of a long run, minutes and more in one.
    Shown(Limits),
}

/// What is kept in memory, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Seconds of all threads up to which a run is read second by second.
    seconds: u64,
    /// Pieces of all threads that a long run is cut into, but for the ones below.
    pieces: u64,
    /// Seconds of all threads that are read round the edges.
    edge_seconds: u64,
}

/// A day and a half of one CPU, or half an hour of 64, is read second by second.
pub(super) const LIMITS: Limits =
    Limits { seconds: 1 << 17, pieces: 3 << 12, edge_seconds: 1 << 15 };

/// How a long run is read.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Blocks in a piece.
    per_piece: u64,
    /// Times, ascending, at which a piece must not lap.
    edges: Vec<u64>,
    /// Whether the blocks that lap are read second by second.
    by_second: bool,
}

/// A thread while it is read.
#[derive(Debug, Default)]
struct Place {
    blocks: u64,
    piece: Option<Second>,
}

/// Seconds of threads, by their numbers.
type Found = BTreeMap<u32, Vec<Second>>;

impl Blocks {
    /// `None`: the run is short enough to be read whole.
    pub(super) fn of(conn: &Connection, options: &Options, limits: Limits) -> Result<Option<Self>> {
        let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        // A table that claims more is found out by its rows.
        let blocks = number("SELECT coalesce(max(block) + 1, 0) FROM block")?.unsigned_abs();
        let threads = number("SELECT count(*) FROM thread")?.unsigned_abs();
        let all = blocks.saturating_mul(threads);
        if all.saturating_mul(BLOCK) <= limits.seconds {
            return Ok(None);
        }
        let mut edges: Vec<u64> =
            options.phases.iter().flat_map(|phase| [phase.from_ns, phase.to_ns]).collect();
        each(conn, "SELECT since_ns, at_ns FROM mark", [], |c| {
            edges.extend([c.uint()?, c.uint()?]);
            Ok(())
        })?;
        edges.sort_unstable();
        edges.dedup();
        let seconds = (edges.len() as u64).saturating_mul(threads).saturating_mul(BLOCK);
        let by_second = seconds <= limits.edge_seconds;
        Ok(Some(Self { per_piece: all.div_ceil(limits.pieces), edges, by_second }))
    }

    /// Fills the seconds of the threads.
    pub(super) fn seconds(
        &self,
        conn: &Connection,
        threads: &mut BTreeMap<u32, Thread>,
    ) -> Result<()> {
        let mut places: BTreeMap<u32, Place> =
            threads.keys().map(|&number| (number, Place::default())).collect();
        let mut lapping = (u64::MAX, Found::new());
        each(conn, "SELECT * FROM block ORDER BY block, thread", [], |c| {
            let (at, number) = (c.uint()?, c.get()?);
            let thread = of(threads, number)?;
            let place = places.entry(number).or_default();
            if at != place.blocks {
                return fault(format!("block {at} of thread {number}, expected {}", place.blocks));
            }
            place.blocks += 1;
            if at % self.per_piece == 0 {
                thread.seconds.extend(place.piece.take());
            }
            let block = block(c)?;
            if !self.laps(&block) {
                match &mut place.piece {
                    Some(piece) if piece.to_ns <= block.from_ns => piece.merge(&block),
                    Some(_) => return fault(format!("block {at} of thread {number} laps")),
                    none => *none = Some(block),
                }
                return Ok(());
            }
            thread.seconds.extend(place.piece.take());
            if !self.by_second {
                thread.seconds.push(block);
                return Ok(());
            }
            if lapping.0 != at {
                lapping = (at, seconds(conn, at)?);
            }
            thread.seconds.extend(lapping.1.remove(&number).unwrap_or_default());
            Ok(())
        })?;
        let mut rest: BTreeMap<u64, Found> = BTreeMap::new();
        for (number, place) in places {
            let thread = of(threads, number)?;
            thread.seconds.extend(place.piece);
            // What was not completed is less than a block.
            let found = match rest.entry(place.blocks) {
                std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
                std::collections::btree_map::Entry::Vacant(none) => {
                    none.insert(seconds(conn, place.blocks)?)
                }
            };
            thread.seconds.extend(found.remove(&number).unwrap_or_default());
        }
        Ok(())
    }

    /// Whether an edge lies within a block.
    fn laps(&self, block: &Second) -> bool {
        let next = self.edges.partition_point(|&edge| edge <= block.from_ns);
        self.edges.get(next).is_some_and(|&edge| edge < block.to_ns)
    }
}

fn block(c: &mut Columns<'_, '_>) -> Result<Second> {
    let second = second(c)?;
    let (wake, missed) = (coarse(c)?, coarse(c)?);
    let n = c.count()?;
    let extremes = (c.opt_uint()?, c.opt_uint()?);
    let sums = (c.sum()?, c.sum()?);
    let intervals = match extremes {
        (Some(min), Some(max)) if n > 0 => Moments::from_parts(n, (min, max), sums, None),
        (None, None) if n == 0 => Moments::default(),
        _ => return fault(format!("{n} intervals with extremes {extremes:?}")),
    };
    let block = Second { wake, missed, intervals, ..second };
    check_second(&block)?;
    Ok(block)
}

/// The seconds of a block, of all threads.
fn seconds(conn: &Connection, block: u64) -> Result<Found> {
    let mut found = Found::new();
    let range = [block.saturating_mul(BLOCK), block.saturating_add(1).saturating_mul(BLOCK)];
    let range = range.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let params = params![range[0], range[1]];
    const WITHIN: &str = "WHERE second >= ?1 AND second < ?2 ORDER BY second, thread";
    each(conn, &format!("SELECT * FROM stat {WITHIN}"), params, |c| {
        let (at, thread): (i64, u32) = (c.get()?, c.get()?);
        let seconds = found.entry(thread).or_default();
        if usize::try_from(at - range[0]) != Ok(seconds.len()) {
            return fault(format!("second {at} of thread {thread}, expected another"));
        }
        let second = second(c)?;
        check_second(&second)?;
        seconds.push(second);
        Ok(())
    })?;
    each(conn, &format!("SELECT * FROM hist_second {WITHIN}"), params, |c| {
        let (at, thread) = (c.get()?, c.get()?);
        histogram(c, place(&mut found, range[0], at, thread)?)
    })?;
    each(conn, &format!("SELECT * FROM interval {WITHIN}"), params, |c| {
        let second = place(&mut found, range[0], c.get()?, c.get()?)?;
        let (n, extremes) = (c.count()?, (c.uint()?, c.uint()?));
        second.intervals = Moments::from_parts(n, extremes, (c.sum()?, c.sum()?), None);
        Ok(())
    })?;
    Ok(found)
}

fn place(found: &mut Found, from: i64, at: i64, thread: u32) -> Result<&mut Second> {
    let seconds = found.get_mut(&thread);
    let second = seconds.and_then(|seconds| seconds.get_mut(usize::try_from(at - from).ok()?));
    second.map_or_else(|| fault(format!("rows of second {at}, which table stat does not have")), Ok)
}

#[cfg(test)]
mod tests;
