//! Class 100: groups of late wake-ups in time, of which at most three an hour are asked for.

use std::sync::LazyLock;

use rtproof_judge::{Integrity, Verdict, VerdictAnswer, testing, verdict};
use rtproof_record::{BudgetClass, Run};
use rtproof_stats::{Moments, Sample, binomial::Random};

use super::case::{Case, Promise};

const PERIOD_NS: u64 = 1_000_000;
/// Groups an hour that are asked for.
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

const ACCEPTS: &str = "class 100 accepts a machine at the rate asked for";
const REFUSES: &str = "class 100 refuses a machine at the rate asked for";
const BOUND: &str = "the rate is above its printed upper bound, at some look";
const GOOD: &str = "class 100 accepts a good machine";
const BAD: &str = "class 100 refuses a bad machine";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = wrong();
    cases.extend(power());
    cases
}

/// What must not happen.
fn wrong() -> Vec<Case> {
    let processes: [(&str, Process, [&str; 3]); 12] = [
        ("steady", steady, [""; 3]),
        ("steady, four CPUs struck at once", at_once, [""; 3]),
        ("steady, each on one of four CPUs", spread, [""; 3]),
        ("steady, groups of 1 to 100", sizes, [""; 3]),
        ("periodic", periodic, [""; 3]),
        ("rising from none to twice the rate", rising, [""; 3]),
        ("falling from twice the rate to none", falling, [""; 3]),
        ("episodes of 2 min, three an hour", episodes_short, [FEW, "", ""]),
        ("episodes of 10 min, one an hour", episodes_hourly, [FEW, FEW, ""]),
        ("episodes of 1 h, one in 4 h", episodes_long, [RARE, RARE, ""]),
        ("each group brings 2 more within 30 s", clusters, [FEW, "", ""]),
        ("each group causes 0.6 more in 5 min (Hawkes)", hawkes, [FEW, FEW, ""]),
    ];
    let mut cases = Vec::new();
    for (claim, answer) in [(ACCEPTS, VerdictAnswer::Accepted), (REFUSES, VerdictAnswer::Refused)] {
        for (name, process, conditions) in processes {
            for (times, condition) in [1.0, 4.0, 16.0].into_iter().zip(conditions) {
                let hours = SHORTEST_H * times;
                let promise = match (claim, condition) {
                    (REFUSES, RARE) if times == 1.0 => Promise::Unless(LONG),
                    (REFUSES, _) | (_, "") => Promise::AtMost(0.05),
                    (_, condition) => Promise::Unless(condition),
                };
                let what = move |seed| answers(process, seed, hours, ASKED) == answer;
                cases.push(case(claim, format!("{name}, {hours:.1} h"), promise, what));
            }
        }
        cases.push(looked(claim, move |verdict| verdict.answer == answer));
    }
    let is_under = |verdict: &Verdict| verdict.basis.late_rate_upper_per_hour < Some(ASKED);
    cases.push(looked(BOUND, is_under));
    cases
}

/// What is said of a run with fewer than five groups.
const FEW: &str = "too few groups to test whether they come at a steady rate";
/// What is said of every run.
const RARE: &str = "episodes rarer than one in a third of the run can be unseen";
/// What a refusal rests on.
const LONG: &str = "if they come at a steady rate: an episode as long as the run looks like one";

/// Whether something is so at one of many looks at a run.
fn looked(claim: &'static str, is_so: impl Fn(&Verdict) -> bool + Sync + 'static) -> Case {
    let happened = move |seed| {
        let groups = steady(&mut Random::new(seed), LOOKED_H, ASKED);
        looks(&groups, seed).any(|verdict| is_so(&verdict))
    };
    let about = "steady, looked at 40 times up to 17.2 h".to_owned();
    Case { runs: 600, quick: 0, ..case(claim, about, Promise::AtMost(0.05), happened) }
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
        at(GOOD, VerdictAnswer::Accepted, 1.0 / 3.0, 16.0, "a third"),
        at(BAD, VerdictAnswer::Refused, 3.0, 16.0, "three times the rate asked for"),
        at(BAD, VerdictAnswer::Refused, 10.0, 1.0, "ten times"),
        at(BAD, VerdictAnswer::Refused, 100.0, 0.1, "a hundred times"),
    ]
}

fn case(
    claim: &'static str,
    process: String,
    promise: Promise,
    happened: impl Fn(u64) -> bool + Sync + 'static,
) -> Case {
    Case { claim, process, promise, runs: 2000, quick: 20, happened: Box::new(happened) }
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

/// A run of four CPUs at 1 ms with these groups, without its seconds: class 100 needs the totals
/// and the late wake-ups.
fn run(groups: &[Group], hours: f64, seed: u64) -> Run {
    static EMPTY: LazyLock<Run> = LazyLock::new(|| {
        let mut run = testing::run(BudgetClass::Hundred, 4, 1, &[]);
        run.options.requirement.rate_per_1000h = (ASKED * 1000.0) as u64;
        for thread in &mut run.threads {
            (thread.seconds, thread.top) = (Vec::new(), Vec::new());
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
        totals.wake = on_time(due - n);
        for _ in &late[..] {
            totals.wake.push(150_000);
        }
        totals.late_sampled = n;
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

/// Episodes of a length, so many an hour, in which all groups are.
fn episodes(random: &mut Random, hours: f64, rate: f64, length_h: f64, per_h: f64) -> Vec<Group> {
    let starts = times(random, hours + length_h, per_h);
    let within = |start: f64, random: &mut Random| {
        let times = times(random, length_h, rate / per_h / length_h);
        times.into_iter().map(move |at| start - length_h + at).collect::<Vec<_>>()
    };
    let all: Vec<f64> = starts.into_iter().flat_map(|start| within(start, random)).collect();
    all.into_iter().filter(|at| (0.0..hours).contains(at)).map(one).collect()
}

fn episodes_hourly(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    episodes(random, hours, rate, 1.0 / 6.0, 1.0)
}

fn episodes_short(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    episodes(random, hours, rate, 1.0 / 30.0, 3.0)
}

fn episodes_long(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    episodes(random, hours, rate, 1.0, 0.25)
}

/// Neyman and Scott's: a third of the groups are parents of two each.
fn clusters(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    let parents = times(random, hours, rate / 3.0);
    let mut all = parents.clone();
    for _ in 0..2 {
        all.extend(parents.iter().map(|at| at + random.unit() / 120.0));
    }
    all.into_iter().map(one).collect()
}

/// Hawkes': each group causes more, 0.6 on average, after 5 min on average; it began long ago.
fn hawkes(random: &mut Random, hours: f64, rate: f64) -> Vec<Group> {
    const BEFORE_H: f64 = 2.0;
    let mut open = times(random, hours + BEFORE_H, rate * 0.4);
    let mut all = Vec::new();
    while let Some(at) = open.pop() {
        all.push(at - BEFORE_H);
        let children = times(random, 0.6, 1.0).len();
        open.extend((0..children).map(|_| at + random.exponential() / 12.0));
    }
    all.into_iter().filter(|at| (0.0..hours).contains(at)).map(one).collect()
}
