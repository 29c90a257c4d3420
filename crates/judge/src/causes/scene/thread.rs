//! What the late thread was doing, from its own events on any CPU.

#[cfg(test)]
mod blind_tests;

use rtproof_trace::{
    Event, EventData, LateTimer, Task, WakeUp, WakeUpBasis, Window, context::Stretch,
};

use super::Interrupted;

/// What the late thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadActivity {
    /// Running on a CPU.
    Running { cpu: u32 },
    /// Could run and did not.
    Runnable {
        /// On the queue of this CPU.
        cpu: u32,
        since_ns: u64,
    },
    /// Asleep, waiting for its timer or its event.
    Sleeping,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Waiting inside the kernel, not to be interrupted.
    Blocked,
}

/// Whether a wake-up is one of the kernel's timerlat threads, whose interrupt writes an event of
/// its own instead of sched_waking.
pub(super) fn is_timerlat(wake: &WakeUp, window: &Window) -> bool {
    // The latency-format of the text shows eight characters.
    let is_named = |task: &Task| task.comm.starts_with("timerlat/") || task.comm == "timerlat";
    wake.how == WakeUpBasis::Measured
        && (wake.tid < 0 || window.tasks.get(&wake.tid).is_some_and(is_named))
}

/// Whether an event is the interrupt of the timerlat thread that wakes it.
pub(super) fn is_timerlat_irq(event: &Event, wake: &WakeUp, window: &Window) -> bool {
    matches!(event.what, EventData::Timerlat { context: 0, .. })
        && event.cpu == wake.cpu
        && is_timerlat(wake, window)
}

/// Bits of a task's state in sched_switch (TASK_REPORT in include/linux/sched.h).
pub(super) mod state {
    pub(crate) const INTERRUPTIBLE: u64 = 0x01;
    pub(crate) const UNINTERRUPTIBLE: u64 = 0x02;
    pub(crate) const STOPPED: u64 = 0x04 | 0x08;
    /// What the kernel reports; above it a mark says that the task was preempted.
    pub(crate) const REPORTED: u64 = 0x7f;
}

/// What the thread was doing from due to run, from its own events on any CPU.
pub(super) fn thread_states(wake: &WakeUp, window: &Window) -> Vec<(u64, u64, ThreadActivity)> {
    // Without recorded switches its leaving is not seen, and having run proves nothing of later.
    let has_switches =
        window.events.iter().any(|event| matches!(event.what, EventData::Switch { .. }));
    let changes = window.events.iter().filter_map(|event| {
        let (at_ns, earlier, then) = change(event, wake, window)?;
        let ran = (earlier, then) == (None, ThreadActivity::Running { cpu: event.cpu });
        (has_switches || !ran).then_some((at_ns, event.cpu, earlier, then))
    });
    let changes: Vec<(u64, u32, Option<ThreadActivity>, ThreadActivity)> = changes.collect();
    let (before, after) =
        changes.split_at(changes.partition_point(|(at_ns, ..)| *at_ns <= wake.due_ns));
    // What an event means depends on what was before it: a thread on its way to sleep is woken
    // while it runs.
    let before =
        before.iter().fold(None, |now: Option<ThreadActivity>, &(at_ns, cpu, earlier, then)| {
            let now = now.or(earlier).unwrap_or(ThreadActivity::Sleeping);
            Some(follow(left(now, earlier, cpu), then, at_ns))
        });
    let start = match (before, after.first()) {
        (Some(now), _) => now,
        (None, Some((.., Some(earlier), _))) => *earlier,
        (None, Some((.., None, _)) | None) => ThreadActivity::Running { cpu: wake.cpu },
    };
    let mut states = Vec::new();
    let (mut at_ns, mut now) = (wake.due_ns, start);
    for &(change_ns, cpu, earlier, then) in &changes {
        if change_ns <= wake.due_ns || change_ns >= wake.ran_ns {
            continue;
        }
        now = left(now, earlier, cpu);
        let then = follow(now, then, change_ns);
        if then != now {
            states.push((at_ns, change_ns, now));
            (at_ns, now) = (change_ns, then);
        }
    }
    states.push((at_ns, wake.ran_ns, now));
    states
}

