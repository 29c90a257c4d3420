//! cyclictest: histogram text of both dialects, live and summary text, `-v`, JSON.

use std::collections::BTreeMap;

use super::draft::{blank, series};
use super::text::{
    ImportLine, ImportText, SeriesCells, decimal_ns, field, head, plain, quoted, scaled, tail,
};
use super::{Hints, ImportError, Imported, ImportedThread, Importer, SampleKind, THREADS_MAX};
use crate::error::Contradiction;

/// Whether a line is one that cyclictest, or a person, prints beside its result.
pub(super) fn is_aside(line: &str) -> bool {
    const BEGINS: &[&str] = &[
        "policy:",
        "affinity:",
        "defaulting realtime priority",
        "WARN",
        "Warning",
        "INFO",
        "could not",
        "Max CPUs",
        "Online CPUs",
        "Number of online",
        "Thread ",
        "cyclictest V ",
        "# /dev",
        "/dev/cpu_dma_latency",
    ];
    let line = line.trim();
    line.is_empty() || BEGINS.iter().any(|begin| line.starts_with(begin))
}

/// Holds data against the command line, gives each thread its period, counts what was skipped.
/// `distance_ns`: by how much the period grows from thread to thread, where the file says it.
pub(super) fn conclude(imported: &mut Imported, distance_ns: Option<u64>) {
    let options = imported.command.as_deref().and_then(super::draft::cyclictest);
    if let Some(options) = options {
        let us = |us: u64| scaled(us, 1000).filter(|&ns| ns > 0);
        imported.period_ns = imported.period_ns.or(us(options.interval_us));
        let second = |s: u64| scaled(s, 1_000_000_000);
        let by_loops = options.loops.zip(imported.period_ns).and_then(|(n, ns)| n.checked_mul(ns));
        imported.duration_ns =
            imported.duration_ns.or(options.duration_s.and_then(second)).or(by_loops);
        check(imported, &options);
    }
    let distance_ns =
        distance_ns.or(options.map(|options| options.distance_us.saturating_mul(1000)));
    for (i, thread) in (0_u64..).zip(&mut imported.threads) {
        let behind_ns = if i == 0 { Some(0) } else { distance_ns.map(|ns| ns.saturating_mul(i)) };
        let own = imported.period_ns.zip(behind_ns).map(|(ns, more)| ns.saturating_add(more));
        thread.period_ns = thread.period_ns.or(own);
    }
    imported.count_omitted();
    imported.conclude();
}

fn check(imported: &mut Imported, options: &super::draft::RequestedOptions) {
    let threads = imported.threads.len() as u64;
    if options.threads.is_some_and(|options| options != threads) {
        let text = format!(
            "the command line asks for {} threads, the file has {threads}: they are not of the \
             same run, or threads were left out",
            options.threads.unwrap_or(0)
        );
        imported.doubt("command-threads", text);
    }
    if options.nanoseconds != (imported.resolution_ns == 1) {
        imported.doubt(
            "command-unit",
            "the command line and the file differ in the unit of values (-N): one of them is of \
             another run, and all values may be wrong by 1000",
        );
    }
    let rows_ns = options.histogram.and_then(|rows| rows.checked_mul(imported.resolution_ns));
    let highest = |t: &ImportedThread| {
        let exact = t.bins.iter().filter(|_| t.overflow == 0).map(|bin| bin.low_ns).max();
        exact.unwrap_or(0)
    };
    let highest = imported.threads.iter().map(highest).max().unwrap_or(0);
    if rows_ns.is_some_and(|rows_ns| highest >= rows_ns) {
        imported.doubt(
            "command-histogram",
            "the file has rows that the histogram of the command line (-h, -H) does not have: they \
             are not of the same run",
        );
    }
}

// cyclictest `-h` and `-H`: the histogram as text, of both dialects.
//
// Up to 2.6 all rows are there, zeros as well, and a line `# Total:`; from 2.7 on rows of zeros
// and that line are left out. `-H` adds a column with the sum. Files whose rows were taken out
// (only the lines from `# Total:` on) are read for what is left.

pub(crate) const HISTOGRAM: Importer = Importer {
    id: "cyclictest-histogram",
    title: "cyclictest -h or -H, with or without its rows.",
    detect: detect_histogram,
    read: read_histogram,
};

fn detect_histogram(bytes: &[u8]) -> bool {
    let is_mark = |line: &str| line == "# Histogram" || line.starts_with("# Max Latencies:");
    head(bytes).lines().any(is_mark) || tail(bytes).lines().any(is_mark)
}

fn read_histogram(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut read = Read::default();
    for line in text.lines() {
        read.line(line)?;
    }
    read.finish(text, hints)
}

