//! Empty imports to fill in, the doubts that importers share, and command lines of tools.

use rtproof_stats::{Bin, Bins};

use super::{Doubt, Hints, Imported, ImportedThread, Omitted, SampleKind};

/// Identifiers of doubts and their meaning; `docs/import.md` lists them.
pub const DOUBTS: &[(&str, &str)] = &[
    ("command-threads", "the command line asks for another number of threads than there are"),
    ("command-duration", "the command line asks for another duration than was measured"),
    ("command-interval", "more samples than the interval of the command line allows"),
    ("command-unit", "the command line asks for another unit than the file has"),
    ("command-histogram", "the file has rows that the command line's histogram has not"),
    ("samples-missing", "fewer samples than the run must have: it ended early or the file was cut"),
    ("samples-lost", "samples that the tool took and did not write"),
    ("none-or-beyond", "no samples, or all beyond the last row: the file does not say which"),
    ("no-line-end", "the last line has no end; what the file counts is complete"),
    ("omission-uncounted", "the tool skips wake-ups while it is late; how many is unknown"),
    ("omission", "the tool skipped wake-ups while it was late; how many"),
    ("overflow", "samples without value, beyond the last row"),
    ("overflow-inferred", "the same, from count less rows: the file does not say so"),
    ("overflow-unknown", "what was beyond the rows is not in the file"),
    ("overflow-mixed", "the last row holds samples of its value and all larger ones"),
    ("no-distribution", "only extremes and mean: quantiles are not available"),
    ("not-ended", "a format without an end mark: a file cut off between two lines looks whole"),
    ("average-wrong", "the tool's own average is known to be wrong"),
    ("bucket-assumed", "the width of the rows is not in the file"),
    ("unit-assumed", "the unit of the values is not in the file"),
    ("cpu-unknown", "the file numbers threads, not CPUs"),
    ("threshold", "samples below the tool's threshold are not in the file"),
    ("one-sample", "only the sample that stopped the run is in the file"),
    ("repaired", "the file broke its own format and was repaired"),
    (
        "count-of-irq",
        "the count is that of the timer's interrupts, of others it is not in the file",
    ),
    ("reduced", "each value stands for the largest of several samples"),
    ("half-time", "the tool measured only a part of the time"),
];

/// An import with nothing known yet.
pub(super) fn blank(tool: &str, resolution_ns: u64, hints: &Hints) -> Imported {
    Imported {
        tool: tool.into(),
        tool_version: None,
        dialect: String::new(),
        source: String::new(),
        digest: String::new(),
        command: hints.command.clone(),
        machine: None,
        started_s: None,
        resolution_ns,
        censored_above_ns: None,
        period_ns: hints.period_ns,
        duration_ns: hints.duration_ns,
        doubts: Vec::new(),
        remarks: Vec::new(),
        omitted: None,
        threads: Vec::new(),
    }
}

/// A series with nothing known yet.
pub(super) fn series(label: impl Into<String>, kind: SampleKind) -> ImportedThread {
    ImportedThread {
        cpu: None,
        label: label.into(),
        kind,
        bins: Bins::default(),
        n: 0,
        min_ns: None,
        max_ns: None,
        max_is_at_least: false,
        mean_ns: None,
        overflow: 0,
        expected: None,
        period_ns: None,
        quantiles: Vec::new(),
    }
}

/// A series of a CPU with nothing known yet.
pub(super) fn of_cpu(cpu: u32, kind: SampleKind) -> ImportedThread {
    let suffix = match kind {
        SampleKind::IrqLatency => " IRQ",
        SampleKind::UserLatency => " user",
        _ => "",
    };
    ImportedThread { cpu: Some(cpu), ..series(format!("CPU {cpu}{suffix}"), kind) }
}

