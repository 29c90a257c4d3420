//! cyclictest's single samples (`-v`) and its JSON.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;

use super::cyclictest::is_aside;
use super::draft::{blank, remark, series};
use super::text::{
    ImportLine, ImportText, Pairs, SeriesCells, SysInfo, ValueCounter, decimal_ns, head, scaled,
    too_large,
};
use super::{
    Hints, ImportError, Imported, ImportedThread, Importer, SampleKind, THREADS_MAX, text,
};
use crate::error::Contradiction;

// cyclictest `--json`: exact counts of what fell into the histogram; what did not is only in the
// count of cycles.

/// Common envelope of the results of rt-tests.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<T> {
    #[serde(rename = "cmdline:", alias = "cmdline", default)]
    pub(crate) cmdline: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version", default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) start_time: String,
    #[serde(default)]
    pub(crate) end_time: String,
    #[serde(default)]
    pub(crate) return_code: i64,
    #[serde(default)]
    pub(crate) sysinfo: SysInfo,
    pub(crate) num_threads: u64,
    #[serde(default)]
    pub(crate) resolution_in_ns: u64,
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    pub(crate) thread: Pairs<T>,
}

impl<T> Envelope<T> {
    /// Puts what the envelope says into an import. Returns its threads by number.
    pub(crate) fn open(
        self,
        imported: &mut Imported,
        repaired: bool,
    ) -> Result<Vec<(u64, T)>, Contradiction> {
        if imported.command.is_none() && !self.cmdline.is_empty() {
            imported.command = Some(self.cmdline);
        }
        imported.tool_version = (!self.version.is_empty()).then_some(self.version);
        imported.machine = self.sysinfo.text();
        imported.started_s = text::mail_time_s(&self.start_time);
        let ended_s = text::mail_time_s(&self.end_time);
        if let (Some(from), Some(to), Some(command)) =
            (imported.started_s, ended_s, imported.command.as_deref())
            && let Some(asked) =
                super::draft::cyclictest(command).and_then(|asked| asked.duration_s)
        {
            let took = to.saturating_sub(from);
            let asked = i64::try_from(asked).unwrap_or(i64::MAX);
            if (took - asked).abs() > 2 + asked / 100 {
                let text = format!(
                    "the command line asks for {asked} s, but from start to end it took {took} s"
                );
                imported.doubt("command-duration", text);
            }
        }
        if repaired {
            imported.doubt(
                "repaired",
                "the command line in the file is not escaped, so that it is no JSON; it was \
                 repaired, the numbers are as they were",
            );
        }
        if self.return_code != 0 {
            imported.remarks.push(format!("the tool ended with code {}", self.return_code));
        }
        let threads = self.thread.by_number()?;
        if threads.is_empty() || threads.len() > THREADS_MAX {
            return Err(format!("{} threads, expected 1 to {THREADS_MAX}", threads.len()).into());
        }
        if threads.len() as u64 != self.num_threads {
            let text = format!(
                "the file says {} threads and has {}: some were left out",
                self.num_threads,
                threads.len()
            );
            imported.doubt("command-threads", text);
        }
        Ok(threads)
    }
}

#[derive(Debug, Deserialize)]
struct OfThread {
    #[serde(default)]
    histogram: Pairs<u64>,
    cycles: u64,
    min: u64,
    max: u64,
    avg: serde_json::Number,
    cpu: Option<u32>,
}

/// The program in a command line of an envelope.
pub(crate) fn program(bytes: &[u8]) -> Option<String> {
    let head = head(bytes);
    if !text::is_object(bytes) || !head.contains("\"rt_test_version") {
        return None;
    }
    // On a line of its own as the tools write it, or not, after a jq -c.
    let line = head[head.find("\"cmdline")?..].lines().next()?;
    let after = line.split_once(": \"").map_or(line, |(_, after)| after);
    let words = after.split(['"', ' ', ',']);
    let found = words
        .map(super::draft::base)
        .find(|word| ["cyclictest", "cyclicdeadline", "signaltest", "oslat"].contains(word));
    found.map(str::to_owned)
}

pub(crate) const JSON: Importer = Importer {
    id: "cyclictest-json",
    title: "cyclictest --json; signaltest and cyclicdeadline alike.",
    detect: |bytes| program(bytes).is_some_and(|program| program != "oslat"),
    read: read_json,
};

