//! How much a record may hold: more is refused before memory is taken for it. A day of 512 CPUs
//! fits many times over.

use crate::{
    beside::{MARKS_MAX, STATES_MAX},
    effects::{KNOBS_MAX, SLICES_MAX},
    imported, spikes,
};

/// Measured threads: one for each CPU that Linux can have.
const THREADS: u64 = 8192;

/// Most rows of each table but those of seconds and buckets: to count these takes as long as to
/// read them, and what is kept of them in memory is about as large as in the file.
const ROWS_MAX: &[(&str, u64)] = &[
    ("run", 1),
    ("machine", 1),
    ("facts", 2),
    ("fact", 4_000_000),
    ("thread", THREADS),
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
    ("mark", MARKS_MAX as u64),
    ("idle_state", THREADS * STATES_MAX as u64),
    ("import", 1),
    ("import_thread", imported::THREADS_MAX as u64),
    ("bin", imported::BINS_MAX as u64),
];

/// Most rows of a table; `None`: as many as the file holds.
pub fn rows_max(table: &str) -> Option<u64> {
    ROWS_MAX.iter().find(|(name, _)| *name == table).map(|&(_, most)| most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TABLES;

    #[test]
    fn limits_are_of_tables_and_can_be_counted() {
        for (name, most) in ROWS_MAX {
            assert!(TABLES.iter().any(|table| table.name == *name), "{name}");
            assert!(*most <= 1 << 22, "{name}: counting {most} rows takes seconds");
        }
        assert_eq!(rows_max("stat"), None);
    }
}
