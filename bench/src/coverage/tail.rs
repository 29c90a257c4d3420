//! The tail: whether a level is exceeded more often than its printed upper end says, of all levels
//! that are printed.

use rtproof_stats::{
    binomial::Random,
    tail::{MeasuredPeaks, Model, Peak, ReturnLevel, Tail},
};

use super::case::{Case, Promise};

const HOUR_NS: u64 = 3_600_000_000_000;
/// Threshold, and scale of what is above it.
const OVER_NS: f64 = 20_000.0;
const SCALE_NS: f64 = 4000.0;
/// Groups over the threshold in an hour.
const GROUPS: f64 = 300.0;

const UNDER: &str = "the level is above its printed upper end (99 %)";

/// Excesses in scales with their times in hours, of so many hours.
type Process = fn(&mut Random, f64) -> Vec<(f64, f64)>;
/// Groups an hour above an excess.
type Rate = fn(f64) -> f64;

/// Hours measured, and hours of operation.
const AHEAD: [(f64, f64); 2] = [(1.0, 8.0), (4.0, 24.0)];
/// What is said beside each level.
const CONDITION: &str = "if nothing comes less often than three times in such a run";

pub(super) fn cases() -> Vec<Case> {
    let processes: [(&str, Process, Rate); 12] = [
        ("bounded, shape -0.2", |r, h| iid(r, h, -0.2), |y| GROUPS * survival(-0.2, y)),
        ("exponential", |r, h| iid(r, h, 0.0), |y| GROUPS * survival(0.0, y)),
        ("heavy, shape 0.1", |r, h| iid(r, h, 0.1), |y| GROUPS * survival(0.1, y)),
        ("heavy, shape 0.2", |r, h| iid(r, h, 0.2), |y| GROUPS * survival(0.2, y)),
        ("heavy, shape 0.3", |r, h| iid(r, h, 0.3), |y| GROUPS * survival(0.3, y)),
        ("lognormal, sigma 1", lognormal, |y| GROUPS * normal_tail((y / 0.6).ln())),
        ("normal", normal, |y| GROUPS * 2.0 * normal_tail(y)),
        ("regimes of 10 min, one of three times the scale", scales, |y| {
            GROUPS * (0.75 * survival(0.0, y) + 0.25 * survival(0.0, y / 3.0))
        }),
        ("regimes of 10 min, one of five times the groups, larger", rates, |y| {
            GROUPS * (0.75 * survival(0.0, y) + 0.25 * 5.0 * survival(0.0, y / 2.0))
        }),
        ("a second mode, ten times as large, once in 5 h", second_mode, |y| {
            GROUPS * survival(0.0, y) + 0.2 * survival(0.0, y / 10.0)
        }),
        ("scale with a memory of 300 s", memory, |y| GROUPS * of_memory(y)),
        ("threshold with a memory of 300 s", shifted, |y| 3600.0 * of_shift(y)),
    ];
    let mut cases = Vec::new();
    for (name, process, rate) in processes {
        for (hours, ahead) in AHEAD {
            let truth = once_in(rate, ahead);
            cases.push(Case {
                claim: UNDER,
                process: format!("{name}; {hours} h, {ahead} h ahead"),
                promise: match name.contains("regimes") && hours < 4.0 || name.contains("mode") {
                    true => Promise::Unless(CONDITION),
                    false => Promise::AtMost(0.01),
                },
                runs: 300,
                quick: if name.contains("shape") && hours < 4.0 { 2 } else { 0 },
                happened: Box::new(move |seed| {
                    shown(process, seed, hours, ahead).is_some_and(|level| level.high_ns < truth)
                }),
            });
        }
    }
    cases
}

/// The first level that is shown, of ten runs at most.
fn shown(process: Process, seed: u64, hours: f64, ahead: f64) -> Option<ReturnLevel> {
    (0..10).find_map(|i| level(process, seed * 10 + i, hours, ahead))
}

/// The level of a run, where it is shown.
fn level(process: Process, seed: u64, hours: f64, ahead: f64) -> Option<ReturnLevel> {
    let mut random = Random::new(seed);
    let mut peaks: Vec<Peak> = process(&mut random, hours)
        .into_iter()
        .filter(|&(_, y)| y > 0.0)
        .map(|(at_h, y)| Peak {
            at_ns: (at_h * HOUR_NS as f64) as u64,
            latency_ns: (OVER_NS + y * SCALE_NS).ceil() as u64,
        })
        .collect();
    peaks.sort_unstable_by_key(|peak| peak.at_ns);
    let measured = MeasuredPeaks {
        peaks: &peaks,
        complete_ns: OVER_NS as u64,
        exposure_ns: (hours * HOUR_NS as f64) as u64,
        sampling_ns: 1_000_000,
        longest_period_ns: None,
        seed,
    };
    match Model::of(&measured).level((ahead * HOUR_NS as f64) as u64) {
        Tail::Level(level) => Some(level),
        Tail::Refused { .. } => None,
    }
}

/// The level that one group in so many hours exceeds, by bisection.
fn once_in(rate: Rate, hours: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..200 {
        let mid = f64::midpoint(low, high);
        if rate(mid) * hours > 1.0 { low = mid } else { high = mid }
    }
    OVER_NS + SCALE_NS * low
}

