//! The rules of a real-time program, and which of them its threads break: judged from the kernel's
//! events of all its threads ([`Tracker`]). Only what a real-time thread does is judged.

mod tracker;

pub use tracker::{Outside, RuleBreach, TrackedThread, Tracker};

use schemars::JsonSchema;
use serde::Serialize;

/// A rule of real-time programs that `run --rules` watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    PageFault,
    /// No page fault of the stack.
    StackFault,
    /// No memory taken or given back.
    Memory,
    /// No call that may block or takes a lock of others.
    Blocking,
    /// No sleep on relative time.
    RelativeSleep,
    /// No sleep on a clock that can be set.
    SettableClock,
    /// No wait on a lock without priority inheritance.
    Lock,
    /// No write to terminal, disk or log.
    Output,
    /// No `sched_yield`.
    Yield,
    Migration,
    Signal,
    /// Class, priority and CPUs stay as intended.
    Scheduling,
    /// No process inherits the real-time class.
    Inheritance,
    /// Nothing else that the kernel's own monitors report.
    KernelMonitor,
}

impl Rule {
    /// Those of every kernel, in the order of the report; [`Self::KernelMonitor`] comes after them,
    /// where the kernel has monitors.
    pub const ALL: [Self; 13] = [
        Self::PageFault,
        Self::StackFault,
        Self::Memory,
        Self::Blocking,
        Self::RelativeSleep,
        Self::SettableClock,
        Self::Lock,
        Self::Output,
        Self::Yield,
        Self::Migration,
        Self::Signal,
        Self::Scheduling,
        Self::Inheritance,
    ];

    /// As it is written for the user and in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::PageFault => "page-fault",
            Self::StackFault => "stack-fault",
            Self::Memory => "memory",
            Self::Blocking => "blocking",
            Self::RelativeSleep => "relative-sleep",
            Self::SettableClock => "settable-clock",
            Self::Lock => "lock",
            Self::Output => "output",
            Self::Yield => "yield",
            Self::Migration => "migration",
            Self::Signal => "signal",
            Self::Scheduling => "scheduling",
            Self::Inheritance => "inheritance",
            Self::KernelMonitor => "kernel-monitor",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::PageFault => "no page fault",
            Self::StackFault => "no page fault of the stack",
            Self::Memory => "no memory taken or given back",
            Self::Blocking => "no system call that may block or takes a lock of others",
            Self::RelativeSleep => "no sleep on relative time",
            Self::SettableClock => "no sleep on a clock that can be set",
            Self::Lock => "no wait on a lock without priority inheritance",
            Self::Output => "no write to terminal, disk or log",
            Self::Yield => "no sched_yield",
            Self::Migration => "no move to another CPU",
            Self::Signal => "no signal handler in a real-time thread",
            Self::Scheduling => "class, priority and CPUs stay as intended",
            Self::Inheritance => "no process inherits the real-time class",
            Self::KernelMonitor => "nothing else that the kernel's own monitors report",
        }
    }

    /// What to do instead.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::PageFault => {
                "before it is ready: mlockall(MCL_CURRENT | MCL_FUTURE), and write once to each \
                 page that it will use; no fork after"
            }
            Self::StackFault => {
                "before it is ready: mlockall, and write once to as much stack as the deepest call \
                 needs"
            }
            Self::Memory => {
                "take all memory before it is ready; mallopt(M_TRIM_THRESHOLD, -1) and \
                 mallopt(M_MMAP_MAX, 0) keep the heap"
            }
            Self::Blocking => {
                "let an ordinary thread do it; pass the data through a lock-free queue"
            }
            Self::RelativeSleep => {
                "clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, ...) to the next due time"
            }
            Self::SettableClock => "CLOCK_MONOTONIC; for conditions pthread_condattr_setclock",
            Self::Lock => {
                "pthread_mutexattr_setprotocol(PTHREAD_PRIO_INHERIT), or no lock shared with \
                 threads of lower priority"
            }
            Self::Output => "push to a lock-free queue; let an ordinary thread write",
            Self::Yield => "sleep to the next due time, or wait for the event",
            Self::Migration => "one CPU for each real-time thread: --cpus, or its own affinity",
            Self::Signal => {
                "block signals in real-time threads; let an ordinary thread take them (sigwait)"
            }
            Self::Scheduling => "set class, priority and CPUs once, before it is ready",
            Self::Inheritance => {
                "SCHED_RESET_ON_FORK, or start processes from an ordinary thread before it is ready"
            }
            Self::KernelMonitor => {
                "sleep with clock_nanosleep to an absolute time, on a futex or in epoll_wait, and \
                 be woken by a thread of equal or higher priority"
            }
        }
    }
}

