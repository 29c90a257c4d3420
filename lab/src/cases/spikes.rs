//! Spikes end to end: a daemon found, removed and gone; a recorder that is killed, that loses
//! events, and what it costs.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::common;
use crate::blame::{self, Counted, Expected, Stretches};
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::plants::Plant;
use crate::seen::{Evidence, Json};

pub(super) fn cases() -> Vec<Case> {
    vec![found_and_removed(), killed(), lossy(), cost(), each_event(), quota(), one_cpu()]
}

/// From a refusal through the remedy to an acceptance.
fn found_and_removed() -> Case {
    // One late second refuses three a day; 33 s without one prove 360/h.
    let before = "--for 20s --budget 1ms --load idle --cpus 0";
    let after = "--for 36s --budget 1ms --max-rate 360/h --load idle --cpus 0";
    Case::new(
        "spikes/daemon-removed/rt-6.1",
        "prove refuses, names the daemon with its share, its unit and the remedy; after the remedy \
         it accepts",
        Machine::new("rt-6.1"),
    )
    .tier(Tier::One)
    .plant(Plant::rogue_rr99().cpu(0).at_once().lasting_ms(60_000).every_ms(500))
    .script(format!("traced before {before}\nkillall multipathd\ntraced after {after}"))
    .expect(found)
    .other_word("killall multipathd", "true", "after: exit code")
    .unplanted("before: exit code")
}

fn found(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let (before, after) = (seen.report("before")?, seen.report("after")?);
    expect.equal("before: exit code", seen.rc("before")?, 2);
    expect.equal("before: verdict", before.text("/verdict/answer"), "refused");
    expect.equal("before: first cause", before.text("/spikes/causes/0/cause"), "preempted");
    let culprit = before.text("/spikes/causes/0/culprit");
    expect.equal("before: first culprit", culprit, "multipathd [RR 99]");
    expect.equal("before: its unit", before.text("/spikes/causes/0/owner"), "multipathd.service");
    let remedies = before.list("/spikes/causes/0/remedies");
    expect.that("before: remedies", "some", !remedies.is_empty(), remedies);
    let out = seen.out("before")?;
    for word in ["multipathd [RR 99]", "multipathd.service"] {
        expect.contains(&format!("before: text names {word}"), &out, word);
    }
    let share =
        before.number("/spikes/causes/0/sum_ns")? * 100 / before.number("/spikes/sum_ns")?.max(1);
    expect.within("before: share of the daemon, percent", share, 80..=100);
    expect.equal("after: exit code", seen.rc("after")?, 0);
    expect.equal("after: verdict", after.text("/verdict/answer"), "accepted");
    let left = after.at("/spikes/causes").to_string();
    expect.lacks("after: causes", &left, "multipathd");
    Ok(())
}

/// A recorder that cannot tidy up itself.
fn killed() -> Case {
    let instances = "ls /sys/kernel/tracing/instances | wc -l";
    Case::new(
        "spikes/killed/rt-6.1",
        "prove killed in mid-run: the guard takes its trace instance away",
        Machine::new("rt-6.1"),
    )
    .tier(Tier::One)
    .script(format!(
        "rtproof prove -o /tmp/o/first --for 20s --budget 2ms --load idle >/dev/null 2>&1 &
         lab-plant wait-for --after 1s
         run during sh -c '{instances}'
         kill -9 $!
         wait $!
         sleep 2
         run left sh -c '{instances}'
         traced again --for 1s --budget 2ms --load idle
         run after sh -c '{instances}'
         run tracing cat /sys/kernel/tracing/current_tracer"
    ))
    .expect(|seen, expect| {
        expect.equal("instances in the run", seen.out("during")?.trim(), "1");
        expect.equal("instances that were left", seen.out("left")?.trim(), "0");
        expect.equal("instances after the next run", seen.out("after")?.trim(), "0");
        expect.equal("tracer of the machine", seen.out("tracing")?.trim(), "nop");
        Ok(())
    })
    .other_word(
        "kill -9 $!",
        "grep -l rtproof-guard /proc/[0-9]*/cmdline | cut -d/ -f3 | xargs kill -9; kill -9 $!",
        "instances that were left",
    )
}

