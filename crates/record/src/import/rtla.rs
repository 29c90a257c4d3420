//! rtla: timerlat and osnoise, histogram and top, and its report when it stops.

use std::collections::{BTreeMap, HashSet};

use rtproof_stats::Bins;

use super::draft::{base, blank, of_cpu, series};
use super::text::{
    ImportLine, ImportText, SeriesCells, days_clock_ns, decimal_ns, gcd, head, plain, quoted,
    scaled,
};
use super::{Hints, ImportError, Imported, ImportedThread, Importer, SampleKind, THREADS_MAX};

/// Most lines of an analysis that are kept.
const REMARKS_MAX: usize = 400;

/// A line that rtla prints beside its table, for the remarks.
fn remark(imported: &mut Imported, line: &str) {
    if line.contains("events missed") {
        imported.doubt("samples-lost", line.trim());
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_rule = words.iter().all(|word| word.bytes().all(|b| matches!(b, b'-' | b'|')));
    if !words.is_empty() && !is_rule && imported.remarks.len() < REMARKS_MAX {
        imported.remarks.push(words.join(" "));
    }
}

// rtla timerlat hist and osnoise hist.
//
// Columns are CPUs, for timerlat up to three for each: the timer's interrupt, the thread, the
// return to user space. Rows of zeros are left out, so the width of a row is what all labels have
// in common.

const TIMERLAT_TITLE: &str = "# RTLA timerlat histogram";

const OSNOISE_TITLE: &str = "# RTLA osnoise histogram";

pub(crate) const TIMERLAT_HIST: Importer = Importer {
    id: "rtla-timerlat-hist",
    title: "rtla timerlat hist.",
    detect: |bytes| head(bytes).lines().any(|line| line.starts_with(TIMERLAT_TITLE)),
    read: read_timerlat_hist,
};

fn read_timerlat_hist(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let mut imported =
        histogram(bytes, hints, blank("rtla timerlat", 1000, hints), TIMERLAT_TITLE)?;
    imported.count_omitted();
    imported.conclude();
    Ok(imported)
}

pub(crate) const OSNOISE_HIST: Importer = Importer {
    id: "rtla-osnoise-hist",
    title: "rtla osnoise hist.",
    detect: |bytes| head(bytes).lines().any(|line| line.starts_with(OSNOISE_TITLE)),
    read: read_osnoise_hist,
};

fn read_osnoise_hist(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let mut imported = histogram(bytes, hints, blank("rtla osnoise", 1000, hints), OSNOISE_TITLE)?;
    imported.doubt(
        "threshold",
        "noise below the tracer's threshold (5 µs unless asked) is not in the file, and \
         extremes are lower edges of the kernel's cells",
    );
    imported.conclude();
    Ok(imported)
}

/// What was read so far.
#[derive(Default)]
struct Table<'a> {
    columns: Vec<(SampleKind, u32)>,
    header: bool,
    rows: Vec<(ImportLine<'a>, u64, Vec<u64>)>,
    /// over, count, min, avg, max: words, as some are `-` and some have decimals.
    foot: [Option<(ImportLine<'a>, Vec<&'a str>)>; 5],
    all: bool,
}

const FOOT: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

fn histogram<'a>(
    bytes: &'a [u8],
    hints: &'a Hints,
    mut imported: Imported,
    begin: &str,
) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut table = Table::default();
    let mut begun = false;
    for line in text.lines() {
        if line.text.starts_with(begin) {
            if begun {
                return Err(line.at("a second histogram; import each run by itself"));
            }
            begun = true;
        } else if let Some(unit) = line.text.strip_prefix("# Time unit is ") {
            imported.resolution_ns = if unit.starts_with("nano") { 1 } else { 1000 };
        } else if let Some(duration) = line.text.strip_prefix("# Duration:") {
            let ns = days_clock_ns(duration);
            let ns = ns.ok_or_else(|| line.unexpected(duration, "a duration"))?;
            imported.duration_ns = imported.duration_ns.or(Some(ns));
        } else if begun && !table.line(line)? {
            remark(&mut imported, line.text);
        }
    }
    table.finish(text, imported)
}

