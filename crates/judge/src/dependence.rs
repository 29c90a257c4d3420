//! What wake-ups are worth in independent ones at a quantile: how much the share above it varies
//! from second to second.

use std::collections::BTreeMap;

use rtproof_record::run::{Second, Thread};
use rtproof_stats::{Layout, cluster};

const SECOND_NS: u64 = 1_000_000_000;

/// The seconds of some threads between two times. Threads that were measured in the same second
/// make one block: what strikes one may strike all.
pub(crate) struct Blocks<'a> {
    seconds: Vec<&'a Second>,
}

impl<'a> Blocks<'a> {
    /// The seconds that begin in `from_ns..to_ns`.
    pub(crate) fn of(threads: &'a [Thread], from_ns: u64, to_ns: u64) -> Self {
        let inside = |second: &&Second| (from_ns..to_ns).contains(&second.from_ns);
        let seconds = threads.iter().flat_map(|thread| &thread.seconds).filter(inside);
        Self { seconds: seconds.collect() }
    }

    /// Worth of the wake-ups at each value; `missed`: in the deadline view. `None` where one
    /// second, or nothing above, leaves nothing to compare.
    pub(crate) fn n_eff<const N: usize>(
        &self,
        values_ns: &[Option<u64>; N],
        missed: bool,
    ) -> [Option<u64>; N] {
        let buckets =
            values_ns.map(|value| value.map_or(usize::MAX, |ns| Layout::COARSE.index(ns)));
        let mut blocks: BTreeMap<u64, ([u64; N], u64)> = BTreeMap::new();
        for second in &self.seconds {
            // A second of a staggered thread begins a little later than that of the first one.
            let (above, n) = blocks.entry(second.from_ns / SECOND_NS).or_insert(([0; N], 0));
            let views = [&second.wake, &second.missed];
            for &(bucket, count) in views.iter().take(1 + usize::from(missed)).copied().flatten() {
                *n += count;
                for (above, &at) in above.iter_mut().zip(&buckets) {
                    *above += if usize::from(bucket) > at { count } else { 0 };
                }
            }
        }
        let mut i = 0;
        buckets.map(|_| {
            let at = i;
            i += 1;
            cluster::design_n_eff(blocks.values().map(|(above, n)| (above[at], *n)))
        })
    }
}

#[cfg(test)]
mod tests {
    use rtproof_record::Class;

    use super::*;
    use crate::testing::run;

    #[test]
    fn steady_seconds_are_worth_all_and_one_bad_second_little() {
        let steady: Vec<_> = (0..200).map(|i| (0, i * 50, 200_000)).collect();
        let burst: Vec<_> = (0..200).map(|i| (0, 3000 + i, 200_000)).collect();
        let worth = |late: &[_]| {
            let run = run(Class::Hundred, 1, 10, late);
            Blocks::of(&run.threads, 0, u64::MAX).n_eff(&[Some(100_000), None], false)
        };
        assert_eq!(worth(&steady), [Some(10_000), None]);
        assert!(worth(&burst)[0].is_some_and(|n| (10..200).contains(&n)), "{:?}", worth(&burst));
    }
}