/// The state before an event, given the one after the last: what wakes it out of another task of
/// its CPU shows that it had left that, though no switch did.
fn left(now: ThreadActivity, earlier: Option<ThreadActivity>, on_cpu: u32) -> ThreadActivity {
    match (now, earlier) {
        (ThreadActivity::Running { cpu }, Some(earlier @ ThreadActivity::Sleeping))
            if cpu == on_cpu =>
        {
            earlier
        }
        _ => now,
    }
}

/// The state after an event, given the one before: a thread that is woken while it runs goes on.
fn follow(now: ThreadActivity, then: ThreadActivity, at_ns: u64) -> ThreadActivity {
    match (now, then) {
        (ThreadActivity::Running { .. }, ThreadActivity::Runnable { since_ns: u64::MAX, .. }) => {
            now
        }
        (
            ThreadActivity::Runnable { cpu: before, .. },
            ThreadActivity::Runnable { cpu, since_ns: u64::MAX },
        ) if cpu == before => now,
        (_, ThreadActivity::Runnable { cpu, .. }) => {
            ThreadActivity::Runnable { cpu, since_ns: at_ns }
        }
        _ => then,
    }
}

/// What an event says of the thread: when, its state before where that is certain, its state after.
/// A wake-up carries `u64::MAX`: what it means depends on the state before.
fn change(
    event: &Event,
    wake: &WakeUp,
    window: &Window,
) -> Option<(u64, Option<ThreadActivity>, ThreadActivity)> {
    let (at_ns, tid) = (event.at_ns, wake.tid);
    match &event.what {
        EventData::Switch { prev_pid, prev_state, .. } if *prev_pid == tid => {
            let bits = prev_state & state::REPORTED;
            let then = if bits & state::STOPPED != 0 {
                ThreadActivity::Stopped
            } else if bits & state::INTERRUPTIBLE != 0 {
                ThreadActivity::Sleeping
            } else if bits & state::UNINTERRUPTIBLE != 0 {
                ThreadActivity::Blocked
            } else if bits != 0 {
                ThreadActivity::Sleeping
            } else {
                ThreadActivity::Runnable { cpu: event.cpu, since_ns: at_ns }
            };
            Some((at_ns, Some(ThreadActivity::Running { cpu: event.cpu }), then))
        }
        EventData::Switch { next_pid, .. } if *next_pid == tid => {
            let before = ThreadActivity::Runnable { cpu: event.cpu, since_ns: 0 };
            Some((at_ns, Some(before), ThreadActivity::Running { cpu: event.cpu }))
        }
        EventData::Waking { pid, target_cpu, .. } if *pid == tid => {
            let then = ThreadActivity::Runnable { cpu: *target_cpu, since_ns: u64::MAX };
            // Out of an interrupt of its own: it was on its way to sleep.
            let runs = event.pid == tid;
            let before = if runs {
                ThreadActivity::Running { cpu: event.cpu }
            } else {
                ThreadActivity::Sleeping
            };
            Some((at_ns, Some(before), then))
        }
        EventData::Wakeup { pid, target_cpu, .. } if *pid == tid => {
            Some((at_ns, None, ThreadActivity::Runnable { cpu: *target_cpu, since_ns: u64::MAX }))
        }
        EventData::Migrate { pid, to_cpu, .. } if *pid == tid => {
            Some((at_ns, None, ThreadActivity::Runnable { cpu: *to_cpu, since_ns: u64::MAX }))
        }
        EventData::Timerlat { .. } if is_timerlat_irq(event, wake, window) => {
            let then = ThreadActivity::Runnable { cpu: event.cpu, since_ns: u64::MAX };
            let before = (event.pid != tid).then_some(ThreadActivity::Sleeping);
            Some((at_ns, before, then))
        }
        // Some kernels leave out switches from the idle task. osnoise writes inside of a switch.
        EventData::Noise { .. } => None,
        _ if event.pid == tid && tid > 0 => {
            Some((at_ns, None, ThreadActivity::Running { cpu: event.cpu }))
        }
        _ => None,
    }
}

