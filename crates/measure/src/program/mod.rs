//! What the threads of a program do: the kernel's own events of them, from before the program is
//! executed or from a moment on, inherited by all that it starts (perf_event_open(2)). No thread is
//! missed for being short, and what was lost is known.

mod calls;
mod read;

pub use calls::CALLS;

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

use read::{Reader, TracepointLayout};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use rtproof_host::{Root, tracefs};
use rtproof_model::run::ProgramEvent;

use crate::sys::perf::{self, Attr, PerfRing};

/// Purpose of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchPurpose {
    /// The rules of a real-time program.
    Rules,
    /// Holders of the locks that its threads wait for, and tasks that run meanwhile, machine-wide.
    Locks,
}

/// How one of them is opened.
struct Opened {
    source: EventSource,
    kind: Kind,
    /// Whether the user's stack is sampled.
    has_stack: bool,
}

enum Kind {
    /// A software event of the kernel, by its number.
    Software(u64),
    Trace(&'static str),
}

const PERF_COUNT_SW_CPU_MIGRATIONS: u64 = 4;

const PERF_COUNT_SW_PAGE_FAULTS: u64 = 2;

const PERF_COUNT_SW_DUMMY: u64 = 9;

/// All of them. A thread that is born while they are opened is reported only by the last: then it
/// has inherited all.
const RULES: &[Opened] = &[
    trace(EventSource::Switches, "sched/sched_switch", false),
    trace(EventSource::Births, "sched/sched_wakeup_new", false),
    trace(EventSource::Wakes, "sched/sched_waking", false),
    trace(EventSource::Enters, "raw_syscalls/sys_enter", true),
    trace(EventSource::Exits, "raw_syscalls/sys_exit", false),
    software(EventSource::Faults, PERF_COUNT_SW_PAGE_FAULTS, true),
    software(EventSource::Migrations, PERF_COUNT_SW_CPU_MIGRATIONS, true),
    trace(EventSource::Signals, "signal/signal_deliver", true),
    THREADS,
];

const LOCKS: &[Opened] = &[
    trace(EventSource::Enters, "raw_syscalls/sys_enter", true),
    trace(EventSource::Exits, "raw_syscalls/sys_exit", false),
    THREADS,
];

/// Of all threads of the machine.
const MACHINE: &[Opened] = &[
    trace(EventSource::MachineSwitches, "sched/sched_switch", false),
    trace(EventSource::MachineWakes, "sched/sched_waking", false),
    trace(EventSource::MachineMoves, "sched/sched_migrate_task", false),
];

/// The waker reports a sleep, so these are of all threads of the machine, too.
const MONITORS: &[(&str, Opened)] = &[
    ("rtapp:pagefault", trace(EventSource::MonitorFaults, "rv/error_pagefault", false)),
    ("rtapp:sleep", trace(EventSource::MonitorSleeps, "rv/error_sleep", false)),
];

const THREADS: Opened = software(EventSource::Threads, PERF_COUNT_SW_DUMMY, false);

const fn software(source: EventSource, number: u64, has_stack: bool) -> Opened {
    Opened { source, kind: Kind::Software(number), has_stack }
}

const fn trace(source: EventSource, event: &'static str, has_stack: bool) -> Opened {
    Opened { source, kind: Kind::Trace(event), has_stack }
}

const KIND_SOFTWARE: u32 = 1;

const KIND_TRACEPOINT: u32 = 2;

/// Memory of all rings together, and of one.
const RINGS_BYTES: usize = 64 << 20;

const RING_BYTES: std::ops::RangeInclusive<usize> = (512 << 10)..=(8 << 20);

impl WatchPurpose {
    const fn sources(self) -> &'static [Opened] {
        match self {
            Self::Rules => RULES,
            Self::Locks => LOCKS,
        }
    }

    /// How much of the stack is sampled: the frames of printf(3) are 2 KiB and more, those of a
    /// lock some hundred bytes.
    const fn stack_bytes(self) -> u32 {
        match self {
            Self::Rules => 8_192,
            Self::Locks => 1_024,
        }
    }
}

