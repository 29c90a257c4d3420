//! The rules of a real-time program, and which of them its threads break: judged from the kernel's
//! events of all its threads ([`Tracker`]). Only what a real-time thread does is judged.

mod calls;
mod tracker;

use schemars::JsonSchema;
use serde::Serialize;

pub use calls::UNHEARD;
pub use tracker::{Found, Outside, Thread, Tracker};

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
    pub const fn instead(self) -> &'static str {
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
pub enum Kept {
    /// No breach, and everything that could show one was recorded.
    Kept,
    /// At least one breach.
    Broken,
    /// Something that could show a breach was not recorded.
    NotKnown,
}
