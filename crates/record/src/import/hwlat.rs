//! Gaps that only hardware and firmware can make: the kernel's hwlat tracer and hwlatdetect.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::{blank, of_cpu, series};
use super::text::{ImportLine, ImportText, ValueCounter, head, quoted};
use super::{Hints, ImportError, Imported, Importer, SampleKind, THREADS_MAX};

const UNIT_NS: u64 = 1000;

/// What the file says of its own settings, as it says them.
#[derive(Default)]
struct Settings<'a> {
    threshold: Option<&'a str>,
    width: Option<&'a str>,
    window: Option<&'a str>,
}

/// Says what both leave out, and makes a series of each CPU's gaps. `gaps`: how many the file
/// counts.
fn conclude(
    imported: &mut Imported,
    cpus: BTreeMap<Option<u32>, ValueCounter>,
    gaps: u64,
    settings: &Settings<'_>,
) {
    if cpus.is_empty() {
        imported.threads.push(series("all CPUs", SampleKind::HardwareGap));
    }
    for (cpu, counter) in cpus {
        let label = cpu.map_or("all CPUs".into(), |cpu| format!("CPU {cpu}"));
        let mut thread = series(label, SampleKind::HardwareGap);
        thread.cpu = cpu;
        counter.fill(&mut thread);
        imported.threads.push(thread);
    }
    let threshold = settings.threshold.unwrap_or("10 µs unless asked");
    imported.doubt(
        "threshold",
        format!(
            "only gaps above the tracer's threshold ({threshold}) are in the file, the longest of \
             each window"
        ),
    );
    let part = match (settings.width, settings.window) {
        (Some(width), Some(window)) => format!("{width} of {window}"),
        _ => "half of it unless asked".into(),
    };
    imported.doubt(
        "half-time",
        format!(
            "the tracer looks at one CPU at a time and for a part of each window ({part}): what \
             happens in the rest is not seen"
        ),
    );
    let windows = imported.threads.iter().fold(0_u64, |sum, thread| sum.saturating_add(thread.n));
    if gaps > windows {
        let text = format!(
            "the file counts {gaps} gaps above the threshold in {windows} windows, and says only \
             the longest of each window"
        );
        imported.doubt("reduced", text);
    }
    imported.conclude();
}

pub(super) const TRACER: Importer = Importer {
    id: "hwlat-tracer",
    title: "Text of the kernel's hwlat tracer.",
    detect: detect_tracer,
    read: read_tracer,
};

fn detect_tracer(bytes: &[u8]) -> bool {
    let head = head(bytes);
    head.lines().any(|line| line.trim() == "# tracer: hwlat") || head.contains("inner/outer(us):")
}

fn read_tracer(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut imported = blank("kernel hwlat tracer", UNIT_NS, hints);
    let mut cpus: BTreeMap<Option<u32>, ValueCounter> = BTreeMap::new();
    let (mut entries, mut declared, mut last, mut all) = (0_u64, None, None, 0_u64);
    for line in text.lines() {
        let shown = line.text.trim();
        if let Some(rest) = shown.strip_prefix("# entries-in-buffer/entries-written:") {
            let pair = rest.split_whitespace().next().unwrap_or("");
            let (there, written) = pair.split_once('/').unwrap_or((pair, ""));
            declared = Some((line.number(there)?, line.number(written)?));
            continue;
        }
        if shown.starts_with('#') || shown.is_empty() {
            continue;
        }
        let (cpu, number, ns, gaps) = entry(line)?;
        all = all.saturating_add(gaps);
        if last.is_some_and(|last| number <= last) {
            return Err(line.at(format!("entry #{number} comes again or too late")));
        }
        last = Some(number);
        entries += 1;
        if cpus.len() >= THREADS_MAX {
            return Err(line.at(format!("more than {THREADS_MAX} CPUs")));
        }
        let counter = cpus.entry(Some(cpu)).or_default();
        counter.push(ns, UNIT_NS, 1).map_err(|what| line.at(what))?;
    }
    match declared {
        Some((there, _)) if there != entries => {
            return Err(text.cut(&format!("{there} entries, as its head says (it has {entries})")));
        }
        Some((there, written)) if there != written => {
            let text = format!(
                "{} of {written} entries were overwritten in the buffer",
                written.saturating_sub(there)
            );
            imported.doubt("samples-lost", text);
        }
        Some(_) => {}
        None if entries == 0 => return Err(text.cut("an entry of the hwlat tracer")),
        None => imported.not_ended(),
    }
    if last.is_some_and(|last| last != entries) {
        let text =
            format!("the last entry has number {}, but {entries} are there", last.unwrap_or(0));
        imported.doubt("samples-lost", text);
    }
    conclude(&mut imported, cpus, all, &Settings::default());
    Ok(imported)
}

