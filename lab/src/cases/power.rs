//! Idle states and frequencies, from firmware tables.

use std::fs;

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use serde_json::Value;

use crate::case::Case;
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

const SECOND_NS: i64 = 1_000_000_000;

pub(super) fn cases() -> Vec<Case> {
    vec![
        governors("rt-6.1"),
        governors("stock-6.12"),
        idle_states("rt-6.1"),
        psci(),
        levels("levels", "rt-6.1", &FREQUENCY),
        levels("heat", "rt-6.1", &TEMPERATURE),
        levels("heat", "stock-7.2", &TEMPERATURE),
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

/// What is read once a second beside the latencies, and is planted with them.
struct Read {
    machine: fn(Machine) -> Machine,
    /// Shell function `put` of one value.
    set: &'static str,
    /// Its values while all is well, and while it is not; as a moment shows them.
    good: (&'static str, &'static str),
    bad: (&'static str, &'static str),
    /// Kind of the sentence that joins the two.
    kind: &'static str,
    sentence: &'static str,
    /// Takes the readings away.
    forget: &'static str,
    /// No sentence has these without the readings.
    words: [&'static str; 2],
}

const FREQUENCY: Read = Read {
    machine: Machine::power_states,
    set: "put() { echo $1 >/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor; }",
    good: ("performance", "3 GHz"),
    bad: ("powersave", "1 GHz"),
    kind: "frequency",
    sentence: "within a second of a change of its frequency",
    forget: "UPDATE host_cpu SET freq_hz = NULL",
    words: ["freq", "GHz"],
};

const TEMPERATURE: Read = Read {
    machine: Machine::heat,
    set: "insmod /host/module.ko zone_mc=45000
          put() { echo $1 >/sys/module/rtproof_plant/parameters/zone_mc; }",
    good: ("45000", "45 °C"),
    bad: ("86500", "86.5 °C"),
    kind: "temperature",
    sentence: "within a second of a jump of temperature",
    forget: "UPDATE host SET temp_max_mc = NULL",
    words: ["temperature", "°C"],
};

/// For as many seconds as the second argument says.
const BURST: &str =
    "lab-plant burst --busy 900us --every 997us --policy fifo:99 --cpu 0 --for ${2}s";

/// Under icount neither a lower frequency nor heat makes anything slower, so a task above the
/// measured one is busy meanwhile. What is shown is that both are seen within a second; not that
/// one makes the other, which a guest cannot show and rtproof does not say.
fn levels(name: &str, kernel: &'static str, read: &'static Read) -> Case {
    let Read { set, good: (good, _), bad: (bad, _), .. } = read;
    Case::new(
        format!("power/{name}/{kernel}"),
        "jumps of the median latency are named with what was read within a second of them; without \
         the readings they are named alone",
        (read.machine)(Machine::new(kernel)),
    )
    .script(format!(
        "{set}
         change() {{
             put $1
             uptime_s >>/tmp/changes
         }}
         slow() {{
             sleep $1
             change {bad}
             {BURST}
             change {good}
         }}
         put {good}
         (sleep 4; slow 10 5; slow 13 4; slow 19 6) &
         prove jumps --for 90s --period 10ms --budget 100ms --load idle --cpus 0
         wait
         cp /tmp/changes /host/",
    ))
    .limit_s(400)
    .expect(|seen, expect| jumps_are_named(read, seen, expect))
    .other_word("put $1", "true", "reading beside each jump")
    .other_word(BURST, "sleep $2", "their seconds")
}

fn jumps_are_named(read: &Read, seen: &Evidence, expect: &mut Expect) -> Result<()> {
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
    // The second in which it changes may be a level of its own, and a load that beats with the
    // period has levels within it: those are jumps, too, and nothing was read beside them.
    let is_near = |a: i64, b: i64| (a - b).abs() <= SECOND_NS;
    let (near, others): (Vec<Value>, Vec<Value>) =
        moments(&level).into_iter().partition(|moment| {
            let at = moment["at_ns"].as_i64().unwrap_or_default();
            planted.iter().any(|one| is_near(at, *one))
        });
    let at: Vec<i64> = near.iter().filter_map(|moment| moment["at_ns"].as_i64()).collect();
    let all = planted.iter().all(|one| at.iter().any(|at| is_near(*at, *one)));
    expect.equal("jumps that were planted", planted.len(), 6);
    expect.that("their seconds", "those of the plant", all, (&at, &planted));
    expect.equal("their CPU", level["cpu"].as_i64(), Some(0));
    let (good, bad) = (read.good.1, read.bad.1);
    let either = [format!("{good} → {bad}"), format!("{bad} → {good}")];
    let has_reading = |moment: &Value| {
        let text = moment["text"].as_str().unwrap_or_default();
        either.iter().any(|one| text.contains(one))
    };
    let named = !near.is_empty() && near.iter().all(has_reading);
    expect.that("reading beside each jump", &either[0], named, &level);
    expect.that("no reading beside others", "none", !others.iter().any(has_reading), &level);
    let sentence = level["text"].as_str().unwrap_or_default();
    expect.contains("sentence", sentence, read.sentence);
    let with = of(&report, read.kind);
    expect.equal("changes with the reading", with["count"].as_u64(), Some(at.len() as u64));

    // The same record with the readings taken away.
    let without = crate::seen::Json::parse("without", &without(read.forget, seen)?)?;
    let jumps = moments(&of(&without, "level")).len();
    expect.equal("without: jumps", jumps, near.len() + others.len());
    let all = without.at("/spikes/structure").to_string();
    for word in read.words {
        expect.lacks("without: not named", &all, word);
    }
    Ok(())
}

/// The report of a copy of the record that has no such readings.
fn without(forget: &str, seen: &Evidence) -> Result<String> {
    let folder = tempfile::tempdir().context("a folder for the copy of the record")?;
    let copy = folder.path().join("jumps.rtproof");
    fs::copy(seen.path("jumps.rtproof")?, &copy).context("the record cannot be copied")?;
    let conn = Connection::open(&copy).context("the copy cannot be opened")?;
    let rows = conn.execute(forget, [])?;
    ensure!(rows > 60, "{forget}: {rows} rows, expected one a second");
    drop(conn);
    seen.rtproof(&["report", "--json", "--accept-altered"], &copy)
}
