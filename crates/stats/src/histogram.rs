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

// What every histogram can be reduced to: sorted cells with counts, of our own grid or another's.
//
// Tools divide time differently: equal cells, cells that grow, single values. Quantiles of all of
// them are read the same way here, so that runs of different tools can stand beside each other.

/// A cell: `n` values from `low_ns` to `high_ns`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bin {
    /// Smallest value of the cell, nanoseconds.
    pub low_ns: u64,
    /// Largest value of the cell, nanoseconds.
    pub high_ns: u64,
    /// How many values, 1 or more.
    pub n: u64,
}

/// Cells in ascending order that do not overlap; none is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Bin>", into = "Vec<Bin>")]
pub struct Bins {
    bins: Vec<Bin>,
    total: u64,
}

/// Why cells are no histogram. Numbers are positions in the list given, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinsError {
    /// A cell whose lower edge is above its upper one.
    Reversed(usize),
    /// A cell without values.
    Empty(usize),
    /// A cell that begins before the one before it has ended, or at its end.
    Overlapping(usize),
    /// With this cell there are more than 2^64 - 1 values.
    TooMany(usize),
}

impl std::fmt::Display for BinsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reversed(at) => write!(f, "cell {at} ends before it begins"),
            Self::Empty(at) => write!(f, "cell {at} is empty; leave empty cells out"),
            Self::Overlapping(at) => {
                write!(f, "cell {at} begins within the one before it; sort them by their edges")
            }
            Self::TooMany(at) => write!(f, "with cell {at} there are more than 2^64 - 1 values"),
        }
    }
}

impl std::error::Error for BinsError {}

impl Bins {
    /// The non-empty buckets of a histogram.
    pub fn of(histogram: &Histogram) -> Self {
        let layout = histogram.layout();
        let bin = |(at, n)| Bin { low_ns: layout.lower(at), high_ns: layout.upper(at), n };
        Self::from_sorted(histogram.buckets().map(bin).collect())
    }

    /// Cells as another tool has them.
    ///
    /// # Errors
    /// If they are not ascending, overlap, or one is empty or reversed.
    pub fn from_bins(bins: Vec<Bin>) -> Result<Self, BinsError> {
        let mut total = 0_u64;
        for (at, bin) in bins.iter().enumerate() {
            if bin.low_ns > bin.high_ns {
                return Err(BinsError::Reversed(at));
            }
            if bin.n == 0 {
                return Err(BinsError::Empty(at));
            }
            if at > 0 && bin.low_ns <= bins[at - 1].high_ns {
                return Err(BinsError::Overlapping(at));
            }
            total = total.checked_add(bin.n).ok_or(BinsError::TooMany(at))?;
        }
        Ok(Self { bins, total })
    }

    /// Single values, in any order.
    pub fn from_values(values_ns: impl IntoIterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values_ns.into_iter().collect();
        values.sort_unstable();
        let bin = |same: &[u64]| Bin { low_ns: same[0], high_ns: same[0], n: same.len() as u64 };
        Self::from_sorted(values.chunk_by(|a, b| a == b).map(bin).collect())
    }

    fn from_sorted(bins: Vec<Bin>) -> Self {
        let total = bins.iter().fold(0_u64, |sum, bin| sum.saturating_add(bin.n));
        Self { bins, total }
    }

    /// Adds the values of others. Exact where the edges agree; a cell that lies across an edge of
    /// the others is counted where its upper edge lies, so that quantiles err late as ever.
    pub fn merge(&mut self, other: &Self) {
        let mut all: Vec<Bin> = self.bins.iter().chain(&other.bins).copied().collect();
        all.sort_by_key(|bin| (bin.high_ns, bin.low_ns));
        let mut merged: Vec<Bin> = Vec::with_capacity(all.len());
        for mut bin in all {
            match merged.last_mut() {
                Some(last) if last.high_ns == bin.high_ns => last.n = last.n.saturating_add(bin.n),
                last => {
                    bin.low_ns = last.map_or(bin.low_ns, |last| bin.low_ns.max(last.high_ns + 1));
                    merged.push(bin);
                }
            }
        }
        *self = Self::from_sorted(merged);
    }

    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// The cells in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &Bin> {
        self.bins.iter()
    }

    /// The cell that holds the value of rank `rank`, 1 = smallest.
    pub fn at_rank(&self, rank: u64) -> Option<&Bin> {
        let mut seen = 0_u64;
        self.bins.iter().find(|bin| {
            seen = seen.saturating_add(bin.n);
            rank > 0 && seen >= rank
        })
    }

    /// The p-quantile, nanoseconds: the upper edge of the cell of rank ceil(p n). `None` of
    /// nothing.
    pub fn quantile(&self, p: f64) -> Option<u64> {
        self.at_rank(rank(p, self.total)).map(|bin| bin.high_ns)
    }

    /// How many values are certainly above `value_ns`, and how many may be: a cell that holds it
    /// cannot be distinguished.
    pub fn count_above(&self, value_ns: u64) -> (u64, u64) {
        self.bins.iter().rev().take_while(|bin| bin.high_ns > value_ns).fold((0, 0), |sum, bin| {
            let sure = if bin.low_ns > value_ns { bin.n } else { 0 };
            (sum.0 + sure, sum.1 + bin.n)
        })
    }
}

