//! CSV (RFC 4180, but lines end in LF): one table at a time, first line names the columns.

use std::{
    fmt::Display,
    io::{self, Write},
};

use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use rtproof_host::text;
use rtproof_stats::{Histogram, Layout, moving::Lengths};

use super::{ExportError, Exporter};
use crate::rows::Row;
use crate::run::HostSecond;
use crate::{Opened, Run, rows, schema};

pub(super) const CSV: Exporter = Exporter {
    id: "csv",
    title: "One table as comma-separated values, for spreadsheets, pandas, gnuplot.",
    extension: "csv",
    tables: &NAMES,
    write,
};

/// Tables: name, names of the columns, rows.
const TABLES: [(&str, &str, Rows); 14] = [
    (
        "seconds",
        "thread,cpu,second,from_ns,to_ns,sampled,min_ns,max_ns,max_at_ns,sum_ns,missed,\
         missed_sum_ns,late_sampled,late_missed,late_clusters,early",
        seconds,
    ),
    ("hist", "thread,cpu,view,lower_ns,upper_ns,n", hist),
    ("top", "thread,cpu,due_ns,latency_ns", top),
    // Behind the columns of the machine.
    ("host", "cpu,busy_ms,steal_ms,freq_hz", host),
    ("loads", "name,detail,unit,work,from_ns,to_ns,error", loads),
    (
        "threads",
        "thread,cpu,tid,workload,policy,priority,locked,period_ns,first_due_ns,sampled,missed,\
         min_ns,max_ns,sum_ns,missed_sum_ns,late_sampled,late_missed,late_clusters,early,\
         end_reason,scheduled,faults_minor,faults_major,cpu_time_ns,preemptions",
        threads,
    ),
    ("notes", "at_ns,id,weakens,text", notes),
    ("spikes", "thread,cpu,due_ns,latency_ns,cause,culprit,complete", spikes),
    ("causes", "cause,culprit,top,ambiguous_ns,cpu,count,worst_ns,sum_ns", causes),
    (
        "effects",
        "knob,name,how,decision,kept,statistic,pairs,off_ns,on_ns,ratio_ppm,low_ppm,high_ppm,\
         p_ppb,adjusted_ppb",
        effects,
    ),
    ("slices", "slice,part,pair,knobs_on,from_ns,to_ns,n,p999_ns,max_ns,missed", slices),
    (
        "imported",
        "series,label,kind,cpu,n,min_ns,mean_ns,max_ns,max_is_at_least,overflow,expected,omitted,\
         period_ns",
        imported,
    ),
    ("bins", "series,label,lower_ns,upper_ns,n", bins),
    // Its head is made from the list of statistics.
    (super::MOVING_TABLE, "", |run, lines| {
        // The default lengths fit every run.
        match crate::spans(run, Lengths::default()) {
            Ok(spans) => super::moving_rows(run, spans, lines.out),
            Err(error) => Err(io::Error::other(error)),
        }
    }),
];

type Rows = fn(&Run, &mut Lines<'_>) -> io::Result<()>;

const NAMES: [&str; TABLES.len()] = {
    let mut names = [""; TABLES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = TABLES[at].0;
        at += 1;
    }
    names
};

fn write(opened: &Opened, table: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    for (_, head, rows) in TABLES.iter().filter(|(name, ..)| *name == table) {
        match table {
            "host" => writeln!(out, "{},{head}", host_columns().join(","))?,
            super::MOVING_TABLE => super::moving_head(out)?,
            _ => writeln!(out, "{head}")?,
        }
        rows(&opened.run, &mut Lines { out: &mut *out })?;
    }
    Ok(())
}

struct Lines<'a> {
    out: &'a mut dyn Write,
}

impl Lines<'_> {
    fn row(&mut self, cells: &[&dyn Display]) -> io::Result<()> {
        for (at, cell) in cells.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(self.out, "{comma}{cell}")?;
        }
        writeln!(self.out)
    }
}

/// Text as a cell, in quotes where it needs them.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = text::harmless_text(self.0);
        if text.contains([',', '"', '\n']) {
            write!(f, "\"{}\"", text.replace('"', "\"\""))
        } else {
            f.write_str(&text)
        }
    }
}

