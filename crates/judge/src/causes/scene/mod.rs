//! The scene of a late wake-up: what the thread was doing, what its CPU was doing, cut into moments
//! in which neither changed.

mod thread;

pub use thread::{
    DoubtfulStretch, EarlierWait, SilentStretch, SoftirqWaker, ThreadActivity, UnknownStretch,
};

use std::{cell::RefCell, collections::BTreeMap};

use thread::{EARLY_NS, is_timerlat, is_timerlat_irq, thread_states};

use rtproof_trace::{
    Coverage, Event, EventClass, EventData, Extent, Task, WakeUp, Window,
    context::{CpuState, Stretch, reconstruct},
    event::{self},
    ftrace_text::CUT,
};

/// Where on its way from due to run the thread was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeUpPhase {
    /// Asleep, its timer due, the interrupt not yet there.
    TimerLate,
    /// The interrupt that wakes it has begun.
    Expiry,
    /// Runnable, and something else ran.
    Runnable,
    /// Switched to, on its way to user mode.
    Running,
    /// Still busy with what came before.
    OwnCycle,
    Stopped,
    /// Waiting for something else than its timer: inside the kernel, or asleep.
    Blocked,
    /// On another CPU than the one that the window shows.
    Elsewhere(u32),
}

/// A stretch of time in which neither the thread nor the CPU changed.
#[derive(Clone, Debug)]
pub struct Moment<'a> {
    pub scene: &'a Scene<'a>,
    pub from_ns: u64,
    pub to_ns: u64,
    /// Where the thread was on its way.
    pub phase: WakeUpPhase,
    /// What the thread was doing.
    pub thread: ThreadActivity,
    /// Since when it was runnable, in that phase.
    pub runnable_since_ns: u64,
    /// What the CPU was doing.
    pub cpu: &'a CpuState,
    /// Flags and preemption count of the first event in or after it.
    pub preempt: u8,
    /// When that event came.
    pub flags_at_ns: u64,
    /// The thread's page fault that it is part of.
    pub fault: Option<&'a Event>,
    /// Length of what an earlier cause took off its beginning.
    pub taken_ns: u64,
    /// Events are missing in it, and what is before and after fits together.
    pub doubt: Option<&'static str>,
}

impl<'a> Moment<'a> {
    /// How long it is.
    pub const fn ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// How long it was before anything was taken off.
    pub const fn whole_ns(&self) -> u64 {
        self.ns() + self.taken_ns
    }

    /// What the interrupt that wakes the thread interrupted, where that was this moment's task.
    pub fn interrupted(&self) -> &'a Interrupted {
        let scene = self.scene;
        let (irq_ns, interrupted) = match scene.earlier_at(self.from_ns) {
            Some(earlier) => (earlier.irq_ns, &earlier.interrupted),
            None => (scene.irq_ns, &scene.interrupted),
        };
        let at = irq_ns.and_then(|irq_ns| scene.events(irq_ns, irq_ns).next());
        let is_other = at.is_some_and(|at| self.cpu.task >= 0 && at.pid != self.cpu.task);
        if is_other { &Interrupted::Unknown } else { interrupted }
    }

    /// Whether an interrupt, softirq or non-maskable interrupt is over the task.
    pub const fn is_task(&self) -> bool {
        self.cpu.hard.is_none() && self.cpu.nmi.is_none()
    }
}