/// A line that a tool prints beside its result, for the remarks.
pub(super) fn remark(imported: &mut Imported, line: &str) {
    const REMARKS_MAX: usize = 100;
    if !line.is_empty() && imported.remarks.len() < REMARKS_MAX {
        imported.remarks.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}

impl Imported {
    /// Adds a doubt, once per kind.
    pub(super) fn doubt(&mut self, id: &str, text: impl Into<String>) {
        if self.doubts.iter().all(|doubt| doubt.id != id) {
            self.doubts.push(Doubt { id: id.into(), text: text.into() });
        }
    }

    /// Adds the doubts that follow from the series, for every tool.
    pub(super) fn conclude(&mut self) {
        let over =
            self.threads.iter().fold(0_u64, |sum, thread| sum.saturating_add(thread.overflow));
        if over > 0 {
            let from = self.censored_above_ns.unwrap_or(0);
            self.doubt(
                "overflow",
                format!(
                    "{over} samples lie beyond the last row and have no value: all that is said of \
                     them is that they are {} µs or more",
                    from.div_euclid(1000)
                ),
            );
        }
        let bare = self.threads.iter().filter(|thread| thread.n > 0 && thread.bins.is_empty());
        let bare = bare.count();
        if bare > 0 {
            self.doubt(
                "no-distribution",
                format!(
                    "{bare} series have a count and extremes only: quantiles are not available"
                ),
            );
        }
    }

    /// Adds the doubt that the format has no end mark.
    pub(super) fn not_ended(&mut self) {
        self.doubt(
            "not-ended",
            "this format has no end mark: a file that was cut off between two lines looks whole",
        );
    }

    /// Adds the doubt that threads are not CPUs.
    pub(super) fn no_cpus(&mut self) {
        self.doubt(
            "cpu-unknown",
            "the file numbers threads, not CPUs: which CPU a thread ran on is not known",
        );
    }

    /// Adds the doubt that the usual unit was assumed.
    pub(super) fn unit_assumed(&mut self, usual: &str) {
        self.doubt(
            "unit-assumed",
            format!(
                "the unit of the values is not in the file: taken for {usual}; if it is another, \
                 say so with --unit"
            ),
        );
    }

    /// Notes from where on a series has no values.
    pub(super) fn censor(&mut self, from_ns: u64) {
        let now = self.censored_above_ns.unwrap_or(u64::MAX);
        self.censored_above_ns = Some(now.min(from_ns));
    }
}

// What a command line of cyclictest requests, to compare it with the data.

/// What the options request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestedOptions {
    /// `-i`; cyclictest's default where it is not given.
    pub(super) interval_us: u64,
    /// `-d` or its default; 0 with a histogram, whatever `-d` says. `-S` does not change it.
    pub(super) distance_us: u64,
    /// `-D`.
    pub(super) duration_s: Option<u64>,
    /// `-l`.
    pub(super) loops: Option<u64>,
    /// `-t N`; `None`: as many as there are CPUs, or one.
    pub(super) threads: Option<u64>,
    /// `-h`, `-H`: rows of the histogram.
    pub(super) histogram: Option<u64>,
    /// `-N`.
    pub(super) nanoseconds: bool,
}

/// Single letters that take a value; those that may take one are in [`MAY`].
const TAKES: &str = "bcdDFhHilopT";

const MAY: &str = "aAt";