/// A cell that is empty when there is no value.
struct OptionalCell<T>(Option<T>);

impl<T: Display> Display for OptionalCell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

/// A unit variant as serde names it.
fn word(value: &impl serde::Serialize) -> String {
    rows::put::word(value).unwrap_or_default()
}

fn seconds(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for thread in &run.threads {
        for (number, second) in thread.seconds.iter().enumerate() {
            let totals = &second.totals;
            lines.row(&[
                &thread.info.number,
                &thread.info.cpu,
                &number,
                &second.from_ns,
                &second.to_ns,
                &totals.wake.count(),
                &OptionalCell(totals.wake.min()),
                &OptionalCell(totals.wake.max()),
                &second.max_at_ns,
                &totals.wake.sum(),
                &totals.missed,
                &totals.missed_sum_ns,
                &totals.late_sampled,
                &totals.late_missed,
                &totals.late_clusters,
                &totals.early,
            ])?;
        }
    }
    Ok(())
}

fn hist(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for thread in &run.threads {
        let views: [(&str, &Histogram); 2] = [("wake", &thread.wake), ("missed", &thread.missed)];
        for (view, histogram) in views {
            for (bucket, n) in histogram.buckets() {
                lines.row(&[
                    &thread.info.number,
                    &thread.info.cpu,
                    &view,
                    &Layout::FINE.lower(bucket),
                    &Layout::FINE.upper(bucket),
                    &n,
                ])?;
            }
        }
    }
    Ok(())
}

fn top(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for thread in &run.threads {
        for sample in &thread.top {
            let info = &thread.info;
            lines.row(&[&info.number, &info.cpu, &sample.due_ns, &sample.latency_ns])?;
        }
    }
    Ok(())
}

/// One row per reading and CPU; the machine's values come with each.
fn host(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for host in &run.host {
        let machine = cells(host)?.join(",");
        if host.cpus.is_empty() {
            lines.row(&[&machine, &"", &"", &"", &""])?;
        }
        for cpu in &host.cpus {
            lines.row(&[
                &machine,
                &cpu.cpu,
                &cpu.busy_ms,
                &cpu.steal_ms,
                &OptionalCell(cpu.freq_hz),
            ])?;
        }
    }
    Ok(())
}

/// The columns of the machine, without the number of the row.
fn host_columns() -> Vec<&'static str> {
    let columns = schema::table(HostSecond::TABLE).map_or(&[][..], |table| table.columns);
    columns.iter().skip(1).map(|column| column.name).collect()
}

/// The columns of a row that hold numbers, as the record has them; unknown is empty.
fn cells(row: &impl Row) -> io::Result<Vec<String>> {
    let mut cells = Vec::new();
    row.put(&mut |values| {
        for value in values {
            cells.push(match value.to_sql()? {
                ToSqlOutput::Owned(Value::Integer(number))
                | ToSqlOutput::Borrowed(ValueRef::Integer(number)) => number.to_string(),
                _ => String::new(),
            });
        }
        Ok(())
    })
    .map_err(io::Error::other)?;
    Ok(cells)
}

fn loads(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for load in &run.loads {
        lines.row(&[
            &Text(&load.name),
            &Text(&load.detail),
            &Text(&load.unit),
            &load.work,
            &load.from_ns,
            &load.to_ns,
            &OptionalCell(load.error.as_deref().map(Text)),
        ])?;
    }
    Ok(())
}

fn threads(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for thread in &run.threads {
        let (info, totals, end) = (&thread.info, &thread.totals, thread.end.as_ref());
        lines.row(&[
            &info.number,
            &info.cpu,
            &info.tid,
            &Text(&info.workload),
            &word(&info.policy),
            &info.priority,
            &info.locked,
            &info.period_ns,
            &info.first_due_ns,
            &totals.wake.count(),
            &totals.missed,
            &OptionalCell(totals.wake.min()),
            &OptionalCell(totals.wake.max()),
            &totals.wake.sum(),
            &totals.missed_sum_ns,
            &totals.late_sampled,
            &totals.late_missed,
            &totals.late_clusters,
            &totals.early,
            &OptionalCell(end.map(|end| word(&end.reason))),
            &OptionalCell(end.map(|end| end.scheduled)),
            &OptionalCell(end.map(|end| end.faults_minor)),
            &OptionalCell(end.map(|end| end.faults_major)),
            &OptionalCell(end.map(|end| end.cpu_time_ns)),
            &OptionalCell(end.map(|end| end.preemptions)),
        ])?;
    }
    Ok(())
}

