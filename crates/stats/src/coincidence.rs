//! Do events of two lists come together more often than by chance?
//!
//! One function for all of it: spikes of one CPU with those of another, with changes of frequency,
//! with edges of load phases. Chance is what is left when one list is shifted in a circle against
//! the other: each list keeps its own bunching, only what ties them together is lost. Moderate
//! shifts keep slow changes of both rates where they were.

use crate::binomial::{Random, poisson_cdf};

/// On-time periods that separate two groups of late wake-ups.
pub const GAP_PERIODS: u64 = 10;

/// Starts of the groups among ascending times: groups are separated by more than the gap.
pub fn starts(times_ns: impl IntoIterator<Item = u64>, gap_ns: u64) -> Vec<u64> {
    let (mut starts, mut last) = (Vec::new(), None);
    for time in times_ns {
        if last.is_none_or(|last| time.saturating_sub(last) > gap_ns) {
            starts.push(time);
        }
        last = Some(time);
    }
    starts
}

/// Most events of a list that are used; more are thinned evenly over the run.
pub const EVENTS_MAX: usize = 4096;

const SHIFTS_MAX: u32 = 10_000;

/// Parameters of a search for events that fall together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoincidenceOptions {
    /// Events this close together coincide.
    pub window_ns: u64,
    /// All times are below it.
    pub duration_ns: u64,
    /// Shifts that stand for chance: 100 or more.
    pub shifts: u32,
    /// Smallest shift; must be larger than the window.
    pub least_ns: u64,
    /// Largest shift; at most half of the duration is used.
    pub most_ns: u64,
    /// Shifts are a multiple of it: the sampling period where both lists lie on its grid, else 1.
    pub step_ns: u64,
    /// Seed of the shifts: the same seed, the same answer.
    pub seed: u64,
}

/// How often they came together, and how often they would by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coincidence {
    /// Events of the first list with company from every other list.
    pub hits: u64,
    /// Number of events used.
    pub of: u64,
    /// Mean of the same with shifted lists.
    pub expected: f64,
    /// Probability of as many hits by chance.
    pub p: f64,
}

/// P(X >= k) for a Poisson count of this mean.
pub fn poisson_tail(k: u64, mean: f64) -> f64 {
    if k == 0 { 1.0 } else { (1.0 - poisson_cdf(k - 1, mean)).max(small_tail(k, mean)).min(1.0) }
}

/// The first terms of the tail: what the difference from one loses to rounding.
fn small_tail(k: u64, mean: f64) -> f64 {
    if mean <= 0.0 || mean >= k as f64 {
        return 0.0;
    }
    let ln_first = k as f64 * mean.ln() - mean - (1..=k).map(|i| (i as f64).ln()).sum::<f64>();
    let mut sum = 0.0;
    let mut term = 1.0;
    for i in 1..1000 {
        sum += term;
        term *= mean / (k + i) as f64;
    }
    (ln_first + sum.ln()).exp()
}

/// How often events of the first list come with one of the second within the window. Both
/// ascending. `None`: a list is empty, or the duration leaves no room for shifts.
pub fn pair(a: &[u64], b: &[u64], ask: &CoincidenceOptions) -> Option<Coincidence> {
    all(&[a, b], ask)
}

/// How often an event of the first list comes with one of each other list.
pub fn all(lists: &[&[u64]], ask: &CoincidenceOptions) -> Option<Coincidence> {
    let (first, others) = lists.split_first()?;
    let step = ask.step_ns.max(1);
    // Centuries are no times of a run, and their sums would not fit.
    if ask.duration_ns.max(step) > u64::MAX / 4 {
        return None;
    }
    // A circle of whole steps, so that shifted events stay on the grid.
    let circle = ask.duration_ns.div_ceil(step) * step;
    let (least, most) = (ask.least_ns.div_ceil(step), ask.most_ns.min(circle / 2) / step);
    if others.is_empty() || lists.iter().any(|list| list.is_empty()) || most < least {
        return None;
    }
    let first = thin(first, EVENTS_MAX);
    let others: Vec<Vec<u64>> = others.iter().map(|list| thin(list, EVENTS_MAX)).collect();
    let hits = count(&first, &others, ask.window_ns);
    let mut random = Random::new(ask.seed);
    let null: Vec<u64> = (0..ask.shifts.clamp(1, SHIFTS_MAX))
        .map(|_| {
            let shifted: Vec<Vec<u64>> = others
                .iter()
                .map(|list| {
                    let steps = least + random.below(most - least + 1);
                    let back = random.below(2) == 1;
                    shift(list, if back { circle - steps * step } else { steps * step }, circle)
                })
                .collect();
            count(&first, &shifted, ask.window_ns)
        })
        .collect();
    Some(Coincidence { hits, of: first.len() as u64, expected: mean(&null), p: tail(hits, &null) })
}

