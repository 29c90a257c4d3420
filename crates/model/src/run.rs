//! What a measuring thread reports of itself, and what the threads of a traced program do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the name of a workload begins that is a thread of a program of `rtproof run`: the rest is
/// the thread's name.
pub const APPLICATION: &str = "app:";

/// The clock that a measurement is made by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// CLOCK_MONOTONIC: never set, its rate adjusted by NTP.
    #[default]
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: never set, its rate not adjusted. No timer runs on it.
    Raw,
    /// CLOCK_REALTIME: the wall clock, which can be set at any time.
    Realtime,
    /// CLOCK_BOOTTIME: as CLOCK_MONOTONIC, and goes on while the machine is suspended.
    Boottime,
    /// CLOCK_TAI: as CLOCK_REALTIME, without leap seconds.
    Tai,
}

impl Clock {
    /// Every clock, in the order of `--help`.
    pub const ALL: [Self; 5] =
        [Self::Monotonic, Self::Raw, Self::Realtime, Self::Boottime, Self::Tai];

    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Monotonic => "monotonic",
            Self::Raw => "raw",
            Self::Realtime => "realtime",
            Self::Boottime => "boottime",
            Self::Tai => "tai",
        }
    }

    /// Its name in clock_gettime(2).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::Raw => "CLOCK_MONOTONIC_RAW",
            Self::Realtime => "CLOCK_REALTIME",
            Self::Boottime => "CLOCK_BOOTTIME",
            Self::Tai => "CLOCK_TAI",
        }
    }

    /// Whether it is the one that a run has unless another is requested.
    pub fn is_monotonic(&self) -> bool {
        *self == Self::Monotonic
    }

    /// Whether it is at a fixed distance from CLOCK_MONOTONIC as long as it is not set: the kernel
    /// makes both of one count and one rate (kernel/time/timekeeping.c).
    pub const fn keeps_its_distance(self) -> bool {
        !matches!(self, Self::Raw)
    }
}

/// What measuring costs on this machine, measured before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Median cost of reading the clock, picoseconds.
    pub clock_read_ps: u64,
    /// Smallest step between two clock readings, nanoseconds.
    pub clock_step_ns: u64,
    /// clock_getres of the clock of the run, nanoseconds; 1 with high-resolution timers.
    pub clock_getres_ns: u64,
    /// Cost of recording one sample, picoseconds.
    pub record_ps: u64,
    /// Shortest period the machine can turn round: median excess of sleeps of 50 µs,
    /// nanoseconds.
    pub floor_ns: u64,
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its last wake-up was measured.
    Complete,
    /// The run was stopped.
    Stopped,
    /// Nothing emptied its results for too long: real-time threads starve the machine.
    Starved,
    /// Its CPU went offline or it was moved away from it.
    CpuLost,
    Panicked,
    /// Its workload could not go on; a note says why.
    Failed,
}

// What the threads of a running program do, as the kernel reports it: system calls, page faults,
// migrations, signals, switches. Read in `measure`, judged against the rules in `judge`.

/// One thing that a thread did, or that happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEvent {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    pub cpu: u32,
    /// Process of the thread that ran; 0: the idle task.
    pub pid: u32,
    /// The thread that ran.
    pub tid: u32,
    pub what: ProgramEventData,
    /// The user's stack, where it was sampled.
    pub stack: Option<Box<Stack>>,
}

/// What happened in a program that is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramEventData {
    /// A system call begins.
    Enter {
        number: i64,
        args: [u64; 6],
    },
    /// A system call returns.
    Exit {
        number: i64,
        result: i64,
    },
    Fault {
        address: u64,
    },
    /// The thread runs on another CPU than before.
    Migrated,
    /// The thread leaves the CPU.
    SwitchedOut {
        /// Its number as the kernel's events name it: another one than ours in a PID namespace.
        number: u32,
        /// Its priority in the kernel's numbers: below 100 is real-time, below 0 deadline.
        priority: i32,
    },
    /// The thread that ran wakes another one.
    Wakes {
        /// That one's, as in [`Self::SwitchedOut`].
        number: u32,
    },
    /// A CPU goes from one thread of the machine to another one; 0 is its idle task.
    Switched {
        from: u32,
        /// Its priority, as in [`Self::SwitchedOut`].
        from_priority: i32,
        /// Whether it could go on.
        is_runnable: bool,
        /// Thread that is switched in.
        to: u32,
        to_priority: i32,
        to_name: String,
    },
    /// The thread that ran, or an interrupt over it, wakes a thread of the machine.
    Woken {
        tid: u32,
        /// The CPU that it is to run on.
        cpu: u32,
    },
    /// A thread of the machine is moved to another CPU.
    Moved {
        tid: u32,
        cpu: u32,
    },
    /// The thread that ran has made another one ([`Self::Forked`]), which runs for the first time.
    Born {
        /// Its priority, as in [`Self::SwitchedOut`].
        priority: i32,
    },
    /// A signal is delivered to the thread.
    Signal {
        number: i32,
        /// Whether the program has a handler for it.
        is_handled: bool,
    },
    /// A monitor of the kernel reports a thread of the machine.
    Reported {
        monitor: Monitor,
        /// The thread, as in [`Self::SwitchedOut`].
        number: u32,
    },
    /// A thread or process is made.
    Forked {
        /// Process of the new thread.
        pid: u32,
        tid: u32,
        /// Process of the one that made it.
        parent_pid: u32,
        parent: u32,
    },
    /// The kernel observes the thread no longer: it has ended, or it has executed a program that
    /// may not be observed.
    Ended,
    /// A thread has a name.
    Named {
        name: String,
        /// Whether it has executed a program.
        by_exec: bool,
    },
    /// A file was mapped to be executed.
    Mapped(Mapping),
    /// Records were lost: so many, or an unknown number.
    Lost(Option<u64>),
}

/// A monitor of the kernel (Documentation/trace/rv/monitor_rtapp.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Monitor {
    /// `rtapp:pagefault`, in the thread itself and before the fault is handled.
    PageFault,
    /// `rtapp:sleep`, in the thread when it goes to sleep, or in its waker.
    Sleep,
}

impl Monitor {
    /// As the kernel names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PageFault => "rtapp:pagefault",
            Self::Sleep => "rtapp:sleep",
        }
    }
}

/// A part of a file in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub address: u64,
    pub bytes: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// Inode of the file.
    pub inode: u64,
    pub path: String,
}

/// The registers that unwinding needs, and the top of the user's stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub ip: u64,
    pub sp: u64,
    pub fp: u64,
    /// Link register; 0 where the processor has none.
    pub lr: u64,
    /// Whether the thread ran code of another width (32 or 64 bits) than rtproof: its system calls
    /// have other numbers.
    pub is_foreign: bool,
    /// Memory from the stack pointer on, as much as was sampled.
    pub dump: Vec<u8>,
}
