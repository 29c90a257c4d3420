//! Exports for other tools: cyclictest's histogram, HdrHistogram's log, JUnit.

use std::{
    io::{self, Write},
    time::{Duration, UNIX_EPOCH},
};

use hdrhistogram::{
    Histogram,
    serialization::{
        V2DeflateSerializeError, V2DeflateSerializer,
        interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag},
    },
};

use rtproof_host::text;
use rtproof_model::VerdictAnswer;
use rtproof_stats::{Layout, histogram::VALUE_MAX};

use super::{ExportError, ExportSeries, Exporter};
use crate::run::{Second, Thread};
use crate::{Opened, Run, SealState};

// The histogram of cyclictest `-h`, which gnuplot scripts of the field read: a row a microsecond,
// a column a thread, then totals and extremes. Our own importer reads it back.
//
// A wake-up is counted in the microsecond in which its latency ends, as cyclictest does. Missed
// wake-ups are not in it, as cyclictest has none; how many there are is said in a comment.

/// Rows at most; what is later is counted as an overflow, as cyclictest does.
const ROWS_MAX: u64 = 100_000;

pub(super) const CYCLICTEST: Exporter = Exporter {
    id: "cyclictest",
    title: "Histogram text as cyclictest -h writes it, a row a microsecond, for gnuplot scripts.",
    extension: "hist",
    tables: &[],
    write: write_cyclictest,
};

fn write_cyclictest(opened: &Opened, _: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let threads = super::series_of(&opened.run);
    if let Some(bare) = threads.iter().find(|thread| thread.n > 0 && thread.bins.is_empty()) {
        let what = format!("{}: it has no distribution", bare.tag);
        return Err(ExportError::Content { format: CYCLICTEST.id, what });
    }
    if threads.is_empty() {
        let what = "a record without threads".into();
        return Err(ExportError::Content { format: CYCLICTEST.id, what });
    }
    let columns: Vec<Column> = threads.iter().map(Column::of).collect();
    let meta = &opened.run.meta;
    writeln!(out, "# made by rtproof {} of run {}", meta.tool_version, meta.run_id)?;
    for (i, thread) in threads.iter().enumerate() {
        let missed = thread.missed.map_or("unknown".into(), |n| n.to_string());
        writeln!(out, "# column {i}: {}, missed wake-ups not in it: {missed}", thread.tag)?;
    }
    writeln!(out, "# Histogram")?;
    let end = columns.iter().filter_map(Column::last).max().map_or(0, |last| last + 1);
    let mut at = vec![0; columns.len()];
    for us in 0..end {
        write!(out, "{us:06}")?;
        for (i, (column, at)) in columns.iter().zip(&mut at).enumerate() {
            let n = column.take(us, at);
            write!(out, "{}{n:06}", if i == 0 { " " } else { "\t" })?;
        }
        writeln!(out)?;
    }
    foot(out, &threads, &columns)
}

/// The lines behind the rows.
fn foot(
    out: &mut dyn Write,
    threads: &[ExportSeries],
    columns: &[Column],
) -> Result<(), ExportError> {
    let us = |ns: Option<u64>| ns.unwrap_or(0) / 1000;
    let mut line = |name: &str, width: usize, of: &dyn Fn(usize) -> u64| {
        write!(out, "# {name}:")?;
        (0..columns.len()).try_for_each(|i| write!(out, " {:0width$}", of(i)))?;
        writeln!(out)
    };
    line("Total", 9, &|i| columns[i].within())?;
    line("Min Latencies", 5, &|i| us(threads[i].min_ns))?;
    line("Avg Latencies", 5, &|i| (threads[i].mean_ns.unwrap_or(0.0).max(0.0) / 1000.0) as u64)?;
    line("Max Latencies", 5, &|i| us(threads[i].max_ns))?;
    line("Histogram Overflows", 5, &|i| columns[i].overflow)?;
    writeln!(out, "# Histogram Overflow at cycle number:")?;
    for i in 0..columns.len() {
        writeln!(out, "# Thread {i}:")?;
    }
    Ok(())
}

/// Counts of one thread by microsecond, ascending.
struct Column {
    counts: Vec<(u64, u64)>,
    overflow: u64,
}

