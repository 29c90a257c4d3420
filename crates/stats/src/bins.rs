//! What every histogram can be reduced to: sorted cells with counts, of our own grid or another's.
//!
//! Tools divide time differently: equal cells, cells that grow, single values. Quantiles of all of
//! them are read the same way here, so that runs of different tools can stand beside each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Histogram, quantile::interval_ranks};

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

    /// The cells, ascending.
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

    /// The order-statistics interval of the p-quantile, nanoseconds, from the lower edge of one
    /// cell to the upper edge of another. `None` on the right: no finite upper bound at this
    /// number. Values are taken for independent; see [`Bins::interval_of`].
    pub fn interval(&self, p: f64, confidence: f64) -> (Option<u64>, Option<u64>) {
        self.interval_of(p, confidence, self.total)
    }

    /// The same, where the values are worth `n_eff` independent ones.
    pub fn interval_of(&self, p: f64, confidence: f64, n_eff: u64) -> (Option<u64>, Option<u64>) {
        let n_eff = n_eff.min(self.total);
        let (r, s) = interval_ranks(n_eff, p, confidence);
        // Ranks among n_eff stand for the same shares of all, rounded outwards.
        let (n, eff) = (u128::from(self.total), u128::from(n_eff.max(1)));
        let at = |scaled: u128| {
            let rank = u64::try_from(scaled).unwrap_or(self.total).clamp(1, self.total.max(1));
            self.at_rank(rank)
        };
        let low = r.and_then(|r| at(u128::from(r) * n / eff)).map(|bin| bin.low_ns);
        let high = s.and_then(|s| at((u128::from(s) * n).div_ceil(eff))).map(|bin| bin.high_ns);
        (low, high)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Layout;

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
        assert_eq!(none.interval(0.5, 0.95), (None, None));
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
        assert_eq!(thousand.interval(0.99, 0.95), (Some(983), Some(997)));
        assert_eq!(Bins::from_values(1..=300).interval(0.99, 0.95), (Some(293), None));
        let dependent = thousand.interval_of(0.5, 0.95, 100);
        assert_eq!(dependent, (Some(400), Some(610)), "40 and 61 of 100, ten times");
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
