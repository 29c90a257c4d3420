//! The locks that a running application waits for: a thread takes the kernel's events, in the order
//! of their time, to the judge.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rtproof_host::{CpuList, Root, task};
use rtproof_judge::locks::{LockKind, LockMemory, Locks, Waits};
use rtproof_measure::{
    program::{self, CALLS, EventSource, WatchPurpose},
    thread::pin_all,
};
use rtproof_results::{LockWaits, LocksFound, launch::StackFrame};

use crate::now_ns;
use crate::rules::symbols::{ProgramSymbols, own};
use crate::rules::{Ordered, RunningThread, program_threads, thread_name};

/// Longest time between two looks at the events.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Observes the locks of a process until it is finished.
pub(super) struct Locking {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<LocksFound>,
}

impl Locking {
    /// Begins with all threads of a process, and of those that it started.
    pub(super) fn begin(
        root: &Root,
        pid: u32,
        online: &CpuList,
        housekeeping: CpuList,
    ) -> Result<Self, String> {
        // The kernel's events have its own numbers of threads.
        let namespace = root.read_link("/proc/self/ns/pid");
        if namespace.value().map(String::as_str) != Some("pid:[4026531836]") {
            return Err("in a PID namespace the kernel's events have other thread numbers; run \
                        rtproof on the host"
                .into());
        }
        // What is observed delays the whole machine, an ordinary application most of all. A thread
        // that cannot be asked may be a real-time one.
        let is_real_time = |of: &RunningThread| program::class_of(of.tid).is_none_or(|(is, _)| is);
        if !program_threads(root, pid).iter().any(is_real_time) {
            return Err("no thread of the program had a real-time policy when rtproof came".into());
        }
        if has_other_width(root, pid) {
            return Err(
                "the program runs code of another width (32 or 64 bits) than rtproof, whose \
                        system calls differ; take the rtproof of that width"
                    .into(),
            );
        }
        let numbers = CALLS.iter().filter(|(_, name)| *name == "futex").map(|(number, _)| *number);
        let numbers: Vec<i64> = numbers.collect();
        let list = || program_threads(root, pid);
        let is_futex: Vec<_> = numbers.iter().map(|number| format!("id == {number}")).collect();
        let purpose = (WatchPurpose::Locks, is_futex.join(" || "));
        let tid = |of: &RunningThread| of.tid;
        let (mut watch, found) = program::attach(root, &purpose, online.as_slice(), tid, list)?;
        watch.add_machine(root);
        let needs = [
            EventSource::Enters,
            EventSource::Exits,
            EventSource::MachineSwitches,
            EventSource::MachineWakes,
        ];
        if let Some(why) = needs.iter().find_map(|source| watch.missing(*source)) {
            return Err(why.to_owned());
        }
        let mut locks = Locks::new(numbers);
        for of in &found {
            locks.find(of.pid, of.tid, thread_name(of));
        }
        watch.enable();
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let observe = move || {
            // Best effort: where there is no other CPU, it shares one.
            let _ = pin_all(housekeeping.as_slice());
            let mut symbols = ProgramSymbols::default();
            symbols.find(&found);
            Observing { events: Ordered::new(watch), locks, symbols }.run(&flag)
        };
        let thread = thread::Builder::new().name("locks".into()).spawn(observe);
        let thread = thread.map_err(|error| format!("a thread to take events: {error}"))?;
        Ok(Self { is_over, thread })
    }

    pub(super) fn finish(self) -> LocksFound {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| LocksFound {
            unknown: vec!["the thread that takes the events failed".into()],
            ..LocksFound::default()
        })
    }
}

/// Whether a process runs code of another width than ours. The numbers in its auxv are of its
/// width: the first is small, so that its high half is 0 where it has one.
fn has_other_width(root: &Root, pid: u32) -> bool {
    let auxv = root.read_bytes(&format!("/proc/{pid}/auxv"));
    let high = auxv.value().and_then(|bytes| bytes.get(4..8));
    high.is_some_and(|high| (high == [0; 4]) != cfg!(target_pointer_width = "64"))
}

struct Observing {
    events: Ordered,
    locks: Locks,
    symbols: ProgramSymbols,
}

impl Observing {
    fn run(mut self, is_over: &AtomicBool) -> LocksFound {
        let mut before_ns = 0;
        while !is_over.load(Ordering::Relaxed) {
            self.events.watch.wait(POLL_INTERVAL);
            let at_ns = now_ns();
            self.events.take();
            self.judge(before_ns);
            self.locks.read_memory(&mut Live);
            before_ns = at_ns;
        }
        self.events.watch.disable();
        self.events.take();
        self.judge(u64::MAX);
        let Self { events, locks, mut symbols } = self;
        let (waits, mut others) = locks.finish();
        let unknown = events.unknown();
        let is_whole = unknown.is_empty();
        let waits = waits.into_iter().map(|of| placed(of, &mut symbols, is_whole));
        let (waits, not_sure): (Vec<_>, Vec<_>) =
            waits.partition(|of| of.kind != LockKind::NotSure);
        others.not_sure = not_sure.iter().map(|of| of.count).sum();
        others.not_sure_worst_ns = not_sure.iter().map(|of| of.worst_ns).max().unwrap_or(0);
        LocksFound { waits, others, unknown }
    }

    fn judge(&mut self, before_ns: u64) {
        for event in self.events.before(before_ns) {
            self.symbols.learn(&event);
            self.locks.take(event);
        }
    }
}

/// With the place where the program takes the lock.
fn placed(of: Waits, symbols: &mut ProgramSymbols, is_whole: bool) -> LockWaits {
    let addresses = of.stack.as_ref().map(|stack| symbols.unwind(of.pid, stack).0);
    let frames = addresses.unwrap_or_default().into_iter();
    let frames: Vec<_> = frames.flat_map(|address| symbols.frames(of.pid, address)).collect();
    let kind = match of.kind {
        LockKind::NotSure | LockKind::Used => frames.iter().find_map(library).unwrap_or(of.kind),
        kind => kind,
    };
    LockWaits {
        pid: of.pid,
        address: of.address,
        kind,
        is_certain: is_whole && !matches!(kind, LockKind::NotSure | LockKind::Used),
        waiter: of.waiter,
        holder: of.holder,
        count: of.count,
        sum_ns: of.sum_ns,
        worst_ns: of.worst_ns,
        inversion_ns: of.holder_time.inversion_ns(),
        hands: of.hands,
        holder_time: of.holder_time,
        at: own(&frames).cloned(),
    }
}

/// The library whose lock a frame waits for: glibc's function for mutexes waits for this value only
/// of those without priority inheritance; Rust's are all without.
fn library(frame: &StackFrame) -> Option<LockKind> {
    let module = frame.module.as_deref().and_then(|path| path.rsplit('/').next())?;
    let function = frame.function.as_deref()?;
    let is_glibc = ["libc.so.6", "libpthread"].iter().any(|of| module.starts_with(of));
    let names = ["pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_mutex_clocklock"];
    if is_glibc && names.contains(&function.trim_start_matches('_')) {
        return Some(LockKind::Pthread);
    }
    // Mangled in one of two ways: `std::sys::...Mutex::lock_...`, `<std::sys::...Mutex>::lock_...`.
    let is_rust = function.trim_start_matches('<').starts_with("std::sys::")
        && function.contains("::Mutex")
        && function.ends_with("::lock_contended");
    is_rust.then_some(LockKind::Rust)
}

/// The memory of the processes.
struct Live;

impl LockMemory for Live {
    fn words(&mut self, tid: u32, address: u64) -> Option<[u32; 5]> {
        task::words_of(tid, address)
    }
}
