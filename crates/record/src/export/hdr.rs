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
    Opened, Run,
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

fn write(opened: &Opened, _: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let run = &opened.run;
    if let Some(imported) = &run.imported {
        return series_log(run, imported.duration_ns.unwrap_or(0), out);
    }
    let longest = run.threads.iter().filter_map(|thread| thread.totals.wake.max()).max();
    let comments = [
        format!(
            "[Latencies in ns of run {}, by rtproof {}]",
            run.meta.run_id, run.meta.tool_version
        ),
        "[Tags: tN.cpuM = wake-ups of thread N; .missed = lateness of missed ones]".into(),
    ];
    let intervals = in_order(&run.threads).into_iter().flat_map(|(thread, second)| {
        let name = format!("t{}.cpu{}", thread.info.number, thread.info.cpu);
        let interval = |tag, pairs, max| Interval {
            from: Duration::from_nanos(second.from_ns),
            length: Duration::from_nanos(second.to_ns - second.from_ns),
            tag,
            values: values(pairs, max),
        };
        let missed = interval(format!("{name}.missed"), &second.missed, None);
        [interval(name, &second.wake, second.totals.wake.max()), missed]
    });
    log(run, longest, &comments, intervals.filter(|interval| !interval.values.is_empty()), out)
}

/// One interval for each series: when its samples were taken is not known.
fn series_log(run: &Run, length_ns: u64, out: &mut dyn Write) -> Result<(), ExportError> {
    let all = series::of(run);
    if let Some(bare) = all.iter().find(|series| series.n > 0 && series.bins.is_empty()) {
        return Err(cannot(format!("{}, which has no distribution", bare.tag)));
    }
    let longest = all.iter().filter_map(|series| series.values().last().map(|&(ns, _)| ns)).max();
    let comments = [format!("[Latencies in ns, imported by rtproof as {}]", run.meta.run_id)];
    let intervals = all.iter().map(|series| Interval {
        from: Duration::ZERO,
        length: Duration::from_nanos(length_ns),
        // A tag of this format holds no comma and no blank.
        tag: series.tag.replace(|c: char| c == ',' || c.is_whitespace(), "."),
        values: series.values(),
    });
    log(run, longest, &comments, intervals, out)
}

/// One line of the log.
struct Interval {
    from: Duration,
    length: Duration,
    tag: String,
    values: Vec<(u64, u64)>,
}

fn log(
    run: &Run,
    longest_ns: Option<u64>,
    comments: &[String],
    intervals: impl Iterator<Item = Interval>,
    mut out: &mut dyn Write,
) -> Result<(), ExportError> {
    let high = longest_ns.unwrap_or(0).max(VALUE_MAX);
    let mut histogram = Histogram::<u64>::new_with_bounds(1, high, DIGITS)
        .map_err(|error| cannot(format!("latencies up to {high} ns ({error})")))?;
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    for comment in comments {
        builder.add_comment(comment);
    }
    let mut log = builder
        .with_start_time(UNIX_EPOCH + Duration::from_nanos(run.meta.started_realtime_ns))
        .begin_log_with(&mut out, &mut serializer)?;
    for Interval { from, length, tag, values } in intervals {
        histogram.reset();
        for (ns, n) in values {
            histogram
                .record_n(ns, n)
                .map_err(|error| cannot(format!("{n} samples of {ns} ns ({error})")))?;
        }
        log.write_histogram(&histogram, from, length, Tag::new(&tag)).map_err(unwritten)?;
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

/// Counts of one second by value; the last bucket holds `max`, where it is known.
fn values(pairs: &[(u16, u64)], max: Option<u64>) -> Vec<(u64, u64)> {
    let mut values: Vec<(u64, u64)> =
        pairs.iter().map(|&(bucket, n)| (Layout::COARSE.upper(usize::from(bucket)), n)).collect();
    if let (Some(last), Some(max)) = (values.last_mut(), max) {
        last.0 = max;
    }
    values
}
