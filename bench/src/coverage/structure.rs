//! What spikes have in common: periods where there are some and where there are none, and CPUs that
//! are stopped together or only share a load.

use std::sync::Arc;

use rtproof_judge::{
    causes::Structure,
    structure::{SpikeAt, StructureInput, structure},
};
use rtproof_stats::binomial::Random;

use super::case::{Case, Promise};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

const FOUND: &str = "every period that is there is found, with its fundamental";
const OTHER: &str = "a period is reported that is not there";
const TOGETHER: &str = "CPUs that are stopped together are said to be";
const SHARED: &str = "CPUs that only share a load are said to be stopped together";

/// Events of a process in so long a run.
type Events = Arc<dyn Fn(&mut Random) -> Vec<u64> + Send + Sync>;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for claim in [FOUND, OTHER] {
        for (name, duration, truth, events) in periodic() {
            let (truth, events) = (truth.clone(), events.clone());
            cases.push(Case {
                claim,
                process: name.into(),
                promise: if claim == FOUND { Promise::AtLeast(0.9) } else { Promise::AtMost(0.01) },
                runs: 100,
                quick: if claim == FOUND { 3 } else { 0 },
                happened: Box::new(move |seed| {
                    let told = periods(&events(&mut Random::new(seed << 20)), duration);
                    let near = |a: u64, b: u64| a.abs_diff(b) as f64 <= 0.05 * b as f64;
                    match claim == FOUND {
                        true => truth.iter().all(|&one| told.iter().any(|&is| near(is, one))),
                        false => told.iter().any(|&is| !truth.iter().any(|&one| near(is, one))),
                    }
                }),
            });
        }
    }
    for (name, duration, events) in without_period() {
        cases.push(Case {
            claim: OTHER,
            process: name.into(),
            promise: Promise::AtMost(0.01),
            runs: 300,
            quick: 5,
            happened: Box::new(move |seed| {
                !periods(&events(&mut Random::new(seed << 20)), duration).is_empty()
            }),
        });
    }
    cases.extend(together());
    cases
}

/// CPUs that are stopped together, and CPUs that share a load.
fn together() -> Vec<Case> {
    let mut cases = Vec::new();
    for cpus in [2, 4] {
        for (stops, own, jitter_us) in [(12, 20, 0), (8, 0, 0), (30, 200, 20)] {
            let process = format!(
                "{stops} stops of all {cpus} CPUs in 1 min, let go within {jitter_us} µs, and \
                 {own} of each alone"
            );
            let happened = move |seed: u64| {
                let mut random = Random::new(seed << 20);
                let at: Vec<u64> = scattered(&mut random, stops, MINUTE);
                let mut spikes = Vec::new();
                for cpu in 0..cpus {
                    let mut all = scattered(&mut random, own, MINUTE);
                    all.extend(&at);
                    for (i, at) in all.into_iter().enumerate() {
                        // Each was due at its own time, and all come to run together.
                        let is_stop = i >= own as usize;
                        let off = random.below(1 + 1000 * jitter_us * u64::from(is_stop));
                        let spike = spike(cpu, at);
                        let latency_ns = 1_000_000 + at + off - spike.at_ns.min(at + off);
                        spikes.push(SpikeAt { latency_ns, ..spike });
                    }
                }
                is_told(&spikes, cpus)
            };
            cases.push(Case {
                claim: TOGETHER,
                process,
                promise: Promise::AtLeast(0.95),
                runs: 100,
                quick: 4,
                happened: Box::new(happened),
            });
        }
        for on_ms in [10, 100, 1000] {
            let process = format!("a load of {cpus} CPUs, on {on_ms} ms and off {on_ms} ms");
            let happened = move |seed: u64| {
                let mut random = Random::new(seed << 20);
                let mut spikes = Vec::new();
                for cpu in 0..cpus {
                    // Of the wake-ups under load, one in forty.
                    for ms in 0..60_000_u64 {
                        if ms / on_ms % 2 == 1 && random.below(200) < 5 {
                            let latency_ns = 60_000 + random.below(400_000);
                            spikes.push(SpikeAt { latency_ns, ..spike(cpu, ms * MS) });
                        }
                    }
                }
                is_told(&spikes, cpus)
            };
            cases.push(Case {
                claim: SHARED,
                process,
                promise: Promise::AtMost(0.01),
                runs: 600,
                quick: 4,
                happened: Box::new(happened),
            });
        }
    }
    cases.sort_by_key(|case| case.claim);
    cases
}