/// P(Y > y) of a generalised Pareto distribution.
fn survival(xi: f64, y: f64) -> f64 {
    if xi == 0.0 { (-y).exp() } else { (1.0 + xi * y).max(0.0).powf(-1.0 / xi) }
}

/// P(Z > z), by Simpson's rule from z to z + 12.
fn normal_tail(z: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if z < -8.0 {
        return 1.0;
    }
    let (n, step) = (2400, 12.0 / 2400.0);
    let weight = |i: i32| if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    (0..=n).map(|i| weight(i) * density(z + step * f64::from(i))).sum::<f64>() * step / 3.0
}

/// Mean over a standard normal Z of a function.
fn over_normal(of: impl Fn(f64) -> f64) -> f64 {
    let density = |z: f64| (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    (-700..=700).map(|i| f64::from(i) / 100.0).map(|z| density(z) * of(z) / 100.0).sum()
}

/// Times of a Poisson process.
fn times(random: &mut Random, hours: f64, rate: f64) -> Vec<f64> {
    let mut at = 0.0;
    let next = || {
        at += random.exponential() / rate;
        (at < hours).then_some(at)
    };
    std::iter::from_fn(next).collect()
}

fn each(
    random: &mut Random,
    hours: f64,
    mut excess: impl FnMut(&mut Random) -> f64,
) -> Vec<(f64, f64)> {
    times(random, hours, GROUPS).into_iter().map(|at| (at, excess(random))).collect()
}

fn iid(random: &mut Random, hours: f64, xi: f64) -> Vec<(f64, f64)> {
    each(random, hours, |random| match random.exponential() {
        e if xi == 0.0 => e,
        e => (xi * e).exp_m1() / xi,
    })
}

fn lognormal(random: &mut Random, hours: f64) -> Vec<(f64, f64)> {
    each(random, hours, |random| 0.6 * random.normal().exp())
}

fn normal(random: &mut Random, hours: f64) -> Vec<(f64, f64)> {
    each(random, hours, |random| random.normal().abs())
}

/// Regimes of ten minutes on average, one of them in so many of another kind, of which a second
/// process gives the groups.
fn regimes(
    random: &mut Random,
    hours: f64,
    share: f64,
    usual: impl Fn(&mut Random, f64) -> Vec<(f64, f64)>,
    other: impl Fn(&mut Random, f64) -> Vec<(f64, f64)>,
) -> Vec<(f64, f64)> {
    let (mut at, mut all) = (0.0, Vec::new());
    while at < hours {
        let length = (random.exponential() / 6.0).min(hours - at);
        let is_other = random.unit() < share;
        let groups = if is_other { other(random, length) } else { usual(random, length) };
        all.extend(groups.into_iter().map(|(from, y)| (at + from, y)));
        at += length;
    }
    all
}

fn scales(random: &mut Random, hours: f64) -> Vec<(f64, f64)> {
    let of = |scale: f64| {
        move |random: &mut Random, hours: f64| {
            each(random, hours, |random| scale * random.exponential())
        }
    };
    regimes(random, hours, 0.25, of(1.0), of(3.0))
}

fn rates(random: &mut Random, hours: f64) -> Vec<(f64, f64)> {
    let of = |rate: f64, scale: f64| {
        move |random: &mut Random, hours: f64| -> Vec<(f64, f64)> {
            let times = times(random, hours, rate * GROUPS);
            times.into_iter().map(|at| (at, scale * random.exponential())).collect()
        }
    };
    regimes(random, hours, 0.25, of(1.0, 1.0), of(5.0, 2.0))
}

fn second_mode(random: &mut Random, hours: f64) -> Vec<(f64, f64)> {
    let mut all = iid(random, hours, 0.0);
    all.extend(times(random, hours, 0.2).into_iter().map(|at| (at, 10.0 * random.exponential())));
    all
}

/// A standard normal state with a correlation time of 300 s, second by second.
fn states(random: &mut Random, hours: f64) -> Vec<f64> {
    let rho = (-1.0_f64 / 300.0).exp();
    let mut state = random.normal();
    let next = |_| {
        state = rho * state + (1.0 - rho * rho).sqrt() * random.normal();
        state
    };
    (0..(hours * 3600.0) as usize).map(next).collect()
}

/// The spread of [`memory`].
const SPREAD: f64 = 0.4;

fn memory(random: &mut Random, hours: f64) -> Vec<(f64, f64)> {
    let states = states(random, hours);
    let scale = |at: f64| (SPREAD * states[((at * 3600.0) as usize).min(states.len() - 1)]).exp();
    let times = times(random, hours, GROUPS);
    times.into_iter().map(|at| (at, scale(at) * random.exponential())).collect()
}

fn of_memory(y: f64) -> f64 {
    over_normal(|z| (-y / (SPREAD * z).exp()).exp())
}

/// Each second's largest: the state, in scales, and noise.
fn shifted(random: &mut Random, hours: f64) -> Vec<(f64, f64)> {
    let states = states(random, hours);
    let at = |i: usize| (i as f64 + 0.5) / 3600.0;
    states.iter().enumerate().map(|(i, z)| (at(i), z - 3.0 + random.exponential())).collect()
}

fn of_shift(y: f64) -> f64 {
    over_normal(|z| (-(y - z + 3.0).max(0.0)).exp())
}
