//! Planted causes: what `prove` says about each spike beside what the plant wrote down. The same
//! judgement as that of `make bench`, with causes that user space cannot plant, on other kernels.

use std::time::Duration;

use anyhow::{Context, Result};

use super::common;
use super::planted::{
    DAEMON, DELIVERY, FREQUENCY, HARD_IRQ, IDLE_EXIT, INTERRUPT, IPI, IRQ_THREAD, IRQS_OFF,
    KWORKER, LOCK, NEIGHBOUR, NMI, PREEMPT_OFF, Planted, SMI, SOFT_IRQ, STOPPED, THROTTLED,
};
use crate::blame::{self, Counted, Expected, Judged, Kept, Stretches};
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::plants::Plant;
use crate::seen::Evidence;

/// Spikes that a plant must hit at least; each acts some twenty times.
const LEAST_SPIKES: usize = 5;

/// What a hypervisor does that gives its host to others: all CPUs of the guest stand still at once.
/// Nothing is planted in the guest.
const EMULATOR: Planted = Planted {
    name: "emulator-stopped",
    causes: &["stall"],
    culprit: &[],
    least_ns: (EMULATOR_STOP_MS - 20) * 1_000_000,
    // Where both CPUs were busy nothing rules out the code that was on them, and rtproof says so.
    certain_percent: 50,
    // Each stop meets other code. Where 99 % are right, one of ten is wrong in 10 % of runs, two in
    // 0.4 %; the truth bench counts all.
    wrong_most: 1,
    ..DAEMON
};
/// The same where the thread is at work half the time: what it did when its host stopped is not to
/// blame.
const EMULATOR_AT_WORK: Planted =
    Planted { name: "emulator-stopped-at-work", certain_percent: 0, ..EMULATOR };
/// How long, in ms; and a spike of it has at least so much.
const EMULATOR_STOP_MS: u64 = 100;
/// How long after the word on the console.
const EMULATOR_AFTER_MS: u64 = 60;
/// From the word on the console to the end of the stop, in ms: the host is shared.
const EMULATOR_WITHIN_MS: u64 = 400;
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for planted in [DAEMON, IRQS_OFF, PREEMPT_OFF, HARD_IRQ] {
        cases.push(case(planted, "rt-6.1", Tier::One));
    }
    for planted in [NEIGHBOUR, LOCK, INTERRUPT, SMI, STOPPED, THROTTLED] {
        cases.push(case(planted, "rt-6.1", Tier::Two));
    }
    for planted in [IPI, NMI, KWORKER, IRQ_THREAD, FREQUENCY, IDLE_EXIT] {
        cases.push(case(planted, "rt-6.1", Tier::Two));
    }
    for planted in [IPI, KWORKER, IRQ_THREAD, FREQUENCY, IDLE_EXIT] {
        cases.push(case(planted, "stock-7.2", Tier::Two));
    }
    for planted in [DAEMON, IRQS_OFF, PREEMPT_OFF, HARD_IRQ, SOFT_IRQ, DELIVERY] {
        cases.push(case(planted, "stock-6.1", Tier::Two));
    }
    for planted in [DAEMON, IRQS_OFF, HARD_IRQ, SOFT_IRQ] {
        cases.push(case(planted, "stock-7.2", Tier::Two));
    }
    // No module there: no headers are pinned for that kernel.
    for planted in [DAEMON, NEIGHBOUR] {
        cases.push(case(planted, "rt-6.1-arm64", Tier::Two));
    }
    for kernel in ["rt-6.1", "stock-6.1", "stock-7.2"] {
        cases.push(emulator_stopped(EMULATOR, kernel, "1ms", "idle"));
    }
    cases.push(emulator_stopped(EMULATOR_AT_WORK, "rt-6.1", "50us", "cpu --load-cpus 1"));
    cases.push(hotplug());
    cases
}

fn case(planted: Planted, kernel: &'static str, tier: Tier) -> Case {
    let Planted { name, plant, other, told, cpus, priority, .. } = planted;
    // Long enough for twenty occurrences; what is throttled is so once a second.
    let is_often = told == Counted::Occurrences;
    let plant = plant().cpu(0);
    let case = Case::new(
        format!("causes/{name}/{kernel}"),
        "each planted spike is blamed on the planted cause and culprit, and sums exactly",
        Machine::new(kernel).cpus(cpus),
    )
    .tier(tier)
    .plant(if is_often { plant.lasting_ms(2_500) } else { plant })
    .script(format!(
        "traced run --for {}s --budget 200us --load idle --cpus 0 --priority {priority}",
        if is_often { 4 } else { 8 }
    ))
    .expect(move |seen, expect| {
        // The fair server has two plants; the one that suffers has the gaps.
        let truth = seen.truth()?;
        let books = truth.iter().map(|line| Stretches::of_truth(line.at(""), planted.told));
        let acted = books.fold(Stretches::default(), Stretches::with);
        judged(seen, expect, &planted, kernel, acted)
    });
    if !is_often {
        return case.unplanted("planted spikes");
    }
    case.mutation("another cause is planted", "blamed on the planted cause", move |case| {
        case.boots[0].plants = vec![other().cpu(0).lasting_ms(2_500)];
    })
}

