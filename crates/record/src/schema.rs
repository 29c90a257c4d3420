//! The tables of a record: one list from which the SQL, the reader's check and the docs are made.
//!
//! A record must be legible in ten years with nothing but `sqlite3`, so every column says its unit
//! here, and the same text is stored in the file as SQL. A reader accepts exactly this SQL: a file
//! whose tables were swapped for views or other shapes is refused before anything is read from it.

use rtproof_host::sample::HOST_COUNTERS;

/// SQLite application id of a record: `RTPF`.
pub const APPLICATION_ID: i32 = 0x5254_5046;

/// Version of the tables below, in `PRAGMA user_version`. Raised by every change of [`TABLES`].
/// Versions only add tables, and counters of the host: a record of an older one is read as far as
/// it goes.
pub const VERSION: i32 = {
    let (mut version, mut at) = (5, 0);
    while at < HOST_COUNTERS.len() {
        if HOST_COUNTERS[at].1 > version {
            version = HOST_COUNTERS[at].1;
        }
        at += 1;
    }
    version
};

/// Columns of table `host`.
const HOST: [Column; 2 + HOST_COUNTERS.len()] = {
    let number = c("number", "INTEGER PRIMARY KEY", "Number of the reading: 1, 2, ...");
    let at_ns = int("at_ns", "Time of the reading, after the origin.");
    let mut all = [at_ns; 2 + HOST_COUNTERS.len()];
    all[0] = number;
    let mut at = 0;
    while at < HOST_COUNTERS.len() {
        let (name, since, about) = HOST_COUNTERS[at];
        all[2 + at] = Column { since, ..opt_int(name, about) };
        at += 1;
    }
    all
};

