//! Seconds, and blocks of seconds, as they stand in rows.

use std::collections::BTreeMap;

use rtproof_stats::{Layout, Moments};

use crate::{
    pairs,
    rows::{Columns, Result, fault},
    run::{Second, Thread, Totals},
};

/// The thread of a row.
pub(super) fn of(threads: &mut BTreeMap<u32, Thread>, number: u32) -> Result<&mut Thread> {
    match threads.get_mut(&number) {
        Some(thread) => Ok(thread),
        None => fault(format!("rows of thread {number}, which table thread does not have")),
    }
}

/// The columns that tables of seconds have in common.
pub(super) fn second(c: &mut Columns<'_, '_>) -> Result<Second> {
    let (from_ns, to_ns) = (c.uint()?, c.uint()?);
    let n = c.count()?;
    let extremes = (c.opt_uint()?, c.opt_uint()?);
    let max_at_ns = c.uint()?;
    let sums = (c.sum()?, c.sum()?);
    let higher = c.opt(Columns::sum)?.zip(c.opt(Columns::sum)?);
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

/// The columns of a histogram: which one of the second it is, and its data.
pub(super) fn histogram(c: &mut Columns<'_, '_>, second: &mut Second) -> Result<()> {
    let view: String = c.get()?;
    let pairs = coarse(c)?;
    match view.as_str() {
        "wake" => second.wake = pairs,
        _ => second.missed = pairs,
    }
    Ok(())
}

/// A histogram on the coarse grid.
pub(super) fn coarse(c: &mut Columns<'_, '_>) -> Result<Vec<(u16, u64)>> {
    c.blob(|data| Ok(pairs::decode(data, Layout::COARSE)?))
}