/// The events of a program.
#[derive(Debug)]
pub struct ProgramWatch {
    purpose: WatchPurpose,
    cpus: Vec<u32>,
    /// The events that have the ring of each CPU: of our own thread, which outlives all others.
    owners: Vec<OwnedFd>,
    rings: Vec<PerfRing>,
    /// By source: one event per thread and CPU.
    events: BTreeMap<EventSource, Vec<OwnedFd>>,
    filter: String,
    layouts: BTreeMap<&'static str, Arc<TracepointLayout>>,
    reader: Reader,
    /// Why one is not there.
    missing: BTreeMap<EventSource, String>,
    bytes: Vec<u8>,
}

impl ProgramWatch {
    /// Makes the memory for events of these CPUs; no thread is observed yet. `filter`: which system
    /// calls are reported, as the kernel's filters say it, e.g. `id != 39`; empty: all.
    pub fn new(purpose: WatchPurpose, cpus: &[u32], filter: String) -> Result<Self, String> {
        let size = (RINGS_BYTES / cpus.len().max(1)).clamp(*RING_BYTES.start(), *RING_BYTES.end());
        let size = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
        let attr = Attr {
            kind: KIND_SOFTWARE,
            config: PERF_COUNT_SW_DUMMY,
            flags: read::OWNER,
            wakeup_watermark: size as u32 / 4,
            ..common()
        };
        let (mut owners, mut rings) = (Vec::new(), Vec::new());
        for &cpu in cpus {
            let owner = perf::open(&attr, Some(0), cpu).map_err(|error| refused(&error))?;
            let ring = PerfRing::map(owner.as_fd(), size).map_err(|error| {
                format!("memory for events, {size} bytes for each CPU: {error}")
            })?;
            owners.push(owner);
            rings.push(ring);
        }
        Ok(Self {
            purpose,
            cpus: cpus.to_vec(),
            owners,
            rings,
            events: BTreeMap::new(),
            filter,
            layouts: BTreeMap::new(),
            reader: Reader::default(),
            missing: BTreeMap::new(),
            bytes: Vec::new(),
        })
    }

    /// Opens the events of a thread, and of those that it will make. Only those of
    /// [`EventSource::Threads`] are on. Whether there is such a thread.
    ///
    /// # Errors
    /// Not even threads can be observed: why, and what to do.
    pub fn add(&mut self, root: &Root, tid: u32) -> Result<bool, String> {
        for opened in self.purpose.sources() {
            if opened.source != EventSource::Threads && self.missing.contains_key(&opened.source) {
                continue;
            }
            match self.open_one(root, opened, Some(tid)) {
                Ok(is_there) if !is_there => return Ok(false),
                Ok(_) => {}
                Err(why) if opened.source == EventSource::Threads => return Err(why),
                Err(why) => self.miss(opened.source, why),
            }
        }
        Ok(true)
    }

    /// Opens the events of the whole machine that [`WatchPurpose::Locks`] needs.
    pub fn add_machine(&mut self, root: &Root) {
        for opened in MACHINE {
            if let Err(why) = self.open_one(root, opened, None) {
                self.miss(opened.source, why);
            }
        }
    }

    /// Opens the reports of monitors of the kernel, which are on.
    ///
    /// # Errors
    /// None is opened: why.
    pub fn add_monitors(&mut self, root: &Root, names: &[&str]) -> Result<(), String> {
        for (_, opened) in MONITORS.iter().filter(|(name, _)| names.contains(name)) {
            if let Err(why) = self.open_one(root, opened, None) {
                self.events.retain(|source, _| !source.is_of_monitor());
                return Err(why);
            }
        }
        Ok(())
    }

    fn miss(&mut self, source: EventSource, why: String) {
        self.events.remove(&source);
        self.missing.insert(source, why);
    }

    fn open_one(&mut self, root: &Root, opened: &Opened, tid: Option<u32>) -> Result<bool, String> {
        let (attr, layout) = self.attributes(root, opened)?;
        let filters = matches!(opened.source, EventSource::Enters | EventSource::Exits);
        for (&cpu, owner) in self.cpus.iter().zip(&self.owners) {
            let event = match perf::open(&attr, tid, cpu) {
                Ok(event) => event,
                Err(error) if error.raw_os_error() == Some(NO_THREAD) => return Ok(false),
                Err(error) => return Err(refused(&error)),
            };
            let with_path = |error: io::Error| format!("perf_event_open(2), CPU {cpu}: {error}");
            let id = perf::id(event.as_fd()).map_err(with_path)?;
            self.reader.add(id, opened.source, opened.has_stack, Arc::clone(&layout));
            perf::set_output(event.as_fd(), owner.as_fd()).map_err(with_path)?;
            if filters && !self.filter.is_empty() {
                // A kernel without filters reports them all: the judge passes over them.
                let _ = perf::set_filter(event.as_fd(), &self.filter);
            }
            self.events.entry(opened.source).or_default().push(event);
        }
        Ok(true)
    }