/// All tables, in the order in which they are made.
pub const TABLES: &[Table] = &[
    Table {
        name: "run",
        about: "The run: one row. Times are nanoseconds; the origin of all other times is the \
                first wake-up.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            text_column("run_id", "Random identity, 32 hex digits."),
            text_column("tool_version", "Version of rtproof that measured."),
            text_column("command", "Command line, JSON array of strings."),
            int("started_realtime_ns", "First wake-up, since 1970-01-01 UTC."),
            int("started_monotonic_ns", "First wake-up, CLOCK_MONOTONIC."),
            opt_text(
                "ended",
                "How it ended, JSON: {\"how\": \"complete\"}, {\"how\": \"interrupted\", \
                 \"signal\": ...} or {\"how\": \"aborted\", \"why\": ...}. NULL: torn.",
            ),
            text_column("options", "What was requested, JSON: CPUs, period, duration, budget."),
            text_column("cost", "What measuring costs here, JSON: clock read and step."),
            opt_text("boot_id", "Boot of the kernel. NULL: unknown."),
            opt_text(
                "condition_start",
                "Hash of the facts before the run that may change latency.",
            ),
            opt_text("condition_end", "The same after the run; differs if the machine moved."),
        ],
        ..PLAIN
    },
    Table {
        name: "machine",
        about: "Who the machine is: one row. NULL where unknown; table fact says why.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            opt_text("machine_id", "Salted hash of the machine's serial, 16 hex digits."),
            opt_text("hostname", "Host name."),
            opt_text("model", "Board or product."),
            opt_text("cpu_model", "CPU."),
            opt_int("memory_bytes", "Memory in bytes."),
        ],
        ..PLAIN
    },
    Table {
        name: "facts",
        about: "All that was known of the machine, as one document, before and after the run.",
        columns: &[
            c("taken", "TEXT PRIMARY KEY CHECK (taken IN ('start', 'end'))", "start or end."),
            text_column("document", "Facts, JSON."),
        ],
        ..PLAIN
    },
    Table {
        name: "fact",
        about: "The same facts, one a row, for searching and comparing.",
        columns: &[
            c("taken", "TEXT NOT NULL REFERENCES facts (taken)", "start or end."),
            text_column("key", "E.g. cpus.3.freq.governor."),
            c(
                "state",
                "TEXT NOT NULL CHECK (state IN ('known', 'absent', 'denied', 'malformed'))",
                "known, absent, denied or malformed. Only a known fact has a value.",
            ),
            opt_text("value", "Value, or why it is unknown. NULL when absent."),
            text_column("path", "Path or call that was read."),
            text_column(
                "class",
                "Who sets it: identity, hardware, firmware, kernel, boot, runtime, load, \
                 process, volatile.",
            ),
        ],
        ..PLAIN
    },
    Table {
        name: "thread",
        about: "One measured thread. The columns from end_reason on are NULL until it ended.",
        columns: &[
            c("number", "INTEGER PRIMARY KEY", "0, 1, ..."),
            int("cpu", "CPU it was pinned to."),
            int("tid", "Thread id."),
            text_column("workload", "What it measured, e.g. timer-wakeup."),
            text_column("policy", "Scheduling policy in force, e.g. fifo."),
            int("priority", "Real-time priority, 1 to 99; 0 without."),
            c("locked", "INTEGER NOT NULL CHECK (locked IN (0, 1))", "1: its memory was locked."),
            int("period_ns", "Period."),
            int("first_due_ns", "First wake-up, after the origin."),
            opt_text("end_reason", "complete, stopped, starved, cpu_lost, panicked or failed."),
            opt_int("scheduled", "Wake-ups that were due: sampled + missed."),
            opt_int("faults_minor", "Minor page faults while armed."),
            opt_int("faults_major", "Major page faults while armed."),
            opt_int("cpu_time_ns", "CPU time used while armed."),
            opt_int("preemptions", "Involuntary context switches while armed."),
        ],
        ..PLAIN
    },
    Table {
        name: "stat",
        about: "Exact numbers of one thread in one second; sums over rows are exact for the run.",
        columns: &of_seconds::<18>(
            [
                int("second", "Number of the second within the thread: 0, 1, ..."),
                c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
            ],
            &[],
        ),
        ..keyed(", PRIMARY KEY (second, thread)")
    },
    Table {
        name: "hist",
        about: "Whole-run histogram, 7 sub-bucket bits. Bucket b: e = max(b / 128 - 1, 0), \
                m = b - 128 e, holds m 2^e to (m + 1) 2^e - 1 ns. Deadline view = wake + missed.",
        columns: &[
            c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
            c(
                "view",
                "TEXT NOT NULL CHECK (view IN ('wake', 'missed'))",
                "wake: latency of sampled wake-ups; missed: lateness of missed ones.",
            ),
            int("bucket", "Bucket."),
            int("n", "Count."),
        ],
        ..keyed(", PRIMARY KEY (thread, view, bucket)")
    },
    Table {
        name: "hist_second",
        about: "Histogram of one second, 5 sub-bucket bits (as hist, with 32 for 128). No row: \
                empty. See docs/adr/0003-per-second-histograms-as-blobs.md.",
        columns: &[
            int("second", "As in stat."),
            int("thread", "Thread."),
            c("view", "TEXT NOT NULL CHECK (view IN ('wake', 'missed'))", "As in hist."),
            c(
                "data",
                "BLOB NOT NULL",
                "Pairs (bucket minus previous bucket, count), each number LEB128; first bucket \
                 from 0.",
            ),
        ],
        ..keyed(
            ", PRIMARY KEY (second, thread, view), \
                      FOREIGN KEY (second, thread) REFERENCES stat (second, thread)",
        )
    },
    Table {
        name: "top",
        about: "The largest samples of each thread, 64 at most; none larger is left out.",
        columns: &[
            c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
            int("due_ns", "When the wake-up was due, after the origin."),
            int("latency_ns", "How late it was."),
        ],
        ..keyed(", PRIMARY KEY (thread, due_ns)")
    },
    Table { name: "host", about: "The whole machine over one second.", columns: &HOST, ..PLAIN },
    Table {
        name: "host_cpu",
        about: "One CPU over one second.",
        columns: &[
            c("host", "INTEGER NOT NULL REFERENCES host (number)", "Reading."),
            int("cpu", "CPU."),
            int("busy_ms", "Not idle, milliseconds."),
            int("steal_ms", "Stolen by the hypervisor, milliseconds."),
            opt_int("freq_hz", "Frequency, Hz. NULL: unknown."),
        ],
        ..keyed(", PRIMARY KEY (host, cpu)")
    },
    Table {
        name: "load",
        about: "A load that ran beside the measurement.",
        columns: &[
            c("number", "INTEGER PRIMARY KEY", "Order of appearance: 1, 2, ..."),
            text_column("name", "E.g. memory."),
            int("from_ns", "Start, after the origin."),
            int("to_ns", "End, after the origin."),
            text_column("detail", "What it did."),
            text_column("unit", "Unit of its work."),
            int("work", "Work done, in that unit."),
            opt_text("error", "What went wrong. NULL: nothing."),
        ],
        constraints: ", UNIQUE (name, from_ns)",
        ..PLAIN
    },
    Table {
        name: "note",
        about: "What the user must know of the run.",
        columns: &[
            c("number", "INTEGER PRIMARY KEY", "Order of appearance: 1, 2, ..."),
            int("at_ns", "When, after the origin; 0 before the start."),
            text_column("id", "Stable identifier, e.g. no-rt-right."),
            text_column("text", "What is so and the next step."),
            c(
                "weakens",
                "INTEGER NOT NULL CHECK (weakens IN (0, 1))",
                "1: takes force from the verdict.",
            ),
        ],
        ..PLAIN
    },
    Table {
        name: "finding",
        about: "Findings as judged when the run ended: at most one row.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            text_column("document", "Findings, JSON; rows by json_each(document)."),
        ],
        ..PLAIN
    },
    Table {
        name: "verdict",
        about: "Verdict as judged when the run ended: at most one row.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            text_column("document", "Verdict, JSON."),
            text_column("summary", "The verdict in one line."),
        ],
        ..PLAIN
    },
    Table {
        name: "seal",
        about: "Digest over all bytes of the file: at most one row. No row, or digits all zero: \
                the run is torn.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            text_column(
                "mark",
                "rtproof-seal-1:RUN_ID: and 64 hex digits: SHA-256 of the file with these digits \
                 as zeros.",
            ),
        ],
        ..PLAIN
    },
    RECORDER,
    SPIKE,
    CAUSE,
    CAUSE_CPU,
    WINDOW,
    TRIAL,
    KNOB,
    EFFECT,
    SLICE,
    INTERVAL,
    MARK,
    IDLE_STATE,
    HOST_IDLE,
    IMPORT,
    IMPORT_THREAD,
    BIN,
    BLOCK_STAT,
    HOST_BLOCK,
];