/// A late wake-up and its context.
#[derive(Debug)]
pub struct Scene<'a> {
    pub wake: WakeUp,
    pub window: &'a Window,
    /// Priority of the late thread, in the kernel's scale.
    pub prio: Option<i32>,
    /// When the interrupt began that woke it, on its CPU.
    pub irq_ns: Option<u64>,
    /// When the thread started the timer of this wake-up, where it was seen: nothing of what came
    /// before is left then.
    pub armed_ns: Option<u64>,
    /// What it set that timer for, where that is later than it was due.
    pub set_for_ns: Option<u64>,
    /// Until when the kernel may put that timer off, by the thread's timer slack.
    pub slack_ns: Option<u64>,
    /// End of a timer interrupt on its CPU that did not wake the thread although it was due.
    pub served_ns: Option<u64>,
    /// The timer of an earlier cycle that it still waited for when it was due.
    pub earlier_wait: Option<EarlierWait>,
    /// The thread that wakes it instead of the interrupt, where its timer expires in a thread.
    pub softirq_waker: Option<SoftirqWaker>,
    /// When it was woken.
    pub woken_ns: Option<u64>,
    /// When it was switched to.
    pub switched_ns: Option<u64>,
    /// What the timer interrupt interrupted, where its stack was recorded.
    pub interrupted: Interrupted,
    /// Stretches in which nothing is certain: events are missing, and with them what was going on.
    pub unknown_stretches: Vec<UnknownStretch>,
    /// What the source of the events holds.
    pub coverage: Coverage,
    /// Stretches in which events are missing, and yet the same task was current before and after.
    pub doubts: Vec<DoubtfulStretch>,
    /// Stretches in which the machine stalled, as another CPU witnesses.
    pub silent_stretches: Vec<SilentStretch>,
    /// What the thread was doing, in order, from due to run.
    thread: Vec<(u64, u64, ThreadActivity)>,
    /// What the CPU was doing.
    stretches: Vec<Stretch>,
    /// Priorities of the late thread, as events recorded them.
    prios: Vec<(u64, i32)>,
    /// Events of the few kinds that causes look for in the whole window.
    rare: Vec<&'a Event>,
    /// Name, priority and origin of a task, in words.
    pub details: RefCell<BTreeMap<i32, Vec<String>>>,
    /// The lowest priority that a task has in the window.
    lowest: RefCell<BTreeMap<i32, Option<i32>>>,
}

impl<'a> Scene<'a> {
    pub fn new(wake: &WakeUp, window: &'a Window) -> Self {
        let thread = thread_states(wake, window);
        let armed = armed(wake, window);
        let armed_ns = armed.map(|event| event.at_ns);
        let (set_for_ns, slack_ns) = match armed.map(|event| &event.what) {
            // Where the source holds both ends of the range.
            Some(&EventData::TimerStart { expires_ns, soft_ns, .. }) if soft_ns > 0 => (
                Some(soft_ns).filter(|&at_ns| at_ns > wake.due_ns),
                Some(expires_ns).filter(|&at_ns| at_ns > soft_ns.max(wake.due_ns)),
            ),
            _ => (None, None),
        };
        let (woken_ns, switched_ns) = wake_and_switch(wake, window, armed_ns);
        let (unknown, doubts) = thread::missing_stretches(wake, window, &thread);
        // From the window's start: an interrupt may have begun before the thread was due.
        let from_ns = window.from_ns.min(wake.due_ns);
        let all = reconstruct(&window.events, wake.cpu, from_ns, wake.ran_ns);
        let irq_ns = woken_ns.and_then(|at_ns| interrupt_at(window, wake, &all, at_ns));
        let prio = priority(wake, window);
        let served_ns = woken_ns
            .filter(|&at_ns| is_woken_by_task(wake, window, at_ns))
            .and_then(|woken_ns| served(wake, &all, prio).filter(|&at_ns| at_ns < woken_ns));
        let handed =
            woken_ns.and_then(|woken_ns| thread::softirq_waker(wake, window, &all, woken_ns));
        let earlier = thread::earlier_wait(wake, window, &all, armed_ns);
        let stretches = all
            .into_iter()
            .filter(|stretch| stretch.to_ns > wake.due_ns)
            .map(|mut stretch| {
                stretch.from_ns = stretch.from_ns.max(wake.due_ns);
                stretch
            })
            .collect();
        Self {
            wake: *wake,
            window,
            prio,
            irq_ns,
            armed_ns,
            set_for_ns,
            slack_ns,
            served_ns,
            earlier_wait: earlier,
            softirq_waker: handed,
            woken_ns,
            switched_ns,
            interrupted: interrupted(wake, window, irq_ns),
            unknown_stretches: unknown,
            doubts,
            coverage: coverage(window),
            silent_stretches: thread::idle_stretches(wake, window),
            thread,
            stretches,
            prios: window
                .events
                .iter()
                .filter_map(|e| Some((e.at_ns, prio_of(e, wake.tid)?)))
                .collect(),
            rare: window.events.iter().filter(|event| is_rare(&event.what)).collect(),
            details: RefCell::default(),
            lowest: RefCell::default(),
        }
    }

