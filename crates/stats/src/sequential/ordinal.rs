//! Which of two samples is the larger, by how often and by how much: without a p value, for that
//! would take samples for independent.

use crate::Bins;

/// Mann and Whitney's U and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ordinal {
    /// Pairs in which the value of a is the larger, ties half.
    pub u: f64,
    /// Cliff's delta: 2 U / (n m) - 1, from -1 (every a below every b) to 1.
    pub delta: f64,
}

/// Of the values of two histograms; values of cells that share a place are ties, of those that
/// overlap the upper edges count. `None` where one is empty.
#[must_use]
pub fn ordinal(a: &Bins, b: &Bins) -> Option<Ordinal> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut others = b.iter().peekable();
    let (mut below, mut u) = (0.0, 0.0);
    for cell in a.iter() {
        while let Some(other) = others.next_if(|other| other.high_ns < cell.high_ns) {
            below += other.n as f64;
        }
        let tied = others.peek().filter(|other| other.high_ns == cell.high_ns);
        u += cell.n as f64 * (below + tied.map_or(0.0, |tied| tied.n as f64 / 2.0));
    }
    let pairs = a.total() as f64 * b.total() as f64;
    Some(Ordinal { u, delta: 2.0 * u / pairs - 1.0 })
}

/// Hodges and Lehmann's shift from a to b: the median of all differences b - a, nanoseconds. In a
/// time that grows with the number of cells, not of values. `None` where one is empty.
#[must_use]
pub fn hodges_lehmann(a: &Bins, b: &Bins) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let cells = |bins: &Bins| -> Vec<(i128, u128)> {
        bins.iter().map(|bin| (i128::from(bin.high_ns), u128::from(bin.n))).collect()
    };
    let (a, b) = (cells(a), cells(b));
    // Pairs with b - a <= x: two fingers.
    let up_to = |x: i128| {
        let (mut at, mut seen, mut pairs) = (0, 0_u128, 0_u128);
        for &(value, n) in &a {
            while at < b.len() && b[at].0 <= value + x {
                seen += b[at].1;
                at += 1;
            }
            pairs += n * seen;
        }
        pairs
    };
    let total =
        a.iter().map(|cell| cell.1).sum::<u128>() * b.iter().map(|cell| cell.1).sum::<u128>();
    let of_rank = |rank: u128| {
        let (mut low, mut high) = (b[0].0 - a[a.len() - 1].0, b[b.len() - 1].0 - a[0].0);
        while low < high {
            let mid = low + (high - low) / 2;
            if up_to(mid) >= rank { high = mid } else { low = mid + 1 }
        }
        low as f64
    };
    Some(f64::midpoint(of_rank(total.div_ceil(2)), of_rank(total / 2 + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_values() {
        // a = 1.1 2.2 3.3 4.4 5.5, b = 2 .. 7, in tenths.
        let (a, b) =
            (Bins::from_values([11, 22, 33, 44, 55]), Bins::from_values((2..8).map(|x| x * 10)));
        let got = ordinal(&a, &b).expect("values");
        assert_eq!(got.u, 10.0);
        assert!((got.delta + 1.0 / 3.0).abs() < 1e-15, "{got:?}");
        assert_eq!(hodges_lehmann(&a, &b), Some(12.0));
        assert_eq!(hodges_lehmann(&b, &a), Some(-12.0));
    }

    #[test]
    fn ties_are_halves_and_nothing_is_nothing() {
        let five = Bins::from_values([5, 5, 5]);
        assert_eq!(ordinal(&five, &five), Some(Ordinal { u: 4.5, delta: 0.0 }));
        assert_eq!(hodges_lehmann(&five, &five), Some(0.0));
        assert_eq!(ordinal(&five, &Bins::default()), None);
        assert_eq!(hodges_lehmann(&Bins::default(), &five), None);
        let apart = ordinal(&Bins::from_values([9]), &five).expect("values");
        assert_eq!(apart.delta, 1.0);
    }
}
