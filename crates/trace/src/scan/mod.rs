//! Finds the wake-ups of chosen threads in a merged stream of events: for running applications and
//! for traces of other tools, without a measurement.
//!
//! A thread should have run when the timer was to expire that it slept on; or, when it was woken
//! by something else, when it was woken.

#[cfg(test)]
mod tests;
mod thread;

pub use thread::{PreemptedBy, ThreadTotals};

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use thread::{Due, ScannedThread};

use crate::event::Comm;
use crate::kernel::text::TextSymbols;
use crate::merge::Merged;
use crate::{Decoder, EventBrief, Raw, WakeUp, WakeUpBasis, event};

/// Threads whose wake-ups are looked for: any of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subjects {
    pub tids: Vec<i32>,
    /// By name, as the kernel has it: cut to 15 bytes. Such a thread is followed from then on,
    /// whatever it is called later.
    pub comms: Vec<String>,
    /// All that have a real-time or deadline priority when they are woken.
    pub all_real_time: bool,
    /// Keep each of their wake-ups, on time or late, for [`Scanner::take_kept`].
    pub keeps: bool,
}

/// From here on priorities are fair ones.
const PRIO_FAIR: i32 = 100;

/// The kernel's largest thread id (PID_MAX_LIMIT); larger ones are no threads.
const TID_MAX: i32 = 1 << 22;

/// A kernel's CPUs at most (twice NR_CPUS_MAX of x86).
const CPUS_MAX: u32 = 1 << 14;

/// A timer's clock that differs from the trace's by more is another clock.
const SAME_CLOCK_NS: u64 = 1_000_000_000;

/// Length of a task's name in the kernel, without the NUL.
const COMM_BYTES: usize = 15;

/// Finds every wake-up of the chosen threads in a trace.
#[derive(Clone, Debug)]
pub struct Scanner {
    comms: Vec<Comm>,
    all_real_time: bool,
    threshold_ns: u64,
    is_mono: bool,
    sleep_functions: Vec<u64>,
    index: HashMap<i32, u32, BuildHasherDefault<TidHasher>>,
    threads: Vec<ScannedThread>,
    cpus: Vec<Cpu>,
    /// Kept wake-ups that were not taken yet.
    kept: Option<Vec<WakeUp>>,
    /// Threads that were woken and may not have run since.
    awaited: Vec<usize>,
    wakings: u64,
    /// Timers that threads started which are not followed, or not yet.
    strangers: HashMap<i32, StrangerTimers, BuildHasherDefault<TidHasher>>,
    /// The followed thread that started a timer, by the timer's address.
    owners: HashMap<u64, usize>,
    /// CPUs with a switch to a followed thread that no event of another task came after yet.
    arriving: usize,
}

/// The last timers of a thread: address and when it is due.
type StrangerTimers = [(u64, u64); 4];

/// Threads and timers that are remembered at once, so that memory is bounded.
const STRANGERS_MAX: usize = 1 << 16;

/// Wake-ups that end with one record: seldom one, hardly ever two.
pub type Late = std::iter::Flatten<std::array::IntoIter<Option<WakeUp>, 2>>;

/// The same, with those that are known to be late where events were lost before the record.
pub type LateMerged = std::iter::Chain<std::vec::IntoIter<WakeUp>, Late>;

/// What an interrupt of a CPU is doing.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Thread that was current at the last event while a wake-up was awaited, and when that was.
    last: Option<(i32, u64)>,
    expiring: Option<Expiring>,
    /// Thread and timer that expired last: it may be started again in the same interrupt.
    again: Option<(usize, u64)>,
    arriving: Option<Arriving>,
}

/// A switch to a followed thread: as long as events show the task before as current, it has not
/// been done.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    at: usize,
    prev_pid: i32,
    due: Due,
    is_early: bool,
    /// When the switch was recorded.
    switched_ns: u64,
    /// When the task before was last seen to be current.
    ran_ns: u64,
}

/// A timer whose function runs.
#[derive(Clone, Copy, Debug)]
struct Expiring {
    timer: u64,
    function: u64,
    at_ns: u64,
    now_ns: u64,
    /// Whether its function woke a task.
    has_woken: bool,
}

