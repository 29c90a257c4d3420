//! What the threads of a program do: the kernel's own events of them, from before the program is
//! executed, inherited by all that it starts (perf_event_open(2)). No thread is missed for being
//! short, and what was lost is known.

mod calls;
mod read;
mod source;

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd as _, OwnedFd},
    time::Duration,
};

use rtproof_host::{Root, tracefs};
use rtproof_model::program::Happening;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use calls::CALLS;
pub use source::Source;

use self::read::{Layout, Reader};
use crate::sys::perf::{self, Attr, Ring};

/// How one of them is opened.
struct Opened {
    source: Source,
    kind: Kind,
    /// Whether the user's stack is sampled.
    has_stack: bool,
}

enum Kind {
    /// A software event of the kernel, by its number.
    Software(u64),
    /// A tracepoint.
    Trace(&'static str),
}

const PERF_COUNT_SW_CPU_MIGRATIONS: u64 = 4;
const PERF_COUNT_SW_PAGE_FAULTS: u64 = 2;
const PERF_COUNT_SW_DUMMY: u64 = 9;

/// All of them; the first has the ring of its CPU.
const SOURCES: &[Opened] = &[
    software(Source::Threads, PERF_COUNT_SW_DUMMY, false),
    trace(Source::Switches, "sched/sched_switch", false),
    trace(Source::Births, "sched/sched_wakeup_new", false),
    trace(Source::Wakes, "sched/sched_waking", false),
    trace(Source::Enters, "raw_syscalls/sys_enter", true),
    trace(Source::Exits, "raw_syscalls/sys_exit", false),
    software(Source::Faults, PERF_COUNT_SW_PAGE_FAULTS, true),
    software(Source::Migrations, PERF_COUNT_SW_CPU_MIGRATIONS, true),
    trace(Source::Signals, "signal/signal_deliver", true),
];

const fn software(source: Source, number: u64, has_stack: bool) -> Opened {
    Opened { source, kind: Kind::Software(number), has_stack }
}

const fn trace(source: Source, event: &'static str, has_stack: bool) -> Opened {
    Opened { source, kind: Kind::Trace(event), has_stack }
}

const KIND_SOFTWARE: u32 = 1;
const KIND_TRACEPOINT: u32 = 2;
/// How much of the stack is sampled: the frames of printf(3) are 2 KiB and more.
const STACK_BYTES: u32 = 8_192;
/// Memory of all rings together, and of one.
const RINGS_BYTES: usize = 64 << 20;
const RING_BYTES: std::ops::RangeInclusive<usize> = (512 << 10)..=(8 << 20);

/// The events of a program.
#[derive(Debug)]
pub struct Watch {
    /// By source: one event per CPU.
    events: BTreeMap<Source, Vec<OwnedFd>>,
    rings: Vec<(u32, Ring)>,
    reader: Reader,
    /// Why one is not there.
    missing: BTreeMap<Source, String>,
    bytes: Vec<u8>,
}

impl Watch {
    /// Opens the events of a thread that has not begun its work, on these CPUs. Only those of
    /// [`Source::Threads`] are on. System calls of the numbers in `unheard` are not reported.
    ///
    /// # Errors
    /// Not even threads can be observed: why, and what to do.
    pub fn open(root: &Root, tid: u32, cpus: &[u32], unheard: &[i64]) -> Result<Self, String> {
        let mut watch = Self {
            events: BTreeMap::new(),
            rings: Vec::new(),
            reader: Reader::default(),
            missing: BTreeMap::new(),
            bytes: Vec::new(),
        };
        for opened in SOURCES {
            match watch.open_one(root, opened, tid, cpus, unheard) {
                Ok(()) => {}
                Err(why) if opened.source == Source::Threads => return Err(why),
                Err(why) => {
                    watch.events.remove(&opened.source);
                    watch.missing.insert(opened.source, why);
                }
            }
        }
        Ok(watch)
    }

    fn open_one(
        &mut self,
        root: &Root,
        opened: &Opened,
        tid: u32,
        cpus: &[u32],
        unheard: &[i64],
    ) -> Result<(), String> {
        let (attr, layout) = attributes(root, opened)?;
        let is_first = opened.source == Source::Threads;
        let size = (RINGS_BYTES / cpus.len().max(1)).clamp(*RING_BYTES.start(), *RING_BYTES.end());
        let size = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
        let attr = Attr { wakeup_watermark: size as u32 / 4, ..attr };
        let filters = matches!(opened.source, Source::Enters | Source::Exits);
        for (at, &cpu) in cpus.iter().enumerate() {
            let event = perf::open(&attr, tid, cpu).map_err(|error| refused(&error))?;
            let said = |error: io::Error| format!("perf_event_open(2), CPU {cpu}: {error}");
            let id = perf::id(event.as_fd()).map_err(said)?;
            self.reader.add(id, opened.source, opened.has_stack, layout.clone());
            if is_first {
                let ring = Ring::map(event.as_fd(), size).map_err(|error| {
                    format!("memory for events, {size} bytes for each CPU: {error}")
                })?;
                self.rings.push((cpu, ring));
            } else {
                let first = &self.events[&Source::Threads][at];
                perf::set_output(event.as_fd(), first.as_fd()).map_err(said)?;
            }
            if filters && !unheard.is_empty() {
                // A kernel without filters reports them all: the judge passes over them.
                let _ = perf::set_filter(event.as_fd(), &filter(unheard));
            }
            self.events.entry(opened.source).or_default().push(event);
        }
        Ok(())
    }

