//! Loads: what disturbs the machine while the measured threads are measured. One file each, one
//! list.
//!
//! A latency without a load is a latency of an idle machine and proves nothing. A load runs in a
//! process of its own, so that its page faults, its `mmap_lock` and its TLB shootdowns do not touch
//! the measuring process; it has the normal scheduling policy, keeps within a budget of memory and
//! disk, says how much work it did, and ends with rtproof whatever happens to rtproof. How that is
//! done is in [`run`]. To add a load: copy `_template.rs`, fill it, add one line to [`LOADS`].

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rtproof_host::CpuList;

mod cpu;
mod disk;
mod fork;
mod idle;
mod memory;
mod net;
mod rng;
pub mod run;
#[cfg(test)]
#[path = "_template.rs"]
mod template;

pub use run::error::LoadError;
pub use run::runner::{Outcome, Runner, Running, Settings};
pub use run::spec::{LoadSet, LoadSpec, SpecError};
pub use run::worker::worker_main;

/// Every load, in the order of the reference page.
pub const LOADS: &[&dyn Load] = &[
    // One line each.
    &cpu::Cpu,
    &memory::Memory,
    &net::Net,
    &disk::Disk,
    &fork::Fork,
    &idle::Idle,
];

/// Something that disturbs the machine.
pub trait Load: Sync {
    /// Name on the command line and in the record: lower case, one word.
    fn name(&self) -> &'static str;
    /// What it does and what bounds it, in one line.
    fn about(&self) -> &'static str;
    /// Unit of its work in the plural, e.g. `bytes`.
    fn unit(&self) -> &'static str;
    /// Disturbs until [`Context::stopped`], looking at it at least every 100 ms, and counts its
    /// work into [`Context::counter`] while it goes. Runs in the load's own process, pinned to the
    /// load CPUs; threads that it starts inherit them.
    ///
    /// # Errors
    /// What kept it from working: the value, what was expected, the next step.
    fn work(&self, ctx: &Context) -> Result<(), String>;
}

/// The load of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Load> {
    LOADS.iter().copied().find(|load| load.name() == name)
}

/// Work done, in the load's unit. Threads add in batches of a millisecond or so, so that the one
/// shared cache line is not itself the load.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds work.
    pub fn add(&self, work: u64) {
        self.0.fetch_add(work, Ordering::Relaxed);
    }

    /// Raises to a total measured elsewhere; a smaller total is ignored.
    pub fn raise_to(&self, work: u64) {
        self.0.fetch_max(work, Ordering::Relaxed);
    }

    /// Sets the total where the unit has changed.
    pub(crate) fn replace(&self, work: u64) {
        self.0.store(work, Ordering::Relaxed);
    }

    /// Work so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a load is given.
pub struct Context<'a> {
    /// CPUs to disturb. The process is pinned to them.
    pub cpus: &'a CpuList,
    /// Directory for files; they have no name, so that nothing stays after a SIGKILL.
    pub dir: &'a Path,
    /// Most memory that a load may use for each CPU, in bytes.
    pub memory_bytes_per_cpu: u64,
    /// Where work is counted.
    pub counter: &'a Counter,
    /// Set when the load shall end.
    pub stop: &'a AtomicBool,
    /// Makes a command that starts this binary and ends at once: the shortest process there is.
    pub no_op: &'a (dyn Fn() -> Command + Sync),
    /// Takes what the load wants the record to say of it, e.g. `2 x 256 MiB blocks`.
    pub detail: &'a (dyn Fn(&str) + Sync),
}

impl Context<'_> {
    /// Whether the load shall end.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs `work` once for each load CPU, each in a thread pinned to its CPU, until all return.
    /// The first error ends all of them.
    ///
    /// # Errors
    /// The error of the first thread (in order of CPUs) that failed.
    pub fn on_each_cpu(
        &self,
        work: impl Fn(u32) -> Result<(), String> + Sync,
    ) -> Result<(), String> {
        let pinned = |cpu| run::place::pin_thread(cpu).and_then(|()| work(cpu));
        let tasks: Vec<_> = self.cpus.iter().map(|cpu| move || pinned(cpu)).collect();
        self.together(tasks)
    }

    /// Runs each task in a thread of its own until all return. The first error ends all of them.
    ///
    /// # Errors
    /// The error of the first task that failed.
    pub fn together<T>(&self, tasks: Vec<T>) -> Result<(), String>
    where
        T: FnOnce() -> Result<(), String> + Send,
    {
        std::thread::scope(|scope| {
            let spawn = |task: T| {
                let guarded = move || {
                    let result = task();
                    if result.is_err() {
                        self.stop.store(true, Ordering::Relaxed);
                    }
                    result
                };
                std::thread::Builder::new().spawn_scoped(scope, guarded)
            };
            let threads: Vec<_> = tasks.into_iter().map(spawn).collect();
            if threads.iter().any(Result::is_err) {
                self.stop.store(true, Ordering::Relaxed);
            }
            let join = |thread: std::io::Result<std::thread::ScopedJoinHandle<_>>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err("a thread panicked".into())),
                Err(error) => Err(format!(
                    "cannot start a thread: {error}; raise `ulimit -u` or the cgroup's pids.max"
                )),
            };
            // All are joined before the first error is taken.
            threads.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_differ() {
        for load in LOADS {
            assert_eq!(find(load.name()).map(Load::name), Some(load.name()));
            assert!(load.name().chars().all(|c| c.is_ascii_lowercase()), "{}", load.name());
            assert!(!load.about().is_empty() && !load.about().contains('\n'), "{}", load.name());
            assert!(!load.unit().is_empty(), "{}", load.name());
            assert_eq!(LOADS.iter().filter(|other| other.name() == load.name()).count(), 1);
        }
        assert!(find("nothing").is_none());
    }

    #[test]
    fn the_template_works_and_stops() {
        let (counter, stop) = (Counter::default(), AtomicBool::new(false));
        let cpus = CpuList::new([0]);
        let ctx = Context {
            cpus: &cpus,
            dir: Path::new("/tmp"),
            memory_bytes_per_cpu: 0,
            counter: &counter,
            stop: &stop,
            no_op: &|| Command::new("true"),
            detail: &|_| stop.store(true, Ordering::Relaxed),
        };
        assert_eq!(template::Template.work(&ctx), Ok(()));
        assert!(counter.get() > 0);
    }

    #[test]
    fn the_first_error_ends_all() {
        let (counter, stop) = (Counter::default(), AtomicBool::new(false));
        let cpus = CpuList::new([]);
        let ctx = Context {
            cpus: &cpus,
            dir: Path::new("/tmp"),
            memory_bytes_per_cpu: 0,
            counter: &counter,
            stop: &stop,
            no_op: &|| Command::new("true"),
            detail: &|_| (),
        };
        let task = |fails: bool| {
            let ctx = &ctx;
            move || {
                while !fails && !ctx.stopped() {
                    std::thread::yield_now();
                }
                if fails { Err("no".into()) } else { Ok(()) }
            }
        };
        assert_eq!(ctx.together(vec![task(false), task(true), task(false)]), Err("no".into()));
    }
}
