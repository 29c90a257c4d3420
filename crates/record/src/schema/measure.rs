//! The tables of what is watched beside a measurement: since version 4.

use super::table::{Table, c};

pub(super) const INTERVAL: Table = Table {
    name: "interval",
    since: 4,
    about: "Intervals from one wake-up to the next, of workloads that keep them; by second, as in \
            table stat.",
    columns: &[
        c("second", "INTEGER NOT NULL", "Number of the second within the thread."),
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        c("n", "INTEGER NOT NULL", "Intervals."),
        c("min_ns", "INTEGER NOT NULL", "Shortest."),
        c("max_ns", "INTEGER NOT NULL", "Longest."),
        c("sum_ns", "TEXT NOT NULL", "Their sum, decimal."),
        c("sum2", "TEXT NOT NULL", "Sum of their squares, ns^2, decimal."),
    ],
    constraints: ", PRIMARY KEY (second, thread)",
    without_rowid: true,
};

pub(super) const MARK: Table = Table {
    name: "mark",
    since: 4,
    about: "Changes of measured threads from outside (chrt, taskset), as they were noticed; the \
            first 1000.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "Order of appearance: 0, 1, ..."),
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        c("since_ns", "INTEGER NOT NULL", "When it was last seen as before, after the origin."),
        c("at_ns", "INTEGER NOT NULL", "When it was seen as it is now, after the origin."),
        c(
            "kind",
            "TEXT NOT NULL CHECK (kind IN ('policy', 'affinity'))",
            "policy: policy, priority, nice value or deadline; affinity: the CPUs it may run on.",
        ),
        c("before", "TEXT NOT NULL", "What it was, e.g. SCHED_OTHER."),
        c("after", "TEXT NOT NULL", "What it is, e.g. SCHED_FIFO 1."),
    ],
    constraints: "",
    without_rowid: false,
};

pub(super) const IDLE_STATE: Table = Table {
    name: "idle_state",
    since: 4,
    about: "Idle states of the measured CPUs (cpuidle).",
    columns: &[
        c("cpu", "INTEGER NOT NULL", "CPU."),
        c("state", "INTEGER NOT NULL", "Number: 0 is the lightest."),
        c("name", "TEXT NOT NULL", "Name, e.g. C6."),
        c(
            "exit_us",
            "INTEGER",
            "Time to leave it as the driver says, microseconds. NULL: unknown.",
        ),
    ],
    constraints: ", PRIMARY KEY (cpu, state)",
    without_rowid: true,
};

pub(super) const HOST_IDLE: Table = Table {
    name: "host_idle",
    since: 4,
    about: "Time of measured CPUs in idle states since the reading before that has such rows, 600 \
            readings a run at most. States that were not entered have no row.",
    columns: &[
        c("host", "INTEGER NOT NULL REFERENCES host (number)", "Reading."),
        c("cpu", "INTEGER NOT NULL", "CPU."),
        c("state", "INTEGER NOT NULL", "Number of the state."),
        c("entered", "INTEGER NOT NULL", "How often it was entered."),
        c("residency_us", "INTEGER NOT NULL", "Time in it, microseconds."),
    ],
    constraints: ", PRIMARY KEY (host, cpu, state)",
    without_rowid: true,
};