impl<'a> Table<'a> {
    /// Takes a line of the table; `false`: no line of it.
    fn line(&mut self, line: ImportLine<'a>) -> Result<bool, ImportError> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let Some(&first) = words.first() else { return Ok(true) };
        if !self.header {
            if first != "Index" {
                return Err(line.at("no index: run rtla without --no-index and --no-header"));
            }
            self.header = true;
            self.columns =
                words[1..].iter().map(|word| column(line, word)).collect::<Result<_, _>>()?;
            if self.columns.len() > THREADS_MAX {
                return Err(line.at(format!("{} columns", self.columns.len())));
            }
            let mut known = HashSet::new();
            if !self.columns.iter().all(|column| known.insert(column)) {
                return Err(line.at("a column comes twice: the file was edited"));
            }
            return Ok(true);
        }
        if first == "ALL:" {
            self.all = true;
            return Ok(true);
        }
        if let Some(which) = FOOT.iter().position(|key| *key == first) {
            if !self.all {
                if self.foot[which].is_some() {
                    return Err(line.at(format!("a second line {first}")));
                }
                self.foot[which] = Some((line, words[1..].to_vec()));
            }
            return Ok(true);
        }
        if !first.starts_with(|c: char| c.is_ascii_digit()) || self.foot[0].is_some() {
            return Ok(false);
        }
        let numbers = line.numbers(line.text)?;
        if numbers.len() != self.columns.len() + 1 {
            let what = format!("{} columns, expected {}", numbers.len(), self.columns.len() + 1);
            return Err(line.at(what));
        }
        if self.rows.last().is_some_and(|(_, last, _)| numbers[0] <= *last) {
            return Err(line.at(format!("row {} comes again or too late", numbers[0])));
        }
        self.rows.push((line, numbers[0], numbers[1..].to_vec()));
        Ok(true)
    }

    /// Width of a row, from the command line or from what all labels have in common; and whether
    /// it is certain.
    fn width(&self, command: Option<&str>) -> Result<(u64, bool), ImportError> {
        let labels = || self.rows.iter().map(|(_, label, _)| *label);
        if let Some(width) = command.and_then(bucket).filter(|&b| labels().all(|l| l % b == 0)) {
            return Ok((width, true));
        }
        let common = labels().fold(0, gcd);
        if common > 0 || self.rows.is_empty() {
            return Ok((common.max(1), common <= 1));
        }
        // The only row is 0: the largest of its values says how wide it is at least.
        let mut width = 1;
        let row = &self.rows[0].2;
        for i in (0..self.columns.len()).filter(|&i| row[i] > 0) {
            let ((line, over), (_, max)) = (self.word(0, i), self.word(4, i));
            if over != "0" {
                return Err(line.at(
                    "the only row is 0, and its width is not in the file: give the command line \
                     with --command",
                ));
            }
            width = width.max(line.number(max)?.saturating_add(1));
        }
        Ok((width, width == 1))
    }

    fn finish(self, text: ImportText<'_>, mut imported: Imported) -> Result<Imported, ImportError> {
        if !self.header {
            return Err(text.cut("the line \"Index\""));
        }
        for (key, foot) in FOOT.iter().zip(&self.foot) {
            let Some((line, words)) = foot else {
                return Err(text.cut(&format!("\"{key}\" (run rtla without --no-summary)")));
            };
            if words.len() != self.columns.len() && !self.is_lost(words) {
                let what =
                    format!("{key} has {} numbers, expected {}", words.len(), self.columns.len());
                return Err(line.at(what));
            }
        }
        let unit_ns = imported.resolution_ns;
        let (width, is_certain) = self.width(imported.command.as_deref())?;
        let period_ns = imported.period_ns;
        if !is_certain {
            imported.doubt(
                "bucket-assumed",
                format!(
                    "the rows are taken to be {width} units wide, the most that their labels \
                     allow: each value is its row's end; the command line (--command) says it"
                ),
            );
        }
        if self.is_lost(&self.foot[1].as_ref().map_or(Vec::new(), |(_, words)| words.clone())) {
            let cpus: Vec<String> = self.columns.iter().map(|(_, cpu)| cpu.to_string()).collect();
            let text = format!(
                "rtla prints zeros both where there was no noise and where all of it lies beyond \
                 the last row. Which of the two is unknown for CPU {}. Run it with more rows (-E)",
                cpus.join(", ")
            );
            imported.doubt("none-or-beyond", text);
        }
        for i in 0..self.columns.len() {
            let mut thread = self.series(i, unit_ns, width, &mut imported)?;
            thread.period_ns = period_ns;
            imported.threads.push(thread);
        }
        if imported.threads.is_empty() {
            imported.threads.push(series("all CPUs", SampleKind::Noise));
        }
        Ok(imported)
    }