fn is_told(spikes: &[SpikeAt<'_>], cpus: u32) -> bool {
    of(spikes, MINUTE, cpus as usize).iter().any(|one| one.kind == "cpus")
}

/// The periods that are reported of these moments.
fn periods(events: &[u64], duration_ns: u64) -> Vec<u64> {
    let spikes: Vec<SpikeAt<'_>> = events.iter().map(|&at_ns| spike(0, at_ns)).collect();
    let found = of(&spikes, duration_ns, 1);
    found.into_iter().filter_map(|one| one.period_ns).collect()
}

fn spike(cpu: u32, at_ns: u64) -> SpikeAt<'static> {
    SpikeAt { cpu, at_ns: at_ns.div_ceil(MS) * MS, latency_ns: 90_000, cause: "stall", culprit: "" }
}

fn of(spikes: &[SpikeAt<'_>], duration_ns: u64, cpus: usize) -> Vec<Structure> {
    structure(&StructureInput {
        spikes,
        host: &[],
        phases: &[],
        period_ns: MS,
        duration_ns,
        cpus,
        levels: &[],
    })
}

/// Moments of one period: its share of cycles that have one, its jitter as a share of the period.
struct Comb {
    period: u64,
    share: f64,
    jitter: Jitter,
}

#[derive(Clone, Copy)]
enum Jitter {
    /// Late by at most so many nanoseconds.
    Late(u64),
    /// Uniform, by so much of the period either way.
    Uniform(f64),
    /// Normal, with this standard deviation in periods.
    Normal(f64),
    /// Normal, and the next counts from here.
    Adding(f64),
}

impl Comb {
    fn events(&self, random: &mut Random, duration: u64) -> Vec<u64> {
        let period = self.period as f64;
        let mut at = random.unit() * period;
        let mut events = Vec::new();
        while at < duration as f64 {
            let off = match self.jitter {
                Jitter::Late(by) => random.unit() * by as f64,
                Jitter::Uniform(part) => (2.0 * random.unit() - 1.0) * part * period,
                Jitter::Normal(sd) => random.normal() * sd * period,
                Jitter::Adding(_) => 0.0,
            };
            if random.unit() < self.share {
                events.push((at + off).max(0.0) as u64);
            }
            at += match self.jitter {
                Jitter::Adding(sd) => period * (1.0 + sd * random.normal()).max(0.1),
                _ => period,
            };
        }
        events
    }
}

fn comb(period: u64, share: f64, jitter: Jitter) -> Comb {
    Comb { period, share, jitter }
}

/// Name, length, periods that are there, events.
fn periodic() -> Vec<(&'static str, u64, Vec<u64>, Events)> {
    let of = |name, duration, combs: Vec<Comb>, noise: u64| {
        let truth: Vec<u64> = combs.iter().map(|comb| comb.period).collect();
        let events: Events = Arc::new(move |random: &mut Random| {
            let mut all: Vec<u64> =
                combs.iter().flat_map(|comb| comb.events(random, duration)).collect();
            all.extend((0..noise).map(|_| random.below(duration)));
            all
        });
        (name, duration, truth, events)
    };
    let late = Jitter::Late(2 * MS);
    vec![
        of("1 s among twice as many others, 1 min", MINUTE, vec![comb(SECOND, 1.0, late)], 120),
        of("730 ms among as many others, 5 min", 5 * MINUTE, vec![comb(730 * MS, 1.0, late)], 400),
        of("7 s and 11 s, 10 min", 10 * MINUTE, both(7, 11), 0),
        of("7 s and 11 s and 40 others, 30 min", 30 * MINUTE, both(7, 11), 40),
        of("2 s and 3 s, 5 min", 5 * MINUTE, both(2, 3), 0),
        of("1 s and 10 s, 10 min", 10 * MINUTE, both(1, 10), 0),
        of("60 s and 14 min, 6 h", 6 * HOUR, both(60, 840), 0),
        of("14 min, 6 h", 6 * HOUR, vec![comb(840 * SECOND, 1.0, late)], 0),
        of("14 min and 10 others, 6 h", 6 * HOUR, vec![comb(840 * SECOND, 1.0, late)], 10),
        of(
            "14 min, late by up to 5 s, 6 h",
            6 * HOUR,
            vec![comb(840 * SECOND, 1.0, Jitter::Late(5 * SECOND))],
            0,
        ),
        of("1 s in half of the seconds, 2 min", 2 * MINUTE, vec![comb(SECOND, 0.5, late)], 20),
        of("1 min in one minute of three, 2 h", 2 * HOUR, vec![comb(MINUTE, 0.33, late)], 0),
        of(
            "1 s, up to 10 % early or late, 5 min",
            5 * MINUTE,
            vec![comb(SECOND, 1.0, Jitter::Uniform(0.1))],
            0,
        ),
        of(
            "1 s, up to 10 % early or late, and 100 others, 5 min",
            5 * MINUTE,
            vec![comb(SECOND, 1.0, Jitter::Uniform(0.1))],
            100,
        ),
        of(
            "5 s, normal jitter of 10 %, 10 min",
            10 * MINUTE,
            vec![comb(5 * SECOND, 1.0, Jitter::Normal(0.1))],
            0,
        ),
        of(
            "5 s, normal jitter of 10 %, and 60 others, 20 min",
            20 * MINUTE,
            vec![comb(5 * SECOND, 1.0, Jitter::Normal(0.1))],
            60,
        ),
        of(
            "1 s that wait 1 % more or less each time, 5 min",
            5 * MINUTE,
            vec![comb(SECOND, 1.0, Jitter::Adding(0.01))],
            0,
        ),
    ]
}

fn both(a: u64, b: u64) -> Vec<Comb> {
    [a, b].map(|seconds| comb(seconds * SECOND, 1.0, Jitter::Late(2 * MS))).into()
}

fn without_period() -> Vec<(&'static str, u64, Events)> {
    fn of(
        name: &'static str,
        duration: u64,
        events: fn(&mut Random, u64) -> Vec<u64>,
    ) -> (&'static str, u64, Events) {
        (name, duration, Arc::new(move |random: &mut Random| events(random, duration)))
    }
    vec![
        of("independent, 30 in 1 min", MINUTE, |random, t| scattered(random, 30, t)),
        of("independent, 400 in 10 min", 10 * MINUTE, |random, t| scattered(random, 400, t)),
        of("independent, 8 in 1 h", HOUR, |random, t| scattered(random, 8, t)),
        of("more and more, 200 in 10 min", 10 * MINUTE, |random, t| {
            (0..200).map(|_| (random.unit().sqrt() * t as f64) as u64).collect()
        }),
        of("bunches of 3 s, 10 min", 10 * MINUTE, |random, t| {
            let starts = scattered(random, 12, t - 3 * SECOND);
            starts
                .iter()
                .flat_map(|at| scattered(random, 20, 3 * SECOND).into_iter().map(move |x| x + at))
                .collect()
        }),
        of("a load that comes and goes, 2 s each on average, 10 min", 10 * MINUTE, |random, t| {
            let (mut at, mut on, mut events) = (0.0, false, Vec::new());
            while at < t as f64 {
                let long = 2.0 * random.exponential() * SECOND as f64;
                if on {
                    let n = (long / 1e8) as u64;
                    events.extend(scattered(random, n, long as u64).iter().map(|x| x + at as u64));
                }
                (at, on) = (at + long, !on);
            }
            events
        }),
        of("never closer than 0.3 s, 1 s on average, 10 min", 10 * MINUTE, |random, t| {
            let (mut at, mut events) = (0.0, Vec::new());
            while at < t as f64 {
                events.push(at as u64);
                at += (0.3 + 0.7 * random.exponential()) * SECOND as f64;
            }
            events
        }),
    ]
}

fn scattered(random: &mut Random, n: u64, within: u64) -> Vec<u64> {
    (0..n).map(|_| random.below(within)).collect()
}
