//! Tasks that outrank the measured ones.

use anyhow::Result;

use super::common;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::plants::Plant;
use crate::seen::Evidence;

const MS: i64 = 1_000_000;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![daemon("rt-6.1", Tier::One), daemon("stock-6.1", Tier::Two)];
    cases.extend([daemon("rt-7.2", Tier::Two), daemon("rt-6.1-arm64", Tier::Two)]);
    cases.push(neighbour());
    cases.push(hog());
    cases
}

/// The daemon of the article: named with policy, priority and unit, and seen in the latencies.
fn daemon(kernel: &'static str, tier: Tier) -> Case {
    Case::new(
        format!("rogue/daemon/{kernel}"),
        "a SCHED_RR 99 daemon is named with its unit by check, and is seen by prove",
        Machine::new(kernel),
    )
    .tier(tier)
    .plant(Plant::rogue_rr99().cpu(0).at_once().lasting_ms(60_000).every_ms(500))
    .script(
        "run check rtproof check --json
         prove run --for 2s --budget 1ms --load idle --cpus 0
         killall multipathd",
    )
    .expect(daemon_is_named)
    .unplanted("finding of rogue-rt-tasks")
}

fn daemon_is_named(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let finding = seen.json("check")?.finding("rogue-rt-tasks")?;
    expect.equal("finding of rogue-rt-tasks", finding.text("/status"), "bad");
    for word in ["multipathd", "SCHED_RR 99", "multipathd.service"] {
        expect.contains(&format!("finding names {word}"), &finding.whole(), word);
    }
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 1);
    expect.equal("exit code", seen.rc("run")?, 2);
    expect.within("worst, ms", report.number("/all/max_ns")? / MS, 3..=5);
    Ok(())
}

/// A task of the same priority: first come, first served.
fn neighbour() -> Case {
    Case::new(
        "rogue/neighbour/rt-6.1",
        "a SCHED_FIFO task of the same priority is named, and delays by its own run time",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::equal_fifo(80).cpu(0).at_once().lasting_ms(60_000))
    .script(
        "run check rtproof check --json
         prove run --for 2s --budget 1ms --load idle --cpus 0
         killall lab-plant",
    )
    .expect(|seen, expect| {
        let finding = seen.json("check")?.finding("rogue-rt-tasks")?;
        expect.contains("finding names lab-plant", &finding.whole(), "lab-plant");
        expect.contains("finding names SCHED_FIFO 80", &finding.whole(), "SCHED_FIFO 80");
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 1);
        expect.within("worst, ms", report.number("/all/max_ns")? / MS, 1..=2);
        Ok(())
    })
    .unplanted("finding names lab-plant")
}

/// Ordinary work does not delay a real-time thread, however much there is of it.
fn hog() -> Case {
    Case::new(
        "rogue/ordinary-hog/rt-6.1",
        "an ordinary process that never sleeps does not delay a real-time thread",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::hog().cpu(0).lasting_ms(10_000))
    .script("prove run --for 1s --budget 500us --load idle --cpus 0; killall lab-plant")
    .expect(|seen, expect| {
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 1);
        expect.equal("late wake-ups", report.number("/all/late")?, 0);
        expect.equal("plants that worked", seen.truth()?.len(), 1);
        Ok(())
    })
    .mutation("the hog is real-time", "late wake-ups", |case| {
        case.boots[0].plants = vec![Plant::fifo_hog(90).cpu(0).lasting_ms(300)];
    })
}