impl TryFrom<Vec<Bin>> for Bins {
    type Error = BinsError;

    fn try_from(bins: Vec<Bin>) -> Result<Self, BinsError> {
        Self::from_bins(bins)
    }
}

impl From<Bins> for Vec<Bin> {
    fn from(bins: Bins) -> Self {
        bins.bins
    }
}

/// ceil(p n), where 0.999 times 1000 is 999 whatever the last binary digit of 0.999 says.
fn rank(p: f64, n: u64) -> u64 {
    let exact = p * n as f64;
    let near = exact.round();
    let slack = 4.0 * f64::EPSILON * n as f64;
    let rank = if (exact - near).abs() <= slack { near } else { exact.ceil() };
    (rank as u64).clamp(u64::from(n > 0), n)
}

// The histogram that a measuring thread writes: the fine grid with counts of 32 bits, half the
// memory of a `Histogram`. Memory that is locked for every CPU, and cache that is taken from
// what is measured, are worth a type of their own.
//
// Nothing overflows. Values that are recorded one by one come at least 2 ns apart, for that is
// what recording takes; a slot ends after seconds, so 2^32 of them need more than 8 s. Values
// that come as a number, `SlotCounts::record_n` and `SlotCounts::record_progression`, are
// added off the hot path with a check, and what does not fit into a count is kept beside it in
// full. A stall of hours puts that many into the last bucket only, and cycles of which no time is
// known into the first: there is room for more buckets than these.

/// Buckets whose count may exceed 32 bits.
const LARGE: usize = 4;

const LEN: usize = Layout::FINE.len();

/// Counts of one slot on [`Layout::FINE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotCounts {
    counts: Box<[u32; LEN]>,
    /// Further counts: (bucket, count), where the count is not zero.
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
        progression(Layout::FINE, (first_ns, step_ns, count), add);
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

#[cfg(test)]
mod bins_tests {
    use proptest::prelude::*;

    use super::*;

    fn bin(low_ns: u64, high_ns: u64, n: u64) -> Bin {
        Bin { low_ns, high_ns, n }
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        let refused = |bins: &[Bin]| Bins::from_bins(bins.to_vec()).expect_err("no histogram");
        assert_eq!(refused(&[bin(5, 4, 1)]), BinsError::Reversed(0));
        assert_eq!(refused(&[bin(0, 1, 1), bin(2, 2, 0)]), BinsError::Empty(1));
        assert_eq!(refused(&[bin(0, 9, 1), bin(9, 12, 1)]), BinsError::Overlapping(1));
        assert_eq!(refused(&[bin(7, 9, 1), bin(2, 3, 1)]), BinsError::Overlapping(1));
        assert_eq!(refused(&[bin(0, 0, u64::MAX), bin(1, 1, 1)]), BinsError::TooMany(1));
        let none = Bins::from_bins(Vec::new()).expect("nothing is a histogram too");
        assert!(none.is_empty() && none.quantile(0.5).is_none() && none.total() == 0);
    }

    #[test]
    fn ranks_are_exact() {
        for (p, n, want) in
            [(0.999, 1000, 999), (0.99, 100, 99), (0.5, 5, 3), (0.0, 7, 1), (1.0, 7, 7)]
        {
            assert_eq!(rank(p, n), want, "{p} of {n}");
        }
        let thousand = Bins::from_values(1..=1000);
        assert_eq!(thousand.quantile(0.999), Some(999));
        assert_eq!(thousand.quantile(0.9991), Some(1000));
    }

    #[test]
    fn cells_across_each_other_err_late() {
        let mut a = Bins::from_bins(vec![bin(0, 999, 2), bin(1000, 1999, 3)]).expect("cells");
        a.merge(&Bins::from_bins(vec![bin(512, 1023, 5), bin(5000, 5007, 1)]).expect("cells"));
        let cells: Vec<Bin> = a.iter().copied().collect();
        assert_eq!(
            cells,
            [bin(0, 999, 2), bin(1000, 1023, 5), bin(1024, 1999, 3), bin(5000, 5007, 1)]
        );
        assert_eq!((a.total(), a.count_above(1023), a.count_above(1500)), (11, (4, 4), (1, 4)));
    }

    proptest! {
        #[test]
        fn a_histogram_and_its_cells_agree(
            values in prop::collection::vec(0_u64..10_000_000, 1..60), more in 0_usize..60,
        ) {
            let more = more.min(values.len());
            let of = |values: &[u64]| {
                let mut h = Histogram::new(Layout::FINE);
                values.iter().for_each(|&v| h.record(v));
                h
            };
            let whole = of(&values);
            let mut bins = Bins::of(&of(&values[..more]));
            bins.merge(&Bins::of(&of(&values[more..])));
            prop_assert_eq!(&bins, &Bins::of(&whole));
            for rank in 1..=whole.total() {
                prop_assert_eq!(bins.at_rank(rank).map(|b| b.high_ns), whole.value_at_rank(rank));
            }
            let list: Vec<Bin> = bins.clone().into();
            prop_assert_eq!(Bins::from_bins(list), Ok(bins));
        }
    }
}

#[cfg(test)]
mod slot_counts_tests {
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
