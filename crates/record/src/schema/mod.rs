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

use crate::counters::{self, COUNTERS, Counter};

/// SQLite application id of a record: `RTPF`.
pub const APPLICATION_ID: i32 = 0x5254_5046;

/// Version of the tables below, in `PRAGMA user_version`. Raised by every change of [`TABLES`],
/// and by a counter that comes later.
/// Versions only add tables and counters: a record of an older one is read as far as it goes.
pub const VERSION: i32 = {
    let tables = 5;
    if counters::VERSION > tables { counters::VERSION } else { tables }
};

pub(crate) use blocks::BLOCK;

/// One table.
#[derive(Debug)]
pub struct Table {
    /// Name.
    pub name: &'static str,
    /// Version of the record that it came with.
    pub since: i32,
    /// What a row is.
    pub about: &'static str,
    /// Columns in order.
    pub columns: &'static [Column],
    /// Table constraints and options after the columns; starts with `, ` when not empty.
    constraints: &'static str,
    /// Whether rows are kept in the order of the primary key.
    without_rowid: bool,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name; ends in its unit where it has one.
    pub name: &'static str,
    /// SQL type and constraints.
    pub sql: &'static str,
    /// Meaning, with unit and when it is NULL.
    pub about: &'static str,
    /// Version of the record that it came with, if that is later than its table's.
    pub since: i32,
}

const fn c(name: &'static str, sql: &'static str, about: &'static str) -> Column {
    Column { name, sql, about, since: 1 }
}

/// What a second and what many seconds together have in common.
const SECOND: [Column; 16] = [
    c("from_ns", "INTEGER NOT NULL", "Due time of the first wake-up covered."),
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
];

/// Columns of a table of seconds: what a row is of, what all such tables have, what else there is.
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

/// Columns of table `host`.
const HOST: [Column; 2 + COUNTERS.len()] = {
    let number = c("number", "INTEGER PRIMARY KEY", "Number of the reading: 1, 2, ...");
    let at_ns = c("at_ns", "INTEGER NOT NULL", "Time of the reading, after the origin.");
    let mut all = [at_ns; 2 + COUNTERS.len()];
    all[0] = number;
    let mut at = 0;
    while at < COUNTERS.len() {
        let Counter { name, about, since, .. } = COUNTERS[at];
        all[2 + at] = Column { since, ..c(name, "INTEGER", about) };
        at += 1;
    }
    all
};

