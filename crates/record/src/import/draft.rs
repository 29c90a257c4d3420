//! Empty imports to fill in, and the doubts that importers share.

use super::{Doubt, Hints, Imported, ImportedThread, Kind};

/// Identifiers of doubts and what they stand for; `docs/import.md` lists them.
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
pub(super) fn draft(tool: &str, resolution_ns: u64, hints: &Hints) -> Imported {
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
pub(super) fn series(label: impl Into<String>, kind: Kind) -> ImportedThread {
    ImportedThread {
        cpu: None,
        label: label.into(),
        kind,
        bins: rtproof_stats::Bins::default(),
        n: 0,
        min_ns: None,
        max_ns: None,
        max_is_at_least: false,
        mean_ns: None,
        overflow: 0,
        expected: None,
        period_ns: None,
        told: Vec::new(),
    }
}

/// A series of a CPU with nothing known yet.
pub(super) fn of_cpu(cpu: u32, kind: Kind) -> ImportedThread {
    let suffix = match kind {
        Kind::IrqLatency => " IRQ",
        Kind::UserLatency => " user",
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
