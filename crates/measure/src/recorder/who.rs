//! Names for what is in a window: tasks by their ids, kernel addresses by their functions.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use rtproof_host::{Reading, Root, symbols::Symbols, task::task};
use rtproof_trace::{Task, Window};

/// A task may change its policy: what is known of it holds so long.
const FRESH_NS: u64 = 1_000_000_000;
/// Tasks that are remembered, also after their end.
const TASKS_MAX: usize = 8_192;
/// Addresses that are named in one window.
const ADDRESSES_MAX: usize = 4_096;

/// Symbols that another thread is reading.
pub(super) type Reader = Arc<OnceLock<Reading<Symbols>>>;

#[derive(Debug)]
pub(super) struct Who {
    root: Root,
    /// When it was requested, and the task as it was then.
    tasks: BTreeMap<i32, (u64, Task)>,
    symbols: Reader,
}

impl Who {
    /// Begins to read the symbols. The thread that reads is a child of the calling one and runs
    /// where that may.
    pub(super) fn new(root: &Root) -> Self {
        let symbols = Reader::default();
        let (into, of) = (Arc::clone(&symbols), root.clone());
        let read = move || drop(into.set(Symbols::read(&of)));
        let thread = std::thread::Builder::new().name("rtproof/symbols".into()).spawn(read);
        if let Err(error) = thread {
            let _ = symbols.set(Reading::denied("/proc/kallsyms", error.to_string()));
        }
        Self { root: root.clone(), tasks: BTreeMap::new(), symbols }
    }

    /// Whether symbols have been read, or will not be.
    pub(super) fn is_ready(&self) -> bool {
        self.symbols.get().is_some()
    }

    /// The symbols, where there are some.
    pub(super) fn symbols(&self) -> Option<&Symbols> {
        self.symbols.get()?.value()
    }

    /// Why addresses have no names.
    pub(super) fn no_symbols(&self) -> Option<String> {
        self.symbols.get()?.why_unknown()
    }

    /// The task as it is now, or was when it was last requested within a second, or before it
    /// ended.
    pub(super) fn task(&mut self, tid: i32, now_ns: u64) -> Option<&Task> {
        let is_fresh = |(at_ns, _): &(u64, Task)| now_ns.saturating_sub(*at_ns) < FRESH_NS;
        if tid > 0
            && !self.tasks.get(&tid).is_some_and(is_fresh)
            && let Some(task) = task(&self.root, tid)
        {
            if self.tasks.len() >= TASKS_MAX {
                self.tasks.retain(|_, known| is_fresh(known));
            }
            if self.tasks.len() < TASKS_MAX {
                self.tasks.insert(tid, (now_ns, task));
            }
        }
        self.tasks.get(&tid).map(|(_, task)| task)
    }

    /// Fills in the tasks and the symbols of a window.
    pub(super) fn name(&mut self, window: &mut Window, tid: i32, now_ns: u64) {
        let addresses = window.addresses();
        for tid in window.tids().into_iter().chain([tid]) {
            if let Some(task) = self.task(tid, now_ns) {
                window.tasks.insert(tid, task.clone());
            }
        }
        let Some(symbols) = self.symbols() else { return };
        let name = |address: u64| Some((address, symbols.lookup(address)?));
        window.symbols = addresses.into_iter().take(ADDRESSES_MAX).filter_map(name).collect();
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the machines that they read")]
mod tests {
    use super::*;

    const STAT: &str = " S 1 7 7 0 -1 0 9 0 0 0 3 4 0 0 20 0 1 0 88 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
                        17 2 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_task_is_known_after_its_end_and_asked_again_after_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let stat = dir.path().join("proc/7/stat");
        std::fs::create_dir_all(stat.parent().unwrap()).unwrap();
        std::fs::write(&stat, format!("7 (one){STAT}")).unwrap();
        let mut who = Who::new(&Root::dir(dir.path()).unwrap());
        let comm = |who: &mut Who, now_ns| who.task(7, now_ns).map(|task| task.comm.clone());
        assert_eq!(comm(&mut who, 5).as_deref(), Some("one"));
        std::fs::write(&stat, format!("7 (two){STAT}")).unwrap();
        assert_eq!(comm(&mut who, 6).as_deref(), Some("one"));
        assert_eq!(comm(&mut who, 5 + FRESH_NS).as_deref(), Some("two"));
        std::fs::remove_file(&stat).unwrap();
        assert_eq!(comm(&mut who, 5 * FRESH_NS).as_deref(), Some("two"));
        assert!([8, 0, -1].iter().all(|tid| who.task(*tid, 0).is_none()));
    }
}
