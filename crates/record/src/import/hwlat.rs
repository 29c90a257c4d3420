//! Gaps that only hardware and firmware can make: the kernel's hwlat tracer and hwlatdetect.

use std::collections::BTreeMap;

use super::{
    Hints, ImportError, Imported, Importer, Kind, THREADS_MAX,
    counter::Counter,
    draft::{draft, series},
    text::{Line, Text, head},
};

const UNIT_NS: u64 = 1000;

/// Says what both leave out, and makes a series of each CPU's gaps.
fn conclude(imported: &mut Imported, cpus: BTreeMap<Option<u32>, Counter>) {
    if cpus.is_empty() {
        imported.threads.push(series("all CPUs", Kind::HardwareGap));
    }
    for (cpu, counter) in cpus {
        let label = cpu.map_or("all CPUs".into(), |cpu| format!("CPU {cpu}"));
        let mut thread = series(label, Kind::HardwareGap);
        thread.cpu = cpu;
        counter.fill(&mut thread);
        imported.threads.push(thread);
    }
    imported.doubt(
        "threshold",
        "only gaps above the tracer's threshold are in the file (10 µs unless asked), the longest \
         of each window",
    );
    imported.doubt(
        "half-time",
        "the tracer looks at one CPU at a time and for a part of each window (half of it unless \
         asked): what happens in the rest is not seen",
    );
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
    let text = Text::new(bytes, hints)?;
    let mut imported = draft("kernel hwlat tracer", UNIT_NS, hints);
    let mut cpus: BTreeMap<Option<u32>, Counter> = BTreeMap::new();
    let (mut entries, mut declared, mut last) = (0_u64, None, None);
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
        let (cpu, number, ns) = entry(line)?;
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
    conclude(&mut imported, cpus);
    Ok(imported)
}

/// CPU, number and the longer of both gaps of `[001] dn... 613.749741: #1 inner/outer(us): 41/41`.
fn entry(line: Line<'_>) -> Result<(u32, u64, u64), ImportError> {
    let bad = || line.unexpected(line.text, "an entry of the hwlat tracer");
    let (before, gaps) = line.text.split_once("inner/outer(us):").ok_or_else(bad)?;
    let cpu = before.split_once('[').and_then(|(_, rest)| rest.split_once(']')).ok_or_else(bad)?.0;
    let cpu = line.number(cpu.trim())?;
    let cpu = u32::try_from(cpu).map_err(|_| line.at(format!("CPU {cpu}")))?;
    let number = before.rsplit('#').next().map(str::trim).ok_or_else(bad)?;
    let number = line.number(number)?;
    let pair = gaps.split_whitespace().next().ok_or_else(bad)?;
    let (inner, outer) = pair.split_once('/').ok_or_else(bad)?;
    let longest = line.number(inner)?.max(line.number(outer)?);
    Ok((cpu, number, line.ns(longest, UNIT_NS)?))
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
    let text = Text::new(bytes, hints)?;
    let mut imported = draft("hwlatdetect", UNIT_NS, hints);
    let mut samples: Vec<(Line<'_>, Option<u32>, u64)> = Vec::new();
    let (mut has_head, mut recorded, mut max_ns) = (false, None, None);
    for line in text.lines() {
        let shown = line.text.trim();
        if is_sample(shown) {
            samples.push(sample(line)?);
            continue;
        }
        has_head |= shown.starts_with("hwlatdetect:");
        let Some((key, value)) = shown.split_once(':') else { continue };
        let word = value.split_whitespace().next().unwrap_or("");
        match key {
            "hwlatdetect" => {
                let seconds = value.trim().strip_prefix("test duration ");
                let seconds = seconds.and_then(|rest| rest.split(' ').next());
                if let Some(seconds) = seconds {
                    let ns = line.ns(line.number(seconds)?, 1_000_000_000)?;
                    imported.duration_ns = imported.duration_ns.or(Some(ns));
                }
            }
            "Samples recorded" => recorded = Some(line.number(word)?),
            "Max Latency" if word != "Below" => {
                let us = line.number(word.trim_end_matches("us"))?;
                max_ns = Some(line.ns(us, UNIT_NS)?);
            }
            _ => super::remark(&mut imported, shown),
        }
    }
    if has_head {
        let Some(recorded) = recorded else { return Err(text.cut("\"Samples recorded:\"")) };
        check_count(text, &mut samples, recorded, &mut imported, max_ns)?;
    } else if samples.is_empty() {
        return Err(text.cut("a sample (ts: ..., inner:..., outer:...)"));
    } else {
        imported.not_ended();
    }
    let mut cpus: BTreeMap<Option<u32>, Counter> = BTreeMap::new();
    for (line, cpu, ns) in samples {
        let counter = cpus.entry(cpu).or_default();
        counter.push(ns, UNIT_NS, 1).map_err(|what| line.at(what))?;
    }
    conclude(&mut imported, cpus);
    Ok(imported)
}

/// Samples are printed at the end unless they were shown as they came (`--watch`), and not at all
/// where they go to a file: then only their number and the largest are there.
fn check_count(
    text: Text<'_>,
    samples: &mut Vec<(Line<'_>, Option<u32>, u64)>,
    recorded: u64,
    imported: &mut Imported,
    max_ns: Option<u64>,
) -> Result<(), ImportError> {
    let found = samples.len() as u64;
    if found != recorded {
        return Err(text
            .cut(&format!("{recorded} samples, as it says (it has {found}); import its report")));
    }
    let longest = samples.iter().map(|&(_, _, ns)| ns).max();
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

/// `ts: 1470836488.206734548, delta:1.000000, inner:9, outer:9, cpu:3, count:2`; what newer
/// versions add may be missing.
fn sample<'a>(line: Line<'a>) -> Result<(Line<'a>, Option<u32>, u64), ImportError> {
    let (mut cpu, mut gaps) = (None, [None; 2]);
    for part in line.text.split(',') {
        let Some((key, value)) = part.trim().split_once(':') else {
            return Err(line.unexpected(part, "key:value"));
        };
        match key {
            "inner" => gaps[0] = Some(line.number(value.trim())?),
            "outer" => gaps[1] = Some(line.number(value.trim())?),
            "cpu" => {
                let number = line.number(value.trim())?;
                cpu = Some(u32::try_from(number).map_err(|_| line.at(format!("CPU {number}")))?);
            }
            _ => {}
        }
    }
    let [Some(inner), Some(outer)] = gaps else {
        return Err(line.at("no inner or outer"));
    };
    Ok((line, cpu, line.ns(inner.max(outer), UNIT_NS)?))
}