/// Reads a command line of cyclictest; `None` for another program.
pub(super) fn cyclictest(command: &str) -> Option<RequestedOptions> {
    let mut words = command.split_whitespace().skip_while(|word| base(word) != "cyclictest");
    words.next()?;
    let words: Vec<&str> = words
        .take_while(|word| !matches!(*word, "|" | "&&" | ";" | "&") && !word.contains('>'))
        .collect();
    // A version ("cyclictest V 2.40") or a sentence about it has no options.
    let is_option = |word: &&str| {
        word.strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-'))
    };
    if !words.is_empty() && !words.iter().any(is_option) {
        return None;
    }
    let mut requested =
        RequestedOptions { interval_us: 1000, distance_us: 500, ..RequestedOptions::default() };
    let (mut smp, mut distance) = (false, None);
    let mut one_thread = true;
    let mut take = |key: &str, value: Option<&str>| {
        let number = value.and_then(|value| value.parse::<u64>().ok());
        match key {
            "i" | "interval" => requested.interval_us = number.unwrap_or(requested.interval_us),
            "d" | "distance" => distance = number,
            "D" | "duration" => requested.duration_s = value.and_then(seconds),
            "l" | "loops" => requested.loops = number.filter(|&loops| loops > 0),
            "t" | "threads" => (requested.threads, one_thread) = (number, false),
            "h" | "H" | "histogram" | "histofall" => requested.histogram = number,
            "N" | "nsecs" => requested.nanoseconds = true,
            "S" | "smp" => smp = true,
            _ => {}
        }
    };
    let mut at = 0;
    while at < words.len() {
        let (word, next) = (words[at], words.get(at + 1).copied());
        at += 1;
        if let Some(long) = word.strip_prefix("--") {
            match long.split_once('=') {
                Some((key, value)) => take(key, Some(value)),
                None => take(long, next.filter(|next| !next.starts_with('-'))),
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            at += usize::from(short(letters, next, &mut take));
        }
    }
    if one_thread && !smp {
        requested.threads = Some(1);
    }
    let alike = requested.histogram.is_some_and(|rows| rows > 0);
    requested.distance_us = if alike { 0 } else { distance.unwrap_or(500) };
    Some(requested)
}

/// Letters behind one dash. Returns whether the next word was the value of the last of them.
fn short(letters: &str, next: Option<&str>, take: &mut impl FnMut(&str, Option<&str>)) -> bool {
    for (i, letter) in letters.char_indices() {
        let key = letter.to_string();
        let rest = &letters[i + letter.len_utf8()..];
        if TAKES.contains(letter) || MAY.contains(letter) {
            if !rest.is_empty() {
                take(&key, Some(rest));
                return false;
            }
            let must = TAKES.contains(letter);
            let value = next.filter(|next| must || next.starts_with(|c: char| c.is_ascii_digit()));
            take(&key, value);
            return value.is_some();
        }
        take(&key, None);
    }
    false
}

/// `90`, `15m`, `2h`, `1d` in seconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|&s| s > 0)
}

/// Name of a program without its folder.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

// The wake-ups that cyclictest and timerlat skip, by the law that their data keep.
//
// A thread that wakes up `latency` late skips the `floor(latency / period)` wake-ups that were due
// meanwhile. So a thread of a run of fixed duration has duration / period samples less the sum of
// these, to the last sample: skipped wake-ups are counted without having been recorded, and a run
// or a file that ended early is found out. Threads that start later lack a few more.

/// Most wake-ups that a late thread can lack for having started late: 50 for each thread before it
/// were seen; five times as many are allowed.
const STAGGER: u64 = 250;

/// Most cells that a corrected histogram is made of.
const CELLS_MAX: u64 = 1 << 20;

/// Most cells that lie on each other: those of equal width lie beside each other.
const LAYERS_MAX: usize = 64;

impl ImportedThread {
    /// Wake-ups skipped, at least and at most; they differ where samples have no value.
    fn skipped(&self, period_ns: u64) -> (u64, u64) {
        let each =
            |sum: u64, ns: u64, n: u64| sum.saturating_add((ns / period_ns).saturating_mul(n));
        let exact = |bin: &&Bin| bin.high_ns - bin.low_ns < period_ns;
        let sum =
            |of: fn(&Bin) -> u64| self.bins.iter().fold(0, |sum, bin| each(sum, of(bin), bin.n));
        let low = sum(|bin| bin.low_ns);
        if self.bins.iter().all(|bin| exact(&bin)) && self.overflow == 0 {
            // A value is cut to its unit, and the period is a whole number of units.
            return (low, low);
        }
        (low, sum(|bin| bin.high_ns))
    }

