//! The tables that a long run is shown from: since version 5.

use super::table::{Table, c, of_seconds};

/// Seconds, or readings, that make a block.
pub(crate) const BLOCK: u64 = 60;

pub(super) const BLOCK_STAT: Table = Table {
    name: "block",
    since: 5,
    about: "60 seconds of one thread as one: number / 60 of table stat; a minute that was not \
            completed has no row. What is shown of a long run is read from here.",
    columns: &of_seconds::<25>(
        [
            c("block", "INTEGER NOT NULL", "Number of its seconds / 60: 0, 1, ..."),
            c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        ],
        &[
            c("wake_data", "BLOB NOT NULL", "Sampled wake-ups as data of hist_second."),
            c("missed_data", "BLOB NOT NULL", "Missed ones likewise."),
            c("interval_n", "INTEGER NOT NULL", "Intervals, as in table interval."),
            c("interval_min_ns", "INTEGER", "Shortest. NULL: none."),
            c("interval_max_ns", "INTEGER", "Longest. NULL: none."),
            c("interval_sum_ns", "TEXT NOT NULL", "Their sum, decimal."),
            c("interval_sum2", "TEXT NOT NULL", "Sum of their squares, ns^2, decimal."),
        ],
    ),
    constraints: ", PRIMARY KEY (block, thread)",
    without_rowid: true,
};

pub(super) const HOST_BLOCK: Table = Table {
    name: "host_block",
    since: 5,
    about: "One CPU over 60 readings of table host, as one.",
    columns: &[
        c("host", "INTEGER NOT NULL REFERENCES host (number)", "The last of the readings."),
        c("cpu", "INTEGER NOT NULL", "CPU."),
        c("busy_ms", "INTEGER NOT NULL", "Not idle, milliseconds."),
        c("steal_ms", "INTEGER NOT NULL", "Stolen by the hypervisor, milliseconds."),
        c("freq_hz", "INTEGER", "Frequency as read last, Hz. NULL: unknown."),
    ],
    constraints: ", PRIMARY KEY (host, cpu)",
    without_rowid: true,
};
