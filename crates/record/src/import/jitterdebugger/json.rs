//! jitterdebugger `results.json`. It measures each wake-up against its own deadline, so it omits
//! none; but its histogram ends at 1 ms, and what is later is only in the count.

use serde::Deserialize;

use super::super::{
    Hints, ImportError, Imported, ImportedThread, Importer, Kind, THREADS_MAX,
    draft::{draft, series},
    json::{self, Pairs, SysInfo},
    text::{Cells, decimal_ns, head, scaled, too_large},
};
use crate::error::Contradiction;

/// Where its histogram ends, whatever its resolution.
const END_NS: u64 = 1_000_000;

#[derive(Debug, Deserialize)]
struct Document {
    version: u64,
    sysinfo: SysInfo,
    cpu: Pairs<OfThread>,
}

#[derive(Debug, Deserialize)]
struct OfThread {
    histogram: Pairs<u64>,
    count: u64,
    min: u64,
    max: u64,
    avg: serde_json::Number,
}

pub(crate) const JSON: Importer =
    Importer { id: "jitterdebugger-json", title: "results.json of jitterdebugger.", detect, read };

fn detect(bytes: &[u8]) -> bool {
    let head = head(bytes);
    json::is_object(bytes)
        && ["\"sysinfo\"", "\"cpus_online\"", "\"cpu\""].iter().all(|key| head.contains(key))
}

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let (document, repaired): (Document, bool) = json::parse(bytes, hints)?;
    let wrong = |what: String| hints.at_byte(0, what);
    let unit_ns = match document.sysinfo.resolution_in_ns {
        Some(unit_ns @ (1 | 1000)) => unit_ns,
        other => {
            return Err(wrong(format!("resolution_in_ns is {other:?}, expected 1 or 1000")));
        }
    };
    let mut imported = draft("jitterdebugger", unit_ns, hints);
    imported.tool_version = Some(format!("format {}", document.version));
    imported.machine = document.sysinfo.text();
    if repaired {
        imported.doubt("repaired", "the file is no JSON: a text in it was not escaped");
    }
    let threads = document.cpu.by_number().map_err(|what| hints.at_byte(0, what))?;
    if threads.is_empty() || threads.len() > THREADS_MAX {
        return Err(wrong(format!("{} threads, expected 1 to {THREADS_MAX}", threads.len())));
    }
    for (number, of) in threads {
        let thread = one(number, of, unit_ns);
        let thread = thread.map_err(|what| wrong(format!("thread {number}: {what}")))?;
        if thread.overflow > 0 {
            imported.censor(END_NS);
        }
        imported.threads.push(thread);
    }
    if imported.threads.iter().any(|thread| thread.overflow > 0) {
        imported.doubt(
            "overflow-inferred",
            "the histogram of jitterdebugger ends at 1 ms and drops what is later: that was \
             taken from the count less the histogram",
        );
    }
    imported.no_cpus();
    imported.conclude();
    Ok(imported)
}

fn one(number: u64, of: OfThread, unit_ns: u64) -> Result<ImportedThread, Contradiction> {
    let ns = |value: u64| scaled(value, unit_ns).ok_or_else(|| too_large(value));
    let mut thread = series(format!("thread {number}"), Kind::Latency);
    thread.n = of.count;
    let histogram = of.histogram.by_number()?;
    let mut cells = Cells::default();
    for (value, n) in &histogram {
        cells.push(ns(*value)?, unit_ns, *n)?;
    }
    let over = thread
        .n
        .checked_sub(cells.total())
        .ok_or_else(|| format!("count {}, but its histogram holds {}", thread.n, cells.total()))?;
    if thread.n == 0 {
        return Ok(thread);
    }
    (thread.min_ns, thread.max_ns) = (Some(ns(of.min)?), Some(ns(of.max)?));
    thread.mean_ns = decimal_ns(&of.avg.to_string(), unit_ns).map(|ns| ns as f64);
    if let Some((low_ns, high_ns)) = cells.edges()
        && (thread.min_ns != Some(low_ns) || (over == 0 && thread.max_ns != Some(high_ns)))
    {
        return Err(format!(
            "from {} to {}, but its histogram goes from {} to {}",
            of.min,
            of.max,
            low_ns / unit_ns,
            high_ns / unit_ns
        )
        .into());
    }
    thread.bins = cells.finish(over, END_NS, thread.max_ns)?;
    thread.overflow = over;
    Ok(thread)
}
