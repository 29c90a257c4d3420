//! Evidence of a run about late wake-ups: bets against a share of them, and late seconds, the
//! episodes that they make, and the levels that are shown to be exceeded less often than a rate.
//! All by counting: nothing is fitted and nothing extrapolated.

use std::ops::RangeInclusive;

use crate::binomial;

// Bets: whether equal blocks of a run show that their long-run mean is below or above a limit,
// whatever the distribution inside a block.
//
// The capital of a bettor who stakes a part of it on each block is a test martingale where blocks
// are independent, and Markov blocks lose little (Waudby-Smith and Ramdas, JRSS B 86, 2024; Shafer,
// JRSS A 184, 2021). Twenty times the stake shows it at 95 %.

/// Stakes on a share below the limit, and the part of the capital that each gets.
const BELOW: [(f64, f64); 2] = [(0.9, 0.8), (0.4, 0.2)];

/// Stakes on a share above it, each with the same part.
const ABOVE: [f64; 4] = [0.9, 0.3, 0.1, 0.03];

/// Parts of a run that are compared with each other.
pub const PARTS: usize = 10;

/// Largest [`memory_ratio`] of independent blocks, at 95 %: chi-squared with nine degrees over 9.
pub const MEMORY_MAX: f64 = 1.88;

/// Blocks that a run of so many seconds is cut into: they get longer as it does, and more.
pub fn blocks_of(seconds: f64) -> usize {
    (30.0 * seconds).max(0.0).sqrt() as usize
}

/// Capital of who bets that the shares of late wake-ups of the blocks are below `limit`.
pub fn below(shares: &[f64], limit: f64) -> f64 {
    grown(BELOW, shares.iter().map(|share| (limit - share) / (1.0 - limit)))
}

/// Capital of who bets that they are above.
pub fn above(shares: &[f64], limit: f64) -> f64 {
    let part = 1.0 / ABOVE.len() as f64;
    grown(ABOVE.map(|stake| (stake, part)), shares.iter().map(|share| (share - limit) / limit))
}

fn grown<const N: usize>(stakes: [(f64, f64); N], gains: impl Iterator<Item = f64> + Clone) -> f64 {
    let capital = |(stake, part): (f64, f64)| {
        gains.clone().fold(part, |capital, gain| capital * (1.0 + stake * gain))
    };
    stakes.into_iter().map(capital).sum()
}

/// Blocks like these that would make [`below`] as large as `wanted`; `None`: the bettor loses.
pub fn blocks_needed(shares: &[f64], limit: f64, wanted: f64) -> Option<f64> {
    let n = shares.len().max(1) as f64;
    // ln of the factor per block, of each stake.
    let rate = BELOW.map(|(stake, part)| {
        let gain = |share: &f64| (1.0 + stake * (limit - share) / (1.0 - limit)).ln();
        (part, shares.iter().map(gain).sum::<f64>() / n)
    });
    let capital =
        |blocks: f64| rate.iter().map(|(part, rate)| part * (blocks * rate).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e9);
    if capital(high) < wanted {
        return None;
    }
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if capital(middle) < wanted { low = middle } else { high = middle }
    }
    Some(high)
}

/// How much more the tenths of a run differ than blocks that do not depend on each other would make
/// them: the variance of the means of ten equal groups over what that of the blocks explains, 1 on
/// average (batch means; Flyvbjerg and Petersen, J. Chem. Phys. 91, 1989). 0 where all are equal.
pub fn memory_ratio(shares: &[f64]) -> f64 {
    let n = shares.len();
    let groups = PARTS.min(n);
    let group = |at: usize| &shares[at * n / groups..(at + 1) * n / groups];
    let means: Vec<f64> = (0..groups).map(|at| mean(group(at))).collect();
    let within = variance(shares);
    // Of equal shares it is what rounding leaves.
    if within > 1e-20 { n as f64 / PARTS as f64 * variance(&means) / within } else { 0.0 }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// About the mean, n - 1.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / values.len().saturating_sub(1).max(1) as f64
}

