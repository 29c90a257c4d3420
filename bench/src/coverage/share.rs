//! Class 95: seconds whose share of late wake-ups depends on the seconds before, in a zoo of
//! processes whose long-run share is known. Cells outside the printed condition, and those that no
//! rule of one run can see, are named.

use rtproof_judge::{Integrity, VerdictAnswer, testing, verdict};
use rtproof_record::BudgetClass;
use rtproof_stats::{binomial::Random, evidence};

use super::case::{Case, Promise};

const ACCEPTS: &str = "class 95 accepts a machine at a true share of 5 %";
const REFUSES: &str = "class 95 refuses a machine at a true share of 5 %";
const POWER: &str = "class 95 accepts a good machine";
const BAD: &str = "class 95 refuses a bad machine";

/// A wrong answer; half a point above the stated error is the most that the printed condition
/// costs near its edge.
const WRONG: Promise = Promise::AtMost(0.065);

const OUTSIDE: &str = "stretches longer than the verdict's condition";
const SCALES: &str = "lateness on all scales of time";
const RARE: &str = "rare stretches 40 times as long as the others";
const DAY: &str = "another time of the day";

/// Seconds of a run with their late share, of a process with this long-run share.
type Process = Box<dyn Fn(&mut Random, usize, f64) -> Vec<f64> + Sync>;

/// How long a stretch of late wake-ups is, of a mean of 1.
type Length = fn(&mut Random) -> f64;

pub(super) fn cases() -> Vec<Case> {
    let mut all = wrong();
    all.extend(power());
    all.sort_by_key(|case| [ACCEPTS, REFUSES, POWER, BAD].iter().position(|&c| c == case.claim));
    all
}

/// Seconds of a block in a run.
fn block_s(seconds: usize) -> f64 {
    seconds as f64 / evidence::blocks_of(seconds as f64) as f64
}