// Stretches in which nothing is certain, because events are missing.
//
// The kernel marks what it overwrote. It does not mark what it refused to record: while a ring
// buffer is resized, by whoever may do that, recording is off (rb_remove_pages in
// kernel/trace/ring_buffer.c) and events are gone without a trace. Where an event shows that
// another task is current than the one that was switched to last, `context::reconstruct` infers
// the switch. A text may end early, and people leave lines out.

/// A stretch in which nothing is known.
#[derive(Clone, Copy, Debug)]
pub struct UnknownStretch {
    pub from_ns: u64,
    pub to_ns: u64,
    pub why: &'static str,
}

/// A stretch in which events are missing, and the same task was current before and after.
pub type DoubtfulStretch = UnknownStretch;

/// The kernel says so, or the window does not reach as far.
const LOST: &str = "events of this time were lost, or had already been overwritten";

/// Whoever copied a text left them out.
const LEFT_OUT: &str = "entries that are left out of the text";

/// They are not in a text: it was cut, or the tracer stopped before.
const ENDS: &str = "the recording ends before the thread ran";

/// Nothing says so, and yet the late thread never got the CPU.
const UNRECORDED: &str =
    "events of this time contradict each other: the kernel did not record all, and does not say so";

/// Where events are missing between due and run: where nothing is known until both the thread's
/// state and the CPU's are recorded again, and where what is before and after fits together.
/// `thread`: what the thread was doing, as far as the events show.
pub(super) fn missing_stretches(
    wake: &WakeUp,
    window: &Window,
    thread: &[(u64, u64, ThreadActivity)],
) -> (Vec<UnknownStretch>, Vec<DoubtfulStretch>) {
    let is_about = |event: &Event| event.pid == wake.tid || change(event, wake, window).is_some();
    if !window.events.iter().any(is_about) {
        return (
            vec![UnknownStretch { from_ns: wake.due_ns, to_ns: wake.ran_ns, why: LOST }],
            Vec::new(),
        );
    }
    let own = || window.events.iter().filter(|event| event.cpu == wake.cpu);
    let known_ns = |from_ns: u64| {
        let cpu = own().find(|event| event.at_ns >= from_ns);
        let thread = window
            .events
            .iter()
            .find(|event| event.at_ns >= from_ns && change(event, wake, window).is_some());
        let at = |event: Option<&Event>| event.map_or(u64::MAX, |event| event.at_ns);
        at(cpu).max(at(thread))
    };
    let (mut unknown, mut doubts) = (Vec::new(), Vec::new());
    let add = |list: &mut Vec<UnknownStretch>, from_ns: u64, to_ns: u64, why| {
        let (from_ns, to_ns) = (from_ns.max(wake.due_ns), to_ns.min(wake.ran_ns));
        if from_ns < to_ns {
            list.push(UnknownStretch { from_ns, to_ns, why });
        }
    };
    for lost in &window.lost {
        let before = own().rfind(|event| event.at_ns <= lost.from_ns).map(after);
        let behind = own().find(|event| event.at_ns >= lost.to_ns).map(current);
        // A kernel that loses events loses many; people leave out what looks the same.
        let by_hand = lost.count.is_none() && !window.coverage.is_all();
        if by_hand && before.is_some() && before == behind && behind != Some(wake.tid) {
            add(&mut doubts, lost.from_ns, lost.to_ns, LEFT_OUT);
        } else {
            add(&mut unknown, lost.from_ns, known_ns(lost.to_ns), LOST);
        }
    }
    if window.from_ns > wake.due_ns {
        add(&mut unknown, 0, known_ns(window.from_ns), LOST);
    }
    if window.to_ns < wake.ran_ns {
        add(&mut unknown, window.to_ns, u64::MAX, ENDS);
    }
    // Nothing where switches are not recorded at all.
    let has_switches = own().any(|event| matches!(event.what, EventData::Switch { .. }));
    let is_whole = || runs_in_the_end(wake, window, thread) || ends_before_it_ran(wake, window);
    if has_switches && unknown.is_empty() && !is_whole() {
        let last = own().rfind(|event| event.at_ns < wake.ran_ns);
        add(&mut unknown, last.map_or(0, |event| event.at_ns), wake.ran_ns, UNRECORDED);
    }
    (unknown, doubts)
}