/// What was read so far.
#[derive(Default)]
struct Read<'a> {
    rows: Vec<(u64, Vec<u64>)>,
    rows_line: ImportLine<'a>,
    foot: [Option<(ImportLine<'a>, Vec<u64>)>; 5],
    threads_listed: u64,
    command: Option<String>,
    remarks: Vec<String>,
    begun: bool,
}

/// Lines behind the rows, in their order.
const FOOT: [&str; 5] = [
    "# Total:",
    "# Min Latencies:",
    "# Avg Latencies:",
    "# Max Latencies:",
    "# Histogram Overflows:",
];

const TOTAL: usize = 0;

const MIN: usize = 1;

const AVG: usize = 2;

const MAX: usize = 3;

const OVERFLOWS: usize = 4;

/// The lines behind the rows, one number for each thread.
struct Foot<'a> {
    mins: &'a [u64],
    totals: Option<&'a [u64]>,
    avgs: &'a [u64],
    maxs: &'a [u64],
    overs: &'a [u64],
    unit_ns: u64,
    /// The first value that has no row.
    end_ns: u64,
}

impl<'a> Read<'a> {
    fn line(&mut self, line: ImportLine<'a>) -> Result<(), ImportError> {
        let words = line.text.trim();
        if words == "# Histogram" {
            if self.begun {
                return Err(line.at("a second histogram; import each run by itself"));
            }
            self.begun = true;
            return Ok(());
        }
        if let Some(which) = FOOT.iter().position(|key| words.starts_with(key)) {
            let numbers = line.numbers(&words[FOOT[which].len()..])?;
            if self.foot[which].is_some() {
                return Err(line.at(format!("a second line {}", quoted(FOOT[which]))));
            }
            self.foot[which] = Some((line, numbers));
            return Ok(());
        }
        if let Some(rest) = words.strip_prefix("# Thread ") {
            let number = line.number(rest.split(':').next().unwrap_or(""))?;
            if number != self.threads_listed {
                let what = format!("thread {number}, expected {}", self.threads_listed);
                return Err(line.at(what));
            }
            self.threads_listed += 1;
            return Ok(());
        }
        if let Some(comment) = words.strip_prefix('#') {
            self.comment(comment.trim());
            return Ok(());
        }
        if words.is_empty() {
            return Ok(());
        }
        if words.starts_with(|c: char| c.is_ascii_digit()) && self.begun {
            return self.row(line);
        }
        self.around(line)
    }

    /// A comment may hold the command line; a warning is worth telling.
    fn comment(&mut self, comment: &str) {
        if self.command.is_none() && super::draft::cyclictest(comment).is_some() {
            self.command = Some(comment.into());
        } else if comment.to_ascii_uppercase().contains("WARN") {
            self.remarks.push(comment.into());
        }
    }

    fn row(&mut self, line: ImportLine<'a>) -> Result<(), ImportError> {
        let mut numbers = line.numbers(line.text)?;
        let value = numbers.remove(0);
        let columns = self.rows.first().map_or(numbers.len(), |(_, row)| row.len());
        if numbers.is_empty() || numbers.len() != columns {
            let what = format!("{} columns, expected {}", numbers.len() + 1, columns.max(1) + 1);
            return Err(line.at(what));
        }
        if columns > THREADS_MAX {
            return Err(line.at(format!("{columns} threads")));
        }
        if self.rows.last().is_some_and(|(last, _)| value <= *last) {
            return Err(line.at(format!("row {value} comes again or too late")));
        }
        if self.foot.iter().any(Option::is_some) {
            return Err(line.at("a row behind the end of the histogram"));
        }
        if numbers.iter().any(|&n| n > 0) || self.rows.is_empty() {
            self.rows.push((value, numbers));
        } else {
            // An empty row only says how far the histogram goes.
            let last = self.rows.len() - 1;
            if self.rows[last].1.iter().all(|&n| n == 0) {
                self.rows[last].0 = value;
            } else {
                self.rows.push((value, numbers));
            }
        }
        self.rows_line = line;
        Ok(())
    }

    /// Text around a histogram: live lines, prompts with the command.
    fn around(&mut self, line: ImportLine<'_>) -> Result<(), ImportError> {
        let shown = plain(line.text);
        let shown = shown.trim();
        if super::draft::cyclictest(shown).is_some() {
            self.command.get_or_insert_with(|| shown.into());
            return Ok(());
        }
        let is_live =
            is_aside(shown) || (shown.starts_with("T:") && field(shown, "Max:").is_some());
        let is_warning =
            ["WARN", "INFO", "could not", "Warning"].iter().any(|w| shown.starts_with(w));
        if is_warning {
            self.remarks.push(shown.into());
        }
        if is_live || is_warning || !self.begun {
            return Ok(());
        }
        Err(line.unexpected(shown, "a row of the histogram"))
    }

