//! What the threads of a running program do, as the kernel reports it: system calls, page faults,
//! migrations, signals, switches. Read in `measure`, judged against the rules in `judge`.

/// One thing that a thread did, or that happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    pub cpu: u32,
    /// Process of the thread that ran; 0: the idle task.
    pub pid: u32,
    /// The thread that ran.
    pub tid: u32,
    pub what: What,
    /// The user's stack, where it was sampled.
    pub stack: Option<Box<Stack>>,
}

/// What happened in a program that is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
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
        /// Who comes.
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
        /// The monitor.
        by: Monitor,
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
    /// `rtapp:sleep`, in the thread when it goes to sleep, or in who wakes it.
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
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register; 0 where the processor has none.
    pub lr: u64,
    /// Whether the thread ran code of another width (32 or 64 bits) than rtproof: its system calls
    /// have other numbers.
    pub is_foreign: bool,
    /// Memory from the stack pointer on, as much as was sampled.
    pub dump: Vec<u8>,
}