/// The task that is current when an event is written.
const fn current(event: &Event) -> i32 {
    match event.what {
        EventData::Switch { prev_pid, .. } => prev_pid,
        _ => event.pid,
    }
}

/// The task that is current after an event.
const fn after(event: &Event) -> i32 {
    match event.what {
        EventData::Switch { next_pid, .. } => next_pid,
        _ => event.pid,
    }
}

/// Whether the events show that the late thread got the CPU.
fn runs_in_the_end(wake: &WakeUp, window: &Window, thread: &[(u64, u64, ThreadActivity)]) -> bool {
    let is_running = |state: ThreadActivity| matches!(state, ThreadActivity::Running { .. });
    // The switch itself may be the end of the wait; or the thread's own event.
    let at_the_end = || {
        window.events.iter().any(|event| {
            let is_end = event.at_ns == wake.ran_ns;
            let runs = change(event, wake, window).is_some_and(|(.., then)| is_running(then));
            is_end && (runs || event.pid == wake.tid)
        })
    };
    thread.last().is_some_and(|&(.., state)| is_running(state)) || at_the_end()
}

/// Whether the wake-up ends with an event of another task, as the switch from that to the thread
/// was not recorded: see [`rtproof_trace::scan::ThreadTotals::at_least`].
pub(super) fn ends_before_it_ran(wake: &WakeUp, window: &Window) -> bool {
    let at_its_end = |event: &&Event| event.cpu == wake.cpu && event.at_ns == wake.ran_ns;
    // In a text several may have the same time; and a wake-up that is itself the end is another.
    let is_other = |event: &Event| {
        current(event) != wake.tid
            && after(event) != wake.tid
            && !matches!(event.what, EventData::Wakeup { pid, .. } if pid == wake.tid)
    };
    let mut last = window.events.iter().filter(at_its_end).peekable();
    matches!(wake.how, WakeUpBasis::Timer | WakeUpBasis::Woken)
        && last.peek().is_some()
        && last.all(is_other)
}

// The timer of an earlier cycle: a thread that was due again while it still waited for that one,
// as one does that makes up for cycles that it missed.

/// Functions of timers that wake the very thread that started them (kernel/time/hrtimer.c).
const SLEEPER: &str = "hrtimer_wakeup";

/// A wait that had not ended when the thread was due.
#[derive(Clone, Debug)]
pub struct EarlierWait {
    /// What its timer was set for; `None`: it was set before the events begin.
    pub set_for_ns: Option<u64>,
    /// When the interrupt began that ended it.
    pub irq_ns: Option<u64>,
    pub interrupted: Interrupted,
    pub woken_ns: u64,
}