// Episodes. One begins with a late second and takes in every one less than a dead time after its
// beginning (a non-paralysable counter): lateness that goes on cannot hide in one.

/// Late seconds by number: spans from the first to the last of each, ascending and apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateSpans(Vec<RangeInclusive<u64>>);

impl LateSpans {
    /// Of spans in any order.
    pub fn of(mut spans: Vec<RangeInclusive<u64>>) -> Self {
        spans.sort_unstable_by_key(|span| *span.start());
        let mut apart: Vec<RangeInclusive<u64>> = Vec::with_capacity(spans.len());
        for span in spans {
            match apart.last_mut().filter(|last| span.start() <= last.end()) {
                Some(last) => *last = *last.start()..=*last.end().max(span.end()),
                None => apart.push(span),
            }
        }
        Self(apart)
    }

    pub fn spans(&self) -> &[RangeInclusive<u64>] {
        &self.0
    }

    pub fn seconds(&self) -> u64 {
        let length = |span: &RangeInclusive<u64>| (span.end() - span.start()).saturating_add(1);
        self.0.iter().fold(0, |sum, span| sum.saturating_add(length(span)))
    }

    /// Whether one lies between two seconds.
    pub fn any_within(&self, span: &RangeInclusive<u64>) -> bool {
        let next = self.0.partition_point(|own| own.end() < span.start());
        self.0.get(next).is_some_and(|own| own.start() <= span.end())
    }

    /// Episodes for a dead time of so many seconds.
    pub fn episodes(&self, dead: u64) -> u64 {
        let (mut count, mut free, dead) = (0_u64, 0_u64, dead.max(1));
        for span in &self.0 {
            let first = (*span.start()).max(free);
            if first <= *span.end() {
                let more = (span.end() - first) / dead;
                count = count.saturating_add(more).saturating_add(1);
                free = first.saturating_add(more.saturating_add(1).saturating_mul(dead));
            }
        }
        count
    }
}

/// A rate that late episodes are held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub per_hour: f64,
    pub confidence: f64,
}

const HOUR_NS: f64 = 3.6e12;

impl Rate {
    /// Time that an episode may last: a quarter of that between two at this rate.
    pub fn dead_ns(self) -> u64 {
        (HOUR_NS / (4.0 * self.per_hour)) as u64
    }

    /// Events expected in a time.
    pub fn expected(self, time_ns: u64) -> f64 {
        self.per_hour * time_ns as f64 / HOUR_NS
    }

    /// Whether so many episodes and late seconds in a time show that episodes are rarer.
    pub fn is_shown(self, episodes: u64, late_seconds: u64, time_ns: u64) -> bool {
        let expected = self.expected(time_ns);
        late_seconds as f64 <= expected
            && expected >= binomial::accepted_from(episodes, self.confidence)
    }
}

/// The lowest rate that a time with such late seconds shows: `episodes` counts them for a dead
/// time. `None`: no time.
pub fn rate_shown(
    late_seconds: u64,
    time_ns: u64,
    confidence: f64,
    episodes: impl Fn(u64) -> u64,
) -> Option<Rate> {
    // With so many episodes at most; more never show a lower rate.
    let with = |most: u64| {
        let expected = binomial::accepted_from(most, confidence).max(late_seconds as f64);
        let rate = Rate { per_hour: expected / (time_ns as f64 / HOUR_NS), confidence };
        (time_ns > 0 && episodes(rate.dead_ns()) <= most).then_some(rate)
    };
    (0..=late_seconds.min(EPISODES_MAX)).find_map(with)
}

/// Most episodes of which the exposure that they take is computed.
const EPISODES_MAX: u64 = 200;

/// A latency with the seconds in which wake-ups that waited for it were due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateSample {
    pub latency_ns: u64,
    /// Seconds after the first, by number.
    pub seconds: RangeInclusive<u64>,
}