    /// rtla osnoise prints single zeros where no row is filled, also when all samples lie beyond.
    fn is_lost(&self, words: &[&str]) -> bool {
        self.rows.is_empty() && words == ["0"]
    }

    fn word(&self, which: usize, i: usize) -> (ImportLine<'a>, &'a str) {
        self.foot[which].as_ref().map_or((ImportLine::default(), "-"), |(line, words)| {
            (*line, words.get(i).copied().unwrap_or("-"))
        })
    }

    fn value(&self, which: usize, i: usize, unit_ns: u64) -> Result<Option<u64>, ImportError> {
        let (line, word) = self.word(which, i);
        if word == "-" {
            return Ok(None);
        }
        let ns = decimal_ns(word, unit_ns);
        ns.map(Some).ok_or_else(|| line.unexpected(word, "a number"))
    }

    fn series(
        &self,
        i: usize,
        unit_ns: u64,
        width: u64,
        imported: &mut Imported,
    ) -> Result<ImportedThread, ImportError> {
        let (kind, cpu) = self.columns[i];
        let mut thread = of_cpu(cpu, kind);
        if self.is_lost(&self.foot[1].as_ref().map_or(Vec::new(), |(_, words)| words.clone())) {
            return Ok(thread);
        }
        let mut cells = SeriesCells::default();
        let width_ns = width.saturating_mul(unit_ns);
        for (line, label, row) in &self.rows {
            let low_ns = line.ns(*label, unit_ns)?;
            cells.push(low_ns, width_ns, row[i]).map_err(|what| line.at(what))?;
        }
        let (count_line, count) = self.word(1, i);
        let (over_line, over) = self.word(0, i);
        let (n, over) = (count_line.number(count)?, over_line.number(over)?);
        let held = cells.total().saturating_add(over);
        if held != n {
            let what =
                format!("{} has {n} samples by this line, but {held} in its rows", thread.label);
            return Err(count_line.at(what));
        }
        thread.n = n;
        if n == 0 {
            return Ok(thread);
        }
        thread.min_ns = self.value(2, i, unit_ns)?;
        thread.mean_ns = self.value(3, i, unit_ns)?.map(|ns| ns as f64);
        thread.max_ns = self.value(4, i, unit_ns)?;
        let inside = |ns: Option<u64>, low_ns: u64| {
            ns.is_some_and(|ns| (low_ns..low_ns.saturating_add(width_ns)).contains(&ns))
        };
        if let Some((low_ns, high_ns)) = cells.edges()
            && (!inside(thread.min_ns, low_ns) || (over == 0 && !inside(thread.max_ns, high_ns)))
        {
            let what = format!(
                "{}: the largest or smallest value is not in the last or first row: the \
                 file was cut off or edited",
                thread.label
            );
            return Err(self.word(4, i).0.at(what));
        }
        let rows_end = self.rows.last().map_or(0, |(_, label, _)| label.saturating_add(width));
        let from_ns = over_line.ns(rows_end, unit_ns)?;
        thread.overflow = over;
        if over > 0 {
            imported.censor(from_ns);
        }
        thread.bins =
            cells.finish(over, from_ns, thread.max_ns).map_err(|what| over_line.at(what))?;
        Ok(thread)
    }
}

/// The width of the rows that a command line of rtla makes: `-b N` or 1.
fn bucket(command: &str) -> Option<u64> {
    let mut words = command.split_whitespace();
    words.find(|word| base(word) == "rtla")?;
    while let Some(word) = words.next() {
        if let Some(rest) = word.strip_prefix("--bucket-size").or(word.strip_prefix("-b")) {
            let value = if rest.is_empty() { words.next()? } else { rest.trim_start_matches('=') };
            return value.parse().ok().filter(|&width| width > 0);
        }
    }
    Some(1)
}

