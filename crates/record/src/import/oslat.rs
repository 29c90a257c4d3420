//! oslat, as text and as JSON: gaps that a busy loop saw.
//!
//! A row holds the gaps up to its label, from the label before it on; the last one all that are
//! larger as well. Its averages are not used: they count overflows of the first thread for all.

use serde::Deserialize;

use super::{
    Hints, ImportError, Imported, ImportedThread, Importer, Kind, THREADS_MAX,
    cyclictest::json::{Envelope, program},
    draft::{draft, of_cpu},
    json::{self, Pairs},
    text::{Cells, Line, Text, decimal_ns, head, quoted, tail},
};
use crate::error::Contradiction;

const UNIT_NS: u64 = 1000;

/// One CPU, as both formats say it.
#[derive(Default)]
struct Core {
    cpu: u32,
    /// Upper edge of the row in nanoseconds, gaps.
    rows: Vec<(u64, u64)>,
    min_ns: u64,
    max_ns: u64,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Width of the rows: their labels are its multiples, and a row of oslat is 1 µs by default.
fn width_ns(labels: impl Iterator<Item = u64>) -> u64 {
    labels.fold(UNIT_NS, gcd).max(1)
}

impl Core {
    fn thread(&self, width_ns: u64, end_ns: u64) -> Result<ImportedThread, Contradiction> {
        let mut thread = of_cpu(self.cpu, Kind::Gap);
        let filled: Vec<(u64, u64)> = self.rows.iter().copied().filter(|&(_, n)| n > 0).collect();
        thread.n = filled.iter().fold(0, |sum: u64, &(_, n)| sum.saturating_add(n));
        let Some(&(last_ns, last_n)) = filled.last() else { return Ok(thread) };
        thread.min_ns = Some(self.min_ns);
        thread.max_ns = Some(self.max_ns);
        if self.min_ns > self.max_ns || self.max_ns < last_ns {
            return Err(format!(
                "from {} to {} ns, but it has gaps up to {last_ns} ns",
                self.min_ns, self.max_ns
            )
            .into());
        }
        let beyond = self.max_ns > last_ns;
        if beyond && last_ns < end_ns {
            return Err(format!(
                "the largest is {} ns, but its last row is {last_ns} ns",
                self.max_ns
            )
            .into());
        }
        let mut cells = Cells::default();
        for &(label_ns, n) in &filled {
            let low_ns = label_ns.checked_sub(width_ns).ok_or("a row of 0")?;
            let high_ns = if beyond && label_ns == last_ns { self.max_ns } else { label_ns };
            // A row holds what is above the label before it, up to its own.
            cells.push(low_ns + 1, high_ns - low_ns, n)?;
        }
        thread.bins = cells.finish(0, 0, None)?;
        thread.overflow = if beyond { last_n } else { 0 };
        Ok(thread)
    }
}

fn conclude(imported: &mut Imported, cores: &[Core]) -> Result<(), Contradiction> {
    let labels = || cores.iter().flat_map(|core| core.rows.iter().map(|&(label, _)| label));
    let width_ns = width_ns(labels());
    let end_ns = labels().max().unwrap_or(0);
    imported.resolution_ns = width_ns;
    for core in cores {
        let thread =
            core.thread(width_ns, end_ns).map_err(|what| format!("CPU {}: {what}", core.cpu))?;
        if thread.overflow > 0 {
            imported.censor(end_ns - width_ns);
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

fn read_oslat_text(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    let mut imported = draft("oslat", UNIT_NS, hints);
    let mut cores: Vec<Core> = Vec::new();
    let (mut has, mut duration_ns) = ([false; 2], None);
    for line in text.lines() {
        if let Some(version) = line.text.strip_prefix("oslat V ") {
            imported.tool_version = Some(version.trim().into());
            continue;
        }
        let Some((key, values)) = line.text.trim().split_once(':') else { continue };
        match key.trim() {
            "Core" => {
                if !cores.is_empty() {
                    return Err(line.at("a second result; import each run by itself"));
                }
                for cpu in line.numbers(values)? {
                    let cpu = u32::try_from(cpu).map_err(|_| line.at(format!("CPU {cpu}")))?;
                    cores.push(Core { cpu, ..Core::default() });
                }
                if cores.is_empty() || cores.len() > THREADS_MAX {
                    return Err(line.at(format!("{} CPUs", cores.len())));
                }
            }
            "Minimum" => {
                has[0] = true;
                each(line, values, &mut cores, |core, ns| core.min_ns = ns)?;
            }
            "Maximum" => {
                has[1] = true;
                each(line, values, &mut cores, |core, ns| core.max_ns = ns)?;
            }
            "Duration" => {
                let longest = values
                    .split_whitespace()
                    .filter_map(|word| decimal_ns(word, 1_000_000_000))
                    .max();
                duration_ns = Some(longest.ok_or_else(|| line.at("no duration"))?);
            }
            key => {
                if let Some(label) = key.strip_suffix("(us)") {
                    row(line, label.trim(), values, &mut cores)?;
                }
            }
        }
    }
    if cores.is_empty() {
        return Err(text.cut("\"Core:\""));
    }
    let (Some(duration_ns), [true, true]) = (duration_ns, has) else {
        return Err(text.cut("\"Minimum:\", \"Maximum:\" and \"Duration:\""));
    };
    imported.duration_ns = imported.duration_ns.or(Some(duration_ns));
    conclude(&mut imported, &cores).map_err(|what| text.at(1, what))?;
    Ok(imported)
}

/// A row of gaps, one number for each CPU.
fn row(line: Line<'_>, label: &str, values: &str, cores: &mut [Core]) -> Result<(), ImportError> {
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
    Ok(())
}

/// A line of the foot, one number for each CPU.
fn each(
    line: Line<'_>,
    values: &str,
    cores: &mut [Core],
    mut set: impl FnMut(&mut Core, u64),
) -> Result<(), ImportError> {
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
    let (envelope, repaired): (Envelope<OfThread>, bool) = json::parse(bytes, hints)?;
    let mut imported = draft("oslat", UNIT_NS, hints);
    let wrong = |what: String| hints.at_byte(0, what);
    let threads = envelope.open(&mut imported, repaired).map_err(|what| hints.at_byte(0, what))?;
    let mut cores = Vec::with_capacity(threads.len());
    let mut duration_ns = 0;
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
            min_ns: ns(&of.min, UNIT_NS).map_err(wrong)?,
            max_ns: ns(&of.max, UNIT_NS).map_err(wrong)?,
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
    conclude(&mut imported, &cores).map_err(|what| hints.at_byte(0, what))?;
    Ok(imported)
}