    /// The lowest priority that a task has in the window, in the kernel's scale.
    pub fn lowest(&self, tid: i32) -> Option<i32> {
        let prios = || self.window.events.iter().filter_map(|event| prio_of(event, tid));
        *self.lowest.borrow_mut().entry(tid).or_insert_with(|| prios().max())
    }

    /// Changes of frequency, priority, CPU or CPUs, and signals, of all CPUs, in order of time.
    pub fn rare(&self) -> &[&'a Event] {
        &self.rare
    }

    /// The moments from due to run: in order, without gaps.
    pub fn moments(&'a self) -> Vec<Moment<'a>> {
        let faults = self.faults();
        let mut edges: Vec<u64> = vec![self.wake.due_ns, self.wake.ran_ns];
        edges.extend(self.stretches.iter().map(|stretch| stretch.to_ns));
        edges.extend(self.thread.iter().map(|(_, to_ns, _)| *to_ns));
        edges.extend(self.irq_ns);
        edges.extend(self.armed_ns);
        edges.extend(self.earlier_wait.iter().flat_map(|of| [of.irq_ns, of.set_for_ns]).flatten());
        edges.extend(self.set_for_ns);
        edges.extend(self.slack_ns);
        edges.extend(self.served_ns);
        edges.extend(self.softirq_waker.map(|handed| handed.from_ns));
        edges.extend(
            self.unknown_stretches.iter().flat_map(|unknown| [unknown.from_ns, unknown.to_ns]),
        );
        edges.extend(self.doubts.iter().flat_map(|doubt| [doubt.from_ns, doubt.to_ns]));
        edges.extend(self.silent_stretches.iter().flat_map(|stood| [stood.from_ns, stood.to_ns]));
        edges.extend(faults.iter().map(|fault| fault.at_ns));
        edges.retain(|at_ns| (self.wake.due_ns..=self.wake.ran_ns).contains(at_ns));
        edges.sort_unstable();
        edges.dedup();
        let moments = edges.windows(2).map(|pair| self.moment(pair[0], pair[1], &faults));
        moments.collect()
    }

    fn moment(&'a self, from_ns: u64, to_ns: u64, faults: &[&'a Event]) -> Moment<'a> {
        // Both lists cover the whole time: these are there.
        let at = self.stretches.partition_point(|stretch| stretch.to_ns <= from_ns);
        let stretch = &self.stretches[at.min(self.stretches.len() - 1)];
        let at = self.thread.partition_point(|(_, end_ns, _)| *end_ns <= from_ns);
        let (begin_ns, _, thread) = self.thread[at.min(self.thread.len() - 1)];
        // The switch to it was not recorded, and later events show that it ran.
        let thread = match thread {
            ThreadActivity::Runnable { .. } if stretch.state.task == self.wake.tid => {
                ThreadActivity::Running { cpu: self.wake.cpu }
            }
            thread => thread,
        };
        let phase = self.phase(from_ns, thread);
        let fault = match thread {
            ThreadActivity::Running { .. } | ThreadActivity::Blocked | ThreadActivity::Sleeping => {
                faults[..faults.partition_point(|fault| fault.at_ns <= from_ns)].last().copied()
            }
            _ => None,
        };
        let runnable_since_ns = match thread {
            ThreadActivity::Runnable { since_ns, .. } => since_ns,
            _ => self.softirq_waker_at(from_ns).map_or(begin_ns, |handed| handed.from_ns),
        };
        Moment {
            scene: self,
            from_ns,
            to_ns,
            phase,
            thread,
            runnable_since_ns,
            cpu: &stretch.state,
            preempt: stretch.preempt,
            flags_at_ns: stretch.flags_at_ns,
            fault,
            taken_ns: 0,
            doubt: self.doubt(from_ns).or(stretch.state.inferred.then_some(INFERRED)),
        }
    }

    /// Whether it ends with an event of the task before the thread, as the switch between them was
    /// not recorded.
    pub fn ends_before_it_ran(&self) -> bool {
        thread::ends_before_it_ran(&self.wake, self.window)
    }

    /// Whether a switch between due and run was not recorded.
    pub fn is_inferred(&self) -> bool {
        let inside = |stretch: &&Stretch| {
            stretch.from_ns < self.wake.ran_ns && stretch.to_ns > self.wake.due_ns
        };
        self.stretches.iter().filter(inside).any(|stretch| stretch.state.inferred)
    }

    fn doubt(&self, at_ns: u64) -> Option<&'static str> {
        let here = |doubt: &&DoubtfulStretch| (doubt.from_ns..doubt.to_ns).contains(&at_ns);
        self.doubts.iter().find(here).map(|doubt| doubt.why)
    }

    fn phase(&self, from_ns: u64, thread: ThreadActivity) -> WakeUpPhase {
        match thread {
            ThreadActivity::Stopped => WakeUpPhase::Stopped,
            ThreadActivity::Blocked => WakeUpPhase::Blocked,
            ThreadActivity::Running { cpu } | ThreadActivity::Runnable { cpu, .. }
                if cpu != self.wake.cpu =>
            {
                WakeUpPhase::Elsewhere(cpu)
            }
            ThreadActivity::Sleeping if self.earlier_at(from_ns).is_some() => {
                self.waiting_before(from_ns)
            }
            // Asleep before it has started its timer, or after its CPU's timers were served: it
            // waits for something else.
            ThreadActivity::Sleeping if self.armed_ns.is_some_and(|at_ns| at_ns > from_ns) => {
                WakeUpPhase::Blocked
            }
            ThreadActivity::Sleeping if self.served_ns.is_some_and(|at_ns| at_ns <= from_ns) => {
                WakeUpPhase::Blocked
            }
            // As good as runnable: whoever wakes it is.
            ThreadActivity::Sleeping if self.softirq_waker_at(from_ns).is_some() => {
                WakeUpPhase::Runnable
            }
            ThreadActivity::Sleeping => self.waiting(from_ns),
            ThreadActivity::Runnable { .. } => WakeUpPhase::Runnable,
            ThreadActivity::Running { .. }
                if self.woken_ns.is_some_and(|at_ns| at_ns <= from_ns) =>
            {
                WakeUpPhase::Running
            }
            // On its way to sleep.
            ThreadActivity::Running { .. }
                if self.armed_ns.is_some_and(|at_ns| at_ns <= from_ns) =>
            {
                self.waiting(from_ns)
            }
            ThreadActivity::Running { .. } => WakeUpPhase::OwnCycle,
        }
    }

    /// The thread waits for its timer.
    fn waiting(&self, from_ns: u64) -> WakeUpPhase {
        let has_come = self.irq_ns.is_some_and(|irq_ns| irq_ns <= from_ns);
        if has_come { WakeUpPhase::Expiry } else { WakeUpPhase::TimerLate }
    }

    /// The thread waits for the timer of an earlier cycle.
    fn waiting_before(&self, from_ns: u64) -> WakeUpPhase {
        let earlier = self.earlier_at(from_ns);
        match earlier.and_then(|of| Some((of.set_for_ns?, of.irq_ns))) {
            None => WakeUpPhase::Blocked,
            Some((_, Some(irq_ns))) if irq_ns <= from_ns => WakeUpPhase::Expiry,
            Some(_) => WakeUpPhase::TimerLate,
        }
    }

    /// Page faults of the thread between due and run.
    fn faults(&self) -> Vec<&'a Event> {
        let wake = &self.wake;
        let inside = |event: &&Event| {
            event.pid == wake.tid
                && (wake.due_ns..wake.ran_ns).contains(&event.at_ns)
                && matches!(event.what, EventData::PageFault { .. })
        };
        self.window.events.iter().filter(inside).collect()
    }

    /// What is known of a task.
    pub fn task(&self, tid: i32) -> Option<&'a Task> {
        self.window.tasks.get(&tid)
    }

    /// The earlier cycle whose timer it waits for at a time.
    pub fn earlier_at(&self, at_ns: u64) -> Option<&EarlierWait> {
        self.earlier_wait.as_ref().filter(|earlier| at_ns < earlier.woken_ns)
    }

    /// What the timer is set for that it waits for at a time, where that is later than it was due.
    pub fn set_for_at(&self, at_ns: u64) -> Option<u64> {
        let earlier = self.earlier_at(at_ns);
        earlier.map_or(self.set_for_ns, |of| of.set_for_ns).filter(|&set_ns| set_ns > at_ns)
    }

    /// The thread that has to run at a time before the late one can be woken.
    pub fn softirq_waker_at(&self, at_ns: u64) -> Option<SoftirqWaker> {
        self.softirq_waker
            .filter(|of| of.from_ns <= at_ns && self.woken_ns.is_none_or(|to| at_ns < to))
    }

    /// Priority of the late thread, or of the one that is to wake it, at a time: as the last event
    /// before recorded it, else the next.
    pub fn prio_at(&self, at_ns: u64) -> Option<i32> {
        if let Some(handed) = self.softirq_waker_at(at_ns) {
            return handed.prio;
        }
        let first = self.prios.partition_point(|(then_ns, _)| *then_ns <= at_ns);
        let near = self.prios.get(first.saturating_sub(1));
        near.map(|(_, prio)| *prio).or(self.prio)
    }

    /// Events of the late CPU in a stretch of time.
    pub fn events(
        &self,
        from_ns: u64,
        to_ns: u64,
    ) -> impl DoubleEndedIterator<Item = &'a Event> + use<'a> {
        let (cpu, events) = (self.wake.cpu, &self.window.events);
        // They are in order of time, and each moment asks for its few of thousands.
        let first = events.partition_point(|event| event.at_ns < from_ns);
        let end = events.partition_point(|event| event.at_ns <= to_ns).max(first);
        events[first..end].iter().filter(move |event| event.cpu == cpu)
    }
}

