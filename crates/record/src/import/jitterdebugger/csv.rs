//! The text that jittersamples makes of jitterdebugger's records:
//! `thread;seconds.nanoseconds;value`.

use std::collections::BTreeMap;

use super::super::{
    Hints, ImportError, Imported, Importer, Kind, THREADS_MAX,
    counter::Counter,
    draft::{draft, series},
    text::{Text, head, quoted},
};

/// Thread and value.
fn sample(line: &str) -> Option<(u32, u64)> {
    let mut parts = line.trim().split(';');
    let (thread, time, value) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, nanoseconds) = time.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if parts.next().is_some() || !digits(seconds) || nanoseconds.len() != 9 || !digits(nanoseconds)
    {
        return None;
    }
    Some((thread.parse().ok()?, value.parse().ok()?))
}

pub(in super::super) const CSV: Importer = Importer {
    id: "jitterdebugger-csv",
    title: "Samples of jitterdebugger as jittersamples prints them.",
    detect: |bytes| head(bytes).lines().next().is_some_and(|line| sample(line).is_some()),
    read,
};

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut imported = draft("jitterdebugger", unit_ns, hints);
    let mut threads: BTreeMap<u32, Counter> = BTreeMap::new();
    for line in text.lines() {
        let Some((thread, value)) = sample(line.text) else {
            let what = format!("{}, expected thread;seconds.nanoseconds;value", quoted(line.text));
            return Err(text.at(line.number, what));
        };
        if thread as usize >= THREADS_MAX {
            return Err(text.at(line.number, format!("thread {thread}")));
        }
        let ns = text.ns(line, value, unit_ns)?;
        let counter = threads.entry(thread).or_default();
        counter.push(ns, unit_ns, 1).map_err(|what| text.at(line.number, what))?;
    }
    for (number, counter) in threads {
        let mut thread = series(format!("thread {number}"), Kind::Latency);
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