    /// A line of the foot, without the column of sums that `-H` adds to some of them.
    fn foot(&self, which: usize, n: usize) -> Result<Option<&[u64]>, ImportError> {
        let Some((line, numbers)) = &self.foot[which] else { return Ok(None) };
        if numbers.len() != n && numbers.len() != n + 1 {
            let what = format!(
                "{} has {} numbers, expected {n}, one for each thread",
                quoted(FOOT[which]),
                numbers.len()
            );
            return Err(line.at(what));
        }
        Ok(Some(&numbers[..n]))
    }

    fn finish(self, text: ImportText<'_>, hints: &Hints) -> Result<Imported, ImportError> {
        let Some((min_line, mins)) = &self.foot[MIN] else {
            return Err(text.cut("\"# Min Latencies:\""));
        };
        let n = mins.len();
        let columns = self.rows.first().map_or(n, |(_, row)| row.len());
        if n == 0 || (columns != n && columns != n + 1) {
            let what = format!("{n} threads, but the rows have {columns} columns");
            return Err(min_line.at(what));
        }
        self.check_sums(n)?;
        let command = hints.command.clone().or(self.command.clone());
        let options = command.as_deref().and_then(super::draft::cyclictest);
        let unit_ns = hints.unit_ns.unwrap_or(match options {
            Some(options) if options.nanoseconds => 1,
            _ => 1000,
        });
        // How far the rows go; where empty ones are left out, the command says it or nothing does.
        let last = self.rows.last().map_or(0, |(value, _)| value + 1);
        let asked_rows = options.and_then(|options| options.histogram).filter(|&rows| rows >= last);
        let foot = Foot {
            mins,
            totals: self.foot(TOTAL, n)?,
            avgs: self.required_row(text, AVG, n)?,
            maxs: self.required_row(text, MAX, n)?,
            overs: self.required_row(text, OVERFLOWS, n)?,
            unit_ns,
            end_ns: self.rows_line.ns(asked_rows.unwrap_or(last), unit_ns)?,
        };
        if self.threads_listed != n as u64 {
            return Err(text.cut(&format!("a line \"# Thread {}:\"", n - 1)));
        }
        let mut imported = blank("cyclictest", unit_ns, hints);
        imported.command = command;
        imported.remarks.clone_from(&self.remarks);
        for i in 0..n {
            let thread = self.thread(text, &foot, i)?;
            if thread.overflow > 0 {
                imported.censor(foot.end_ns);
            }
            imported.threads.push(thread);
        }
        imported.no_cpus();
        conclude(&mut imported, Some(0));
        Ok(imported)
    }

    fn required_row(
        &self,
        text: ImportText<'_>,
        which: usize,
        n: usize,
    ) -> Result<&[u64], ImportError> {
        self.foot(which, n)?.ok_or_else(|| text.cut(&quoted(FOOT[which])))
    }

    fn thread(
        &self,
        text: ImportText<'_>,
        of: &Foot<'_>,
        i: usize,
    ) -> Result<ImportedThread, ImportError> {
        let max_line = self.foot[MAX].as_ref().map_or(1, |(line, _)| line.number);
        let at_max = |what: Contradiction| text.at(max_line, format!("thread {i}: {what}"));
        let ns = |value| self.rows_line.ns(value, of.unit_ns);
        let mut cells = SeriesCells::default();
        for (value, row) in &self.rows {
            cells.push(ns(*value)?, of.unit_ns, row[i]).map_err(at_max)?;
        }
        let (counted, over) = (cells.total(), of.overs[i]);
        let within = of.totals.map_or(counted, |totals| totals[i]);
        if !self.rows.is_empty() && within != counted {
            let line = self.foot[TOTAL].as_ref().map_or(1, |(line, _)| line.number);
            let what =
                format!("thread {i} has {within} samples by this line, {counted} by the rows");
            return Err(text.at(line, what));
        }
        let mut thread = series(format!("thread {i}"), SampleKind::Latency);
        thread.n = within.saturating_add(over);
        if thread.n > 0 {
            (thread.min_ns, thread.max_ns) = (Some(ns(of.mins[i])?), Some(ns(of.maxs[i])?));
            thread.mean_ns = Some(of.avgs[i] as f64 * of.unit_ns as f64);
        }
        if let Some((low_ns, high_ns)) = cells.edges()
            && (thread.min_ns != Some(low_ns) || (over == 0 && thread.max_ns != Some(high_ns)))
        {
            return Err(at_max(
                format!(
                    "from {} to {}, but its rows go from {} to {}: the file was cut off or edited",
                    of.mins[i],
                    of.maxs[i],
                    low_ns / of.unit_ns,
                    high_ns / of.unit_ns
                )
                .into(),
            ));
        }
        if !self.rows.is_empty() {
            thread.bins = cells.finish(over, of.end_ns, thread.max_ns).map_err(at_max)?;
            thread.overflow = over;
        }
        Ok(thread)
    }