/// `IRQ-003`, `Thr-003`, `Usr-003` or `CPU-003`.
fn column(line: ImportLine<'_>, word: &str) -> Result<(SampleKind, u32), ImportError> {
    let bad = || line.at(format!("column {}, expected one such as Thr-000", quoted(word)));
    let (what, cpu) = word.split_once('-').ok_or_else(bad)?;
    let kind = match what {
        "IRQ" => SampleKind::IrqLatency,
        "Thr" => SampleKind::Latency,
        "Usr" => SampleKind::UserLatency,
        "CPU" => SampleKind::Noise,
        _ => return Err(bad()),
    };
    Ok((kind, cpu.parse().map_err(|_| bad())?))
}

// The report of rtla timerlat that stopped at a threshold: one sample and its analysis.

const MARK: &str = "hit stop tracing, analyzing it ##";

pub(crate) const STOP: Importer = Importer {
    id: "rtla-timerlat-stop",
    title: "What rtla timerlat tells of the sample that stopped it.",
    detect: |bytes| {
        head(bytes)
            .lines()
            .any(|line| line.starts_with("## CPU ") && line.trim_end().ends_with(MARK))
    },
    read,
};

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    // Values are in microseconds with two digits behind the point.
    let mut imported = blank("rtla timerlat", 10, hints);
    let mut cpu = None;
    for line in text.lines() {
        remark(&mut imported, line.text);
        let shown = line.text.trim();
        if let Some(rest) = shown.strip_prefix("## CPU ") {
            cpu = Some(line.cpu(rest.split(' ').next().unwrap_or(""))?);
        }
        // The sum is at the end, with 100 %.
        let Some(sum) = shown.strip_suffix("us (100%)").or(shown.strip_suffix("us (100 %)")) else {
            continue;
        };
        let (what, value) = sum.split_once(':').unwrap_or(("", sum));
        let kind = match what.trim() {
            "IRQ latency" => SampleKind::IrqLatency,
            "Thread latency" => SampleKind::Latency,
            _ => {
                return Err(line.unexpected(shown, "a latency"));
            }
        };
        let ns = decimal_ns(value.trim(), 1000);
        let ns = ns.ok_or_else(|| line.unexpected(value, "a time"))?;
        let cpu = cpu.take().ok_or_else(|| line.at("a latency of no CPU"))?;
        if imported.threads.iter().any(|other| (other.cpu, other.kind) == (Some(cpu), kind)) {
            return Err(line.at(format!("CPU {cpu} comes again; import each run by itself")));
        }
        let mut thread = of_cpu(cpu, kind);
        thread.n = 1;
        (thread.min_ns, thread.max_ns) = (Some(ns), Some(ns));
        thread.mean_ns = Some(ns as f64);
        thread.bins = Bins::from_values([ns]);
        imported.threads.push(thread);
    }
    if imported.threads.is_empty() || cpu.is_some() {
        return Err(text.cut("the sum of the latency (100%)"));
    }
    imported.doubt(
        "one-sample",
        "the file holds the one sample that stopped the run: no distribution, no rate and no \
         maximum of the machine follow from it",
    );
    imported.conclude();
    Ok(imported)
}

// rtla timerlat top, osnoise top and hwnoise: count and extremes for each CPU.
//
// Without `-q` the table is printed over and over; the last one counts, and must be whole.

pub(crate) const TIMERLAT_TOP: Importer = Importer {
    id: "rtla-timerlat-top",
    title: "rtla timerlat top.",
    detect: |bytes| head(bytes).contains("IRQ Timer Latency ("),
    read: read_timerlat_top,
};

