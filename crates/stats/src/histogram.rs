//! Log-linear histogram: constant relative error from 1 ns to more than an hour, nothing falls off.
//!
//! A value `v` lands in bucket `(e << k) + (v >> e)` with `e = max(floor(log2 v) - k, 0)`, where
//! `k` is the number of sub-bucket bits. Values below `2^(k+1)` are exact; above, a bucket is at
//! most `2^-k` of its lower edge wide (0.78 % at k = 7). Buckets of a coarser layout are unions of
//! buckets of a finer one, so coarsening and merging are exact (DDSketch and HdrHistogram share
//! the idea; the nesting is that of OpenTelemetry's exponential histograms).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest value with a bucket of its own: 2^42 - 1 ns, about 73 minutes. Anything later is counted
/// in the last bucket; the exact maximum is always kept beside a histogram, never derived from it.
pub const VALUE_MAX: u64 = (1 << VALUE_BITS) - 1;
const VALUE_BITS: u32 = 42;

/// The grid of a histogram: how many sub-bucket bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Layout {
    sub_bits: u8,
}

#[expect(clippy::len_without_is_empty, reason = "a grid always has buckets")]
impl Layout {
    /// Whole-run grid: 7 sub-bucket bits, buckets at most 0.78 % wide.
    pub const FINE: Self = Self { sub_bits: 7 };
    /// Per-second grid: 5 sub-bucket bits, buckets at most 3.1 % wide, nested in [`Layout::FINE`].
    pub const COARSE: Self = Self { sub_bits: 5 };

    pub const fn sub_bits(self) -> u8 {
        self.sub_bits
    }

    pub const fn len(self) -> usize {
        self.index(VALUE_MAX) + 1
    }

    /// Bucket of a value in nanoseconds.
    #[inline(always)]
    pub const fn index(self, value_ns: u64) -> usize {
        let value = if value_ns > VALUE_MAX { VALUE_MAX } else { value_ns };
        let msb = 63 - (value | 1).leading_zeros();
        let e = msb.saturating_sub(self.sub_bits as u32);
        ((e as usize) << self.sub_bits) + (value >> e) as usize
    }

    /// Smallest value of a bucket, in nanoseconds.
    pub const fn lower(self, index: usize) -> u64 {
        let (e, mantissa) = self.split(index);
        mantissa << e
    }

    /// Largest value of a bucket, in nanoseconds. This is what quantiles report: it errs late.
    pub const fn upper(self, index: usize) -> u64 {
        let (e, mantissa) = self.split(index);
        ((mantissa + 1) << e) - 1
    }

    const fn split(self, index: usize) -> (u32, u64) {
        let k = self.sub_bits as u32;
        let e = ((index >> k) as u32).saturating_sub(1);
        (e, (index - ((e as usize) << k)) as u64)
    }

    /// Bucket in the coarser grid `to` that holds bucket `index` of this grid.
    ///
    /// # Panics
    /// If `to` is the finer grid.
    pub const fn coarsen(self, index: usize, to: Self) -> usize {
        assert!(to.sub_bits <= self.sub_bits, "coarsening only goes to fewer sub-bucket bits");
        to.index(self.lower(index))
    }
}

/// Counts per bucket. Exact minimum, maximum and sums live beside it, in [`crate::Moments`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    layout: Layout,
    counts: Box<[u64]>,
}

