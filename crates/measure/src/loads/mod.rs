//! Loads: what disturbs the machine while the measured threads are measured.
//!
//! A latency without a load is a latency of an idle machine and proves nothing. A load runs in a
//! process of its own, so that its page faults, its `mmap_lock` and its TLB shootdowns do not touch
//! the measuring process; it has the normal scheduling policy, keeps within a budget of memory and
//! disk, says how much work it did, and ends with rtproof whatever happens to rtproof. How that is
//! done is in [`runner`]. To add a load: copy what is in `_template.rs` into the file of its
//! subject, fill it in, add one line to [`LOADS`].

mod cpu;
mod disk;
mod net;
pub mod process;
pub mod runner;
pub mod spec;
#[cfg(test)]
#[path = "_template.rs"]
mod template;
pub mod worker;
mod wrap;

pub use net::{NAMED, NamedLoad};
pub use process::LoadError;
pub use runner::{LoadOutcome, Runner, RunningLoad};
pub use spec::{LoadSet, LoadSettings, LoadSpec, SpecError};

pub use crate::Failure;

use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use rtproof_host::CpuList;

use crate::apart::{self, Echo};

/// Every load, in the order of the reference page.
pub const LOADS: &[&Load] = &[
    // One line each.
    &cpu::CPU,
    &cpu::MEMORY,
    &net::NET,
    &net::PING,
    &net::TRAFFIC,
    &disk::DISK,
    &disk::FILES_LOAD,
    &cpu::FORK,
    &cpu::MESSAGES,
    &cpu::COMPILE,
    &cpu::IDLE,
];

/// The load of that name.
pub fn find_load(name: &str) -> Option<&'static Load> {
    LOADS.iter().copied().find(|load| load.name == name)
}

// A flood of ICMP echo requests, as ping(8) -f makes it: the next ones as soon as the replies are
// there.

/// Data of a request in bytes: what ping sends, and what fills an Ethernet frame.
const DATA_BYTES: [usize; 2] = [56, 1472];

/// Requests that are under way at once.
const IN_FLIGHT: usize = 32;

/// Longest wait for a reply before the next requests, as of ping -f.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// A peer that has not replied for this long does not.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Sends and counts replies until the load shall end.
///
/// # Errors
/// The peer does not reply, or a request cannot be sent.
fn run_flood(echo: &Echo, ctx: &LoadContext) -> Result<(), Failure> {
    let mut requests = DATA_BYTES.map(|bytes| echo.request(bytes));
    let (mut number, mut heard) = (0_u16, Instant::now());
    while !ctx.stopped() {
        for _ in 0..IN_FLIGHT {
            number = number.wrapping_add(1);
            let request = &mut requests[usize::from(number) % DATA_BYTES.len()];
            apart::set_number(request, number);
            match echo.send(request) {
                Ok(()) => {}
                // A full queue is what a flood is for.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => break,
                Err(error) => return Err(format!("{}: {error}", echo.peer()).into()),
            }
        }
        let replies = replies(echo)?;
        ctx.counter.add(replies);
        if replies > 0 {
            heard = Instant::now();
        } else if heard.elapsed() > SILENCE_MAX {
            return Err(Failure(format!(
                "{} has not replied for {} s; does it answer `ping`?",
                echo.peer(),
                SILENCE_MAX.as_secs()
            )));
        }
    }
    Ok(())
}

/// Takes what has come, and waits for it where nothing has.
fn replies(echo: &Echo) -> Result<u64, Failure> {
    let socket = echo.socket();
    let mut ready = [PollFd::new(&socket, PollFlags::IN)];
    match rustix::event::poll(&mut ready, Some(&WAIT)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(format!("{}: {error}", echo.peer()).into()),
    }
    let mut replies = 0;
    let mut buffer = [0; apart::READ_BYTES];
    // More than were sent: a peer that sends by itself must not keep this loop.
    for _ in 0..2 * IN_FLIGHT {
        match echo.receive(&mut buffer) {
            Ok(data) => replies += u64::from(data.is_some()),
            Err(Errno::AGAIN) => break,
            // An earlier request was answered with an error.
            Err(Errno::INTR | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::CONNREFUSED) => {}
            Err(error) => return Err(format!("{}: {error}", echo.peer()).into()),
        }
    }
    Ok(replies)
}

// A load: what it is, what it gets, where it counts.

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
    pub parameter: Option<LoadParameter>,
    /// Makes what the work needs before the worker has a second thread, e.g. namespaces; what it
    /// returns is kept open while the load works.
    pub prepare: Option<Prepare>,
    /// Disturbs until [`LoadContext::stopped`], which it reads at least every 100 ms, and counts
    /// its work into [`LoadContext::counter`] meanwhile. Runs in the load's own process, pinned to
    /// the load CPUs; threads that it starts inherit them.
    pub work: fn(&LoadContext) -> Result<(), Failure>,
}

/// See [`Load::prepare`].
pub type Prepare = fn(&LoadInput) -> Result<OwnedFd, Failure>;

