//! What wake-ups are worth in independent ones at a value: how much the share above it varies from
//! second to second, and for how long it stays up or down.

use std::collections::BTreeMap;

use rtproof_record::run::{Second, Thread};
use rtproof_stats::{
    Layout,
    long_run::{BLOCKS_MIN, EVENTS_MIN, Worth},
    quantile::Q,
};

const SECOND_NS: u64 = 1_000_000_000;

/// The seconds of some threads. Threads that were measured in the same second make one block: what
/// strikes one may strike all.
pub(crate) struct Blocks<'a> {
    pub(crate) seconds: Vec<&'a Second>,
}

/// Events at several levels, and trials, of each block in order of time.
pub(crate) type Counts<const N: usize> = BTreeMap<u64, ([u64; N], u64)>;

impl<'a> Blocks<'a> {
    /// The seconds that begin in `from_ns..to_ns`.
    pub(crate) fn of(threads: &'a [Thread], from_ns: u64, to_ns: u64) -> Self {
        let inside = |second: &&Second| (from_ns..to_ns).contains(&second.from_ns);
        let seconds = threads.iter().flat_map(|thread| &thread.seconds).filter(inside);
        Self { seconds: seconds.collect() }
    }

    /// Wake-ups in the coarse buckets from each of `from` on; `missed`: in the deadline view.
    pub(crate) fn counts<const N: usize>(&self, from: [usize; N], missed: bool) -> Counts<N> {
        let mut blocks = Counts::new();
        for second in &self.seconds {
            // A second of a staggered thread begins a little later than that of the first one.
            let (above, n) = blocks.entry(second.from_ns / SECOND_NS).or_insert(([0; N], 0));
            let views = [&second.wake, &second.missed];
            for view in views.into_iter().take(1 + usize::from(missed)) {
                let count = |buckets: &[(u16, u64)]| buckets.iter().map(|&(_, n)| n).sum::<u64>();
                *n += count(view);
                for (above, &from) in above.iter_mut().zip(&from) {
                    // Ascending: high quantiles look at few buckets.
                    let below = view.partition_point(|&(bucket, _)| usize::from(bucket) < from);
                    *above += count(&view[below..]);
                }
            }
        }
        blocks
    }

    /// Worth of the wake-ups at each quantile, whose value is given; `None` where the run is too
    /// short for how long the share above it stays up or down, or too few are above or below.
    pub(crate) fn n_eff<const N: usize>(
        &self,
        quantiles: &[(Q, Option<u64>); N],
        missed: bool,
        confidence: f64,
    ) -> [Option<u64>; N] {
        let bucket =
            |value: Option<u64>| value.map_or(usize::MAX - 1, |ns| Layout::COARSE.index(ns));
        // Both edges of the bucket: it may hold much of the distribution.
        let at = self.counts(quantiles.map(|(_, value)| bucket(value)), missed);
        let above = self.counts(quantiles.map(|(_, value)| bucket(value) + 1), missed);
        let two_sided = f64::midpoint(1.0, confidence);
        let mut i = 0;
        quantiles.map(|(q, value)| {
            let here = i;
            i += 1;
            value?;
            let of = |counts: &Counts<N>| {
                Worth::of(counts.values().map(|(k, n)| (k[here], *n)), two_sided)
            };
            worth_at(q, [of(&at), of(&above)], at.len())
        })
    }
}

/// Of the worth at both edges of the bucket that holds a quantile.
fn worth_at(q: Q, edges: [Option<Worth>; 2], blocks: usize) -> Option<u64> {
    let edges: Vec<Worth> = edges.into_iter().flatten().collect();
    let rarer = q.value().min(1.0 - q.value());
    // All in one bucket, whenever: a second is worth one wake-up.
    let n_eff = edges.iter().map(|worth| worth.n_eff).reduce(f64::min).unwrap_or(blocks as f64);
    let is_seen = blocks >= BLOCKS_MIN && edges.iter().all(|worth| worth.is_seen(1.0));
    (is_seen && n_eff * rarer >= EVENTS_MIN).then_some(n_eff as u64)
}

#[cfg(test)]
mod tests {
    use rtproof_record::Class;

    use super::*;
    use crate::testing::run;

    const P90: Q = Q { above: 1, of: 10 };

    #[test]
    fn steady_seconds_are_worth_all_and_one_bad_second_gives_no_interval() {
        let steady: Vec<_> = (0..6000).map(|i| (0, i * 5, 200_000)).collect();
        let burst: Vec<_> = (0..6000).map(|i| (0, 3000 + i, 200_000)).collect();
        let worth = |late: &[_]| {
            let run = run(Class::Hundred, 1, 30, late);
            let quantiles = [(P90, Some(200_000)), (P90, None)];
            Blocks::of(&run.threads, 0, u64::MAX).n_eff(&quantiles, false, 0.95)
        };
        assert_eq!(worth(&steady), [Some(30_000), None]);
        assert_eq!(worth(&burst), [None, None]);
        let constant = run(Class::Hundred, 1, 30, &[]);
        let blocks = Blocks::of(&constant.threads, 0, u64::MAX);
        assert_eq!(blocks.n_eff(&[(Q::P50, Some(5000))], false, 0.95), [Some(30)]);
    }
}