    /// The column of sums is the sum of the others.
    fn check_sums(&self, n: usize) -> Result<(), ImportError> {
        for (value, row) in self.rows.iter().filter(|(_, row)| row.len() > n) {
            let sum = row[..n].iter().fold(0_u64, |sum, &n| sum.saturating_add(n));
            if sum != row[n] {
                let what =
                    format!("row {value} sums to {sum}, but its last column says {}", row[n]);
                return Err(self.rows_line.at(what));
            }
        }
        Ok(())
    }
}

// The rows of a cyclictest histogram alone, as gnuplot scripts of the field cut them out
// (`grep -v '^#'`): a value and a count for each thread. What was beyond the rows went with the
// lines behind them, so the largest value is only the least that it was.

pub(crate) const ROWS: Importer = Importer {
    id: "cyclictest-rows",
    title: "The rows of cyclictest -h alone, without the lines round them.",
    detect: detect_rows,
    read: read_rows,
};

fn detect_rows(bytes: &[u8]) -> bool {
    let head = head(bytes);
    let mut lines = head.lines();
    let mut is_row = |begin: &str| {
        let mut words = lines.next().unwrap_or("").split_whitespace();
        let digits = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
        words.next() == Some(begin) && words.clone().next().is_some() && words.all(digits)
    };
    is_row("000000") && is_row("000001")
}

fn read_rows(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut cells: Vec<SeriesCells> = Vec::new();
    let mut rows = 0_u64;
    for line in text.lines() {
        let numbers = line.numbers(line.text)?;
        let (value, counts) = match numbers.split_first() {
            Some((&value, counts)) if !counts.is_empty() => (value, counts),
            _ => return Err(line.at("no row, expected a value and its counts")),
        };
        if rows == 0 && counts.len() <= THREADS_MAX {
            cells.resize_with(counts.len(), SeriesCells::default);
        }
        if value != rows || counts.len() != cells.len() {
            let what = format!(
                "row {value} of {} columns, expected row {rows} of {}",
                counts.len(),
                cells.len()
            );
            return Err(line.at(what));
        }
        let low_ns = line.ns(value, unit_ns)?;
        for (cells, &n) in cells.iter_mut().zip(counts) {
            cells.push(low_ns, unit_ns, n).map_err(|what| line.at(what))?;
        }
        rows += 1;
    }
    let mut imported = blank("cyclictest", unit_ns, hints);
    for (i, cells) in cells.into_iter().enumerate() {
        let mut thread = series(format!("thread {i}"), SampleKind::Latency);
        thread.n = cells.total();
        (thread.min_ns, thread.max_ns) = cells.edges().unzip();
        thread.max_is_at_least = thread.n > 0;
        thread.bins = cells.finish(0, 0, None).map_err(|what| text.at(rows, what))?;
        imported.threads.push(thread);
    }
    imported.censored_above_ns = scaled(rows, unit_ns);
    imported.doubt(
        "overflow-unknown",
        "only the rows are in the file: how many samples were beyond them, and how late, is \
         not known. The largest value is the least that it was; with -H the last column is a \
         sum",
    );
    imported.not_ended();
    imported.no_cpus();
    conclude(&mut imported, Some(0));
    Ok(imported)
}

// cyclictest and jitterdebugger as they show themselves: one line `T:` for each thread, over and
// over or once at the end. Count and extremes; the last line of each thread counts.

pub(crate) const SUMMARY: Importer = Importer {
    id: "cyclictest-summary",
    title: "Lines of threads (T:) of cyclictest or jitterdebugger -v.",
    detect: |bytes| head(bytes).lines().any(|line| is_thread(&plain(line))),
    read: read_summary,
};