impl Histogram {
    /// An empty histogram. Allocates all it will ever need.
    pub fn new(layout: Layout) -> Self {
        Self { layout, counts: vec![0; layout.len()].into_boxed_slice() }
    }

    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of values counted. Summed up when asked: recording stays as short as it can be.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&n| n == 0)
    }

    #[inline(always)]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts a value `n` times.
    #[inline(always)]
    pub fn record_n(&mut self, value_ns: u64, n: u64) {
        self.counts[self.layout.index(value_ns)] += n;
    }

    /// Counts `first, first - step, first - 2 step, ...`, `count` values in all, in time bounded by
    /// the number of buckets: the lateness of the wake-ups that one long stall swallowed.
    ///
    /// # Panics
    /// If the progression would fall below zero or `step` is zero with more than one value.
    #[inline(never)]
    pub fn record_progression(&mut self, first_ns: u64, step_ns: u64, count: u64) {
        let add = |index: usize, n| self.counts[index] += n;
        progression(self.layout, (first_ns, step_ns, count), add);
    }

    /// Adds `n` to a bucket by number, as read back from a record.
    ///
    /// # Errors
    /// If the grid has no such bucket.
    pub fn add_bucket(&mut self, index: usize, n: u64) -> Result<(), NoSuchBucket> {
        let len = self.counts.len();
        let count = self.counts.get_mut(index).ok_or(NoSuchBucket { index, len })?;
        *count = count.saturating_add(n);
        Ok(())
    }

    /// Adds another histogram, of the same or a finer grid. Exact.
    ///
    /// # Panics
    /// If `other` has the coarser grid: counts cannot be split again.
    pub fn merge(&mut self, other: &Self) {
        for (index, n) in other.buckets() {
            self.counts[other.layout.coarsen(index, self.layout)] += n;
        }
    }

    /// The same counts on a coarser grid. Exact.
    pub fn coarsened(&self, to: Layout) -> Self {
        let mut coarse = Self::new(to);
        coarse.merge(self);
        coarse
    }

    /// Non-empty buckets in ascending order: (bucket, count).
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().copied().enumerate().filter(|&(_, n)| n > 0)
    }

    /// Empties the histogram; the memory stays.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Upper edge of the bucket that holds the value of rank `rank` (1 = smallest).
    /// `None` when there is no such rank.
    pub fn value_at_rank(&self, rank: u64) -> Option<u64> {
        self.bucket_at_rank(rank).map(|index| self.layout.upper(index))
    }

    /// Lower edge of the same bucket: for what is to lie below a value.
    pub fn lower_at_rank(&self, rank: u64) -> Option<u64> {
        self.bucket_at_rank(rank).map(|index| self.layout.lower(index))
    }

    fn bucket_at_rank(&self, rank: u64) -> Option<usize> {
        if rank == 0 {
            return None;
        }
        let mut seen = 0;
        self.buckets()
            .find(|&(_, n)| {
                seen += n;
                seen >= rank
            })
            .map(|(index, _)| index)
    }

    /// How many values are certainly above `value_ns` and how many may be: the bucket that holds
    /// `value_ns` is counted as a whole.
    pub fn count_above(&self, value_ns: u64) -> (u64, u64) {
        let at = self.layout.index(value_ns);
        let sure: u64 = self.counts[at + 1..].iter().sum();
        let maybe = if self.layout.upper(at) > value_ns { self.counts[at] } else { 0 };
        (sure, sure + maybe)
    }
}

/// Hands the counts of `first, first - step, first - 2 step, ...`, `count` values in all, to `add`,
/// bucket by bucket.
///
/// # Panics
/// If the progression would fall below zero or `step` is zero with more than one value.
#[inline(always)]
pub(crate) fn progression(
    layout: Layout,
    (first_ns, step_ns, count): (u64, u64, u64),
    mut add: impl FnMut(usize, u64),
) {
    if count == 0 {
        return;
    }
    assert!(count == 1 || step_ns > 0, "a progression needs a step");
    let last_ns = first_ns.checked_sub(step_ns * (count - 1)).expect("progression below zero");
    let mut index = layout.index(last_ns);
    let mut below = 0; // values of the progression that lie below the current bucket
    while below < count {
        let upper = if index + 1 == layout.len() { u64::MAX } else { layout.upper(index) };
        // Values are last + i * step, i in 0..count: how many are <= upper?
        let up_to = match upper.checked_sub(last_ns) {
            None => 0,
            Some(above) => above.checked_div(step_ns).map_or(count, |i| count.min(i + 1)),
        };
        add(index, up_to - below);
        below = up_to;
        index += 1;
    }
}

/// A bucket number outside the grid: the file that named it is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchBucket {
    /// The bucket asked for.
    pub index: usize,
    /// How many there are.
    pub len: usize,
}