fn wrong() -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |name: &str, seconds, promise, quick, process: Process| {
        let text = format!("{name}, {}", time(seconds));
        // An hour takes six times as long, and shows nothing else.
        let quick = if seconds > 600 { 0 } else { quick };
        all.push(case(
            ACCEPTS,
            text,
            promise,
            quick,
            (seconds, 0.05),
            VerdictAnswer::Accepted,
            process,
        ));
    };
    for seconds in [600, 3600] {
        let block = block_s(seconds);
        add("independent", seconds, WRONG, 10, Box::new(independent));
        add(
            "every tenth second, all late by half",
            seconds,
            WRONG,
            5,
            Box::new(|_, n, m| (0..n).map(|s| if s % 10 == 0 { 10.0 * m } else { 0.0 }).collect()),
        );
        add("bursts by a timetable of 50 s", seconds, WRONG, 5, Box::new(timetable));
        add(
            "more and more often",
            seconds,
            WRONG,
            5,
            Box::new(|_, n, m| (0..n).map(|s| 2.0 * m * s as f64 / n as f64).collect()),
        );
        add(
            "late from the middle on",
            seconds,
            WRONG,
            5,
            Box::new(|_, n, m| (0..n).map(|s| if 2 * s >= n { 2.0 * m } else { 0.0 }).collect()),
        );
        add("one outage", seconds, WRONG, 5, Box::new(outage));
        add(
            "a sinus of 200 s",
            seconds,
            WRONG,
            5,
            Box::new(|random, n, m| sinus(random, n, m, 200.0)),
        );
        for tau in [1.0, 5.0, 30.0] {
            let promise = if tau > 10.0 { Promise::Unless(OUTSIDE) } else { WRONG };
            let process = move |random: &mut Random, n, m| state(random, n, m, tau);
            add(&format!("a state of {tau} s"), seconds, promise, 5, Box::new(process));
        }
        for stay in [10.0, 60.0] {
            let process = move |random: &mut Random, n, m| hidden(random, n, m, stay);
            add(&format!("good and bad in turns, {stay} s"), seconds, WRONG, 5, Box::new(process));
        }
        add(
            "half late in stretches of 60 s",
            seconds,
            Promise::Unless(OUTSIDE),
            0,
            Box::new(|random, n, m| {
                let bad = stretches(random, n, 2.0 * m, 60.0, exponential);
                bad.into_iter().map(|bad| bad / 2.0).collect()
            }),
        );
        add("a random walk of the log odds", seconds, WRONG, 0, Box::new(walk));
        for hurst in [0.7, 0.8, 0.9] {
            let promise = if hurst > 0.85 { Promise::Unless(SCALES) } else { WRONG };
            add(
                &format!("fractional noise, H {hurst}"),
                seconds,
                promise,
                0,
                Box::new(move |random, n, m| fractional(random, n, m, hurst)),
            );
        }
        for branching in [0.8, 0.95] {
            add(
                &format!("each late second causes {branching} more (Hawkes)"),
                seconds,
                WRONG,
                0,
                Box::new(move |random, n, m| hawkes(random, n, m, branching)),
            );
        }
        let lengths: [(&str, Length, Option<&str>); 5] = [
            ("exponential", exponential, None),
            ("Weibull 0.5", weibull, None),
            ("lognormal 1.5", |random| lognormal(random, 1.5), None),
            ("lognormal 2", |random| lognormal(random, 2.0), Some(SCALES)),
            ("5 % of them 40-fold", forty, Some(RARE)),
        ];
        for (name, length, unless) in lengths {
            for (text, mean) in [("a quarter of a block", block / 4.0), ("a block", block)] {
                let promise = match unless {
                    Some(why) => Promise::Unless(why),
                    None if mean > block / 2.0 && name != "exponential" => Promise::Unless(OUTSIDE),
                    None => WRONG,
                };
                let quick = if name == "exponential" { 5 } else { 0 };
                add(
                    &format!("all late in stretches, {name}, of {text}"),
                    seconds,
                    promise,
                    quick,
                    Box::new(move |random, n, m| stretches(random, n, m, mean, length)),
                );
            }
        }
        let mean = block / 4.0;
        add(
            "all late in stretches, Pareto 1.5, of a quarter of a block",
            seconds,
            WRONG,
            0,
            Box::new(move |random, n, m| stretches(random, n, m, mean, pareto)),
        );
        for steady in [0.01, 0.03, 0.045] {
            add(
                &format!("{} % steadily, and stretches of a block", 100.0 * steady),
                seconds,
                WRONG,
                0,
                Box::new(move |random, n, m| {
                    let rest =
                        stretches(random, n, (m - steady) / (1.0 - steady), block, exponential);
                    rest.into_iter().map(|share| steady + (1.0 - steady) * share).collect()
                }),
            );
        }
    }
    add(
        "a day's rhythm, a random hour of it",
        3600,
        Promise::Unless(DAY),
        0,
        Box::new(|random, n, m| sinus(random, n, m, 86_400.0)),
    );
    // Ten of our own choice.
    {
        let seconds = 600;
        add(
            "a maintenance job of 20 s every 7 min",
            seconds,
            WRONG,
            0,
            Box::new(|random, n, m| {
                let phase = random.below(420) as usize;
                (0..n)
                    .map(|s| if (s + phase) % 420 < 20 { m * 21.0 } else { 0.0 }.min(1.0))
                    .collect()
            }),
        );
        add(
            "falling, as a machine that warms up",
            seconds,
            WRONG,
            5,
            Box::new(|_, n, m| {
                let mean =
                    (0..n).map(|s| (-3.0 * s as f64 / n as f64).exp()).sum::<f64>() / n as f64;
                (0..n).map(|s| m / mean * (-3.0 * s as f64 / n as f64).exp()).collect()
            }),
        );
        add(
            "two stretches, one at each end",
            seconds,
            WRONG,
            5,
            Box::new(|_, n, m| {
                let width = (m * n as f64 / 2.0) as usize + 1;
                (0..n).map(|s| if s < width || s + width >= n { 1.0 } else { 0.0 }).collect()
            }),
        );
        add(
            "alternating good and bad seconds",
            seconds,
            WRONG,
            5,
            Box::new(|_, n, m| (0..n).map(|s| if s % 2 == 0 { 2.0 * m } else { 0.0 }).collect()),
        );
        add(
            "a saw tooth of 90 s",
            seconds,
            WRONG,
            5,
            Box::new(|random, n, m| {
                let phase = random.below(90) as usize;
                (0..n).map(|s| 2.0 * m * ((s + phase) % 90) as f64 / 89.0).collect()
            }),
        );
        add(
            "seconds of Pareto 1.2 shares",
            seconds,
            WRONG,
            5,
            Box::new(|random, n, m| {
                (0..n)
                    .map(|_| (m * 0.2 / 1.2 * random.unit().max(1e-9).powf(-1.0 / 1.2)).min(1.0))
                    .collect()
            }),
        );
        add(
            "one second in twenty all late, at random",
            seconds,
            WRONG,
            5,
            Box::new(|random, n, m| {
                (0..n).map(|_| if random.unit() < m { 1.0 } else { 0.0 }).collect()
            }),
        );
        add(
            "pairs of stretches of 0.3 s, 3 s apart",
            seconds,
            WRONG,
            0,
            Box::new(|random, n, m| {
                let mut all = vec![0.0_f64; n];
                for s in 0..n {
                    if random.unit() < m / 0.6 {
                        all[s] = (all[s] + 0.3).min(1.0);
                        all[(s + 3) % n] = (all[(s + 3) % n] + 0.3).min(1.0);
                    }
                }
                all
            }),
        );
        add(
            "a state of 2 s below a state of 20 s",
            seconds,
            WRONG,
            0,
            Box::new(|random, n, m| {
                let (slow, fast) =
                    (state(random, n, m.sqrt(), 20.0), state(random, n, m.sqrt(), 2.0));
                slow.into_iter().zip(fast).map(|(a, b)| a * b).collect()
            }),
        );
        add(
            "stretches of a gamma length, a quarter of a block",
            seconds,
            WRONG,
            0,
            Box::new(|random, n, m| {
                let gamma =
                    |random: &mut Random| (random.exponential() + random.exponential()) / 2.0;
                stretches(random, n, m, block_s(600) / 4.0, gamma)
            }),
        );
    }
    for (name, seconds, process) in refused() {
        let text = format!("{name}, {}", time(seconds));
        let promise = if name.starts_with("frac") { Promise::Unless(SCALES) } else { WRONG };
        all.push(case(REFUSES, text, promise, 5, (seconds, 0.05), VerdictAnswer::Refused, process));
    }
    all
}

