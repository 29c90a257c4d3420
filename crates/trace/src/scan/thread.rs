//! State of one thread while its wake-ups are searched for.

use crate::event::Comm;
use crate::{WakeUp, WakeUpBasis};

/// Timers of a thread that are remembered.
const TIMERS: usize = 4;

/// What was counted of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTotals {
    pub tid: i32,
    /// Its name, as last seen.
    pub comm: Comm,
    pub wake_ups: u64,
    /// Those later than the threshold.
    pub over: u64,
    /// Wakings before it left the CPU: no wake-ups.
    pub never_left: u64,
    /// Wake-ups of which an end is missing: it left a CPU without a switch to it after a waking
    /// (some kernels leave out switches from the idle task), it was switched to without a waking,
    /// or what came after the waking was lost. How late they were is not known.
    pub unseen: u64,
    /// Those of the wake-ups whose end is the thread's first event after them, as the switch to it
    /// was not recorded: they were at most that late.
    pub inferred: u64,
    /// Those of the late wake-ups whose end is the last event of another task on the CPU before
    /// the thread's own, as the switch to it was not recorded: they were at least that late.
    pub at_least: u64,
    /// Wake-ups out of a sleep that began in the trace, by a timer whose start is not in it: when
    /// they were due is not known. They are counted from when they were woken.
    pub undue: u64,
    /// Wake-ups out of a sleep that began before the trace, and not by a timer that is known: when
    /// they were due is not known. Not among the wake-ups, unless they were late.
    pub early: u64,
    /// Times that one of its timers fired while it slept, and woke nobody.
    pub in_vain: u64,
    /// Sum of the latencies of all wake-ups, nanoseconds.
    pub sum_ns: u64,
    /// The latest of all.
    pub worst: Option<WakeUp>,
    /// Times that it was switched to on another CPU than the last time.
    pub migrations: u64,
}

/// A task that ran in the place of a runnable thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptedBy {
    /// The thread that was switched away from. A thread that yields is among them: the event does
    /// not distinguish it.
    pub tid: i32,
    /// Name of the task that was switched to.
    pub comm: Comm,
    pub times: u64,
    /// How long the thread waited in all, until it was switched to again; others may have run in
    /// that time, too.
    pub waited_ns: u64,
}

impl ThreadTotals {
    /// Wake-ups of which it is not known whether they were late.
    pub const fn unknown(&self) -> u64 {
        self.unseen + self.undue + self.in_vain
    }
}

#[derive(Clone, Debug)]
pub(super) struct ScannedThread {
    place: Place,
    woken: Option<Due>,
    /// When that was, and to which CPU.
    woken_at: (u64, u32),
    /// It was woken out of a sleep that began before the trace.
    is_early: bool,
    timers: [Timer; TIMERS],
    next_timer: usize,
    pub(super) totals: ThreadTotals,
    last_cpu: Option<u32>,
    /// Since when it waits for a CPU that another task took, and the entry of that in `preempted`.
    waits: Option<(u64, usize)>,
    pub(super) preempted: Vec<PreemptedBy>,
}

/// Most names of tasks that one thread keeps apart; the rest has no name.
const NAMES_MAX: usize = 64;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unknown,
    Running,
    Queued,
    /// Asleep, or woken out of it.
    Asleep,
}

/// When a thread should run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at_ns: u64,
    pub(super) how: WakeUpBasis,
}

/// A timer that the thread started.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    address: u64,
    expires_ns: u64,
}

impl ScannedThread {
    pub(super) fn new(tid: i32) -> Self {
        Self {
            place: Place::Unknown,
            woken: None,
            woken_at: (0, 0),
            is_early: false,
            timers: [Timer::default(); TIMERS],
            next_timer: 0,
            totals: ThreadTotals { tid, ..ThreadTotals::default() },
            last_cpu: None,
            waits: None,
            preempted: Vec::new(),
        }
    }

    /// Another task was switched to while it was runnable.
    pub(super) fn preempt(&mut self, at_ns: u64, by: Comm) {
        let is_full = self.preempted.len() >= NAMES_MAX;
        let name = |comm: Comm| self.preempted.iter().position(|known| known.comm == comm);
        let by = match name(by) {
            None if is_full => Comm::default(),
            _ => by,
        };
        let at = name(by).unwrap_or_else(|| {
            let tid = self.totals.tid;
            self.preempted.push(PreemptedBy { tid, comm: by, times: 0, waited_ns: 0 });
            self.preempted.len() - 1
        });
        self.preempted[at].times += 1;
        self.waits = Some((at_ns, at));
    }

    /// It was switched to on a CPU.
    pub(super) fn switched_on(&mut self, at_ns: u64, cpu: u32) {
        if let Some((since_ns, at)) = self.waits.take() {
            self.preempted[at].waited_ns += at_ns.saturating_sub(since_ns);
        }
        if self.last_cpu.replace(cpu).is_some_and(|last| last != cpu) {
            self.totals.migrations += 1;
        }
    }

    /// It starts a timer, or a timer that it once started is started again.
    pub(super) fn start(&mut self, address: u64, expires_ns: u64) {
        let known = self.timers.iter_mut().find(|timer| timer.address == address);
        match known {
            Some(timer) => timer.expires_ns = expires_ns,
            None => {
                self.timers[self.next_timer] = Timer { address, expires_ns };
                self.next_timer = (self.next_timer + 1) % TIMERS;
            }
        }
    }

    /// When a timer was to expire, if it is one of this thread's.
    pub(super) fn expiry_ns(&self, address: u64) -> Option<u64> {
        let timer = self.timers.iter().find(|timer| timer.address == address && address != 0)?;
        Some(timer.expires_ns)
    }

