//! All changes of level of a series: the segments with the least sum of squares about their means,
//! plus a penalty for each change.
//!
//! This is the optimum that PELT finds (Killick, Fearnhead and Eckley 2012). Where nothing changes
//! PELT takes time as the square of the length; a week of seconds would be 3.7e11 steps. Found here
//! by functional pruning (Maidstone, Hocking, Rigaill and Fearnhead, Statistics and Computing 27,
//! 2017): for each level that the present segment may have, the best place of its beginning is
//! kept, and few places are best for any level.

/// Noise of a series about its level, from the median size of its steps: changes of level do not
/// count for it. 0 of fewer than two values, or where more than half of the steps are 0.
pub fn noise_sd(values: &[f64]) -> f64 {
    let mut steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    if steps.is_empty() {
        return 0.0;
    }
    let middle = steps.len() / 2;
    let (_, median, _) = steps.select_nth_unstable_by(middle, f64::total_cmp);
    // The median of |X| for a normal X with sd sqrt(2).
    *median / (0.674_489_750_196_082 * std::f64::consts::SQRT_2)
}

/// The usual penalty: 3 ln n times the variance of the noise.
pub fn penalty(values: &[f64]) -> f64 {
    3.0 * (values.len().max(2) as f64).ln() * noise_sd(values).powi(2)
}

/// A stretch of levels for which one beginning of the present segment is best.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: f64,
    to: f64,
    /// The cost of all so far, with the present segment at level x: a x² + b x + c.
    a: f64,
    b: f64,
    c: f64,
    /// First value of the present segment.
    begins: usize,
}

impl Piece {
    fn at(&self, x: f64) -> f64 {
        (self.a * x + self.b) * x + self.c
    }

    /// Smallest cost on the stretch.
    fn least(&self) -> f64 {
        if self.a <= 0.0 {
            self.c
        } else {
            self.at((-self.b / (2.0 * self.a)).clamp(self.from, self.to))
        }
    }

    /// Where the cost is `limit`, within the stretch.
    fn below(&self, limit: f64) -> Option<(f64, f64)> {
        let under = self.b * self.b - 4.0 * self.a * (self.c - limit);
        if self.a <= 0.0 || under < 0.0 {
            return (self.a <= 0.0 && self.c <= limit).then_some((self.from, self.to));
        }
        let (middle, half) = (-self.b / (2.0 * self.a), under.sqrt() / (2.0 * self.a));
        let (low, high) = ((middle - half).max(self.from), (middle + half).min(self.to));
        (low < high).then_some((low, high))
    }
}

/// First values of the segments after the first one, ascending. Values must be finite; a penalty of
/// 0 or less finds nothing, for it would find everything.
pub fn levels(values: &[f64], penalty: f64) -> Vec<usize> {
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
    let finite = low.is_finite() && high.is_finite() && values.iter().all(|x| x.is_finite());
    if !finite || low >= high || penalty.is_nan() || penalty <= 0.0 {
        return Vec::new();
    }
    // About the middle: squares of small numbers keep their digits.
    let middle = f64::midpoint(low, high);
    let (low, high) = (low - middle, high - middle);
    let mut pieces = vec![Piece { from: low, to: high, a: 0.0, b: 0.0, c: 0.0, begins: 0 }];
    let mut next = Vec::new();
    let mut begins = Vec::with_capacity(values.len());
    for (t, value) in values.iter().enumerate() {
        let y = value - middle;
        let mut best = (f64::INFINITY, 0);
        for piece in &mut pieces {
            piece.a += 1.0;
            piece.b -= 2.0 * y;
            piece.c += y * y;
            let least = piece.least();
            if least < best.0 {
                best = (least, piece.begins);
            }
        }
        begins.push(best.1);
        restart(&pieces, best.0 + penalty, t + 1, &mut next);
        std::mem::swap(&mut pieces, &mut next);
    }
    let mut changes = Vec::new();
    let mut end = values.len();
    while end > 0 {
        end = begins[end - 1];
        if end > 0 {
            changes.push(end);
        }
    }
    changes.reverse();
    changes
}

