//! Time that the host takes: the guests' clock is the host's here, so only counts and orders are
//! judged, never a latency's upper bound.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::common;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

const MS: i64 = 1_000_000;
/// How often the emulator is stopped, and for how long.
const STOPS: i64 = 4;
const STOP_MS: i64 = 150;

pub(super) fn cases() -> Vec<Case> {
    vec![emulator_stopped(), loaded_host()]
}

/// What a hypervisor does that gives its host to others.
fn emulator_stopped() -> Case {
    Case::new(
        "noise/emulator-stopped",
        "a guest whose host stops four times for 150 ms counts what it missed, and no SMI",
        Machine::new("rt-6.1").cpus(2).multi_threaded(),
    )
    .tier(Tier::Three)
    .script(format!(
        "smi() {{ dd if=/dev/cpu/1/msr iflag=skip_bytes skip=52 bs=8 count=1 | od -A n -t x8; }}
         smi >/host/before
         prove run --for 8s --budget 100ms --cpus 1 --load idle &
         lab-plant wait-for --after 500ms
         for stop in $(seq {STOPS}); do cue stop; sleep 1; done
         wait
         smi >/host/after"
    ))
    .on("stop", |guest| guest.stop_for(Duration::from_millis(STOP_MS.unsigned_abs())))
    .expect(stops)
    .other_word("cue stop", "true", "worst, ms")
}

fn stops(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 1);
    common::sealed(expect, "run", &report);
    expect.equal("exit code", seen.rc("run")?, 2);
    expect.within("worst, ms", report.number("/all/max_ns")? / MS, STOP_MS - 10..=10_000);
    let missed = report.number("/all/missed")?;
    expect.within("missed", missed, STOPS * (STOP_MS - 10)..=8_000);
    let long =
        |wakeup: &&serde_json::Value| wakeup["latency_ns"].as_i64() >= Some((STOP_MS - 10) * MS);
    let stops = report.list("/top").iter().filter(long).count();
    expect.that("stops among the worst", "at least four", stops >= 4, stops);
    let (before, after) = (seen.text("before")?, seen.text("after")?);
    expect.that("SMI counter", "a number", !before.trim().is_empty(), &before);
    expect.equal("SMIs meanwhile", after, before);
    Ok(())
}

/// All that does not depend on time holds while others have the host's CPUs.
fn loaded_host() -> Case {
    Case::new(
        "noise/loaded-host",
        "on a busy host with four emulated CPUs under load nothing is lost or miscounted",
        Machine::new("rt-6.1").cpus(4).multi_threaded().memory_mib(1024),
    )
    .tier(Tier::Three)
    .script(
        "cue busy
         prove run --for 3s --budget 1s --json",
    )
    .on("busy", |_| {
        for _ in 0..2 {
            thread::spawn(|| {
                let until = Instant::now() + Duration::from_secs(10);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            });
        }
        Ok(())
    })
    .expect(nothing_is_lost)
    .other_word("--for 3s", "--for 3s --load idle", "loads")
}

fn nothing_is_lost(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let (inside, outside) = (seen.json("run")?, seen.report("run")?);
    common::adds_up(expect, "run", &outside, 4);
    common::sealed(expect, "run", &outside);
    expect.equal("report outside", outside.whole(), inside.whole());
    let loads = outside.list("/loads").len();
    expect.equal("loads", loads, 4);
    Ok(())
}
