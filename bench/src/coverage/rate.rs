//! Class 100: late episodes, of which fewer than three an hour are asked for, and late seconds.

use std::sync::LazyLock;

use rtproof_judge::{Integrity, Verdict, VerdictAnswer, testing, verdict};
use rtproof_record::{
    BudgetClass, Run,
    run::{Second, Totals},
};
use rtproof_stats::{Histogram, Layout, Moments, Sample, binomial::Random, evidence::LateSpans};

use super::case::{Case, Promise};

const PERIOD_NS: u64 = 1_000_000;

const MINUTE_MS: u64 = 60_000;

/// Episodes an hour that are asked for.
const ASKED: f64 = 3.0;
/// The shortest run that can be accepted, hours: -ln(0.04) / 3.
const SHORTEST_H: f64 = 1.073;

/// A group: when it begins, on how many of four CPUs, of how many late wake-ups.
#[derive(Clone, Copy)]
struct Group {
    at_h: f64,
    cpus: u32,
    late: u64,
}

/// Groups of so many hours, at so many an hour on average.
type Process = fn(&mut Random, f64, f64) -> Vec<Group>;

const ACCEPTS: &str = "class 100 accepts a machine with episodes at the rate asked for";
const REFUSES: &str = "class 100 refuses a machine with late seconds at the rate asked for";
const BOUND: &str = "the rate of episodes is above the one proven, at some look";
const GOOD: &str = "class 100 accepts a good machine";
const BAD: &str = "class 100 refuses a bad machine";
const HOPELESS: &str = "class 100 does not accept a hopeless machine";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = wrong();
    cases.extend(power());
    cases.extend(hopeless());
    cases
}

/// A wrong answer; half a point above the stated error is the most that the printed condition
/// costs near its edge.
const WRONG: Promise = Promise::AtMost(0.065);

/// What must not happen.
fn wrong() -> Vec<Case> {
    let processes: [(&str, Process, [&str; 2]); 20] = [
        ("steady", steady, ["", ""]),
        ("steady, four CPUs struck at once", at_once, ["", ""]),
        ("steady, each on one of four CPUs", spread, ["", ""]),
        ("steady, 1 to 100 wake-ups", sizes, ["", ""]),
        ("pairs within 30 s", |r, h, rate| clusters(r, h, rate, 1), ["", ""]),
        ("tens within 30 s", |r, h, rate| clusters(r, h, rate, 9), ["", ""]),
        ("periodic", periodic, ["", ""]),
        ("rising from none to twice the rate", rising, ["", ""]),
        ("falling from twice the rate to none", falling, ["", ""]),
        ("a sinus of 1 h", |r, h, rate| sinus(r, h, rate, 1.0), ["", ""]),
        ("outages of 10 s", |r, h, rate| outages(r, h, rate, 10.0), ["", ""]),
        ("outages of 2 min", |r, h, rate| outages(r, h, rate, 120.0), ["", ""]),
        (
            "each causes 0.8 more in 10 s (Hawkes)",
            |r, h, rate| hawkes(r, h, rate, 0.8, 10.0),
            ["", ""],
        ),
        (
            "each causes 0.6 more in 5 min (Hawkes)",
            |r, h, rate| hawkes(r, h, rate, 0.6, 300.0),
            [LASTS, ""],
        ),
        ("outages of 10 min", |r, h, rate| outages(r, h, rate, 600.0), [LASTS, LASTS]),
        ("all in 5 of 50 min", |r, h, rate| bad(r, h, rate, 5.0, 50.0), [LASTS, LASTS]),
        ("all in 2 of 100 min", |r, h, rate| bad(r, h, rate, 2.0, 100.0), [RARE, RARE]),
        ("gaps lognormal 1", |r, h, rate| gaps(r, h, rate, 1.0), ["", ""]),
        ("gaps lognormal 2", |r, h, rate| gaps(r, h, rate, 2.0), [RARE, RARE]),
        ("a sinus of 24 h", |r, h, rate| sinus(r, h, rate, 24.0), [DAY, DAY]),
    ];
    let mut cases = Vec::new();
    for (name, process, conditions) in processes {
        let rate = rate_of(process, episodes);
        for (times, condition) in [1.0, 2.0].into_iter().zip(conditions) {
            let hours = SHORTEST_H * times;
            let promise = if condition.is_empty() { WRONG } else { Promise::Unless(condition) };
            let what = move |seed| answers(process, seed, hours, rate) == VerdictAnswer::Accepted;
            cases.push(case(ACCEPTS, format!("{name}, {hours:.1} h"), promise, what));
        }
    }
    for (name, process, _) in processes {
        let rate = rate_of(process, late_seconds);
        for hours in [1.0 / 60.0, 0.3, SHORTEST_H, 5.2] {
            let what = move |seed| answers(process, seed, hours, rate) == VerdictAnswer::Refused;
            let length = rtproof_judge::units::duration((hours * 3.6e12) as u64);
            cases.push(case(REFUSES, format!("{name}, {length}"), WRONG, what));
        }
    }
    for (claim, answer) in [(ACCEPTS, VerdictAnswer::Accepted), (REFUSES, VerdictAnswer::Refused)] {
        cases.push(looked(claim, move |verdict| verdict.answer == answer));
    }
    let is_under = |verdict: &Verdict| {
        verdict
            .basis
            .late_seconds
            .and_then(|late| late.proven_per_hour)
            .is_some_and(|rate| rate < ASKED)
    };
    cases.push(looked(BOUND, is_under));
    cases
}