/// Why a task is not certain to have run that a later event shows.
const INFERRED: &str = "the switch to this task (inferred from a later event)";

/// Recorded classes: those of the source without those that the kernel lacks. Of interrupts with
/// a vector of their own, and of non-maskable ones, a kernel for another processor has no events.
fn coverage(window: &Window) -> Coverage {
    let mut coverage = window.coverage.clone();
    for name in &window.missing {
        let is_foreign = name.starts_with("irq_vectors:") || name.starts_with("nmi:");
        if let Some(class) = EventClass::of_event(name).filter(|_| !is_foreign) {
            coverage.limit(class, Extent::None);
        }
    }
    coverage
}

fn interrupted(wake: &WakeUp, window: &Window, irq_ns: Option<u64>) -> Interrupted {
    // timerlat keeps the stack of its interrupt, and writes it when it stops.
    let stopped = is_timerlat(wake, window)
        .then(|| {
            let mut stacks = window.events.iter().filter(|event| {
                event.cpu == wake.cpu
                    && event.at_ns >= irq_ns.unwrap_or(wake.due_ns)
                    && matches!(event.what, EventData::Stack { .. })
            });
            stacks.next().map(|event| event.at_ns)
        })
        .flatten();
    Interrupted::at(window, wake.cpu, stopped.or(irq_ns))
}