fn refused() -> Vec<(&'static str, usize, Process)> {
    vec![
        ("independent", 600, Box::new(independent)),
        ("independent", 10, Box::new(independent)),
        ("a state of 5 s", 600, Box::new(|random, n, m| state(random, n, m, 5.0))),
        (
            "all late in stretches of 1 s",
            600,
            Box::new(|random, n, m| stretches(random, n, m, 1.0, exponential)),
        ),
        (
            "all late in stretches of 20 s",
            600,
            Box::new(|random, n, m| stretches(random, n, m, 20.0, exponential)),
        ),
        ("a good and a bad state, 60 s", 600, Box::new(|random, n, m| hidden(random, n, m, 60.0))),
        ("fractional noise, H 0.9", 600, Box::new(|random, n, m| fractional(random, n, m, 0.9))),
    ]
}

fn power() -> Vec<Case> {
    let of = |claim, name: &str, at: (usize, f64), least, quick, process: Process| {
        let text = format!("{name}, {} %, {}", (1e4 * at.1).round() / 100.0, time(at.0));
        let answer = if claim == POWER { VerdictAnswer::Accepted } else { VerdictAnswer::Refused };
        case(claim, text, Promise::AtLeast(least), quick, at, answer, process)
    };
    let independent = || -> Process { Box::new(independent) };
    let late = |mean: f64| -> Process {
        Box::new(move |random, n, m| stretches(random, n, m, mean, exponential))
    };
    vec![
        of(POWER, "independent", (170, 0.001), 0.9, 10, independent()),
        of(POWER, "independent", (600, 0.01), 0.9, 10, independent()),
        of(POWER, "independent", (600, 0.02), 0.9, 10, independent()),
        of(POWER, "independent", (3600, 0.035), 0.9, 0, independent()),
        of(POWER, "all late in stretches of 1 s", (600, 0.002), 0.85, 0, late(1.0)),
        of(POWER, "all late in stretches of 1 s", (600, 0.01), 0.5, 0, late(1.0)),
        of(POWER, "all late in stretches of 2.5 s", (3600, 0.01), 0.8, 0, late(2.5)),
        of(BAD, "independent", (600, 0.07), 0.95, 10, independent()),
        of(BAD, "independent", (60, 0.2), 0.95, 10, independent()),
        of(BAD, "all late in stretches of 2 s", (600, 0.12), 0.7, 0, late(2.0)),
    ]
}