/// Whether a rule was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compliance {
    /// No breach, and everything that could show one was recorded.
    Kept,
    /// At least one breach.
    Broken,
    /// Something that could show a breach was not recorded.
    NotKnown,
}

// System calls: which may be made by a real-time thread in its cycle, and why others may not.

/// What a system call is to the rules, by its name and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallRule {
    /// Bounded, and without a lock of others; or a wait for work on an absolute, steady clock.
    Clean,
    /// A breach, and why.
    Breach(Rule, &'static str),
    /// Waits on a lock without priority inheritance, where it waits at all.
    Lock,
    /// Writes to the descriptor that is its first argument.
    Writes,
    Reads,
    /// Makes a thread or a process.
    Makes,
    /// Sets how the thread of its first argument is scheduled.
    Schedules,
}

/// Calls that are not recorded at all, however often they are made.
pub const UNHEARD: &[&str] = &[
    "clock_gettime",
    "clock_getres",
    "gettimeofday",
    "time",
    "getpid",
    "gettid",
    "getppid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getcpu",
    "rt_sigreturn",
    "rt_sigprocmask",
    "sched_getscheduler",
    "sched_getparam",
    "sched_getaffinity",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "set_robust_list",
    "set_tid_address",
    "sigaltstack",
];

const MEMORY: &[&str] = &[
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "madvise",
    "process_madvise",
    "mprotect",
    "pkey_mprotect",
    "mlock",
    "mlock2",
    "munlock",
    "mlockall",
    "munlockall",
    "shmat",
    "shmdt",
    "remap_file_pages",
    "mbind",
    "move_pages",
    "migrate_pages",
];

const DISK: &[&str] = &[
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "msync",
    "sync_file_range",
    "fallocate",
    "ftruncate",
    "truncate",
    "syslog",
];

/// Of CLOCK_REALTIME, CLOCK_REALTIME_ALARM and CLOCK_TAI: what sets the time moves the sleep.
const fn is_settable(clock: u64) -> bool {
    matches!(clock as i32, 0 | 8 | 11)
}

fn call(name: &str, args: &[u64; 6]) -> CallRule {
    let relative = CallRule::Breach(Rule::RelativeSleep, "it waits for a time from now on");
    match name {
        _ if UNHEARD.contains(&name) => CallRule::Clean,
        "exit" | "exit_group" | "restart_syscall" | "rseq" | "pause" | "rt_sigsuspend" => {
            CallRule::Clean
        }
        "timer_settime" | "timerfd_settime" | "timer_getoverrun" | "timerfd_gettime" => {
            CallRule::Clean
        }
        "sched_yield" => CallRule::Breach(Rule::Yield, "who runs next is not said"),
        "nanosleep" => relative,
        "clock_nanosleep" if args[1] & 1 == 0 => relative,
        "clock_nanosleep" if is_settable(args[0]) => {
            CallRule::Breach(Rule::SettableClock, "its clock can be set")
        }
        "clock_nanosleep" => CallRule::Clean,
        "epoll_wait" | "epoll_pwait" => timeout(args[3] as i32),
        "poll" => timeout(args[2] as i32),
        "ppoll" | "rt_sigtimedwait" if args[2] == 0 => CallRule::Clean,
        "select" | "pselect6" if args[4] == 0 => CallRule::Clean,
        "epoll_pwait2" if args[3] == 0 => CallRule::Clean,
        "ppoll" | "rt_sigtimedwait" | "select" | "pselect6" | "epoll_pwait2" => relative,
        "futex" => futex(args),
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => CallRule::Writes,
        // To a terminal they are output, to a driver whatever that does.
        "ioctl" => CallRule::Writes,
        "read" | "readv" | "pread64" | "preadv" | "preadv2" => CallRule::Reads,
        "clone" | "clone3" | "fork" | "vfork" => CallRule::Makes,
        "sched_setscheduler" | "sched_setparam" | "sched_setattr" | "sched_setaffinity" => {
            CallRule::Schedules
        }
        _ if MEMORY.contains(&name) => {
            CallRule::Breach(Rule::Memory, "it changes the memory of the process, under its lock")
        }
        _ if DISK.contains(&name) => CallRule::Breach(Rule::Output, "it waits for a disk or a log"),
        _ => CallRule::Breach(
            Rule::Blocking,
            "it is not among the calls that are known to be bounded and to take no lock of others",
        ),
    }
}

const fn timeout(milliseconds: i32) -> CallRule {
    match milliseconds {
        // Without an end it waits for an event, which may be the work.
        i32::MIN..=0 => CallRule::Clean,
        _ => CallRule::Breach(Rule::RelativeSleep, "it waits for a time from now on"),
    }
}

