//! What happens to a machine in the middle of a run.

use anyhow::Result;

use super::common;
use crate::case::Case;
use crate::expect::Expect;
use crate::machine::Machine;
use crate::plants::Plant;
use crate::seen::Evidence;

const MS: i64 = 1_000_000;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![throttled(), fair_server("rt-6.12"), fair_server("stock-7.2")];
    cases.extend([hot_unplugged("rt-6.1"), clock_stepped(), disk_full(), loads()]);
    cases
}

/// Before 6.12: real-time throttling.
fn throttled() -> Case {
    Case::new(
        "fault/throttling/rt-6.1",
        "real-time throttling is foretold by check and seen by prove as a gap of 50 ms",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::rt_throttling().cpu(0).lasting_ms(3_000))
    .script(
        "run check rtproof check --json
         prove run --for 4s --budget 1ms --load idle --cpus 0",
    )
    .expect(|seen, expect| {
        let finding = seen.json("check")?.finding("rt-throttling")?;
        expect.equal("finding of rt-throttling", finding.text("/status"), "doubtful");
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 1);
        expect.within("worst, ms", report.number("/all/max_ns")? / MS, 45..=55);
        Ok(())
    })
    .unplanted("worst")
    .mutation("throttling is off", "finding of rt-throttling", |case| {
        let off = "echo -1 >/proc/sys/kernel/sched_rt_runtime_us\n";
        case.boots[0].script.insert_str(0, off);
    })
}

/// From 6.12 on: the fair server, which sched_rt_runtime_us = -1 does not switch off.
fn fair_server(kernel: &'static str) -> Case {
    Case::new(
        format!("fault/fair-server/{kernel}"),
        "the fair server is foretold by check and seen by prove as a gap of 50 ms, although \
         sched_rt_runtime_us is -1",
        Machine::new(kernel),
    )
    .plant(Plant::fair_server().cpu(0).lasting_ms(3_000))
    .script(
        "echo -1 >/proc/sys/kernel/sched_rt_runtime_us
         run check rtproof check --json
         prove run --for 4s --budget 1ms --load idle --cpus 0",
    )
    .expect(server_is_seen)
    .unplanted("worst")
    .mutation("the server is off", "worst", |case| {
        let off =
            "for f in /sys/kernel/debug/sched/fair_server/cpu*/runtime; do echo 0 >$f; done\n";
        case.boots[0].script.insert_str(0, off);
    })
}

fn server_is_seen(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let finding = seen.json("check")?.finding("fair-server")?;
    expect.that("finding", "not good", finding.text("/status") != "good", &finding);
    expect.contains("finding names the fair server", &finding.whole(), "fair server");
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 1);
    expect.within("worst, ms", report.number("/all/max_ns")? / MS, 40..=60);
    Ok(())
}

fn hot_unplugged(kernel: &'static str) -> Case {
    Case::new(
        format!("fault/cpu-offline/{kernel}"),
        "a CPU that goes away in mid-run: its thread says so, everything adds up",
        Machine::new(kernel).cpus(2),
    )
    // prove looks once a second where its threads are.
    .plant(Plant::cpu_offline(1).after_ms(500).down_ms(1_200))
    .script("prove run --for 3s --budget 1s --load idle --cpus 0-1")
    .expect(|seen, expect| {
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 2);
        let lost = report.list("/notes").iter().any(|note| note["id"] == "cpu-lost");
        expect.that("note of the lost CPU", "cpu-lost", lost, report.at("/notes"));
        expect.equal("verdict", report.text("/verdict/answer"), "not_proven");
        Ok(())
    })
    .unplanted("note of the lost CPU")
}

fn clock_stepped() -> Case {
    Case::new(
        "fault/clock-step/rt-6.1",
        "a step of the wall clock changes no latency",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::clock_step_ms(-3_600_000))
    .script("prove run --for 2s --budget 500us --load idle; date >/host/date")
    .expect(|seen, expect| {
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 1);
        common::sealed(expect, "run", &report);
        expect.equal("late wake-ups", report.number("/all/late")?, 0);
        expect.equal("plants that worked", seen.truth()?.len(), 1);
        Ok(())
    })
    .unplanted("plants that worked")
}

fn disk_full() -> Case {
    Case::new(
        "fault/disk-full/rt-6.1",
        "the disk of the record fills up: prove says so, and what was written opens",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::full_disk("/tmp/small", 0).lasting_ms(60_000))
    .script(
        "mkdir -p /tmp/small; mount -t tmpfs -o size=1m small /tmp/small
         run full rtproof prove -o /tmp/small/run --for 5s --budget 2ms --load idle
         killall lab-plant; wait
         cp /tmp/small/run.rtproof /host/",
    )
    .expect(|seen, expect| {
        expect.equal("exit code", seen.rc("full")?, 1);
        expect.contains("error", &seen.err("full")?, "No space left");
        let report = seen.report("run")?;
        expect.equal("record", report.text("/record/state"), "torn");
        Ok(())
    })
    .unplanted("exit code")
}

/// Every kind of trouble at once that must not delay a real-time thread on PREEMPT_RT.
fn loads() -> Case {
    Case::new(
        "fault/pressure/rt-6.1",
        "page faults, memory pressure, forks and a packet flood beside the measured thread: \
         no late wake-up on PREEMPT_RT",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::memory_pressure().lasting_ms(1_000))
    .plant(Plant::page_faults().lasting_ms(1_000))
    .plant(Plant::forks().lasting_ms(1_000))
    .plant(Plant::network_flood().lasting_ms(1_000))
    .plant(Plant::cpu_quota().lasting_ms(1_000))
    .plant(Plant::timer_interrupts().lasting_ms(1_000))
    .script("prove run --for 2s --budget 1ms --load idle")
    .expect(|seen, expect| {
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 1);
        expect.equal("late wake-ups", report.number("/all/late")?, 0);
        expect.equal("plants that worked", seen.truth()?.len(), 6);
        Ok(())
    })
    .other_kernel("stock-6.1", "late wake-ups")
}