/// What may follow the name of a load and a colon.
#[derive(Clone, Copy, Debug)]
pub struct LoadParameter {
    /// Whether the load cannot do without.
    pub is_needed: bool,
    /// What it is, in words.
    pub expected: &'static str,
    /// Whether a text is that. It is printed as it was written, and holds no comma and no plus.
    pub check: fn(&str) -> bool,
}

/// What a load is given before it works.
#[derive(Clone, Copy, Debug)]
pub struct LoadInput<'a> {
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
pub struct WorkCounter(AtomicU64);

impl WorkCounter {
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
pub struct LoadContext<'a> {
    pub before: LoadInput<'a>,
    /// What [`Load::prepare`] returned.
    pub held: Option<&'a OwnedFd>,
    /// Most memory that a load may use for each CPU, in bytes.
    pub memory_bytes_per_cpu: u64,
    /// Where work is counted.
    pub counter: &'a WorkCounter,
    /// Set when the load shall end.
    pub stop: &'a AtomicBool,
    /// Makes a command that starts this binary and ends at once: the shortest process there is.
    pub no_op: &'a (dyn Fn() -> Command + Sync),
    /// Makes a command that starts another program, which ends with the thread that started it.
    pub program: &'a (dyn Fn(&Path) -> Command + Sync),
    /// Takes what the load wants the record to say of it, e.g. `2 x 256 MiB blocks`.
    pub detail: &'a (dyn Fn(&str) + Sync),
}

impl LoadContext<'_> {
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
        let pinned = |cpu| pin_thread(cpu).and_then(|()| work(cpu));
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

// Where and how a worker runs: on exactly the load CPUs, never with a real-time policy, first in
// line when memory runs out. Settled by the worker itself, because nothing of it can be set
// between fork and exec without unsafe code, and because it must not inherit the place of its
// parent.

/// Real-time policies by number: FIFO, RR, DEADLINE (linux/sched.h).
const REAL_TIME: [u32; 3] = [1, 2, 6];

/// Pins the calling thread, and what it starts from now on, to exactly these CPUs.
///
/// # Errors
/// The list is empty, or the kernel does not give all of its CPUs.
fn pin(cpus: &CpuList) -> Result<(), Failure> {
    if cpus.is_empty() {
        return Err("no load CPUs: a load needs at least one, e.g. 0".into());
    }
    let mut wanted = CpuSet::new();
    for cpu in cpus.iter() {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(Failure(format!(
                "load CPU {cpu}: at most CPU {} can be used",
                CpuSet::MAX_CPU - 1
            )));
        }
        wanted.set(cpu as usize);
    }
    let plural = if cpus.len() == 1 { "" } else { "s" };
    let advice = "use CPUs that are online (/sys/devices/system/cpu/online) and that this session \
                  may use (Cpus_allowed_list in /proc/self/status)";
    sched_setaffinity(None, &wanted)
        .map_err(|error| format!("cannot run on the load CPU{plural} {cpus}: {error}; {advice}"))?;
    let given = sched_getaffinity(None).map_err(|error| format!("affinity: {error}"))?;
    if given != wanted {
        let given = (0u32..).take(CpuSet::MAX_CPU).filter(|&cpu| given.is_set(cpu as usize));
        let given = CpuList::new(given);
        return Err(Failure(format!(
            "load CPU{plural} {cpus} wanted, the kernel gives {given}; {advice}"
        )));
    }
    Ok(())
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// The kernel does not give it.
fn pin_thread(cpu: u32) -> Result<(), Failure> {
    pin(&CpuList::new([cpu]))
}

/// Settles the calling process before it starts a thread.
///
/// # Errors
/// It has a real-time policy, or cannot have the load CPUs.
fn settle(name: &str, cpus: &CpuList) -> Result<(), Failure> {
    // Traces and ps show the load's name: `rtproof-memory`, not the `exe` of /proc/self/exe.
    set_name(name);
    if let Some(policy) = own_process().map(|own| own.policy).filter(|p| REAL_TIME.contains(p)) {
        return Err(Failure(format!(
            "a load must not be real-time and inherited policy {policy} (SCHED_OTHER is 0): start \
             it from a SCHED_OTHER thread, or with reset-on-fork"
        )));
    }
    pin(cpus)?;
    sacrifice();
    Ok(())
}

/// Names the calling thread `rtproof-NAME`, cut to the kernel's 15 bytes.
fn set_name(name: &str) {
    let name: String = format!("rtproof-{name}").chars().take(15).collect();
    if let Ok(name) = std::ffi::CString::new(name) {
        // A name is a help to the reader, not a condition.
        let _ = rustix::thread::set_name(&name);
    }
}

/// Where memory runs out, the kernel shall end this process and not the user's.
#[expect(clippy::disallowed_methods, reason = "this process's own setting, not the machine's")]
pub(crate) fn sacrifice() {
    // Raising one's own score needs no privilege; without /proc it stays as it is.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

// A worker's own process and the processes below it, from /proc/PID/stat: to identify and end
// them, and how much CPU time they used, to know that they worked. The worker is a subreaper, so
// that descendants whose parents have ended, and those with sessions of their own, stay below it.

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    /// Scheduling policy by its number.
    policy: u32,
    /// CPU time of itself, in ticks.
    used_ticks: u64,
    /// CPU time of all below it that were waited for, in ticks.
    waited_ticks: u64,
}

