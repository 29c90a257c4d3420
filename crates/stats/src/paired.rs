//! What a change does, from slices of time measured in pairs, one with it and one without, in
//! random order.
//!
//! Samples of a second depend on each other and machines drift, so tests that take samples for
//! independent find a difference between two halves of nothing. Here the unit is the pair: what
//! drifts is in both of its slices, and chance alone decided which came first. The p values are
//! those of the exact sign-flip test (Fisher 1935): against no effect, against an effect as large
//! as the margin (Hodges and Lehmann 1954), and against one at least as large (two one-sided tests,
//! Schuirmann 1987). The estimate is Hodges and Lehmann's (1963) with the interval of the
//! signed-rank test.

// Several questions asked of the same data: p values adjusted after Holm (1979), with weights
// where some questions matter more than others (his section 4).
//
// The chance of even one false answer stays below the level, whatever depends on what.

/// The adjusted p values, in the order given.
pub fn adjust(p: &[f64]) -> Vec<f64> {
    weighted(&p.iter().map(|&p| (p, 1.0)).collect::<Vec<_>>(), 0.0)
}

/// The same of p values with weights above 0. A question may first use its weight's share of the
/// level; what is answered leaves its share to the others. `spare`: weight of questions that were
/// asked and could not be tested.
pub fn weighted(p: &[(f64, f64)], spare: f64) -> Vec<f64> {
    let by_weight = |at: usize| p[at].0 / p[at].1;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| by_weight(a).total_cmp(&by_weight(b)));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let left = order[rank..].iter().map(|&at| p[at].1).sum::<f64>() + spare;
        largest = largest.max((by_weight(index) * left).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod holm_tests {
    use super::*;

    #[test]
    fn reference_values() {
        let adjusted = adjust(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-15, "{got} {want}");
        }
        assert!(adjust(&[]).is_empty());
        assert_eq!(adjust(&[0.7, 0.9]), [1.0, 1.0]);
    }

    #[test]
    fn weights_by_hand() {
        // 0.03/0.9 = 0.0333 and 0.01/0.1 = 0.1: the first is tested at 0.9, the second at all.
        let close = |got: Vec<f64>, want: &[f64]| {
            got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12)
        };
        assert!(close(weighted(&[(0.03, 0.9), (0.04, 0.1)], 0.0), &[0.1 / 3.0, 0.04]));
        // What is not answered leaves nothing.
        assert!(close(weighted(&[(0.3, 0.9), (0.01, 0.1)], 0.0), &[0.3, 0.1]));
        // Four more of the kind that could not be tested.
        assert!(close(weighted(&[(0.01, 1.0)], 4.0), &[0.05]));
    }
}

#[cfg(test)]
mod simulation;

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use crate::binomial::{Random, regularised};

/// Fewest pairs that decide anything at 95 %: with fewer the smallest p value is above 0.05.
pub const PAIRS_MIN: usize = 6;

/// Pairs where there is time for them.
pub const PAIRS: usize = 12;

/// Most pairs: all sign flips are counted, 17 million of them.
pub const PAIRS_MAX: usize = 24;

/// What the differences of pairs say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    pub n: usize,
    /// Hodges-Lehmann estimate: median of the Walsh averages.
    pub estimate: f64,
    /// Exact interval of the signed-rank test; `None`: too few pairs for one at this confidence.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p value of the exact sign-flip test of no effect.
    pub p: f64,
    /// The same of an effect within the margin, its ends included; 1 where the estimate is.
    pub p_margin: f64,
    /// P value of an effect at least as large as the margin, up or down.
    pub p_equivalent: f64,
}

/// What is said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairedAnswer {
    /// The effect is below zero by more than the margin.
    Lower,
    /// The effect is above zero by more than the margin.
    Higher,
    /// The effect is below zero; that it is larger than the margin is not shown.
    SomeLower,
    /// The effect is above zero; that it is larger than the margin is not shown.
    SomeHigher,
    /// The effect is within the margin.
    Equivalent,
    Undecided,
}

