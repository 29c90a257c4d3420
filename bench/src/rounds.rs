//! CPU time per wake-up and median latency: every tool once a round, a short and a long run each.
//! The difference of the two, over the difference of their wake-ups, leaves out what starting up,
//! reading the machine and writing a report cost, and keeps everything that goes on while
//! measuring.

use std::io::Write;

use crate::args::Args;
use crate::numbers::spread;
use crate::peers::{self, Order, Ran, Tool};

const SHORT_SECONDS: u64 = 1;

const TOOLS: usize = Tool::ALL.len();
const BARE: usize = Tool::Bare as usize;
const RTPROOF: usize = Tool::Rtproof as usize;
const CYCLICTEST: usize = Tool::Cyclictest as usize;
const UNTRACED: usize = Tool::Untraced as usize;

/// One tool in one round.
#[derive(Clone, Copy, Debug)]
struct Entry {
    cpu_ns: f64,
    thread_ns: Option<f64>,
    p50_us: Option<f64>,
}

/// Runs the rounds and prints the tables.
pub(crate) fn run(out: &mut impl Write, args: &Args) -> anyhow::Result<()> {
    let mut table: Vec<[Entry; TOOLS]> = Vec::new();
    for round in 0..args.rounds {
        let mut entries = [None; TOOLS];
        // The order turns from round to round, so that none always runs after the same one.
        for place in 0..TOOLS {
            let which = (place + round as usize) % TOOLS;
            entries[which] = Some(entry(Tool::ALL[which], args)?);
        }
        let entries: Vec<Entry> = entries.into_iter().flatten().collect();
        table.extend(<[Entry; TOOLS]>::try_from(entries).ok());
    }
    writeln!(
        out,
        "CPU time per wake-up, ns: CPU {}, period {} µs, {} rounds; median (quartiles; range)\n",
        args.cpu,
        args.period_us,
        table.len()
    )?;
    writeln!(
        out,
        "| tool | ns | ratio to the bare loop | ratio to cyclictest |\n|---|---|---|---|"
    )?;
    let column = |f: &dyn Fn(&[Entry; TOOLS]) -> Option<f64>, decimals: usize| {
        let values: Vec<f64> = table.iter().filter_map(f).collect();
        spread(values).map_or("-".into(), |s| s.text(decimals))
    };
    for (i, tool) in Tool::ALL.into_iter().enumerate() {
        let ns = column(&|row| Some(row[i].cpu_ns), 0);
        let bare = column(&|row| Some(row[i].cpu_ns / row[BARE].cpu_ns), 2);
        let cyclic = column(&|row| Some(row[i].cpu_ns / row[CYCLICTEST].cpu_ns), 2);
        writeln!(out, "| {} | {ns} | {bare} | {cyclic} |", tool.name())?;
    }
    let ns = column(&|row| row[RTPROOF].thread_ns, 0);
    let bare = column(&|row| Some(row[RTPROOF].thread_ns? / row[BARE].cpu_ns), 2);
    let cyclic = column(&|row| Some(row[RTPROOF].thread_ns? / row[CYCLICTEST].cpu_ns), 2);
    writeln!(out, "| rtproof, measuring thread alone | {ns} | {bare} | {cyclic} |\n")?;
    writeln!(out, "Median latency, µs\n\n| tool | p50 | ratio to cyclictest |\n|---|---|---|")?;
    for (i, tool) in Tool::ALL.into_iter().enumerate().skip(1) {
        let p50 = column(&|row| row[i].p50_us, 1);
        let ratio = column(&|row| Some(row[i].p50_us? / row[CYCLICTEST].p50_us?), 2);
        writeln!(out, "| {} | {p50} | {ratio} |", tool.name())?;
    }
    let added = column(&|row| Some(row[RTPROOF].p50_us? - row[UNTRACED].p50_us?), 2);
    writeln!(out, "\nWhat recording kernel events adds to the median, µs: {added}")?;
    Ok(())
}

fn entry(tool: Tool, args: &Args) -> anyhow::Result<Entry> {
    let order = |seconds| Order {
        rtproof: &args.rtproof,
        cpu: args.cpu,
        period_us: args.period_us,
        seconds,
    };
    let short: Ran = peers::run(tool, &order(SHORT_SECONDS))?;
    let long: Ran = peers::run(tool, &order(args.seconds))?;
    Ok(Entry {
        cpu_ns: (long.cpu_ns - short.cpu_ns) / (long.n - short.n),
        thread_ns: long.thread_cpu_ns.map(|ns| ns / long.n),
        p50_us: long.p50_us,
    })
}
