//! cyclictest `-h` and `-H`: the histogram as text, of both dialects.
//!
//! Up to 2.6 all rows are there, zeros as well, and a line `# Total:`; from 2.7 on rows of zeros
//! and that line are left out. `-H` adds a column with the sum. Files whose rows were taken out
//! (only the lines from `# Total:` on) are read for what is left.

use super::super::{
    Hints, ImportError, Imported, ImportedThread, Importer, Kind, command,
    draft::{draft, series},
    text::{Cells, Line, Text, field, head, plain, quoted, tail},
};
use crate::error::Contradiction;

pub(crate) const HISTOGRAM: Importer = Importer {
    id: "cyclictest-histogram",
    title: "cyclictest -h or -H, with or without its rows.",
    detect,
    read,
};

fn detect(bytes: &[u8]) -> bool {
    let is_mark = |line: &str| line == "# Histogram" || line.starts_with("# Max Latencies:");
    head(bytes).lines().any(is_mark) || tail(bytes).lines().any(is_mark)
}

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
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
    rows_line: Line<'a>,
    foot: [Option<(Line<'a>, Vec<u64>)>; 5],
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
    fn line(&mut self, line: Line<'a>) -> Result<(), ImportError> {
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
        if self.command.is_none() && command::cyclictest(comment).is_some() {
            self.command = Some(comment.into());
        } else if comment.to_ascii_uppercase().contains("WARN") {
            self.remarks.push(comment.into());
        }
    }

    fn row(&mut self, line: Line<'a>) -> Result<(), ImportError> {
        let mut numbers = line.numbers(line.text)?;
        let value = numbers.remove(0);
        let columns = self.rows.first().map_or(numbers.len(), |(_, row)| row.len());
        if numbers.is_empty() || numbers.len() != columns {
            let what = format!("{} columns, expected {}", numbers.len() + 1, columns.max(1) + 1);
            return Err(line.at(what));
        }
        if columns > super::super::THREADS_MAX {
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

    /// What stands round a histogram: live lines, prompts with the command.
    fn around(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let shown = plain(line.text);
        let shown = shown.trim();
        if command::cyclictest(shown).is_some() {
            self.command.get_or_insert_with(|| shown.into());
            return Ok(());
        }
        let is_live =
            super::is_aside(shown) || (shown.starts_with("T:") && field(shown, "Max:").is_some());
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

    fn finish(self, text: Text<'_>, hints: &Hints) -> Result<Imported, ImportError> {
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
        let asked = command.as_deref().and_then(command::cyclictest);
        let unit_ns = hints.unit_ns.unwrap_or(match asked {
            Some(asked) if asked.nanoseconds => 1,
            _ => 1000,
        });
        // How far the rows go; where empty ones are left out, the command says it or nothing does.
        let last = self.rows.last().map_or(0, |(value, _)| value + 1);
        let asked_rows = asked.and_then(|asked| asked.histogram).filter(|&rows| rows >= last);
        let foot = Foot {
            mins,
            totals: self.foot(TOTAL, n)?,
            avgs: self.must(text, AVG, n)?,
            maxs: self.must(text, MAX, n)?,
            overs: self.must(text, OVERFLOWS, n)?,
            unit_ns,
            end_ns: self.rows_line.ns(asked_rows.unwrap_or(last), unit_ns)?,
        };
        if self.threads_listed != n as u64 {
            return Err(text.cut(&format!("a line \"# Thread {}:\"", n - 1)));
        }
        let mut imported = draft("cyclictest", unit_ns, hints);
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
        super::conclude(&mut imported, Some(0));
        Ok(imported)
    }

    fn must(&self, text: Text<'_>, which: usize, n: usize) -> Result<&[u64], ImportError> {
        self.foot(which, n)?.ok_or_else(|| text.cut(&quoted(FOOT[which])))
    }

    fn thread(
        &self,
        text: Text<'_>,
        of: &Foot<'_>,
        i: usize,
    ) -> Result<ImportedThread, ImportError> {
        let max_line = self.foot[MAX].as_ref().map_or(1, |(line, _)| line.number);
        let at_max = |what: Contradiction| text.at(max_line, format!("thread {i}: {what}"));
        let ns = |value| self.rows_line.ns(value, of.unit_ns);
        let mut cells = Cells::default();
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
        let mut thread = series(format!("thread {i}"), Kind::Latency);
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