    /// sched_waking. While it is on a CPU it may be just about to leave that: then it is a wake-up.
    pub(super) fn waking(&mut self, due: Due, woken_at: (u64, u32)) {
        if self.is_on_cpu() && self.woken.is_some() {
            self.totals.never_left += 1;
        }
        // Nobody knows since when it should have run.
        self.is_early = self.place == Place::Unknown && due.how == WakeUpBasis::Woken;
        (self.woken, self.woken_at) = (Some(due), woken_at);
    }

    /// It is being woken by a timer of which no start was recorded.
    pub(super) fn due_is_unknown(&mut self) {
        // sched_wakeup follows sched_waking.
        let is_new = self.place == Place::Asleep && self.woken.is_none();
        self.totals.undue += u64::from(is_new);
    }

    pub(super) const fn is_early(&self) -> bool {
        self.is_early
    }

    /// One of its timers fired and woke nobody.
    pub(super) fn fired_in_vain(&mut self, timer: u64) {
        let is_its = self.expiry_ns(timer).is_some();
        self.totals.in_vain +=
            u64::from(is_its && self.place == Place::Asleep && self.woken.is_none());
    }

    /// What comes next is lost. What it was woken for, when that was and to which CPU, if it was
    /// late by then; else when it ran is not known.
    pub(super) fn cut_off(&mut self, threshold_ns: u64) -> Option<(Due, u64, u32)> {
        let due = self.woken.filter(|_| self.is_awaited())?;
        let (woken_ns, cpu) = self.woken_at;
        if woken_ns.saturating_sub(due.at_ns) > threshold_ns {
            self.totals.at_least += 1;
            return Some((due, woken_ns, cpu));
        }
        self.totals.unseen += 1;
        None
    }

    /// A wake-up on time is at least as late as this. `counted_ns`: as which it was counted;
    /// `None`: as an early one.
    pub(super) fn was_later(&mut self, wake: &WakeUp, counted_ns: Option<u64>) {
        let totals = &mut self.totals;
        totals.at_least += 1;
        let Some(counted_ns) = counted_ns else {
            totals.early -= 1;
            return self.count(wake, true);
        };
        totals.over += 1;
        totals.sum_ns = totals.sum_ns.saturating_add(wake.latency_ns() - counted_ns);
        if totals.worst.is_none_or(|worst| wake.latency_ns() > worst.latency_ns()) {
            totals.worst = Some(*wake);
        }
    }

    /// sched_wakeup: the waking is done. What has not left the CPU by now does not: it was woken
    /// for what is returned.
    pub(super) fn wakeup(&mut self, due: Due, woken_at: (u64, u32)) -> Option<Due> {
        if self.is_on_cpu() {
            self.totals.never_left += 1;
            return self.woken.take();
        }
        if self.woken.is_none() {
            (self.woken, self.woken_at) = (Some(due), woken_at);
        }
        None
    }

    /// It was woken out of its sleep, and the switch to it is still to come.
    pub(super) fn is_awaited(&self) -> bool {
        self.place == Place::Asleep && self.woken.is_some()
    }

    /// It runs, though no switch to it was recorded: since an unknown time between two. What it was
    /// woken for and when that ended, as far as it is certain whether that was late.
    pub(super) fn switched_unrecorded(
        &mut self,
        not_before_ns: u64,
        at_ns: u64,
        threshold_ns: u64,
    ) -> Option<(Due, u64)> {
        let due = self.woken?;
        let late_ns = |ran_ns: u64| ran_ns.saturating_sub(due.at_ns);
        let ran_ns = if late_ns(at_ns) <= threshold_ns {
            self.totals.inferred += 1;
            at_ns
        } else if late_ns(not_before_ns) > threshold_ns {
            self.totals.at_least += 1;
            not_before_ns
        } else {
            return None;
        };
        (self.place, self.woken, self.is_early) = (Place::Running, None, false);
        Some((due, ran_ns))
    }

    /// It was switched away from.
    pub(super) fn switched_away(&mut self, is_runnable: bool) {
        if self.is_awaited() {
            self.woken = None;
            self.totals.unseen += 1;
        }
        self.is_early = false;
        if !is_runnable {
            self.place = Place::Asleep;
            return;
        }
        self.place = Place::Queued;
        if self.woken.take().is_some() {
            self.totals.never_left += 1;
        }
    }

    /// It was switched to. What it was woken for, if that is a wake-up.
    pub(super) fn switched_to(&mut self) -> Option<Due> {
        let (was_on_cpu, before) = (self.is_on_cpu(), self.place);
        self.place = Place::Running;
        self.is_early = false;
        // Its waking, or that it had left, is missing.
        let is_hidden = before == Place::Asleep && self.woken.is_none();
        self.totals.unseen += u64::from(is_hidden || before == Place::Running);
        let due = self.woken.take()?;
        if was_on_cpu {
            self.totals.never_left += 1;
            return None;
        }
        Some(due)
    }

    /// Events were lost: its state is unknown now.
    pub(super) fn forget(&mut self) {
        self.place = Place::Unknown;
        self.woken = None;
        self.is_early = false;
        self.waits = None;
        self.timers = [Timer::default(); TIMERS];
    }

    pub(super) fn count(&mut self, wake: &WakeUp, is_over: bool) {
        let totals = &mut self.totals;
        totals.wake_ups += 1;
        totals.over += u64::from(is_over);
        totals.sum_ns = totals.sum_ns.saturating_add(wake.latency_ns());
        if totals.worst.is_none_or(|worst| wake.latency_ns() > worst.latency_ns()) {
            totals.worst = Some(*wake);
        }
    }

    const fn is_on_cpu(&self) -> bool {
        matches!(self.place, Place::Running | Place::Queued)
    }
}
