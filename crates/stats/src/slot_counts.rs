//! The histogram that a measuring thread writes: the fine grid with counts of 32 bits, half the
//! memory of a [`Histogram`]. Memory that is locked for every CPU, and cache that is taken from
//! what is measured, are worth a type of their own.
//!
//! Nothing overflows. Values that are recorded one by one come at least 2 ns apart, for that is
//! what recording takes; a slot ends after seconds, so 2^32 of them need more than 8 s. Values
//! that come as a number, [`SlotCounts::record_n`] and [`SlotCounts::record_progression`], are
//! added off the hot path with a check, and what does not fit into a count is kept beside it in
//! full. A stall of hours puts that many into the last bucket only, and cycles of which no time is
//! known into the first: there is room for more buckets than these.

use crate::{Histogram, Layout, histogram};

/// Buckets whose count may exceed 32 bits.
const LARGE: usize = 4;
const LEN: usize = Layout::FINE.len();

/// Counts of one slot on [`Layout::FINE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotCounts {
    counts: Box<[u32; LEN]>,
    /// Counts beside those: (bucket, count), where the count is not zero.
    large: [(u16, u64); LARGE],
}

impl Default for SlotCounts {
    fn default() -> Self {
        // Through a slice, so that the array is never on the stack.
        let counts = vec![0; LEN].into_boxed_slice();
        let counts = counts.try_into().unwrap_or_else(|_| Box::new([0; LEN]));
        Self { counts, large: [(0, 0); LARGE] }
    }
}

impl SlotCounts {
    /// Memory beside the value itself, bytes.
    pub const HEAP_BYTES: usize = size_of::<[u32; LEN]>();

    #[inline(always)]
    pub fn record(&mut self, value_ns: u64) {
        self.counts[Layout::FINE.index(value_ns)] += 1;
    }

    /// Counts a value `n` times.
    pub fn record_n(&mut self, value_ns: u64, n: u64) {
        self.add(Layout::FINE.index(value_ns), n);
    }

    /// Counts `first, first - step, first - 2 step, ...`, `count` values in all, in time bounded by
    /// the number of buckets: the lateness of the wake-ups that one long stall swallowed.
    ///
    /// # Panics
    /// As [`Histogram::record_progression`].
    #[inline(never)]
    pub fn record_progression(&mut self, first_ns: u64, step_ns: u64, count: u64) {
        let add = |index, n| self.add(index, n);
        histogram::progression(Layout::FINE, (first_ns, step_ns, count), add);
    }

    #[inline(always)]
    fn add(&mut self, index: usize, n: u64) {
        let count = &mut self.counts[index];
        if let Some(sum) = u32::try_from(n).ok().and_then(|n| count.checked_add(n)) {
            *count = sum;
            return;
        }
        let bucket = index as u16; // a grid has fewer than 2^16 buckets
        let place = self.large.iter_mut().find(|(at, n)| *n == 0 || *at == bucket);
        debug_assert!(place.is_some(), "more large counts than any law of cycles can make");
        if let Some((at, sum)) = place {
            (*at, *sum) = (bucket, sum.saturating_add(n));
        }
    }

    /// Adds what another slot counted.
    pub fn merge(&mut self, other: &Self) {
        other.parts().for_each(|(index, n)| self.add(index, n));
    }

    /// The same as a histogram.
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new(Layout::FINE);
        self.add_to(&mut histogram);
        histogram
    }

    /// Adds the counts to a histogram, of the same or a coarser grid. Exact.
    pub fn add_to(&self, histogram: &mut Histogram) {
        let layout = histogram.layout();
        for (index, n) in self.parts() {
            // A bucket of the coarser grid is always there.
            let _ = histogram.add_bucket(Layout::FINE.coarsen(index, layout), n);
        }
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.parts().fold(0, |sum, (_, n)| sum.saturating_add(n))
    }

    /// Counts that are not zero; a bucket with a large one comes twice.
    fn parts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.iter().map(|&n| u64::from(n)).enumerate();
        let large = self.large.iter().map(|&(bucket, n)| (usize::from(bucket), n));
        counts.chain(large).filter(|&(_, n)| n > 0)
    }

    /// Empties the counts; the memory stays.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.large = [(0, 0); LARGE];
    }

    /// Address and size in bytes of the memory that holds the counts, for locking it into RAM.
    pub fn memory(&self) -> (usize, usize) {
        (self.counts.as_ptr() as usize, Self::HEAP_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_a_histogram_does() {
        let (mut counts, mut whole) = (SlotCounts::default(), Histogram::new(Layout::FINE));
        for value in (0..2000).map(|i| i * i * 7919) {
            counts.record(value);
            whole.record(value);
        }
        counts.record_progression(1_000_000, 700, 1400);
        whole.record_progression(1_000_000, 700, 1400);
        counts.record_n(0, 3);
        whole.record_n(0, 3);
        assert_eq!((counts.histogram(), counts.total()), (whole.clone(), 3403));
        let mut coarse = Histogram::new(Layout::COARSE);
        counts.add_to(&mut coarse);
        assert_eq!(coarse, whole.coarsened(Layout::COARSE));
        let copy = counts.clone();
        counts.merge(&copy);
        assert_eq!(counts.total(), 6806);
        counts.clear();
        assert_eq!((counts.total(), counts), (0, SlotCounts::default()));
    }

    #[test]
    fn what_needs_more_than_32_bits_is_kept() {
        // Two days at 5 us: 2^32 wake-ups and more are later than the last bucket's edge.
        let (period_ns, count) = (5_000, 172_800 * 200_000);
        let mut counts = SlotCounts::default();
        let mut whole = Histogram::new(Layout::FINE);
        for _ in 0..2 {
            counts.record_progression(period_ns * count, period_ns, count);
            whole.record_progression(period_ns * count, period_ns, count);
            counts.record_n(0, u64::from(u32::MAX));
            whole.record_n(0, u64::from(u32::MAX));
        }
        assert!(counts.large.iter().filter(|(_, n)| *n > 0).count() == 2, "{:?}", counts.large);
        assert_eq!(counts.total(), 2 * (count + u64::from(u32::MAX)));
        assert_eq!(counts.histogram(), whole);
        let mut twice = counts.clone();
        twice.merge(&counts);
        assert_eq!(twice.total(), 2 * counts.total());
    }
}