    /// The distribution with the skipped wake-ups in it, each with its own lateness: what a tool
    /// without omission would have measured. `None`: there is no distribution or period, or the
    /// lateness of so many cannot be held.
    pub fn deadline(&self) -> Option<Bins> {
        let period_ns = self.period_ns.filter(|&ns| ns > 0)?;
        if self.bins.is_empty()
            || !matches!(self.kind, SampleKind::Latency | SampleKind::UserLatency)
        {
            return None;
        }
        let cells = self.bins.iter().fold(0_u64, |sum, b| sum.saturating_add(b.low_ns / period_ns));
        if cells > CELLS_MAX {
            return None;
        }
        let mut late: Vec<Bin> = Vec::new();
        for bin in self.bins.iter() {
            late.extend((1..=bin.low_ns / period_ns).map(|k| Bin {
                low_ns: bin.low_ns - k * period_ns,
                high_ns: bin.high_ns - k * period_ns,
                n: bin.n,
            }));
        }
        late.sort_by_key(|bin| (bin.low_ns, bin.high_ns));
        let mut all = self.bins.clone();
        // Cells that lie on each other go in one after the other.
        for _ in 0..LAYERS_MAX {
            let mut layer: Vec<Bin> = Vec::new();
            late.retain(|bin| match layer.last_mut() {
                Some(last) if (last.low_ns, last.high_ns) == (bin.low_ns, bin.high_ns) => {
                    last.n = last.n.saturating_add(bin.n);
                    false
                }
                Some(last) if bin.low_ns <= last.high_ns => true,
                _ => {
                    layer.push(*bin);
                    false
                }
            });
            all.merge(&Bins::from_bins(layer).ok()?);
        }
        late.is_empty().then_some(all)
    }
}

impl Imported {
    /// Counts what was skipped, and holds samples against period and duration. Periods of the
    /// threads are set before; `n` threads that start one after the other.
    pub(super) fn count_omitted(&mut self) {
        let Some(first) = self.threads.first() else { return };
        if first.period_ns.is_none_or(|ns| ns == 0) {
            return self.doubt(
                "omission-uncounted",
                "the tool skips wake-ups that are due while it is late, and counts them nowhere; \
                 how many is not known without the period (--interval)",
            );
        }
        for thread in &mut self.threads {
            let period_ns = thread.period_ns.filter(|&ns| ns > 0);
            thread.expected = self.duration_ns.zip(period_ns).map(|(all, each)| all / each);
        }
        if self.note_surplus() {
            return self.forget_omitted();
        }
        let unknown = self.threads.iter().filter(|thread| thread.period_ns.is_none()).count();
        if unknown > 0 {
            let text = format!(
                "the tool skips wake-ups that are due while it is late; the period of \
                 {unknown} threads is unknown. By default each is 500 µs longer than the one before. Give the command \
                 line with --command"
            );
            self.doubt("omission-uncounted", text);
        }
        if self.threads.iter().any(|thread| thread.n > 0 && thread.bins.is_empty()) {
            return self.omitted_by_count();
        }
        let mut by_thread = Vec::with_capacity(self.threads.len());
        let (mut at_least, mut confirmed, mut short) = (false, None, Vec::new());
        for (i, thread) in self.threads.iter().enumerate() {
            let Some(period_ns) = thread.period_ns.filter(|&ns| ns > 0) else {
                at_least = true;
                by_thread.push(0);
                continue;
            };
            let (low, high) = thread.skipped(period_ns);
            let lacking = thread.expected.map(|expected| expected.saturating_sub(thread.n));
            let stagger = STAGGER.saturating_mul(i as u64);
            let count = match lacking {
                // Where samples have no value the law only bounds what was skipped.
                Some(lacking) if i == 0 && low == high && lacking == low => {
                    confirmed = Some(thread.expected >= Some(thread.n));
                    lacking
                }
                Some(lacking) if i == 0 && (low..=high).contains(&lacking) => {
                    at_least = true;
                    low
                }
                Some(lacking) => {
                    if i == 0 {
                        confirmed = Some(false);
                    }
                    // One wake-up at either end, and what rounding of the duration makes.
                    let slack = 2 + stagger + thread.expected.unwrap_or(0) / 10_000;
                    if lacking > high.saturating_add(slack) {
                        short.push((thread.label.clone(), lacking - high));
                    }
                    at_least |= low != high;
                    low
                }
                None => {
                    at_least |= low != high;
                    low
                }
            };
            by_thread.push(count);
        }
        let omitted = Omitted { by_thread, at_least, confirmed };
        self.note_omitted(&omitted);
        self.omitted = Some(omitted);
        self.note_short(&short);
    }