/// All tables, in the order in which they are made.
pub const TABLES: &[Table] = &[
    Table {
        name: "run",
        since: 1,
        about: "The run: one row. Times are nanoseconds; the origin of all other times is the \
                first wake-up.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            c("run_id", "TEXT NOT NULL", "Random identity, 32 hex digits."),
            c("tool_version", "TEXT NOT NULL", "Version of rtproof that measured."),
            c("command", "TEXT NOT NULL", "Command line, JSON array of strings."),
            c("started_realtime_ns", "INTEGER NOT NULL", "First wake-up, since 1970-01-01 UTC."),
            c("started_monotonic_ns", "INTEGER NOT NULL", "First wake-up, CLOCK_MONOTONIC."),
            c(
                "ended",
                "TEXT",
                "How it ended, JSON: {\"how\": \"complete\"}, {\"how\": \"interrupted\", \
                 \"signal\": ...} or {\"how\": \"aborted\", \"why\": ...}. NULL: torn.",
            ),
            c("options", "TEXT NOT NULL", "What was asked, JSON: CPUs, period, duration, budget."),
            c("cost", "TEXT NOT NULL", "What measuring costs here, JSON: clock read and step."),
            c("boot_id", "TEXT", "Boot of the kernel. NULL: unknown."),
            c(
                "condition_start",
                "TEXT",
                "Hash of the facts before the run that may change latency.",
            ),
            c("condition_end", "TEXT", "The same after the run; differs if the machine moved."),
        ],
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "machine",
        since: 1,
        about: "Who the machine is: one row. NULL where unknown; table fact says why.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            c("machine_id", "TEXT", "Salted hash of the machine's serial, 16 hex digits."),
            c("hostname", "TEXT", "Host name."),
            c("model", "TEXT", "Board or product."),
            c("cpu_model", "TEXT", "CPU."),
            c("memory_bytes", "INTEGER", "Memory in bytes."),
        ],
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "facts",
        since: 1,
        about: "All that was known of the machine, as one document, before and after the run.",
        columns: &[
            c("taken", "TEXT PRIMARY KEY CHECK (taken IN ('start', 'end'))", "start or end."),
            c("document", "TEXT NOT NULL", "Facts, JSON."),
        ],
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "fact",
        since: 1,
        about: "The same facts, one a row, for searching and comparing.",
        columns: &[
            c("taken", "TEXT NOT NULL REFERENCES facts (taken)", "start or end."),
            c("key", "TEXT NOT NULL", "E.g. cpus.3.freq.governor."),
            c(
                "state",
                "TEXT NOT NULL CHECK (state IN ('known', 'absent', 'denied', 'malformed'))",
                "known, absent, denied or malformed. Only a known fact has a value.",
            ),
            c("value", "TEXT", "Value, or why it is unknown. NULL when absent."),
            c("path", "TEXT NOT NULL", "Path or call that was asked."),
            c(
                "class",
                "TEXT NOT NULL",
                "Who sets it: identity, hardware, firmware, kernel, boot, runtime, load, \
                 process, volatile.",
            ),
        ],
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "thread",
        since: 1,
        about: "One measured thread. The columns from end_reason on are NULL until it ended.",
        columns: &[
            c("number", "INTEGER PRIMARY KEY", "0, 1, ..."),
            c("cpu", "INTEGER NOT NULL", "CPU it was pinned to."),
            c("tid", "INTEGER NOT NULL", "Thread id."),
            c("workload", "TEXT NOT NULL", "What it measured, e.g. timer-wakeup."),
            c("policy", "TEXT NOT NULL", "Scheduling policy in force, e.g. fifo."),
            c("priority", "INTEGER NOT NULL", "Real-time priority, 1 to 99; 0 without."),
            c("locked", "INTEGER NOT NULL CHECK (locked IN (0, 1))", "1: its memory was locked."),
            c("period_ns", "INTEGER NOT NULL", "Period."),
            c("first_due_ns", "INTEGER NOT NULL", "First wake-up, after the origin."),
            c("end_reason", "TEXT", "complete, stopped, starved, cpu_lost, panicked or failed."),
            c("scheduled", "INTEGER", "Wake-ups that were due: sampled + missed."),
            c("faults_minor", "INTEGER", "Minor page faults while armed."),
            c("faults_major", "INTEGER", "Major page faults while armed."),
            c("cpu_time_ns", "INTEGER", "CPU time used while armed."),
            c("preemptions", "INTEGER", "Involuntary context switches while armed."),
        ],
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "stat",
        since: 1,
        about: "Exact numbers of one thread in one second; sums over rows are exact for the run.",
        columns: &of_seconds::<18>(
            [
                c(
                    "second",
                    "INTEGER NOT NULL",
                    "Number of the second within the thread: 0, 1, ...",
                ),
                c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
            ],
            &[],
        ),
        constraints: ", PRIMARY KEY (second, thread)",
        without_rowid: true,
    },
    Table {
        name: "hist",
        since: 1,
        about: "Whole-run histogram, 7 sub-bucket bits. Bucket b: e = max(b / 128 - 1, 0), \
                m = b - 128 e, holds m 2^e to (m + 1) 2^e - 1 ns. Deadline view = wake + missed.",
        columns: &[
            c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
            c(
                "view",
                "TEXT NOT NULL CHECK (view IN ('wake', 'missed'))",
                "wake: latency of sampled wake-ups; missed: lateness of missed ones.",
            ),
            c("bucket", "INTEGER NOT NULL", "Bucket."),
            c("n", "INTEGER NOT NULL", "Count."),
        ],
        constraints: ", PRIMARY KEY (thread, view, bucket)",
        without_rowid: true,
    },
    Table {
        name: "hist_second",
        since: 1,
        about: "Histogram of one second, 5 sub-bucket bits (as hist, with 32 for 128). No row: \
                empty. See docs/adr/0003-per-second-histograms-as-blobs.md.",
        columns: &[
            c("second", "INTEGER NOT NULL", "As in stat."),
            c("thread", "INTEGER NOT NULL", "Thread."),
            c("view", "TEXT NOT NULL CHECK (view IN ('wake', 'missed'))", "As in hist."),
            c(
                "data",
                "BLOB NOT NULL",
                "Pairs (bucket minus previous bucket, count), each number LEB128; first bucket \
                 from 0.",
            ),
        ],
        constraints: ", PRIMARY KEY (second, thread, view), \
                      FOREIGN KEY (second, thread) REFERENCES stat (second, thread)",
        without_rowid: true,
    },
    Table {
        name: "top",
        since: 1,
        about: "The largest samples of each thread, 64 at most; none larger is left out.",
        columns: &[
            c("thread", "INTEGER NOT NULL REFERENCES thread (number)", "Thread."),
            c("due_ns", "INTEGER NOT NULL", "When the wake-up was due, after the origin."),
            c("latency_ns", "INTEGER NOT NULL", "How late it was."),
        ],
        constraints: ", PRIMARY KEY (thread, due_ns)",
        without_rowid: true,
    },
    Table {
        name: "host",
        since: 1,
        about: "The whole machine over one second.",
        columns: &HOST,
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "host_cpu",
        since: 1,
        about: "One CPU over one second.",
        columns: &[
            c("host", "INTEGER NOT NULL REFERENCES host (number)", "Reading."),
            c("cpu", "INTEGER NOT NULL", "CPU."),
            c("busy_ms", "INTEGER NOT NULL", "Not idle, milliseconds."),
            c("steal_ms", "INTEGER NOT NULL", "Stolen by the hypervisor, milliseconds."),
            c("freq_hz", "INTEGER", "Frequency, Hz. NULL: unknown."),
        ],
        constraints: ", PRIMARY KEY (host, cpu)",
        without_rowid: true,
    },
    Table {
        name: "load",
        since: 1,
        about: "A load that ran beside the measurement.",
        columns: &[
            c("number", "INTEGER PRIMARY KEY", "Order of appearance: 1, 2, ..."),
            c("name", "TEXT NOT NULL", "E.g. memory."),
            c("from_ns", "INTEGER NOT NULL", "Start, after the origin."),
            c("to_ns", "INTEGER NOT NULL", "End, after the origin."),
            c("detail", "TEXT NOT NULL", "What it did."),
            c("unit", "TEXT NOT NULL", "Unit of its work."),
            c("work", "INTEGER NOT NULL", "Work done, in that unit."),
            c("error", "TEXT", "What went wrong. NULL: nothing."),
        ],
        constraints: ", UNIQUE (name, from_ns)",
        without_rowid: false,
    },
    Table {
        name: "note",
        since: 1,
        about: "What the user must know of the run.",
        columns: &[
            c("number", "INTEGER PRIMARY KEY", "Order of appearance: 1, 2, ..."),
            c("at_ns", "INTEGER NOT NULL", "When, after the origin; 0 before the start."),
            c("id", "TEXT NOT NULL", "Stable identifier, e.g. no-rt-right."),
            c("text", "TEXT NOT NULL", "What is so and the next step."),
            c(
                "weakens",
                "INTEGER NOT NULL CHECK (weakens IN (0, 1))",
                "1: takes force from the verdict.",
            ),
        ],
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "finding",
        since: 1,
        about: "Findings as judged when the run ended: at most one row.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            c("document", "TEXT NOT NULL", "Findings, JSON; rows by json_each(document)."),
        ],
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "verdict",
        since: 1,
        about: "Verdict as judged when the run ended: at most one row.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            c("document", "TEXT NOT NULL", "Verdict, JSON."),
            c("summary", "TEXT NOT NULL", "The verdict in one line."),
        ],
        constraints: "",
        without_rowid: false,
    },
    Table {
        name: "seal",
        since: 1,
        about: "Digest over all bytes of the file: at most one row. No row, or digits all zero: \
                the run is torn.",
        columns: &[
            c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
            c(
                "mark",
                "TEXT NOT NULL",
                "rtproof-seal-1:RUN_ID: and 64 hex digits: SHA-256 of the file with these digits \
                 as zeros.",
            ),
        ],
        constraints: "",
        without_rowid: false,
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

impl Table {
    /// The statement that makes the table of a version, as SQLite keeps it in `sqlite_schema`.
    #[must_use]
    pub fn create_sql(&self, version: i32) -> String {
        let columns = self.columns.iter().filter(|c| c.since <= version);
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
