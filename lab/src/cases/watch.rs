//! `rtproof watch` beside the distribution's own tool in the same seconds, and after SIGKILL.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::fetch::{Newest, Suite};
use crate::machine::Machine;
use crate::programs::packaged;
use crate::seen::{Evidence, Json};

/// Both take what the kernel adds up, and begin within a second. The peer begins when rtproof is
/// up: its start is work that would be in one window alone.
const POINTS: f64 = 2.0;

/// Shares of the time in percent, by CPU and state.
type Shares = BTreeMap<(u32, String), f64>;

pub(super) fn cases() -> Vec<Case> {
    vec![idle("rt-6.1"), idle("stock-6.12"), killed(), cost()]
}

/// Seconds of each view, and how often each is looked at, in turn.
const VIEW_S: u32 = 15;
const ROUNDS: usize = 3;
/// Views, and what begins each. rtla measures with threads of the kernel, which are not in its
/// time; those of rtproof are in its own.
const VIEWS: &[(&str, &str)] = &[
    ("passive", "rtproof watch --rows --for"),
    ("measuring", "rtproof watch --measure --cpus 0-1 --rows -o /tmp/o/w --for"),
    ("rtla", "rtla timerlat top -c 0-1 -d"),
];

/// `cost NAME COMMAND`: hundredths of a second that it and what it started have run.
const COST: &str = r#"cost() {
        name=$1
        shift
        (
            "$@" >/tmp/o/$name.rows 2>&1
            read -r line </proc/self/stat
            set -- ${line##*) }
            shift 13
            echo $(($1 + $2)) >>/host/cost.$name
        )
        rm -f /tmp/o/w*
        cp /tmp/o/$name.rows /host/
    }
"#;

/// `at NAME`: the frequencies as the peer reads them, when that was, and how the kernel shows them.
const BOTH: &str = "cpu=/sys/devices/system/cpu
    put() { for file in $cpu/cpu*/cpufreq/scaling_governor; do echo $1 >$file; done; }
    at() {
        run $1 cpupower frequency-info -f
        cat $cpu/cpu[01]/cpufreq/scaling_cur_freq >/host/$1.sysfs
        date +%s >/host/$1.s
    }
    pause=0
    put performance
    lab-plant burst --busy 300us --every 1300us --cpu 1 --for 28s &
    lab-plant burst --busy 6ms --every 20ms --cpu 0 --for 28s &
    sleep 1
    run watch rtproof watch --json --for 21s &
    until [ -s /tmp/o/watch.out ]; do usleep 50000; done
    (sleep $pause; run peer cpupower monitor -m Idle_Stats -i 20) &
    sleep 8
    at fast
    put powersave
    sleep 5
    at slow
    wait";

/// What a killed view may leave: instances of tracefs, the limit of idle states, processes.
const KILLED: &str = "left() {
        ls /sys/kernel/tracing/instances | wc -l
        od -An -td4 -N4 /dev/cpu_dma_latency
        pidof rtproof | wc -w
    }
    rtproof watch --once >/dev/null
    left >/host/before
    rtproof watch --measure --cpus 1 --load cpu --dma-latency 7 --rows -o /tmp/o/killed >/tmp/rows &
    pid=$!
    for try in $(seq 60); do [ $(wc -l </tmp/rows) -ge 4 ] && break; sleep 1; done
    left >/host/during
    kill -KILL $pid
    sleep 4
    left >/host/after
    kill -TERM $pid
    wait $pid
    echo $? >/host/killed.rc
    cp /tmp/o/killed.rtproof* /host/";

fn idle(kernel: &'static str) -> Case {
    Case::new(
        format!("watch/idle/{kernel}"),
        "shares of idle states and frequencies are those of cpupower in the same seconds",
        Machine::new(kernel).cpus(2).power_states(),
    )
    .limit_s(600)
    .made("cpupower", cpupower)
    .script(BOTH)
    .expect(|seen, expect| {
        shares_agree(seen, expect)?;
        frequencies_agree(seen, expect)
    })
    .other_word("pause=0", "pause=30", "shares that differ")
    .other_word("put powersave", "put performance", "slow: frequencies")
}

