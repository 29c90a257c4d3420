//! Class 95, the intervals of quantiles and the error of the mean: wake-ups that depend on each
//! other.

mod machines;

use rtproof_judge::{Integrity, Report, VerdictAnswer, distribution, verdict};
use rtproof_record::Run;
use rtproof_stats::quantile::Q;

use super::case::{Case, Promise};
use machines::{LOG_SD, Machine, run};

const ACCEPTS_5: &str = "class 95 accepts a machine at a true share of 5 %";
const ACCEPTS_6: &str = "class 95 accepts a machine at a true share of 6 %";
const REFUSES: &str = "class 95 refuses a machine at a true share of 4 %";
const POWER: &str = "class 95 accepts a good machine";
const TENTH: Promise = Promise::AtLeast(0.9);
const WRONG: Promise = Promise::AtMost(0.05);

pub(super) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, machine, seconds, quick) in machines() {
        for (claim, share, wrong, quick) in [
            (ACCEPTS_5, 0.05, VerdictAnswer::Accepted, quick),
            (ACCEPTS_6, 0.06, VerdictAnswer::Accepted, 0),
            (REFUSES, 0.04, VerdictAnswer::Refused, 0),
        ] {
            let happened = move |seed| answer(&run(machine, seed, seconds, share)) == wrong;
            let promise = promise(machine, seconds, wrong);
            all.push(case(claim, format!("{name}, {}", time(seconds)), promise, quick, happened));
        }
    }
    all.sort_by_key(|case| [ACCEPTS_5, ACCEPTS_6, REFUSES].iter().position(|&c| c == case.claim));
    all.extend(shapes());
    all.extend(good());
    all.extend(quantiles());
    all.extend(means());
    all
}

fn machines() -> Vec<(&'static str, Machine, u64, u64)> {
    vec![
        ("independent", Machine::Independent, 60, 20),
        ("independent", Machine::Independent, 600, 0),
        ("independent", Machine::Independent, 1, 50),
        ("state of 0.5 s", Machine::State(0.5), 60, 10),
        ("state of 0.5 s", Machine::State(0.5), 600, 0),
        ("state of 3 s", Machine::State(3.0), 60, 0),
        ("state of 3 s", Machine::State(3.0), 600, 8),
        ("state of 30 s", Machine::State(30.0), 600, 4),
        ("sum of states of 0.3 to 30 s", Machine::LongMemory, 600, 0),
        ("clusters of 0.2 s", Machine::Episodes(0.2, 1.0), 20, 20),
        ("clusters of 0.2 s", Machine::Episodes(0.2, 1.0), 60, 10),
        ("episodes of 1 s, all late", Machine::Episodes(1.0, 1.0), 60, 0),
        ("episodes of 5 s, all late", Machine::Episodes(5.0, 1.0), 600, 4),
        ("episodes of 20 s, half late", Machine::Episodes(20.0, 0.5), 600, 0),
        ("episodes of 60 s, half late", Machine::Episodes(60.0, 0.5), 600, 0),
        ("episodes of 1 s, a fifth late", Machine::Episodes(1.0, 0.2), 60, 0),
        ("episodes of 1 s with a Pareto tail of 1.5", Machine::HeavyEpisodes(1.0), 600, 0),
        ("bursts of 0.5 s every 7 s", Machine::Periodic(0.5, 7.0), 60, 0),
        ("bursts of 30 s every 300 s", Machine::Periodic(30.0, 300.0), 600, 0),
        ("more and more often", Machine::Drift, 600, 0),
        ("in the second half only", Machine::Switch, 600, 4),
        ("a sinus of 100 s", Machine::Sinus(100.0), 600, 0),
    ]
}

/// A wrong answer is rare, but where the run does not hold the lateness.
fn promise(machine: Machine, seconds: u64, wrong: VerdictAnswer) -> Promise {
    match machine {
        Machine::Episodes(mean, _)
            if mean * 55.9 > seconds as f64 && wrong == VerdictAnswer::Accepted =>
        {
            Promise::Unless("episodes longer than a 56th of the run, as the verdict says")
        }
        Machine::HeavyEpisodes(_) if wrong == VerdictAnswer::Accepted => {
            Promise::Unless("what a run holds of them is mostly too little: no variance")
        }
        _ => WRONG,
    }
}

/// The same in records of other shapes.
fn shapes() -> [Case; 3] {
    let accepts = |run: &Run| answer(run) == VerdictAnswer::Accepted;
    [
        case(ACCEPTS_5, "two CPUs, one of which is late, 60 s".into(), WRONG, 0, move |seed| {
            accepts(&machines::second_cpu(Machine::Independent, seed, 60, 0.05))
        }),
        case(ACCEPTS_5, "blocks of a minute, state of 3 min, 10 h".into(), WRONG, 0, move |seed| {
            accepts(&machines::by_minutes(run(Machine::State(3.0), seed, 600, 0.05)))
        }),
        case(ACCEPTS_5, "blocks of a minute, independent, 1 h".into(), WRONG, 0, move |seed| {
            accepts(&machines::by_minutes(run(Machine::Independent, seed, 60, 0.05)))
        }),
    ]
}

