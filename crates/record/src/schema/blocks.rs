//! The tables that a long run is shown from: since version 5.

use super::{Table, c};

/// Seconds, or readings, that make a block.
pub(crate) const BLOCK: u64 = 60;

pub(super) const BLOCK_STAT: Table = Table {
    name: "block",
    since: 5,
    about: "60 seconds of one thread as one: number / 60 of table stat; a minute that was not \
            completed has no row. What is shown of a long run is read from here.",
    columns: &[
        c("block", "INTEGER NOT NULL", "Number of its seconds / 60: 0, 1, ..."),
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        c("from_ns", "INTEGER NOT NULL", "As in stat, like the columns below."),
        c("to_ns", "INTEGER NOT NULL", "Due time of the first wake-up no longer covered."),
        c("n", "INTEGER NOT NULL", "Sampled wake-ups."),
        c("min_ns", "INTEGER", "Smallest latency. NULL: no sample."),
        c("max_ns", "INTEGER", "Largest latency. NULL: no sample."),
        c("max_at_ns", "INTEGER NOT NULL", "Due time of the largest latency."),
        c("sum_ns", "TEXT NOT NULL", "Sum of latencies, decimal; up to 128 bits."),
        c("sum2", "TEXT NOT NULL", "Sum of their squares, ns^2, decimal."),
        c("sum3", "TEXT", "Sum of their cubes, ns^3, decimal. NULL: did not fit."),
        c("sum4", "TEXT", "Sum of their fourth powers, ns^4, decimal. NULL: did not fit."),
        c("missed", "INTEGER NOT NULL", "Wake-ups due while the thread was still late."),
        c("missed_sum_ns", "TEXT NOT NULL", "Sum of their lateness, decimal."),
        c("late_sampled", "INTEGER NOT NULL", "Sampled wake-ups later than the budget."),
        c("late_missed", "INTEGER NOT NULL", "Missed wake-ups later than the budget."),
        c("late_clusters", "INTEGER NOT NULL", "Groups of late wake-ups."),
        c("early", "INTEGER NOT NULL", "Wake-ups before their time, counted as 0 ns."),
        c("wake_data", "BLOB NOT NULL", "Sampled wake-ups as data of hist_second."),
        c("missed_data", "BLOB NOT NULL", "Missed ones likewise."),
        c("interval_n", "INTEGER NOT NULL", "Intervals, as in table interval."),
        c("interval_min_ns", "INTEGER", "Shortest. NULL: none."),
        c("interval_max_ns", "INTEGER", "Longest. NULL: none."),
        c("interval_sum_ns", "TEXT NOT NULL", "Their sum, decimal."),
        c("interval_sum2", "TEXT NOT NULL", "Sum of their squares, ns^2, decimal."),
    ],
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