/// The rate that a process must be given for [`ASKED`] of what is counted to come in an hour, in
/// the long run.
fn rate_of(process: Process, counted: fn(&[Group]) -> u64) -> f64 {
    const HOURS: f64 = 4800.0;
    let mut rate = ASKED;
    // What is counted may grow less than the rate does.
    for _ in 0..4 {
        let groups = process(&mut Random::new(7), HOURS, rate);
        rate *= ASKED * HOURS / (counted(&groups) as f64).max(1.0);
    }
    rate
}

fn seconds_of(groups: &[Group]) -> Vec<u64> {
    let mut seconds: Vec<u64> = groups.iter().map(|group| (group.at_h * 3600.0) as u64).collect();
    seconds.sort_unstable();
    seconds.dedup();
    seconds
}

fn late_seconds(groups: &[Group]) -> u64 {
    seconds_of(groups).len() as u64
}

/// By the dead time of the rate asked for.
fn episodes(groups: &[Group]) -> u64 {
    let spans = seconds_of(groups).into_iter().map(|second| second..=second);
    LateSpans::of(spans.collect()).episodes((3600.0 / 4.0 / ASKED) as u64)
}

/// What the sentence of class 100 supposes.
const LASTS: &str = "what makes wake-ups late lasts longer than the condition says";
/// What is said of every run.
const RARE: &str = "episodes rarer than one in a third of the run can be unseen";
const DAY: &str = "another time of the day";

fn hopeless() -> Vec<Case> {
    type IsLate = fn(u64) -> bool;
    let machines: [(&str, IsLate); 4] = [
        ("always late", |_| true),
        ("every tenth second", |s| s % 10 == 0),
        ("from the middle on", |s| s >= 1800),
        ("10 minutes of an hour", |s| (900..1500).contains(&s)),
    ];
    let of = |(name, is_late): (&'static str, IsLate)| {
        let happened = move |_| {
            let rows = (0..3600).map(|s| if is_late(s) { 1000 } else { 0 }).collect();
            let mut run = testing::of_rows(BudgetClass::Hundred, &[rows]);
            [125, 3000, 30_000, 360_000].into_iter().all(|rate| {
                run.options.requirement.rate_per_1000h = rate;
                let answer = verdict::judge(&run, &[], &Integrity::Sealed).answer;
                // At the lower rates such a machine is refused.
                answer == VerdictAnswer::Refused
                    || answer != VerdictAnswer::Accepted && rate > 30_000
            })
        };
        Case { runs: 1, quick: 1, ..case(HOPELESS, name.into(), Promise::AtLeast(1.0), happened) }
    };
    machines.into_iter().map(of).collect()
}

/// Whether something is so at one of many looks at a run.
fn looked(claim: &'static str, is_so: impl Fn(&Verdict) -> bool + Sync + 'static) -> Case {
    let happened = move |seed| {
        let groups = steady(&mut Random::new(seed), LOOKED_H, ASKED);
        looks(&groups, seed).any(|verdict| is_so(&verdict))
    };
    let about = "steady, looked at 40 times up to 17.2 h".to_owned();
    Case { runs: 600, quick: 0, ..case(claim, about, WRONG, happened) }
}

