//! Do events of several lists come together more closely than their common rates explain?
//!
//! What makes events frequent on all lists for a while, as a load does, brings them together, too.
//! Here every event of the other lists is moved to any place of its own window of time: what lists
//! have in common over times longer than the window stays, and only what is closer counts
//! (interval jitter: Amarasingham, Harrison, Hatsopoulos and Geman, J. Neurophysiol. 107, 2012).
//! Of several windows the one that explains most decides.

use crate::{
    binomial,
    coincidence::{Coincidence, EVENTS_MAX, count, mean, tail, thin},
    random::Random,
};

/// Fewest places of a window.
const PLACES_MIN: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// Events this close together coincide.
    pub window_ns: u64,
    /// Widths of the windows that events are moved in; five steps at least are taken.
    pub widths_ns: &'a [u64],
    /// Events are moved by a multiple of it: the sampling period where they lie on its grid.
    pub step_ns: u64,
    /// Moves that stand for chance.
    pub tries: u32,
    /// Seed of the moves: the same seed, the same answer.
    pub seed: u64,
}

/// How often an event of the first list comes with one of each other list; lists are ascending.
/// `None`: there is no other list, or one is empty.
pub fn together(lists: &[&[u64]], ask: &Ask<'_>) -> Option<Coincidence> {
    let (first, others) = lists.split_first()?;
    if others.is_empty() || lists.iter().any(|list| list.is_empty()) {
        return None;
    }
    let first = thin(first, EVENTS_MAX);
    let others: Vec<Vec<u64>> = others.iter().map(|list| thin(list, EVENTS_MAX)).collect();
    let hits = count(&first, &others, ask.window_ns);
    let step = ask.step_ns.max(1);
    let by_width = ask.widths_ns.iter().enumerate().map(|(index, &width)| {
        let places = (width / step).max(PLACES_MIN);
        let mut random = Random::new(ask.seed.wrapping_add(index as u64));
        let null: Vec<u64> = (0..ask.tries.max(1))
            .map(|_| {
                let moved: Vec<Vec<u64>> =
                    others.iter().map(|list| moved(list, step, places, &mut random)).collect();
                count(&first, &moved, ask.window_ns)
            })
            .collect();
        Coincidence { hits, of: first.len() as u64, expected: mean(&null), p: chance(hits, &null) }
    });
    by_width.max_by(|a, b| a.p.total_cmp(&b.p))
}

/// Every event at any place of its window; where windows begin is drawn, too.
fn moved(list: &[u64], step: u64, places: u64, random: &mut Random) -> Vec<u64> {
    let origin = random.below(places);
    let mut moved: Vec<u64> = list
        .iter()
        .map(|&time| {
            let place = (time / step).wrapping_add(origin) % places;
            let to = random.below(places);
            if to >= place {
                time.saturating_add((to - place).saturating_mul(step))
            } else {
                time.saturating_sub((place - to).saturating_mul(step))
            }
        })
        .collect();
    moved.sort_unstable();
    moved
}

/// Probability of `hits` among the counts of the moves: as [`tail`] has it, and where counts vary
/// less than Poisson's, for there are few events that can meet, by a binomial of their mean and
/// variance.
fn chance(hits: u64, null: &[u64]) -> f64 {
    let by_shares = tail(hits, null);
    let (n, mean) = (null.len() as f64, mean(null));
    let squares: f64 = null.iter().map(|&count| (count as f64 - mean).powi(2)).sum();
    let variance = squares / (n - 1.0).max(1.0);
    if null.iter().any(|&count| count >= hits) || variance <= 0.0 || variance >= mean {
        return by_shares;
    }
    let trials = (mean / (1.0 - variance / mean)).ceil().max(hits as f64);
    by_shares.min(binomial::tail(hits, trials as u64, mean / trials))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn ask(seed: u64) -> Ask<'static> {
        let widths_ns = &[5 * MS, 20 * MS, 100 * MS, SECOND];
        Ask { window_ns: 100_000, widths_ns, step_ns: MS, tries: 100, seed }
    }

    /// Wake-ups of two CPUs in a minute of a load that is on every other `half_ms`.
    fn switched(seed: u64, half_ms: u64, share: f64) -> [Vec<u64>; 2] {
        let mut random = Random::new(seed);
        [0, 1].map(|_| {
            let on = (0..60_000).filter(|ms| u64::is_multiple_of(ms / half_ms, 2));
            on.filter(|_| random.unit() < share).map(|ms| ms * MS).collect()
        })
    }

    #[test]
    fn a_load_that_both_have_is_no_coincidence() {
        for half_ms in [10, 100, 1000] {
            let alarms = (0..60).filter(|&seed| {
                let [a, b] = switched(seed, half_ms, 0.02);
                together(&[&a, &b], &ask(seed)).expect("lists").p < 0.01
            });
            let alarms = alarms.count();
            assert!(alarms <= 3, "{half_ms} ms: {alarms} of 60");
        }
    }

    #[test]
    fn what_stops_both_is_found_amid_a_load() {
        let found = (0..20).filter(|&seed| {
            let [mut a, mut b] = switched(seed, 1000, 0.01);
            for time in (0..20).map(|i| (1 + 3 * i) * SECOND + 7 * MS) {
                a.push(time);
                b.push(time + 20_000);
            }
            a.sort_unstable();
            b.sort_unstable();
            together(&[&a, &b], &ask(seed)).expect("lists").p < 0.001
        });
        assert!(found.count() >= 19);
    }

    #[test]
    fn few_events_that_always_meet() {
        // Each of five meets with one chance in five: (1/5)^5.
        let times: Vec<u64> = (1..6).map(|i| i * 10 * SECOND).collect();
        let found = together(&[&times, &times], &ask(1)).expect("lists");
        assert_eq!((found.hits, found.of), (5, 5));
        assert!((5e-5..4e-3).contains(&found.p) && found.expected > 0.7, "{found:?}");
        assert_eq!(together(&[&times], &ask(1)), None);
        assert_eq!(together(&[&times, &[]], &ask(1)), None);
        assert!(together(&[&[u64::MAX], &[u64::MAX]], &ask(1)).is_some());
    }
}
