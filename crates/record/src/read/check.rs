//! What must hold between the parts of a run that was read back: the promises of the writer.
//!
//! Totals are summed here as well, so that they are by construction the sum of the seconds, within
//! bounds that no later sum over threads, runs or machines can overflow.

use std::collections::BTreeMap;

use rtproof_stats::{Histogram, Layout, Moments};

use crate::error::Contradiction;
use crate::rows::{COUNT_MAX, RowColumns, RowResult, fault};
use crate::run::{Run, Second, TOP_MAX, Thread, Totals};
use crate::{Effects, run};

/// Most seconds of one thread: 34 years.
pub(super) const SECONDS_MAX: u64 = 1 << 30;

pub(super) fn run(run: &Run) -> Result<(), Contradiction> {
    for thread in &run.threads {
        check(thread).map_err(|what| format!("thread {}: {what}", thread.info.number))?;
    }
    let threads: Vec<_> = run.threads.iter().map(|t| (t.info.number, t.info.cpu)).collect();
    run.spikes.as_ref().map_or(Ok(()), |spikes| spikes.check(&threads))?;
    run.surroundings.check(&threads)?;
    run.effects.as_ref().map_or(Ok(()), Effects::check)
}

/// The exact sums of a thread.
pub(super) fn totals(seconds: &[Second]) -> Result<Totals, Contradiction> {
    let mut totals = Totals::default();
    for second in seconds {
        check_second(second)?;
        totals.merge(&second.totals);
        // Each term is below COUNT_MAX, so none of these sums has wrapped.
        let counts = [
            totals.wake.count(),
            totals.missed,
            totals.late_sampled,
            totals.late_missed,
            totals.late_clusters,
            totals.early,
        ];
        if counts.iter().any(|&n| n > COUNT_MAX) {
            return Err(format!("more than {COUNT_MAX} wake-ups").into());
        }
    }
    Ok(totals)
}

/// Whether the numbers of a second can be: sums of such seconds fit.
pub(super) fn check_second(second: &Second) -> Result<(), Contradiction> {
    let totals = &second.totals;
    let n = u128::from(totals.wake.count());
    let (min, max) = (totals.wake.min().unwrap_or(0), totals.wake.max().unwrap_or(0));
    let sum = totals.wake.sum();
    if min > max || sum < n * u128::from(min) || sum > n * u128::from(max) {
        return Err(format!("{n} samples from {min} to {max} ns cannot sum to {sum} ns").into());
    }
    if totals.missed_sum_ns > u128::from(totals.missed) * (i64::MAX as u128) {
        return Err(
            format!("{} missed cannot sum to {}", totals.missed, totals.missed_sum_ns).into()
        );
    }
    let of = &second.intervals;
    let [low, high] =
        [of.min(), of.max()].map(|ns| u128::from(of.count()) * u128::from(ns.unwrap_or(0)));
    if low > high || of.sum() < low || of.sum() > high {
        return Err(format!("{} intervals cannot sum to {} ns", of.count(), of.sum()).into());
    }
    if second.from_ns > second.to_ns {
        return Err(format!("a second from {} to {} ns", second.from_ns, second.to_ns).into());
    }
    Ok(())
}

fn check(thread: &Thread) -> Result<(), Contradiction> {
    let Thread { totals, wake, missed, seconds, top, .. } = thread;
    if let Some(pair) = seconds.windows(2).find(|pair| pair[0].to_ns > pair[1].from_ns) {
        return Err(format!("two seconds lap at {} ns", pair[1].from_ns).into());
    }
    same("sampled", totals.wake.count(), wake, seconds, |second| &second.wake)?;
    same("missed", totals.missed, missed, seconds, |second| &second.missed)?;
    if let Some(second) = seconds.iter().find(|second| !extremes_fit(second)) {
        return Err(format!("the extremes at {} ns are not the histogram's", second.from_ns).into());
    }
    if top.len() > TOP_MAX {
        return Err(format!("{} largest samples, expected {TOP_MAX} at most", top.len()).into());
    }
    if top.first().is_some_and(|sample| Some(sample.latency_ns) != totals.wake.max()) {
        return Err(format!(
            "the largest sample is {} ns, but the maximum is {:?} ns",
            top[0].latency_ns,
            totals.wake.max()
        )
        .into());
    }
    Ok(())
}

/// The exact extremes lie in the outermost buckets.
fn extremes_fit(second: &Second) -> bool {
    let wake = &second.totals.wake;
    let expected = [wake.min(), wake.max()].map(|ns| ns.map(|ns| Layout::COARSE.index(ns)));
    [second.wake.first(), second.wake.last()].map(|edge| edge.map(|&(b, _)| usize::from(b)))
        == expected
}

/// Sums, seconds and whole-run histogram hold the same wake-ups.
fn same(
    view: &str,
    count: u64,
    whole: &Histogram,
    seconds: &[Second],
    of: impl Fn(&Second) -> &Vec<(u16, u64)>,
) -> Result<(), Contradiction> {
    let mut merged = Histogram::new(Layout::COARSE);
    for second in seconds {
        for &(bucket, n) in of(second) {
            merged.add_bucket(usize::from(bucket), n).map_err(|error| error.to_string())?;
        }
    }
    if whole.total() != count || merged.total() != count {
        return Err(format!(
            "{count} wake-ups {view}, but its histograms hold {} (whole run) and {} (seconds)",
            whole.total(),
            merged.total()
        )
        .into());
    }
    if whole.coarsened(Layout::COARSE) != merged {
        return Err(
            format!("the seconds' histograms of the {view} do not sum to the whole run's").into()
        );
    }
    Ok(())
}

// Seconds, and blocks of seconds, from rows.

/// The thread of a row.
pub(super) fn thread_of(
    threads: &mut BTreeMap<u32, Thread>,
    number: u32,
) -> RowResult<&mut Thread> {
    match threads.get_mut(&number) {
        Some(thread) => Ok(thread),
        None => fault(format!("rows of thread {number}, which table thread does not have")),
    }
}

/// The columns that tables of seconds have in common.
pub(super) fn second(c: &mut RowColumns<'_, '_>) -> RowResult<Second> {
    let (from_ns, to_ns) = (c.uint()?, c.uint()?);
    let n = c.count()?;
    let extremes = (c.opt_uint()?, c.opt_uint()?);
    let max_at_ns = c.uint()?;
    let sums = (c.sum()?, c.sum()?);
    let higher = c.opt(RowColumns::sum)?.zip(c.opt(RowColumns::sum)?);
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
pub(super) fn histogram(c: &mut RowColumns<'_, '_>, second: &mut Second) -> RowResult<()> {
    let view: String = c.get()?;
    let pairs = coarse(c)?;
    match view.as_str() {
        "wake" => second.wake = pairs,
        _ => second.missed = pairs,
    }
    Ok(())
}

/// A histogram on the coarse grid.
pub(super) fn coarse(c: &mut RowColumns<'_, '_>) -> RowResult<Vec<(u16, u64)>> {
    c.blob(|data| Ok(run::decode(data, Layout::COARSE)?))
}
