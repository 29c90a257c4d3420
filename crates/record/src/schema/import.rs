//! The tables of what was imported from another tool: since version 4.

use super::table::{Table, c};

pub(super) const IMPORT: Table = Table {
    name: "import",
    since: 4,
    about: "The result file of another tool that this record was made from: at most one row. Then \
            the run has no threads, and options and facts say nothing.",
    columns: &[
        c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
        c("tool", "TEXT NOT NULL", "E.g. cyclictest."),
        c("tool_version", "TEXT", "Its version. NULL: the file does not say."),
        c("dialect", "TEXT NOT NULL", "Format of the file, e.g. cyclictest-histogram."),
        c("source", "TEXT NOT NULL", "Name of the file."),
        c("digest", "TEXT NOT NULL", "SHA-256 of the file, 64 hex digits."),
        c("command", "TEXT", "Command line that made it. NULL: unknown."),
        c("machine", "TEXT", "Host and kernel as the file says them. NULL: it does not."),
        c("started_s", "INTEGER", "Start, seconds since 1970. NULL: unknown."),
        c("resolution_ns", "INTEGER NOT NULL", "Step of the tool's values."),
        c(
            "censored_above_ns",
            "INTEGER",
            "Values from here on have no value of their own. NULL: all have.",
        ),
        c("period_ns", "INTEGER", "Period of the first thread. NULL: unknown."),
        c("duration_ns", "INTEGER", "How long it measured. NULL: unknown."),
        c("doubts", "TEXT NOT NULL", "What may mislead, JSON array of {id, text}."),
        c("remarks", "TEXT NOT NULL", "What else the tool said, JSON array of strings."),
        c("omitted", "TEXT", "Wake-ups that the tool skipped, JSON. NULL: none or unknown."),
    ],
    constraints: "",
    without_rowid: false,
};

pub(super) const IMPORT_THREAD: Table = Table {
    name: "import_thread",
    since: 4,
    about: "One series of samples of another tool.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ... in the order of the file."),
        c("cpu", "INTEGER", "CPU. NULL: the file does not say."),
        c("label", "TEXT NOT NULL", "Name to show, e.g. CPU 3 IRQ."),
        c(
            "kind",
            "TEXT NOT NULL CHECK (kind IN ('latency', 'irq_latency', 'user_latency', 'gap', \
             'hardware_gap', 'noise', 'unknown'))",
            "What a sample is.",
        ),
        c("n", "INTEGER NOT NULL", "Samples."),
        c("min_ns", "INTEGER", "Smallest, as the tool said it. NULL: it did not."),
        c("max_ns", "INTEGER", "Largest, as the tool said it. NULL: it did not."),
        c(
            "max_is_at_least",
            "INTEGER NOT NULL CHECK (max_is_at_least IN (0, 1))",
            "1: the largest had no value of its own and may be larger than max_ns.",
        ),
        c("mean_ns", "REAL", "Mean, as the tool said it. NULL: it did not."),
        c("overflow", "INTEGER NOT NULL", "Samples without value, at the far end."),
        c("expected", "INTEGER", "Samples that were due, from period and duration. NULL: unknown."),
        c("period_ns", "INTEGER", "Period of this thread. NULL: unknown."),
        c("told", "TEXT NOT NULL", "Quantiles as the tool said them, JSON: [[ppm, ns], ...]."),
    ],
    constraints: "",
    without_rowid: false,
};

pub(super) const BIN: Table = Table {
    name: "bin",
    since: 4,
    about: "Distribution of one series of another tool, in its own cells.",
    columns: &[
        c("thread", "INTEGER NOT NULL REFERENCES import_thread (number)", "Series."),
        c("low_ns", "INTEGER NOT NULL", "Smallest value of the cell."),
        c("high_ns", "INTEGER NOT NULL", "Largest value of the cell."),
        c("n", "INTEGER NOT NULL", "Samples in it."),
    ],
    constraints: ", PRIMARY KEY (thread, low_ns)",
    without_rowid: true,
};