impl Column {
    fn of(series: &ExportSeries) -> Self {
        let mut column = Self { counts: Vec::new(), overflow: 0 };
        let mut values = series.values();
        if series.overflow > 0 {
            // Without value there is no row either.
            let held = series.n - series.overflow;
            let mut rest = held;
            for (_, n) in &mut values {
                *n = (*n).min(rest);
                rest -= *n;
            }
            column.overflow = series.overflow;
        }
        for (ns, n) in values.into_iter().filter(|&(_, n)| n > 0) {
            let us = ns / 1000;
            match column.counts.last_mut() {
                _ if us >= ROWS_MAX => column.overflow += n,
                Some((last, sum)) if *last == us => *sum += n,
                _ => column.counts.push((us, n)),
            }
        }
        column
    }

    fn last(&self) -> Option<u64> {
        self.counts.last().map(|&(us, _)| us)
    }

    fn within(&self) -> u64 {
        self.counts.iter().map(|&(_, n)| n).sum()
    }

    /// The count of a row; rows are read in order.
    fn take(&self, us: u64, at: &mut usize) -> u64 {
        match self.counts.get(*at) {
            Some(&(here, n)) if here == us => {
                *at += 1;
                n
            }
            _ => 0,
        }
    }
}

// HdrHistogram interval log (V2): what HistogramLogProcessor, HdrHistogram's plotters and jHiccup
// users open. One tagged interval per thread and second.
//
// A bucket becomes its upper edge, as in our quantiles; the largest sample of a second is exact.
// HdrHistogram itself rounds to 3 digits. Counts are kept to the last sample.

/// Digits that HdrHistogram keeps: the field's default.
const DIGITS: u8 = 3;

pub(super) const HDR: Exporter = Exporter {
    id: "hdr",
    title: "HdrHistogram interval log, one tagged interval per thread and second; values in ns.",
    extension: "hlog",
    tables: &[],
    write: write_hdr,
};

fn write_hdr(opened: &Opened, _: &str, out: &mut dyn Write) -> Result<(), ExportError> {
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
    let all = super::series_of(run);
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

// JUnit XML and TAP, for CI: a case for the verdict and one for each thread. A late wake-up fails
// its thread; what is unknown is skipped, with the reason.

pub(super) const JUNIT: Exporter = Exporter {
    id: "junit",
    title: "JUnit XML for CI: a case for the verdict, one for each thread.",
    extension: "xml",
    tables: &[],
    write: write_junit,
};

pub(super) const TAP: Exporter = Exporter {
    id: "tap",
    title: "Test Anything Protocol, for CI: a point for the verdict, one for each thread.",
    extension: "tap",
    tables: &[],
    write: write_tap,
};

fn cases(opened: &Opened) -> Vec<Case> {
    let verdict = verdict(opened);
    let threads: Vec<Case> = super::series_of(&opened.run)
        .iter()
        .map(|series| thread(series, &verdict.outcome))
        .collect();
    std::iter::once(verdict).chain(threads).collect()
}

/// Version 13 (testanything.org), which readers of 14 take, too; strings of JSON are YAML.
fn write_tap(opened: &Opened, _: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let cases = cases(opened);
    writeln!(out, "TAP version 13\n1..{}", cases.len())?;
    for (case, number) in cases.iter().zip(1..) {
        let (word, skip, why) = match &case.outcome {
            Outcome::Passed => ("ok", None, None),
            Outcome::Failed(why) => ("not ok", None, Some(why)),
            Outcome::Skipped(why) => ("ok", Some(why), None),
        };
        write!(out, "{word} {number} - {}", Tap(&case.name))?;
        match skip {
            Some(why) => writeln!(out, " # SKIP {}", Tap(why))?,
            None => writeln!(out)?,
        }
        let about = Some(&case.about).filter(|about| !about.is_empty());
        if why.or(about).is_some() {
            writeln!(out, "  ---")?;
            for (key, text) in [("message", why), ("about", about)] {
                let Some(text) = text else { continue };
                let text = serde_json::Value::from(text::harmless_line(text));
                writeln!(out, "  {key}: {text}")?;
            }
            writeln!(out, "  ...")?;
        }
    }
    Ok(())
}

/// A description in TAP: one line, in which `#` would begin a directive.
struct Tap<'a>(&'a str);

