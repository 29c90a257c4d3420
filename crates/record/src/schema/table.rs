//! What a table is made of.

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
    pub(super) constraints: &'static str,
    /// Whether rows are kept in the order of the primary key.
    pub(super) without_rowid: bool,
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

pub(super) const fn c(name: &'static str, sql: &'static str, about: &'static str) -> Column {
    Column { name, sql, about, since: 0 }
}

pub(super) const fn int(name: &'static str, about: &'static str) -> Column {
    c(name, "INTEGER NOT NULL", about)
}

/// A whole number that may be unknown.
pub(super) const fn opt_int(name: &'static str, about: &'static str) -> Column {
    c(name, "INTEGER", about)
}

/// A text, or a number that is too large for a whole one.
pub(super) const fn text(name: &'static str, about: &'static str) -> Column {
    c(name, "TEXT NOT NULL", about)
}

/// A text that may be missing.
pub(super) const fn opt_text(name: &'static str, about: &'static str) -> Column {
    c(name, "TEXT", about)
}

/// The rest of a table of version 1, in the order in which its rows come.
pub(super) const PLAIN: Table =
    Table { name: "", since: 1, about: "", columns: &[], constraints: "", without_rowid: false };

/// The rest of a table whose rows are kept in the order of a key.
pub(super) const fn keyed(constraints: &'static str) -> Table {
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
    text("sum_ns", "Sum of latencies, decimal; up to 128 bits."),
    text("sum2", "Sum of their squares, ns^2, decimal."),
    opt_text("sum3", "Sum of their cubes, ns^3, decimal. NULL: did not fit."),
    opt_text("sum4", "Sum of their fourth powers, ns^4, decimal. NULL: did not fit."),
    int("missed", "Wake-ups due while the thread was still late."),
    text("missed_sum_ns", "Sum of their lateness, decimal."),
    int("late_sampled", "Sampled wake-ups later than the budget."),
    int("late_missed", "Missed wake-ups later than the budget."),
    int("late_clusters", "Groups of late wake-ups."),
    int("early", "Wake-ups before their time, counted as 0 ns."),
];

/// Columns of a table of seconds: its key, the columns that all such tables have, the others.
pub(super) const fn of_seconds<const N: usize>(key: [Column; 2], more: &[Column]) -> [Column; N] {
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