impl Scanner {
    /// Looks for wake-ups that are more than `threshold_ns` late. `is_mono`: the trace's clock is
    /// CLOCK_MONOTONIC (`mono` in trace_clock), so that a timer's expiry is a time of the trace.
    pub fn new(subjects: &Subjects, threshold_ns: u64, is_mono: bool) -> Self {
        let cut = |comm: &String| Comm::of(&comm.as_bytes()[..comm.len().min(COMM_BYTES)]);
        let mut scanner = Self {
            comms: subjects.comms.iter().map(cut).collect(),
            all_real_time: subjects.all_real_time,
            threshold_ns,
            is_mono,
            sleep_functions: Vec::new(),
            index: HashMap::default(),
            threads: Vec::new(),
            cpus: Vec::new(),
            kept: subjects.keeps.then(Vec::new),
            awaited: Vec::new(),
            wakings: 0,
            strangers: HashMap::default(),
            owners: HashMap::default(),
            arriving: 0,
        };
        for &tid in subjects.tids.iter().filter(|&&tid| tid > 0 && tid <= TID_MAX) {
            if !scanner.index.contains_key(&tid) {
                scanner.add(tid);
            }
        }
        scanner
    }

    /// Addresses of the functions of timers that threads sleep on (`hrtimer_wakeup`, and
    /// `posix_timer_fn`, `timerfd_tmrproc` for those who wait for such). Without any, each timer
    /// that a thread starts itself may be one.
    #[must_use]
    pub fn with_sleep_functions(mut self, addresses: Vec<u64>) -> Self {
        self.sleep_functions = addresses;
        self
    }

    /// The next record, in order of time. The wake-ups that end with it, if they were too late.
    #[inline]
    pub fn feed(&mut self, decoder: &Decoder, cpu: u32, raw: &Raw<'_>) -> Late {
        let before = if self.awaited.is_empty() && self.arriving == 0 {
            None
        } else {
            let (pid, flags) = decoder.current(raw);
            self.current(raw.at_ns, cpu, pid, flags)
        };
        let at_it = self.feed_brief(raw.at_ns, cpu, &decoder.brief(raw));
        [before, at_it].into_iter().flatten()
    }

    /// An event was written while a thread was current, before [`Scanner::feed_brief`] of it. Some
    /// kernels leave out the switch from the idle task to a thread: then its wake-up ends here at
    /// the latest, and not before the last event of another task on this CPU. It is counted to the
    /// one where that is on time, to the other where that is late, and else remains unseen. Gives
    /// it where it was too late, and one whose switch took so long.
    #[inline]
    pub fn current(&mut self, at_ns: u64, cpu: u32, pid: i32, flags: u8) -> Option<WakeUp> {
        if self.arriving > 0
            && let Some(late) = self.arrive(at_ns, cpu, pid)
        {
            return Some(late);
        }
        // An NMI may come between the switch and what it is for.
        if self.awaited.is_empty() || flags & event::flags::NMI != 0 {
            return None;
        }
        let threads = &self.threads;
        self.awaited.retain(|&at| threads[at].is_awaited());
        let last = self.cpu(cpu).and_then(|cpu| cpu.last.replace((pid, at_ns)));
        let is_its = |at: &&usize| self.threads[**at].totals.tid == pid;
        let at = *self.awaited.iter().find(is_its)?;
        let thread = &mut self.threads[at];
        let is_early = thread.is_early();
        let not_before_ns = last.filter(|(other, _)| *other != pid).map_or(0, |(_, at_ns)| at_ns);
        let (due, ran_ns) = thread.switched_unrecorded(not_before_ns, at_ns, self.threshold_ns)?;
        thread.switched_on(at_ns, cpu);
        let wake = WakeUp { tid: pid, cpu, due_ns: due.at_ns, ran_ns, how: due.how };
        self.ended(at, wake, is_early)
    }

    /// Counts a wake-up whose end is known, and gives it if it was too late.
    fn ended(&mut self, at: usize, wake: WakeUp, is_early: bool) -> Option<WakeUp> {
        let is_over = wake.latency_ns() > self.threshold_ns;
        let thread = &mut self.threads[at];
        // It slept since before the trace: only that it was late can be known of it.
        if is_early && !is_over {
            thread.totals.early += 1;
            return None;
        }
        thread.count(&wake, is_over);
        self.keep(wake);
        is_over.then_some(wake)
    }

