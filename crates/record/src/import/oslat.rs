//! oslat, as text and as JSON: gaps that a busy loop saw.
//!
//! A gap is rounded up to its unit, µs, or ns where a row is no whole number of µs wide (`-W`).
//! Up to 2.4 a row holds the gaps of its label; since rows have a width, those from the label
//! before it up to just below its own. The last row holds all that are larger as well. Its averages
//! are not used: they count overflows of the first thread for all.

use serde::Deserialize;

use super::cyclictest_verbose::{Envelope, program};
use super::draft::{blank, of_cpu, remark};
use super::text::{
    ImportLine, ImportText, Pairs, SeriesCells, decimal_ns, gcd, head, quoted, tail,
};
use super::{
    Hints, ImportError, Imported, ImportedThread, Importer, SampleKind, THREADS_MAX, text,
};
use crate::error::Contradiction;

const UNIT_NS: u64 = 1000;

/// One CPU, as both formats say it.
#[derive(Default)]
struct Core {
    cpu: u32,
    /// Label of the row in nanoseconds, gaps.
    rows: Vec<(u64, u64)>,
    min_ns: u64,
    max_ns: u64,
}

/// What the rows of a file have in common.
struct Rows {
    /// Unit of the values.
    unit_ns: u64,
    /// Width of a row, or a multiple of it where rows of zeros are left out.
    width_ns: u64,
    /// From the largest value of a row to its label.
    above_ns: u64,
    end_ns: u64,
}

impl Rows {
    fn of(cores: &[Core], unit_ns: u64, has_bias: bool) -> Self {
        let labels = || cores.iter().flat_map(|core| core.rows.iter().map(|&(label, _)| label));
        let first = labels().min().unwrap_or(0);
        let end_ns = labels().max().unwrap_or(0);
        let width_ns = labels().fold(0, |width, label| gcd(width, label - first));
        // The largest gap is below the label of its row, or the smallest of its row, where a bias
        // cannot have put it.
        let is_below = cores.iter().filter(|core| core.filled().next().is_some()).any(|core| {
            let last = core.filled().last().map_or(0, |(label, _)| label);
            let first = core.filled().next().map_or(0, |(label, _)| label);
            core.max_ns < last || (!has_bias && core.min_ns < first)
        });
        Self {
            unit_ns,
            width_ns: if width_ns == 0 { first.max(1) } else { width_ns },
            above_ns: if is_below { unit_ns } else { 0 },
            end_ns,
        }
    }
}

impl Core {
    fn filled(&self) -> impl Iterator<Item = (u64, u64)> {
        self.rows.iter().copied().filter(|&(_, n)| n > 0)
    }

    fn thread(&self, rows: &Rows) -> Result<ImportedThread, Contradiction> {
        let mut thread = of_cpu(self.cpu, SampleKind::Gap);
        thread.n = self.filled().fold(0, |sum: u64, (_, n)| sum.saturating_add(n));
        let Some((last_ns, last_n)) = self.filled().last() else { return Ok(thread) };
        thread.min_ns = Some(self.min_ns);
        thread.max_ns = Some(self.max_ns);
        let high_of = |label_ns: u64| label_ns.saturating_sub(rows.above_ns);
        let low_of = |label_ns: u64| high_of(label_ns).saturating_sub(rows.width_ns);
        if self.min_ns > self.max_ns || self.max_ns <= low_of(last_ns) {
            return Err(format!(
                "from {} to {} ns, but it has gaps up to {last_ns} ns",
                self.min_ns, self.max_ns
            )
            .into());
        }
        let beyond = self.max_ns > high_of(last_ns);
        if beyond && last_ns < rows.end_ns {
            return Err(format!(
                "the largest is {} ns, but its last row is {last_ns} ns",
                self.max_ns
            )
            .into());
        }
        let mut cells = SeriesCells::default();
        for (label_ns, n) in self.filled() {
            // With a bias the first row holds what is below it as well.
            let low_ns = match cells.edges() {
                None => low_of(label_ns).min(self.min_ns.saturating_sub(rows.unit_ns)),
                Some(_) => low_of(label_ns),
            };
            let is_last = beyond && label_ns == last_ns;
            let high_ns = if is_last { self.max_ns } else { high_of(label_ns) };
            let width_ns = high_ns.checked_sub(low_ns).filter(|&ns| ns > 0).ok_or("a row of 0")?;
            cells.push(low_ns + 1, width_ns, n)?;
        }
        thread.bins = cells.finish(0, 0, None)?;
        thread.overflow = if beyond { last_n } else { 0 };
        Ok(thread)
    }
}

/// Unit of the values: with `-W` of no whole µs labels have three decimals.
fn unit_ns<'a>(mut labels: impl Iterator<Item = &'a str>) -> u64 {
    if labels.any(|label| label.contains('.')) { 1 } else { UNIT_NS }
}