/// Looks at differences of pairs; `None` without any, with more than [`PAIRS_MAX`], or where one is
/// no number.
pub fn compare(differences: &[f64], confidence: f64, margin: Margin) -> Option<Paired> {
    let n = differences.len();
    if !(1..=PAIRS_MAX).contains(&n) || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let walsh = walsh_averages(differences);
    let estimate = median(&walsh);
    Some(Paired {
        n,
        estimate,
        interval: interval(&walsh, n, confidence),
        p: p_value(differences),
        p_margin: match margin.holds(estimate) {
            true => 1.0,
            false => p_margin(differences, margin, estimate > margin.high),
        },
        p_equivalent: p_equivalent(differences, margin),
    })
}

fn p_value(differences: &[f64]) -> f64 {
    Flips::new(differences, 0.0, 0.0).map_or(1.0, |flips| flips.far())
}

/// Two-sided p value of an effect as large as the margin, where the estimate is above it or below:
/// both tails, so that one of "lower" and "higher" by more than the margin is wrong no more often
/// than the level says.
fn p_margin(differences: &[f64], margin: Margin, is_above: bool) -> f64 {
    let centre = f64::midpoint(margin.low, margin.high);
    let end = if is_above { margin.high } else { margin.low };
    Flips::new(differences, end, centre).map_or(1.0, |flips| flips.far())
}

/// The larger p value of two one-sided tests.
fn p_equivalent(differences: &[f64], margin: Margin) -> f64 {
    let below = Flips::new(differences, margin.high, 0.0).map_or(1.0, |flips| flips.below());
    let above = Flips::new(differences, margin.low, 0.0).map_or(1.0, |flips| flips.above());
    below.max(above)
}

/// Smallest p value that `pairs` pairs can give, whatever they show.
pub fn smallest_p(pairs: usize) -> f64 {
    if pairs == 0 { 1.0 } else { f64::exp2(1.0 - pairs as f64).min(1.0) }
}

/// Fewest pairs that decide on p99.9 of each of `knobs` knobs: 6 of one, 7 of two, 8 of three to
/// five.
pub fn pairs_least(knobs: usize, level: f64) -> usize {
    let level = MAIN * level / knobs.max(1) as f64;
    (PAIRS_MIN..=PAIRS_MAX).find(|&pairs| smallest_p(pairs) < level).unwrap_or(PAIRS_MAX + 1)
}

// Which slice of a pair has the change: by chance, from a seed that is kept.

/// For each pair, whether its first slice is the one with the change. Coins, not an alternation:
/// what the exact test takes for granted. Thrown again where one kind would come first in all, as
/// what drifts would be no different from the change.
pub fn order(seed: u64, pairs: usize) -> Vec<bool> {
    let mut random = Random::new(seed);
    loop {
        let order: Vec<bool> = (0..pairs).map(|_| random.below(2) == 1).collect();
        if pairs < 2 || order.windows(2).any(|two| two[0] != two[1]) {
            return order;
        }
    }
}

/// Pairs of slices that [`mirrored`] takes for so many changes; `None`: too many.
pub fn mirrored_pairs(changes: usize) -> Option<usize> {
    match changes {
        1..=11 => Some(PAIRS),
        12..=19 => Some(20),
        _ => None,
    }
}

/// Many changes at once: for each pair, which of the changes are on in its first slice; in the
/// second the others are. Every two changes are on together as often as apart, so that what one
/// does is not taken for the other's, and mirroring keeps what two do together out of what each
/// does. `None`: too many changes, or none.
pub fn mirrored(seed: u64, changes: usize) -> Option<Vec<Vec<bool>>> {
    let mut rows = plackett_burman(mirrored_pairs(changes)?)?;
    rows.iter_mut().for_each(|row| row.truncate(changes));
    shuffle(seed, &mut rows);
    Some(rows)
}

// What difference a number of pairs can see, before they are measured.

/// Spread of the difference of two neighbouring slices of one condition: the root of the mean
/// square of successive differences (von Neumann 1941), which drift does not inflate. `None` with
/// fewer than two.
pub fn successive_sd(values: &[f64]) -> Option<f64> {
    let squares: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    (!squares.is_empty() && mean.is_finite()).then(|| mean.sqrt())
}