/// At most `most` of them: one of each of so many equal parts, at a place that looks random, so
/// that no period of the list is met in step.
pub(crate) fn thin(times: &[u64], most: usize) -> Vec<u64> {
    if times.len() <= most {
        return times.to_vec();
    }
    let mut random = Random::new(times.len() as u64);
    let cut = |i: usize| (i as u128 * times.len() as u128 / most as u128) as usize;
    (0..most).map(|i| times[cut(i) + random.below((cut(i + 1) - cut(i)) as u64) as usize]).collect()
}

/// Events of `first` with company from every other list.
pub(crate) fn count(first: &[u64], others: &[Vec<u64>], window_ns: u64) -> u64 {
    let mut next = vec![0; others.len()];
    let mut hits = 0;
    for &time in first {
        let from = time.saturating_sub(window_ns);
        let company = others.iter().zip(&mut next).all(|(list, next)| {
            *next += list[*next..].iter().take_while(|&&other| other < from).count();
            list.get(*next).is_some_and(|&other| other <= time.saturating_add(window_ns))
        });
        hits += u64::from(company);
    }
    hits
}

/// Later by `by` on a circle, ascending again.
fn shift(list: &[u64], by: u64, circle: u64) -> Vec<u64> {
    let mut shifted: Vec<u64> = list.iter().map(|&time| (time % circle + by) % circle).collect();
    // Two ascending runs: as good as sorted.
    shifted.sort();
    shifted
}

pub(crate) fn mean(counts: &[u64]) -> f64 {
    counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64
}

