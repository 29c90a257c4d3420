//! cyclictest `-v`: every sample as `task:cycle:value`.
//!
//! The samples pass a ring of 16384; a reader that is too slow loses some, and only the numbers of
//! the cycles tell.

use std::collections::BTreeMap;

use super::super::{
    Hints, ImportError, Imported, Importer, Kind, THREADS_MAX, command,
    counter::Counter,
    draft::{draft, remark, series},
    text::{Line, Text, head},
};
use super::is_aside;

pub(crate) const VERBOSE: Importer =
    Importer { id: "cyclictest-verbose", title: "cyclictest -v, every sample.", detect, read };

fn detect(bytes: &[u8]) -> bool {
    let head = head(bytes);
    // Before the samples there may be the command line or a label.
    let mut lines = head.lines().filter(|line| !is_aside(line)).take(LABELS_MAX + 1);
    lines.any(|line| sample(line).is_some())
}

/// Lines of other text before the first sample.
const LABELS_MAX: usize = 8;

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut imported = draft("cyclictest", unit_ns, hints);
    let mut tasks: BTreeMap<u64, Task> = BTreeMap::new();
    let mut intervals_us = Vec::new();
    for line in text.lines() {
        if let Some(interval) = line.text.trim().strip_prefix("Thread ")
            && let Some((_, interval)) = interval.split_once(" Interval: ")
        {
            intervals_us.push(line.number(interval)?);
        }
        if is_aside(line.text) {
            continue;
        }
        if command::cyclictest(line.text).is_some() {
            imported
                .command
                .get_or_insert_with(|| line.text.trim_start_matches(['#', '$', ' ']).into());
            continue;
        }
        let Some([task, cycle, value]) = sample(line.text) else {
            if tasks.is_empty() && line.number <= LABELS_MAX as u64 {
                remark(&mut imported, line.text);
                continue;
            }
            return Err(line.unexpected(line.text, "task:cycle:value"));
        };
        if tasks.len() >= THREADS_MAX && !tasks.contains_key(&task) {
            return Err(line.at(format!("more than {THREADS_MAX} threads")));
        }
        tasks.entry(task).or_default().push(line, cycle, value, unit_ns)?;
    }
    if tasks.is_empty() {
        return Err(text.cut("a sample (task:cycle:value)"));
    }
    if let Some(missing) = (0..tasks.len() as u64).find(|number| !tasks.contains_key(number)) {
        return Err(text.cut(&format!("a sample of thread {missing}")));
    }
    let (mut lost, mut step) = (0_u64, 1_u64);
    for (number, task) in tasks {
        step = step.max(task.step.unwrap_or(1));
        lost = lost.saturating_add(task.lost());
        let mut thread = series(format!("thread {number}"), Kind::Latency);
        task.counter.fill(&mut thread);
        imported.threads.push(thread);
    }
    if step > 1 {
        let text = format!(
            "each value is the largest of {step} samples (-o): no quantile of single \
             samples can be told"
        );
        imported.doubt("reduced", text);
    }
    if lost > 0 {
        let text = format!(
            "{lost} samples are missing between those that are there: cyclictest \
             overwrote them before they were printed, in bursts, so often the latest ones"
        );
        imported.doubt("samples-lost", text);
    }
    imported.not_ended();
    imported.no_cpus();
    let distance_ns = distance_us(&intervals_us).and_then(|us| us.checked_mul(1000));
    super::conclude(&mut imported, distance_ns);
    let said_ns = intervals_us.first().and_then(|us| us.checked_mul(1000));
    if let (Some(said_ns), Some(distance_ns), Some(period_ns)) =
        (said_ns, distance_ns, imported.period_ns)
        && said_ns != period_ns
        && said_ns.checked_sub(distance_ns) != Some(period_ns)
    {
        let text = format!(
            "the file says an interval of {} µs for the first thread, the command line {} µs: \
             they are not of the same run",
            said_ns / 1000,
            period_ns / 1000
        );
        imported.doubt("command-interval", text);
        imported.forget_omitted();
    }
    Ok(imported)
}

/// By how much the interval grows from thread to thread. The intervals themselves are not taken:
/// cyclictest adds the distance before it prints them, so that each is that of the next thread.
fn distance_us(intervals_us: &[u64]) -> Option<u64> {
    let mut steps = intervals_us.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
    let first = steps.next()??;
    steps.all(|step| step == Some(first)).then_some(first)
}

/// Task, cycle and value; `--smi` adds a count of SMIs, with no colon before it.
fn sample(line: &str) -> Option<[u64; 3]> {
    let (task, rest) = line.split_once(':')?;
    let (cycle, rest) = rest.split_once(':')?;
    let mut words = rest.split_whitespace().map(|word| word.parse::<u64>().ok());
    let value = words.next()??;
    let is_whole = matches!((words.next(), words.next()), (None | Some(Some(_)), None));
    is_whole.then_some([task.trim().parse().ok()?, cycle.trim().parse().ok()?, value])
}

#[derive(Default)]
struct Task {
    counter: Counter,
    first: Option<u64>,
    last: u64,
    /// Smallest distance of two cycles: 1, or what `-o` requested.
    step: Option<u64>,
    count: u64,
}

impl Task {
    fn push(
        &mut self,
        line: Line<'_>,
        cycle: u64,
        value: u64,
        unit_ns: u64,
    ) -> Result<(), ImportError> {
        if self.first.is_some() {
            if cycle <= self.last {
                let what = format!("cycle {cycle} comes after {}", self.last);
                return Err(line.at(what));
            }
            let step = cycle - self.last;
            self.step = Some(self.step.map_or(step, |least| least.min(step)));
        }
        self.first.get_or_insert(cycle);
        self.last = cycle;
        self.count += 1;
        let ns = line.ns(value, unit_ns)?;
        self.counter.push(ns, unit_ns, 1).map_err(|what| line.at(what))
    }

    /// Samples that the numbers of the cycles say there were.
    fn lost(&self) -> u64 {
        let Some(first) = self.first else { return 0 };
        let due = (self.last - first) / self.step.unwrap_or(1).max(1) + 1;
        due.saturating_sub(self.count)
    }
}