/// The table of a name.
pub(crate) fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

// The tables that a long run is shown from: since version 5.

/// Seconds, or readings, that make a block.
pub(crate) const BLOCK: u64 = 60;

const BLOCK_STAT: Table = Table {
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
            text_column("interval_sum_ns", "Their sum, decimal."),
            text_column("interval_sum2", "Sum of their squares, ns^2, decimal."),
        ],
    ),
    ..keyed(", PRIMARY KEY (block, thread)")
};

const HOST_BLOCK: Table = Table {
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

// The tables of what changes did to latency: since version 3.

const TRIAL: Table = Table {
    name: "trial",
    since: 3,
    about: "How changes of the machine were tried (tune apply --prove, experiment): at most one \
            row.",
    columns: &[
        c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
        int("seed", "Seed of the order of slices."),
        c(
            "design",
            "TEXT NOT NULL CHECK (design IN ('single', 'mirrored', 'screened', 'boots'))",
            "single: one knob after the other. mirrored: all at once, in each pair some on in one \
             slice and the others in the other. screened: all at once first, then pairs of what \
             stood out. boots: pairs of boots.",
        ),
        int("pairs", "Pairs of slices planned for each knob."),
        int("slice_ns", "Length of a slice."),
        int("margin_ppm", "Differences up to this do not matter, 1/1000000."),
        int("level_ppb", "P values below this count, 1/1000000000."),
        opt_int(
            "detectable_ppm",
            "Smallest change of p99.9 that was to be seen, 1/1000000. NULL: none.",
        ),
    ],
    ..PLAIN
};

const KNOB: Table = Table {
    name: "knob",
    since: 3,
    about: "Changes that belong together, and what was found.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ..."),
        text_column("name", "Its checks."),
        text_column("changes", "What it changes, JSON array of strings."),
        c(
            "how",
            "TEXT NOT NULL CHECK (how IN ('toggled', 'once', 'not_tried'))",
            "toggled: on and off in pairs; once: before and after, drift is not excluded.",
        ),
        c(
            "decision",
            "TEXT NOT NULL CHECK (decision IN ('helps', 'hurts', 'no_difference', \
             'cannot_decide', 'not_tried'))",
            "What was found.",
        ),
        c("kept", "INTEGER NOT NULL CHECK (kept IN (0, 1))", "1: left in force."),
        text_column("why", "Why, and the next step."),
    ],
    ..PLAIN
};

