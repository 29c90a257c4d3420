//! The tables of spikes: since version 2. Names and remedies of causes belong to the judge. They
//! are a document here, because a record must outlive the lists of causes.

use super::table::{PLAIN, Table, c, int, keyed, opt_text, text};

pub(super) const RECORDER: Table = Table {
    name: "recorder",
    since: 2,
    about: "Spikes in numbers, and how kernel events were recorded: at most one row. No row: the \
            run ended in its first second.",
    columns: &[
        c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
        int("threshold_ns", "Wake-ups later than this are spikes; the last one."),
        c(
            "adaptive",
            "INTEGER NOT NULL CHECK (adaptive IN (0, 1))",
            "1: the threshold followed the machine, because none was given.",
        ),
        int("seen", "Spikes."),
        int("explained", "Of those explained."),
        int("incomplete", "Of the explained: events were lost or missing."),
        int("unexamined", "Not explained: seen minus explained."),
        int("dropped", "Of the unexamined: no room on their way out."),
        int("sum_ns", "Sum of the latencies of the explained ones."),
        int("certain_ns", "Of that with one possible cause."),
        text("document", "Recorder, JSON: why off, cost, missing events, losses."),
    ],
    ..PLAIN
};

pub(super) const SPIKE: Table = Table {
    name: "spike",
    since: 2,
    about: "Spikes, the first 100 000 of a run; table recorder counts all.",
    columns: &[
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        int("due_ns", "When the wake-up was due, after the origin."),
        int("latency_ns", "How late it was."),
        opt_text("cause", "Cause with the largest share. NULL: not explained."),
        opt_text("culprit", "Who: e.g. multipathd [RR 99]. NULL: not explained."),
        c(
            "complete",
            "INTEGER NOT NULL CHECK (complete IN (0, 1))",
            "1: explained, and no event was lost or missing.",
        ),
    ],
    ..keyed(", PRIMARY KEY (thread, due_ns)")
};

pub(super) const CAUSE: Table = Table {
    name: "cause",
    since: 2,
    about: "What the explained spikes were caused by, 256 rows at most; what found no row is in \
            those of the culprit \"others\".",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "Order of appearance: 0, 1, ..."),
        text("cause", "Cause, e.g. preempted."),
        text("culprit", "Who; empty where there is nobody to name."),
        int("top", "Spikes in which it has the largest share."),
        int("count", "Spikes in which it has a share."),
        int("worst_ns", "Its largest share."),
        int("sum_ns", "Sum of its shares."),
        int("ambiguous_ns", "Of that: may have been something else."),
        text("words", "Title, owner, checks and remedies, JSON."),
    ],
    constraints: ", UNIQUE (cause, culprit)",
    ..PLAIN
};

pub(super) const CAUSE_CPU: Table = Table {
    name: "cause_cpu",
    since: 2,
    about: "The same for each CPU.",
    columns: &[
        c("cause", "INTEGER NOT NULL REFERENCES cause (number)", "Cause."),
        int("cpu", "CPU."),
        int("count", "Spikes in which it has a share."),
        int("worst_ns", "Its largest share."),
        int("sum_ns", "Sum of its shares."),
    ],
    ..keyed(", PRIMARY KEY (cause, cpu)")
};

pub(super) const WINDOW: Table = Table {
    name: "window",
    since: 2,
    about: "Kernel events round the worst spikes: 8 for each cause and culprit, 128 at most. They \
            are explained anew whenever the record is shown.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "1, 2, ...; numbers of dropped ones are missing."),
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        int("due_ns", "When the wake-up was due, after the origin."),
        int("latency_ns", "How late it was."),
        text("document", "Events, tasks, losses, JSON; its times are CLOCK_MONOTONIC nanoseconds."),
    ],
    ..PLAIN
};