fn read_timerlat_top(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut imported = blank("rtla timerlat", 1000, hints);
    let screen = last(text, &mut imported, "CPU COUNT", "Timer Latency")?;
    for &(line, ref shown) in &screen.above {
        if shown.contains("IRQ Timer Latency (ns)") {
            imported.resolution_ns = 1;
        }
        if let Some((clock, _)) = shown.split_once('|')
            && let Some(ns) = days_clock_ns(clock)
        {
            imported.duration_ns = imported.duration_ns.or(Some(ns));
        } else if shown.contains('|') && !shown.contains("COUNT") {
            return Err(line.unexpected(shown, "a duration"));
        }
    }
    for (line, shown) in &screen.rows {
        timerlat_row(*line, shown, &mut imported)?;
    }
    if !screen.has_all {
        imported.not_ended();
    }
    imported.doubt(
        "count-of-irq",
        "the count is that of the timer's interrupts: rtla top does not say how many samples the \
         thread and the return to user space have",
    );
    imported.count_omitted();
    imported.conclude();
    Ok(imported)
}

pub(crate) const OSNOISE_TOP: Importer = Importer {
    id: "rtla-osnoise-top",
    title: "rtla osnoise top and hwnoise.",
    detect: detect_osnoise,
    read: read_osnoise_top,
};

fn detect_osnoise(bytes: &[u8]) -> bool {
    let head = head(bytes);
    head.contains("CPU Period") && head.contains("Max Noise")
}

fn read_osnoise_top(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut imported = blank("rtla osnoise", 1000, hints);
    let screen = last(text, &mut imported, "CPU Period", "Noise")?;
    let is_hardware = screen.above.iter().any(|(_, shown)| shown.contains("Hardware"));
    if is_hardware {
        imported.tool = "rtla hwnoise".into();
    }
    for (_, shown) in &screen.above {
        if let Some(clock) = shown.trim().strip_prefix("duration:") {
            let ns = days_clock_ns(clock.split('|').next().unwrap_or(clock));
            imported.duration_ns = imported.duration_ns.or(ns);
        }
    }
    for (line, shown) in &screen.rows {
        osnoise_row(*line, shown, is_hardware, &mut imported)?;
    }
    imported.not_ended();
    imported.conclude();
    Ok(imported)
}

/// The last table of a file.
#[derive(Default)]
struct Screen<'a> {
    above: Vec<(ImportLine<'a>, String)>,
    rows: Vec<(ImportLine<'a>, String)>,
    has_head: bool,
    has_all: bool,
}

fn last<'a>(
    text: ImportText<'a>,
    imported: &mut Imported,
    columns: &str,
    title: &str,
) -> Result<Screen<'a>, ImportError> {
    let mut screen = Screen::default();
    let mut most = (0, false);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let shown = plain(line.text).into_owned();
        let first = shown.split_whitespace().next().unwrap_or("");
        let counts_samples = shown.split_whitespace().nth(1).is_some_and(|w| w.starts_with('#'));
        let is_row = counts_samples && first != "ALL";
        if shown.trim_end().ends_with(title) && !shown.contains('|') {
            most = most.max((screen.rows.len(), screen.has_all));
            screen = Screen::default();
            imported.remarks.clear();
        }
        if shown.starts_with(columns) {
            screen.has_head = true;
        } else if is_row {
            line.cpu(first)?;
            if !screen.has_head {
                return Err(line.at("a row before the head of its table: the file was edited"));
            }
            if screen.rows.iter().any(|(_, row)| row.split_whitespace().next() == Some(first)) {
                return Err(line.at(format!("CPU {first} comes twice in one table")));
            }
            if screen.rows.len() >= THREADS_MAX {
                return Err(line.at(format!("more than {THREADS_MAX} CPUs")));
            }
            let count = shown.split('#').nth(1).and_then(|rest| rest.split_whitespace().next());
            let count = line.number(count.unwrap_or(""))?;
            if counts.insert(first.into(), count).is_some_and(|before| before > count) {
                return Err(line.at("a second result; import each run by itself"));
            }
            screen.rows.push((line, shown));
            continue;
        } else if screen.has_head {
            if first == "ALL" {
                screen.has_all = true;
                check_all(line, &shown, &screen.rows)?;
            } else {
                remark(imported, &shown);
            }
            continue;
        }
        screen.above.push((line, shown));
    }
    if !screen.has_head || screen.rows.is_empty() {
        return Err(text.cut("a row for each CPU"));
    }
    if (screen.rows.len(), screen.has_all) < most {
        return Err(text.cut("a whole last table"));
    }
    Ok(screen)
}

