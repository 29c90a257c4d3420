//! jitterdebugger: `results.json`, `samples.raw`, and the text of its jittersamples.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::draft::{blank, series};
use super::text::{
    ImportText, Pairs, SeriesCells, SysInfo, ValueCounter, decimal_ns, head, scaled, too_large,
};
use super::{
    Hints, ImportError, Imported, ImportedThread, Importer, SampleKind, THREADS_MAX, text,
};
use crate::error::Contradiction;

// The text that jittersamples makes of jitterdebugger's records:
// `thread;seconds.nanoseconds;value`.

fn sample(line: &str) -> Option<(u32, (u64, u64), u64)> {
    let mut parts = line.trim().split(';');
    let (thread, time, value) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, nanoseconds) = time.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if parts.next().is_some() || !digits(seconds) || nanoseconds.len() != 9 || !digits(nanoseconds)
    {
        return None;
    }
    let time = (seconds.parse().ok()?, nanoseconds.parse().ok()?);
    Some((thread.parse().ok()?, time, value.parse().ok()?))
}

pub(crate) const CSV: Importer = Importer {
    id: "jitterdebugger-csv",
    title: "Samples of jitterdebugger as jittersamples prints them.",
    detect: |bytes| head(bytes).lines().next().is_some_and(|line| sample(line).is_some()),
    read: read_csv,
};

fn read_csv(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut imported = blank("jitterdebugger", unit_ns, hints);
    let mut threads: BTreeMap<u32, ValueCounter> = BTreeMap::new();
    let mut times = BTreeMap::new();
    for line in text.lines() {
        let Some((thread, time, value)) = sample(line.text) else {
            return Err(line.unexpected(line.text, "thread;seconds.nanoseconds;value"));
        };
        if thread as usize >= THREADS_MAX {
            return Err(line.at(format!("thread {thread}")));
        }
        if times.insert(thread, time).is_some_and(|before| before >= time) {
            return Err(line.at("not later than the sample before it; import each run by itself"));
        }
        let ns = line.ns(value, unit_ns)?;
        let counter = threads.entry(thread).or_default();
        counter.push(ns, unit_ns, 1).map_err(|what| line.at(what))?;
    }
    for (number, counter) in threads {
        let mut thread = series(format!("thread {number}"), SampleKind::Latency);
        counter.fill(&mut thread);
        imported.threads.push(thread);
    }
    if hints.unit_ns.is_none() {
        imported.unit_assumed("microseconds");
    }
    imported.no_cpus();
    imported.not_ended();
    imported.conclude();
    Ok(imported)
}

// jitterdebugger `results.json`. It measures each wake-up against its own deadline, so it omits
// none; but its histogram ends at 1 ms, and what is later is only in the count.

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

pub(crate) const JSON: Importer = Importer {
    id: "jitterdebugger-json",
    title: "results.json of jitterdebugger.",
    detect,
    read: read_json,
};

fn detect(bytes: &[u8]) -> bool {
    let head = head(bytes);
    text::is_object(bytes)
        && ["\"sysinfo\"", "\"cpus_online\"", "\"cpu\""].iter().all(|key| head.contains(key))
}