/// When the thread was woken for the run that ended the wait, and when it was switched to.
fn wake_and_switch(
    wake: &WakeUp,
    window: &Window,
    armed_ns: Option<u64>,
) -> (Option<u64>, Option<u64>) {
    let (mut woken_ns, mut switched_ns) = (None, None);
    let mut asleep = true;
    for event in window.events.iter().filter(|event| event.at_ns <= wake.ran_ns) {
        // As good as asleep: its timer may come before it is.
        asleep |= armed_ns == Some(event.at_ns) && event.pid == wake.tid;
        match &event.what {
            EventData::Waking { pid, .. } | EventData::Wakeup { pid, .. } if *pid == wake.tid => {
                if asleep && event.at_ns >= wake.due_ns.saturating_sub(EARLY_NS) {
                    (woken_ns, switched_ns) = (Some(event.at_ns), None);
                }
                asleep = false;
            }
            EventData::Timerlat { .. } if is_timerlat_irq(event, wake, window) => {
                // No switch may have shown that it left.
                asleep |= event.pid != wake.tid;
                if asleep && event.at_ns >= wake.due_ns {
                    (woken_ns, switched_ns) = (Some(event.at_ns), None);
                }
                asleep = false;
            }
            EventData::Switch { prev_pid, prev_state, .. } if *prev_pid == wake.tid => {
                asleep = prev_state & thread::state::REPORTED != 0;
            }
            EventData::Switch { next_pid, .. }
                if *next_pid == wake.tid && switched_ns.is_none() =>
            {
                switched_ns = Some(event.at_ns);
                asleep = false;
            }
            _ => {}
        }
    }
    let switched_ns = switched_ns.filter(|&at_ns| at_ns >= woken_ns.unwrap_or(wake.due_ns));
    (woken_ns, switched_ns)
}

