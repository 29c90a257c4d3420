//! The text that jittersamples makes of jitterdebugger's records:
//! `thread;seconds.nanoseconds;value`.

use std::collections::BTreeMap;

use super::super::{
    Hints, ImportError, Imported, Importer, Kind, THREADS_MAX,
    counter::Counter,
    draft::{draft, series},
    text::{Text, head},
};

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
    read,
};

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut imported = draft("jitterdebugger", unit_ns, hints);
    let mut threads: BTreeMap<u32, Counter> = BTreeMap::new();
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