/// The planted spikes are there, and their causes are the planted ones.
fn judged(
    seen: &Evidence,
    expect: &mut Expect,
    planted: &Planted,
    kernel: &str,
    acted: Stretches,
) -> Result<()> {
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 1);
    let kept = kept(seen, planted, kernel, acted)?;
    // What was lost while the recorder read its frozen rings is said to be so, and no blame.
    let complete = || kept.judged.iter().filter(|judged| !judged.incomplete);
    let wrong: Vec<&Judged> = complete().filter(|judged| !judged.right).collect();
    let most = planted.wrong_most;
    let what = format!("{most} at most, of {}", kept.judged.len());
    expect.that("blamed on the planted cause: others", &what, wrong.len() <= most, &wrong);
    let least = if planted.told == Counted::Occurrences { LEAST_SPIKES } else { 2 };
    let count = complete().count();
    expect.that("planted spikes", &format!("{least} at least"), count >= least, count);
    let sums = kept.sums;
    expect.that("spikes that are shown", "some", sums.shown > 0, sums.shown);
    expect.equal("spikes that sum to the nanosecond", sums.exact, sums.shown);
    let percent = sums.planted_certain_ns * 100 / sums.planted_ns.max(1);
    expect.within(
        "latency with one possible cause, percent",
        percent,
        planted.certain_percent..=100,
    );
    // A mutation keeps nothing: it is not what the matrix shows.
    if expect.failures().is_empty() {
        let name = format!("{}{}-{kernel}.json", Kept::PREFIX, planted.name);
        seen.keep(&name, &serde_json::to_string_pretty(&kept)?)?;
    }
    Ok(())
}

fn kept(seen: &Evidence, planted: &Planted, kernel: &str, acted: Stretches) -> Result<Kept> {
    let report = seen.report("run")?;
    let plant = format!("{} ({kernel})", planted.name);
    let expected = Expected {
        plant: plant.clone(),
        causes: planted.causes.iter().map(ToString::to_string).collect(),
        culprit: planted.culprit.iter().map(ToString::to_string).collect(),
        acted,
        least_ns: planted.least_ns,
    };
    let record = seen.path("run.rtproof")?;
    let spikes = blame::spikes(&record).context("spikes of the record")?;
    let sums = blame::sums(report.at(""), &expected);
    Ok(Kept { plant, judged: expected.judge(&spikes), sums })
}

/// The host stops the emulator ten times. Guests of several CPUs have their time from the host:
/// they see the gap. The guest's own clock says when, at the word that asks for it.
fn emulator_stopped(planted: Planted, kernel: &'static str, period: &str, load: &str) -> Case {
    Case::new(
        format!("causes/{}/{kernel}", planted.name),
        "each stop of the emulator is blamed on a stall below the kernel, and sums exactly",
        Machine::new(kernel).cpus(2).multi_threaded(),
    )
    .script(format!(
        "stops() {{
             lab-plant wait-for --after 2s
             for stop in $(seq 10); do
                 cut -d ' ' -f 1 /proc/uptime >>/host/stops
                 cue stop
                 sleep 0.7
             done
         }}
         stops &
         traced run --for 11s --period {period} --budget 20ms --load {load} --cpus 0"
    ))
    .on("stop", |guest| {
        // Not while the word is written, which the kernel does with interrupts off.
        std::thread::sleep(Duration::from_millis(EMULATOR_AFTER_MS));
        guest.stop_for(Duration::from_millis(EMULATOR_STOP_MS))
    })
    .expect(move |seen, expect| {
        let stops = seen.text("stops")?;
        let stop = |line: &str| -> Result<(u64, u64)> {
            let at_ms = (line.parse::<f64>().context("a time in seconds")? * 1e3) as u64;
            // In hundredths of a second.
            let (from_ms, to_ms) = (at_ms - 10, at_ms + EMULATOR_WITHIN_MS);
            Ok((from_ms * 1_000_000, to_ms * 1_000_000))
        };
        let acted = stops.lines().map(stop).collect::<Result<_>>()?;
        judged(seen, expect, &planted, kernel, Stretches::of(acted))
    })
    .other_word("cue stop", "true stop", "planted spikes")
}

/// A CPU that goes stops all others for a moment; between emulated CPUs that take turns, other
/// delays are longer, so that it is asked for as a share only. No multiple of the period: each stop
/// meets another moment of it.
fn hotplug() -> Case {
    Case::new(
        "causes/hotplug/rt-6.1",
        "a CPU that is taken away is blamed for the stop of the others",
        Machine::new("rt-6.1").cpus(2),
    )
    .plant(Plant::cpu_offline(1).times(30).every_us(307_173).down_ms(100))
    .script("traced run --for 10s --budget 500us --spike 100us --load idle --cpus 0")
    .expect(move |seen, expect| {
        let report = seen.report("run")?;
        let causes = report.list("/spikes/causes");
        let named = causes.iter().any(|row| row["cause"] == "hotplug");
        expect.that("shares of the CPU that goes", "some", named, causes);
        Ok(())
    })
    .unplanted("shares of the CPU that goes")
}
