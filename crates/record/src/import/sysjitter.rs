//! sysjitter: gaps that a busy loop saw, as a table with its own quantiles or every one of them.

use super::{
    Hints, ImportError, Imported, Importer, Kind, THREADS_MAX,
    counter::Counter,
    draft::{draft, of_cpu, series},
    text::{Line, Text, head, quoted},
};

/// Its quantiles, parts per million.
const TOLD: [(&str, u32); 6] = [
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
    let text = Text::new(bytes, hints)?;
    let mut imported = draft("sysjitter", 1, hints);
    let mut rows: Vec<(&str, Line<'_>, &str)> = Vec::new();
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
        None => Ok((Line::default(), Vec::new())),
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
    let mut told = Vec::new();
    for (key, ppm) in TOLD {
        if find(key).is_some() {
            told.push((ppm, of(key)?));
        }
    }
    for (i, &core) in cores.iter().enumerate() {
        let cpu = u32::try_from(core).map_err(|_| core_line.at(format!("CPU {core}")))?;
        let mut thread = of_cpu(cpu, Kind::Gap);
        thread.n = n[i];
        if n[i] > 0 {
            (thread.min_ns, thread.max_ns) = (Some(min[i]), Some(max[i]));
            thread.mean_ns = Some(mean[i] as f64);
            thread.told = told.iter().map(|(ppm, values)| (*ppm, values[i])).collect();
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
    let text = Text::new(bytes, hints)?;
    let mut imported = draft("sysjitter", 1, hints);
    let mut counter = Counter::default();
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
    let mut thread = series("one CPU", Kind::Gap);
    counter.fill(&mut thread);
    imported.threads.push(thread);
    imported.doubt("cpu-unknown", "the number at the end of the file's name is that of a thread");
    imported.conclude();
    Ok(imported)
}