/// The lowest level that is shown to be exceeded less often than a rate in a time: one of the
/// latencies, the largest first, of which all above `complete_ns` are there. `None`: the time is
/// too short for the rate.
pub fn level(
    largest: &[LateSample],
    complete_ns: u64,
    second_ns: u64,
    time_ns: u64,
    rate: Rate,
) -> Option<u64> {
    let is_shown = |count: usize| {
        let late =
            LateSpans::of(largest[..count].iter().map(|late| late.seconds.clone()).collect());
        let dead = rate.dead_ns().div_ceil(second_ns.max(1));
        rate.is_shown(late.episodes(dead), late.seconds(), time_ns)
    };
    if !is_shown(0) {
        return None;
    }
    let all = largest.partition_point(|late| late.latency_ns > complete_ns);
    // A larger set has as many episodes at least: the most points that lie so far apart.
    let (mut shown, mut not) = (0, all + 1);
    while not - shown > 1 {
        let middle = usize::midpoint(shown, not);
        if is_shown(middle) { shown = middle } else { not = middle }
    }
    Some(largest[..all].get(shown).map_or(complete_ns, |late| late.latency_ns))
}

#[cfg(test)]
mod bet_tests {
    use super::*;
    use crate::binomial::Random;

    const M: f64 = 0.05;

