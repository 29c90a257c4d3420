//! A load: what it is, what it gets, where it counts.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rtproof_host::CpuList;

use super::place;
use crate::failure::Failure;

/// Something that disturbs the machine.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Name on the command line and in the record: lower case, one word.
    pub name: &'static str,
    /// What it does and what bounds it, in one line.
    pub about: &'static str,
    /// Unit of its work in the plural, e.g. `bytes`.
    pub unit: &'static str,
    /// What may follow its name and a colon; `None`: nothing.
    pub parameter: Option<Parameter>,
    /// Makes what the work needs before the worker has a second thread, e.g. namespaces; what it
    /// returns is kept open while the load works.
    pub prepare: Option<Prepare>,
    /// Disturbs until [`Context::stopped`], which it reads at least every 100 ms, and counts its
    /// work into [`Context::counter`] meanwhile. Runs in the load's own process, pinned to the load
    /// CPUs; threads that it starts inherit them.
    pub work: fn(&Context) -> Result<(), Failure>,
}

/// See [`Load::prepare`].
pub type Prepare = fn(&Before) -> Result<OwnedFd, Failure>;

/// What may follow the name of a load and a colon.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Whether the load cannot do without.
    pub is_needed: bool,
    /// What it is, in words.
    pub expected: &'static str,
    /// Whether a text is that. It is printed as it was written, and holds no comma and no plus.
    pub check: fn(&str) -> bool,
}

/// What a load is given before it works.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// CPUs to disturb. The process is pinned to them.
    pub cpus: &'a CpuList,
    /// Directory for files. One with a name there would stay after a SIGKILL.
    pub dir: &'a Path,
    /// What followed the colon.
    pub parameter: Option<&'a str>,
}

/// Work done, in the load's unit. Threads add in batches of a millisecond or so, so that the one
/// shared cache line is not itself the load.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
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

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a load is given.
pub struct Context<'a> {
    pub before: Before<'a>,
    /// What [`Load::prepare`] returned.
    pub held: Option<&'a OwnedFd>,
    /// Most memory that a load may use for each CPU, in bytes.
    pub memory_bytes_per_cpu: u64,
    /// Where work is counted.
    pub counter: &'a Counter,
    /// Set when the load shall end.
    pub stop: &'a AtomicBool,
    /// Makes a command that starts this binary and ends at once: the shortest process there is.
    pub no_op: &'a (dyn Fn() -> Command + Sync),
    /// Makes a command that starts another program, which ends with the thread that started it.
    pub program: &'a (dyn Fn(&Path) -> Command + Sync),
    /// Takes what the load wants the record to say of it, e.g. `2 x 256 MiB blocks`.
    pub detail: &'a (dyn Fn(&str) + Sync),
}

impl Context<'_> {
    /// Whether the load shall end.
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
        work: impl Fn(u32) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let pinned = |cpu| place::pin_thread(cpu).and_then(|()| work(cpu));
        let tasks: Vec<_> = self.before.cpus.iter().map(|cpu| move || pinned(cpu)).collect();
        self.together(tasks)
    }

    /// Runs each task in a thread of its own until all return. The first error ends all of them.
    ///
    /// # Errors
    /// The error of the first task that failed.
    pub fn together<T>(&self, tasks: Vec<T>) -> Result<(), Failure>
    where
        T: FnOnce() -> Result<(), Failure> + Send,
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
                Err(error) => Err(Failure(format!(
                    "cannot start a thread: {error}; raise `ulimit -u` or the cgroup's pids.max"
                ))),
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
    fn the_first_error_ends_all() {
        let (counter, stop) = (Counter::default(), AtomicBool::new(false));
        let cpus = CpuList::new([]);
        let ctx = Context {
            before: Before { cpus: &cpus, dir: Path::new("/tmp"), parameter: None },
            held: None,
            memory_bytes_per_cpu: 0,
            counter: &counter,
            stop: &stop,
            no_op: &|| Command::new("true"),
            program: &|path| Command::new(path),
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
