//! The histogram of cyclictest `-h`, which gnuplot scripts of the field read: a row a microsecond,
//! a column a thread, then totals and extremes. Our own importer reads it back.
//!
//! A wake-up is counted in the microsecond in which its latency ends, as cyclictest does. Missed
//! wake-ups are not in it, as cyclictest has none; how many there are is said in a comment.

use std::io::Write;

use super::{
    ExportError, Exporter,
    series::{self, Series},
};
use crate::Opened;

/// Rows at most; what is later is counted as an overflow, as cyclictest does.
const ROWS_MAX: u64 = 100_000;

pub(super) const CYCLICTEST: Exporter = Exporter {
    id: "cyclictest",
    title: "Histogram text as cyclictest -h writes it, a row a microsecond, for gnuplot scripts.",
    extension: "hist",
    tables: &[],
    write,
};

fn write(opened: &Opened, _: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let threads = series::of(&opened.run);
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
fn foot(out: &mut dyn Write, threads: &[Series], columns: &[Column]) -> Result<(), ExportError> {
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
    fn of(series: &Series) -> Self {
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