/// When the thread started the timer of this wake-up.
fn armed<'a>(wake: &WakeUp, window: &'a Window) -> Option<&'a Event> {
    let is_ours = |event: &&Event| {
        event.pid == wake.tid
            && event.at_ns < wake.ran_ns
            && matches!(event.what, EventData::TimerStart { expires_ns, soft_ns, .. }
                if expires_ns.checked_sub(wake.due_ns).is_some_and(|ns| ns <= TIMER_SLACK_NS)
                    || soft_ns > 0 && (soft_ns..=expires_ns).contains(&wake.due_ns))
    };
    window.events.iter().rfind(is_ours)
}

/// When the interrupt ended that the late CPU's timers got first after the thread was due, if it
/// did not wake the thread: then it was not this CPU's timer that the thread waited for.
fn served(wake: &WakeUp, stretches: &[Stretch], prio: Option<i32>) -> Option<u64> {
    // On PREEMPT_RT timers of ordinary threads expire in a softirq, after the interrupt.
    prio.filter(|&prio| prio < FAIR)?;
    let is_timer = |stretch: &&Stretch| {
        let begun = stretch.state.hard.filter(|(hard, _)| hard.is_timer());
        begun.is_some_and(|(_, from_ns)| from_ns > wake.due_ns.saturating_add(EARLY_NS))
    };
    let first = stretches.iter().find(is_timer)?;
    let begun_ns = first.state.hard.map(|(_, from_ns)| from_ns);
    let of_it = |stretch: &&Stretch| stretch.state.hard.map(|(_, from_ns)| from_ns) == begun_ns;
    stretches.iter().filter(of_it).map(|stretch| stretch.to_ns).max()
}

/// Whether a task of its own will woke the thread: no interrupt, and no thread of the kernel that
/// does an interrupt's work, as the timers of timerfd and POSIX timers need on PREEMPT_RT.
fn is_woken_by_task(wake: &WakeUp, window: &Window, woken_ns: u64) -> bool {
    let over = event::flags::HARDIRQ | event::flags::SOFTIRQ | event::flags::NMI;
    let does_timers = |tid: i32| {
        let comm = window.tasks.get(&tid).map_or("", |task| &task.comm);
        ["irq/", "irq_work/"].iter().any(|name| comm.starts_with(name))
            || thread::runs_softirqs(comm)
    };
    window.events.iter().filter(|event| event.at_ns == woken_ns).any(|event| {
        let is_it = matches!(
            event.what,
            EventData::Waking { pid, .. } | EventData::Wakeup { pid, .. } if pid == wake.tid
        );
        is_it && event.flags & over == 0 && event.pid > 0 && !does_timers(event.pid)
    })
}

