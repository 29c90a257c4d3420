//! How much a record may hold: more is refused before memory is taken for it. A day of 512 CPUs
//! fits many times over.

use crate::{
    beside::{IDLE_READINGS_MAX, MARKS_MAX, STATES_MAX},
    effects::{KNOBS_MAX, SLICES_MAX},
    imported, spikes,
    tick::TOP_MAX,
};

/// Measured threads: one for each CPU that Linux can have.
const THREADS: u64 = 8192;
/// Seconds of a year.
const SECONDS: u64 = 366 * 24 * 3600;
/// Buckets of a whole-run histogram, and a margin.
const BUCKETS: u64 = 1 << 13;

/// Most rows of each table.
const ROWS_MAX: &[(&str, u64)] = &[
    ("run", 1),
    ("machine", 1),
    ("facts", 2),
    ("fact", 4_000_000),
    ("thread", THREADS),
    ("stat", THREADS * SECONDS),
    ("hist", 2 * THREADS * BUCKETS),
    ("hist_second", 2 * THREADS * SECONDS),
    ("top", THREADS * TOP_MAX as u64),
    ("host", SECONDS),
    ("host_cpu", THREADS * SECONDS),
    ("load", 10_000),
    ("note", 20_000),
    ("finding", 1),
    ("verdict", 1),
    ("seal", 1),
    ("recorder", 1),
    ("spike", spikes::SPIKES_MAX as u64),
    ("cause", spikes::CAUSES_MAX as u64),
    ("cause_cpu", (spikes::CAUSES_MAX * spikes::CPUS_MAX) as u64),
    ("window", spikes::WINDOWS_MAX as u64),
    ("trial", 1),
    ("knob", KNOBS_MAX as u64),
    ("effect", 100 * KNOBS_MAX as u64),
    ("slice", SLICES_MAX as u64),
    ("interval", THREADS * SECONDS),
    ("mark", MARKS_MAX as u64),
    ("idle_state", THREADS * STATES_MAX as u64),
    ("host_idle", IDLE_READINGS_MAX * THREADS * STATES_MAX as u64),
    ("import", 1),
    ("import_thread", imported::THREADS_MAX as u64),
    ("bin", imported::BINS_MAX as u64),
    ("block", THREADS * SECONDS / 60),
    ("host_block", THREADS * SECONDS / 60),
];

/// Most rows of a table; 0: there is no such table.
#[must_use]
pub fn rows_max(table: &str) -> u64 {
    ROWS_MAX.iter().find(|(name, _)| *name == table).map_or(0, |&(_, most)| most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TABLES;

    #[test]
    fn every_table_has_a_limit() {
        assert_eq!(TABLES.len(), ROWS_MAX.len());
        assert!(TABLES.iter().all(|table| rows_max(table.name) > 0));
    }
}
