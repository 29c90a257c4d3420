//! Moving statistics as CSV: a row for each step, of all CPUs together and of each one.

use std::io::{self, Write};

use rtproof_stats::moving::{STATISTICS, Spans, Step, Values};

use crate::{Run, moving, run::Thread};

/// Name of the table.
pub const TABLE: &str = "moving";

type Kind = (&'static str, fn(&Step) -> Option<&Values>);

const KINDS: [Kind; 3] = [
    ("cumulative", |step| step.cumulative.as_ref()),
    ("windowed", |step| step.windowed.as_ref()),
    ("exponential", |step| step.exponential.as_ref()),
];

/// Writes the names of the columns.
pub(super) fn head(out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "cpu,from_ns,to_ns,window_ns,half_life_ns,sampled,missed,gaps,window_missed,window_gaps"
    )?;
    for (kind, _) in KINDS {
        write!(out, ",{kind}_n")?;
        for statistic in &STATISTICS {
            write!(out, ",{kind}_{}", statistic.id)?;
        }
    }
    writeln!(out)
}

/// Writes the rows. No CPU: all together.
pub(super) fn rows(run: &Run, spans: Spans, out: &mut dyn Write) -> io::Result<()> {
    of(&run.threads, "", spans, out)?;
    if run.threads.len() < 2 {
        return Ok(());
    }
    run.threads.iter().try_for_each(|thread| {
        of(std::slice::from_ref(thread), &thread.info.cpu.to_string(), spans, out)
    })
}

fn of(threads: &[Thread], cpu: &str, spans: Spans, out: &mut dyn Write) -> io::Result<()> {
    let mut done = Ok(());
    moving::each(threads, spans, |step| {
        if done.is_ok() {
            done = row(&step, cpu, spans, out);
        }
    });
    done
}

fn row(step: &Step, cpu: &str, spans: Spans, out: &mut dyn Write) -> io::Result<()> {
    let Step { from_ns, to_ns, n, missed, gaps, window_missed, window_gaps, .. } = step;
    let Spans { window_ns, half_life_ns, .. } = spans;
    write!(
        out,
        "{cpu},{from_ns},{to_ns},{window_ns},{half_life_ns},{n},{missed},{gaps},{window_missed},\
         {window_gaps}"
    )?;
    for (_, values) in KINDS {
        let values = values(step);
        cell(out, values.map(|values| values.n))?;
        for statistic in &STATISTICS {
            cell(out, values.and_then(statistic.of))?;
        }
    }
    writeln!(out)
}

/// A value, or nothing where there is none.
fn cell(out: &mut dyn Write, value: Option<f64>) -> io::Result<()> {
    match value {
        Some(value) => write!(out, ",{value}"),
        None => write!(out, ","),
    }
}