const EFFECT: Table = Table {
    name: "effect",
    since: 3,
    about: "What a knob does to a statistic of a slice. Ratios: with the knob to without it.",
    columns: &[
        c("knob", "INTEGER NOT NULL REFERENCES knob (number)", "Knob."),
        c(
            "statistic",
            "TEXT NOT NULL CHECK (statistic IN ('p999', 'max'))",
            "p999: p99.9 of all wake-ups due, missed ones among them; max: the latest.",
        ),
        int("pairs", "Pairs compared; 0 of before and after."),
        int("off_ns", "Median of the slices without it."),
        int("on_ns", "Median of the slices with it."),
        int("ratio_ppm", "Hodges-Lehmann estimate of the ratio, 1/1000000."),
        opt_int("low_ppm", "Lower end of its 95 % interval, 1/1000000. NULL: none."),
        opt_int("high_ppm", "Upper end, 1/1000000. NULL: none."),
        opt_int("p_ppb", "P value, exact sign-flip test, 1/1000000000. NULL: not tested."),
        opt_int("adjusted_ppb", "The same after Holm. NULL: not tested."),
    ],
    ..keyed(", PRIMARY KEY (knob, statistic)")
};

const SLICE: Table = Table {
    name: "slice",
    since: 3,
    about: "Slices of time with and without knobs, all measured CPUs together.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ..."),
        c(
            "part",
            "TEXT NOT NULL CHECK (part IN ('before', 'pair', 'screen', 'together', 'once', \
             'after'))",
            "before: nothing changed. pair: one of a pair with and without a knob. screen: one of \
             a pair with all knobs, each on in one of them. together: one of a pair with all that \
             seems to help, and nothing. once: with a change that is made once. after: with what \
             was kept.",
        ),
        int("pair", "Pair: 0, 1, ..."),
        text_column("knobs_on", "Numbers of the knobs that were on, JSON array."),
        int("from_ns", "Start, after the origin."),
        int("to_ns", "End, after the origin."),
        int("n", "Wake-ups that were due."),
        opt_int("p999_ns", "p99.9 of those. NULL: too few."),
        opt_int("max_ns", "Latest wake-up. NULL: there was none."),
        int("missed", "Wake-ups due while the thread was still late."),
    ],
    ..PLAIN
};

// The tables of what was imported from another tool: since version 4.

const IMPORT: Table = Table {
    name: "import",
    since: 4,
    about: "The result file of another tool that this record was made from: at most one row. Then \
            the run has no threads, and options and facts say nothing.",
    columns: &[
        c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
        text_column("tool", "E.g. cyclictest."),
        opt_text("tool_version", "Its version. NULL: the file does not say."),
        text_column("dialect", "Format of the file, e.g. cyclictest-histogram."),
        text_column("source", "Name of the file."),
        text_column("digest", "SHA-256 of the file, 64 hex digits."),
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
        text_column("doubts", "What may mislead, JSON array of {id, text}."),
        text_column("remarks", "What else the tool said, JSON array of strings."),
        opt_text("omitted", "Wake-ups that the tool skipped, JSON. NULL: none or unknown."),
    ],
    ..PLAIN
};

const IMPORT_THREAD: Table = Table {
    name: "import_thread",
    since: 4,
    about: "One series of samples of another tool.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ... in the order of the file."),
        opt_int("cpu", "CPU. NULL: the file does not say."),
        text_column("label", "Name to show, e.g. CPU 3 IRQ."),
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
        text_column("told", "Quantiles as the tool said them, JSON: [[ppm, ns], ...]."),
    ],
    ..PLAIN
};