/// The wait that a timer of the thread ended after it was due and before it had started the timer
/// of this wake-up.
pub(super) fn earlier_wait(
    wake: &WakeUp,
    window: &Window,
    stretches: &[Stretch],
    armed_ns: Option<u64>,
) -> Option<EarlierWait> {
    let armed_ns = armed_ns.filter(|&at_ns| at_ns > wake.due_ns)?;
    let is_waking = |what: &EventData| match what {
        EventData::Waking { pid, .. } | EventData::Wakeup { pid, .. } => *pid == wake.tid,
        _ => false,
    };
    let waking = window
        .events
        .iter()
        .find(|e| (wake.due_ns..armed_ns).contains(&e.at_ns) && is_waking(&e.what))?;
    let before = || window.events.iter().rev().filter(|event| event.at_ns <= waking.at_ns);
    // Inside the function of a timer.
    let expired = before().filter(|event| event.cpu == waking.cpu).find_map(|e| match e.what {
        EventData::TimerExpire { timer, function, .. } => Some(Some((timer, function))),
        EventData::TimerExpired { .. } => Some(None),
        _ => None,
    });
    let (timer, function) = expired.flatten()?;
    let set_for_ns = before().filter(|event| event.pid == wake.tid).find_map(|e| match e.what {
        EventData::TimerStart { timer: started, expires_ns, soft_ns, .. } if started == timer => {
            Some(if soft_ns > 0 { soft_ns } else { expires_ns })
        }
        _ => None,
    });
    let is_sleeper = || window.symbol(function).is_some_and(|name| name.starts_with(SLEEPER));
    if set_for_ns.is_none() && !is_sleeper() {
        return None;
    }
    let inside = |of: &&Stretch| of.from_ns < waking.at_ns && waking.at_ns <= of.to_ns;
    let stretch = stretches.iter().find(inside).filter(|_| waking.cpu == wake.cpu);
    let irq_ns = stretch.and_then(|of| of.state.hard).map(|(_, from_ns)| from_ns);
    let interrupted = Interrupted::at(window, wake.cpu, irq_ns);
    Some(EarlierWait { set_for_ns, irq_ns, interrupted, woken_ns: waking.at_ns })
}

// A timer that expires in a thread of the kernel: on PREEMPT_RT those of ordinary threads, timerfd
// and POSIX timers do, in ktimers or ksoftirqd, which the interrupt wakes and which waits.

/// A timer may be handled so much before its time: two clocks are compared with rounding.
pub(super) const EARLY_NS: u64 = 2_000;

/// The thread that wakes the late one.
#[derive(Clone, Copy, Debug)]
pub struct SoftirqWaker {
    pub tid: i32,
    /// Its priority in the kernel's scale.
    pub prio: Option<i32>,
    /// Time from which it had to run for that.
    pub from_ns: u64,
}

/// Whether a thread of this name runs softirqs.
pub(super) fn runs_softirqs(comm: &str) -> bool {
    comm.starts_with("ktimers/") || comm.starts_with("ksoftirqd/")
}

/// Who woke the thread, if it was such a thread: since it was woken itself, or since the interrupt
/// that came when the timer was due.
pub(super) fn softirq_waker(
    wake: &WakeUp,
    window: &Window,
    stretches: &[Stretch],
    woken_ns: u64,
) -> Option<SoftirqWaker> {
    let begin_ns = wake.due_ns.saturating_sub(EARLY_NS);
    let inside = || window.events.iter().filter(|e| (begin_ns..=woken_ns).contains(&e.at_ns));
    let woken_by = |what: &EventData| match what {
        EventData::Waking { pid, .. } | EventData::Wakeup { pid, .. } => Some(*pid),
        _ => None,
    };
    let is_woken = |what: &EventData, tid: i32| woken_by(what) == Some(tid);
    let by = inside().find(|e| e.at_ns == woken_ns && is_woken(&e.what, wake.tid))?;
    let runs = window.tasks.get(&by.pid).is_some_and(|task| runs_softirqs(&task.comm));
    if by.cpu != wake.cpu || !runs {
        return None;
    }
    let prio = |what: &EventData| match what {
        EventData::Waking { pid, prio, .. } | EventData::Wakeup { pid, prio, .. }
            if *pid == by.pid =>
        {
            Some(*prio)
        }
        EventData::Switch { next_pid, next_prio, .. } if *next_pid == by.pid => Some(*next_prio),
        _ => None,
    };
    let woken = inside().rfind(|event| is_woken(&event.what, by.pid)).map(|event| event.at_ns);
    let served = || {
        let mut of_timer = stretches.iter().filter(|stretch| {
            stretch.state.hard.is_some_and(|(hard, _)| hard.is_timer())
                && (wake.due_ns..woken_ns).contains(&stretch.to_ns)
        });
        of_timer.next().map(|stretch| stretch.to_ns)
    };
    Some(SoftirqWaker {
        tid: by.pid,
        prio: window.events.iter().rev().find_map(|event| prio(&event.what)),
        from_ns: woken.or_else(served)?,
    })
}

