//! The largest samples, whether events of several lists come together (by interval jitter), and
//! quantities as text with their units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::binomial::Random;
use crate::coincidence::{Coincidence, EVENTS_MAX, mean, tail, thin};
use crate::{binomial, coincidence};

// Do events of several lists come together more closely than their common rates explain?
//
// What makes events frequent on all lists for a while, as a load does, brings them together, too.
// Here every event of the other lists is moved to any place of its own window of time: what lists
// have in common over times longer than the window stays, and only what is closer counts
// (interval jitter: Amarasingham, Harrison, Hatsopoulos and Geman, J. Neurophysiol. 107, 2012).
// Of several windows the one that explains most decides. What a timer tick starts on all CPUs
// comes together, too, without one having to do with the other: the other lists are also shifted by
// whole ticks, and the larger probability counts.

/// Fewest places of a window.
const PLACES_MIN: u64 = 5;

/// Parameters of the test of coincidence by moved events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterOptions<'a> {
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
/// `None`: there is no other list, one is empty, or the samples leave no shift by whole ticks.
pub fn together(lists: &[&[u64]], ask: &JitterOptions<'_>) -> Option<Coincidence> {
    let (first, others) = lists.split_first()?;
    if others.is_empty() || lists.iter().any(|list| list.is_empty()) {
        return None;
    }
    let first = thin(first, EVENTS_MAX);
    let others: Vec<Vec<u64>> = others.iter().map(|list| thin(list, EVENTS_MAX)).collect();
    let hits = coincidence::count(&first, &others, ask.window_ns);
    let step = ask.step_ns.max(1);
    let by_width = ask.widths_ns.iter().enumerate().map(|(index, &width)| {
        let places = (width / step).max(PLACES_MIN);
        let mut random = Random::new(ask.seed.wrapping_add(index as u64));
        let null: Vec<u64> = (0..ask.tries.max(1))
            .map(|_| {
                let moved: Vec<Vec<u64>> =
                    others.iter().map(|list| moved(list, step, places, &mut random)).collect();
                coincidence::count(&first, &moved, ask.window_ns)
            })
            .collect();
        Coincidence { hits, of: first.len() as u64, expected: mean(&null), p: chance(hits, &null) }
    });
    let by_ticks = {
        let null = shifted(&first, &others, ask)?;
        Coincidence { hits, of: first.len() as u64, expected: mean(&null), p: tail(hits, &null) }
    };
    by_width.chain([by_ticks]).max_by(|a, b| a.p.total_cmp(&b.p))
}

/// A multiple of the ticks of HZ 100, 250, 300 and 1000.
const TICKS_NS: u64 = 20_000_000;

/// Larger common multiples of ticks and sampling leave too few shifts.
const SHIFT_MAX_NS: u64 = 200_000_000;

/// What is slower than this may be common to all for a reason of its own.
const SHIFTS_WITHIN_NS: u64 = 2_000_000_000;