    /// Leaves open how many were skipped: the period is not that of the data.
    pub(super) fn forget_omitted(&mut self) {
        self.omitted = None;
        self.threads.iter_mut().for_each(|thread| thread.expected = None);
        self.doubts.retain(|doubt| !["omission", "samples-missing"].contains(&doubt.id.as_str()));
    }

    /// Without a distribution the law cannot be checked: what lacks is all that can be said.
    fn omitted_by_count(&mut self) {
        self.doubt(
            "omission-uncounted",
            "the tool skips wake-ups that are due while it is late; without a histogram \
             it is unknown which of the missing ones were skipped",
        );
    }

    fn note_omitted(&mut self, omitted: &Omitted) {
        let total = omitted.total();
        if total == 0 {
            return;
        }
        let least = if omitted.at_least { "at least " } else { "" };
        let proof = match omitted.confirmed {
            Some(true) => {
                "; the first thread lacks exactly as many samples as its own lateness says"
            }
            _ => "",
        };
        self.doubt(
            "omission",
            format!(
                "{least}{total} wake-ups were due while the tool was late, and it skipped them: \
                 its quantiles are too good by these{proof}"
            ),
        );
    }

    fn note_short(&mut self, short: &[(String, u64)]) {
        let Some((label, lacking)) = short.iter().max_by_key(|(_, lacking)| *lacking) else {
            return;
        };
        self.doubt(
            "samples-missing",
            format!(
                "{label} lacks {lacking} samples more than lateness explains: the run ended early, \
                 the file was cut, or duration and interval are not these"
            ),
        );
    }

    fn note_surplus(&mut self) -> bool {
        let more =
            |t: &&ImportedThread| t.expected.is_some_and(|e| t.n > e.saturating_add(2 + e / 1000));
        let Some(thread) = self.threads.iter().find(more) else { return false };
        let text = format!(
            "{} has {} samples, but {} at most fit into duration and interval: command line and \
             data are not of the same run",
            thread.label,
            thread.n,
            thread.expected.unwrap_or(0)
        );
        self.doubt("command-interval", text);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_all_their_forms() {
        let requested = |command| cyclictest(command).expect("cyclictest");
        let article = requested(
            "cyclictest --mlockall --smp --priority=80 --interval=200 --distance=0 -D 15m -H 400 >x",
        );
        assert_eq!((article.interval_us, article.distance_us), (200, 0));
        assert_eq!((article.duration_s, article.histogram), (Some(900), Some(400)));
        assert_eq!(article.threads, None);
        let osadl = requested("sudo /usr/bin/cyclictest -l100000000 -mSp99 -i200 -h400 -q");
        assert_eq!(
            (osadl.loops, osadl.interval_us, osadl.distance_us),
            (Some(100_000_000), 200, 0)
        );
        let plain = requested("cyclictest -t 4 -a 2-5 -p90 -N --duration 10");
        assert_eq!((plain.threads, plain.distance_us), (Some(4), 500));
        assert!(plain.nanoseconds && plain.duration_s == Some(10) && plain.interval_us == 1000);
        // As cyclictest 2.4 shows it in `I:`.
        assert_eq!(requested("cyclictest -S -q -i 1000").distance_us, 500);
        assert_eq!(requested("cyclictest -S -d 300").distance_us, 300);
        assert_eq!(requested("cyclictest -t2 -d 300 -h 50").distance_us, 0);
        assert_eq!(requested("cyclictest -t -m").threads, None);
        assert_eq!(requested("cyclictest -m").threads, Some(1));
        assert!(cyclictest("oslat -D 10").is_none() && cyclictest("").is_none());
        assert!(cyclictest("cyclictest V 2.40").is_none());
        assert!(cyclictest("# results of cyclictest on rig 3 - idle").is_none());
        assert_eq!(requested("cyclictest -i").interval_us, 1000);
        assert_eq!(
            (seconds("2H"), seconds("x"), seconds("5w"), seconds("0")),
            (Some(7200), None, None, None)
        );
    }
}