/// How the differences of pairs spread, and how well that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub sd: f64,
    /// Degrees of freedom of its estimate; infinite: it is assumed.
    pub freedom: f64,
}

impl Spread {
    /// Of differences of pairs: `n - 1` degrees of freedom. `None` with fewer than two.
    pub fn of_pairs(differences: &[f64]) -> Option<Self> {
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
        (differences.len() > 1).then(|| Self { sd: (squares / (n - 1.0)).sqrt(), freedom: n - 1.0 })
    }

    /// From [`successive_sd`] of `slices` slices: its mean square has a relative variance of
    /// (3n - 4)/(n - 1)^2 (von Neumann and others 1941).
    pub fn of_successive(sd: f64, slices: usize) -> Self {
        let n = slices.max(2) as f64;
        Self { sd, freedom: 2.0 * (n - 1.0).powi(2) / (3.0 * n - 4.0) }
    }

    /// A spread that is assumed, not measured by a pilot.
    pub const fn assumed(sd: f64) -> Self {
        Self { sd, freedom: f64::INFINITY }
    }
}

/// Experiments of which the detectable difference is a quantile.
const EXPERIMENTS: usize = 2000;

/// Spreads for which it is computed are so far apart, as logarithms; between them it is
/// interpolated.
const GRID: f64 = 0.25;

/// Spreads beyond these, in margins, count as these.
const SPREADS: (f64, f64) = (0.002, 200.0);

/// Probability with which the detectable difference is found.
pub const POWER: f64 = 0.8;

/// Smallest increase of p99.9 that `pairs` pairs of each of `knobs` knobs show to be above `margin`
/// with probability [`POWER`], by the tests that decide ([`answers`]). Computed from
/// simulated experiments with normal differences and a spread that is as uncertain as it is.
/// `None`: none, because so few pairs have no p value that small.
pub fn detectable(
    spread: Spread,
    pairs: usize,
    knobs: usize,
    level: f64,
    margin: Margin,
) -> Option<f64> {
    let can = (pairs_least(knobs, level)..=PAIRS_MAX).contains(&pairs);
    if !can || !spread.sd.is_finite() {
        return None;
    }
    let unit = if margin.high > 0.0 { margin.high } else { 1.0 };
    let place = (spread.sd / unit).clamp(SPREADS.0, SPREADS.1).ln() / GRID;
    let at = |index: f64| {
        let sd = (index * GRID).exp() * unit;
        let margin = Margin { low: margin.low / sd, high: margin.high / sd };
        let law = Law { pairs, knobs: knobs.max(1) as f64, level, freedom: spread.freedom, margin };
        law.known().ln()
    };
    let (low, part) = (place.floor(), place - place.floor());
    let in_sd = ((1.0 - part) * at(low) + part * at(low + 1.0)).exp();
    Some((in_sd * spread.sd).max(margin.high))
}

/// What the detectable difference depends on; differences in units of their spread.
#[derive(Clone, Copy)]
struct Law {
    pairs: usize,
    knobs: f64,
    level: f64,
    freedom: f64,
    margin: Margin,
}