    /// An event after a switch to a followed thread. Gives its wake-up where that was on time by
    /// the switch, and late by what came after it.
    fn arrive(&mut self, at_ns: u64, cpu: u32, pid: i32) -> Option<WakeUp> {
        let arriving = &mut self.cpus.get_mut(cpu as usize)?.arriving;
        let mut of = (*arriving)?;
        if pid == of.prev_pid {
            of.ran_ns = at_ns;
            *arriving = Some(of);
            return None;
        }
        *arriving = None;
        self.arriving -= 1;
        let late_ns = |ran_ns: u64| ran_ns.saturating_sub(of.due.at_ns);
        let threshold_ns = self.threshold_ns;
        if late_ns(of.switched_ns) > threshold_ns || late_ns(of.ran_ns) <= threshold_ns {
            return None;
        }
        let thread = &mut self.threads[of.at];
        let tid = thread.totals.tid;
        let wake = WakeUp { tid, cpu, due_ns: of.due.at_ns, ran_ns: of.ran_ns, how: of.due.how };
        thread.was_later(&wake, (!of.is_early).then(|| late_ns(of.switched_ns)));
        let before = self.kept.iter_mut().flatten().rev();
        match { before }.find(|kept| kept.tid == tid && kept.due_ns == wake.due_ns) {
            Some(kept) => *kept = wake,
            None if of.is_early => self.keep(wake),
            None => {}
        }
        Some(wake)
    }

    /// As [`Scanner::feed`], of a merged record; a loss before it is taken into account.
    #[inline]
    pub fn feed_merged(&mut self, decoder: &Decoder, merged: &Merged<'_>) -> LateMerged {
        let late = if merged.missed.is_some() { self.lost(merged.cpu) } else { Vec::new() };
        late.into_iter().chain(self.feed(decoder, merged.cpu, &merged.raw))
    }

    /// As [`Scanner::feed`], of an event that is decoded already.
    #[inline]
    pub fn feed_brief(&mut self, at_ns: u64, cpu: u32, brief: &EventBrief<'_>) -> Option<WakeUp> {
        match *brief {
            EventBrief::Switch { prev_pid, prev_state, next_pid, next_prio, next_comm } => {
                if let Some(at) = self.find(prev_pid) {
                    self.threads[at].switched_away(prev_state == 0);
                    if prev_state == 0 {
                        self.threads[at].preempt(at_ns, Comm::of(next_comm));
                    }
                }
                let at = self.subject(next_pid, next_prio, next_comm)?;
                return self.switched_to(at, at_ns, cpu, (prev_pid, next_comm));
            }
            EventBrief::Waking { pid, prio, comm, target_cpu } => {
                self.woke(cpu);
                let at = self.subject(pid, prio, comm)?;
                let due = self.due(at, at_ns, cpu);
                self.threads[at].waking(due, (at_ns, target_cpu));
                self.add_awaited(at);
            }
            EventBrief::Wakeup { pid, prio, comm, target_cpu } => {
                self.woke(cpu);
                let at = self.subject(pid, prio, comm)?;
                let due = self.due(at, at_ns, cpu);
                self.add_awaited(at);
                return self.overrun(at, (at_ns, target_cpu), cpu, due);
            }
            EventBrief::TimerStart { pid, flags, timer, function, expires_ns, soft_ns } => {
                // The thread asked for the one; up to the other the kernel may put it off.
                let due_ns = if soft_ns == 0 { expires_ns } else { soft_ns.min(expires_ns) };
                self.start(cpu, pid, flags, timer, function, due_ns);
            }
            EventBrief::TimerExpire { timer, function, now_ns } => {
                let expiring = Expiring { timer, function, at_ns, now_ns, has_woken: false };
                if let Some(cpu) = self.cpu(cpu) {
                    cpu.expiring = Some(expiring);
                }
            }
            EventBrief::TimerExpired => {
                let expired = self.cpu(cpu).and_then(|cpu| cpu.expiring.take());
                if let Some(of) = expired.filter(|of| !of.has_woken)
                    && let Some(&at) = self.owners.get(&of.timer)
                {
                    self.threads[at].fired_in_vain(of.timer);
                }
            }
            EventBrief::Across | EventBrief::Other => {}
        }
        None
    }

    /// Events of a CPU were lost before what comes next: no wake-up is made up of what was before
    /// and what is behind. Gives those that were late already when they were woken: at least that
    /// late.
    pub fn lost(&mut self, cpu: u32) -> Vec<WakeUp> {
        if let Some(cpu) = self.cpu(cpu) {
            let was_arriving = std::mem::take(cpu).arriving.is_some();
            self.arriving -= usize::from(was_arriving);
        }
        let mut late = Vec::new();
        for at in std::mem::take(&mut self.awaited) {
            let thread = &mut self.threads[at];
            let Some((due, ran_ns, cpu)) = thread.cut_off(self.threshold_ns) else { continue };
            let tid = thread.totals.tid;
            let wake = WakeUp { tid, cpu, due_ns: due.at_ns, ran_ns, how: due.how };
            late.extend(self.ended(at, wake, false));
        }
        self.threads.iter_mut().for_each(ScannedThread::forget);
        self.strangers.clear();
        self.owners.clear();
        late
    }