/// What the views cost, one after the other in the same guest.
fn cost() -> Case {
    let mut script = COST.to_owned();
    for round in 0..ROUNDS {
        for place in 0..VIEWS.len() {
            let (name, command) = VIEWS[(place + round) % VIEWS.len()];
            script.push_str(&format!("cost {name} {command} {VIEW_S}s\n"));
        }
    }
    Case::new(
        "watch/cost/rt-6.1",
        "what watch costs, and rtla's live view, one after the other in the same guest",
        Machine::new("rt-6.1").cpus(2),
    )
    .tier(Tier::Three)
    .limit_s(600)
    .program("rtla")
    .script(script)
    .expect(costs)
    .other_word("rtla timerlat top", "true", "rtla: rows")
}

fn costs(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let mut text = "| view | CPU time, ms a second, median | range |\n|---|---|---|\n".to_owned();
    for (name, _) in VIEWS {
        let all = seen.text(&format!("cost.{name}"))?;
        let all: Vec<f64> = all.lines().map(str::parse).collect::<Result<_, _>>()?;
        let mut all: Vec<f64> = all.iter().map(|of| of * 10.0 / f64::from(VIEW_S)).collect();
        all.sort_by(f64::total_cmp);
        expect.equal(&format!("{name}: rounds"), all.len(), ROUNDS);
        let rows = seen.text(&format!("{name}.rows"))?.lines().count();
        expect.that(&format!("{name}: rows"), "one a second", rows >= VIEW_S as usize - 2, rows);
        let (Some(least), Some(most)) = (all.first(), all.last()) else { continue };
        let middle = all[all.len() / 2];
        text.push_str(&format!("| {name} | {middle:.1} | {least:.1} to {most:.1} |\n"));
    }
    println!("{text}");
    seen.keep("cost.md", &text)
}

fn killed() -> Case {
    Case::new(
        "watch/killed/rt-6.1",
        "a view that is killed while it measures leaves nothing on",
        Machine::new("rt-6.1").cpus(2),
    )
    .limit_s(300)
    .script(KILLED)
    .expect(nothing_is_left)
    .other_word("kill -KILL", "true", "killed: left")
}

fn cpupower(_: &Path, folder: &Path) -> Result<PathBuf> {
    let names = &["linux-cpupower", "libcpupower1", "libpci3"];
    let newest = Newest { suite: Suite::Bookworm, architecture: "amd64", names };
    packaged(folder, "cpupower", &newest, "usr/bin/cpupower")
}

/// The lines of `watch --json`.
fn frames(seen: &Evidence) -> Result<Vec<Json>> {
    seen.out("watch")?.lines().map(|line| Json::parse("watch", line)).collect()
}

/// Over all frames, each by its length.
fn ours(frames: &[Json]) -> Result<Shares> {
    let mut all = Shares::new();
    let mut whole = 0.0;
    for frame in frames {
        let span = frame.number("/span_ns")? as f64;
        whole += span;
        for cpu in frame.list("/cpus") {
            let number = cpu["cpu"].as_u64().context("a CPU without a number")? as u32;
            for state in cpu["idle"].as_array().into_iter().flatten() {
                let name = state["name"].as_str().unwrap_or_default().to_owned();
                let share = state["permille"].as_f64().context("a state without a share")?;
                *all.entry((number, name)).or_default() += share / 10.0 * span;
            }
        }
    }
    all.values_mut().for_each(|share| *share /= whole);
    Ok(all)
}