    #[track_caller]
    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-11, "{got} {want}");
    }

    #[test]
    fn capitals_by_hand() {
        close(below(&[0.0; 68], M), 19.439338993668553);
        close(below(&[0.0; 69], M), 20.33844681813425);
        close(below(&[0.01; 86], M), 20.441908297163106);
        let mut one = [0.0; 100];
        one[37] = 1.0;
        close(below(&one, M), 8.759106832875204);
        assert!((below(&[0.03; 169], M) - 19.912039674).abs() < 1e-8);
        assert!((below(&[0.03; 170], M) - 20.280635060).abs() < 1e-8);
        close(above(&[1.0], M), 7.3175);
        close(above(&[1.0; 2], M), 95.84372499999998);
        close(above(&[0.1; 10], M), 157.70753345111095);
        assert!((above(&[0.06; 134], M) / 1.0718382184e9 - 1.0).abs() < 1e-9);
        close(above(&[0.0, 1.0].repeat(5), M), 604.472338228453);
    }

    #[test]
    fn memory_by_hand() {
        let halves = [vec![0.0; 50], vec![0.1; 50]].concat();
        close(memory_ratio(&halves), 11.0);
        assert!(memory_ratio(&[0.0, 0.1].repeat(50)).abs() < 1e-12);
        let mixed: Vec<f64> = (0..100).map(|i| f64::from(7919 * i % 100) / 1000.0).collect();
        close(memory_ratio(&mixed), 0.3168316831683174);
        assert_eq!(memory_ratio(&[0.3; 40]), 0.0);
        assert_eq!((memory_ratio(&[]), memory_ratio(&[0.4])), (0.0, 0.0));
    }

    #[test]
    fn blocks_of_a_run() {
        let of = [60.0, 160.0, 600.0, 3600.0, 86_400.0].map(blocks_of);
        assert_eq!(of, [42, 69, 134, 328, 1609]);
        assert_eq!((blocks_of(0.0), blocks_of(-1.0)), (0, 0));
    }

    #[test]
    fn what_is_needed_is_enough_and_no_more() {
        for share in [0.0, 0.01, 0.03, 0.045] {
            let blocks = blocks_needed(&[share; 7], M, 20.0).expect("below").ceil() as usize;
            assert!(below(&vec![share; blocks], M) >= 20.0);
            assert!(below(&vec![share; blocks - 1], M) < 20.0);
        }
        assert_eq!(blocks_needed(&[0.051; 9], M, 20.0), None);
        assert_eq!(blocks_needed(&[], M, 20.0), None);
    }

    #[test]
    fn more_late_is_never_better() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let mut shares: Vec<f64> = (0..40).map(|_| random.unit().powi(4)).collect();
            let (was_below, was_above) = (below(&shares, M), above(&shares, M));
            let at = random.below(40) as usize;
            shares[at] += (1.0 - shares[at]) * random.unit();
            assert!(below(&shares, M) <= was_below && above(&shares, M) >= was_above);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::Random;

    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * SECOND;

    fn rate(per_hour: f64) -> Rate {
        Rate { per_hour, confidence: 0.95 }
    }

    fn late(seconds: impl IntoIterator<Item = u64>) -> LateSpans {
        LateSpans::of(seconds.into_iter().map(|second| second..=second).collect())
    }

    #[test]
    fn episodes_begin_with_what_is_late() {
        assert_eq!(late([20, 0, 1, 2, 14, 9, 10]).episodes(5), 4);
        assert_eq!((late([]).episodes(5), late([]).seconds()), (0, 0));
        // Always late for an hour at 3/h: twelve, not one.
        let always = LateSpans::of(vec![0..=3599, 100..=200]);
        assert_eq!((always.episodes(300), always.seconds()), (12, 3600));
        assert_eq!(late(0..3600).episodes(300), 12);
        assert_eq!(rate(3.0).dead_ns(), 300 * SECOND);
        // What no record can hold is no work.
        let forever = LateSpans::of(vec![0..=u64::MAX]);
        assert_eq!((forever.seconds(), forever.episodes(1)), (u64::MAX, u64::MAX));
        assert!(always.any_within(&(3000..=9000)) && !always.any_within(&(3600..=9000)));
    }

    #[test]
    fn more_late_seconds_are_never_fewer_episodes() {
        let mut random = Random::new(8);
        for _ in 0..300 {
            let times: Vec<u64> = (0..random.below(30)).map(|_| random.below(200)).collect();
            let more = times.iter().copied().chain([random.below(200)]);
            assert!(late(more).episodes(20) >= late(times.iter().copied()).episodes(20));
        }
    }

    #[test]
    fn a_rate_is_shown_by_time_without_late_seconds() {
        // 3.22 events expected.
        let none = |seconds: u64| {
            let rate = rate_shown(0, seconds * SECOND, 0.95, |_| 0).expect("a time");
            (rate.per_hour * 10.0).round() / 10.0
        };
        assert_eq!([60, 600, 3600].map(none), [193.1, 19.3, 3.2]);
        // Forty late seconds in a row: their number rules, not that they are one episode.
        let many = rate_shown(40, HOUR, 0.95, |_| 1).expect("a time");
        assert!((many.per_hour - 40.0).abs() < 1e-9);
        assert_eq!(rate_shown(0, 0, 0.95, |_| 0), None);
        assert!(many.is_shown(1, 40, HOUR) && !many.is_shown(1, 41, HOUR));
    }

    #[test]
    fn levels_by_hand() {
        let one = |us: u64, second| LateSample { latency_ns: us * 1000, seconds: second..=second };
        let largest = [one(900, 100), one(500, 1900), one(410, 1950), one(90, 3000)];
        let of = |per_hour, time| level(&largest, 50_000, SECOND, time, rate(per_hour));
        // 3.22 expected allow none, 6.47 one, 9.15 two.
        assert_eq!(of(3.3, HOUR), Some(900_000));
        assert_eq!(of(6.5, HOUR), Some(500_000));
        // 500 and 410 us are less than 97 s apart, as 9.2/h allows: one episode.
        assert_eq!(of(9.2, HOUR), Some(90_000));
        assert_eq!(of(20.0, HOUR), Some(50_000), "below it not all are known");
        assert_eq!(of(3.0, HOUR), None);
        // A stall of a minute is sixty late seconds.
        let stall = [LateSample { latency_ns: 60 * SECOND, seconds: 10..=69 }, one(80, 500)];
        assert_eq!(level(&stall, 0, SECOND, HOUR, rate(20.0)), Some(60 * SECOND));
        assert_eq!(level(&stall, 0, SECOND, HOUR, rate(61.0)), Some(0));
        assert_eq!(level(&[], 7, SECOND, HOUR, rate(4.0)), Some(7));
    }
}
