//! Machines whose wake-ups depend on each other, each with a share of late ones that is known.

use rtproof_judge::testing;
use rtproof_record::{BudgetClass, Run};
use rtproof_stats::binomial::Random;

const MS_PER_S: f64 = 1000.0;
/// Budget of the simulated runs.
const BUDGET_NS: f64 = 100_000.0;
/// Spread of the logarithm of the latency where a hidden state moves it.
pub(super) const LOG_SD: f64 = 0.3;

/// What a machine does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Machine {
    /// Wake-ups know nothing of each other.
    Independent,
    /// The logarithm of the latency is a state of first order with this correlation time, seconds.
    State(f64),
    /// A sum of states from 0.3 to 30 s: nearly a power law.
    LongMemory,
    /// Episodes of this mean length in seconds, in which such a share of wake-ups is late.
    Episodes(f64, f64),
    /// Episodes whose lengths have a Pareto tail of 1.5, without a variance.
    HeavyEpisodes(f64),
    /// Bursts of a length every so often, both in seconds, at a random phase.
    Periodic(f64, f64),
    /// Late more and more often: nothing at the start, twice the share at the end.
    Drift,
    /// Late in the second half only.
    Switch,
    /// More and less often in a sinus of this period, seconds.
    Sinus(f64),
    /// Never late; a level that wanders for 100 s, and single peaks that come evenly.
    Wander,
}

/// z with P(X > z) = share.
pub(super) fn z(share: f64) -> f64 {
    let known = [
        (0.0001, 3.719_016),
        (0.001, 3.090_232),
        (0.01, 2.326_348),
        (0.02, 2.053_749),
        (0.04, 1.750_686),
        (0.05, 1.644_854),
        (0.06, 1.554_774),
        (0.5, 0.0),
    ];
    known.iter().find(|&&(p, _)| p == share).map(|&(_, z)| z).expect("a share of the table")
}

/// A run at 1 kHz in which the given share is late, in the long run.
pub(super) fn run(machine: Machine, seed: u64, seconds: u64, share: f64) -> Run {
    let values = latencies(machine, seed, seconds as usize * 1000, share);
    testing::run_of(BudgetClass::NinetyFive, 1, seconds, |_, ms| values[ms as usize])
}

/// The same on two CPUs, the first of which is never late.
pub(super) fn second_cpu(machine: Machine, seed: u64, seconds: u64, share: f64) -> Run {
    let values = latencies(machine, seed, seconds as usize * 1000, share);
    testing::run_of(BudgetClass::NinetyFive, 2, seconds, |cpu, ms| match cpu {
        0 => 5000 + ms % 977,
        _ => values[ms as usize],
    })
}

/// A run that holds a block for each minute, of 1000 wake-ups.
pub(super) fn by_minutes(mut run: Run) -> Run {
    let phases = run.options.phases.iter_mut().flat_map(|p| [&mut p.from_ns, &mut p.to_ns]);
    let seconds = run.threads.iter_mut().flat_map(|thread| &mut thread.seconds);
    let blocks = seconds.flat_map(|s| [&mut s.from_ns, &mut s.to_ns, &mut s.max_at_ns]);
    phases.chain(blocks).for_each(|ns| *ns *= 60);
    run
}

fn latencies(machine: Machine, seed: u64, n: usize, share: f64) -> Vec<u64> {
    // Neighbouring seeds may be neighbours in one stream.
    let mut random = Random::new(Random::new(seed).next());
    let of_state = |state: &f64| (BUDGET_NS * (LOG_SD * (state - z(share))).exp()) as u64;
    let at_end = |ms: usize| ms as f64 / n as f64;
    match machine {
        Machine::Independent => of_shares(&mut random, n, |_| share),
        Machine::State(seconds) => state(&mut random, n, seconds).iter().map(of_state).collect(),
        Machine::LongMemory => {
            let times = [0.3, 1.0, 3.0, 10.0, 30.0];
            let mut sum = vec![0.0; n];
            for seconds in times {
                let part = state(&mut random, n, seconds);
                sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x / f64::sqrt(5.0));
            }
            sum.iter().map(of_state).collect()
        }
        Machine::Episodes(seconds, late) => {
            let bad = episodes(&mut random, n, seconds, share / late, false);
            of_shares(&mut random, n, |ms| if bad[ms] { late } else { 0.0 })
        }
        Machine::HeavyEpisodes(seconds) => {
            let bad = episodes(&mut random, n, seconds, share / 0.5, true);
            of_shares(&mut random, n, |ms| if bad[ms] { 0.5 } else { 0.0 })
        }
        Machine::Periodic(seconds, every) => {
            let phase = random.unit() * every;
            let inside = |ms: usize| (ms as f64 / MS_PER_S + phase) % every < seconds;
            of_shares(&mut random, n, |ms| if inside(ms) { share * every / seconds } else { 0.0 })
        }
        Machine::Drift => of_shares(&mut random, n, |ms| 2.0 * share * at_end(ms)),
        Machine::Switch => {
            of_shares(&mut random, n, |ms| if 2 * ms < n { 0.0 } else { 2.0 * share })
        }
        Machine::Sinus(period) => {
            let phase = random.unit();
            let turns = |ms: usize| ms as f64 / MS_PER_S / period + phase;
            let sine = |ms: usize| (std::f64::consts::TAU * turns(ms)).sin();
            of_shares(&mut random, n, |ms| share * (1.0 + sine(ms)))
        }
        Machine::Wander => {
            let level = state(&mut random, n, 100.0);
            let peaks = of_shares(&mut random, n, |_| 0.002);
            let of = |(level, peak): (&f64, &u64)| match *peak > BUDGET_NS as u64 {
                true => 40_000 + peak / 10,
                false => (9000.0 * (0.1 * level).exp()) as u64,
            };
            level.iter().zip(&peaks).map(of).collect()
        }
    }
}

/// Late with a chance that depends on the time; else around 6 µs.
fn of_shares(random: &mut Random, n: usize, share: impl Fn(usize) -> f64) -> Vec<u64> {
    let one = |ms| {
        let late = random.unit() < share(ms);
        let within = random.unit();
        if late { 150_000 + (within * 20_000.0) as u64 } else { 5000 + (within * 2000.0) as u64 }
    };
    (0..n).map(one).collect()
}

/// A normal state of first order.
fn state(random: &mut Random, n: usize, seconds: f64) -> Vec<f64> {
    let keeps = (-1.0 / (seconds * MS_PER_S)).exp();
    let (news, mut state) = ((1.0 - keeps * keeps).sqrt(), random.normal());
    let mut step = || {
        state = keeps * state + news * random.normal();
        state
    };
    (0..n).map(|_| step()).collect()
}

/// Whether each millisecond is in an episode; the given part of the time is.
fn episodes(random: &mut Random, n: usize, seconds: f64, part: f64, heavy: bool) -> Vec<bool> {
    let mean_ms = seconds * MS_PER_S;
    let mut bad = random.unit() < part;
    let mut all = Vec::with_capacity(n);
    while all.len() < n {
        let length = match (bad, heavy) {
            (true, true) => mean_ms / 3.0 * random.unit().max(1e-12).powf(-1.0 / 1.5),
            (true, false) => mean_ms * random.exponential(),
            (false, _) => mean_ms * (1.0 - part) / part * random.exponential(),
        };
        let until = (all.len() + length as usize + 1).min(n);
        all.resize(until, bad);
        bad = !bad;
    }
    all
}