fn good() -> Vec<Case> {
    let machines = [
        ("independent, 1 %", Machine::Independent, 60, 0.01, 10),
        ("independent, 4 %", Machine::Independent, 600, 0.04, 3),
        ("independent, 0.01 %", Machine::Independent, 60, 0.0001, 10),
        ("state of 0.5 s, 2 %", Machine::State(0.5), 600, 0.02, 3),
        ("never late, a level that wanders", Machine::Wander, 600, 0.0, 3),
    ];
    let of = |(name, machine, seconds, share, quick): (&str, Machine, u64, f64, u64)| {
        let happened =
            move |seed| answer(&run(machine, seed, seconds, share)) == VerdictAnswer::Accepted;
        case(POWER, format!("{name}, {}", time(seconds)), TENTH, quick, happened)
    };
    let shown = |(name, machine, seconds, share): (&str, Machine, u64, f64)| {
        let happened =
            move |seed| answer(&run(machine, seed, seconds, share)) == VerdictAnswer::Accepted;
        let none = Promise::Unless("long dependence takes a longer run, which the verdict says");
        case(POWER, format!("{name}, {}", time(seconds)), none, 0, happened)
    };
    let slow = [
        ("state of 0.5 s, 1 %", Machine::State(0.5), 60, 0.01),
        ("state of 3 s, 1 %", Machine::State(3.0), 600, 0.01),
        ("episodes of 1 s, 1 %", Machine::Episodes(1.0, 1.0), 600, 0.01),
    ];
    machines.into_iter().map(of).chain(slow.into_iter().map(shown)).collect()
}

/// Intervals that miss, and how often there is one.
fn quantiles() -> Vec<Case> {
    let machines = [
        ("independent", Machine::Independent, 60),
        ("state of 0.5 s", Machine::State(0.5), 60),
        ("state of 0.5 s", Machine::State(0.5), 600),
        ("state of 3 s", Machine::State(3.0), 60),
        ("state of 3 s", Machine::State(3.0), 600),
        ("state of 30 s", Machine::State(30.0), 600),
        ("sum of states of 0.3 to 30 s", Machine::LongMemory, 600),
    ];
    let mut all = Vec::new();
    for (misses, share) in [
        ("the interval of p50 misses", 0.5),
        ("the interval of p99 misses", 0.01),
        ("the interval of p99.9 misses", 0.001),
    ] {
        for (i, (name, machine, seconds)) in machines.into_iter().enumerate() {
            let quick = if share == 0.5 && i < 4 { 5 } else { 0 };
            all.push(case(
                misses,
                format!("{name}, {}", time(seconds)),
                WRONG,
                quick,
                move |seed| interval(machine, seed, seconds, share).is_some_and(|holds| !holds),
            ));
        }
    }
    for (process, machine, seconds, share, promise, quick) in [
        ("p50, independent", Machine::Independent, 60, 0.5, TENTH, 4),
        ("p99.9, independent", Machine::Independent, 60, 0.001, TENTH, 4),
        ("p99, state of 0.5 s", Machine::State(0.5), 600, 0.01, TENTH, 0),
        ("p50, state of 3 s", Machine::State(3.0), 600, 0.5, TENTH, 0),
        ("p99, state of 3 s", Machine::State(3.0), 600, 0.01, LONGER, 0),
        ("p50, state of 30 s", Machine::State(30.0), 600, 0.5, LONGER, 0),
    ] {
        let process = format!("{process}, {}", time(seconds));
        all.push(case("there is an interval", process, promise, quick, move |seed| {
            interval(machine, seed, seconds, share).is_some()
        }));
    }
    all
}

const LONGER: Promise = Promise::Unless("fewer than five independent events, or twenty times");

/// Whether the interval of the quantile with this upper share holds it, read literally; `None`:
/// there is none.
fn interval(machine: Machine, seed: u64, seconds: u64, share: f64) -> Option<bool> {
    // A share of 0.5 of independent wake-ups would put the median between two lumps.
    let state = match machine {
        Machine::Independent => Machine::State(1e-6),
        other => other,
    };
    let report = Report::new(&run(state, seed, seconds, share), &Integrity::Sealed);
    let is = |q: Q| (q.above as f64 / q.of as f64 - share).abs() < 1e-12;
    let found = report.all.wake.iter().find(|quantile| is(quantile.q))?;
    let low_ns = found.low_ns?;
    // Latencies are whole nanoseconds, cut off.
    Some(low_ns <= 100_000 && found.high_ns.is_none_or(|high_ns| high_ns >= 99_999))
}

fn means() -> Vec<Case> {
    [
        ("independent", Machine::State(1e-6), 60, 5),
        ("state of 0.5 s", Machine::State(0.5), 600, 3),
        ("state of 3 s", Machine::State(3.0), 600, 0),
        ("state of 30 s", Machine::State(30.0), 600, 0),
        ("sum of states of 0.3 to 30 s", Machine::LongMemory, 600, 0),
    ]
    .into_iter()
    .map(|(name, machine, seconds, quick)| {
        let process = format!("{name}, {}", time(seconds));
        let claim = "the mean lies more than 1.96 standard errors off";
        case(claim, process, WRONG, quick, move |seed| misses_mean(machine, seed, seconds))
    })
    .collect()
}

fn misses_mean(machine: Machine, seed: u64, seconds: u64) -> bool {
    let found = distribution::of_run(&run(machine, seed, seconds, 0.5));
    // The mean of a lognormal; half a nanosecond is cut off.
    let truth_ns = 100_000.0 * (LOG_SD * LOG_SD / 2.0).exp() - 0.5;
    let all = &found[0];
    let off = all.mean_ns.zip(all.mean_error_ns);
    off.is_some_and(|(mean_ns, error_ns)| (mean_ns - truth_ns).abs() > 1.96 * error_ns)
}

fn case(
    claim: &'static str,
    process: String,
    promise: Promise,
    quick: u64,
    happened: impl Fn(u64) -> bool + Sync + 'static,
) -> Case {
    Case { claim, process, promise, runs: 300, quick, happened: Box::new(happened) }
}

fn time(seconds: u64) -> String {
    rtproof_judge::units::duration(seconds * 1_000_000_000)
}

fn answer(run: &Run) -> VerdictAnswer {
    verdict::judge(run, &[], &Integrity::Sealed).answer
}