fn case(
    claim: &'static str,
    process: String,
    promise: Promise,
    quick: u64,
    (seconds, share): (usize, f64),
    counted: VerdictAnswer,
    shares: Process,
) -> Case {
    let happened = move |seed| {
        let mut random = Random::new(Random::new(seed).next());
        let rows = shares(&mut random, seconds, share).into_iter().map(|share| {
            // As many of a thousand, at random: the rest decides about one more.
            let late = 1000.0 * share.clamp(0.0, 1.0);
            late as u64 + u64::from(random.unit() < late.fract())
        });
        let run = testing::of_rows(BudgetClass::NinetyFive, &[rows.collect()]);
        verdict::judge(&run, &[], &Integrity::Sealed).answer == counted
    };
    Case { claim, process, promise, runs: 600, quick, happened: Box::new(happened) }
}

fn time(seconds: usize) -> String {
    rtproof_judge::units::duration(seconds as u64 * 1_000_000_000)
}

/// A binomial share, by its normal approximation.
fn independent(random: &mut Random, n: usize, m: f64) -> Vec<f64> {
    let sd = (m * (1.0 - m) / 1000.0).sqrt();
    (0..n).map(|_| (m + sd * random.normal()).max(0.0)).collect()
}

fn timetable(random: &mut Random, n: usize, m: f64) -> Vec<f64> {
    let phase = random.below(50) as usize;
    (0..n).map(|s| if (s + phase) % 50 < 5 { (10.0 * m).min(1.0) } else { 0.0 }).collect()
}

fn outage(random: &mut Random, n: usize, m: f64) -> Vec<f64> {
    let length = (m * n as f64).round() as usize;
    let from = random.below((n - length) as u64) as usize;
    (0..n).map(|s| if (from..from + length).contains(&s) { 1.0 } else { 0.0 }).collect()
}

fn sinus(random: &mut Random, n: usize, m: f64, period: f64) -> Vec<f64> {
    let phase = random.unit() * std::f64::consts::TAU;
    let at = |s: usize| (std::f64::consts::TAU * s as f64 / period + phase).sin();
    (0..n).map(|s| m * (1.0 + at(s))).collect()
}

/// Late where a state of first order with unit variance is above the quantile of the share.
fn state(random: &mut Random, n: usize, m: f64, tau: f64) -> Vec<f64> {
    // Ten looks at each second.
    let keep = (-0.1 / tau).exp();
    let (new, limit) = ((1.0 - keep * keep).sqrt(), quantile(m));
    let mut state = random.normal();
    let mut look = || {
        state = keep * state + new * random.normal();
        u32::from(state > limit)
    };
    (0..n).map(|_| f64::from((0..10).map(|_| look()).sum::<u32>()) / 10.0).collect()
}

/// z with P(X > z) = share, by bisection of the logistic approximation's error function.
fn quantile(share: f64) -> f64 {
    let above = |z: f64| {
        // Abramowitz and Stegun 26.2.17.
        let t = 1.0 / (1.0 + 0.231_641_9 * z);
        let terms = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
        let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
        (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
    };
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if above(middle) > share { low = middle } else { high = middle }
    }
    low
}

