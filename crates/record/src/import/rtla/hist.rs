//! rtla timerlat hist and osnoise hist.
//!
//! Columns are CPUs, for timerlat up to three for each: the timer's interrupt, the thread, the
//! return to user space. Rows of zeros are left out, so the width of a row is what all labels have
//! in common.

use std::collections::HashSet;

use super::super::{
    Hints, ImportError, Imported, ImportedThread, Importer, Kind, THREADS_MAX,
    command::base,
    draft::{draft, of_cpu, series},
    text::{Cells, Line, Text, days_clock_ns, decimal_ns, gcd, head, quoted},
};

const TIMERLAT_TITLE: &str = "# RTLA timerlat histogram";
const OSNOISE_TITLE: &str = "# RTLA osnoise histogram";

pub(crate) const TIMERLAT: Importer = Importer {
    id: "rtla-timerlat-hist",
    title: "rtla timerlat hist.",
    detect: |bytes| head(bytes).lines().any(|line| line.starts_with(TIMERLAT_TITLE)),
    read: read_timerlat,
};

fn read_timerlat(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let mut imported =
        histogram(bytes, hints, draft("rtla timerlat", 1000, hints), TIMERLAT_TITLE)?;
    imported.count_omitted();
    imported.conclude();
    Ok(imported)
}

pub(crate) const OSNOISE: Importer = Importer {
    id: "rtla-osnoise-hist",
    title: "rtla osnoise hist.",
    detect: |bytes| head(bytes).lines().any(|line| line.starts_with(OSNOISE_TITLE)),
    read: read_osnoise,
};

fn read_osnoise(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let mut imported = histogram(bytes, hints, draft("rtla osnoise", 1000, hints), OSNOISE_TITLE)?;
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
    columns: Vec<(Kind, u32)>,
    header: bool,
    rows: Vec<(Line<'a>, u64, Vec<u64>)>,
    /// over, count, min, avg, max: words, as some are `-` and some have decimals.
    foot: [Option<(Line<'a>, Vec<&'a str>)>; 5],
    all: bool,
}

const FOOT: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

fn histogram<'a>(
    bytes: &'a [u8],
    hints: &'a Hints,
    mut imported: Imported,
    begin: &str,
) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
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
            super::remark(&mut imported, line.text);
        }
    }
    table.finish(text, imported)
}

impl<'a> Table<'a> {
    /// Takes a line of the table; `false`: it is none.
    fn line(&mut self, line: Line<'a>) -> Result<bool, ImportError> {
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

    fn finish(self, text: Text<'_>, mut imported: Imported) -> Result<Imported, ImportError> {
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
            imported.threads.push(series("all CPUs", Kind::Noise));
        }
        Ok(imported)
    }

    /// rtla osnoise prints single zeros where no row is filled, also when all samples lie beyond.
    fn is_lost(&self, words: &[&str]) -> bool {
        self.rows.is_empty() && words == ["0"]
    }

    fn word(&self, which: usize, i: usize) -> (Line<'a>, &'a str) {
        self.foot[which].as_ref().map_or((Line::default(), "-"), |(line, words)| {
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
        let mut cells = Cells::default();
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
fn column(line: Line<'_>, word: &str) -> Result<(Kind, u32), ImportError> {
    let bad = || line.at(format!("column {}, expected one such as Thr-000", quoted(word)));
    let (what, cpu) = word.split_once('-').ok_or_else(bad)?;
    let kind = match what {
        "IRQ" => Kind::IrqLatency,
        "Thr" => Kind::Latency,
        "Usr" => Kind::UserLatency,
        "CPU" => Kind::Noise,
        _ => return Err(bad()),
    };
    Ok((kind, cpu.parse().map_err(|_| bad())?))
}