fn conclude(imported: &mut Imported, cores: &[Core], has_bias: bool) -> Result<(), Contradiction> {
    let rows = Rows::of(cores, imported.resolution_ns, has_bias);
    for core in cores {
        let thread = core.thread(&rows).map_err(|what| format!("CPU {}: {what}", core.cpu))?;
        if thread.overflow > 0 {
            let from_ns = rows.end_ns.saturating_sub(rows.above_ns + rows.width_ns);
            imported.censor(from_ns);
        }
        imported.threads.push(thread);
    }
    if imported.threads.iter().any(|thread| thread.overflow > 0) {
        imported.doubt(
            "overflow-mixed",
            "the last row of oslat holds the gaps of its own value and all larger ones: of these \
             only the largest is known",
        );
    }
    imported.doubt(
        "average-wrong",
        "the average of oslat is not taken: it is of upper edges, and the overflows of the first \
         CPU are in the averages of all",
    );
    imported.conclude();
    Ok(())
}

pub(super) const OSLAT_TEXT: Importer = Importer {
    id: "oslat-text",
    title: "oslat, text.",
    detect: detect_oslat_text,
    read: read_oslat_text,
};

fn detect_oslat_text(bytes: &[u8]) -> bool {
    let is_mark =
        |line: &str| line.trim_start().starts_with("Counter Freq:") || line.starts_with("oslat V ");
    head(bytes).lines().any(is_mark) || tail(bytes).lines().any(is_mark)
}

/// Lines of no use here: what was asked for, and averages.
const NOT_NEEDED: [&str; 13] = [
    "Total runtime:",
    "Thread priority:",
    "CPU list:",
    "CPU for main thread:",
    "Workload:",
    "Workload mem:",
    "Preheat cores:",
    "Pre-heat for ",
    "Global bias set to ",
    "Test starts",
    "Test completed",
    "Counter Freq:",
    "Average:",
];

/// Whether the key of a line is that of a row, perhaps a damaged one.
fn is_row(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_digit()) || key.ends_with("(us)")
}

fn read_oslat_text(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut imported = blank("oslat", UNIT_NS, hints);
    let mut cores: Vec<Core> = Vec::new();
    let (mut has, mut duration_ns, mut has_bias, mut wrong) = ([false; 3], None, false, false);
    let (mut is_gap, mut last_ns, mut width_ns, mut has_last) = (false, None, None, false);
    for line in text.lines() {
        let shown = line.text.trim();
        if let Some(version) = shown.strip_prefix("oslat V ") {
            imported.tool_version = Some(version.trim().into());
            continue;
        }
        has_bias |= shown.starts_with("Global bias set");
        let (key, values) = shown.split_once(':').unwrap_or((shown, ""));
        match key.trim() {
            "Core" => {
                if !cores.is_empty() {
                    return Err(line.at("a second result; import each run by itself"));
                }
                for word in values.split_whitespace() {
                    cores.push(Core { cpu: line.cpu(word)?, ..Core::default() });
                }
                if cores.is_empty() || cores.len() > THREADS_MAX {
                    return Err(line.at(format!("{} CPUs", cores.len())));
                }
            }
            "Minimum" => {
                each(line, values, &mut cores, &mut has[0], |core, ns| core.min_ns = ns)?;
            }
            "Maximum" => {
                each(line, values, &mut cores, &mut has[1], |core, ns| core.max_ns = ns)?;
            }
            "Max-Min" => {
                let is_range =
                    |core: &mut Core, ns| wrong |= core.max_ns.checked_sub(core.min_ns) != Some(ns);
                each(line, values, &mut cores, &mut has[2], is_range)?;
                if wrong {
                    return Err(line.at("is not the difference of the lines above: edited"));
                }
            }
            "Duration" => {
                let longest = values
                    .split_whitespace()
                    .filter_map(|word| decimal_ns(word, 1_000_000_000))
                    .max();
                duration_ns =
                    Some(longest.ok_or_else(|| line.unexpected(values.trim(), "seconds"))?);
            }
            "..." => is_gap = true,
            key if is_row(key) && !cores.is_empty() => {
                let label = key.strip_suffix("(us)");
                let label =
                    label.ok_or_else(|| line.unexpected(key, "a row, e.g. \"001 (us)\""))?;
                imported.resolution_ns = unit_ns([label].into_iter());
                let label_ns = row(line, label.trim(), values, &mut cores)?;
                // Dots replace rows of zeros; the last row is always there.
                if let Some(before_ns) = last_ns.filter(|_| !is_gap) {
                    let step_ns = label_ns - before_ns;
                    if *width_ns.get_or_insert(step_ns) != step_ns {
                        return Err(line.at("rows are missing before it: the file was edited"));
                    }
                }
                (last_ns, is_gap) = (Some(label_ns), false);
                has_last = values.contains("(including overflows)");
            }
            _ if values.contains("Trace threshold") && values.contains("triggered") => {
                return Err(line.at(
                    "oslat stopped at its trace threshold and wrote no result: run it without -T",
                ));
            }
            _ if shown.is_empty() || NOT_NEEDED.iter().any(|known| shown.starts_with(known)) => {}
            _ => remark(&mut imported, &format!("line {} is not used: {shown}", line.number)),
        }
    }
    if cores.is_empty() {
        return Err(text.cut("\"Core:\""));
    }
    let (Some(duration_ns), [true, true, _]) = (duration_ns, has) else {
        return Err(text.cut("\"Minimum:\", \"Maximum:\" and \"Duration:\""));
    };
    if !has_last {
        return Err(text.cut("the last row (including overflows)"));
    }
    imported.duration_ns = imported.duration_ns.or(Some(duration_ns));
    conclude(&mut imported, &cores, has_bias).map_err(|what| text.at(1, what))?;
    Ok(imported)
}

