//! The exact sign-flip test: if a change does nothing, each difference might as well have had the
//! other sign, and all 2^n of them are counted. If it does exactly `null`, that holds for what the
//! differences are off `null`.
//!
//! Differences off the null by more than twice the median size count as twice the median: one
//! disturbed slice is no evidence. The median of sizes has no sign, so the test stays exact.

/// Steps into which the largest difference is divided: sums of integers are exact in any order.
const STEPS: f64 = (1_u64 << 40) as f64;
/// Sizes that count, in medians of all sizes.
const LIMIT: f64 = 2.0;

/// Differences off a null, in steps.
pub(super) struct Flips {
    steps: Vec<i64>,
    /// Sum of the null's distance to the centre.
    offset: i64,
}

impl Flips {
    /// `null`: the effect that is put to the test. `centre`: effects are large that are far from
    /// it. `None`: no difference differs from the null.
    pub(super) fn new(differences: &[f64], null: f64, centre: f64) -> Option<Self> {
        let off: Vec<f64> = differences.iter().map(|d| d - null).collect();
        let mut sizes: Vec<f64> = off.iter().map(|off| off.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let limit = match LIMIT * super::signed_rank::median(&sizes) {
            limit if limit > 0.0 => limit,
            // More than half are ties.
            _ => f64::INFINITY,
        };
        let largest = sizes.last()?.min(limit);
        let offset = differences.len() as f64 * (null - centre);
        let scale = largest.max(offset.abs());
        let steps = |value: f64| (value / scale * STEPS).round() as i64;
        (largest > 0.0).then(|| Self {
            steps: off.iter().map(|off| steps(off.clamp(-limit, limit))).collect(),
            offset: steps(offset),
        })
    }

    /// Share of the flips whose mean is as far from the centre, on either side.
    pub(super) fn far(&self) -> f64 {
        let reached = (self.steps.iter().sum::<i64>() + self.offset).abs();
        self.share([reached - self.offset, reached + self.offset])
    }

    /// Share of the flips whose mean is as large.
    pub(super) fn above(&self) -> f64 {
        self.share([self.steps.iter().sum()])
    }

    /// Share of the flips whose mean is as small.
    pub(super) fn below(&self) -> f64 {
        self.share([-self.steps.iter().sum::<i64>()])
    }

    /// Share of the flips whose sum reaches one of the bounds, counted for each bound. Sums lie
    /// symmetrically about zero: one bound may stand for the opposite one below.
    fn share<const N: usize>(&self, bounds: [i64; N]) -> f64 {
        let (one, other) = self.steps.split_at(self.steps.len() / 2);
        let (one, other) = (sums(one), sums(other));
        // Each step may be half of one off: what is that close counts as reached.
        let slack = i64::try_from(self.steps.len() + 1).unwrap_or(i64::MAX);
        let count: usize = bounds.iter().map(|bound| reach(&one, &other, bound - slack)).sum();
        (count as f64 / (one.len() as f64 * other.len() as f64)).min(1.0)
    }
}

/// Sums with all signs, ascending.
fn sums(steps: &[i64]) -> Vec<i64> {
    let mut all = vec![0];
    for step in steps {
        let step = step.abs();
        let mut more = Vec::with_capacity(2 * all.len());
        let (mut low, mut high) = (0, 0);
        while low < all.len() {
            if all[low] - step <= all[high] + step {
                more.push(all[low] - step);
                low += 1;
            } else {
                more.push(all[high] + step);
                high += 1;
            }
        }
        more.extend(all[high..].iter().map(|sum| sum + step));
        all = more;
    }
    all
}

/// Pairs of one sum of each whose sum is `bound` or more.
fn reach(one: &[i64], other: &[i64], bound: i64) -> usize {
    let mut from = other.len();
    one.iter()
        .map(|sum| {
            while from > 0 && sum + other[from - 1] >= bound {
                from -= 1;
            }
            other.len() - from
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p_value(differences: &[f64]) -> f64 {
        Flips::new(differences, 0.0, 0.0).map_or(1.0, |flips| flips.far())
    }

    #[test]
    fn every_combination_counts_once() {
        // By hand: |±1 ±2 ±3| >= 4 for 1 1 1, 1- 2 3 and their opposites: 4 of 8.
        assert_eq!(p_value(&[-1.0, 2.0, 3.0]), 0.5);
        assert_eq!(p_value(&[1.0, 2.0, 3.0]), 0.25);
        assert_eq!(p_value(&[0.0; 7]), 1.0);
        assert_eq!(p_value(&[5.0]), 1.0);
        // Ties are reached: 0.1 + 0.2 and 0.3 are one number here.
        assert_eq!(p_value(&[0.1, 0.2, -0.3]), 1.0);
        // Twenty-four pairs: only all plus and all minus reach the sum.
        assert_eq!(p_value(&[1.0; 24]), f64::exp2(-23.0));
    }

    #[test]
    fn all_flips_by_brute_force() {
        let d = [0.31, -0.12, 0.55, 0.08, 0.27, 0.41, -0.05, 0.19, 3.0];
        for (null, centre) in [(0.0, 0.0), (0.05, 0.0), (-0.1, 0.02), (0.3, -0.01)] {
            let mut sizes = d.map(|d: f64| (d - null).abs());
            sizes.sort_by(f64::total_cmp);
            let off = d.map(|d| (d - null).clamp(-2.0 * sizes[4], 2.0 * sizes[4]));
            let mean = |flip: usize| {
                let sign = |at: usize| if flip & (1 << at) == 0 { 1.0 } else { -1.0 };
                off.iter().enumerate().map(|(at, off)| sign(at) * off).sum::<f64>() / 9.0
            };
            let share = |counts: &dyn Fn(f64) -> bool| {
                (0..512).filter(|&flip| counts(mean(flip))).count() as f64 / 512.0
            };
            let (seen, at) = (mean(0), null - centre);
            let flips = Flips::new(&d, null, centre).expect("differences");
            assert_eq!(flips.above(), share(&|mean| mean >= seen - 1e-9), "{null}");
            assert_eq!(flips.below(), share(&|mean| mean <= seen + 1e-9), "{null}");
            let far = share(&|mean| (at + mean).abs() >= (at + seen).abs() - 1e-9);
            assert_eq!(flips.far(), far, "{null} {centre}");
        }
    }

    #[test]
    fn one_disturbed_slice_hides_nothing() {
        let mut d = [-0.2; 12];
        d[3] = 2.5;
        // Two medians against eleven: 9 of 13 at least must go one way.
        assert!(p_value(&d) < 0.05, "{}", p_value(&d));
    }
}
