//! A stall of known length: how late, how many missed, to the wake-up.

use anyhow::Result;

use super::common;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::plants::Plant;
use crate::seen::{Evidence, Json};

const MS: i64 = 1_000_000;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kernel, tier) in [("rt-6.1", Tier::One), ("stock-6.1", Tier::One)] {
        cases.push(interrupts_off(kernel, tier));
    }
    for kernel in ["rt-6.12", "stock-7.2"] {
        cases.push(interrupts_off(kernel, Tier::Two));
    }
    cases.push(stalled("preemption", Plant::preempt_off()));
    cases.push(stalled("interrupt", Plant::hard_irq()));
    cases.push(stalled("smi", Plant::smi()));
    cases.push(soft_interrupt("stock-6.1"));
    cases.push(soft_interrupt("rt-6.1"));
    cases
}

/// Interrupts off for 3 ms, twenty times, with a period of 1 ms. The stall begins 300 µs after a
/// wake-up: that after it (0.7 ms later) is 2.3 ms late, and the two due meanwhile are missed.
fn interrupts_off(kernel: &'static str, tier: Tier) -> Case {
    Case::new(
        format!("stall/interrupts-off/{kernel}"),
        "a planted 3 ms stall is counted to the wake-up: scheduled = sampled + missed",
        Machine::new(kernel),
    )
    .tier(tier)
    .plant(Plant::irqs_off().cpu(0).us(3000).every_ms(100).times(10))
    .script("prove stall --for 2s --budget 1ms --load idle --cpus 0")
    .expect(|seen, expect| {
        let report = seen.report("stall")?;
        common::adds_up(expect, "stall", &report, 1);
        common::sealed(expect, "stall", &report);
        expect.equal("exit code", seen.rc("stall")?, 2);
        expect.equal("scheduled", report.number("/all/scheduled")?, 2000);
        arithmetic(seen, &report, expect)
    })
    .unplanted("exit code")
    .other_word("--for 2s", "--for 1s", "scheduled")
    .mutation("stalls of 2 ms", "length of the stalls", |case| {
        case.boots[0].plants = vec![Plant::irqs_off().cpu(0).us(2000).every_ms(100).times(10)];
    })
}

/// Begin and end of each stall, CLOCK_MONOTONIC nanoseconds.
fn stalls_of(truth: &Json) -> Vec<(i64, i64)> {
    let pair = |pair: &serde_json::Value| Some((pair[0].as_i64()?, pair[1].as_i64()?));
    truth.list("/occurrences").iter().filter_map(pair).collect()
}

/// From when a thread is due, or the stall that delayed it ends, to its clock read.
const WAKE_NS: i64 = 50_000;

/// What each stall must have cost, computed from its own begin and end.
fn arithmetic(seen: &Evidence, report: &Json, expect: &mut Expect) -> Result<()> {
    let origin = report.number("/run/started_monotonic_ns")?
        + report.number("/cpus/0/thread/first_due_ns")?;
    let truth = seen.truth()?;
    let stalls: Vec<(i64, i64)> = truth.iter().flat_map(stalls_of).collect();
    expect.equal("stalls planted", stalls.len(), 10);
    let length_ns: i64 = stalls.iter().map(|(begin, end)| end - begin).sum();
    expect.within("length of the stalls, µs", length_ns / 10_000, 3_000..=3_001);
    let (mut least, mut most) = (0, 0);
    let (mut worst, mut worst_caught) = (0, 0);
    for (begin, end) in stalls {
        let late_if_due_after =
            |begin: i64| end - (origin + ((begin - origin) + MS - 1).div_euclid(MS) * MS);
        let late = late_if_due_after(begin);
        // A thread that was due just before the stall may not have read the clock yet.
        let late_if_caught = late_if_due_after(begin - WAKE_NS);
        least += late.div_euclid(MS).max(0);
        most += (late_if_caught + WAKE_NS).div_euclid(MS).max(0);
        worst = worst.max(late);
        worst_caught = worst_caught.max(late_if_caught);
    }
    // Both are the same unless a stall begins or ends within 50 µs of a wake-up that is due.
    expect.within("missed", report.number("/all/missed")?, least..=most);
    expect.within("worst, ns", report.number("/all/max_ns")?, worst..=worst_caught + WAKE_NS);
    Ok(())
}

/// Other ways to keep a CPU for 3 ms: the same lateness.
fn stalled(what: &'static str, plant: Plant) -> Case {
    Case::new(
        format!("stall/{what}/rt-6.1"),
        "3 ms without the CPU are seen as 3 ms, whoever took it",
        Machine::new("rt-6.1"),
    )
    .plant(plant.cpu(0).us(3000).every_ms(100).times(10))
    .script("prove stall --for 2s --budget 1ms --load idle --cpus 0")
    .expect(|seen, expect| {
        let report = seen.report("stall")?;
        common::adds_up(expect, "stall", &report, 1);
        expect.equal("exit code", seen.rc("stall")?, 2);
        expect.within("worst, ms", report.number("/all/max_ns")? / MS, 1..=3);
        expect.within("missed", report.number("/all/missed")?, 10..=30);
        Ok(())
    })
    .unplanted("missed")
}

/// A long soft interrupt delays real-time threads on a stock kernel, and not on PREEMPT_RT.
fn soft_interrupt(kernel: &'static str) -> Case {
    let other = if kernel == "rt-6.1" { "stock-6.1" } else { "rt-6.1" };
    Case::new(
        format!("stall/soft-interrupt/{kernel}"),
        "a long soft interrupt delays real-time threads on a stock kernel, and not on PREEMPT_RT",
        Machine::new(kernel),
    )
    .plant(Plant::soft_irq().cpu(0).us(3000).every_ms(100).times(10))
    .script("prove stall --for 2s --budget 1ms --load idle --cpus 0")
    .expect(move |seen, expect| {
        let report = seen.report("stall")?;
        common::adds_up(expect, "stall", &report, 1);
        let late = report.number("/all/late")? > 0;
        expect.equal("late wake-ups", late, kernel == "stock-6.1");
        Ok(())
    })
    .other_kernel(other, "late wake-ups")
}
