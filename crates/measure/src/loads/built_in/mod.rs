//! The loads that are built in. One file each, one list.

mod compile;
mod cpu;
mod disk;
mod files;
mod fork;
pub(super) mod idle;
pub(super) mod memory;
mod messages;
pub(super) mod named;
mod net;
mod ping;
mod rng;
#[cfg(test)]
#[path = "_template.rs"]
mod template;
mod traffic;

use super::load::Load;

/// Every load, in the order of the reference page.
pub const LOADS: &[&Load] = &[
    // One line each.
    &cpu::LOAD,
    &memory::LOAD,
    &net::LOAD,
    &ping::LOAD,
    &traffic::LOAD,
    &disk::LOAD,
    &files::LOAD,
    &fork::LOAD,
    &messages::LOAD,
    &compile::LOAD,
    &idle::LOAD,
];

/// The load of that name.
pub fn find(name: &str) -> Option<&'static Load> {
    LOADS.iter().copied().find(|load| load.name == name)
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        process::Command,
        sync::atomic::{AtomicBool, Ordering},
    };

    use rtproof_host::CpuList;

    use super::*;
    use crate::loads::load::{Before, Context, Counter};

    #[test]
    fn names_are_found_and_differ() {
        for load in LOADS {
            assert_eq!(find(load.name).map(|load| load.name), Some(load.name));
            assert!(load.name.chars().all(|c| c.is_ascii_lowercase()), "{}", load.name);
            assert!(!load.about.is_empty() && !load.about.contains('\n'), "{}", load.name);
            assert!(!load.unit.is_empty(), "{}", load.name);
            assert_eq!(LOADS.iter().filter(|other| other.name == load.name).count(), 1);
        }
        assert!(find("nothing").is_none());
    }

    #[test]
    fn the_template_works_and_stops() {
        let (counter, stop) = (Counter::default(), AtomicBool::new(false));
        let cpus = CpuList::new([0]);
        let ctx = Context {
            before: Before { cpus: &cpus, dir: Path::new("/tmp"), parameter: None },
            held: None,
            memory_bytes_per_cpu: 0,
            counter: &counter,
            stop: &stop,
            no_op: &|| Command::new("true"),
            program: &|path| Command::new(path),
            detail: &|_| stop.store(true, Ordering::Relaxed),
        };
        assert_eq!((template::LOAD.work)(&ctx), Ok(()));
        assert!(counter.get() > 0);
    }
}