    /// What was counted of each thread, in the order they were first seen; those asked for by id
    /// first.
    pub fn totals(&self) -> impl Iterator<Item = &ThreadTotals> {
        self.threads.iter().map(|thread| &thread.totals)
    }

    /// Tasks that ran in the place of each thread while it was runnable.
    pub fn preemptions(&self) -> impl Iterator<Item = &PreemptedBy> {
        self.threads.iter().flat_map(|thread| &thread.preempted)
    }

    /// Wakings of any threads: without one, the trace cannot show a wake-up.
    pub const fn wakings(&self) -> u64 {
        self.wakings
    }

    /// The wake-ups since the last call, in the order they ended; none where they are not kept.
    pub fn take_kept(&mut self) -> Vec<WakeUp> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Follows a thread from now on.
    pub fn follow(&mut self, tid: i32) {
        if tid > 0 && tid <= TID_MAX && self.find(tid).is_none() {
            self.add(tid);
        }
    }

    /// A thread that sets its timer for a time that has passed is late by its own work, and may be
    /// woken before it has left the CPU.
    fn overrun(&mut self, at: usize, woken_at: (u64, u32), cpu: u32, due: Due) -> Option<WakeUp> {
        let (at_ns, _) = woken_at;
        let thread = &mut self.threads[at];
        let due = thread.wakeup(due, woken_at).filter(|due| due.how == WakeUpBasis::Timer)?;
        let tid = thread.totals.tid;
        let wake = WakeUp { tid, cpu, due_ns: due.at_ns, ran_ns: at_ns, how: due.how };
        let is_over = wake.latency_ns() > self.threshold_ns;
        if is_over {
            thread.count(&wake, is_over);
            self.keep(wake);
        }
        is_over.then_some(wake)
    }

    fn switched_to(
        &mut self,
        at: usize,
        at_ns: u64,
        cpu: u32,
        (prev_pid, comm): (i32, &[u8]),
    ) -> Option<WakeUp> {
        let thread = &mut self.threads[at];
        thread.totals.comm = Comm::of(comm);
        thread.switched_on(at_ns, cpu);
        let is_early = thread.is_early();
        let due = thread.switched_to()?;
        let tid = thread.totals.tid;
        let wake = WakeUp { tid, cpu, due_ns: due.at_ns, ran_ns: at_ns, how: due.how };
        if let Some(cpu) = self.cpu(cpu) {
            let ran_ns = at_ns;
            let arriving = Arriving { at, prev_pid, due, is_early, switched_ns: at_ns, ran_ns };
            let had = cpu.arriving.replace(arriving).is_some();
            self.arriving += usize::from(!had);
        }
        self.ended(at, wake, is_early)
    }

    /// A task was woken on a CPU.
    fn woke(&mut self, cpu: u32) {
        self.wakings += 1;
        if let Some(expiring) = self.cpu(cpu).and_then(|cpu| cpu.expiring.as_mut()) {
            expiring.has_woken = true;
        }
    }

    fn add_awaited(&mut self, at: usize) {
        if !self.awaited.contains(&at) {
            self.awaited.push(at);
        }
    }

    fn keep(&mut self, wake: WakeUp) {
        if let Some(kept) = &mut self.kept {
            kept.push(wake);
        }
    }

    /// When a thread that is woken now should run.
    fn due(&mut self, at: usize, at_ns: u64, cpu: u32) -> Due {
        let woken = Due { at_ns, how: WakeUpBasis::Woken };
        let is_mono = self.is_mono;
        let Some(Expiring { timer, function, at_ns: entry_ns, now_ns, .. }) =
            self.cpu(cpu).and_then(|cpu| cpu.expiring)
        else {
            return woken;
        };
        let expires_ns = self.threads[at].expiry_ns(timer);
        // The kernel's own timers and those of others wake it, but do not say when it should run.
        if expires_ns.is_none() && (!self.is_sleep(function) || self.is_of_another(timer)) {
            return woken;
        }
        if let Some(cpu) = self.cpu(cpu) {
            cpu.again = Some((at, timer));
        }
        let Some(expires_ns) = expires_ns else {
            self.threads[at].due_is_unknown();
            return woken;
        };
        let due_ns = if is_mono && entry_ns.abs_diff(now_ns) < SAME_CLOCK_NS {
            expires_ns
        } else {
            entry_ns.saturating_sub(now_ns.saturating_sub(expires_ns))
        };
        // Timers with slack may expire before they have to.
        Due { at_ns: due_ns.min(at_ns), how: WakeUpBasis::Timer }
    }

