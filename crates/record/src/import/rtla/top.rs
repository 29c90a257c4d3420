//! rtla timerlat top, osnoise top and hwnoise: count and extremes for each CPU.
//!
//! Without `-q` the table is printed over and over; the last one counts, and must be whole.

use std::collections::BTreeMap;

use super::super::{
    Hints, ImportError, Imported, Importer, Kind, THREADS_MAX,
    draft::{draft, of_cpu, series},
    text::{Line, Text, days_clock_ns, head, plain, quoted, scaled},
};

pub(crate) const TIMERLAT: Importer = Importer {
    id: "rtla-timerlat-top",
    title: "rtla timerlat top.",
    detect: |bytes| head(bytes).contains("IRQ Timer Latency ("),
    read: read_timerlat,
};

fn read_timerlat(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    let mut imported = draft("rtla timerlat", 1000, hints);
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

pub(crate) const OSNOISE: Importer = Importer {
    id: "rtla-osnoise-top",
    title: "rtla osnoise top and hwnoise.",
    detect: detect_osnoise,
    read: read_osnoise,
};

fn detect_osnoise(bytes: &[u8]) -> bool {
    let head = head(bytes);
    head.contains("CPU Period") && head.contains("Max Noise")
}

fn read_osnoise(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    let mut imported = draft("rtla osnoise", 1000, hints);
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
    above: Vec<(Line<'a>, String)>,
    rows: Vec<(Line<'a>, String)>,
    has_head: bool,
    has_all: bool,
}

fn last<'a>(
    text: Text<'a>,
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
                super::remark(imported, &shown);
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
fn check_all(line: Line<'_>, shown: &str, rows: &[(Line<'_>, String)]) -> Result<(), ImportError> {
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
    let said = number(shown)?;
    if 10_u64.checked_pow(exponent.unwrap_or(0)).is_none_or(|cut| sum / cut != said) {
        return Err(
            line.at(format!("{} in all, but the rows above count {sum}", quoted(head.trim())))
        );
    }
    Ok(())
}

/// `12 #12321     |        1         0         0        13 |        5 ...`.
fn timerlat_row(line: Line<'_>, shown: &str, imported: &mut Imported) -> Result<(), ImportError> {
    let mut parts = shown.split('|');
    let head: Vec<&str> = parts.next().unwrap_or("").split_whitespace().collect();
    let [cpu, count] = head[..] else {
        return Err(line.unexpected(shown, "CPU and #COUNT"));
    };
    let cpu = line.cpu(cpu)?;
    let n = line.number(count.trim_start_matches('#'))?;
    let kinds = [Kind::IrqLatency, Kind::Latency, Kind::UserLatency];
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
    line: Line<'_>,
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
    let mut whole = series(format!("CPU {cpu} noise of a period"), Kind::Noise);
    whole.mean_ns = (n > 0).then(|| noise as f64 * 1000.0 / n as f64);
    let single = if is_hardware { Kind::HardwareGap } else { Kind::Gap };
    let mut single = series(format!("CPU {cpu} longest of a period"), single);
    for (thread, column) in [(&mut whole, 5), (&mut single, 6)] {
        thread.cpu = Some(cpu);
        thread.n = n;
        thread.max_ns = Some(ns(column)?).filter(|_| n > 0);
    }
    imported.threads.extend([whole, single]);
    Ok(())
}
