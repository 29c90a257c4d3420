//! The wake-ups that cyclictest and timerlat skip, by the law that their data keep.
//!
//! A thread that wakes up `latency` late skips the `floor(latency / period)` wake-ups that were due
//! meanwhile. So a thread of a run of fixed duration has duration / period samples less the sum of
//! these, to the last sample: skipped wake-ups are counted without having been recorded, and a run
//! or a file that ended early is found out. Threads that start later lack a few more.

use rtproof_stats::{Bin, Bins};

use super::{Imported, ImportedThread, Kind, Omitted};

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
        if self.bins.is_empty() || !matches!(self.kind, Kind::Latency | Kind::UserLatency) {
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
        if self.say_surplus() {
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
        self.say_omitted(&omitted);
        self.omitted = Some(omitted);
        self.say_short(&short);
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

    fn say_omitted(&mut self, omitted: &Omitted) {
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

    fn say_short(&mut self, short: &[(String, u64)]) {
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

    fn say_surplus(&mut self) -> bool {
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