impl std::fmt::Display for Tap<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&text::harmless_line(self.0).replace('\\', r"\\").replace('#', r"\#"))
    }
}

fn write_junit(opened: &Opened, _: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let cases = cases(opened);
    let failures = cases.iter().filter(|case| matches!(case.outcome, Outcome::Failed(_))).count();
    let skipped = cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped(_))).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", cases.len());
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"rtproof run\" {counts}>")?;
    let id = &opened.run.meta.run_id;
    writeln!(out, "<testsuite name=\"{}\" {counts} skipped=\"{skipped}\" time=\"0\">", Xml(id))?;
    cases.iter().try_for_each(|case| case.write(out))?;
    writeln!(out, "</testsuite>\n</testsuites>")?;
    Ok(())
}

struct Case {
    name: String,
    outcome: Outcome,
    about: String,
}

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Case {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(
            out,
            "<testcase classname=\"rtproof.run\" name=\"{}\" time=\"0\">",
            Xml(&self.name)
        )?;
        match &self.outcome {
            Outcome::Passed => {}
            Outcome::Failed(why) => write!(out, "<failure message=\"{}\"/>", Xml(why))?,
            Outcome::Skipped(why) => write!(out, "<skipped message=\"{}\"/>", Xml(why))?,
        }
        writeln!(out, "<system-out>{}</system-out></testcase>", Xml(&self.about))
    }
}

/// The verdict as it was stored; a record that is not whole proves nothing.
fn verdict(opened: &Opened) -> Case {
    let stored = opened.judgement.as_ref();
    let about = stored.map_or(String::new(), |judgement| judgement.summary.clone());
    let verdict = stored.map(|judgement| &judgement.verdict);
    let sentence = verdict.map_or_else(|| about.clone(), |verdict| verdict.sentence.clone());
    let outcome = match (&opened.state, verdict.map(|verdict| verdict.answer)) {
        (SealState::Torn, _) => Outcome::Skipped("the record is torn".into()),
        (SealState::Altered { why }, _) => {
            Outcome::Failed(format!("the record was altered: {why}"))
        }
        (_, Some(VerdictAnswer::Accepted)) => Outcome::Passed,
        (_, Some(VerdictAnswer::Refused)) => Outcome::Failed(sentence),
        (_, Some(_)) => Outcome::Skipped(sentence),
        (_, None) => Outcome::Skipped("nothing was judged".into()),
    };
    Case { name: "verdict".into(), outcome, about }
}

/// One thread: it fails with the verdict if it was late, and for nothing else.
fn thread(series: &ExportSeries, verdict: &Outcome) -> Case {
    let ns = |ns: Option<u64>| ns.map_or("unknown".into(), |ns| format!("{ns} ns"));
    let missed = series.missed.map_or("unknown".into(), |n| n.to_string());
    let about = format!(
        "{} {}, from {} to {}, missed {missed}",
        series.n,
        series.kind.words(),
        ns(series.min_ns),
        ns(series.max_ns)
    );
    let late =
        || format!("{} late wake-ups, the latest sampled one {}", series.late, ns(series.max_ns));
    let outcome = match verdict {
        _ if series.n == 0 => Outcome::Skipped("no sample".into()),
        Outcome::Passed => Outcome::Passed,
        Outcome::Failed(_) if series.late > 0 => Outcome::Failed(late()),
        Outcome::Failed(_) => Outcome::Skipped("not late; the run is refused for others".into()),
        Outcome::Skipped(why) if series.late > 0 => Outcome::Skipped(format!("{}; {why}", late())),
        Outcome::Skipped(why) => Outcome::Skipped(why.clone()),
    };
    let name = match series.cpu {
        Some(cpu) if series.tag.starts_with('t') => format!("CPU {cpu}"),
        _ => series.tag.clone(),
    };
    Case { name, outcome, about }
}

/// Text in XML: what it may not hold is left out (XML 1.0, section 2.2).
struct Xml<'a>(&'a str);

impl std::fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in text::harmless_text(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' | '\r' => write!(f, "&#{};", c as u32)?,
                ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'.. => write!(f, "{c}")?,
                _ => {}
            }
        }
        Ok(())
    }
}