/// Of `futex`: FUTEX_CMD_MASK leaves private and clock out.
fn futex(args: &[u64; 6]) -> CallRule {
    const WAIT: u64 = 0;
    const WAIT_BITSET: u64 = 9;
    const CLOCK_REALTIME: u64 = 256;
    /// The C library's and Rust's locks wait for this value: locked, with waiters.
    const LOCKED: u64 = 2;
    let (operation, has_time) = (args[1] & 0x7f, args[3] != 0);
    match operation {
        WAIT | WAIT_BITSET if args[2] & 0xffff_ffff == LOCKED => CallRule::Lock,
        WAIT if has_time => {
            CallRule::Breach(Rule::RelativeSleep, "it waits for a time from now on")
        }
        WAIT_BITSET if has_time && args[1] & CLOCK_REALTIME != 0 => {
            CallRule::Breach(Rule::SettableClock, "its clock can be set")
        }
        // A condition variable, a semaphore: waits for another thread, which may be the work.
        _ => CallRule::Clean,
    }
}

/// What reading from or writing to a descriptor is; `target` as /proc/PID/fd names it.
fn descriptor(number: u64, target: Option<&str>, reads: bool) -> CallRule {
    let of = target.unwrap_or_default();
    let is_terminal = of.starts_with("/dev/pts/") || of.starts_with("/dev/tty");
    match of {
        "anon_inode:[timerfd] settable" => {
            CallRule::Breach(Rule::SettableClock, "the clock of its timer can be set")
        }
        _ if of.starts_with("anon_inode:[timerfd]") || of.starts_with("anon_inode:[eventfd]") => {
            CallRule::Clean
        }
        "anon_inode:[signalfd]" if reads => CallRule::Clean,
        _ if !reads && (number == 1 || number == 2) => CallRule::Breach(
            Rule::Output,
            "standard output waits for a terminal, a disk or a reader",
        ),
        _ if is_terminal || of == "/dev/console" || of == "/dev/kmsg" => {
            CallRule::Breach(Rule::Output, "it waits for a terminal")
        }
        _ if of.starts_with('/')
            && !of.starts_with("/dev/")
            && !of.starts_with("/proc/")
            && !reads =>
        {
            CallRule::Breach(Rule::Output, "a file waits for its lock, for memory and for a disk")
        }
        _ => CallRule::Breach(Rule::Blocking, "it may wait for the other side, a lock or a device"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_judged_by_its_arguments() {
        let rule = |name: &str, args: [u64; 6]| match call(name, &args) {
            CallRule::Breach(rule, _) => Some(rule),
            CallRule::Clean => None,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(rule("clock_nanosleep", [1, 1, 0, 0, 0, 0]), None);
        assert_eq!(rule("clock_nanosleep", [1, 0, 0, 0, 0, 0]), Some(Rule::RelativeSleep));
        assert_eq!(rule("clock_nanosleep", [0, 1, 0, 0, 0, 0]), Some(Rule::SettableClock));
        assert_eq!(rule("poll", [0, 0, u64::from(u32::MAX), 0, 0, 0]), None);
        assert_eq!(rule("poll", [0, 0, 5, 0, 0, 0]), Some(Rule::RelativeSleep));
        assert_eq!(rule("futex", [0, 6 | 128, 0, 0, 0, 0]), None, "priority inheritance");
        assert_eq!(call("futex", &[0, 128, 2, 0, 0, 0]), CallRule::Lock);
        assert_eq!(rule("futex", [0, 9 | 128 | 256, 0, 7, 0, 0]), Some(Rule::SettableClock));
        assert_eq!(rule("mmap", [0; 6]), Some(Rule::Memory));
        assert_eq!(rule("a_call_of_the_future", [0; 6]), Some(Rule::Blocking));
    }

    #[test]
    fn a_descriptor_is_judged_by_its_target() {
        let rule = |number, target: Option<&str>, reads| match descriptor(number, target, reads) {
            CallRule::Breach(rule, _) => Some(rule),
            _ => None,
        };
        assert_eq!(rule(4, Some("anon_inode:[timerfd]"), true), None);
        assert_eq!(rule(4, Some("anon_inode:[timerfd] settable"), true), Some(Rule::SettableClock));
        assert_eq!(rule(1, Some("/dev/null"), false), Some(Rule::Output));
        assert_eq!(rule(5, Some("/dev/pts/3"), false), Some(Rule::Output));
        assert_eq!(rule(5, Some("/var/log/x"), false), Some(Rule::Output));
        assert_eq!(rule(5, Some("socket:[7]"), true), Some(Rule::Blocking));
        assert_eq!(rule(5, None, true), Some(Rule::Blocking), "not known is not clean");
    }
}