impl Law {
    fn known(self) -> f64 {
        type Known = Mutex<BTreeMap<(usize, [u64; 5]), f64>>;
        static KNOWN: Known = Mutex::new(BTreeMap::new());
        let numbers = [self.level, self.knobs, self.freedom, self.margin.low, self.margin.high];
        let key = (self.pairs, numbers.map(f64::to_bits));
        let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return *known;
        }
        let least = self.least();
        lock().insert(key, least);
        least
    }

    fn least(self) -> f64 {
        let mut random = Random::new(self.pairs as u64);
        let mut experiments: Vec<Vec<f64>> = (0..EXPERIMENTS)
            .map(|_| {
                // Chi squared by its degrees of freedom (Wilson and Hilferty 1931).
                let v = 2.0 / (9.0 * self.freedom);
                let sd = (1.0 - v + v.sqrt() * random.normal()).max(0.1).powf(-1.5);
                (0..self.pairs).map(|_| sd * random.normal()).collect()
            })
            .collect();
        let found = |noise: &[f64], effect: f64| {
            let d: Vec<f64> = noise.iter().map(|noise| noise + effect).collect();
            let level = MAIN * self.level;
            p_margin(&d, self.margin, true) < level && p_value(&d) < level / self.knobs
        };
        let wanted = (POWER * EXPERIMENTS as f64).ceil() as usize;
        let (mut low, mut high) = (self.margin.high, self.margin.high + 1.0);
        let share = |effect| experiments.iter().filter(|noise| found(noise, effect)).count();
        while share(high) < wanted && high < 1e6 {
            high = self.margin.high + 2.0 * (high - self.margin.high);
        }
        let mut counted = 0;
        // What finds an effect finds every larger one, so each step looks at those alone that find
        // the upper end and not the lower one.
        while high - low > 0.002 * high {
            let mid = f64::midpoint(low, high);
            let (with, without): (Vec<_>, Vec<_>) =
                experiments.drain(..).partition(|noise| found(noise, mid));
            if counted + with.len() >= wanted {
                (high, experiments) = (mid, with);
            } else {
                counted += with.len();
                (low, experiments) = (mid, without);
            }
        }
        high
    }
}

/// About how many times the exposure it takes until [`PAIRS_MAX`] pairs at most find a difference
/// that is `gap` off the margin, after Student's t: the variance of a slice falls with its length.
/// 1 or more.
pub fn pairs_for(sd: f64, pairs: usize, gap: f64, level: f64) -> Option<f64> {
    // More pairs first, longer slices then.
    (pairs.max(2)..=PAIRS_MAX)
        .filter(|&n| smallest_p(n) < level)
        .map(|n| {
            let freedom = (n - 1) as f64;
            let t = t_quantile(1.0 - level / 2.0, freedom) + t_quantile(POWER, freedom);
            let longer = (t * sd / gap).powi(2) / n as f64;
            longer.max(1.0) * n as f64 / pairs.max(1) as f64
        })
        .min_by(f64::total_cmp)
}

/// Quantile of Student's t distribution.
pub(crate) fn t_quantile(p: f64, freedom: f64) -> f64 {
    if p < 0.5 {
        return -t_quantile(1.0 - p, freedom);
    }
    let above = |t: f64| 0.5 * regularised(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    let (mut low, mut high) = (0.0_f64, 1e6_f64);
    for _ in 0..100 {
        let mid = f64::midpoint(low, high);
        if above(mid) > 1.0 - p { low = mid } else { high = mid }
    }
    f64::midpoint(low, high)
}

// Answers to several questions about the same pairs or one experiment.

/// Share of a knob's or a comparison's level that p99.9 may use first: six pairs have a p value of
/// 0.031, which is below 0.92 times 0.05. The other statistics share the rest until p99.9 is
/// decided, and then have all of it.
pub const MAIN: f64 = 0.92;

/// Weight of each of `others` statistics beside p99.9.
pub fn rest(others: usize) -> f64 {
    (1.0 - MAIN) / others.max(1) as f64
}

/// A question with its weight: [`MAIN`] or [`rest`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedQuestion {
    /// The knob, or the comparison, that it is asked of.
    pub of: usize,
    /// What its pairs say.
    pub paired: Paired,
    /// Its weight; those of one knob are 1 together.
    pub weight: f64,
}

/// P values adjusted after Holm (1979), with weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusted {
    /// Of no effect, over all questions.
    pub p: f64,
    /// Of an effect within the margin, over those of the knob.
    pub p_margin: f64,
    /// Of an effect at least as large as the margin, over those of the knob.
    pub p_equivalent: f64,
}