/// Events get lost: the ring is made small from outside, and filled.
fn lossy() -> Case {
    Case::new(
        "spikes/lost-events/rt-6.1",
        "where events were lost a spike says so; what is said to be complete is right",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::rogue_rr99().every_ms(50).cpu(0).lasting_ms(6_000))
    .plant(Plant::network_flood().cpu(0).lasting_ms(4_000))
    .script(
        "shrink() {
             lab-plant wait-for --after 2s
             for ring in /sys/kernel/tracing/instances/*/buffer_size_kb; do echo 8 >$ring; done
         }
         shrink &
         traced run --for 7s --budget 200us --load idle --cpus 0",
    )
    .expect(lost)
    .other_word("echo 8", "true 8", "incomplete spikes")
}

fn lost(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let report = seen.report("run")?;
    common::adds_up(expect, "run", &report, 1);
    let daemon = seen.truth()?.into_iter().find(|line| line.text("/comm") == "multipathd");
    let daemon = daemon.context("the daemon's books")?;
    let expected = Expected {
        plant: "daemon".into(),
        causes: vec!["preempted".into()],
        culprit: vec!["multipathd".into()],
        acted: Stretches::of_truth(daemon.at(""), Counted::Occurrences),
        least_ns: 1_000_000,
    };
    let spikes = blame::spikes(&seen.path("run.rtproof")?)?;
    let judged = expected.judge(&spikes);
    let incomplete = spikes.iter().filter(|spike| !spike.complete && spike.cause.is_some()).count();
    let wrong: Vec<_> = judged.iter().filter(|one| !one.incomplete && !one.right).collect();
    expect.that("planted spikes", "50 at least", judged.len() >= 50, judged.len());
    expect.that("incomplete spikes", "some", incomplete > 0, incomplete);
    expect.that("causes that are wrong", "none", wrong.is_empty(), &wrong);
    Ok(())
}

/// An ordinary application in a group that may use less than it needs in one period of five, and
/// enough on the whole: it does not fall behind for ever.
fn quota() -> Case {
    Case::new(
        "spikes/quota/stock-6.1",
        "explain --pid blames the CPU quota of its group for an application's late wake-ups",
        Machine::new("stock-6.1").cpus(2),
    )
    .tier(Tier::Three)
    .script(
        "group=/sys/fs/cgroup/lab
         mkdir -p $group
         echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
         echo '20000 100000' >$group/cpu.max
         lab-plant cycle --busy 50us --long 25ms --each 200 --every 1ms --policy other \\
             --cgroup $group --cpu 1 --for 60s &
         application=$!
         sleep 1
         run told rtproof explain --pid $application --for 3s --over 1ms --json
         kill $application
         wait $application",
    )
    .expect(|seen, expect| {
        let told = seen.json("told")?;
        expect.equal("first cause", told.text("/spikes/causes/0/cause"), "throttled");
        let culprit = told.text("/spikes/causes/0/culprit");
        expect.contains("first culprit", culprit, "quota");
        Ok(())
    })
    .other_word("20000 100000", "max 100000", "first cause")
}

/// rtproof reads the events on the CPU of the application, which is an ordinary one: what it takes
/// it names, and the plant comes first all the same.
fn one_cpu() -> Case {
    Case::new(
        "spikes/one-cpu/rt-6.1",
        "explain --pid names the daemon on a machine with one CPU",
        Machine::new("rt-6.1"),
    )
    // No multiple of the application's period: each burst meets it at another phase.
    .plant(Plant::rogue_rr99().every_ms(103).cpu(0).at_once().after_ms(3_000).lasting_ms(60_000))
    .script(
        "lab-plant cycle --busy 50us --every 5ms --policy other --cpu 0 --for 60s &
         application=$!
         sleep 1
         run told rtproof explain --pid $application --for 8s --over 1ms --json
         kill $application
         wait $application
         killall multipathd",
    )
    .expect(|seen, expect| {
        let told = seen.json("told")?;
        let spikes = told.number("/spikes/seen")?;
        expect.that("spikes", "30 at least", spikes >= 30, spikes);
        expect.equal("first cause", told.text("/spikes/causes/0/cause"), "preempted");
        let culprit = told.text("/spikes/causes/0/culprit");
        expect.contains("first culprit", culprit, "multipathd");
        expect.contains("notes", &told.at("/notes").to_string(), "One CPU");
        Ok(())
    })
    .unplanted("first culprit")
}

/// Rounds of the comparison of costs.
const ROUNDS: usize = 3;
/// What runs beside, and how it is switched on and off.
const BESIDE: &[(&str, &str, &str)] = &[
    ("recorder-off", "--no-trace", ""),
    ("recorder-on", "", ""),
    ("wakeup_rt", "--no-trace", "wakeup_rt"),
    ("timerlat", "--no-trace", "timerlat"),
];

/// What the recorder costs, beside the kernel's own tracers that look for the same.
fn cost() -> Case {
    let mut script = String::new();
    for round in 0..ROUNDS {
        for place in 0..BESIDE.len() {
            let (name, option, tracer) = BESIDE[(place + round) % BESIDE.len()];
            let (on, off) = if tracer.is_empty() {
                (String::new(), "")
            } else {
                let on = format!("echo {tracer} >/sys/kernel/tracing/current_tracer\n");
                (on, "echo nop >/sys/kernel/tracing/current_tracer\n")
            };
            let _ = writeln!(
                script,
                "{on}traced {name}-{round} --for 1s --period 200us --budget 1ms --load idle \
                 --cpus 0 {option}\n{off}"
            );
        }
    }
    Case::new(
        "spikes/cost/rt-6.1",
        "what the recorder adds to the median, beside wakeup_rt and timerlat",
        Machine::new("rt-6.1"),
    )
    .tier(Tier::Three)
    .limit_s(240)
    .script(script)
    .expect(costs)
    .mutation("the recorder is off as well", "recorder: events", |case| {
        let script = &mut case.boots[0].script;
        *script = script.replace("--cpus 0 \n", "--cpus 0 --no-trace\n");
    })
}

/// Events that every wake-up passes, as `set_event` takes them, one cost each.
const EVENTS: &[(&str, &str)] = &[
    ("none", ""),
    ("switch", "sched:sched_switch"),
    ("waking", "sched:sched_waking"),
    ("wakeup", "sched:sched_wakeup"),
    ("timer-start", "timer:hrtimer_start"),
    ("timer-cancel", "timer:hrtimer_cancel"),
    ("timer-expire", "timer:hrtimer_expire_entry timer:hrtimer_expire_exit"),
    ("timer-interrupt", "irq_vectors:local_timer_entry irq_vectors:local_timer_exit"),
    ("softirq", "irq:softirq_entry irq:softirq_exit irq:softirq_raise"),
    ("idle", "power:cpu_idle"),
    (
        "all",
        "sched:sched_switch sched:sched_waking sched:sched_wakeup timer:hrtimer_start \
             timer:hrtimer_cancel timer:hrtimer_expire_entry timer:hrtimer_expire_exit \
             irq_vectors:local_timer_entry irq_vectors:local_timer_exit irq:softirq_entry \
             irq:softirq_exit irq:softirq_raise power:cpu_idle",
    ),
];

/// What each kind of event costs a wake-up, alone and together.
fn each_event() -> Case {
    let mut script = "cd /sys/kernel/tracing; mkdir instances/lab; cd instances/lab\n\
                      echo mono >trace_clock\n"
        .to_owned();
    for (name, events) in EVENTS {
        let _ = writeln!(
            script,
            "for one in {events}; do echo $one >>set_event; done\n\
             traced {name} --for 1s --period 200us --budget 1ms --load idle --cpus 0 --no-trace\n\
             echo >set_event"
        );
    }
    Case::new(
        "spikes/events/rt-6.1",
        "what each kind of event adds to the median, alone and together",
        Machine::new("rt-6.1"),
    )
    .tier(Tier::Three)
    .limit_s(240)
    .script(script)
    .expect(each_events_cost)
    .mutation("no event is on", "all events together cost", |case| {
        let script = &mut case.boots[0].script;
        *script = script.replace("echo $one >>set_event", "true");
    })
}

fn each_events_cost(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let none = median_ns(&seen.report("none")?)?;
    let mut text = "| events | added to p50, ns |\n|---|---|\n".to_owned();
    let mut all = 0;
    for (name, _) in EVENTS {
        all = median_ns(&seen.report(name)?)? - none;
        let _ = writeln!(text, "| {name} | {all:+} |");
    }
    println!("{text}");
    seen.keep("events.md", &text)?;
    expect.that("all events together cost", "more than none", all > 0, all);
    Ok(())
}

fn costs(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let mut medians = Vec::new();
    for (name, _, _) in BESIDE {
        let mut all = Vec::new();
        for round in 0..ROUNDS {
            all.push(median_ns(&seen.report(&format!("{name}-{round}"))?)?);
        }
        medians.push(all);
    }
    let mut text = format!(
        "| beside | p50 µs, median of {ROUNDS} | added to p50, median of pairs, µs | ratio |\n\
         |---|---|---|---|\n"
    );
    for ((name, _, _), all) in BESIDE.iter().zip(&medians) {
        let added = all.iter().zip(&medians[0]).map(|(with, without)| with - without).collect();
        let (own, added, base) = (middle(all.clone()), middle(added), middle(medians[0].clone()));
        let _ = writeln!(
            text,
            "| {name} | {:.1} | {:+.1} | {:.2} |",
            own as f64 / 1e3,
            added as f64 / 1e3,
            own as f64 / base as f64
        );
    }
    println!("{text}");
    seen.keep("cost.md", &text)?;
    let on = seen.report("recorder-on-0")?;
    let recorder = on.at("/spikes/recorder");
    expect.that(
        "recorder: events",
        "on",
        recorder["off"].is_null() && recorder.is_object(),
        recorder,
    );
    expect.equal("recorder: lost", on.number("/spikes/recorder/lost_events")?, 0);
    let (with, peer) = (middle(medians[1].clone()), middle(medians[2].clone()));
    expect.that(
        "median beside wakeup_rt",
        "above that with the recorder",
        peer > with,
        (with, peer),
    );
    Ok(())
}

fn median_ns(report: &Json) -> Result<i64> {
    let half = report.list("/all/wake").iter().find(|quantile| {
        quantile["q"]["above"].as_i64() == Some(1) && quantile["q"]["of"].as_i64() == Some(2)
    });
    half.and_then(|quantile| quantile["value_ns"].as_i64()).context("no median")
}

fn middle(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