fn read_json(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let (envelope, repaired): (Envelope<OfThread>, bool) = text::parse_json(bytes, hints)?;
    let unit_ns = if envelope.resolution_in_ns == 1 { 1 } else { 1000 };
    let tool = program(bytes).unwrap_or_else(|| "cyclictest".into());
    let mut imported = blank(&tool, unit_ns, hints);
    let wrong = |what: String| hints.at_byte(0, what);
    let threads = envelope.open(&mut imported, repaired).map_err(|what| hints.at_byte(0, what))?;
    let asked = imported.command.as_deref().and_then(super::draft::cyclictest);
    let rows = asked.and_then(|asked| asked.histogram);
    for (number, thread) in threads {
        let read = one(number, thread, unit_ns, rows, &mut imported);
        let read = read.map_err(|what| wrong(format!("thread {number}: {what}")))?;
        imported.threads.push(read);
    }
    if imported.threads.iter().any(|thread| thread.overflow > 0) {
        imported.doubt(
            "overflow-inferred",
            "the JSON of this tool does not count what its histogram cannot hold: it was taken \
             from the cycles less the histogram",
        );
    }
    // With a histogram all threads have one period.
    let distance_ns = imported.threads.iter().any(|thread| !thread.bins.is_empty()).then_some(0);
    super::cyclictest::conclude(&mut imported, distance_ns);
    Ok(imported)
}

fn one(
    number: u64,
    of: OfThread,
    unit_ns: u64,
    rows: Option<u64>,
    imported: &mut Imported,
) -> Result<ImportedThread, Contradiction> {
    let ns = |value: u64| scaled(value, unit_ns).ok_or_else(|| too_large(value));
    let mut thread = series(
        of.cpu.map_or(format!("thread {number}"), |cpu| format!("CPU {cpu}")),
        SampleKind::Latency,
    );
    thread.cpu = of.cpu;
    thread.n = of.cycles;
    let histogram = of.histogram.by_number()?;
    if thread.n == 0 {
        return match histogram.is_empty() {
            true => Ok(thread),
            false => Err("no cycles, but a histogram".into()),
        };
    }
    (thread.min_ns, thread.max_ns) = (Some(ns(of.min)?), Some(ns(of.max)?));
    thread.mean_ns = decimal_ns(&of.avg.to_string(), unit_ns).map(|ns| ns as f64);
    if histogram.is_empty() && rows.is_none() {
        return Ok(thread);
    }
    let mut cells = SeriesCells::default();
    for (value, n) in &histogram {
        cells.push(ns(*value)?, unit_ns, *n)?;
    }
    let over = thread
        .n
        .checked_sub(cells.total())
        .ok_or_else(|| format!("{} cycles, but its histogram holds {}", thread.n, cells.total()))?;
    let last = histogram.last().map_or(0, |(value, _)| value.saturating_add(1));
    let from_ns = ns(rows.filter(|&rows| rows >= last).unwrap_or(last))?;
    if let Some((low_ns, high_ns)) = cells.edges()
        && (thread.min_ns != Some(low_ns) || (over == 0 && thread.max_ns != Some(high_ns)))
    {
        return Err(format!(
            "from {} to {}, but its histogram goes from {} to {}",
            of.min,
            of.max,
            low_ns / unit_ns,
            high_ns / unit_ns
        )
        .into());
    }
    thread.bins = cells.finish(over, from_ns, thread.max_ns)?;
    thread.overflow = over;
    if over > 0 {
        imported.censor(from_ns);
    }
    Ok(thread)
}

// cyclictest `-v`: every sample as `task:cycle:value`, or with `-o N` the largest of N and where
// it was.
//
// The samples pass a ring of 16384. To a reader that is too slow cyclictest writes old numbers of
// cycles with the values that have overwritten theirs: each of these comes again a ring later.

pub(crate) const VERBOSE: Importer = Importer {
    id: "cyclictest-verbose",
    title: "cyclictest -v, every sample.",
    detect,
    read: read_verbose,
};

fn detect(bytes: &[u8]) -> bool {
    let head = head(bytes);
    // Before the samples there may be the command line or a label.
    let mut lines = head.lines().filter(|line| !is_aside(line)).take(LABELS_MAX + 1);
    lines.any(|line| sample(line).is_some())
}

/// Lines of other text before the first sample.
const LABELS_MAX: usize = 8;