/// First priority of fair tasks in the kernel's scale.
const FAIR: i32 = 100;

/// What ordinary threads' timers expire later than asked for: twice the default (timer slack,
/// prctl(2)).
const TIMER_SLACK_NS: u64 = 100_000;

/// When the hard interrupt began in which the thread was woken.
fn interrupt_at(
    window: &Window,
    wake: &WakeUp,
    stretches: &[Stretch],
    woken_ns: u64,
) -> Option<u64> {
    let waking = window.events.iter().find(|event| {
        event.at_ns == woken_ns
            && (is_timerlat_irq(event, wake, window)
                || matches!(
                    &event.what,
                    EventData::Waking { pid, .. } | EventData::Wakeup { pid, .. }
                        if *pid == wake.tid
                ))
    })?;
    if waking.cpu != wake.cpu {
        return None;
    }
    // The stretch that ends with or holds the waking.
    let stretch = stretches.iter().find(|s| s.from_ns < woken_ns && woken_ns <= s.to_ns)?;
    stretch.state.hard.map(|(_, from_ns)| from_ns)
}

const fn is_rare(what: &EventData) -> bool {
    matches!(
        what,
        EventData::Frequency { .. }
            | EventData::Hotplug { .. }
            | EventData::PiSetprio { .. }
            | EventData::Migrate { .. }
            | EventData::Signal { .. }
    )
}

/// The priority that an event records of a thread.
fn prio_of(event: &Event, tid: i32) -> Option<i32> {
    match event.what {
        EventData::Waking { pid, prio, .. } | EventData::Wakeup { pid, prio, .. } if pid == tid => {
            Some(prio)
        }
        EventData::Switch { next_pid, next_prio, .. } if next_pid == tid => Some(next_prio),
        EventData::Switch { prev_pid, prev_prio, .. } if prev_pid == tid => Some(prev_prio),
        EventData::PiSetprio { pid, new_prio, .. } if pid == tid => Some(new_prio),
        _ => None,
    }
}

fn priority(wake: &WakeUp, window: &Window) -> Option<i32> {
    let recorded = window.events.iter().rev().find_map(|event| match &event.what {
        EventData::Waking { pid, prio, .. } | EventData::Wakeup { pid, prio, .. }
            if *pid == wake.tid =>
        {
            Some(*prio)
        }
        EventData::Switch { next_pid, next_prio, .. } if *next_pid == wake.tid => Some(*next_prio),
        _ => None,
    });
    recorded.or_else(|| {
        let task = window.tasks.get(&wake.tid).filter(|task| task.policy.is_some())?;
        Some(if task.rt_priority > 0 {
            99 - i32::try_from(task.rt_priority).ok()?
        } else {
            120 + task.nice
        })
    })
}

// What the timer interrupt interrupted, from the stack recorded with it.
//
// A stack without a frame under the interrupt's entry means that the CPU was in user mode, where
// interrupts cannot be off: whatever held the interrupt up was hardware or a hypervisor.

/// How long after the interrupt's entry its stack is written at most.
const STACK_WITHIN_NS: u64 = 200_000;

/// What an interrupt interrupted: user mode, or the kernel with its stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// No stack was recorded, or it cannot be read.
    Unknown,
    User,
    /// The kernel: functions, innermost first.
    Kernel(Vec<String>),
}

