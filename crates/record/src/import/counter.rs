//! Single samples of a file, counted by value, within bounds whatever the file holds.

use std::collections::BTreeMap;

use rtproof_stats::{Bin, Bins, Layout};

use super::ImportedThread;
use crate::error::Contradiction;

/// Different values kept exactly; beyond, values go to cells at most 0.8 % wide.
const EXACT_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Counter {
    exact: BTreeMap<u64, u64>,
    /// By bucket of [`Layout::FINE`], once there are too many values.
    coarse: Option<BTreeMap<usize, u64>>,
    width_ns: u64,
    n: u64,
    sum_ns: u128,
    extremes_ns: Option<(u64, u64)>,
}

impl Counter {
    /// Adds `n` samples of a value that stands for the `width_ns` from it on.
    pub(super) fn push(&mut self, ns: u64, width_ns: u64, n: u64) -> Result<(), Contradiction> {
        self.width_ns = self.width_ns.max(width_ns);
        self.n = self.n.checked_add(n).ok_or("more than 2^64 samples")?;
        self.sum_ns = self.sum_ns.saturating_add(u128::from(ns) * u128::from(n));
        let (min, max) = self.extremes_ns.unwrap_or((ns, ns));
        self.extremes_ns = Some((min.min(ns), max.max(ns)));
        match &mut self.coarse {
            Some(coarse) => *coarse.entry(Layout::FINE.index(ns)).or_default() += n,
            None => *self.exact.entry(ns).or_default() += n,
        }
        if self.exact.len() > EXACT_MAX {
            let mut coarse = BTreeMap::new();
            for (ns, n) in std::mem::take(&mut self.exact) {
                *coarse.entry(Layout::FINE.index(ns)).or_default() += n;
            }
            self.coarse = Some(coarse);
        }
        Ok(())
    }

    /// Gives a series its count, extremes, mean and distribution.
    pub(super) fn fill(self, thread: &mut ImportedThread) {
        thread.n = self.n;
        thread.min_ns = self.extremes_ns.map(|(min, _)| min);
        thread.max_ns = self.extremes_ns.map(|(_, max)| max);
        thread.mean_ns = (self.n > 0).then(|| self.sum_ns as f64 / self.n as f64);
        let width_ns = self.width_ns.max(1);
        let bins: Vec<Bin> = match self.coarse {
            None => {
                let bin = |(low_ns, n): (u64, u64)| Bin {
                    low_ns,
                    high_ns: low_ns.saturating_add(width_ns - 1),
                    n,
                };
                self.exact.into_iter().map(bin).collect()
            }
            Some(coarse) => {
                let last = Layout::FINE.len() - 1;
                let high = |at| if at == last { u64::MAX >> 1 } else { Layout::FINE.upper(at) };
                let bin = |(at, n)| Bin { low_ns: Layout::FINE.lower(at), high_ns: high(at), n };
                coarse.into_iter().map(bin).collect()
            }
        };
        // Values are multiples of their width, so cells never overlap; if they did, they merge.
        thread.bins = Bins::from_bins(bins.clone()).unwrap_or_else(|_| {
            let mut all = Bins::default();
            for bin in bins {
                all.merge(&Bins::from_bins(vec![bin]).unwrap_or_default());
            }
            all
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Kind, draft::series};

    #[test]
    fn many_values_lose_no_count() {
        let mut counter = Counter::default();
        let values = (0..100_000_u64).map(|i| i * 977 % 10_000_019);
        for ns in values.clone() {
            counter.push(ns, 1, 2).expect("room");
        }
        assert!(counter.coarse.is_some() && counter.exact.is_empty());
        let mut thread = series("x", Kind::Latency);
        counter.fill(&mut thread);
        assert_eq!((thread.n, thread.bins.total()), (200_000, 200_000));
        assert_eq!(thread.max_ns, values.clone().max());
        let mut few = Counter::default();
        few.push(3000, 1000, 1).expect("room");
        few.push(5000, 1000, 1).expect("room");
        few.fill(&mut thread);
        assert_eq!((thread.mean_ns, thread.bins.quantile(1.0)), (Some(4000.0), Some(5999)));
    }
}
