//! cyclictest and jitterdebugger as they show themselves: one line `T:` for each thread, over and
//! over or once at the end. Count and extremes; the last line of each thread counts.

use std::collections::BTreeMap;

use super::super::{
    Hints, ImportError, Imported, ImportedThread, Importer, Kind, THREADS_MAX, command,
    draft::{draft, series},
    text::{Line, Text, decimal_ns, field, head, plain},
};

pub(crate) const SUMMARY: Importer = Importer {
    id: "cyclictest-summary",
    title: "Lines of threads (T:) of cyclictest or jitterdebugger -v.",
    detect: |bytes| head(bytes).lines().any(|line| is_thread(&plain(line))),
    read,
};

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    let mut threads: BTreeMap<u64, ImportedThread> = BTreeMap::new();
    let mut tids: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let mut found = Found { unit_ns: hints.unit_ns.unwrap_or(1000), ..Found::default() };
    for line in text.lines() {
        let shown = plain(line.text);
        let shown = Line { text: shown.trim(), ..line };
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
    let mut imported = draft(tool, found.unit_ns, hints);
    imported.command = imported.command.or(found.command);
    imported.remarks = found.remarks;
    imported.threads = threads.into_values().collect();
    imported.not_ended();
    if found.is_jitterdebugger {
        imported.conclude();
    } else {
        imported.period_ns = imported.period_ns.or(imported.threads[0].period_ns);
        imported.no_cpus();
        super::conclude(&mut imported, None);
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
    fn thread(&mut self, line: Line<'_>) -> Result<(u64, ImportedThread), ImportError> {
        let word = |key: &str| field(line.text, key).ok_or_else(|| line.at(format!("no {key}")));
        let number = line.number(word("T:")?)?;
        let mut thread = series(format!("thread {number}"), Kind::Latency);
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

    /// Whether a line is one that these tools print beside.
    fn around(&mut self, line: &str) -> bool {
        if super::is_aside(line) && !line.starts_with("WARN") && !line.starts_with("INFO") {
            return true;
        }
        if command::cyclictest(line.trim_start_matches(['#', '$', ' '])).is_some() {
            self.command.get_or_insert_with(|| line.trim_start_matches(['#', '$', ' ']).into());
            return true;
        }
        let told = line.starts_with('#')
            || ["WARN", "INFO", "jd_utils", "spikes =", "Max CPUs", "Online CPUs"]
                .iter()
                .any(|begin| line.starts_with(begin))
            || line.contains(" Spike: ");
        if told && !line.contains(" Spike: ") {
            self.remarks.push(line.trim_start_matches('#').trim().into());
        }
        self.remarks.truncate(100);
        told
    }
}