fn power() -> Vec<Case> {
    let at = |claim, answer, share: f64, times: f64, text: &str| {
        let hours = SHORTEST_H * times;
        let what = move |seed| answers(steady, seed, hours, share * ASKED) == answer;
        let about = format!("{text}, {times} times the shortest run");
        case(claim, about, Promise::AtLeast(0.9), what)
    };
    vec![
        at(GOOD, VerdictAnswer::Accepted, 0.01, 1.01, "a hundredth of the rate asked for"),
        at(GOOD, VerdictAnswer::Accepted, 0.1, 4.0, "a tenth"),
        at(BAD, VerdictAnswer::Refused, 4.0, 16.0, "four times the rate asked for"),
        at(BAD, VerdictAnswer::Refused, 10.0, 4.0, "ten times"),
        at(BAD, VerdictAnswer::Refused, 100.0, 0.1, "a hundred times"),
    ]
}

fn case(
    claim: &'static str,
    process: String,
    promise: Promise,
    happened: impl Fn(u64) -> bool + Sync + 'static,
) -> Case {
    Case { claim, process, promise, runs: 2000, quick: 5, happened: Box::new(happened) }
}

fn answers(process: Process, seed: u64, hours: f64, rate: f64) -> VerdictAnswer {
    let mut random = Random::new(seed);
    judged(&process(&mut random, hours, rate), hours, seed).answer
}

/// Hours of a run that is looked at many times.
const LOOKED_H: f64 = 17.2;

/// Verdicts on the same run after 0.4, 0.8 ... 17.2 hours.
fn looks(groups: &[Group], seed: u64) -> impl Iterator<Item = Verdict> {
    (1..=40).map(move |look| judged(groups, LOOKED_H * f64::from(look) / 40.0, seed))
}

fn judged(groups: &[Group], hours: f64, seed: u64) -> Verdict {
    verdict::judge(&run(groups, hours, seed), &[], &Integrity::Sealed)
}

/// A run of four CPUs at 1 ms with these groups, in rows of a minute: class 100 reads the late
/// wake-ups themselves.
fn run(groups: &[Group], hours: f64, seed: u64) -> Run {
    static EMPTY: LazyLock<Run> = LazyLock::new(|| {
        let mut run = testing::run(BudgetClass::Hundred, 4, 1, &[]);
        run.options.requirement.rate_per_1000h = (ASKED * 1000.0) as u64;
        for thread in &mut run.threads {
            (thread.seconds, thread.top) = (Vec::new(), Vec::new());
            (thread.totals, thread.wake) = (Totals::default(), Histogram::new(Layout::FINE));
        }
        run
    });
    let mut run = EMPTY.clone();
    let mut random = Random::new(seed ^ 0xC0FE);
    let due = (hours * 3600.0 * 1000.0) as u64;
    run.options.duration_ns = due * PERIOD_NS;
    run.options.phases[0].to_ns = run.options.duration_ns;
    let mut late: Vec<Vec<u64>> = vec![Vec::new(); 4];
    for group in groups.iter().filter(|group| group.at_h < hours) {
        let (first, at) = (random.below(4), (group.at_h * 3600.0 * 1000.0) as u64);
        for cpu in 0..u64::from(group.cpus) {
            let wake_ups = (0..group.late).map(|i| at + i).filter(|&ms| ms < due);
            late[((first + cpu) % 4) as usize].extend(wake_ups);
        }
    }
    for (thread, late) in run.threads.iter_mut().zip(&mut late) {
        late.sort_unstable();
        late.dedup();
        let (n, totals) = (late.len() as u64, &mut thread.totals);
        totals.late_sampled = n;
        let mut late_left = &late[..];
        let row = |minute: u64| {
            let (from, to) = (minute * MINUTE_MS, due.min((minute + 1) * MINUTE_MS));
            let (own, rest) = late_left.split_at(late_left.partition_point(|&ms| ms < to));
            late_left = rest;
            let mut wake = on_time(to - from - own.len() as u64);
            own.iter().for_each(|_| {
                wake.push(150_000);
            });
            let late_sampled = own.len() as u64;
            Second {
                from_ns: from * PERIOD_NS,
                to_ns: to * PERIOD_NS,
                max_at_ns: own.first().map_or(from, |&ms| ms) * PERIOD_NS,
                wake: Vec::new(),
                missed: Vec::new(),
                intervals: Moments::default(),
                totals: Totals { wake, late_sampled, ..Totals::default() },
            }
        };
        thread.seconds = (0..due.div_ceil(MINUTE_MS)).map(row).collect();
        for row in &thread.seconds {
            totals.wake.merge(&row.totals.wake);
        }
        let apart = late.windows(2).filter(|pair| pair[1] - pair[0] > 10).count() as u64;
        totals.late_clusters = if n == 0 { 0 } else { apart + 1 };
        let sample = |&ms: &u64| Sample { due_ns: ms * PERIOD_NS, latency_ns: 150_000 };
        thread.top = late.iter().map(sample).collect();
        if let Some(end) = &mut thread.end {
            end.scheduled = due;
        }
    }
    run
}