/// Probability of `hits` among the counts of the shifts: their share, and where no shift comes
/// near, a Poisson count of their mean and spread (at least that of one more hit in all shifts).
pub(crate) fn tail(hits: u64, null: &[u64]) -> f64 {
    let n = null.len() as f64;
    let as_many = null.iter().filter(|&&count| count >= hits).count() as f64;
    let share = (as_many + 1.0) / (n + 1.0);
    if as_many > 0.0 || hits == 0 {
        return share;
    }
    let mean = (null.iter().sum::<u64>() as f64 + 1.0) / n;
    let squares: f64 = null.iter().map(|&count| (count as f64 - mean).powi(2)).sum();
    let spread = (squares / (n - 1.0).max(1.0) / mean).max(1.0);
    share.min(poisson_tail((hits as f64 / spread) as u64, mean / spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ask(duration_s: u64, seed: u64) -> CoincidenceOptions {
        CoincidenceOptions {
            window_ns: 100_000,
            duration_ns: duration_s * SECOND,
            shifts: 200,
            least_ns: SECOND,
            most_ns: 20 * SECOND,
            step_ns: 1,
            seed,
        }
    }

    /// `n` times at random, ascending.
    fn scattered(n: usize, duration_ns: u64, random: &mut Random) -> Vec<u64> {
        let mut times: Vec<u64> = (0..n).map(|_| random.below(duration_ns)).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn reference_values() {
        // So many pairs within 100 us of 3600 and 3600 events in an hour.
        let p = poisson_tail(5, 0.72);
        assert!((p - 8.9e-4).abs() < 5e-6, "{p}");
        assert_eq!(poisson_tail(0, 3.0), 1.0);
        // Far out, where one minus nearly one has no digits: e^-1 / 30! (1 + 1/31 + ...).
        let far = poisson_tail(30, 1.0) / 1.432_8e-33;
        assert!((0.99..1.01).contains(&far), "{far}");
    }

    #[test]
    fn shifts_give_what_the_formula_gives() {
        let mut random = Random::new(1);
        let (a, b) = (scattered(3600, 3600 * SECOND, &mut random), {
            let mut again = Random::new(2);
            scattered(3600, 3600 * SECOND, &mut again)
        });
        let found =
            pair(&a, &b, &CoincidenceOptions { shifts: 2000, ..ask(3600, 3) }).expect("lists");
        assert!((0.6..0.85).contains(&found.expected), "{found:?}");
        assert!(found.of == 3600 && found.p > 0.01, "{found:?}");
    }

    #[test]
    fn common_causes_are_found_and_false_alarms_are_rare() {
        let (mut found, mut alarms) = (0, 0);
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let a = scattered(40, 60 * SECOND, &mut random);
            let mut b = scattered(40, 60 * SECOND, &mut random);
            alarms += u32::from(pair(&a, &b, &ask(60, seed)).expect("lists").p < 0.01);
            // Five in forty come together, within 50 us.
            b.extend(a.iter().step_by(8).map(|time| time + random.below(50_000)));
            b.sort_unstable();
            found += u32::from(pair(&a, &b, &ask(60, seed)).expect("lists").p < 0.01);
        }
        assert!(alarms <= 6, "{alarms} false alarms of 300");
        assert_eq!(found, 300);
    }

    #[test]
    fn lists_on_one_grid_are_shifted_along_it() {
        // Wake-ups every 1 ms on both CPUs: unrelated spikes share a wake-up five times as often
        // as 2 w l1 l2 T says.
        let mut alarms = 0;
        for seed in 0..300 {
            let mut random = Random::new(1000 + seed);
            let mut list = || {
                let grid = scattered(400, 60_000, &mut random);
                grid.into_iter().map(|ms| ms * 1_000_000).collect::<Vec<_>>()
            };
            let asked = CoincidenceOptions { step_ns: 1_000_000, ..ask(60, seed) };
            alarms += u32::from(pair(&list(), &list(), &asked).expect("lists").p < 0.01);
        }
        assert!(alarms <= 8, "{alarms} false alarms of 300");
    }

    #[test]
    fn all_lists_at_once() {
        let mut random = Random::new(9);
        let smi = scattered(12, 60 * SECOND, &mut random);
        let cpus: Vec<Vec<u64>> = (0..4)
            .map(|cpu| {
                let mut list = scattered(30, 60 * SECOND, &mut random);
                list.extend(smi.iter().map(|time| time + 1000 * cpu));
                list.sort_unstable();
                list
            })
            .collect();
        let lists: Vec<&[u64]> = cpus.iter().map(Vec::as_slice).collect();
        let found = all(&lists, &ask(60, 1)).expect("lists");
        assert_eq!((found.hits, found.of, found.expected), (12, 42, 0.0));
        assert!(found.p < 1e-9, "{found:?}");
    }

    #[test]
    fn nothing_to_ask_gives_nothing() {
        assert_eq!(pair(&[], &[1], &ask(60, 1)), None);
        assert_eq!(pair(&[1], &[1], &ask(1, 1)), None, "no room for a shift of a second");
        assert_eq!(all(&[&[1]], &ask(60, 1)), None);
        assert_eq!(
            pair(&[1], &[1], &CoincidenceOptions { duration_ns: u64::MAX, ..ask(60, 1) }),
            None
        );
        assert_eq!(pair(&[1], &[1], &CoincidenceOptions { step_ns: u64::MAX, ..ask(60, 1) }), None);
        assert!(pair(&[u64::MAX], &[u64::MAX], &ask(60, 1)).is_some());
        let many: Vec<u64> = (0..100_000).collect();
        let thinned = thin(&many, EVENTS_MAX);
        assert!(thinned.len() == EVENTS_MAX && thinned.is_sorted());
    }

    #[test]
    fn groups_begin_after_a_gap() {
        let ms = 1_000_000;
        assert_eq!(starts([0, 10 * ms, 21 * ms, 21 * ms], 10 * ms), [0, 21 * ms]);
        assert!(starts([], ms).is_empty());
    }
}