/// CPU, number, the longer of both gaps and how many of the window were above the threshold:
/// `[001] dn... 613.749741: #1 inner/outer(us): 41/41 ts:1470836488.206734548 count:2`.
fn entry(line: ImportLine<'_>) -> Result<(u32, u64, u64, u64), ImportError> {
    let bad = || line.unexpected(line.text, "an entry of the hwlat tracer");
    let (before, gaps) = line.text.split_once("inner/outer(us):").ok_or_else(bad)?;
    let cpu = before.split_once('[').and_then(|(_, rest)| rest.split_once(']')).ok_or_else(bad)?.0;
    let cpu = line.cpu(cpu.trim())?;
    let number = before.rsplit('#').next().map(str::trim).ok_or_else(bad)?;
    let number = line.number(number)?;
    let pair = gaps.split_whitespace().next().ok_or_else(bad)?;
    let (inner, outer) = pair.split_once('/').ok_or_else(bad)?;
    let longest = line.number(inner)?.max(line.number(outer)?);
    let count = gaps.split_whitespace().find_map(|word| word.strip_prefix("count:"));
    let count = count.map_or(Ok(1), |word| line.number(word))?;
    Ok((cpu, number, line.ns(longest, UNIT_NS)?, count))
}

pub(super) const DETECT: Importer = Importer {
    id: "hwlatdetect",
    title: "hwlatdetect, its output or its report.",
    detect: |bytes| {
        head(bytes).lines().any(|line| line.starts_with("hwlatdetect:") || is_sample(line))
    },
    read: read_detect,
};

fn read_detect(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut imported = blank("hwlatdetect", UNIT_NS, hints);
    let mut samples: Vec<Sample<'_>> = Vec::new();
    let mut lines = BTreeSet::new();
    let mut settings = Settings::default();
    let (mut has_head, mut recorded, mut max_ns) = (false, None, None);
    for line in text.lines() {
        let shown = line.text.trim();
        if is_sample(shown) {
            if !lines.insert(shown) {
                return Err(line.at("this sample comes again; import each run by itself"));
            }
            samples.push(sample(ImportLine { text: shown, ..line })?);
            super::draft::remark(&mut imported, shown);
            continue;
        }
        let (key, value) = shown.split_once(':').unwrap_or((shown, ""));
        let word = value.split_whitespace().next().unwrap_or("");
        match key {
            "hwlatdetect" => {
                if std::mem::replace(&mut has_head, true) {
                    return Err(line.at("a second result; import each run by itself"));
                }
                let seconds = value.trim().strip_prefix("test duration ");
                let seconds = seconds.and_then(|rest| rest.split(' ').next());
                if let Some(seconds) = seconds {
                    let ns = line.ns(line.number(seconds)?, 1_000_000_000)?;
                    imported.duration_ns = imported.duration_ns.or(Some(ns));
                }
            }
            "Latency threshold" => settings.threshold = Some(word),
            "Sample window" => settings.window = Some(word),
            "Sample width" => settings.width = Some(word),
            // A terminal shows ^C before it.
            key if key.ends_with("interrupted") => {
                imported.duration_ns = hints.duration_ns;
                imported.doubt(
                    "command-duration",
                    "the run was interrupted before the duration that was asked for: how long it \
                     measured is not in the file; if known, say so with --duration",
                );
            }
            "Samples recorded" => recorded = Some(line.number(word)?),
            // Both mean that nothing was above the threshold; older versions print a 0.
            "Max Latency" if word == "Below" || word == "0us" => {}
            "Max Latency" => {
                let us = line.number(word.trim_end_matches("us"))?;
                max_ns = Some(line.ns(us, UNIT_NS)?);
            }
            "Starting test" | "test finished" | "parameters" => {}
            _ => super::draft::remark(&mut imported, shown),
        }
    }
    if has_head {
        let Some(recorded) = recorded else { return Err(text.cut("\"Samples recorded:\"")) };
        check_count(text, &samples, recorded, &mut imported, max_ns)?;
    } else if samples.is_empty() {
        return Err(text.cut("a sample (ts: ..., inner:..., outer:...)"));
    } else {
        imported.not_ended();
    }
    let mut cpus: BTreeMap<Option<u32>, ValueCounter> = BTreeMap::new();
    let mut gaps = 0_u64;
    for sample in samples {
        gaps = gaps.saturating_add(sample.gaps);
        let counter = cpus.entry(sample.cpu).or_default();
        counter.push(sample.ns, UNIT_NS, 1).map_err(|what| sample.line.at(what))?;
    }
    conclude(&mut imported, cpus, gaps, &settings);
    Ok(imported)
}