const BIN: Table = Table {
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

// The tables of the surroundings of a measurement: since version 4.

const INTERVAL: Table = Table {
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
        text_column("sum_ns", "Their sum, decimal."),
        text_column("sum2", "Sum of their squares, ns^2, decimal."),
    ],
    ..keyed(", PRIMARY KEY (second, thread)")
};

const MARK: Table = Table {
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
        text_column("before", "What it was, e.g. SCHED_OTHER."),
        text_column("after", "What it is, e.g. SCHED_FIFO 1."),
    ],
    ..PLAIN
};

const IDLE_STATE: Table = Table {
    name: "idle_state",
    since: 4,
    about: "Idle states of the measured CPUs (cpuidle).",
    columns: &[
        int("cpu", "CPU."),
        int("state", "Number: 0 is the lightest."),
        text_column("name", "Name, e.g. C6."),
        opt_int("exit_us", "Time to leave it as the driver says, microseconds. NULL: unknown."),
    ],
    ..keyed(", PRIMARY KEY (cpu, state)")
};

const HOST_IDLE: Table = Table {
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

// The tables of spikes: since version 2. Names and remedies of causes belong to the judge. They
// are a document here, because a record must outlive the lists of causes.

const RECORDER: Table = Table {
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
        text_column("document", "Recorder, JSON: why off, cost, missing events, losses."),
    ],
    ..PLAIN
};

const SPIKE: Table = Table {
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

const CAUSE: Table = Table {
    name: "cause",
    since: 2,
    about: "What the explained spikes were caused by, 256 rows at most; what found no row is in \
            those of the culprit \"others\".",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "Order of appearance: 0, 1, ..."),
        text_column("cause", "Cause, e.g. preempted."),
        text_column("culprit", "Who; empty where there is nobody to name."),
        int("top", "Spikes in which it has the largest share."),
        int("count", "Spikes in which it has a share."),
        int("worst_ns", "Its largest share."),
        int("sum_ns", "Sum of its shares."),
        int("ambiguous_ns", "Of that: may have been something else."),
        text_column("words", "Title, owner, checks and remedies, JSON."),
    ],
    constraints: ", UNIQUE (cause, culprit)",
    ..PLAIN
};

const CAUSE_CPU: Table = Table {
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

const WINDOW: Table = Table {
    name: "window",
    since: 2,
    about: "Kernel events round the worst spikes: 8 for each cause and culprit, 128 at most. They \
            are explained anew whenever the record is shown.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "1, 2, ...; numbers of dropped ones are missing."),
        c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
        int("due_ns", "When the wake-up was due, after the origin."),
        int("latency_ns", "How late it was."),
        text_column(
            "document",
            "Events, tasks, losses, JSON; its times are CLOCK_MONOTONIC nanoseconds.",
        ),
    ],
    ..PLAIN
};

/// A table of the record: its SQL and its documentation.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// Version of the record that it came with.
    pub since: i32,
    /// What a row is.
    pub about: &'static str,
    pub columns: &'static [Column],
    /// Table constraints and options after the columns; starts with `, ` when not empty.
    constraints: &'static str,
    /// Whether rows are kept in the order of the primary key.
    without_rowid: bool,
}

/// A column of a table: its SQL and its documentation.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name; ends in its unit where it has one.
    pub name: &'static str,
    /// SQL type and constraints.
    pub sql: &'static str,
    /// Meaning, with unit and when it is NULL.
    pub about: &'static str,
    /// Version of the record that it came with, where its table is older; else 0. Such columns
    /// stand last and may be NULL: a record without them is read as if they were.
    pub since: i32,
}

const fn c(name: &'static str, sql: &'static str, about: &'static str) -> Column {
    Column { name, sql, about, since: 0 }
}

const fn int(name: &'static str, about: &'static str) -> Column {
    c(name, "INTEGER NOT NULL", about)
}

/// A whole number that may be unknown.
const fn opt_int(name: &'static str, about: &'static str) -> Column {
    c(name, "INTEGER", about)
}

/// A text, or a number that is too large for a whole one.
const fn text_column(name: &'static str, about: &'static str) -> Column {
    c(name, "TEXT NOT NULL", about)
}

/// A text that may be missing.
const fn opt_text(name: &'static str, about: &'static str) -> Column {
    c(name, "TEXT", about)
}

