//! cyclictest: histogram text of both dialects, live and summary text, `-v`, JSON.

pub(super) mod histogram;
pub(super) mod json;
pub(super) mod rows;
pub(super) mod summary;
pub(super) mod verbose;

use super::{Imported, command, text::scaled};

/// Whether a line is one that cyclictest, or a person, prints beside its result.
fn is_aside(line: &str) -> bool {
    const BEGINS: &[&str] = &[
        "policy:",
        "affinity:",
        "defaulting realtime priority",
        "WARN",
        "Warning",
        "INFO",
        "could not",
        "Max CPUs",
        "Online CPUs",
        "Number of online",
        "Thread ",
        "cyclictest V ",
        "# /dev",
        "/dev/cpu_dma_latency",
    ];
    let line = line.trim();
    line.is_empty() || BEGINS.iter().any(|begin| line.starts_with(begin))
}

/// Holds data against the command line, gives each thread its period, counts what was skipped.
/// `distance_ns`: by how much the period grows from thread to thread, where the file says it.
pub(super) fn conclude(imported: &mut Imported, distance_ns: Option<u64>) {
    let asked = imported.command.as_deref().and_then(command::cyclictest);
    if let Some(asked) = asked {
        let us = |us: u64| scaled(us, 1000).filter(|&ns| ns > 0);
        imported.period_ns = imported.period_ns.or(us(asked.interval_us));
        let second = |s: u64| scaled(s, 1_000_000_000);
        let by_loops = asked.loops.zip(imported.period_ns).and_then(|(n, ns)| n.checked_mul(ns));
        imported.duration_ns =
            imported.duration_ns.or(asked.duration_s.and_then(second)).or(by_loops);
        check(imported, &asked);
    }
    let distance_ns = distance_ns.or(asked.map(|asked| asked.distance_us.saturating_mul(1000)));
    for (i, thread) in (0_u64..).zip(&mut imported.threads) {
        let behind_ns = if i == 0 { Some(0) } else { distance_ns.map(|ns| ns.saturating_mul(i)) };
        let own = imported.period_ns.zip(behind_ns).map(|(ns, more)| ns.saturating_add(more));
        thread.period_ns = thread.period_ns.or(own);
    }
    imported.count_omitted();
    imported.conclude();
}

fn check(imported: &mut Imported, asked: &command::Requested) {
    let threads = imported.threads.len() as u64;
    if asked.threads.is_some_and(|asked| asked != threads) {
        let text = format!(
            "the command line asks for {} threads, the file has {threads}: they are not of the \
             same run, or threads were left out",
            asked.threads.unwrap_or(0)
        );
        imported.doubt("command-threads", text);
    }
    if asked.nanoseconds != (imported.resolution_ns == 1) {
        imported.doubt(
            "command-unit",
            "the command line and the file differ in the unit of values (-N): one of them is of \
             another run, and all values may be wrong by 1000",
        );
    }
    let rows_ns = asked.histogram.and_then(|rows| rows.checked_mul(imported.resolution_ns));
    let highest = |t: &super::ImportedThread| {
        let exact = t.bins.iter().filter(|_| t.overflow == 0).map(|bin| bin.low_ns).max();
        exact.unwrap_or(0)
    };
    let highest = imported.threads.iter().map(highest).max().unwrap_or(0);
    if rows_ns.is_some_and(|rows_ns| highest >= rows_ns) {
        imported.doubt(
            "command-histogram",
            "the file has rows that the histogram of the command line (-h, -H) does not have: they \
             are not of the same run",
        );
    }
}
