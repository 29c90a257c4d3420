//! The tables of spikes: since version 2. What judging owns (how a cause is called, what removes
//! it) is a document here, because a record is below the judge and must outlive its lists.

use super::table::{Table, c};

pub(super) const RECORDER: Table = Table {
    name: "recorder",
    since: 2,
    about: "Spikes in numbers, and how kernel events were had: at most one row. No row: the run \
            ended in its first second.",
    columns: &[
        c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
        c("threshold_ns", "INTEGER NOT NULL", "Wake-ups later than this are spikes; the last one."),
        c(
            "adaptive",
            "INTEGER NOT NULL CHECK (adaptive IN (0, 1))",
            "1: the threshold followed the machine, because nobody gave one.",
        ),
        c("seen", "INTEGER NOT NULL", "Spikes."),
        c("explained", "INTEGER NOT NULL", "Of those explained."),
        c("incomplete", "INTEGER NOT NULL", "Of the explained: events were lost or missing."),
        c("unexamined", "INTEGER NOT NULL", "Not explained: seen minus explained."),
        c("dropped", "INTEGER NOT NULL", "Of the unexamined: no room on their way out."),
        c("sum_ns", "INTEGER NOT NULL", "Sum of the latencies of the explained ones."),
        c("certain_ns", "INTEGER NOT NULL", "Of that with one possible cause."),
        c("document", "TEXT NOT NULL", "Recorder, JSON: why off, cost, missing events, losses."),
    ],
    constraints: "",
    without_rowid: false,
};

pub(super) const SPIKE: Table = Table {
    name: "spike",
    since: 2,
    about: "Spikes, the first 100 000 of a run; table recorder counts all.",
    columns: &[
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        c("due_ns", "INTEGER NOT NULL", "When the wake-up was due, after the origin."),
        c("latency_ns", "INTEGER NOT NULL", "How late it was."),
        c("cause", "TEXT", "Cause with the largest share. NULL: not explained."),
        c("culprit", "TEXT", "Who: e.g. multipathd [RR 99]. NULL: not explained."),
        c(
            "complete",
            "INTEGER NOT NULL CHECK (complete IN (0, 1))",
            "1: explained, and no event was lost or missing.",
        ),
    ],
    constraints: ", PRIMARY KEY (thread, due_ns)",
    without_rowid: true,
};

pub(super) const CAUSE: Table = Table {
    name: "cause",
    since: 2,
    about: "What the explained spikes were caused by, 256 rows at most; what found no row is in \
            those of the culprit \"others\".",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "Order of appearance: 0, 1, ..."),
        c("cause", "TEXT NOT NULL", "Cause, e.g. preempted."),
        c("culprit", "TEXT NOT NULL", "Who; empty where there is nobody to name."),
        c("top", "INTEGER NOT NULL", "Spikes in which it has the largest share."),
        c("count", "INTEGER NOT NULL", "Spikes in which it has a share."),
        c("worst_ns", "INTEGER NOT NULL", "Its largest share."),
        c("sum_ns", "INTEGER NOT NULL", "Sum of its shares."),
        c("ambiguous_ns", "INTEGER NOT NULL", "Of that: may have been something else."),
        c("words", "TEXT NOT NULL", "Title, owner, checks and remedies, JSON."),
    ],
    constraints: ", UNIQUE (cause, culprit)",
    without_rowid: false,
};

pub(super) const CAUSE_CPU: Table = Table {
    name: "cause_cpu",
    since: 2,
    about: "The same for each CPU.",
    columns: &[
        c("cause", "INTEGER NOT NULL REFERENCES cause (number)", "Cause."),
        c("cpu", "INTEGER NOT NULL", "CPU."),
        c("count", "INTEGER NOT NULL", "Spikes in which it has a share."),
        c("worst_ns", "INTEGER NOT NULL", "Its largest share."),
        c("sum_ns", "INTEGER NOT NULL", "Sum of its shares."),
    ],
    constraints: ", PRIMARY KEY (cause, cpu)",
    without_rowid: true,
};

pub(super) const WINDOW: Table = Table {
    name: "window",
    since: 2,
    about: "Kernel events round the worst spikes: 8 for each cause and culprit, 128 at most. They \
            are explained anew whenever the record is shown.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "1, 2, ...; numbers of dropped ones are missing."),
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        c("due_ns", "INTEGER NOT NULL", "When the wake-up was due, after the origin."),
        c("latency_ns", "INTEGER NOT NULL", "How late it was."),
        c(
            "document",
            "TEXT NOT NULL",
            "Events, tasks, losses, JSON; its times are CLOCK_MONOTONIC nanoseconds.",
        ),
    ],
    constraints: "",
    without_rowid: false,
};