impl std::fmt::Display for NoSuchBucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bucket {} of {}", self.index, self.len)
    }
}

impl std::error::Error for NoSuchBucket {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_tile_the_range() {
        for layout in [Layout::FINE, Layout::COARSE] {
            assert_eq!(layout.lower(0), 0);
            for index in 1..layout.len() {
                assert_eq!(layout.lower(index), layout.upper(index - 1) + 1, "{index}");
            }
            assert_eq!(layout.upper(layout.len() - 1), VALUE_MAX);
        }
        assert_eq!((Layout::FINE.len(), Layout::COARSE.len()), (4608, 1216));
    }

    #[test]
    fn an_hour_is_in_range_and_more_is_counted() {
        let hour = 3_600_000_000_000;
        assert!(hour < VALUE_MAX);
        let mut h = Histogram::new(Layout::FINE);
        h.record(u64::MAX);
        assert_eq!((h.total(), h.value_at_rank(1)), (1, Some(VALUE_MAX)));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_and_is_narrow(value in 0..=VALUE_MAX) {
            let layout = Layout::FINE;
            let index = layout.index(value);
            prop_assert!(layout.lower(index) <= value && value <= layout.upper(index));
            let width = layout.upper(index) - layout.lower(index);
            prop_assert!(width as f64 <= 0.0079 * layout.lower(index).max(1) as f64);
        }

        #[test]
        fn grids_nest(value in 0..=VALUE_MAX) {
            let (fine, coarse) = (Layout::FINE, Layout::COARSE);
            let via = fine.coarsen(fine.index(value), coarse);
            prop_assert_eq!(via, coarse.index(value));
            prop_assert_eq!(fine.coarsen(fine.index(fine.upper(fine.index(value))), coarse), via);
        }

        #[test]
        fn merging_and_coarsening_commute(
            a in prop::collection::vec(0..VALUE_MAX, 0..50),
            b in prop::collection::vec(0..VALUE_MAX, 0..50),
        ) {
            let of = |values: &[u64]| {
                let mut h = Histogram::new(Layout::FINE);
                values.iter().for_each(|&v| h.record(v));
                h
            };
            let (ha, hb) = (of(&a), of(&b));
            let mut merged = ha.clone();
            merged.merge(&hb);
            prop_assert_eq!(&merged, &of(&[a, b].concat()));
            let mut coarse = ha.coarsened(Layout::COARSE);
            coarse.merge(&hb.coarsened(Layout::COARSE));
            prop_assert_eq!(coarse, merged.coarsened(Layout::COARSE));
        }

        #[test]
        fn a_progression_is_its_values(
            last in 0_u64..1_000_000_000, step in 1_u64..100_000_000, count in 0_u64..500,
        ) {
            let first = last + step * count.saturating_sub(1);
            let (mut fast, mut slow) = (Histogram::new(Layout::FINE), Histogram::new(Layout::FINE));
            fast.record_progression(first, step, count);
            (0..count).for_each(|i| slow.record(first - i * step));
            prop_assert_eq!(fast, slow);
        }

        #[test]
        fn ranks_are_conservative(mut values in prop::collection::vec(0..VALUE_MAX, 1..80)) {
            let mut h = Histogram::new(Layout::FINE);
            values.iter().for_each(|&v| h.record(v));
            values.sort_unstable();
            for (i, &value) in values.iter().enumerate() {
                let got = h.value_at_rank(i as u64 + 1).expect("a rank");
                prop_assert!(got >= value && got as f64 <= value as f64 * 1.0079 + 1.0);
            }
        }

        #[test]
        fn counts_above_enclose_the_truth(
            values in prop::collection::vec(0..1_000_000_u64, 1..80), at in 0..1_000_000_u64,
        ) {
            let mut h = Histogram::new(Layout::FINE);
            values.iter().for_each(|&v| h.record(v));
            let truth = values.iter().filter(|&&v| v > at).count() as u64;
            let (sure, maybe) = h.count_above(at);
            prop_assert!(sure <= truth && truth <= maybe);
        }
    }
}
