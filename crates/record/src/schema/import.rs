//! The tables of what was imported from another tool: since version 4.

use super::table::{PLAIN, Table, c, int, keyed, opt_int, opt_text, text};

pub(super) const IMPORT: Table = Table {
    name: "import",
    since: 4,
    about: "The result file of another tool that this record was made from: at most one row. Then \
            the run has no threads, and options and facts say nothing.",
    columns: &[
        c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
        text("tool", "E.g. cyclictest."),
        opt_text("tool_version", "Its version. NULL: the file does not say."),
        text("dialect", "Format of the file, e.g. cyclictest-histogram."),
        text("source", "Name of the file."),
        text("digest", "SHA-256 of the file, 64 hex digits."),
        opt_text("command", "Command line that made it. NULL: unknown."),
        opt_text("machine", "Host and kernel as the file says them. NULL: it does not."),
        opt_int("started_s", "Start, seconds since 1970. NULL: unknown."),
        int("resolution_ns", "Step of the tool's values."),
        opt_int(
            "censored_above_ns",
            "Values from here on have no value of their own. NULL: all have.",
        ),
        opt_int("period_ns", "Period of the first thread. NULL: unknown."),
        opt_int("duration_ns", "How long it measured. NULL: unknown."),
        text("doubts", "What may mislead, JSON array of {id, text}."),
        text("remarks", "What else the tool said, JSON array of strings."),
        opt_text("omitted", "Wake-ups that the tool skipped, JSON. NULL: none or unknown."),
    ],
    ..PLAIN
};

pub(super) const IMPORT_THREAD: Table = Table {
    name: "import_thread",
    since: 4,
    about: "One series of samples of another tool.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ... in the order of the file."),
        opt_int("cpu", "CPU. NULL: the file does not say."),
        text("label", "Name to show, e.g. CPU 3 IRQ."),
        c(
            "kind",
            "TEXT NOT NULL CHECK (kind IN ('latency', 'irq_latency', 'user_latency', 'gap', \
             'hardware_gap', 'noise', 'unknown'))",
            "What a sample is.",
        ),
        int("n", "Samples."),
        opt_int("min_ns", "Smallest, as the tool said it. NULL: it did not."),
        opt_int("max_ns", "Largest, as the tool said it. NULL: it did not."),
        c(
            "max_is_at_least",
            "INTEGER NOT NULL CHECK (max_is_at_least IN (0, 1))",
            "1: the largest had no value of its own and may be larger than max_ns.",
        ),
        c("mean_ns", "REAL", "Mean, as the tool said it. NULL: it did not."),
        int("overflow", "Samples without value, at the far end."),
        opt_int("expected", "Samples that were due, from period and duration. NULL: unknown."),
        opt_int("period_ns", "Period of this thread. NULL: unknown."),
        text("told", "Quantiles as the tool said them, JSON: [[ppm, ns], ...]."),
    ],
    ..PLAIN
};

pub(super) const BIN: Table = Table {
    name: "bin",
    since: 4,
    about: "Distribution of one series of another tool, in its own cells.",
    columns: &[
        c("thread", "INTEGER NOT NULL REFERENCES import_thread (number)", "Series."),
        int("low_ns", "Smallest value of the cell."),
        int("high_ns", "Largest value of the cell."),
        int("n", "Samples in it."),
    ],
    ..keyed(", PRIMARY KEY (thread, low_ns)")
};
