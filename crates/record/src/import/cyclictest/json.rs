//! cyclictest `--json`: exact counts of what fell into the histogram; what did not is only in the
//! count of cycles.

use serde::Deserialize;

use super::super::{
    Hints, ImportError, Imported, ImportedThread, Importer, Kind, THREADS_MAX, command,
    draft::{draft, series},
    json::{self, Pairs, SysInfo},
    text::{Cells, decimal_ns, head, scaled, too_large},
};
use crate::error::Contradiction;

/// What all tools of rt-tests write round their results.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<T> {
    #[serde(rename = "cmdline:", alias = "cmdline", default)]
    pub(crate) cmdline: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version", default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) start_time: String,
    #[serde(default)]
    pub(crate) end_time: String,
    #[serde(default)]
    pub(crate) return_code: i64,
    #[serde(default)]
    pub(crate) sysinfo: SysInfo,
    pub(crate) num_threads: u64,
    #[serde(default)]
    pub(crate) resolution_in_ns: u64,
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    pub(crate) thread: Pairs<T>,
}

impl<T> Envelope<T> {
    /// Puts what the envelope says into an import. Returns its threads by number.
    pub(crate) fn open(
        self,
        imported: &mut Imported,
        repaired: bool,
    ) -> Result<Vec<(u64, T)>, Contradiction> {
        if imported.command.is_none() && !self.cmdline.is_empty() {
            imported.command = Some(self.cmdline);
        }
        imported.tool_version = (!self.version.is_empty()).then_some(self.version);
        imported.machine = self.sysinfo.text();
        imported.started_s = json::mail_time_s(&self.start_time);
        let ended_s = json::mail_time_s(&self.end_time);
        if let (Some(from), Some(to), Some(command)) =
            (imported.started_s, ended_s, imported.command.as_deref())
            && let Some(asked) = command::cyclictest(command).and_then(|asked| asked.duration_s)
        {
            let took = to.saturating_sub(from);
            let asked = i64::try_from(asked).unwrap_or(i64::MAX);
            if (took - asked).abs() > 2 + asked / 100 {
                let text = format!(
                    "the command line asks for {asked} s, but from start to end it took {took} s"
                );
                imported.doubt("command-duration", text);
            }
        }
        if repaired {
            imported.doubt(
                "repaired",
                "the command line in the file is not escaped, so that it is no JSON; it was \
                 repaired, the numbers are as they were",
            );
        }
        if self.return_code != 0 {
            imported.remarks.push(format!("the tool ended with code {}", self.return_code));
        }
        let threads = self.thread.by_number()?;
        if threads.is_empty() || threads.len() > THREADS_MAX {
            return Err(format!("{} threads, expected 1 to {THREADS_MAX}", threads.len()).into());
        }
        if threads.len() as u64 != self.num_threads {
            let text = format!(
                "the file says {} threads and has {}: some were left out",
                self.num_threads,
                threads.len()
            );
            imported.doubt("command-threads", text);
        }
        Ok(threads)
    }
}

#[derive(Debug, Deserialize)]
struct OfThread {
    #[serde(default)]
    histogram: Pairs<u64>,
    cycles: u64,
    min: u64,
    max: u64,
    avg: serde_json::Number,
    cpu: Option<u32>,
}

/// The program in a command line of an envelope.
pub(crate) fn program(bytes: &[u8]) -> Option<String> {
    let head = head(bytes);
    if !json::is_object(bytes) || !head.contains("\"rt_test_version") {
        return None;
    }
    // On a line of its own as the tools write it, or not, after a jq -c.
    let line = head[head.find("\"cmdline")?..].lines().next()?;
    let after = line.split_once(": \"").map_or(line, |(_, after)| after);
    let words = after.split(['"', ' ', ',']);
    let found = words
        .map(command::base)
        .find(|word| ["cyclictest", "cyclicdeadline", "signaltest", "oslat"].contains(word));
    found.map(str::to_owned)
}