/// Samples are printed at the end unless they were shown as they came (`--watch`), and not at all
/// where they go to a file: then only their number and the largest are there.
fn check_count(
    text: ImportText<'_>,
    samples: &[Sample<'_>],
    recorded: u64,
    imported: &mut Imported,
    max_ns: Option<u64>,
) -> Result<(), ImportError> {
    let found = samples.len() as u64;
    if found != recorded {
        return Err(text
            .cut(&format!("{recorded} samples, as it says (it has {found}); import its report")));
    }
    let longest = samples.iter().map(|sample| sample.ns).max();
    if longest != max_ns {
        return Err(text.cut("the sample of its \"Max Latency\""));
    }
    if recorded == 0 {
        imported.remarks.push("no gap above the threshold".into());
    }
    Ok(())
}

fn is_sample(line: &str) -> bool {
    line.starts_with("ts: ") && line.contains("inner:") && line.contains("outer:")
}

/// The longest gap of a window.
struct Sample<'a> {
    line: ImportLine<'a>,
    cpu: Option<u32>,
    ns: u64,
    /// Gaps of the window above the threshold.
    gaps: u64,
}

/// `ts: 1470836488.206734548, delta:1.000000, inner:9, outer:9, cpu:3, count:2`; what newer
/// versions add may be missing.
fn sample(line: ImportLine<'_>) -> Result<Sample<'_>, ImportError> {
    let (mut cpu, mut both, mut gaps) = (None, [None; 2], 1);
    for part in line.text.split(',') {
        let Some((key, value)) = part.trim().split_once(':') else {
            return Err(line.unexpected(part, "key:value"));
        };
        match key {
            "inner" => both[0] = Some(line.number(value.trim())?),
            "outer" => both[1] = Some(line.number(value.trim())?),
            "cpu" => cpu = Some(line.cpu(value.trim())?),
            "count" => gaps = line.number(value.trim())?,
            _ => {}
        }
    }
    let [Some(inner), Some(outer)] = both else {
        return Err(line.at("no inner or outer"));
    };
    Ok(Sample { line, cpu, ns: line.ns(inner.max(outer), UNIT_NS)?, gaps })
}

// sysjitter: gaps that a busy loop saw, as a table with its own quantiles or every one of them.

/// Its quantiles, parts per million.
const QUANTILES: [(&str, u32); 6] = [
    ("int_median(ns)", 500_000),
    ("int_90(ns)", 900_000),
    ("int_99(ns)", 990_000),
    ("int_999(ns)", 999_000),
    ("int_9999(ns)", 999_900),
    ("int_99999(ns)", 999_990),
];

/// Rows that must be there, the last of the table among them.
const MUST: [&str; 7] = [
    "core_i",
    "runtime(ns)",
    "int_n",
    "int_min(ns)",
    "int_mean(ns)",
    "int_max(ns)",
    "int_total(%)",
];

pub(super) const TABLE: Importer = Importer {
    id: "sysjitter",
    title: "sysjitter, its table.",
    detect: |bytes| head(bytes).lines().any(|line| line.starts_with("core_i:")),
    read: read_table,
};

fn read_table(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut imported = blank("sysjitter", 1, hints);
    let mut rows: Vec<(&str, ImportLine<'_>, &str)> = Vec::new();
    for line in text.lines() {
        let Some((key, values)) = line.text.split_once(':') else { continue };
        if rows.iter().any(|(known, _, _)| *known == key.trim()) {
            return Err(line.at(format!("a second line {}", quoted(key))));
        }
        rows.push((key.trim(), line, values));
    }
    let find = |key: &str| rows.iter().find(|(known, _, _)| *known == key);
    if let Some(missing) = MUST.iter().find(|key| find(key).is_none()) {
        return Err(text.cut(&quoted(missing)));
    }
    let numbers = |key: &str| match find(key) {
        Some((_, line, values)) => line.numbers(values).map(|numbers| (*line, numbers)),
        None => Ok((ImportLine::default(), Vec::new())),
    };
    let (core_line, cores) = numbers("core_i")?;
    if cores.is_empty() || cores.len() > THREADS_MAX {
        return Err(core_line.at(format!("{} CPUs", cores.len())));
    }
    let of = |key: &str| {
        let (line, numbers) = numbers(key)?;
        if numbers.len() != cores.len() {
            let what =
                format!("{} numbers, expected {}, one for each CPU", numbers.len(), cores.len());
            return Err(line.at(what));
        }
        Ok(numbers)
    };
    let (n, min, mean, max) =
        (of("int_n")?, of("int_min(ns)")?, of("int_mean(ns)")?, of("int_max(ns)")?);
    let runtime = of("runtime(ns)")?;
    imported.duration_ns = imported.duration_ns.or(runtime.iter().copied().max());
    let mut quantiles = Vec::new();
    for (key, ppm) in QUANTILES {
        if find(key).is_some() {
            quantiles.push((ppm, of(key)?));
        }
    }
    for (i, &core) in cores.iter().enumerate() {
        let cpu = u32::try_from(core).map_err(|_| core_line.at(format!("CPU {core}")))?;
        let mut thread = of_cpu(cpu, SampleKind::Gap);
        thread.n = n[i];
        if n[i] > 0 {
            (thread.min_ns, thread.max_ns) = (Some(min[i]), Some(max[i]));
            thread.mean_ns = Some(mean[i] as f64);
            thread.quantiles = quantiles.iter().map(|(ppm, values)| (*ppm, values[i])).collect();
        }
        imported.threads.push(thread);
    }
    if let Some((_, _, threshold)) = find("threshold(ns)") {
        let least = threshold.split_whitespace().next().unwrap_or("?");
        imported.doubt("threshold", format!("gaps below {least} ns are not in the file"));
    }
    imported.conclude();
    Ok(imported)
}

pub(super) const RAW: Importer = Importer {
    id: "sysjitter-raw",
    title: "sysjitter --raw, one file of a CPU.",
    detect: detect_raw,
    read: read_raw,
};

fn detect_raw(bytes: &[u8]) -> bool {
    let head = head(bytes);
    head.starts_with("# cpu_mhz:") && head.contains("# n_interruptions:")
}

fn read_raw(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let mut imported = blank("sysjitter", 1, hints);
    let mut counter = ValueCounter::default();
    let (mut declared, mut found) = (None, 0_u64);
    for line in text.lines() {
        if let Some(comment) = line.text.strip_prefix('#') {
            let Some((key, value)) = comment.split_once(':') else { continue };
            let word = value.split_whitespace().next().unwrap_or("");
            match key.trim() {
                "n_interruptions" => declared = Some(line.number(word)?),
                "threshold" => {
                    imported.doubt("threshold", format!("gaps below {word} are not in the file"))
                }
                _ => {}
            }
            continue;
        }
        // Time, (delta,) cycles, nanoseconds.
        let numbers = line.numbers(line.text)?;
        if !matches!(numbers.len(), 3 | 4) {
            return Err(line.at(format!("{} columns, expected 3 or 4", numbers.len())));
        }
        counter.push(numbers[numbers.len() - 1], 1, 1).map_err(|what| line.at(what))?;
        found += 1;
    }
    let Some(declared) = declared else { return Err(text.cut("\"# n_interruptions:\"")) };
    if declared != found {
        return Err(text.cut(&format!("{declared} gaps, as its head says (it has {found})")));
    }
    let mut thread = series("one CPU", SampleKind::Gap);
    counter.fill(&mut thread);
    imported.threads.push(thread);
    imported.doubt("cpu-unknown", "the number at the end of the file's name is that of a thread");
    imported.conclude();
    Ok(imported)
}