    /// The attributes of an event, and where its fields are.
    fn attributes(
        &mut self,
        root: &Root,
        opened: &Opened,
    ) -> Result<(Attr, Arc<TracepointLayout>), String> {
        let mut attr = common();
        let layout = match opened.kind {
            Kind::Software(number) => {
                (attr.kind, attr.config) = (KIND_SOFTWARE, number);
                attr.sample_type |= read::ADDRESS;
                Arc::default()
            }
            Kind::Trace(event) => {
                let layout = self.layout(root, event)?;
                (attr.kind, attr.config) = (KIND_TRACEPOINT, layout.id);
                attr.sample_type |= read::RAW;
                layout
            }
        };
        attr.flags |= match opened.source {
            EventSource::Threads => read::THREADS | read::INHERIT,
            EventSource::MachineSwitches
            | EventSource::MachineWakes
            | EventSource::MachineMoves => read::DISABLED,
            source if source.is_of_monitor() => read::DISABLED,
            _ => read::DISABLED | read::INHERIT,
        };
        if opened.has_stack {
            attr.sample_type |= read::REGISTERS | read::STACK;
            attr.sample_regs_user = read::REGISTERS_MASK;
            attr.sample_stack_user = self.purpose.stack_bytes();
        }
        Ok((attr, layout))
    }

    /// Where the fields of an event are: read once, as a program may have hundreds of threads.
    fn layout(
        &mut self,
        root: &Root,
        event: &'static str,
    ) -> Result<Arc<TracepointLayout>, String> {
        if let Some(layout) = self.layouts.get(event) {
            return Ok(Arc::clone(layout));
        }
        let text = tracefs::event_format(root, event).map_err(|error| error.to_string())?;
        let layout =
            TracepointLayout::parse(&text).ok_or_else(|| format!("{event}/format: unreadable"))?;
        Ok(Arc::clone(self.layouts.entry(event).or_insert_with(|| Arc::new(layout))))
    }

    /// Why events of a source are missing; `None`: they are not.
    pub fn missing(&self, source: EventSource) -> Option<&str> {
        self.missing.get(&source).map(String::as_str)
    }

    /// Switches all events on.
    pub fn enable(&mut self) {
        for (&source, events) in &self.events {
            let on = |event: &OwnedFd| perf::set_enabled(event.as_fd(), true);
            if source != EventSource::Threads
                && let Some(error) = events.iter().find_map(|event| on(event).err())
            {
                self.missing.insert(source, format!("it cannot be switched on: {error}"));
            }
        }
    }

    /// Switches them off again; threads are observed on.
    pub fn disable(&self) {
        for (_, events) in self.events.iter().filter(|(source, _)| **source != EventSource::Threads)
        {
            // One that stays on reports events that are no longer judged.
            events.iter().for_each(|event| drop(perf::set_enabled(event.as_fd(), false)));
        }
    }