/// The calling process; `None` without /proc.
fn own_process() -> Option<Process> {
    parse(&text("self")?)
}

/// Every process below the calling one. Empty without /proc.
fn descendants() -> Vec<Process> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    below(own, &all())
}

/// CPU time used by everything below the calling process so far, ended or not, in milliseconds.
fn cpu_time_ms() -> u64 {
    let ended = own_process().map_or(0, |own| own.waited_ticks);
    let live: u64 = descendants().iter().map(|p| p.used_ticks + p.waited_ticks).sum();
    (ended + live) * 1000 / rustix::param::clock_ticks_per_second().max(1)
}

#[expect(clippy::disallowed_methods, reason = "this tool's own children, not the machine")]
fn text(pid: &str) -> Option<String> {
    // A command name need not be UTF-8.
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[expect(clippy::disallowed_methods, reason = "this tool's own children, not the machine")]
fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
    pids.filter_map(|pid| parse(&text(&pid)?)).collect()
}

/// Those of `all` that are below `top`.
fn below(top: i32, all: &[Process]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![top];
    while let Some(parent) = parents.pop() {
        // Taken out, so that a list read while process numbers were reused cannot lead in a circle.
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// proc_pid_stat(5). The name in parentheses may hold anything, so the fields count from the last
/// one.
fn parse(stat: &str) -> Option<Process> {
    let (pid, _) = stat.split_once(" (")?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 of the manual page is the first after the name.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Process {
        pid: pid.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        policy: u32::try_from(number(41)?).ok()?,
        used_ticks: number(14)? + number(15)?,
        waited_ticks: number(16)? + number(17)?,
    })
}

#[cfg(test)]
mod built_in_tests {
    use std::{
        path::Path,
        process::Command,
        sync::atomic::{AtomicBool, Ordering},
    };

    use rtproof_host::CpuList;

    use super::*;

    #[test]
    fn names_are_found_and_differ() {
        for load in LOADS {
            assert_eq!(find_load(load.name).map(|load| load.name), Some(load.name));
            assert!(load.name.chars().all(|c| c.is_ascii_lowercase()), "{}", load.name);
            assert!(!load.about.is_empty() && !load.about.contains('\n'), "{}", load.name);
            assert!(!load.unit.is_empty(), "{}", load.name);
            assert_eq!(LOADS.iter().filter(|other| other.name == load.name).count(), 1);
        }
        assert!(find_load("nothing").is_none());
    }

    #[test]
    fn the_template_works_and_stops() {
        let (counter, stop) = (WorkCounter::default(), AtomicBool::new(false));
        let cpus = CpuList::new([0]);
        let ctx = LoadContext {
            before: LoadInput { cpus: &cpus, dir: Path::new("/tmp"), parameter: None },
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

#[cfg(test)]
mod load_tests {
    use super::*;

    #[test]
    fn the_first_error_ends_all() {
        let (counter, stop) = (WorkCounter::default(), AtomicBool::new(false));
        let cpus = CpuList::new([]);
        let ctx = LoadContext {
            before: LoadInput { cpus: &cpus, dir: Path::new("/tmp"), parameter: None },
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

#[cfg(test)]
mod place_tests {
    use super::*;

    #[test]
    fn impossible_cpus_are_named() {
        assert!(pin(&CpuList::default()).unwrap_err().0.contains("at least one"));
        let error = pin(&CpuList::new([8191])).unwrap_err();
        assert!(error.0.contains("8191") && error.0.contains("1023"), "{error}");
        let error = pin(&CpuList::new([0, 1022])).unwrap_err();
        assert!(error.0.contains("0,1022") && error.0.contains("gives 0;"), "{error}");
        let error = pin_thread(1022).unwrap_err();
        assert!(error.0.contains("online"), "{error}");
    }
}

#[cfg(test)]
mod tree_tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, policy: 0, used_ticks: 0, waited_ticks: 0 }
    }

    #[test]
    fn reads_a_line_whatever_the_name_holds() {
        let line = "42 (a ) S 7 (b) R 7 42 42 0 -1 4194304 1 2 3 4 5 6 70 8 20 0 1 0 99 1 2 3 4 5 \
                    6 7 8 9 10 11 12 13 14 15 17 1 0 6 0 0 0\n";
        let expected = Process { used_ticks: 11, waited_ticks: 78, policy: 6, ..process(42, 7) };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("42 (short) R 7\n"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn finds_all_below_and_survives_a_circle() {
        let all = [process(2, 1), process(3, 2), process(4, 3), process(5, 1), process(6, 5)];
        let pids: Vec<_> = below(2, &all).iter().map(|p| p.pid).collect();
        assert_eq!(pids, [3, 4]);
        assert_eq!(below(7, &[process(7, 8), process(8, 7)]).len(), 2);
    }

    #[test]
    fn this_process_is_there_and_not_real_time() {
        let own = own_process().unwrap();
        assert_eq!(u32::try_from(own.pid).unwrap(), std::process::id());
        assert_eq!(own.policy, 0);
    }
}
