//! What the late thread was doing, from its own events on any CPU.

use rtproof_trace::{Event, How, Task, WakeUp, What, Window};

/// What the late thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
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
    wake.how == How::Measured && (wake.tid < 0 || window.tasks.get(&wake.tid).is_some_and(is_named))
}

/// Whether an event is the interrupt of the timerlat thread that wakes it.
pub(super) fn is_timerlat_irq(event: &Event, wake: &WakeUp, window: &Window) -> bool {
    matches!(event.what, What::Timerlat { context: 0, .. })
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
pub(super) fn thread_states(wake: &WakeUp, window: &Window) -> Vec<(u64, u64, Thread)> {
    // Where no switch is recorded nobody sees it leave, and that it ran then says nothing of later.
    let has_switches = window.events.iter().any(|event| matches!(event.what, What::Switch { .. }));
    let changes = window.events.iter().filter_map(|event| {
        let (at_ns, earlier, then) = change(event, wake, window)?;
        let ran = (earlier, then) == (None, Thread::Running { cpu: event.cpu });
        (has_switches || !ran).then_some((at_ns, event.cpu, earlier, then))
    });
    let changes: Vec<(u64, u32, Option<Thread>, Thread)> = changes.collect();
    let (before, after) =
        changes.split_at(changes.partition_point(|(at_ns, ..)| *at_ns <= wake.due_ns));
    // What an event means depends on what was before it: a thread on its way to sleep is woken
    // while it runs.
    let before = before.iter().fold(None, |now: Option<Thread>, &(at_ns, cpu, earlier, then)| {
        let now = now.or(earlier).unwrap_or(Thread::Sleeping);
        Some(follow(left(now, earlier, cpu), then, at_ns))
    });
    let start = match (before, after.first()) {
        (Some(now), _) => now,
        (None, Some((.., Some(earlier), _))) => *earlier,
        (None, Some((.., None, _)) | None) => Thread::Running { cpu: wake.cpu },
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
fn left(now: Thread, earlier: Option<Thread>, on_cpu: u32) -> Thread {
    match (now, earlier) {
        (Thread::Running { cpu }, Some(earlier @ Thread::Sleeping)) if cpu == on_cpu => earlier,
        _ => now,
    }
}

/// The state after an event, given the one before: a thread that is woken while it runs goes on.
pub(super) fn follow(now: Thread, then: Thread, at_ns: u64) -> Thread {
    match (now, then) {
        (Thread::Running { .. }, Thread::Runnable { since_ns: u64::MAX, .. }) => now,
        (Thread::Runnable { cpu: before, .. }, Thread::Runnable { cpu, since_ns: u64::MAX })
            if cpu == before =>
        {
            now
        }
        (_, Thread::Runnable { cpu, .. }) => Thread::Runnable { cpu, since_ns: at_ns },
        _ => then,
    }
}

/// What an event says of the thread: when, its state before where that is certain, its state after.
/// A wake-up carries `u64::MAX`: what it means depends on the state before.
pub(super) fn change(
    event: &Event,
    wake: &WakeUp,
    window: &Window,
) -> Option<(u64, Option<Thread>, Thread)> {
    let (at_ns, tid) = (event.at_ns, wake.tid);
    match &event.what {
        What::Switch { prev_pid, prev_state, .. } if *prev_pid == tid => {
            let bits = prev_state & state::REPORTED;
            let then = if bits & state::STOPPED != 0 {
                Thread::Stopped
            } else if bits & state::INTERRUPTIBLE != 0 {
                Thread::Sleeping
            } else if bits & state::UNINTERRUPTIBLE != 0 {
                Thread::Blocked
            } else if bits != 0 {
                Thread::Sleeping
            } else {
                Thread::Runnable { cpu: event.cpu, since_ns: at_ns }
            };
            Some((at_ns, Some(Thread::Running { cpu: event.cpu }), then))
        }
        What::Switch { next_pid, .. } if *next_pid == tid => {
            let before = Thread::Runnable { cpu: event.cpu, since_ns: 0 };
            Some((at_ns, Some(before), Thread::Running { cpu: event.cpu }))
        }
        What::Waking { pid, target_cpu, .. } if *pid == tid => {
            let then = Thread::Runnable { cpu: *target_cpu, since_ns: u64::MAX };
            // Out of an interrupt of its own: it was on its way to sleep.
            let runs = event.pid == tid;
            let before = if runs { Thread::Running { cpu: event.cpu } } else { Thread::Sleeping };
            Some((at_ns, Some(before), then))
        }
        What::Wakeup { pid, target_cpu, .. } if *pid == tid => {
            Some((at_ns, None, Thread::Runnable { cpu: *target_cpu, since_ns: u64::MAX }))
        }
        What::Migrate { pid, to_cpu, .. } if *pid == tid => {
            Some((at_ns, None, Thread::Runnable { cpu: *to_cpu, since_ns: u64::MAX }))
        }
        What::Timerlat { .. } if is_timerlat_irq(event, wake, window) => {
            let then = Thread::Runnable { cpu: event.cpu, since_ns: u64::MAX };
            let before = (event.pid != tid).then_some(Thread::Sleeping);
            Some((at_ns, before, then))
        }
        // Some kernels leave out switches from the idle task. osnoise writes inside of a switch.
        What::Noise { .. } => None,
        _ if event.pid == tid && tid > 0 => Some((at_ns, None, Thread::Running { cpu: event.cpu })),
        _ => None,
    }
}