    fn start(&mut self, cpu: u32, pid: i32, flags: u8, timer: u64, function: u64, expires_ns: u64) {
        if flags & (event::flags::HARDIRQ | event::flags::SOFTIRQ | event::flags::NMI) != 0 {
            let again = self.cpu(cpu).and_then(|cpu| cpu.again);
            match again.filter(|(_, expired)| *expired == timer) {
                Some((at, _)) => self.threads[at].start(timer, expires_ns),
                // One that goes on by itself, and wakes its thread at the end alone.
                None => {
                    let its = self.threads.iter_mut().filter(|t| t.expiry_ns(timer).is_some());
                    its.for_each(|thread| thread.start(timer, expires_ns));
                }
            }
            return;
        }
        if !self.sleep_functions.is_empty() && !self.sleep_functions.contains(&function) {
            return;
        }
        if self.owners.len() >= STRANGERS_MAX {
            self.owners.clear();
        }
        if let Some(at) = self.find(pid) {
            self.threads[at].start(timer, expires_ns);
            self.owners.insert(timer, at);
            return;
        }
        self.owners.remove(&timer);
        if self.strangers.len() >= STRANGERS_MAX {
            self.strangers.clear();
        }
        let timers = self.strangers.entry(pid).or_default();
        let place = timers.iter().position(|(address, _)| *address == timer);
        let last = place.unwrap_or(timers.len() - 1);
        timers[..=last].rotate_right(1);
        timers[0] = (timer, expires_ns);
    }

    /// Whether threads sleep on timers of a function. Where no address is known, those that a text
    /// names do.
    fn is_sleep(&self, function: u64) -> bool {
        if self.sleep_functions.is_empty() {
            return TextSymbols::is_sleep(function);
        }
        self.sleep_functions.contains(&function)
    }

    /// Whether a timer was started by a thread that is not followed, or by another one that is.
    fn is_of_another(&self, timer: u64) -> bool {
        self.owners.contains_key(&timer)
            || self.strangers.values().flatten().any(|(address, _)| *address == timer)
    }

    fn cpu(&mut self, cpu: u32) -> Option<&mut Cpu> {
        let at = cpu as usize;
        if at >= self.cpus.len() {
            if cpu >= CPUS_MAX {
                return None;
            }
            self.cpus.resize(at + 1, Cpu::default());
        }
        self.cpus.get_mut(at)
    }

    /// The thread of an id, if it is one that is followed.
    #[inline]
    fn find(&self, tid: i32) -> Option<usize> {
        if tid == 0 {
            return None;
        }
        self.index.get(&tid).map(|&at| at as usize)
    }

    /// The same; follows it from now on, if it is one of those asked for.
    #[inline]
    fn subject(&mut self, tid: i32, prio: i32, comm: &[u8]) -> Option<usize> {
        if let Some(at) = self.find(tid) {
            return Some(at);
        }
        let is_asked_for = (self.all_real_time && prio < PRIO_FAIR)
            || (!self.comms.is_empty() && self.comms.contains(&Comm::of(comm)));
        (is_asked_for && tid > 0 && tid <= TID_MAX).then(|| self.add(tid))
    }

    fn add(&mut self, tid: i32) -> usize {
        let at = self.threads.len();
        let mut thread = ScannedThread::new(tid);
        // What it set before it was one of those asked for.
        for (timer, expires_ns) in self.strangers.remove(&tid).into_iter().flatten().rev() {
            if timer != 0 {
                thread.start(timer, expires_ns);
                self.owners.insert(timer, at);
            }
        }
        self.threads.push(thread);
        self.index.insert(tid, u32::try_from(at).unwrap_or(u32::MAX));
        at
    }
}

/// Thread ids are small, dense numbers: one multiplication spreads them.
#[derive(Clone, Copy, Debug, Default)]
struct TidHasher(u64);

impl Hasher for TidHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_i32(&mut self, tid: i32) {
        self.0 = u64::from(tid.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The table takes its place from the low bits, its tag from the high ones.
        self.0 ^= self.0 >> 32;
    }
}