    /// Waits until some have come, not longer than a time.
    pub fn wait(&self, within: Duration) {
        let mut all: Vec<PollFd<'_>> =
            self.owners.iter().map(|event| PollFd::new(event, PollFlags::IN)).collect();
        let within = Timespec {
            tv_sec: within.as_secs().cast_signed(),
            tv_nsec: i64::from(within.subsec_nanos()),
        };
        // Interrupted: the next look is early.
        let woken = poll(&mut all, Some(&within)).unwrap_or(0);
        if woken > 0 && all.iter().any(|it| it.revents().contains(PollFlags::HUP)) {
            // The thread that made them has ended: poll(2) returns at once from then on.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Takes what has come, of each CPU in its order.
    pub fn take(&mut self, mut to: impl FnMut(ProgramEvent)) {
        for (cpu, ring) in self.cpus.iter().zip(&mut self.rings) {
            self.bytes.clear();
            let may_have_lost = ring.take(&mut self.bytes);
            self.reader.read(&self.bytes, &mut to);
            if may_have_lost {
                to(read::lost(*cpu, None));
            }
        }
    }
}

/// Attributes of all events.
fn common() -> Attr {
    Attr {
        sample_period: 1,
        sample_type: read::COMMON,
        flags: read::FLAGS,
        clockid: 1,
        ..Attr::default()
    }
}

/// ESRCH: the thread has ended.
const NO_THREAD: i32 = 3;

fn refused(error: &io::Error) -> String {
    use rustix::io::Errno;
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    match number {
        Some(Errno::PERM | Errno::ACCESS) => format!(
            "perf_event_open(2): {error}: it needs root, or CAP_PERFMON and a readable tracefs; a \
             container or lockdown may forbid it as well"
        ),
        Some(Errno::MFILE | Errno::NFILE) => format!(
            "perf_event_open(2): {error}: {} events for each thread and CPU; raise the limit \
             (ulimit -n)",
            RULES.len()
        ),
        Some(Errno::NOSYS) => "the kernel was built without CONFIG_PERF_EVENTS".into(),
        _ => format!("perf_event_open(2): {error}"),
    }
}

/// Whether a process has marked a cycle (`rtproof_mark.h`).
pub fn has_marked(pid: u32) -> bool {
    crate::workloads::marks::has_marked(pid)
}

/// The policy in force for a thread: whether it is real-time, and its priority in the kernel's
/// numbers; `None`: it has ended.
pub fn class_of(tid: u32) -> Option<(bool, i32)> {
    use crate::Policy;
    let (policy, priority) = crate::sys::policy_of(tid).ok()?;
    Some(match policy {
        Policy::Deadline => (true, -1),
        Policy::Fifo | Policy::Rr => (true, 99 - i32::try_from(priority).unwrap_or(0)),
        _ => (false, 120),
    })
}

// The events of a program that already runs: its threads are listed, and may start others
// meanwhile.

/// Files that rtproof itself has open.
const OWN_FILES: u64 = 256;

/// How often everything is opened anew because a thread was started meanwhile.
const ATTEMPTS: usize = 20;

/// Observes each thread of `list`, which is asked again, and the threads that they will start. The
/// threads that are observed; one that was started meanwhile may be missing.
pub fn attach<T: Ord + Clone>(
    root: &Root,
    (purpose, filter): &(WatchPurpose, String),
    cpus: &[u32],
    tid_of: impl Fn(&T) -> u32,
    list: impl Fn() -> Vec<T>,
) -> Result<(ProgramWatch, Vec<T>), String> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let before = list();
        let count = before.len() as u64 * cpus.len() as u64 * purpose.sources().len() as u64;
        raise_limit(count + OWN_FILES);
        let mut watch = ProgramWatch::new(*purpose, cpus, filter.clone())?;
        let mut observed = Vec::new();
        for thread in &before {
            if watch.add(root, tid_of(thread))? {
                observed.push(thread.clone());
            }
        }
        // One that was started by a thread whose events were half opened has half of them: only
        // where none was started is nothing missing, and nothing reported twice.
        let is_new = list().iter().any(|thread| !before.contains(thread));
        if !is_new || attempt == ATTEMPTS {
            return Ok((watch, observed));
        }
    }
}

/// Each event is an open file. Where the limit stays, opening fails and says so.
fn raise_limit(files: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|now| now >= files) {
        return;
    }
    let limit_wanted =
        Rlimit { current: Some(files), maximum: limit.maximum.map(|of| of.max(files)) };
    let _ = setrlimit(Resource::Nofile, limit_wanted).or_else(|_| {
        let maximum = limit.maximum;
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    });
}

// The kinds of events of a program.

/// A group of events that the rules rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventSource {
    /// Threads that come and go, their names, and the files that they map.
    Threads,
    Switches,
    /// Threads that run for the first time.
    Births,
    Wakes,
    Enters,
    Exits,
    Faults,
    Migrations,
    Signals,
    /// Switches of all threads of the machine.
    MachineSwitches,
    /// Wake-ups of all threads of the machine.
    MachineWakes,
    /// Moves of all threads of the machine to another CPU.
    MachineMoves,
    /// Reports of the kernel's monitor of page faults, of all threads of the machine.
    MonitorFaults,
    /// Reports of the kernel's monitor of sleeps, of all threads of the machine.
    MonitorSleeps,
}

impl EventSource {
    /// Whether a monitor of the kernel reports.
    const fn is_of_monitor(self) -> bool {
        matches!(self, Self::MonitorFaults | Self::MonitorSleeps)
    }
}
