//! Counters of the whole machine over one second. A row here is a column of table `host`, of its
//! CSV and of what is read back. To add one: a field of [`HostSecond`], and a row at the end.

use crate::run::HostSecond;

/// One counter.
pub(crate) struct Counter {
    /// Name of its column.
    pub(crate) name: &'static str,
    /// Version of the record that it came with.
    pub(crate) since: i32,
    /// Meaning, with unit and when it is NULL.
    pub(crate) about: &'static str,
    /// Its field.
    pub(crate) field: Field,
}

/// How to take a counter from a row, and how to put it into one.
pub(crate) enum Field {
    /// Never negative.
    Count(fn(&HostSecond) -> Option<u64>, fn(&mut HostSecond, Option<u64>)),
    /// May be negative.
    Signed(fn(&HostSecond) -> Option<i64>, fn(&mut HostSecond, Option<i64>)),
}

impl Field {
    /// The value of a row.
    pub(crate) fn of(&self, row: &HostSecond) -> Option<i128> {
        match self {
            Self::Count(take, _) => take(row).map(i128::from),
            Self::Signed(take, _) => take(row).map(i128::from),
        }
    }
}

macro_rules! counter {
    ($kind:ident $field:ident, $since:literal, $about:literal) => {
        Counter {
            name: stringify!($field),
            since: $since,
            about: $about,
            field: Field::$kind(|row| row.$field, |row, value| row.$field = value),
        }
    };
}

/// Every counter.
pub(crate) const COUNTERS: &[Counter] = &[
    counter!(Count interrupts, 1, "Interrupts, all CPUs. NULL: unknown."),
    counter!(Count context_switches, 1, "Context switches, all CPUs. NULL: unknown."),
    counter!(Signed temp_max_mc, 1, "Hottest zone, 1/1000 degree Celsius. NULL: unknown."),
];

/// The version of the record that the newest counter came with.
pub(crate) const VERSION: i32 = {
    let (mut version, mut at) = (1, 0);
    while at < COUNTERS.len() {
        if COUNTERS[at].since > version {
            version = COUNTERS[at].since;
        }
        at += 1;
    }
    version
};

/// Counters that a record of a version has.
pub(crate) fn of_version(version: i32) -> impl Iterator<Item = &'static Counter> {
    COUNTERS.iter().filter(move |counter| counter.since <= version)
}