// Stretches in which the machine stalled: the late CPU was silent, and another one that was
// idle got its timer late meanwhile. No code holds up an idle CPU; what stops two at once is
// below the kernel.

/// The silence of two CPUs.
#[derive(Clone, Copy, Debug)]
pub struct SilentStretch {
    pub from_ns: u64,
    pub to_ns: u64,
    pub witness: LateTimer,
}

/// A shorter silence of both proves nothing: deep idle states take that long.
const LEAST_NS: u64 = 1_000_000;

/// Those between due and run.
pub(super) fn idle_stretches(wake: &WakeUp, window: &Window) -> Vec<SilentStretch> {
    let mut found: Vec<SilentStretch> = Vec::new();
    for &witness in &window.late_idle {
        let own = window.events.iter().filter(|event| event.cpu == wake.cpu);
        // Its last event before the witness's timer, and its first one since.
        let last = own.clone().rfind(|event| event.at_ns < witness.due_ns.max(wake.due_ns));
        let begin_ns = last.map_or(window.from_ns, |event| event.at_ns);
        let next = own.clone().find(|event| event.at_ns > begin_ns);
        let end_ns = next.map_or(window.to_ns, |event| event.at_ns);
        let (from_ns, to_ns) = (begin_ns.max(witness.from_ns), end_ns.min(witness.to_ns));
        let proven_ns = to_ns.saturating_sub(witness.due_ns.max(from_ns));
        let (from_ns, to_ns) = (from_ns.max(wake.due_ns), to_ns.min(wake.ran_ns));
        let is_new = found.iter().all(|stood| to_ns <= stood.from_ns || stood.to_ns <= from_ns);
        // Before its timer was due the witness says little: the silence is one where most of it
        // is proven.
        if is_new
            && proven_ns >= LEAST_NS
            && proven_ns >= to_ns.saturating_sub(from_ns) / 2
            && from_ns < to_ns
        {
            found.push(SilentStretch { from_ns, to_ns, witness });
        }
    }
    found
}

#[cfg(test)]
mod earlier_tests {
    use rtproof_trace::{EventData, event::Vector};

    use crate::causes::Explanation;
    use crate::causes::testing::{DUE, LATE, Story, US, top};

    /// A loop of 1 ms whose last wake-up was set for `set_for_us` after it was due again. Its
    /// interrupt came 2 ms late, over task 7, and the next cycle's timer has long been due.
    fn made_up(set_for_us: Option<i64>) -> Explanation {
        let (timer, function, vector) = (1, 9, Vector::LocalTimer);
        let mut story = Story::new();
        story.window.symbols.insert(function, "hrtimer_wakeup".into());
        if let Some(us) = set_for_us {
            let expires_ns = DUE.saturating_add_signed(us * 1_000);
            let start = EventData::TimerStart { timer, function, expires_ns, soft_ns: expires_ns };
            story = story.event(-900, LATE, 0, start);
        }
        let over = rtproof_trace::event::flags::IRQS_OFF | rtproof_trace::event::flags::HARDIRQ;
        let again = EventData::TimerStart { timer, function, expires_ns: DUE, soft_ns: DUE };
        story
            .event(
                2_000,
                7,
                rtproof_trace::event::flags::IRQS_OFF,
                EventData::VectorEntry { vector },
            )
            .event(
                2_001,
                7,
                over,
                EventData::TimerExpire { timer, function, now_ns: DUE + 2_001 * US },
            )
            .waking(2_002, 7)
            .event(2_003, 7, over, EventData::TimerExpired { timer })
            .event(2_004, 7, over, EventData::VectorExit { vector })
            .switch(2_006, 7, 120, 0, LATE, 19)
            .event(2_010, LATE, 0, again)
            .event(
                2_011,
                LATE,
                rtproof_trace::event::flags::IRQS_OFF,
                EventData::VectorEntry { vector },
            )
            .waking(2_012, LATE)
            .event(2_013, LATE, over, EventData::VectorExit { vector })
            .ran(2_015)
    }