/// The rest of a table of version 1, in the order in which its rows come.
const PLAIN: Table =
    Table { name: "", since: 1, about: "", columns: &[], constraints: "", without_rowid: false };

/// The rest of a table whose rows are kept in the order of a key.
const fn keyed(constraints: &'static str) -> Table {
    Table { constraints, without_rowid: true, ..PLAIN }
}

/// What a second and what many seconds together have in common.
const SECOND: [Column; 16] = [
    int("from_ns", "Due time of the first wake-up covered."),
    int("to_ns", "Due time of the first wake-up no longer covered."),
    int("n", "Sampled wake-ups."),
    opt_int("min_ns", "Smallest latency. NULL: no sample."),
    opt_int("max_ns", "Largest latency. NULL: no sample."),
    int("max_at_ns", "Due time of the largest latency."),
    text_column("sum_ns", "Sum of latencies, decimal; up to 128 bits."),
    text_column("sum2", "Sum of their squares, ns^2, decimal."),
    opt_text("sum3", "Sum of their cubes, ns^3, decimal. NULL: did not fit."),
    opt_text("sum4", "Sum of their fourth powers, ns^4, decimal. NULL: did not fit."),
    int("missed", "Wake-ups due while the thread was still late."),
    text_column("missed_sum_ns", "Sum of their lateness, decimal."),
    int("late_sampled", "Sampled wake-ups later than the budget."),
    int("late_missed", "Missed wake-ups later than the budget."),
    int("late_clusters", "Groups of late wake-ups."),
    int("early", "Wake-ups before their time, counted as 0 ns."),
];

/// Columns of a table of seconds: its key, the columns that all such tables have, the others.
const fn of_seconds<const N: usize>(key: [Column; 2], more: &[Column]) -> [Column; N] {
    let mut all = [key[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = match at {
            0 | 1 => key[at],
            2..18 => SECOND[at - 2],
            _ => more[at - 18],
        };
        at += 1;
    }
    all
}

impl Table {
    /// The statement that makes the table of a version, as SQLite keeps it in `sqlite_schema`.
    pub fn create_sql(&self, version: i32) -> String {
        let columns = self.columns.iter().filter(|column| column.since <= version);
        let columns: Vec<String> = columns.map(|c| format!("{} {}", c.name, c.sql)).collect();
        let options = if self.without_rowid { "STRICT, WITHOUT ROWID" } else { "STRICT" };
        format!("CREATE TABLE {} ({}{}) {options}", self.name, columns.join(", "), self.constraints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_texts_are_sentences() {
        let mut names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLES.len());
        for table in TABLES {
            for about in table.columns.iter().map(|c| c.about).chain([table.about]) {
                assert!(about.ends_with('.'), "{}: {about}", table.name);
            }
        }
    }

    /// Older records are out there: what they are made of does not change any more.
    #[test]
    fn the_tables_of_older_versions_stay_as_they_were() {
        use sha2::{Digest, Sha256};
        let digest = |version| {
            let old = TABLES.iter().filter(|table| table.since == version);
            let sql: Vec<String> = old.map(|table| table.create_sql(version)).collect();
            let digest = Sha256::digest(sql.join("\n"));
            digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let one = "c492ad58759bae740de93cae2bbdc65386fd8f835be4708cb9301191100b0cd7";
        let two = "70ce248fb3d9fe0f07054be88305a4b5b13250d2cd081301c182105cc2536044";
        let three = "d558a4b041dd2fd98d47487ed9dd63098469d92f6a28632f37c6687aa72bd374";
        let four = "91dd1bee923bf2688249a62e2d389c45dabd07ca01d6cbcc33b123ec03e817b4";
        assert_eq!([1, 2, 3, 4].map(digest), [one, two, three, four]);
        assert!(TABLES.iter().all(|table| (1..=VERSION).contains(&table.since)));
    }

    #[test]
    fn sqlite_keeps_the_sql_as_written() {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        for table in TABLES {
            conn.execute_batch(&table.create_sql(VERSION)).unwrap();
            let kept: String = conn
                .query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [table.name], |row| {
                    row.get(0)
                })
                .unwrap();
            assert_eq!(kept, table.create_sql(VERSION));
        }
    }
}
