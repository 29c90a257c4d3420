//! Where a level changes: all changes of a series that is over, one change and its probability, and
//! changes as they come.

use crate::binomial::normal_both_tails;

// A change of level as it comes: two-sided cumulative sums (Page, Biometrika 41, 1954), with k =
// 0.5 and h = 5 standard deviations. A shift of one deviation is found after about ten values,
// noise is mistaken for one about once in 465.

/// Which way the level went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelDirection {
    Down,
    Up,
}

/// The state: constant in size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cusum {
    level: f64,
    sd: f64,
    up: f64,
    down: f64,
}

impl Cusum {
    const SLACK: f64 = 0.5;
    const LIMIT: f64 = 5.0;

    /// About a level, with the standard deviation of the values about it, above 0.
    pub fn new(level: f64, sd: f64) -> Self {
        Self { level, sd: sd.max(f64::MIN_POSITIVE), up: 0.0, down: 0.0 }
    }

    /// Takes a value. When the level has changed it says which way, and starts again at 0: give it
    /// the new level with [`Cusum::new`]. What is no number is passed over.
    pub fn push(&mut self, value: f64) -> Option<LevelDirection> {
        let z = (value - self.level) / self.sd;
        if !z.is_finite() {
            return None;
        }
        self.up = (self.up + z - Self::SLACK).max(0.0);
        self.down = (self.down - z - Self::SLACK).max(0.0);
        let turn = if self.up > Self::LIMIT {
            LevelDirection::Up
        } else if self.down > Self::LIMIT {
            LevelDirection::Down
        } else {
            return None;
        };
        (self.up, self.down) = (0.0, 0.0);
        Some(turn)
    }
}

// All changes of level of a series: the segments with the least sum of squares about their means,
// plus a penalty for each change.
//
// This is the optimum that PELT finds (Killick, Fearnhead and Eckley 2012). Where nothing changes
// PELT takes time as the square of the length; a week of seconds would be 3.7e11 steps. Found here
// by functional pruning (Maidstone, Hocking, Rigaill and Fearnhead, Statistics and Computing 27,
// 2017): for each level that the present segment may have, the best place of its beginning is
// kept, and few places are best for any level.

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

// One change of level and its probability, from ranks alone (Pettitt, Applied Statistics 28,
// 1979).

/// Where the change is, and how likely by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pettitt {
    /// First value after the change.
    pub at: usize,
    /// Test statistic K: the largest |U|.
    pub k: f64,
    /// Probability of as large a one by chance: 2 exp(-6 K² / (n³ + n²)), at most 1.
    pub p: f64,
}

/// The test; `None` of fewer than two values, or where one is no number.
pub fn pettitt(values: &[f64]) -> Option<Pettitt> {
    if values.len() < 2 || values.iter().any(|x| x.is_nan()) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    // Mean ranks, times two, so that ties stay whole.
    let mut ranks = vec![0_i128; values.len()];
    let mut begin = 0;
    for same in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let twice = (2 * begin + same.len() + 1) as i128;
        same.iter().for_each(|&i| ranks[i] = twice);
        begin += same.len();
    }
    let n = values.len() as i128;
    // U at t: twice the sum of the first t ranks, less t (n + 1).
    let mut u = 0_i128;
    let (mut k, mut at) = (-1, 0);
    for (t, rank) in ranks[..values.len() - 1].iter().enumerate() {
        u += rank - (n + 1);
        if u.abs() > k {
            (k, at) = (u.abs(), t + 1);
        }
    }
    let (k, n) = (k as f64, n as f64);
    let p = (2.0 * (-6.0 * k * k / (n * n * n + n * n)).exp()).min(1.0);
    Some(Pettitt { at, k, p })
}

// Changes of level with their size and probability, in a series whose values may depend on each
// other: noise with a memory has slow waves, which are no changes.

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelStep {
    /// First value at the new level.
    pub at: usize,
    /// Mean from the change before it, or the beginning.
    pub before: f64,
    /// Mean up to the next change, or the end.
    pub after: f64,
    /// Probability of such a step by chance, at any of the places it could have been.
    pub p: f64,
}

/// The changes of level. `least_sd`: the noise is never taken for less, because values were rounded
/// before.
pub fn steps(values: &[f64], least_sd: f64) -> Vec<LevelStep> {
    let (sd, memory) = noise(values, least_sd);
    if sd <= 0.0 || !sd.is_finite() {
        return Vec::new();
    }
    let penalty = 3.0 * (values.len().max(2) as f64).ln() * sd * sd * memory;
    let segments = means(values, &levels(values, penalty));
    let n = values.len() as f64;
    let of = |pair: &[Segment]| {
        let (a, b) = (pair[0], pair[1]);
        let worth = |segment: Segment| ((segment.to - segment.from) as f64 / memory).max(1.0);
        let error = sd * (1.0 / worth(a) + 1.0 / worth(b)).sqrt();
        let p = normal_both_tails((b.mean - a.mean) / error) * n;
        LevelStep { at: b.from, before: a.mean, after: b.mean, p: p.min(1.0) }
    };
    segments.windows(2).map(of).collect()
}