/// So many wake-ups after 5 µs, by doubling.
fn on_time(n: u64) -> Moments {
    let mut one = Moments::default();
    one.push(5000);
    let mut all = Moments::default();
    for bit in 0..u64::BITS - n.leading_zeros() {
        if n >> bit & 1 == 1 {
            all.merge(&one);
        }
        one.merge(&one.clone());
    }
    all
}

fn one(at_h: f64) -> Group {
    Group { at_h, cpus: 1, late: 3 }
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

fn steady(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    times(random, hours, rate).into_iter().map(one).collect()
}

fn at_once(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    steady(random, hours, rate).into_iter().map(|group| Group { cpus: 4, ..group }).collect()
}

fn spread(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    (0..4).flat_map(|_| steady(random, hours, rate / 4.0)).collect()
}

fn sizes(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    let mut groups = steady(random, hours, rate);
    groups.iter_mut().for_each(|group| group.late = 1 + random.below(100));
    groups
}

fn periodic(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    let first = random.unit() / rate;
    (0..).map(|i| first + f64::from(i) / rate).take_while(|&at| at < hours).map(one).collect()
}

fn rising(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    let keeps = |at: f64, random: &mut Random| random.unit() < at / hours;
    let all = times(random, hours, 2.0 * rate);
    all.into_iter().filter(|&at| keeps(at, random)).map(one).collect()
}

fn falling(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    let all = rising(random, hours, rate);
    all.into_iter().map(|group| Group { at_h: hours - group.at_h, ..group }).collect()
}

/// Neyman and Scott's: each episode of so many more within 30 s.
fn clusters(random: &mut Random, hours: f64, rate: f64, more: usize) -> Vec<Group> {
    let parents = times(random, hours, rate);
    let mut all = parents.clone();
    for _ in 0..more {
        all.extend(parents.iter().map(|at| at + random.unit() / 120.0));
    }
    all.into_iter().map(one).collect()
}

/// Outages of an exponential length, so many an hour: a wake-up of each second.
fn outages(random: &mut Random, hours: f64, rate: f64, mean_s: f64) -> Vec<Group> {
    let starts = times(random, hours, rate);
    let outage = |start: f64, random: &mut Random| {
        let seconds = (mean_s * random.exponential()).ceil() as u64;
        (0..seconds).map(move |s| one(start + s as f64 / 3600.0)).collect::<Vec<_>>()
    };
    starts.into_iter().flat_map(|start| outage(start, random)).collect()
}

fn sinus(random: &mut Random, hours: f64, rate: f64, period_h: f64) -> Vec<Group> {
    let phase = random.unit() * std::f64::consts::TAU;
    let at = |at: f64| (1.0 + (std::f64::consts::TAU * at / period_h + phase).sin()) / 2.0;
    let all = times(random, hours, 2.0 * rate);
    all.into_iter().filter(|&time| random.unit() < at(time)).map(one).collect()
}

/// All in so many minutes of each so many.
fn bad(random: &mut Random, hours: f64, rate: f64, minutes: f64, of: f64) -> Vec<Group> {
    let phase = random.unit() * of;
    let is_bad = |at: &f64| (60.0 * at + phase) % of < minutes;
    times(random, hours, rate * of / minutes).into_iter().filter(is_bad).map(one).collect()
}

/// A renewal process whose gaps are lognormal, begun long before.
fn gaps(random: &mut Random, hours: f64, rate: f64, sd: f64) -> Vec<Group> {
    let mut at = -200.0 / rate * (0.5 + random.unit());
    let mut all = Vec::new();
    while at < hours {
        at += (sd * random.normal() - sd * sd / 2.0).exp() / rate;
        all.push(at);
    }
    all.into_iter().filter(|at| (0.0..hours).contains(at)).map(one).collect()
}

/// Hawkes': each causes more, so many on average, after so many seconds on average; begun long ago.
fn hawkes(random: &mut Random, hours: f64, rate: f64, branching: f64, mean_s: f64) -> Vec<Group> {
    const BEFORE_H: f64 = 3.0;
    let mut open = times(random, hours + BEFORE_H, rate * (1.0 - branching));
    let mut all = Vec::new();
    while let Some(at) = open.pop() {
        all.push(at - BEFORE_H);
        let children = times(random, branching, 1.0).len();
        open.extend((0..children).map(|_| at + random.exponential() * mean_s / 3600.0));
    }
    all.into_iter().filter(|at| (0.0..hours).contains(at)).map(one).collect()
}