/// What is said of each question, in the order given. That even one of `knobs` knobs without an
/// effect is said to have one has a probability of `level` at most; that more than the margin is
/// said of one that has no more, and "no difference" of one that has as much, one of `level` for
/// each knob.
pub fn answers(
    questions: &[WeightedQuestion],
    knobs: usize,
    level: f64,
) -> Vec<(Adjusted, PairedAnswer)> {
    let all: Vec<usize> = (0..questions.len()).collect();
    let adjusted = |those: &[usize], knobs: usize, of: fn(&Paired) -> f64| {
        let p = those.iter().map(|&at| (of(&questions[at].paired), questions[at].weight));
        let p: Vec<(f64, f64)> = p.collect();
        // Weight of what was asked and could not be tested.
        let spare = knobs as f64 - p.iter().map(|(_, weight)| weight).sum::<f64>();
        weighted(&p, spare.max(0.0))
    };
    let p = adjusted(&all, knobs, |paired| paired.p);
    let one = |(at, question): (usize, &WeightedQuestion)| {
        let same = |&other: &usize| questions[other].of == question.of;
        let those: Vec<usize> = all.iter().copied().filter(same).collect();
        let place = those.iter().position(|&other| other == at).unwrap_or(0);
        let adjusted = Adjusted {
            p: p[at],
            p_margin: adjusted(&those, 1, |paired| paired.p_margin)[place],
            p_equivalent: adjusted(&those, 1, |paired| paired.p_equivalent)[place],
        };
        (adjusted, answer(&question.paired, adjusted, level))
    };
    questions.iter().enumerate().map(one).collect()
}

fn answer(paired: &Paired, adjusted: Adjusted, level: f64) -> PairedAnswer {
    let is_lower = paired.estimate < 0.0;
    match () {
        () if paired.n < PAIRS_MIN => PairedAnswer::Undecided,
        () if adjusted.p.max(adjusted.p_margin) < level => {
            if is_lower {
                PairedAnswer::Lower
            } else {
                PairedAnswer::Higher
            }
        }
        () if adjusted.p_equivalent < level => PairedAnswer::Equivalent,
        () if adjusted.p < level && paired.estimate != 0.0 => {
            if is_lower {
                PairedAnswer::SomeLower
            } else {
                PairedAnswer::SomeHigher
            }
        }
        () => PairedAnswer::Undecided,
    }
}

// Differences that do not matter.

/// From the lowest to the highest difference that does not matter, as logarithms of ratios: 5 %
/// lower is a ratio of 0.95, 5 % higher one of 1.05.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Lowest, not above 0.
    pub low: f64,
    /// Highest, not below 0.
    pub high: f64,
}

impl Margin {
    /// Of a share, e.g. 0.05.
    pub fn of_share(share: f64) -> Self {
        let share = share.clamp(0.0, 0.99);
        Self { low: (-share).ln_1p(), high: share.ln_1p() }
    }

