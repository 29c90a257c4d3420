//! Idle states and frequencies, from firmware tables.

use std::fs;

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use serde_json::Value;

use crate::{case::Case, expect::Expect, machine::Machine, seen::Evidence};

const SECOND_NS: i64 = 1_000_000_000;

pub(super) fn cases() -> Vec<Case> {
    vec![
        governors("rt-6.1"),
        governors("stock-6.12"),
        idle_states("rt-6.1"),
        psci(),
        levels("rt-6.1"),
    ]
}

fn machine(kernel: &'static str) -> Machine {
    Machine::new(kernel).cpus(2).power_states()
}

fn governors(kernel: &'static str) -> Case {
    Case::new(
        format!("power/governors/{kernel}"),
        "the frequency governor is read on every CPU",
        machine(kernel),
    )
    .script(
        "set_governor() {
             for file in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
                 echo $1 >$file
             done
         }
         set_governor performance; run fast rtproof check --json
         set_governor powersave; run slow rtproof check --json",
    )
    .expect(governor_is_seen)
    .other_word("set_governor performance", "set_governor powersave", "finding with performance")
    .mutation("no tables", "finding with performance", |case| {
        case.boots[0].machine.power_states = false;
    })
}

fn governor_is_seen(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let fast = seen.json("fast")?.finding("cpufreq-governor")?;
    expect.equal("finding with performance", fast.text("/status"), "good");
    let slow = seen.json("slow")?.finding("cpufreq-governor")?;
    expect.equal("finding with powersave", slow.text("/status"), "bad");
    expect.contains("slow governor", &slow.whole(), "powersave");
    Ok(())
}

fn idle_states(kernel: &'static str) -> Case {
    Case::new(
        format!("power/idle-states/{kernel}"),
        "deep idle states are named with their exit latency; disabled ones are no longer bad",
        machine(kernel),
    )
    .script(
        "run deep rtproof check --json
         for file in /sys/devices/system/cpu/cpu*/cpuidle/state[23]/disable; do echo 1 >$file; done
         run shallow rtproof check --json",
    )
    .expect(|seen, expect| {
        let deep = seen.json("deep")?.finding("cpuidle-states")?;
        expect.that("deep states are not good", "not good", deep.text("/status") != "good", &deep);
        expect.contains("deepest state", &deep.whole(), "C3");
        expect.contains("its exit latency", &deep.whole(), "300");
        let shallow = seen.json("shallow")?.finding("cpuidle-states")?;
        expect.equal("finding when disabled", shallow.text("/status"), "good");
        Ok(())
    })
    .other_word("echo 1 >", "echo 0 >", "finding when disabled")
}

/// The same on aarch64, through the device tree.
fn psci() -> Case {
    Case::new(
        "power/idle-states/rt-6.1-arm64",
        "idle states of the device tree are named with their exit latency",
        machine("rt-6.1-arm64"),
    )
    .script("run deep rtproof check --json")
    .expect(|seen, expect| {
        let deep = seen.json("deep")?.finding("cpuidle-states")?;
        expect.contains("deepest state", &deep.whole(), "cpu-sleep");
        Ok(())
    })
    .mutation("no device tree of ours", "deepest state", |case| {
        case.boots[0].machine.power_states = false;
    })
}

/// Under icount a lower frequency makes nothing slower, so a task above the measured one is busy
/// while the frequency is low. What is shown is that both are seen within a second; not that
/// one makes the other, which a guest cannot show and rtproof does not say.
fn levels(kernel: &'static str) -> Case {
    Case::new(
        format!("power/levels/{kernel}"),
        "jumps of the median latency are named with the change of frequency within a second; \
         without readings of the frequency no frequency is named",
        Machine::new(kernel).power_states(),
    )
    .script(
        "governor() {
             echo $1 >/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
             uptime_s >>/tmp/changes
         }
         slow() {
             sleep $1
             governor powersave
             lab-plant burst --busy 700us --every 997us --policy fifo:99 --cpu 0 --for ${2}s
             governor performance
         }
         echo performance >/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
         (sleep 4; slow 10 5; slow 13 4; slow 19 6) &
         prove jumps --for 90s --period 10ms --budget 100ms --load idle --cpus 0
         wait
         cp /tmp/changes /host/",
    )
    .limit_s(400)
    .expect(jumps_are_named)
    .other_word("governor powersave\n", "governor performance\n", "frequency beside each jump")
    .other_word("fifo:99", "other", "jumps")
}

fn jumps_are_named(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let report = seen.report("jumps")?;
    let origin_ns = report.number("/run/started_monotonic_ns")?;
    let text = seen.text("changes")?;
    let planted: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let planted: Vec<i64> =
        planted.iter().map(|s| (s * SECOND_NS as f64) as i64 - origin_ns).collect();
    let of = |report: &crate::seen::Json, kind: &str| {
        let all = report.list("/spikes/structure");
        all.iter().find(|found| found["kind"] == kind).cloned().unwrap_or_default()
    };
    let level = of(&report, "level");
    let moments = |found: &Value| found["moments"].as_array().cloned().unwrap_or_default();
    let at: Vec<i64> = moments(&level).iter().filter_map(|m| m["at_ns"].as_i64()).collect();
    // The second in which it changes may be a level of its own: two jumps, then.
    expect.within("jumps", at.len(), planted.len()..=2 * planted.len());
    let is_near = |a: &i64, b: &i64| (a - b).abs() <= SECOND_NS;
    let near = planted.iter().all(|one| at.iter().any(|at| is_near(at, one)))
        && at.iter().all(|at| planted.iter().any(|one| is_near(at, one)));
    expect.that("their seconds", "those of the plant", near, (&at, &planted));
    expect.equal("their CPU", level["cpu"].as_i64(), Some(0));
    let beside = moments(&level).iter().all(|moment| {
        let text = moment["text"].as_str().unwrap_or_default();
        text.contains("3 GHz → 1 GHz") || text.contains("1 GHz → 3 GHz")
    });
    let any = !moments(&level).is_empty();
    expect.that("frequency beside each jump", "3 and 1 GHz", any && beside, &level);
    let sentence = level["text"].as_str().unwrap_or_default();
    expect.contains("sentence", sentence, "within a second of a change of its frequency");
    let with = of(&report, "frequency");
    expect.equal("changes with the frequency", with["count"].as_u64(), Some(at.len() as u64));

    // The same record with the readings taken away.
    let without = crate::seen::Json::parse("without", &without_frequency(seen)?)?;
    let level = of(&without, "level");
    expect.equal("without: jumps", moments(&level).len(), at.len());
    expect.lacks("without: no frequency", &without.at("/spikes/structure").to_string(), "freq");
    expect.lacks("without: no GHz", &without.at("/spikes/structure").to_string(), "GHz");
    Ok(())
}

/// The report of a copy of the record that has no readings of the frequency.
fn without_frequency(seen: &Evidence) -> Result<String> {
    let folder = tempfile::tempdir().context("a folder for the copy of the record")?;
    let copy = folder.path().join("jumps.rtproof");
    fs::copy(seen.path("jumps.rtproof")?, &copy).context("the record cannot be copied")?;
    let conn = Connection::open(&copy).context("the copy cannot be opened")?;
    let rows = conn.execute("UPDATE host_cpu SET freq_hz = NULL", [])?;
    ensure!(rows > 60, "host_cpu has {rows} rows, expected one a second");
    drop(conn);
    seen.rtproof(&["report", "--json", "--accept-altered"], &copy)
}
