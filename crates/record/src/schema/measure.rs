//! The tables of what is watched beside a measurement: since version 4.

use super::table::{PLAIN, Table, c, int, keyed, opt_int, text};

pub(super) const INTERVAL: Table = Table {
    name: "interval",
    since: 4,
    about: "Intervals from one wake-up to the next, of workloads that keep them; by second, as in \
            table stat.",
    columns: &[
        int("second", "Number of the second within the thread."),
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        int("n", "Intervals."),
        int("min_ns", "Shortest."),
        int("max_ns", "Longest."),
        text("sum_ns", "Their sum, decimal."),
        text("sum2", "Sum of their squares, ns^2, decimal."),
    ],
    ..keyed(", PRIMARY KEY (second, thread)")
};

pub(super) const MARK: Table = Table {
    name: "mark",
    since: 4,
    about: "Changes of measured threads from outside (chrt, taskset), as they were noticed; the \
            first 1000.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "Order of appearance: 0, 1, ..."),
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        int("since_ns", "When it was last seen as before, after the origin."),
        int("at_ns", "When it was seen as it is now, after the origin."),
        c(
            "kind",
            "TEXT NOT NULL CHECK (kind IN ('policy', 'affinity'))",
            "policy: policy, priority, nice value or deadline; affinity: the CPUs it may run on.",
        ),
        text("before", "What it was, e.g. SCHED_OTHER."),
        text("after", "What it is, e.g. SCHED_FIFO 1."),
    ],
    ..PLAIN
};

pub(super) const IDLE_STATE: Table = Table {
    name: "idle_state",
    since: 4,
    about: "Idle states of the measured CPUs (cpuidle).",
    columns: &[
        int("cpu", "CPU."),
        int("state", "Number: 0 is the lightest."),
        text("name", "Name, e.g. C6."),
        opt_int("exit_us", "Time to leave it as the driver says, microseconds. NULL: unknown."),
    ],
    ..keyed(", PRIMARY KEY (cpu, state)")
};

pub(super) const HOST_IDLE: Table = Table {
    name: "host_idle",
    since: 4,
    about: "Time of measured CPUs in idle states since the reading before that has such rows, 600 \
            readings a run at most. States that were not entered have no row.",
    columns: &[
        c("host", "INTEGER NOT NULL REFERENCES host (number)", "Reading."),
        int("cpu", "CPU."),
        int("state", "Number of the state."),
        int("entered", "How often it was entered."),
        int("residency_us", "Time in it, microseconds."),
    ],
    ..keyed(", PRIMARY KEY (host, cpu, state)")
};
