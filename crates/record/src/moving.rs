//! Statistics over time of a run: its rows, and the step of time that they have.

use rtproof_stats::moving::{self, Lengths, Row, Spans, SpansError, Step};

use crate::{Run, run::Thread};

const SECOND_NS: u64 = 1_000_000_000;

/// Lengths for a run. A step is a second, or as many as rows of a long run are of
/// ([`read_shown`](crate::read_shown)) or the longest period takes.
///
/// # Errors
/// Lengths asked for that this run does not have.
pub fn spans(run: &Run, asked: Lengths) -> Result<Spans, SpansError> {
    let seconds = || run.threads.iter().flat_map(|thread| &thread.seconds);
    let mut lengths: Vec<u64> =
        seconds().map(|second| second.to_ns.saturating_sub(second.from_ns)).collect();
    lengths.sort_unstable();
    // Single rows are longer, where nobody could collect.
    let usual_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(SECOND_NS);
    let period_ns = run.threads.iter().map(|thread| thread.info.period_ns).max().unwrap_or(0);
    // Due times are multiples of the period: a row is up to a period shorter or longer.
    let rows_ns = usual_ns.saturating_add(SECOND_NS / 2) / SECOND_NS * SECOND_NS;
    let step_ns = rows_ns.max(period_ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS));
    let end_ns = seconds().map(|second| second.to_ns).max().unwrap_or(0);
    Spans::of(step_ns.max(SECOND_NS), end_ns, asked)
}

/// Hands each step of some threads to `see`, in order of time.
pub fn each(threads: &[Thread], spans: Spans, see: impl FnMut(Step)) {
    let mut rows: Vec<Row<'_>> = threads.iter().flat_map(rows).collect();
    moving::each(&mut rows, u32::try_from(threads.len()).unwrap_or(u32::MAX), spans, see);
}

fn rows(thread: &Thread) -> impl Iterator<Item = Row<'_>> {
    thread.seconds.iter().map(|second| Row {
        thread: thread.info.number,
        from_ns: second.from_ns,
        to_ns: second.to_ns,
        wake: &second.totals.wake,
        missed: second.totals.missed,
        cells: &second.wake,
    })
}
