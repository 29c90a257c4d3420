//! The tables of a record: one list from which the SQL, the reader's check and the docs are made.
//!
//! A record must be legible in ten years with nothing but `sqlite3`, so every column says its unit
//! here, and the same text is stored in the file as SQL. A reader accepts exactly this SQL: a file
//! whose tables were swapped for views or other shapes is refused before anything is read from it.

mod blocks;
mod effects;
mod import;
mod measure;
mod spikes;
mod table;

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

pub(crate) use blocks::BLOCK;
use rtproof_host::sample::HOST_COUNTERS;
pub use table::{Column, Table};
use table::{PLAIN, c, int, keyed, of_seconds, opt_int, opt_text, text};

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
            text("run_id", "Random identity, 32 hex digits."),
            text("tool_version", "Version of rtproof that measured."),
            text("command", "Command line, JSON array of strings."),
            int("started_realtime_ns", "First wake-up, since 1970-01-01 UTC."),
            int("started_monotonic_ns", "First wake-up, CLOCK_MONOTONIC."),
            opt_text(
                "ended",
                "How it ended, JSON: {\"how\": \"complete\"}, {\"how\": \"interrupted\", \
                 \"signal\": ...} or {\"how\": \"aborted\", \"why\": ...}. NULL: torn.",
            ),
            text("options", "What was requested, JSON: CPUs, period, duration, budget."),
            text("cost", "What measuring costs here, JSON: clock read and step."),
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
            text("document", "Facts, JSON."),
        ],
        ..PLAIN
    },
    Table {
        name: "fact",
        about: "The same facts, one a row, for searching and comparing.",
        columns: &[
            c("taken", "TEXT NOT NULL REFERENCES facts (taken)", "start or end."),
            text("key", "E.g. cpus.3.freq.governor."),
            c(
                "state",
                "TEXT NOT NULL CHECK (state IN ('known', 'absent', 'denied', 'malformed'))",
                "known, absent, denied or malformed. Only a known fact has a value.",
            ),
            opt_text("value", "Value, or why it is unknown. NULL when absent."),
            text("path", "Path or call that was read."),
            text(
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
            text("workload", "What it measured, e.g. timer-wakeup."),
            text("policy", "Scheduling policy in force, e.g. fifo."),
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
            text("name", "E.g. memory."),
            int("from_ns", "Start, after the origin."),
            int("to_ns", "End, after the origin."),
            text("detail", "What it did."),
            text("unit", "Unit of its work."),
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
            text("id", "Stable identifier, e.g. no-rt-right."),
            text("text", "What is so and the next step."),
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
            text("document", "Findings, JSON; rows by json_each(document)."),
        ],
        ..PLAIN
    },
    Table {
        name: "verdict",
        about: "Verdict as judged when the run ended: at most one row.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            text("document", "Verdict, JSON."),
            text("summary", "The verdict in one line."),
        ],
        ..PLAIN
    },
    Table {
        name: "seal",
        about: "Digest over all bytes of the file: at most one row. No row, or digits all zero: \
                the run is torn.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            text(
                "mark",
                "rtproof-seal-1:RUN_ID: and 64 hex digits: SHA-256 of the file with these digits \
                 as zeros.",
            ),
        ],
        ..PLAIN
    },
    spikes::RECORDER,
    spikes::SPIKE,
    spikes::CAUSE,
    spikes::CAUSE_CPU,
    spikes::WINDOW,
    effects::TRIAL,
    effects::KNOB,
    effects::EFFECT,
    effects::SLICE,
    measure::INTERVAL,
    measure::MARK,
    measure::IDLE_STATE,
    measure::HOST_IDLE,
    import::IMPORT,
    import::IMPORT_THREAD,
    import::BIN,
    blocks::BLOCK_STAT,
    blocks::HOST_BLOCK,
];

/// The table of a name.
pub(crate) fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
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