fn read_json(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let (document, repaired): (Document, bool) = text::parse_json(bytes, hints)?;
    let wrong = |what: String| hints.at_byte(0, what);
    let unit_ns = match document.sysinfo.resolution_in_ns {
        Some(unit_ns @ (1 | 1000)) => unit_ns,
        other => {
            return Err(wrong(format!("resolution_in_ns is {other:?}, expected 1 or 1000")));
        }
    };
    let mut imported = blank("jitterdebugger", unit_ns, hints);
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
    let mut thread = series(format!("thread {number}"), SampleKind::Latency);
    thread.n = of.count;
    let histogram = of.histogram.by_number()?;
    let mut cells = SeriesCells::default();
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

// jitterdebugger `samples.raw`: packed records of 28 bytes, as they came.
//
// u32 thread, i64 seconds and i64 nanoseconds of the wake-up, u64 value; in the order of bytes of
// the machine that wrote them. The unit is not in the file.

const RECORD: usize = 28;

struct Record {
    thread: u32,
    seconds: i64,
    nanoseconds: i64,
    value: u64,
}

impl Record {
    fn of(bytes: &[u8], little: bool) -> Option<Self> {
        let four: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        let eight = |at: usize| -> Option<u64> {
            let eight: [u8; 8] = bytes.get(at..at + 8)?.try_into().ok()?;
            Some(if little { u64::from_le_bytes(eight) } else { u64::from_be_bytes(eight) })
        };
        Some(Self {
            thread: if little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) },
            seconds: eight(4)?.cast_signed(),
            nanoseconds: eight(12)?.cast_signed(),
            value: eight(20)?,
        })
    }

    /// Whether it can be one: no text has these bytes.
    fn is_sound(&self) -> bool {
        (self.thread as usize) < THREADS_MAX
            && (0..1 << 40).contains(&self.seconds)
            && (0..1_000_000_000).contains(&self.nanoseconds)
            && self.value < 1 << 50
    }
}

fn order(bytes: &[u8]) -> Option<bool> {
    let sound = |little| {
        let mut records = bytes.chunks_exact(RECORD).take(16);
        records.all(|record| Record::of(record, little).is_some_and(|record| record.is_sound()))
    };
    if bytes.len() < RECORD {
        return None;
    }
    [true, false].into_iter().find(|&little| sound(little))
}

pub(crate) const RAW: Importer = Importer {
    id: "jitterdebugger-raw",
    title: "Samples of jitterdebugger (-s), records of 28 bytes.",
    detect: |bytes| order(bytes).is_some(),
    read: read_raw,
};

fn read_raw(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let wrong = |offset: usize, what: String| hints.at_byte(offset, what);
    let little = order(bytes).ok_or_else(|| {
        wrong(0, format!("no records of {RECORD} bytes as jitterdebugger writes them"))
    })?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut imported = blank("jitterdebugger", unit_ns, hints);
    let mut threads: BTreeMap<u32, ValueCounter> = BTreeMap::new();
    let mut times = BTreeMap::new();
    let mut span: Option<(i64, i64)> = None;
    for (i, chunk) in bytes.chunks(RECORD).enumerate() {
        let at = i * RECORD;
        let record = Record::of(chunk, little).ok_or_else(|| {
            wrong(
                at,
                format!(
                    "a record of {} bytes, expected {RECORD}: the file was cut off",
                    chunk.len()
                ),
            )
        })?;
        if !record.is_sound() {
            return Err(wrong(
                at,
                format!(
                    "a record of thread {} at {}.{:09} s with value {}, which cannot be",
                    record.thread, record.seconds, record.nanoseconds, record.value
                ),
            ));
        }
        let time = (record.seconds, record.nanoseconds);
        if times.insert(record.thread, time).is_some_and(|before| before >= time) {
            let what = "a record not later than the one before it; import each run by itself";
            return Err(wrong(at, what.into()));
        }
        let ns = scaled(record.value, unit_ns).ok_or_else(|| wrong(at, too_large(record.value)))?;
        let counter = threads.entry(record.thread).or_default();
        counter.push(ns, unit_ns, 1).map_err(|what| wrong(at, what.into()))?;
        let (from, to) = span.unwrap_or((record.seconds, record.seconds));
        span = Some((from.min(record.seconds), to.max(record.seconds)));
    }
    for (number, counter) in threads {
        let mut thread = series(format!("thread {number}"), SampleKind::Latency);
        counter.fill(&mut thread);
        imported.threads.push(thread);
    }
    if let Some((from, to)) = span {
        imported.remarks.push(format!("samples of {} s", to - from));
    }
    if hints.unit_ns.is_none() {
        imported.unit_assumed("microseconds");
    }
    imported.doubt(
        "samples-lost",
        "jitterdebugger stops writing before it stops measuring: the last samples (1 to some \
         hundred) are not in the file",
    );
    imported.no_cpus();
    imported.not_ended();
    imported.conclude();
    Ok(imported)
}