/// A table of cpupower: a head with the names of the states, then a line for each CPU.
fn theirs(table: &str) -> Result<Shares> {
    let cells = |line: &str| -> Vec<String> {
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut rows = table.lines().filter(|line| line.contains('|')).map(cells);
    let head = rows.find(|row| row.iter().any(|cell| cell == "CPU")).context("no head")?;
    let at = head.iter().position(|cell| cell == "CPU").context("no column of CPUs")?;
    let mut all = Shares::new();
    for row in rows {
        let cpu: u32 = row.get(at).context("a short row")?.parse().context("no CPU")?;
        for (name, cell) in head.iter().zip(&row).skip(at + 1) {
            let share = cell.parse().with_context(|| format!("{cell:?} of {name}"))?;
            all.insert((cpu, name.clone()), share);
        }
    }
    Ok(all)
}

fn shares_agree(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let frames = frames(seen)?;
    expect.within("frames", frames.len(), 19..=22);
    let (ours, theirs) = (ours(&frames)?, theirs(&seen.out("peer")?)?);
    let states = |of: &Shares| of.keys().cloned().collect::<Vec<_>>();
    expect.equal("states", states(&ours), states(&theirs));
    expect.that("states of two CPUs", "6 or more", theirs.len() >= 6, &theirs);
    // A CPU that is always in one state shows little.
    let mixed = |cpu: u32| {
        let shares = theirs.iter().filter(|((of, _), _)| *of == cpu).map(|(_, share)| *share);
        shares.filter(|share| (5.0..=95.0).contains(share)).count()
    };
    let both = mixed(0) >= 1 && mixed(1) >= 1;
    expect.that("a state with 5 to 95 %", "on both CPUs", both, &theirs);
    let far = theirs.iter().filter_map(|(key, share)| {
        let difference = (share - ours.get(key)?).abs();
        (difference > POINTS).then(|| (key.clone(), *share, ours[key]))
    });
    expect.equal("shares that differ", far.collect::<Vec<_>>(), Vec::new());
    let apart = theirs.iter().filter_map(|(key, share)| Some((share - ours.get(key)?).abs()));
    let worst = apart.fold(0.0, f64::max);
    println!("watch: {}: {worst:.2} points apart at most; cpupower {theirs:.1?}", seen.release());
    Ok(())
}

fn frequencies_agree(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let frames = frames(seen)?;
    for (name, hz) in [("fast", 3_000_000_000_i64), ("slow", 1_000_000_000)] {
        let sysfs = seen.text(&format!("{name}.sysfs"))?;
        let sysfs: Vec<i64> = sysfs.lines().filter_map(|line| line.parse().ok()).collect();
        expect.equal(&format!("{name}: frequencies in /sys"), sysfs, vec![hz / 1000; 2]);
        let peer = seen.out(name)?;
        let khz = format!("current CPU frequency: {} ", hz / 1000);
        expect.contains(&format!("{name}: the peer's"), &peer, khz.trim_end());
        // Of the two seconds before it was read.
        let s: i64 = seen.text(&format!("{name}.s"))?.trim().parse()?;
        let near = frames.iter().filter(|frame| {
            let before_s = s - frame.at("/at_realtime_ns").as_i64().unwrap_or(0) / 1_000_000_000;
            (1..=2).contains(&before_s)
        });
        let all =
            near.flat_map(|frame| frame.list("/cpus").iter().map(|cpu| cpu["freq_hz"].as_i64()));
        let all: Vec<_> = all.collect();
        let holds = all.len() >= 2 && all.iter().all(|of| *of == Some(hz));
        expect.that(&format!("{name}: frequencies of watch"), &hz.to_string(), holds, &all);
    }
    Ok(())
}

fn nothing_is_left(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let of = |name: &str| -> Result<Vec<i64>> {
        let text = seen.text(name)?;
        text.split_whitespace().map(|word| Ok(word.parse()?)).collect()
    };
    let before = of("before")?;
    let during = of("during")?;
    // The view and its guard at least.
    let is_on = during.len() == 3 && during[0] == before[0] + 1 && during[1] == 7 && during[2] >= 2;
    expect.that("on while it measures", "an instance, 7 µs, processes", is_on, (&before, &during));
    expect.equal("killed: left", of("after")?, before);
    expect.equal("killed: exit code", seen.rc("killed")?, 137);
    let report = seen.report("killed")?;
    expect.equal("killed: record", report.text("/record/state"), "torn");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_cpupower_is_read() {
        let table = "              | Idle_Stats    \n CPU| POLL | C1   \n   0|  0.04| 98.50\n   1| 12.00|  3.00\n";
        let all = theirs(table).unwrap();
        assert_eq!(all.len(), 4);
        assert_eq!(all[&(1, "POLL".to_owned())], 12.0);
        assert!(theirs("nothing").is_err());
    }
}