/// A row of gaps, one number for each CPU. Returns its label.
fn row(
    line: ImportLine<'_>,
    label: &str,
    values: &str,
    cores: &mut [Core],
) -> Result<u64, ImportError> {
    let label_ns = decimal_ns(label, UNIT_NS).filter(|&ns| ns > 0);
    let label_ns = label_ns.ok_or_else(|| line.unexpected(label, "a row"))?;
    let values = values.split('(').next().unwrap_or(values);
    let numbers = line.numbers(values)?;
    if numbers.len() != cores.len() {
        let what = format!("{} numbers, expected {}, one for each CPU", numbers.len(), cores.len());
        return Err(line.at(what));
    }
    for (core, n) in cores.iter_mut().zip(numbers) {
        if core.rows.last().is_some_and(|&(last, _)| last >= label_ns) {
            return Err(line.at(format!("row {label} comes again or too late")));
        }
        core.rows.push((label_ns, n));
    }
    Ok(label_ns)
}

/// A line of the foot, one number for each CPU.
fn each(
    line: ImportLine<'_>,
    values: &str,
    cores: &mut [Core],
    has: &mut bool,
    mut set: impl FnMut(&mut Core, u64),
) -> Result<(), ImportError> {
    if std::mem::replace(has, true) {
        return Err(line.at("comes twice"));
    }
    let values = values.split('(').next().unwrap_or(values);
    let words: Vec<&str> = values.split_whitespace().collect();
    if words.len() != cores.len() {
        let what = format!("{} numbers, expected {}, one for each CPU", words.len(), cores.len());
        return Err(line.at(what));
    }
    for (core, word) in cores.iter_mut().zip(words) {
        let ns = decimal_ns(word, UNIT_NS);
        let ns = ns.ok_or_else(|| line.unexpected(word, "a number"))?;
        set(core, ns);
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
struct OfThread {
    cpu: u32,
    min: serde_json::Number,
    max: serde_json::Number,
    duration: serde_json::Number,
    histogram: Pairs<u64>,
}

pub(super) const OSLAT_JSON: Importer = Importer {
    id: "oslat-json",
    title: "oslat --json.",
    detect: |bytes| program(bytes).is_some_and(|program| program == "oslat"),
    read: read_oslat_json,
};

fn read_oslat_json(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let (envelope, repaired): (Envelope<OfThread>, bool) = text::parse_json(bytes, hints)?;
    let mut imported = blank("oslat", UNIT_NS, hints);
    let wrong = |what: String| hints.at_byte(0, what);
    let threads = envelope.open(&mut imported, repaired).map_err(|what| hints.at_byte(0, what))?;
    let mut cores = Vec::with_capacity(threads.len());
    let mut duration_ns = 0;
    // The labels are always µs, the extremes in the unit.
    let labels = threads.iter().flat_map(|(_, of)| of.histogram.0.iter());
    let unit_ns = unit_ns(labels.map(|(label, _)| label.as_str()));
    imported.resolution_ns = unit_ns;
    for (number, of) in threads {
        let ns = |number: &serde_json::Number, unit_ns| {
            let word = number.to_string();
            decimal_ns(&word, unit_ns)
                .ok_or_else(|| format!("thread: {}, expected a number", quoted(&word)))
        };
        duration_ns = duration_ns.max(ns(&of.duration, 1_000_000_000).map_err(wrong)?);
        let mut core = Core {
            cpu: of.cpu,
            rows: Vec::with_capacity(of.histogram.0.len()),
            min_ns: ns(&of.min, unit_ns).map_err(wrong)?,
            max_ns: ns(&of.max, unit_ns).map_err(wrong)?,
        };
        for (label, n) in &of.histogram.0 {
            let label_ns = decimal_ns(label, UNIT_NS).filter(|&ns| ns > 0);
            let label_ns =
                label_ns.ok_or_else(|| wrong(format!("thread {number}: row {}", quoted(label))))?;
            core.rows.push((label_ns, *n));
        }
        core.rows.sort_unstable_by_key(|&(label, _)| label);
        if let Some(pair) = core.rows.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(wrong(format!("thread {number}: row {} ns comes twice", pair[0].0)));
        }
        cores.push(core);
    }
    imported.duration_ns = imported.duration_ns.or((duration_ns > 0).then_some(duration_ns));
    let is_bias = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or("");
        word == "--bias" || (!letters.starts_with('-') && letters.contains('B'))
    };
    let has_bias = imported.command.iter().any(|command| command.split(' ').any(is_bias));
    conclude(&mut imported, &cores, has_bias).map_err(|what| hints.at_byte(0, what))?;
    Ok(imported)
}