impl Interrupted {
    /// From the stack after the interrupt that began at `irq_ns`.
    pub(super) fn at(window: &Window, cpu: u32, irq_ns: Option<u64>) -> Self {
        let Some(irq_ns) = irq_ns else { return Self::Unknown };
        let after = |at_ns: u64| (irq_ns..=irq_ns.saturating_add(STACK_WITHIN_NS)).contains(&at_ns);
        let events = window.events.iter().filter(|e| e.cpu == cpu && after(e.at_ns));
        // The stack is written right after the event that it belongs to: the first one counts.
        let stack = events.take(4).find_map(|event| match &event.what {
            EventData::Stack { frames } => Some((event.pid, frames)),
            _ => None,
        });
        let Some((pid, frames)) = stack else { return Self::Unknown };
        let names: Vec<&str> =
            frames.iter().map(|&frame| window.symbol(frame).unwrap_or("?")).collect();
        Self::of(&names, pid)
    }

    fn of(names: &[&str], pid: i32) -> Self {
        let base = |name: &str| name.split('+').next().unwrap_or(name).to_owned();
        let entry = names.iter().rposition(|name| is_entry(&base(name)));
        let Some(entry) = entry else { return Self::Unknown };
        if base(names[entry]).starts_with("el0") {
            return Self::User;
        }
        let below = &names[entry + 1..];
        // What a text does not have any more may have been there.
        let (below, is_cut) = match below {
            [below @ .., CUT] => (below, true),
            below => (below, false),
        };
        if below.is_empty() && is_cut {
            return Self::Unknown;
        }
        let below: Vec<String> = below.iter().map(|&name| name.to_owned()).collect();
        if !below.is_empty() {
            return Self::Kernel(below);
        }
        // The idle task is never in user mode: this kernel's stacks end at the interrupt.
        if pid == 0 { Self::Unknown } else { Self::User }
    }
}

/// Whether it is where an interrupt enters the kernel: x86 `asm_sysvec_*`, arm64 `el1h_64_irq` and
/// `el0t_64_irq`, older x86 `apic_timer_interrupt`.
fn is_entry(name: &str) -> bool {
    name.starts_with("asm_sysvec_")
        || name.starts_with("asm_common_interrupt")
        || name == "apic_timer_interrupt"
        || (name.starts_with("el0") || name.starts_with("el1")) && name.ends_with("_irq")
        || name.starts_with("handle_riscv_irq") && !name.contains('.')
}

/// Whether a function is one in which interrupts come back on: what was held up comes right there.
pub fn turns_interrupts_on(name: &str) -> bool {
    let name = name.split('+').next().unwrap_or(name);
    const ENDS: &[&str] = &[
        "unlock_irqrestore",
        "unlock_irq",
        "irq_enable",
        "irq_restore",
        "finish_task_switch",
        "handle_softirqs",
        "__do_softirq",
        "do_idle",
        "exit_to_user_mode",
        "syscall_exit_to_user_mode",
        "console_unlock",
        "vprintk_emit",
    ];
    ENDS.iter().any(|end| name.contains(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "asm_sysvec_apic_timer_interrupt+0x1a/0x20";

    #[test]
    fn no_frame_under_the_entry_is_user_mode() {
        assert_eq!(Interrupted::of(&["trace", ENTRY], 7), Interrupted::User);
        assert_eq!(Interrupted::of(&["trace", ENTRY], 0), Interrupted::Unknown, "idle never is");
        assert_eq!(Interrupted::of(&["el0t_64_irq_handler", "el0t_64_irq+0x1"], 7), {
            Interrupted::User
        });
        assert_eq!(Interrupted::of(&["trace", "more"], 7), Interrupted::Unknown);
        // A text that ends right there may have been cut.
        assert_eq!(Interrupted::of(&["trace", ENTRY, CUT], 7), Interrupted::Unknown);
    }

    #[test]
    fn frames_under_the_entry_are_what_was_interrupted() {
        let kernel = Interrupted::of(&["trace", ENTRY, "_raw_spin_unlock_irq+0x1/0x9", "f"], 7);
        let Interrupted::Kernel(frames) = kernel else { panic!("{kernel:?}") };
        assert_eq!(frames[1], "f");
        assert!(turns_interrupts_on(&frames[0]) && !turns_interrupts_on(&frames[1]));
    }
}