pub(crate) const JSON: Importer = Importer {
    id: "cyclictest-json",
    title: "cyclictest --json; signaltest and cyclicdeadline alike.",
    detect: |bytes| program(bytes).is_some_and(|program| program != "oslat"),
    read,
};

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let (envelope, repaired): (Envelope<OfThread>, bool) = json::parse(bytes, hints)?;
    let unit_ns = if envelope.resolution_in_ns == 1 { 1 } else { 1000 };
    let tool = program(bytes).unwrap_or_else(|| "cyclictest".into());
    let mut imported = draft(&tool, unit_ns, hints);
    let wrong = |what: String| hints.at_byte(0, what);
    let threads = envelope.open(&mut imported, repaired).map_err(|what| hints.at_byte(0, what))?;
    let asked = imported.command.as_deref().and_then(command::cyclictest);
    let rows = asked.and_then(|asked| asked.histogram);
    for (number, thread) in threads {
        let read = one(number, thread, unit_ns, rows, &mut imported);
        let read = read.map_err(|what| wrong(format!("thread {number}: {what}")))?;
        imported.threads.push(read);
    }
    if imported.threads.iter().any(|thread| thread.overflow > 0) {
        imported.doubt(
            "overflow-inferred",
            "the JSON of this tool does not count what its histogram cannot hold: it was taken \
             from the cycles less the histogram",
        );
    }
    // With a histogram all threads have one period.
    let distance_ns = imported.threads.iter().any(|thread| !thread.bins.is_empty()).then_some(0);
    super::conclude(&mut imported, distance_ns);
    Ok(imported)
}

fn one(
    number: u64,
    of: OfThread,
    unit_ns: u64,
    rows: Option<u64>,
    imported: &mut Imported,
) -> Result<ImportedThread, Contradiction> {
    let ns = |value: u64| scaled(value, unit_ns).ok_or_else(|| too_large(value));
    let mut thread = series(
        of.cpu.map_or(format!("thread {number}"), |cpu| format!("CPU {cpu}")),
        Kind::Latency,
    );
    thread.cpu = of.cpu;
    thread.n = of.cycles;
    let histogram = of.histogram.by_number()?;
    if thread.n == 0 {
        return match histogram.is_empty() {
            true => Ok(thread),
            false => Err("no cycles, but a histogram".into()),
        };
    }
    (thread.min_ns, thread.max_ns) = (Some(ns(of.min)?), Some(ns(of.max)?));
    thread.mean_ns = decimal_ns(&of.avg.to_string(), unit_ns).map(|ns| ns as f64);
    if histogram.is_empty() && rows.is_none() {
        return Ok(thread);
    }
    let mut cells = Cells::default();
    for (value, n) in &histogram {
        cells.push(ns(*value)?, unit_ns, *n)?;
    }
    let over = thread
        .n
        .checked_sub(cells.total())
        .ok_or_else(|| format!("{} cycles, but its histogram holds {}", thread.n, cells.total()))?;
    let last = histogram.last().map_or(0, |(value, _)| value.saturating_add(1));
    let from_ns = ns(rows.filter(|&rows| rows >= last).unwrap_or(last))?;
    if let Some((low_ns, high_ns)) = cells.edges()
        && (thread.min_ns != Some(low_ns) || (over == 0 && thread.max_ns != Some(high_ns)))
    {
        return Err(format!(
            "from {} to {}, but its histogram goes from {} to {}",
            of.min,
            of.max,
            low_ns / unit_ns,
            high_ns / unit_ns
        )
        .into());
    }
    thread.bins = cells.finish(over, from_ns, thread.max_ns)?;
    thread.overflow = over;
    if over > 0 {
        imported.censor(from_ns);
    }
    Ok(thread)
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn a_file_on_one_line_is_recognised_too() {
        let after_jq =
            br#"{"file_version":1,"cmdline:":"cyclictest -l50","rt_test_version:":"2.40"}"#;
        assert_eq!(program(after_jq).as_deref(), Some("cyclictest"));
        let other = br#"{"cmdline":"sleep 1","rt_test_version:":"2.40"}"#;
        assert_eq!(program(other), None);
    }
}
