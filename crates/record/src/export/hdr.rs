//! HdrHistogram interval log (V2): what HistogramLogProcessor, HdrHistogram's plotters and jHiccup
//! users open. One tagged interval per thread and second.
//!
//! A bucket becomes its upper edge, as in our quantiles; the largest sample of a second is exact.
//! HdrHistogram itself rounds to 3 digits. Counts are kept to the last sample.

use std::{
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

use hdrhistogram::{
    Histogram,
    serialization::{
        V2DeflateSerializeError, V2DeflateSerializer,
        interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag},
    },
};
use rtproof_stats::{Layout, histogram::VALUE_MAX};

use super::{ExportError, Exporter, series};
use crate::{
    Opened,
    run::{Second, Thread},
};

/// Digits that HdrHistogram keeps: the field's default.
const DIGITS: u8 = 3;

pub(super) const HDR: Exporter = Exporter {
    id: "hdr",
    title: "HdrHistogram interval log, one tagged interval per thread and second; values in ns.",
    extension: "hlog",
    tables: &[],
    write,
};

fn write(opened: &Opened, _: &str, mut out: &mut dyn Write) -> Result<(), ExportError> {
    let run = &opened.run;
    if run.imported.is_some() {
        return imported(opened, out);
    }
    let longest = run.threads.iter().filter_map(|thread| thread.totals.wake.max()).max();
    let high = longest.unwrap_or(0).max(VALUE_MAX);
    let mut histogram = Histogram::<u64>::new_with_bounds(1, high, DIGITS)
        .map_err(|error| cannot(format!("latencies up to {high} ns ({error})")))?;
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&format!(
            "[Latencies in ns of run {}, by rtproof {}]",
            run.meta.run_id, run.meta.tool_version
        ))
        .add_comment("[Tags: tN.cpuM = wake-ups of thread N; .missed = lateness of missed ones]")
        .with_start_time(UNIX_EPOCH + Duration::from_nanos(run.meta.started_realtime_ns))
        .begin_log_with(&mut out, &mut serializer)?;
    for (thread, second) in in_order(&run.threads) {
        let name = format!("t{}.cpu{}", thread.info.number, thread.info.cpu);
        let from = Duration::from_nanos(second.from_ns);
        let length = Duration::from_nanos(second.to_ns - second.from_ns);
        let missed = (format!("{name}.missed"), &second.missed, None);
        for (name, pairs, max) in [(name, &second.wake, second.totals.wake.max()), missed] {
            if max.is_none() && pairs.is_empty() {
                continue;
            }
            fill(&mut histogram, pairs, max)?;
            log.write_histogram(&histogram, from, length, Tag::new(&name)).map_err(unwritten)?;
        }
    }
    Ok(())
}

/// One interval for each series: when its samples were taken is not known.
fn imported(opened: &Opened, mut out: &mut dyn Write) -> Result<(), ExportError> {
    let run = &opened.run;
    let all = series::of(run);
    if let Some(bare) = all.iter().find(|series| series.n > 0 && series.bins.is_empty()) {
        return Err(cannot(format!("{}, which has no distribution", bare.tag)));
    }
    let largest = |series: &series::Series| series.values().last().map(|&(ns, _)| ns);
    let high = all.iter().filter_map(largest).max().unwrap_or(0).max(VALUE_MAX);
    let mut histogram = Histogram::<u64>::new_with_bounds(1, high, DIGITS)
        .map_err(|error| cannot(format!("latencies up to {high} ns ({error})")))?;
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&format!("[Latencies in ns, imported by rtproof as {}]", run.meta.run_id))
        .with_start_time(UNIX_EPOCH + Duration::from_nanos(run.meta.started_realtime_ns))
        .begin_log_with(&mut out, &mut serializer)?;
    let length_ns = run.imported.as_ref().and_then(|imported| imported.duration_ns).unwrap_or(0);
    for series in all {
        histogram.reset();
        for (ns, n) in series.values() {
            histogram
                .record_n(ns, n)
                .map_err(|error| cannot(format!("{n} samples of {ns} ns ({error})")))?;
        }
        // A tag of this format holds no comma and no blank.
        let tag: String = series
            .tag
            .chars()
            .map(|c| if c == ',' || c.is_whitespace() { '.' } else { c })
            .collect();
        let tag = Tag::new(&tag);
        log.write_histogram(&histogram, Duration::ZERO, Duration::from_nanos(length_ns), tag)
            .map_err(unwritten)?;
    }
    Ok(())
}

fn unwritten(error: IntervalLogWriterError<V2DeflateSerializeError>) -> ExportError {
    match error {
        IntervalLogWriterError::IoError(error) => ExportError::Io(error),
        IntervalLogWriterError::SerializeError(error) => cannot(error.to_string()),
    }
}

fn cannot(what: String) -> ExportError {
    ExportError::Content { format: "hdr", what }
}

/// All seconds by time, as log readers expect.
fn in_order(threads: &[Thread]) -> Vec<(&Thread, &Second)> {
    let mut seconds: Vec<_> = threads
        .iter()
        .flat_map(|thread| thread.seconds.iter().map(move |second| (thread, second)))
        .collect();
    seconds.sort_by_key(|(thread, second)| (second.from_ns, thread.info.number));
    seconds
}

/// Counts of one second; the last bucket holds `max`, where it is known.
fn fill(
    histogram: &mut Histogram<u64>,
    pairs: &[(u16, u64)],
    max: Option<u64>,
) -> Result<(), ExportError> {
    histogram.reset();
    for (at, &(bucket, n)) in pairs.iter().enumerate() {
        let upper = Layout::COARSE.upper(usize::from(bucket));
        let value = if at + 1 == pairs.len() { max.unwrap_or(upper) } else { upper };
        histogram
            .record_n(value, n)
            .map_err(|error| cannot(format!("{n} samples of {value} ns ({error})")))?;
    }
    Ok(())
}