    /// Why events of a source are missing; `None`: they are not.
    #[must_use]
    pub fn missing(&self, source: Source) -> Option<&str> {
        self.missing.get(&source).map(String::as_str)
    }

    /// Switches all events on.
    pub fn enable(&mut self) {
        for (&source, events) in &self.events {
            let on = |event: &OwnedFd| perf::set_enabled(event.as_fd(), true);
            if source != Source::Threads
                && let Some(error) = events.iter().find_map(|event| on(event).err())
            {
                self.missing.insert(source, format!("it cannot be switched on: {error}"));
            }
        }
    }

    /// Switches them off again; threads are observed on.
    pub fn disable(&self) {
        for (_, events) in self.events.iter().filter(|(source, _)| **source != Source::Threads) {
            // One that does not go off reports what nobody judges any more.
            events.iter().for_each(|event| drop(perf::set_enabled(event.as_fd(), false)));
        }
    }

    /// Waits until some have come, not longer than a time.
    pub fn wait(&self, within: Duration) {
        let events = self.events.get(&Source::Threads).into_iter().flatten();
        let mut all: Vec<PollFd<'_>> =
            events.map(|event| PollFd::new(event, PollFlags::IN)).collect();
        let within = Timespec {
            tv_sec: within.as_secs().cast_signed(),
            tv_nsec: i64::from(within.subsec_nanos()),
        };
        let started = std::time::Instant::now();
        let woken = poll(&mut all, Some(&within)).unwrap_or(0);
        // The last thread has ended: poll(2) returns at once from then on.
        let is_over = all.iter().any(|it| it.revents().contains(PollFlags::HUP));
        if woken > 0 && is_over {
            let asked = Duration::new(within.tv_sec.unsigned_abs(), within.tv_nsec as u32);
            std::thread::sleep(asked.saturating_sub(started.elapsed()));
        }
    }

    /// Takes what has come, of each CPU in its order.
    pub fn take(&mut self, mut to: impl FnMut(Happening)) {
        for (cpu, ring) in &mut self.rings {
            self.bytes.clear();
            let may_have_lost = ring.take(&mut self.bytes);
            self.reader.read(&self.bytes, &mut to);
            if may_have_lost {
                to(read::lost(*cpu, None));
            }
        }
    }
}

/// The attributes of an event, and where its fields are.
fn attributes(root: &Root, opened: &Opened) -> Result<(Attr, Layout), String> {
    let mut attr = Attr {
        sample_period: 1,
        sample_type: read::COMMON,
        flags: read::FLAGS,
        clockid: 1,
        ..Attr::default()
    };
    let mut layout = Layout::default();
    match opened.kind {
        Kind::Software(number) => {
            (attr.kind, attr.config) = (KIND_SOFTWARE, number);
            attr.sample_type |= read::ADDRESS;
        }
        Kind::Trace(event) => {
            let text = tracefs::event_format(root, event).map_err(|error| error.to_string())?;
            layout = Layout::parse(&text).ok_or_else(|| format!("{event}/format: unreadable"))?;
            (attr.kind, attr.config) = (KIND_TRACEPOINT, layout.id);
            attr.sample_type |= read::RAW;
        }
    }
    match opened.source {
        Source::Threads => attr.flags |= read::THREADS,
        _ => attr.flags |= read::DISABLED,
    }
    if opened.has_stack {
        attr.sample_type |= read::REGISTERS | read::STACK;
        (attr.sample_regs_user, attr.sample_stack_user) = (read::REGISTERS_MASK, STACK_BYTES);
    }
    Ok((attr, layout))
}

fn filter(unheard: &[i64]) -> String {
    let all: Vec<String> = unheard.iter().map(|number| format!("id != {number}")).collect();
    all.join(" && ")
}

fn refused(error: &io::Error) -> String {
    use rustix::io::Errno;
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    match number {
        Some(Errno::PERM | Errno::ACCESS) => format!(
            "perf_event_open(2): {error}: it needs root, or CAP_PERFMON and a readable tracefs; a \
             container or lockdown may forbid it as well"
        ),
        Some(Errno::MFILE | Errno::NFILE) => format!(
            "perf_event_open(2): {error}: {} events for each CPU; raise the limit (ulimit -n)",
            SOURCES.len()
        ),
        Some(Errno::NOSYS) => "the kernel was built without CONFIG_PERF_EVENTS".into(),
        _ => format!("perf_event_open(2): {error}"),
    }
}

/// Whether a process has marked a cycle (`rtproof_mark.h`).
#[must_use]
pub fn has_marked(pid: u32) -> bool {
    crate::workloads::marks::has_marked(pid)
}

/// The policy in force for a thread: whether it is real-time, and its priority in the kernel's
/// numbers; `None`: it has ended.
#[must_use]
pub fn class_of(tid: u32) -> Option<(bool, i32)> {
    use crate::Policy;
    let (policy, priority) = crate::sys::policy_of(tid).ok()?;
    Some(match policy {
        Policy::Deadline => (true, -1),
        Policy::Fifo | Policy::Rr => (true, 99 - i32::try_from(priority).unwrap_or(0)),
        _ => (false, 120),
    })
}