/// `ALL #119999 e0 |`: the counts of all rows, cut to six digits.
fn check_all(
    line: ImportLine<'_>,
    shown: &str,
    rows: &[(ImportLine<'_>, String)],
) -> Result<(), ImportError> {
    let number = |shown: &str| {
        let word = shown.split('#').nth(1).and_then(|rest| rest.split_whitespace().next());
        line.number(word.unwrap_or(""))
    };
    let head = shown.split('|').next().unwrap_or(shown);
    let exponent = head.split_whitespace().find_map(|word| word.strip_prefix('e')?.parse().ok());
    let mut sum = 0_u64;
    for (_, row) in rows {
        sum = sum.saturating_add(number(row)?);
    }
    let printed = number(shown)?;
    if 10_u64.checked_pow(exponent.unwrap_or(0)).is_none_or(|cut| sum / cut != printed) {
        return Err(
            line.at(format!("{} in all, but the rows above count {sum}", quoted(head.trim())))
        );
    }
    Ok(())
}

/// `12 #12321     |        1         0         0        13 |        5 ...`.
fn timerlat_row(
    line: ImportLine<'_>,
    shown: &str,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let mut parts = shown.split('|');
    let head: Vec<&str> = parts.next().unwrap_or("").split_whitespace().collect();
    let [cpu, count] = head[..] else {
        return Err(line.unexpected(shown, "CPU and #COUNT"));
    };
    let cpu = line.cpu(cpu)?;
    let n = line.number(count.trim_start_matches('#'))?;
    let kinds = [SampleKind::IrqLatency, SampleKind::Latency, SampleKind::UserLatency];
    let parts: Vec<&str> = parts.collect();
    if parts.len() < 2 || parts.len() > kinds.len() {
        return Err(line.at(format!("{} columns, expected 2 or 3", parts.len())));
    }
    let unit_ns = imported.resolution_ns;
    for (part, kind) in parts.iter().zip(kinds) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let [_, min, avg, max] = words[..] else {
            return Err(line.unexpected(part, "cur min avg max"));
        };
        let mut thread = of_cpu(cpu, kind);
        thread.period_ns = imported.period_ns;
        if max != "-" {
            let ns = |word| line.number(word).and_then(|value| line.ns(value, unit_ns));
            thread.n = n;
            (thread.min_ns, thread.max_ns) = (Some(ns(min)?), Some(ns(max)?));
            thread.mean_ns = Some(ns(avg)? as f64);
        }
        imported.threads.push(thread);
    }
    Ok(())
}

/// `0 #58 58000000 12345 99.97871 123 45 0 0 58123 1 2`.
fn osnoise_row(
    line: ImportLine<'_>,
    shown: &str,
    is_hardware: bool,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let words: Vec<&str> = shown.split_whitespace().collect();
    let expected = if is_hardware { 9 } else { 12 };
    if words.len() != expected {
        let what = format!("{} columns, expected {expected}: the file was cut off", words.len());
        return Err(line.at(what));
    }
    let number = |i: usize| line.number(words[i].trim_start_matches('#'));
    let cpu = line.cpu(words[0])?;
    let (n, noise) = (number(1)?, number(3)?);
    let ns = |i: usize| {
        let value = number(i)?;
        scaled(value, 1000).ok_or_else(|| line.at(format!("{value} µs")))
    };
    let mut whole = series(format!("CPU {cpu} noise of a period"), SampleKind::Noise);
    whole.mean_ns = (n > 0).then(|| noise as f64 * 1000.0 / n as f64);
    let single = if is_hardware { SampleKind::HardwareGap } else { SampleKind::Gap };
    let mut single = series(format!("CPU {cpu} longest of a period"), single);
    for (thread, column) in [(&mut whole, 5), (&mut single, 6)] {
        thread.cpu = Some(cpu);
        thread.n = n;
        thread.max_ns = Some(ns(column)?).filter(|_| n > 0);
    }
    imported.threads.extend([whole, single]);
    Ok(())
}
