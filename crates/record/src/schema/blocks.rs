//! The tables that a long run is shown from: since version 5.

use super::table::{Table, c, int, keyed, of_seconds, opt_int, text};

/// Seconds, or readings, that make a block.
pub(crate) const BLOCK: u64 = 60;

pub(super) const BLOCK_STAT: Table = Table {
    name: "block",
    since: 5,
    about: "60 seconds of one thread as one: number / 60 of table stat; a minute that was not \
            completed has no row. What is shown of a long run is read from here.",
    columns: &of_seconds::<25>(
        [
            int("block", "Number of its seconds / 60: 0, 1, ..."),
            c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        ],
        &[
            c("wake_data", "BLOB NOT NULL", "Sampled wake-ups as data of hist_second."),
            c("missed_data", "BLOB NOT NULL", "Missed ones likewise."),
            int("interval_n", "Intervals, as in table interval."),
            opt_int("interval_min_ns", "Shortest. NULL: none."),
            opt_int("interval_max_ns", "Longest. NULL: none."),
            text("interval_sum_ns", "Their sum, decimal."),
            text("interval_sum2", "Sum of their squares, ns^2, decimal."),
        ],
    ),
    ..keyed(", PRIMARY KEY (block, thread)")
};

pub(super) const HOST_BLOCK: Table = Table {
    name: "host_block",
    since: 5,
    about: "One CPU over 60 readings of table host, as one.",
    columns: &[
        c("host", "INTEGER NOT NULL REFERENCES host (number)", "The last of the readings."),
        int("cpu", "CPU."),
        int("busy_ms", "Not idle, milliseconds."),
        int("steal_ms", "Stolen by the hypervisor, milliseconds."),
        opt_int("freq_hz", "Frequency as read last, Hz. NULL: unknown."),
    ],
    ..keyed(", PRIMARY KEY (host, cpu)")
};