/// Good and bad states that last as long on average; in a bad one twice the share is late.
fn hidden(random: &mut Random, n: usize, m: f64, stay: f64) -> Vec<f64> {
    let mut is_bad = random.unit() < 0.5;
    let mut left = stay * random.exponential();
    (0..n)
        .map(|_| {
            left -= 1.0;
            if left < 0.0 {
                (is_bad, left) = (!is_bad, stay * random.exponential());
            }
            if is_bad { 2.0 * m } else { 0.0 }
        })
        .collect()
}

fn walk(random: &mut Random, n: usize, m: f64) -> Vec<f64> {
    let mut at = 0.0;
    let mut all: Vec<f64> = (0..n)
        .map(|_| {
            // Back to the middle within some hundred seconds.
            at = 0.99 * at + 0.14 * random.normal();
            f64::exp(at)
        })
        .collect();
    // The mean of a lognormal of unit variance.
    all.iter_mut().for_each(|share| *share = (*share * m / 0.5_f64.exp()).min(1.0));
    all
}

/// Fractional Gaussian noise as a sum of states from a second to some hours, late where it is high.
fn fractional(random: &mut Random, n: usize, m: f64, hurst: f64) -> Vec<f64> {
    let taus: Vec<f64> = (0..14).map(|i| f64::powi(2.0, i)).collect();
    let weights: Vec<f64> = taus.iter().map(|tau| tau.powf(2.0 * hurst - 2.0)).collect();
    let all: f64 = weights.iter().sum();
    let limit = quantile(m);
    let mut states: Vec<f64> = taus.iter().map(|_| random.normal()).collect();
    (0..n)
        .map(|_| {
            let mut sum = 0.0;
            for ((state, tau), weight) in states.iter_mut().zip(&taus).zip(&weights) {
                let keep = (-1.0 / tau).exp();
                *state = keep * *state + (1.0 - keep * keep).sqrt() * random.normal();
                sum += (weight / all).sqrt() * *state;
            }
            if sum > limit { 1.0 } else { 0.0 }
        })
        .collect()
}

/// Each ten late wake-ups cause more within some seconds; begun long before.
fn hawkes(random: &mut Random, n: usize, m: f64, branching: f64) -> Vec<f64> {
    let before = 200.0;
    let mut open = Vec::new();
    let (rate, mut at) = (100.0 * m * (1.0 - branching), 0.0);
    while at < n as f64 + before {
        at += random.exponential() / rate;
        open.push(at);
    }
    let mut all = vec![0.0_f64; n];
    while let Some(at) = open.pop() {
        if at >= before && ((at - before) as usize) < n {
            all[(at - before) as usize] += 0.01;
        }
        let mut left = random.exponential();
        while left < branching {
            open.push(at + random.exponential());
            left += random.exponential();
        }
    }
    all.iter_mut().for_each(|share| *share = share.min(1.0));
    all
}

/// All late in stretches of a mean length, in seconds, the rest on time.
fn stretches(random: &mut Random, n: usize, m: f64, mean: f64, length: Length) -> Vec<f64> {
    let gap = mean * (1.0 - m) / m;
    let mut all = vec![0.0_f64; n];
    // In the middle of one or between two, as it falls; far enough before the beginning.
    let mut at = -(100.0 * (mean + gap)) * random.unit();
    while at < n as f64 {
        let (from, to) = (at, at + mean * length(random));
        for (s, share) in all.iter_mut().enumerate().skip(from.max(0.0) as usize) {
            let inside = to.min(s as f64 + 1.0) - from.max(s as f64);
            if inside <= 0.0 {
                break;
            }
            *share = (*share + inside).min(1.0);
        }
        at = to + gap * random.exponential();
    }
    all
}

fn exponential(random: &mut Random) -> f64 {
    random.exponential()
}

fn weibull(random: &mut Random) -> f64 {
    random.exponential().powi(2) / 2.0
}

fn lognormal(random: &mut Random, sd: f64) -> f64 {
    (sd * random.normal() - sd * sd / 2.0).exp()
}

fn pareto(random: &mut Random) -> f64 {
    random.unit().max(1e-9).powf(-1.0 / 1.5) / 3.0
}

fn forty(random: &mut Random) -> f64 {
    let times = if random.unit() < 0.05 { 40.0 } else { 1.0 };
    times * random.exponential() / 2.95
}
