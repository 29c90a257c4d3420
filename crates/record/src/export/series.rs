//! What all formats of distributions begin with: each thread's cells, of a run of ours or imported.

use rtproof_stats::{Bin, Bins};

use crate::{Run, import::Kind};

pub(super) struct Series {
    /// `t0.cpu1`, or as the other tool names it.
    pub(super) tag: String,
    pub(super) cpu: Option<u32>,
    pub(super) kind: Kind,
    pub(super) bins: Bins,
    pub(super) min_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
    pub(super) mean_ns: Option<f64>,
    /// Samples, also where there are no cells.
    pub(super) n: u64,
    /// Samples without value, in the last cell.
    pub(super) overflow: u64,
    /// Wake-ups due while the thread was still late.
    pub(super) missed: Option<u64>,
    /// Later than the budget, sampled and missed.
    pub(super) late: u64,
}

/// All threads of a run.
pub(super) fn of(run: &Run) -> Vec<Series> {
    if let Some(imported) = &run.imported {
        let omitted = imported.omitted.as_ref();
        let of = |(i, thread): (usize, &crate::import::ImportedThread)| Series {
            tag: thread.label.clone(),
            cpu: thread.cpu,
            kind: thread.kind,
            bins: thread.bins.clone(),
            min_ns: thread.min_ns,
            max_ns: thread.max_ns,
            mean_ns: thread.mean_ns,
            n: thread.n,
            overflow: thread.overflow,
            missed: omitted.and_then(|omitted| omitted.by_thread.get(i).copied()),
            late: 0,
        };
        return imported.threads.iter().enumerate().map(of).collect();
    }
    let of = |thread: &crate::run::Thread| Series {
        tag: format!("t{}.cpu{}", thread.info.number, thread.info.cpu),
        cpu: Some(thread.info.cpu),
        kind: Kind::Latency,
        bins: Bins::of(&thread.wake),
        min_ns: thread.totals.wake.min(),
        max_ns: thread.totals.wake.max(),
        mean_ns: thread.totals.wake.mean(),
        n: thread.totals.wake.count(),
        overflow: 0,
        missed: Some(thread.totals.missed),
        late: thread.totals.late(),
    };
    run.threads.iter().map(of).collect()
}

impl Series {
    /// Counts by value: each cell at its upper edge, but the smallest and the largest sample where
    /// they are, so that what is read back has the same extremes.
    pub(super) fn values(&self) -> Vec<(u64, u64)> {
        let cells: Vec<&Bin> = self.bins.iter().collect();
        let mut values = Vec::with_capacity(cells.len() + 2);
        let last = cells.len().saturating_sub(1);
        for (i, bin) in cells.iter().enumerate() {
            let at = bin.high_ns.min(self.max_ns.unwrap_or(u64::MAX)).max(bin.low_ns);
            let mut n = bin.n;
            if i == 0
                && let Some(min_ns) = self.min_ns
            {
                values.push((min_ns, 1));
                n -= 1;
            }
            if n > 0
                && i == last
                && let Some(max_ns) = self.max_ns
            {
                values.push((max_ns, 1));
                n -= 1;
            }
            if n > 0 {
                values.push((at, n));
            }
        }
        values.sort_unstable();
        values
    }
}
