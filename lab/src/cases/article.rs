//! The article's table (Wu, "Real-time programming with Linux, part 2", 2022, on a Raspberry Pi 4):
//! stock kernel and PREEMPT_RT, idle and loaded, with and without the rogue daemon, as one report.
//!
//! There: idle alike; loaded 717 µs on stock, 279 µs on PREEMPT_RT with multipathd, 138 µs without.
//! Here absolute numbers are instruction counts of an emulator; the order must be the same.

use std::{collections::HashMap, fmt::Write};

use anyhow::Result;

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

use super::common;

/// Load of the loaded rows.
const LOAD: &str = "cpu+memory+net+disk";
/// What the daemon takes each time in the article's trace, microseconds.
const BURST_US: u32 = 331;
/// Period of the measured threads, microseconds.
const PERIOD_US: u32 = 200;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "article/table",
            "stock and PREEMPT_RT, idle and loaded, with and without the daemon: the order of the \
             article",
            Machine::new("stock-6.1"),
        )
        .tier(Tier::Two)
        .limit_s(240)
        .script(script("stock"))
        .then_on(Machine::new("rt-6.1"))
        .script(script("rt"))
        .expect(table)
        .mutation("stock instead of PREEMPT_RT", "loaded: stock later than PREEMPT_RT", |case| {
            case.boots[1].machine.kernel = "stock-6.1";
        })
        .other_word("multipathd burst", "true", "daemon: later than without, rt loaded"),
    ]
}

fn script(kernel: &str) -> String {
    let mut script = String::new();
    for (daemon, prepare) in [("", ""), ("-daemon", daemon().as_str())] {
        for (load, name) in [("idle", "idle"), (LOAD, "loaded")] {
            let _ = writeln!(
                script,
                "{prepare}\nprove {kernel}-{name}{daemon} --for 1s --period {PERIOD_US}us \
                 --budget 138us --load {load} --load-dir /tmp --cpus 0\n[ -n \"$!\" ] && kill $! 2>/dev/null"
            );
        }
    }
    script
}

fn daemon() -> String {
    format!(
        "multipathd burst --busy {BURST_US}us --every 300ms --policy rr:99 --for 120s --cgroup \
         /sys/fs/cgroup/system.slice/multipathd.service &"
    )
}

fn table(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let mut text = String::from(
        "| kernel | load | daemon | scheduled | missed | median µs | 99.9 % µs | worst µs | late \
         |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let mut worst = HashMap::new();
    for kernel in ["stock", "rt"] {
        for load in ["idle", "loaded"] {
            for daemon in ["", "-daemon"] {
                let name = format!("{kernel}-{load}{daemon}");
                let report = seen.report(&name)?;
                common::adds_up(expect, &name, &report, 1);
                text += &row(kernel, load, !daemon.is_empty(), &report)?;
                worst.insert(name, report.number("/all/max_ns")?);
            }
        }
    }
    seen.keep("article.md", &text)?;
    order(&worst, expect);
    Ok(())
}

/// The order of the worst latencies, by the name of the run.
fn order(worst: &HashMap<String, i64>, expect: &mut Expect) {
    let mut later = |what: &str, late: &str, early: &str| {
        let pair = (worst[late], worst[early]);
        // Two runs of the same differ too.
        expect.that(what, "the first is later by a quarter", 4 * pair.0 > 5 * pair.1, pair);
    };
    later("loaded: stock later than PREEMPT_RT", "stock-loaded", "rt-loaded");
    later("loaded, daemon: stock later than PREEMPT_RT", "stock-loaded-daemon", "rt-loaded-daemon");
    later(
        "loaded: stock without the daemon later than PREEMPT_RT with it",
        "stock-loaded",
        "rt-loaded-daemon",
    );
    later("daemon: later than without, rt loaded", "rt-loaded-daemon", "rt-loaded");
    later("daemon: later than without, rt idle", "rt-idle-daemon", "rt-idle");
    later("stock: loaded later than idle", "stock-loaded", "stock-idle");
    // "When the system is idling the values are very similar".
    let (stock, rt) = (worst["stock-idle"], worst["rt-idle"]);
    expect.that(
        "idle: alike",
        "within a factor of 5",
        stock < 5 * rt && rt < 5 * stock,
        (stock, rt),
    );
    let daemon_ns = worst["rt-loaded-daemon"];
    // At worst a burst begins just after a wake-up: the next one is due a period later.
    let least_us = i64::from(BURST_US - PERIOD_US);
    expect.within("daemon: its burst is seen, µs", daemon_ns / 1000, least_us..=450);
}

fn row(kernel: &str, load: &str, has_daemon: bool, report: &Json) -> Result<String> {
    let us = |ns: Option<i64>| ns.map_or("-".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e3));
    let quantile = |above: i64, of: i64| {
        let found = report.list("/all/wake").iter().find(|quantile| {
            quantile["q"]["above"].as_i64() == Some(above)
                && quantile["q"]["of"].as_i64() == Some(of)
        });
        us(found.and_then(|quantile| quantile["value_ns"].as_i64()))
    };
    Ok(format!(
        "| {kernel} | {load} | {} | {} | {} | {} | {} | {} | {} |\n",
        if has_daemon { "yes" } else { "no" },
        report.number("/all/scheduled")?,
        report.number("/all/missed")?,
        quantile(1, 2),
        quantile(1, 1000),
        us(report.at("/all/max_ns").as_i64()),
        report.number("/all/late")?,
    ))
}