    #[test]
    fn a_cycle_that_was_due_while_the_one_before_it_was_late_is_late_for_that_reason() {
        let explained = made_up(Some(-500));
        assert!(explained.shares.iter().all(|share| share.cause != "blocked"), "{explained:?}");
        assert_eq!((top(&explained).0, top(&explained).2), ("irqs-off", 2_000), "{explained:?}");
    }

    #[test]
    fn a_timer_that_was_set_for_later_than_the_next_cycle_is_the_threads_own_doing() {
        let explained = made_up(Some(1_500));
        let share = |cause: &str| {
            let found = explained.shares.iter().find(|share| share.cause == cause);
            found.map_or(0, |share| share.ns / US)
        };
        assert_eq!((share("own-cycle") >= 1_500, share("irqs-off")), (true, 500), "{explained:?}");
    }

    #[test]
    fn a_timer_that_was_set_before_the_events_begin_makes_nothing_certain() {
        let explained = made_up(None);
        let (cause, culprit, _) = top(&explained);
        assert_eq!((cause, culprit), ("blocked", "the timer of an earlier cycle"));
        let share =
            explained.shares.iter().find(|share| share.cause == "blocked").expect("it is there");
        assert_eq!(share.alternatives, ["own-cycle", "stall", "irqs-off"], "{explained:?}");
    }
}

#[cfg(test)]
mod handed_tests {
    use rtproof_trace::{EventData, TaskPolicy, event::Vector};

    use crate::causes::Explanation;
    use crate::causes::testing::{Story, top};

    const HOG: i32 = 60;
    const KTIMERS: i32 = 15;

    /// The timer of the late thread expires in ktimers [FIFO 1], which waits for the hog.
    fn explanation_of(hog: (TaskPolicy, u32, i32), is_woken: bool) -> Explanation {
        let (policy, priority, prio) = hog;
        let story = Story::new().with(HOG, "hog", policy, priority);
        let story = story.with(KTIMERS, "ktimers/0", TaskPolicy::Fifo, 1);
        let vector = Vector::LocalTimer;
        let over = rtproof_trace::event::flags::IRQS_OFF | rtproof_trace::event::flags::HARDIRQ;
        let story = story.switch(-100, 7, 120, 0, HOG, prio);
        let story = story.event(
            1,
            HOG,
            rtproof_trace::event::flags::IRQS_OFF,
            EventData::VectorEntry { vector },
        );
        let waking =
            EventData::Waking { comm: Default::default(), pid: KTIMERS, prio: 98, target_cpu: 0 };
        let story = if is_woken { story.event(2, HOG, over, waking) } else { story };
        let story = story.event(3, HOG, over, EventData::VectorExit { vector });
        let story = story.switch(4_000, HOG, prio, 1, KTIMERS, 98);
        let story = story.waking(4_010, KTIMERS);
        story.switch(4_015, KTIMERS, 98, 1, crate::causes::testing::LATE, 19).ran(4_020)
    }