fn read_verbose(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut imported = blank("cyclictest", unit_ns, hints);
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
        if super::draft::cyclictest(line.text).is_some() {
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
    let (mut lost, mut reduced) = (0_u64, None);
    for (number, task) in tasks {
        if task.copies() {
            return Err(text.at(
                task.copied_at,
                format!(
                    "values of thread {number} are copies of later ones: cyclictest overwrote \
                     them before it printed them; take a histogram (-h), or a reader that keeps up"
                ),
            ));
        }
        match task.window() {
            Some(1) => {}
            Some(window) => reduced = Some(window.max(reduced.unwrap_or(0))),
            None => lost = lost.saturating_add((task.last + 1).saturating_sub(task.count)),
        }
        let mut thread = series(format!("thread {number}"), SampleKind::Latency);
        task.counter.fill(&mut thread);
        imported.threads.push(thread);
    }
    if let Some(window) = reduced {
        let text = format!(
            "each value is the largest of about {window} samples (-o): quantiles are those of \
             such maxima"
        );
        imported.doubt("reduced", text);
    }
    if lost > 0 {
        let text = format!(
            "{lost} samples are missing before or between those that are there, by the numbers of \
             their cycles"
        );
        imported.doubt("samples-lost", text);
    }
    imported.not_ended();
    imported.no_cpus();
    let distance_ns = distance_us(&intervals_us).and_then(|us| us.checked_mul(1000));
    super::cyclictest::conclude(&mut imported, distance_ns);
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
    if reduced.is_some() {
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
    let number = |word: &str| word.parse::<u64>().ok().filter(|&n| n <= i64::MAX as u64);
    let mut words = rest.split_whitespace().map(number);
    let value = words.next()??;
    let is_whole = matches!((words.next(), words.next()), (None | Some(Some(_)), None));
    is_whole.then_some([number(task.trim())?, number(cycle.trim())?, value])
}

/// Samples in cyclictest's ring.
const RING: usize = 16_384;

/// Equal values one after the other that are no chance, if far fewer are equal at another distance.
const COPIES_MIN: u64 = 256;

#[derive(Default)]
struct Task {
    counter: ValueCounter,
    last: u64,
    count: u64,
    /// The last values: two more than the ring holds.
    recent: VecDeque<u64>,
    /// Values equal to the one a ring before, and to the one beside that, one after the other: now
    /// and at most.
    equal: [(u64, u64); 2],
    /// Line where most were equal.
    copied_at: u64,
    /// Samples of which each is the largest, at least and at most.
    window: (u64, u64),
}

impl Task {
    fn push(
        &mut self,
        line: ImportLine<'_>,
        cycle: u64,
        value: u64,
        unit_ns: u64,
    ) -> Result<(), ImportError> {
        let mut cycle = cycle;
        if self.count > 0 && cycle <= self.last {
            // Of a value of 0 the number is that of a sample before it.
            if value > 0 {
                let what =
                    format!("cycle {cycle} comes after {}; import each run by itself", self.last);
                return Err(line.at(what));
            }
            cycle = self.last.saturating_add(1);
        }
        // The largest of the k-th window of N lies from k N to just below (k + 1) N.
        let k = self.count;
        let (least, most) = if k == 0 { (1, u64::MAX) } else { self.window };
        self.window =
            (least.max(cycle / (k + 1) + 1), most.min(cycle.checked_div(k).unwrap_or(most)));
        self.last = cycle;
        self.count += 1;
        for (back, (now, most)) in self.equal.iter_mut().enumerate() {
            let before = self.recent.len().checked_sub(RING - back).map(|at| self.recent[at]);
            *now = if before == Some(value) { *now + 1 } else { 0 };
            if *now > *most && back == 0 {
                self.copied_at = line.number;
            }
            *most = (*most).max(*now);
        }
        self.recent.push_back(value);
        if self.recent.len() > RING {
            self.recent.pop_front();
        }
        let ns = line.ns(value, unit_ns)?;
        self.counter.push(ns, unit_ns, 1).map_err(|what| line.at(what))
    }

    /// Whether values come again after a ring, and not because they are all alike.
    fn copies(&self) -> bool {
        let [(_, ring), (_, next_to)] = self.equal;
        ring >= COPIES_MIN && ring / 4 > next_to
    }

    /// Samples of which each is the largest; `None`: no number of them explains all cycles.
    fn window(&self) -> Option<u64> {
        let (least, most) = self.window;
        (least <= most).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn a_file_on_one_line_is_recognised_too() {
        let after_jq =
            br#"{"file_version":1,"cmdline:":"cyclictest -l50","rt_test_version:":"2.40"}"#;
        assert_eq!(program(after_jq).as_deref(), Some("cyclictest"));
        let other = br#"{"cmdline":"sleep 1","rt_test_version:":"2.40"}"#;
        assert_eq!(program(other), None);
    }
}
