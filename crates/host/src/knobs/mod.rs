//! The knobs: one table per subsystem, the same subsystems as the checks.
//!
//! To add one: an entry in the table of its subsystem. Its value is then read with every machine
//! (`facts.settings`) for a check to judge, unless a typed fact holds it (`Knob::fact`).

/// The statics of a table, and the list of them.
macro_rules! table {
    ($($(#[$doc:meta])* $name:ident = $knob:expr;)*) => {
        $($(#[$doc])* pub static $name: Knob = $knob;)*

        pub const KNOBS: &[&Knob] = &[$(&$name),*];
    };
}

pub mod device;
pub mod isolation;
pub mod kernel;
pub mod memory;
pub mod names;
pub mod platform;
pub mod power;
pub mod sched;
pub mod time;

use crate::knob::Knob;

pub const TABLES: &[&[&Knob]] = &[
    kernel::KNOBS,
    power::KNOBS,
    sched::KNOBS,
    isolation::KNOBS,
    time::KNOBS,
    memory::KNOBS,
    device::KNOBS,
    platform::KNOBS,
];

pub fn all() -> impl Iterator<Item = &'static Knob> {
    TABLES.iter().flat_map(|table| table.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;
    use crate::knob::{Place, Scope};

    #[test]
    fn ids_are_unique_and_places_are_paths() {
        let mut seen = BTreeSet::new();
        let mut paths = BTreeSet::new();
        for knob in all() {
            assert!(seen.insert(knob.id), "{} twice", knob.id);
            assert!(
                knob.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            );
            for pattern in knob.patterns() {
                assert!(pattern.starts_with("/proc/") || pattern.starts_with("/sys/"), "{pattern}");
                assert!(paths.insert(pattern), "{}: {pattern} is another knob, too", knob.id);
                let is_one = !pattern.contains('*') && !pattern.contains("{cpu}");
                assert_eq!(is_one, knob.scope == Scope::Machine, "{}: {pattern}", knob.id);
            }
            if let Place::Units(units) = knob.place {
                assert!(units.iter().all(|unit| unit.contains('.')), "{}", knob.id);
            }
        }
    }
}