/// Standard deviation of the noise, and how many of its values count for one: taken for noise of
/// first order, whose steps over two values are 1 + phi times as large, squared, as those over one.
/// Medians, so that changes of level do not count for it.
fn noise(values: &[f64], least_sd: f64) -> (f64, f64) {
    let one = noise_sd(values);
    let two = {
        let halves = [0, 1].map(|first| values.iter().skip(first).step_by(2).copied());
        let [even, odd] = halves.map(|half| noise_sd(&half.collect::<Vec<f64>>()));
        f64::midpoint(even * even, odd * odd)
    };
    // By one and a half errors of the estimate too much: too little finds changes in waves.
    let margin = 1.5 / (values.len().max(4) as f64).sqrt();
    let phi = if one > 0.0 { (two / (one * one) - 1.0 + margin).clamp(0.0, 0.95) } else { 0.0 };
    ((one / (1.0 - phi).sqrt()).max(least_sd), (1.0 + phi) / (1.0 - phi))
}

#[derive(Clone, Copy)]
struct Segment {
    from: usize,
    to: usize,
    mean: f64,
}

fn means(values: &[f64], changes: &[usize]) -> Vec<Segment> {
    let ends = changes.iter().copied().chain([values.len()]);
    let mut from = 0;
    ends.filter(|&to| to > 0)
        .map(|to| {
            let sum = values[from..to].iter().sum::<f64>();
            let segment = Segment { from, to, mean: sum / (to - from) as f64 };
            from = to;
            segment
        })
        .collect()
}

#[cfg(test)]
mod cusum_tests {
    use super::*;
    use crate::binomial::Random;

    #[test]
    fn false_alarms_are_as_rare_as_the_tables_state() {
        let mut random = Random::new(1);
        let mut cusum = Cusum::new(3.0, 2.0);
        let alarms =
            (0..465_000).filter(|_| cusum.push(3.0 + 2.0 * random.normal()).is_some()).count();
        assert!((850..1150).contains(&alarms), "{alarms} in 465 000 values");
    }

    #[test]
    fn shifts_are_detected_soon_with_their_direction() {
        let mut random = Random::new(2);
        for (shift, turn) in [(1.0, LevelDirection::Up), (-1.0, LevelDirection::Down)] {
            let delays = (0..200).map(|_| {
                let mut cusum = Cusum::new(0.0, 1.0);
                let found = (0..500).find_map(|i| Some((i, cusum.push(shift + random.normal())?)));
                let (delay, found) = found.expect("a change");
                assert_eq!(found, turn);
                delay
            });
            let mean = delays.sum::<usize>() as f64 / 200.0;
            assert!((7.5..12.0).contains(&mean), "{mean}");
        }
        assert_eq!(Cusum::new(0.0, 0.0).push(f64::NAN), None);
        assert_eq!(Cusum::new(0.0, 1.0).push(f64::INFINITY), None);
    }
}

#[cfg(test)]
mod levels_tests {
    use super::*;
    use crate::binomial::Random;
    use crate::reference;

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

#[cfg(test)]
mod pettitt_tests {
    use super::*;
    use crate::reference;

    #[test]
    fn the_nile() {
        let Some(nile) = reference::column("nile.csv", 0) else { return };
        let found = pettitt(&nile).expect("a test");
        assert_eq!((found.at, found.k), (28, 1617.0));
        assert!((found.p / 3.591_022_176_936_292_7e-7 - 1.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn by_hand() {
        // U(t) = sum of sign(x_i - x_j) over i <= t < j: -2, -4, -2 for 1 1 2 2.
        let found = pettitt(&[1.0, 1.0, 2.0, 2.0]).expect("a test");
        assert_eq!((found.at, found.k), (2, 4.0));
        assert_eq!(pettitt(&[5.0; 9]).map(|found| (found.k, found.p)), Some((0.0, 1.0)));
        assert_eq!((pettitt(&[1.0]), pettitt(&[1.0, f64::NAN])), (None, None));
    }
}

#[cfg(test)]
mod steps_tests {
    use super::*;
    use crate::binomial::Random;

    /// Rows about 0 whose noise has a memory, with a step in the middle.
    fn rows(seed: u64, memory: f64, step: f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut state = 0.0;
        (0..1200)
            .map(|i| {
                state = memory * state + random.normal();
                state + if i < 600 { 0.0 } else { step }
            })
            .collect()
    }

    #[test]
    fn memory_is_no_change() {
        for memory in [0.0, 0.5, 0.8] {
            let is_found =
                |seed: &u64| steps(&rows(*seed, memory, 0.0), 0.0).iter().any(|step| step.p < 0.01);
            let found = (0..40).filter(is_found).count();
            assert!(found <= 3, "memory {memory}: {found} of 40");
        }
    }

    #[test]
    fn a_step_is_found_with_its_size() {
        for seed in 0..20 {
            let found = steps(&rows(seed, 0.5, 6.0), 0.0);
            assert_eq!(found.len(), 1, "{seed}: {found:?}");
            let LevelStep { at, before, after, p } = found[0];
            assert!(at.abs_diff(600) <= 2 && p < 1e-9, "{found:?}");
            assert!((after - before - 6.0).abs() < 0.6, "{found:?}");
        }
        assert!(steps(&[1.0; 50], 0.0).is_empty() && steps(&[], 0.1).is_empty());
        // Rounded to equal values: the least noise keeps a single one from being a level.
        let mut rounded = vec![1.0; 100];
        rounded[40] = 1.02;
        assert!(steps(&rounded, 0.01).is_empty());
        rounded[50..].fill(1.2);
        assert_eq!(steps(&rounded, 0.01).iter().map(|step| step.at).collect::<Vec<_>>(), [50]);
    }
}
