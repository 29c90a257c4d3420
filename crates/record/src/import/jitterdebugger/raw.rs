//! jitterdebugger `samples.raw`: packed records of 28 bytes, as they came.
//!
//! u32 thread, i64 seconds and i64 nanoseconds of the wake-up, u64 value; in the order of bytes of
//! the machine that wrote them. The unit is not in the file.

use std::collections::BTreeMap;

use super::super::{
    Hints, ImportError, Imported, Importer, Kind, THREADS_MAX,
    counter::Counter,
    draft::{draft, series},
    text::{scaled, too_large},
};

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
    read,
};

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let wrong = |offset: usize, what: String| hints.at_byte(offset, what);
    let little = order(bytes).ok_or_else(|| {
        wrong(0, format!("no records of {RECORD} bytes as jitterdebugger writes them"))
    })?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut imported = draft("jitterdebugger", unit_ns, hints);
    let mut threads: BTreeMap<u32, Counter> = BTreeMap::new();
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
        let mut thread = series(format!("thread {number}"), Kind::Latency);
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