fn read_summary(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut threads: BTreeMap<u64, ImportedThread> = BTreeMap::new();
    let mut tids: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let mut found = Found { unit_ns: hints.unit_ns.unwrap_or(1000), ..Found::default() };
    for line in text.lines() {
        let shown = plain(line.text);
        let shown = ImportLine { text: shown.trim(), ..line };
        if is_thread(shown.text) {
            let (number, thread) = found.thread(shown)?;
            let tid = tid(shown.text);
            if tids.insert(number, tid).is_some_and(|before| before != tid && before != Some(0))
                || threads.insert(number, thread.clone()).is_some_and(|before| before.n > thread.n)
            {
                return Err(line.at("a second result; import each run by itself"));
            }
            if threads.len() > THREADS_MAX {
                return Err(line.at(format!("more than {THREADS_MAX} threads")));
            }
        } else if threads.is_empty() && line.number <= LABELS_MAX {
            // A label that the user wrote above it.
            if !found.around(shown.text) {
                found.remarks.push(shown.text.into());
            }
        } else if !found.around(shown.text) {
            return Err(line.unexpected(shown.text, "a line of a thread (T: ...)"));
        }
    }
    if threads.is_empty() {
        return Err(text.cut("a line of a thread (T: ...)"));
    }
    if let Some(missing) = (0..threads.len() as u64).find(|number| !threads.contains_key(number)) {
        return Err(text.cut(&format!("thread {missing}")));
    }
    let tool = if found.is_jitterdebugger { "jitterdebugger" } else { "cyclictest" };
    let mut imported = blank(tool, found.unit_ns, hints);
    imported.command = imported.command.or(found.command);
    imported.remarks = found.remarks;
    imported.threads = threads.into_values().collect();
    imported.not_ended();
    if found.is_jitterdebugger {
        imported.conclude();
    } else {
        imported.period_ns = imported.period_ns.or(imported.threads[0].period_ns);
        imported.no_cpus();
        conclude(&mut imported, None);
    }
    Ok(imported)
}

/// Lines of other text before the first line of a thread.
const LABELS_MAX: u64 = 8;

fn is_thread(line: &str) -> bool {
    line.trim_start().starts_with("T:")
        && ["C:", "Min:", "Avg:", "Max:"].iter().all(|key| line.contains(key))
}

/// Thread id in `T: 0 (11761) P:90`; 0 before the thread has started.
fn tid(line: &str) -> Option<u64> {
    line.split_once('(')?.1.split_once(')')?.0.trim().parse().ok()
}

#[derive(Default)]
struct Found {
    unit_ns: u64,
    is_jitterdebugger: bool,
    command: Option<String>,
    remarks: Vec<String>,
}

impl Found {
    fn thread(&mut self, line: ImportLine<'_>) -> Result<(u64, ImportedThread), ImportError> {
        let word = |key: &str| field(line.text, key).ok_or_else(|| line.at(format!("no {key}")));
        let number = line.number(word("T:")?)?;
        let mut thread = series(format!("thread {number}"), SampleKind::Latency);
        thread.n = line.number(word("C:")?)?;
        self.is_jitterdebugger = line.text.split_whitespace().any(|word| word.starts_with("A:"));
        if self.is_jitterdebugger {
            let cpu = line.cpu(word("A:")?)?;
            thread.cpu = Some(cpu);
            thread.label = format!("CPU {cpu}");
        } else if let Some(interval) = field(line.text, "I:") {
            let interval = line.number(interval)?;
            thread.period_ns = Some(line.ns(interval, 1000)?).filter(|&ns| ns > 0);
        }
        if thread.n > 0 {
            thread.min_ns = Some(line.ns(line.number(word("Min:")?)?, self.unit_ns)?);
            thread.max_ns = Some(line.ns(line.number(word("Max:")?)?, self.unit_ns)?);
            let mean = decimal_ns(word("Avg:")?, self.unit_ns)
                .ok_or_else(|| line.unexpected(word("Avg:").unwrap_or(""), "a number"))?;
            thread.mean_ns = Some(mean as f64);
        }
        Ok((number, thread))
    }

    /// Whether a line is an extra one of these tools.
    fn around(&mut self, line: &str) -> bool {
        if is_aside(line) && !line.starts_with("WARN") && !line.starts_with("INFO") {
            return true;
        }
        if super::draft::cyclictest(line.trim_start_matches(['#', '$', ' '])).is_some() {
            self.command.get_or_insert_with(|| line.trim_start_matches(['#', '$', ' ']).into());
            return true;
        }
        let is_understood = line.starts_with('#')
            || ["WARN", "INFO", "jd_utils", "spikes =", "Max CPUs", "Online CPUs"]
                .iter()
                .any(|begin| line.starts_with(begin))
            || line.contains(" Spike: ");
        if is_understood && !line.contains(" Spike: ") {
            self.remarks.push(line.trim_start_matches('#').trim().into());
        }
        self.remarks.truncate(100);
        is_understood
    }
}