fn spikes(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for spike in run.spikes.iter().flat_map(|spikes| &spikes.list) {
        let cpu = run.threads.iter().find(|thread| thread.info.number == spike.thread);
        let why = spike.why.as_ref();
        lines.row(&[
            &spike.thread,
            &OptionalCell(cpu.map(|thread| thread.info.cpu)),
            &spike.due_ns,
            &spike.latency_ns,
            &OptionalCell(why.map(|why| Text(&why.cause))),
            &OptionalCell(why.map(|why| Text(&why.culprit))),
            &OptionalCell(why.map(|why| why.complete)),
        ])?;
    }
    Ok(())
}

/// One row per cause, culprit and CPU.
fn causes(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    let entries = run.spikes.iter().flat_map(|spikes| &spikes.causes);
    for cause in entries.map(|entry| &entry.row) {
        for cpu in &cause.cpus {
            lines.row(&[
                &Text(&cause.cause),
                &Text(&cause.culprit),
                &cause.top,
                &cause.ambiguous_ns,
                &cpu.cpu,
                &cpu.count,
                &cpu.worst_ns,
                &cpu.sum_ns,
            ])?;
        }
    }
    Ok(())
}

/// One row per knob and statistic.
fn effects(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for knob in run.effects.iter().flat_map(|effects| &effects.knobs) {
        for effect in &knob.effects {
            lines.row(&[
                &knob.number,
                &Text(&knob.name),
                &word(&knob.how),
                &word(&knob.decision),
                &knob.kept,
                &effect.statistic.name(),
                &effect.pairs,
                &effect.off_ns,
                &effect.on_ns,
                &effect.ratio_ppm,
                &OptionalCell(effect.low_ppm),
                &OptionalCell(effect.high_ppm),
                &OptionalCell(effect.p_ppb),
                &OptionalCell(effect.adjusted_ppb),
            ])?;
        }
    }
    Ok(())
}

/// Knobs that were on are joined by spaces.
fn slices(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for slice in run.effects.iter().flat_map(|effects| &effects.slices) {
        let on: Vec<String> = slice.on.iter().map(ToString::to_string).collect();
        lines.row(&[
            &slice.number,
            &word(&slice.part),
            &slice.pair,
            &on.join(" "),
            &slice.from_ns,
            &slice.to_ns,
            &slice.scheduled,
            &OptionalCell(slice.p999_ns),
            &OptionalCell(slice.max_ns),
            &slice.missed,
        ])?;
    }
    Ok(())
}

fn notes(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    for note in &run.notes {
        lines.row(&[&note.at_ns, &Text(&note.id), &note.weakens, &Text(&note.text)])?;
    }
    Ok(())
}

/// One row per series of another tool.
fn imported(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    let Some(imported) = &run.imported else { return Ok(()) };
    let omitted = |i: usize| imported.omitted.as_ref()?.by_thread.get(i).copied();
    for (i, thread) in imported.threads.iter().enumerate() {
        lines.row(&[
            &i,
            &Text(&thread.label),
            &word(&thread.kind),
            &OptionalCell(thread.cpu),
            &thread.n,
            &OptionalCell(thread.min_ns),
            &OptionalCell(thread.mean_ns),
            &OptionalCell(thread.max_ns),
            &thread.max_is_at_least,
            &thread.overflow,
            &OptionalCell(thread.expected),
            &OptionalCell(omitted(i)),
            &OptionalCell(thread.period_ns),
        ])?;
    }
    Ok(())
}

/// One row per cell of a series of another tool.
fn bins(run: &Run, lines: &mut Lines<'_>) -> io::Result<()> {
    let threads = run.imported.iter().flat_map(|imported| imported.threads.iter().enumerate());
    for (i, thread) in threads {
        for bin in thread.bins.iter() {
            lines.row(&[&i, &Text(&thread.label), &bin.low_ns, &bin.high_ns, &bin.n])?;
        }
    }
    Ok(())
}