    /// The same for differences with the other sign.
    #[must_use]
    pub fn mirrored(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    /// Whether a difference does not matter.
    pub fn holds(self, difference: f64) -> bool {
        (self.low..=self.high).contains(&difference)
    }
}

// The exact sign-flip test: if a change does nothing, each difference might as well have had the
// other sign, and all 2^n of them are counted. If it does exactly `null`, that holds for what the
// differences are off `null`.
//
// Differences off the null by more than twice the median size count as twice the median: one
// disturbed slice is no evidence. The median of sizes has no sign, so the test stays exact.

/// Steps into which the largest difference is divided: sums of integers are exact in any order.
const STEPS: f64 = (1_u64 << 40) as f64;

/// Sizes that count, in medians of all sizes.
const LIMIT: f64 = 2.0;

/// Differences off a null, in steps.
struct Flips {
    steps: Vec<i64>,
    /// Sum of the null's distance to the centre.
    offset: i64,
}

impl Flips {
    /// `null`: the effect that is put to the test. `centre`: effects are large that are far from
    /// it. `None`: no difference differs from the null.
    fn new(differences: &[f64], null: f64, centre: f64) -> Option<Self> {
        let off: Vec<f64> = differences.iter().map(|d| d - null).collect();
        let mut sizes: Vec<f64> = off.iter().map(|off| off.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let limit = match LIMIT * median(&sizes) {
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
    fn far(&self) -> f64 {
        let reached = (self.steps.iter().sum::<i64>() + self.offset).abs();
        self.share([reached - self.offset, reached + self.offset])
    }

    /// Share of the flips whose mean is as large.
    fn above(&self) -> f64 {
        self.share([self.steps.iter().sum()])
    }

    /// Share of the flips whose mean is as small.
    fn below(&self) -> f64 {
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

// Hodges-Lehmann estimate with the exact interval of Wilcoxon's signed-rank test.

/// Averages of all pairs of differences, each with itself too, ascending.
fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (i, &one) in differences.iter().enumerate() {
        averages.extend(differences[i..].iter().map(|&other| f64::midpoint(one, other)));
    }
    averages.sort_by(f64::total_cmp);
    averages
}

/// Median of ascending values; 0 of none.
fn median(ascending: &[f64]) -> f64 {
    let half = ascending.len() / 2;
    match ascending.len() {
        0 => 0.0,
        n if n % 2 == 1 => ascending[half],
        _ => f64::midpoint(ascending[half - 1], ascending[half]),
    }
}

/// Interval of the centre from the Walsh averages of `n` differences: from the c-th smallest to the
/// c-th largest, c the smallest rank sum with P(T <= c) > alpha/2. `None` where c is 0.
fn interval(walsh: &[f64], n: usize, confidence: f64) -> Option<(f64, f64)> {
    let c = rank(n, (1.0 - confidence) / 2.0);
    (c > 0).then(|| (walsh[c - 1], walsh[walsh.len() - c]))
}

/// Smallest t with P(T <= t) > `tail`, T the sum of the positive ranks of `n` differences.
fn rank(n: usize, tail: f64) -> usize {
    // Ways to make each sum out of 1..=n.
    let mut ways = vec![0.0_f64; n * (n + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let all = f64::exp2(n as f64);
    let mut below = 0.0;
    ways.iter()
        .position(|ways| {
            below += ways / all;
            below > tail
        })
        .unwrap_or(0)
}

// The designs of Plackett and Burman, and rows of a design in random order.

/// First rows of the designs of Plackett and Burman (Biometrika 33, 1946), which are shifted round.
pub(crate) const TWELVE: &str = "++-+++---+-";

const TWENTY: &str = "++--++++-+-+----++-";

/// The rows of the design of Plackett and Burman with so many runs, columns one fewer: the
/// generator shifted round, then a row of minuses. `None`: there is none here (12 and 20 are).
pub(crate) fn plackett_burman(runs: usize) -> Option<Vec<Vec<bool>>> {
    let generator = [TWELVE, TWENTY].into_iter().find(|text| text.len() + 1 == runs)?.as_bytes();
    let shifted = |shift: usize| {
        let at = |column: usize| generator[(column + runs - 1 - shift) % generator.len()];
        (0..runs - 1).map(|column| at(column) == b'+').collect()
    };
    let mut rows: Vec<Vec<bool>> = (0..runs - 1).map(shifted).collect();
    rows.push(vec![false; runs - 1]);
    Some(rows)
}

/// Puts the rows, and the two slices of each, into the order of `seed`.
pub(crate) fn shuffle(seed: u64, rows: &mut [Vec<bool>]) {
    let mut random = Random::new(seed);
    for last in (1..rows.len()).rev() {
        rows.swap(last, random.below(last as u64 + 1) as usize);
    }
    for row in rows {
        if random.below(2) == 1 {
            row.iter_mut().for_each(|on| *on = !*on);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Margin = Margin { low: -0.05, high: 0.05 };

    #[test]
    fn too_few_pairs_decide_nothing() {
        for (pairs, p) in [(4, 0.125), (5, 0.0625), (6, 0.03125), (8, 0.0078125)] {
            assert_eq!(smallest_p(pairs), p);
            let all_up: Vec<f64> = (1..=pairs).map(|i| i as f64).collect();
            assert_eq!(compare(&all_up, 0.95, MARGIN).expect("pairs").p, p);
        }
        assert!((smallest_p(12) - 0.00049).abs() < 1e-5);
        assert_eq!((smallest_p(0), smallest_p(1)), (1.0, 1.0));
        assert_eq!([0, 1, 2, 3, 5, 6, 11].map(|n| pairs_least(n, 0.05)), [6, 6, 7, 8, 8, 9, 9]);
        assert!(compare(&[1.0; 5], 0.95, MARGIN).expect("pairs").interval.is_none());
        assert!(compare(&[], 0.95, MARGIN).is_none());
        assert!(compare(&[0.0; 25], 0.95, MARGIN).is_none());
        assert!(compare(&[1.0, f64::NAN], 0.95, MARGIN).is_none());
        assert!(compare(&[1.0, f64::INFINITY], 0.95, MARGIN).is_none());
    }

    #[test]
    fn reference_values() {
        // numpy, all 4096 flips; no difference is beyond two medians.
        let d = [
            -0.182, -0.054, 0.021, -0.243, -0.117, -0.006, -0.301, 0.048, -0.152, -0.089, -0.210,
            -0.033,
        ];
        let got = compare(&d, 0.95, MARGIN).expect("pairs");
        assert_eq!((got.n, got.p), (12, 26.0 / 4096.0));
        let close = |got: f64, want: f64| (got - want).abs() < 1e-12;
        assert!(close(got.estimate, -0.10775));
        let (low, high) = got.interval.expect("an interval");
        assert!(close(low, -0.182) && close(high, -0.033));
    }

    #[test]
    fn answers_hold_the_margin() {
        let of = |d: &[f64], knobs: usize| {
            let paired = compare(d, 0.95, MARGIN).expect("pairs");
            answers(&[WeightedQuestion { of: 0, paired, weight: 1.0 }], knobs, 0.05)[0].1
        };
        let around = |centre: f64, spread: f64| -> Vec<f64> {
            (0..12).map(|i| centre + spread * (f64::from(i) - 5.5)).collect()
        };
        assert_eq!(of(&around(-0.3, 0.01), 1), PairedAnswer::Lower);
        assert_eq!(of(&around(0.3, 0.01), 1), PairedAnswer::Higher);
        assert_eq!(of(&around(-0.3, 0.01), 200), PairedAnswer::Undecided, "among 200 knobs");
        assert_eq!(of(&around(0.07, 0.012), 1), PairedAnswer::SomeHigher, "above 0, not above 5 %");
        assert_eq!(of(&around(-0.07, 0.012), 1), PairedAnswer::SomeLower);
        assert_eq!(of(&around(0.0, 0.001), 1), PairedAnswer::Equivalent);
        assert_eq!(of(&around(0.02, 0.001), 1), PairedAnswer::Equivalent, "real and too small");
        assert_eq!(of(&around(0.0, 0.1), 1), PairedAnswer::Undecided);
        assert_eq!(of(&[0.0; 5], 1), PairedAnswer::Undecided, "too few");
        assert_eq!(of(&[0.0; 12], 1), PairedAnswer::Equivalent, "identical slices");
    }
}

#[cfg(test)]
mod design_tests {
    use super::*;

    #[test]
    fn a_seed_is_an_order() {
        assert_eq!(order(7, 12), order(7, 12));
        assert_ne!(order(7, 12), order(8, 12));
        let on = order(1, 1000).iter().filter(|&&on| on).count();
        assert!((450..550).contains(&on), "{on}");
    }

    #[test]
    fn mirrored_changes_are_not_aliased() {
        for changes in [2, 5, 11, 12, 19] {
            let rows = mirrored(3, changes).expect("a design");
            assert_eq!(Some(rows.len()), mirrored_pairs(changes));
            for one in 0..changes {
                for other in 0..one {
                    let together = rows.iter().filter(|row| row[one] == row[other]).count();
                    assert_eq!(2 * together, rows.len(), "{one} {other} of {changes}");
                }
            }
        }
        assert_ne!(mirrored(3, 5), mirrored(4, 5));
        assert_eq!((mirrored(3, 0), mirrored(3, 20)), (None, None));
    }
}

#[cfg(test)]
mod detect_tests {
    use super::*;

    #[test]
    fn quantiles_of_the_tables() {
        // scipy.stats.t.ppf
        for (p, freedom, t) in T {
            let got = t_quantile(p, freedom);
            assert!((got / t - 1.0).abs() < 1e-9, "{p} {freedom}: {got}, {t}");
        }
        assert!((t_quantile(0.2, 11.0) + t_quantile(0.8, 11.0)).abs() < 1e-12);
        assert!(t_quantile(0.5, 3.0).abs() < 1e-6);
    }

    const T: [(f64, f64, f64); 5] = [
        (0.975, 11.0, 2.200_985_160_092),
        (0.8, 11.0, 0.875_529_978_074),
        (0.99975, 7.0, 6.081_756_186_049),
        (0.975, 5.0, 2.570_581_835_636),
        (0.999, 19.0, 3.579_400_148_955),
    ];

    #[test]
    fn what_can_be_seen() {
        let none = Margin { low: 0.0, high: 0.0 };
        let assumed = Spread::assumed(0.1);
        let least = |pairs, knobs| detectable(assumed, pairs, knobs, 0.05, none);
        assert_eq!((least(5, 1), least(8, 6)), (None, None));
        // Six pairs: all of one sign, 0.1 times the normal quantile of 0.8^(1/6).
        let six = least(6, 1).expect("a difference");
        assert!((six / 0.179_3 - 1.0).abs() < 0.02, "{six}");
        // Twelve: statsmodels.stats.power.TTestPower has 0.8873 for 12 pairs at 5 %, 0.9 at 4.6 %.
        let twelve = least(12, 1).expect("a difference");
        assert!((twelve / 0.090_2 - 1.0).abs() < 0.03, "{twelve}");
        // What the margin and an uncertain spread add.
        let margin = Margin::of_share(0.05);
        let held = |spread| detectable(spread, 12, 1, 0.05, margin).expect("a difference");
        let sure = held(assumed);
        assert!((0.12..0.14).contains(&sure), "{sure}");
        assert!(held(Spread { sd: 0.1, freedom: 5.0 }) > 1.05 * sure);
        assert_eq!(held(Spread::assumed(0.0)), margin.high);
    }

    #[test]
    fn spreads() {
        assert_eq!(successive_sd(&[1.0]), None);
        assert_eq!(successive_sd(&[1.0, 2.0, 1.0]), Some(1.0));
        assert_eq!(Spread::of_pairs(&[1.0]), None);
        assert_eq!(Spread::of_pairs(&[1.0, 3.0]).expect("a spread").sd, 2.0_f64.sqrt());
        assert!((Spread::of_successive(1.0, 8).freedom - 4.9).abs() < 1e-9);
        // Twice the spread takes four times as long.
        let times = |sd| pairs_for(sd, 20, 0.05, 0.05).expect("a number");
        assert!((times(0.4) / times(0.2) - 4.0).abs() < 1e-9);
        assert_eq!(times(0.001), 1.0);
    }
}

#[cfg(test)]
mod sign_flip_tests {
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

#[cfg(test)]
mod signed_rank_tests {
    use super::*;

    #[test]
    fn ranks_of_the_tables() {
        // Largest T with a two-sided P <= 0.05 (Wilcoxon and Wilcox 1964), plus one.
        let table = [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (11, 10), (12, 13), (20, 52)];
        for (n, t) in table {
            assert_eq!(rank(n, 0.025), t + 1, "{n}");
        }
        assert_eq!(rank(5, 0.025), 0);
        assert_eq!(rank(12, 0.005), 8);
    }

    #[test]
    fn estimate_and_interval_by_hand() {
        let walsh = walsh_averages(&[1.0, 2.0, 4.0]);
        assert_eq!(walsh, [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]);
        assert_eq!(median(&walsh), 2.25);
        assert_eq!((median(&[]), median(&[7.0])), (0.0, 7.0));
        let six = walsh_averages(&[3.0, 1.0, 6.0, 2.0, 5.0, 4.0]);
        assert_eq!(interval(&six, 6, 0.95), Some((1.0, 6.0)));
        assert_eq!(interval(&six, 6, 0.99), None);
    }
}