/// Counts with the other lists shifted by whole ticks, that lie on the grid of the samples; `None`:
/// there are too few such shifts.
fn shifted(first: &[u64], others: &[Vec<u64>], ask: &JitterOptions<'_>) -> Option<Vec<u64>> {
    let step = ask.step_ns.max(1);
    let by_ns = (1..=SHIFT_MAX_NS / TICKS_NS)
        .map(|ticks| ticks * TICKS_NS)
        .find(|by| by.is_multiple_of(step))?;
    let count = |by: &dyn Fn(u64) -> Option<u64>| {
        let moved: Vec<Vec<u64>> =
            others.iter().map(|list| list.iter().filter_map(|&at| by(at)).collect()).collect();
        coincidence::count(first, &moved, ask.window_ns)
    };
    let both = |turn: u64| {
        let by = turn * by_ns;
        [count(&|at| at.checked_add(by)), count(&|at| at.checked_sub(by))]
    };
    Some((1..=SHIFTS_WITHIN_NS / by_ns).flat_map(both).collect())
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

// Quantities as text for people: times with units, groups of thousands.

/// A time with three significant figures and its unit: `88.1 µs`, `3.2 ms`, `12 ns`.
pub fn ns(value_ns: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
    if value_ns >= 60_000_000_000 {
        return duration(value_ns);
    }
    for (unit_ns, name) in UNITS {
        if value_ns >= unit_ns {
            return format!("{} {name}", trimmed(value_ns as f64 / unit_ns as f64));
        }
    }
    "0 ns".into()
}

/// Three significant figures, no trailing zeros.
fn trimmed(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// Microseconds with one decimal below 1000, none above: the columns of a table.
pub fn us_column(value_ns: u64) -> String {
    let us = value_ns as f64 / 1000.0;
    if us < 999.95 { format!("{us:.1}") } else { grouped(us.round() as u64) }
}

/// A duration: `20 s`, `1 min 30 s`, `24 h`, `3 d 2 h`.
pub fn duration(value_ns: u64) -> String {
    // To the nearest, because what is measured ends with the last wake-up: 19.999 s are 20 s.
    let seconds = value_ns.saturating_add(500_000_000) / 1_000_000_000;
    if value_ns < 10_000_000_000 {
        return format!("{} s", trimmed(value_ns as f64 / 1e9));
    }
    if seconds < 60 {
        return format!("{seconds} s");
    }
    let parts = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut rest = seconds;
    let shown: Vec<String> = parts
        .iter()
        .filter_map(|&(size, name)| {
            let n = rest / size;
            rest %= size;
            (n > 0).then(|| format!("{n} {name}"))
        })
        .take(2)
        .collect();
    shown.join(" ")
}

/// Digits in groups of three, separated by narrow no-break spaces: `240 000`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A probability: percent down to a hundred-thousandth, else powers of ten.
pub fn probability(p: f64) -> String {
    match p {
        p if p >= 0.001 => format!("{} %", trimmed(100.0 * p)),
        p if p >= 0.000_01 => format!("{:.4} %", 100.0 * p).replace("0 %", " %"),
        p if p > 0.0 => format!("{p:.1e}"),
        _ => "0".into(),
    }
}

/// A rate in the largest unit of time in which it is one at least, three digits: `3/day`.
pub fn rate(per_hour: f64) -> String {
    let (value, unit) = in_unit(per_hour);
    match value {
        v if v >= 999.5 => format!("{}/{unit}", grouped(v.round() as u64)),
        v => format!("{}/{unit}", trimmed(v)),
    }
}

/// A rate, two digits, that its text does not lower.
pub fn rate_at_most(per_hour: f64) -> String {
    let (value, unit) = in_unit(per_hour);
    if !(value > 0.0 && value.is_finite()) {
        return format!("0/{unit}");
    }
    let step = 10_f64.powf(value.log10().floor() - 1.0);
    let value = (value / step - 1e-9).ceil() * step;
    if value >= 99.5 {
        format!("{}/{unit}", grouped(value.round() as u64))
    } else {
        format!("{}/{unit}", trimmed(value))
    }
}

fn in_unit(per_hour: f64) -> (f64, &'static str) {
    const HOURS: [(f64, &str); 4] = [(1.0, "h"), (24.0, "day"), (168.0, "week"), (8766.0, "year")];
    let of = |&(hours, unit): &(f64, &'static str)| (per_hour * hours, unit);
    let found = HOURS.iter().map(of).find(|(value, _)| *value >= 0.999);
    found.unwrap_or((per_hour * 8766.0, "year"))
}

/// `1 CPU`, `2 CPUs`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    // No number of things is larger.
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(number)) }
}

/// How often: `once`, `17 times`.
pub fn times(number: u64) -> String {
    if number == 1 { "once".into() } else { format!("{} times", grouped(number)) }
}