    #[test]
    fn a_task_that_keeps_ktimers_from_running_is_the_cause() {
        for is_woken in [true, false] {
            // The hog is below the late thread (FIFO 80), and above the one that is to wake it.
            let explained = explanation_of((TaskPolicy::Fifo, 50, 49), is_woken);
            assert_eq!(
                (top(&explained).0, top(&explained).1),
                ("preempted", "hog [FIFO 50]"),
                "{explained:?}"
            );
            assert!(explained.shares[0].alternatives.is_empty(), "{explained:?}");
            assert!(
                explained.shares[0].detail.iter().any(|line| line.contains("ktimers/0")),
                "{explained:?}"
            );
        }
        let explained = explanation_of((TaskPolicy::Other, 0, 120), true);
        assert_eq!(
            (top(&explained).0, top(&explained).1),
            ("preempt-off", "hog [OTHER]"),
            "{explained:?}"
        );
    }
}

#[cfg(test)]
mod stood_tests {
    use rtproof_trace::LateTimer;

    use crate::causes::Explanation;
    use crate::causes::testing::{DUE, Story, US};

    const STACK: [&str; 2] = ["asm_sysvec_apic_timer_interrupt+0x1a/0x20", "memset_erms+0x1/0x2"];

    /// Task 7 on the CPU, interrupts come after 8 ms, while it runs kernel code.
    fn explanation_of(from_us: u64, due_us: u64, to_us: u64) -> Explanation {
        let mut story = Story::new();
        let at = |us: u64| DUE + us * US;
        let witness =
            LateTimer { cpu: 1, from_ns: at(from_us), due_ns: at(due_us), to_ns: at(to_us) };
        story.window.late_idle.push(witness);
        story.window.surroundings.guest = Some(true);
        let story = story.timer(8_000, 7).stack(8_000, 7, &STACK);
        story.runs(8_100, 7, 120)
    }

    /// Microseconds, and what it may as well be.
    fn of(explained: &Explanation, cause: &str) -> Vec<(u64, String)> {
        let shares = explained.shares.iter().filter(|share| share.cause == cause);
        shares.map(|share| (share.ns / US, share.alternatives.join(" "))).collect()
    }

    #[test]
    fn an_idle_cpu_that_was_late_as_well_proves_that_both_stood_still() {
        let all = explanation_of(0, 1_000, 8_500);
        assert_eq!(of(&all, "stall"), [(8_000, String::new())], "{all:?}");
        assert!(of(&all, "irqs-off").is_empty());
        assert!(all.shares[0].detail.iter().any(|line| line.contains("CPU 1 was idle")));
        // It was silent from 1.5 ms on, and came back after 7 ms: the rest is not proven.
        let part = explanation_of(1_500, 2_000, 7_000);
        assert_eq!(of(&part, "stall"), [(5_500, String::new())], "{part:?}");
        assert_eq!(of(&part, "irqs-off"), [(2_500, "stall".into())]);
    }

    #[test]
    fn a_short_or_distant_witness_is_ignored() {
        // Less than a millisecond late; late for the smaller part of the silence; long before.
        for (from_us, due_us, to_us) in [(0, 7_200, 8_000), (0, 6_000, 8_000), (0, 20, 500)] {
            let explained = explanation_of(from_us, due_us, to_us);
            assert!(of(&explained, "stall").is_empty(), "{explained:?}");
            assert_eq!(of(&explained, "irqs-off"), [(8_000, "stall".into())]);
        }
        // The late CPU was at work meanwhile.
        let mut story = Story::new();
        let (from_ns, due_ns, to_ns) = (DUE, DUE + 1_000 * US, DUE + 8_000 * US);
        story.window.late_idle.push(LateTimer { cpu: 1, from_ns, due_ns, to_ns });
        for us in (500..8_000).step_by(500) {
            story = story.event(
                us,
                7,
                rtproof_trace::event::flags::IRQS_OFF,
                rtproof_trace::EventData::IdleExit,
            );
        }
        let explained = story.timer(8_000, 7).runs(8_100, 7, 120);
        assert!(of(&explained, "stall").is_empty(), "{explained:?}");
    }
}