/// Levels for which a new segment costs less than going on are its own from now on.
fn restart(pieces: &[Piece], cost: f64, begins: usize, next: &mut Vec<Piece>) {
    next.clear();
    let fresh = |from: f64, to: f64, next: &mut Vec<Piece>| {
        if from >= to {
            return;
        }
        match next.last_mut() {
            Some(last) if last.begins == begins => last.to = to,
            _ => next.push(Piece { from, to, a: 0.0, b: 0.0, c: cost, begins }),
        }
    };
    for piece in pieces {
        match piece.below(cost) {
            None => fresh(piece.from, piece.to, next),
            Some((from, to)) => {
                fresh(piece.from, from, next);
                next.push(Piece { from, to, ..*piece });
                fresh(to, piece.to, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{random::Random, reference};

    fn sse(values: &[f64]) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|x| (x - mean).powi(2)).sum()
    }

    #[test]
    fn the_nile_changed_once() {
        let Some(nile) = reference::column("nile.csv", 0) else { return };
        assert_eq!(levels(&nile, penalty(&nile)), [28]);
        let (before, after) = nile.split_at(28);
        assert!((sse(before) + sse(after) - 1_597_457.194_444_444_5).abs() < 1e-6);
        assert!((sse(&nile) - 2_835_156.75).abs() < 1e-6);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean(before) - 1097.75).abs() < 1e-9 && (mean(after) - 849.9722).abs() < 1e-4);
    }

    /// All segmentations, by the recursion that PELT prunes.
    fn by_recursion(values: &[f64], penalty: f64) -> f64 {
        let mut cost = vec![-penalty];
        for end in 1..=values.len() {
            let of = |begin: usize| cost[begin] + sse(&values[begin..end]) + penalty;
            cost.push((0..end).map(of).fold(f64::INFINITY, f64::min));
        }
        cost[values.len()]
    }

    #[test]
    fn it_is_the_optimum() {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let mut level = 0.0;
            let values: Vec<f64> = (0..70)
                .map(|_| {
                    if random.below(15) == 0 {
                        level = 6.0 * random.normal();
                    }
                    level + random.normal()
                })
                .collect();
            let penalty = 1.0 + 20.0 * random.unit();
            let changes = levels(&values, penalty);
            let mut edges = vec![0];
            edges.extend(&changes);
            edges.push(values.len());
            let cost: f64 = edges.windows(2).map(|edge| sse(&values[edge[0]..edge[1]])).sum();
            let (got, want) =
                (cost + penalty * changes.len() as f64, by_recursion(&values, penalty));
            assert!((got - want).abs() < 1e-8 * want.abs().max(1.0), "{seed}: {got} {want}");
        }
    }

    #[test]
    fn a_step_of_three_percent_is_found_where_it_is() {
        let mut found = 0;
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let mut rows = |n: usize, level: f64| -> Vec<f64> {
                (0..n).map(|_| f64::ln(level * (1.0 + 0.005 * random.normal()))).collect()
            };
            let mut p50 = rows(1800, 12_000.0);
            p50.extend(rows(1800, 12_360.0));
            let changes = levels(&p50, penalty(&p50));
            found += u32::from(changes.len() == 1 && changes[0].abs_diff(1800) <= 1);
        }
        assert_eq!(found, 40);
    }

    #[test]
    fn a_day_of_noise_has_no_change() {
        let jumps: usize = (0..5)
            .map(|seed| {
                let mut random = Random::new(seed);
                let day: Vec<f64> = (0..86_400).map(|_| random.normal()).collect();
                levels(&day, penalty(&day)).len()
            })
            .sum();
        assert!(jumps <= 1, "{jumps} in five days");
    }

    #[test]
    fn nothing_of_nothing() {
        assert!(levels(&[], 1.0).is_empty());
        assert!(levels(&[1.0; 50], 1.0).is_empty());
        assert!(levels(&[1.0, f64::NAN, 9.0], 1.0).is_empty());
        assert!(levels(&[1.0, 1.0, 9.0, 9.0], 0.0).is_empty());
        assert_eq!(levels(&[1.0, 1.0, 9.0, 9.0], 1.0), [2]);
        assert_eq!((noise_sd(&[1.0]), noise_sd(&[1.0, 1.0, 1.0, 4.0])), (0.0, 0.0));
    }
}