/// Confidence as percent: 950 000 ppm is `95 %`.
pub fn confidence(ppm: u32) -> String {
    let percent = f64::from(ppm) / 10_000.0;
    let text = format!("{percent:.4}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

// The largest samples, exactly: a bounded min-heap that never allocates after construction.

/// One sample with its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// When the wake-up was due, nanoseconds after the origin of the run.
    pub due_ns: u64,
    pub latency_ns: u64,
}

/// The `K` largest samples pushed since the last [`TopSamples::clear`].
///
/// The top K of a run is exactly the top K of the union of the top K of its seconds.
#[derive(Clone, Debug)]
pub struct TopSamples {
    heap: Box<[Sample]>,
    len: usize,
}

impl TopSamples {
    /// Keeps the `k` largest.
    pub fn new(k: usize) -> Self {
        Self { heap: vec![Sample::default(); k].into_boxed_slice(), len: 0 }
    }

    #[inline(always)]
    pub fn push(&mut self, sample: Sample) {
        if self.len == self.heap.len() {
            if self.len > 0 && sample.latency_ns > self.heap[0].latency_ns {
                self.replace_smallest(sample);
            }
        } else {
            self.append(sample);
        }
    }

    #[inline(never)]
    pub(crate) fn append(&mut self, sample: Sample) {
        let mut at = self.len;
        self.len += 1;
        self.heap[at] = sample;
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent].latency_ns <= self.heap[at].latency_ns {
                break;
            }
            self.heap.swap(parent, at);
            at = parent;
        }
    }

    #[inline(never)]
    pub(crate) fn replace_smallest(&mut self, sample: Sample) {
        let mut at = 0;
        self.heap[0] = sample;
        loop {
            let left = 2 * at + 1;
            if left >= self.len {
                break;
            }
            let right = left + 1;
            let smaller =
                right < self.len && self.heap[right].latency_ns < self.heap[left].latency_ns;
            let child = if smaller { right } else { left };
            if self.heap[at].latency_ns <= self.heap[child].latency_ns {
                break;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// The samples kept, in no order.
    pub fn as_slice(&self) -> &[Sample] {
        &self.heap[..self.len]
    }

    /// The samples kept, largest first; ties by time.
    pub fn sorted(&self) -> Vec<Sample> {
        let mut sorted = self.as_slice().to_vec();
        sorted.sort_unstable_by_key(|sample| (std::cmp::Reverse(sample.latency_ns), sample.due_ns));
        sorted
    }

    /// Address and size in bytes of the memory that holds the samples, for locking it into RAM.
    pub fn memory(&self) -> (usize, usize) {
        (self.heap.as_ptr() as usize, size_of_val(&*self.heap))
    }

    /// Forgets all; the memory stays.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn ask(seed: u64) -> JitterOptions<'static> {
        let widths_ns = &[5 * MS, 20 * MS, 100 * MS, SECOND];
        JitterOptions { window_ns: 100_000, widths_ns, step_ns: MS, tries: 100, seed }
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
    fn what_a_tick_starts_on_both_is_no_coincidence() {
        for tick_ms in [4, 10] {
            let alarms = (0..40).filter(|&seed| {
                let mut random = Random::new(seed);
                let [a, b] = [0, 1].map(|_| -> Vec<u64> {
                    let ticks = 0..60_000 / tick_ms;
                    ticks.filter(|_| random.unit() < 0.05).map(|i| i * tick_ms * MS).collect()
                });
                together(&[&a, &b], &ask(seed)).expect("lists").p < 0.01
            });
            assert!(alarms.count() <= 1, "{tick_ms} ms");
        }
        // No shift by whole ticks lies on this grid.
        let odd = JitterOptions { step_ns: 333_000, ..ask(1) };
        assert_eq!(together(&[&[1], &[1]], &odd), None);
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

#[cfg(test)]
mod quantity_tests {
    use super::*;

    #[test]
    fn once_is_no_plural() {
        assert_eq!([0, 1, 2].map(times), ["0 times", "once", "2 times"]);
        assert_eq!((count(1, "CPU"), count(2, "CPU")), ("1 CPU".into(), "2 CPUs".into()));
    }

    #[test]
    fn times_are_read_at_a_glance() {
        for (value, text) in [
            (0, "0 ns"),
            (12, "12 ns"),
            (88_100, "88.1 µs"),
            (100_000, "100 µs"),
            (279_349, "279 µs"),
            (1_000_000, "1 ms"),
            (3_204_000, "3.2 ms"),
            (999_999, "1000 µs"),
            (59_000_000_000, "59 s"),
            (3_600_000_000_000, "1 h"),
        ] {
            assert_eq!(ns(value), text);
        }
        assert_eq!(duration(90_000_000_000), "1 min 30 s");
        assert_eq!(duration(20_000_000_000), "20 s");
        assert_eq!(duration(1_500_000_000), "1.5 s");
        assert_eq!(duration(86_400_000_000_000), "1 d");
        assert_eq!((us_column(1_900), us_column(12_345_678)), ("1.9".into(), grouped(12_346)));
    }

    #[test]
    fn counts_and_rates() {
        assert_eq!(grouped(240_000).replace('\u{202f}', " "), "240 000");
        assert_eq!((grouped(7).as_str(), grouped(1000).chars().count()), ("7", 5));
        assert_eq!(probability(0.05), "5 %");
        assert_eq!(probability(9.98e-7), "1.0e-6");
        assert_eq!(
            [360.0, 12.5, 0.125, 1.0 / 168.0].map(rate),
            ["360/h", "12.5/h", "3/day", "1/week"]
        );
        let most = [193.1, 3.2189, 9.6567 / 24.0, 0.465 / 24.0, 20.0, 0.0].map(rate_at_most);
        assert_eq!(most, ["200/h", "3.3/h", "9.7/day", "3.3/week", "20/h", "0/year"]);
        assert_eq!((confidence(950_000), confidence(999_900)), ("95 %".into(), "99.99 %".into()));
    }
}

#[cfg(test)]
mod top_tests {
    use super::*;

    #[test]
    fn keeps_exactly_the_largest() {
        let mut top = TopSamples::new(7);
        let values: Vec<u64> = (0..1000).map(|i| i * 7919 % 1009).collect();
        for (i, &latency_ns) in values.iter().enumerate() {
            top.push(Sample { due_ns: i as u64, latency_ns });
        }
        let mut expected = values;
        expected.sort_unstable_by(|a, b| b.cmp(a));
        let got: Vec<u64> = top.sorted().iter().map(|sample| sample.latency_ns).collect();
        assert_eq!(got, expected[..7]);
    }

    #[test]
    fn none_is_kept_when_none_is_asked_for() {
        let mut top = TopSamples::new(0);
        top.push(Sample { due_ns: 1, latency_ns: 1 });
        assert!(top.as_slice().is_empty());
    }
}
