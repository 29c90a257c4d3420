//! Causes whose culprit is a task, or what the scheduler does with tasks: preemption, queues,
//! throttling, locks.

use rtproof_host::knobs::cpu::RT_RUNTIME;
use rtproof_trace::{Event, EventData, WakeUpBasis, context::reconstruct};

use super::scene::{Moment, Scene, ThreadActivity, WakeUpPhase};
use super::{Attribution, Cause, CauseKind, FAIR, PriorityOrder, changed, left_with, names, order};
use crate::Remedy;

// The thread waited for something else than its timer.

pub(super) const BLOCKED: Cause = Cause {
    id: "blocked",
    kind: CauseKind::Blocking,
    title: "waiting for a lock, a message, the disk or memory",
    about: "sched_switch saw the thread leave uninterruptibly (D), without a page fault before. Or \
        it slept before it had started its timer, or while timer interrupts of its CPU were served \
        that did not wake it. The waker ended the wait",
    source: "include/linux/sched.h (TASK_UNINTERRUPTIBLE); futex(7)",
    checks: &["app-swapped", "swap"],
    attribute: attribute_blocked,
};

fn attribute_blocked(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != WakeUpPhase::Blocked {
        return None;
    }
    let scene = moment.scene;
    if scene.earlier_at(moment.from_ns).is_some() {
        let what = "it waited for a timer that it had set before the events begin: whether that \
                    was late, or set for so late, is not known";
        let earlier = Attribution::of_culprit("the timer of an earlier cycle");
        return Some(
            earlier.or_causes(&["own-cycle", "stall", "irqs-off"]).detail([what.to_owned()]),
        );
    }
    let waking = names::waking(scene, scene.wake.tid, scene.wake.ran_ns)
        .filter(|event| event.at_ns >= moment.from_ns);
    let by = waking.map(|event| names::waker_of(scene, event));
    let (what, how) = if moment.thread == ThreadActivity::Blocked {
        ("a lock, the disk or memory", None)
    } else if scene.armed_ns.is_some_and(|at_ns| at_ns > moment.from_ns) {
        ("a lock, a message or a fault", Some("it was asleep before it had started its timer"))
    } else {
        let why = "timer interrupts of its CPU were served meanwhile and did not wake it";
        ("a lock, a message or a fault", Some(why))
    };
    let ended = by.as_ref().map(|by| format!("ended by {by}"));
    let attribution = Attribution::of_culprit(
        by.map_or_else(|| what.to_owned(), |by| format!("{what}, held by {by}")),
    );
    let attribution = attribution.detail(how.map(str::to_owned)).detail(ended);
    Some(attribution.manual(
        "take nothing in the loop that others hold: locks with priority inheritance \
         (PTHREAD_PRIO_INHERIT), memory locked (mlockall), no blocking calls",
    ))
}

// Deferred work of the kernel ran ahead of the thread.

pub(super) const KWORKER: Cause = Cause {
    id: "kworker",
    kind: CauseKind::Scheduling,
    title: "work of the kernel (kworker)",
    about: "a kworker was running; workqueue_execute_start names the function",
    source: "kernel/workqueue.c; Wu, \"Real-time programming with Linux, part 2\" (vmstat every \
        second)",
    checks: &["workqueue-cpumask", "stat-interval"],
    attribute: attribute_kworker,
};

fn attribute_kworker(moment: &Moment<'_>) -> Option<Attribution> {
    let others: &[&str] = match order(moment) {
        PriorityOrder::Above | PriorityOrder::Equal | PriorityOrder::NotBelow => &[],
        PriorityOrder::Unknown => &["preempt-off"],
        PriorityOrder::Below | PriorityOrder::UnknownAndHeld => return None,
    };
    if moment.phase != WakeUpPhase::Runnable || !moment.is_task() {
        return None;
    }
    let scene = moment.scene;
    let name = names::comm(scene, moment.cpu.task);
    if !name.starts_with("kworker/") {
        return None;
    }
    let function = moment.cpu.work.map(|address| names::function(scene, address));
    let culprit = function.map_or_else(|| name.clone(), |function| format!("{function} ({name})"));
    let owner = moment.cpu.work.and_then(|address| names::module(scene, address));
    Some(
        Attribution::of_culprit(culprit)
            .detail(changed(moment))
            .owner(owner)
            .or_causes(others)
            .remedy(Remedy::Manual {
                text: "keep unbound work off this CPU: /sys/devices/virtual/workqueue/cpumask, \
               isolcpus=domain, nohz_full="
                    .into(),
            }),
    )
}

// The thread waited or ran on another CPU.

pub(super) const MIGRATION: Cause = Cause {
    id: "migration",
    kind: CauseKind::Scheduling,
    title: "a stopper (stop_machine, moving tasks), or a move to another CPU",
    about: "the thread was on the queue of another CPU than the one it ran on \
        (sched_migrate_task), or the stopper that moves tasks (migration/N) was running",
    source: "kernel/sched/core.c (migration_cpu_stop)",
    checks: &["app-affinity", "app-pinning"],
    attribute: attribute_migration,
};

fn attribute_migration(moment: &Moment<'_>) -> Option<Attribution> {
    if let WakeUpPhase::Elsewhere(cpu) = moment.phase {
        let attribution = Attribution::of_culprit(format!("CPU {cpu}")).detail(moved(moment));
        let attribution = attribution.detail(ran_there(moment, cpu));
        return Some(attribution.manual("pin the thread to one CPU (sched_setaffinity, taskset)"));
    }
    let is_stopper = moment.phase == WakeUpPhase::Runnable
        && moment.is_task()
        && names::comm(moment.scene, moment.cpu.task).starts_with("migration/");
    is_stopper.then(|| {
        let name = names::comm(moment.scene, moment.cpu.task);
        // Whoever has something to be stopped, or moved, wakes the stopper.
        let since_ns = moment.cpu.since_ns.unwrap_or(moment.from_ns);
        let by = names::waker(moment.scene, moment.cpu.task, since_ns);
        let culprit = by.map_or_else(|| name.clone(), |by| format!("{name} for {by}"));
        Attribution::of_culprit(culprit)
            .detail(names::task_detail(moment.scene, moment.cpu.task))
            .detail(moved(moment))
            .manual(
                "what moves tasks, loads kernel text or calls stop_machine runs here: no balancing \
             over this CPU (isolcpus=domain), no module loading or ftrace changes in operation",
            )
    })
}

/// The task that moved the thread.
fn moved(moment: &Moment<'_>) -> Option<String> {
    let scene = moment.scene;
    let inside = |event: &&Event| (scene.wake.due_ns..=scene.wake.ran_ns).contains(&event.at_ns);
    scene.rare().iter().copied().filter(inside).find_map(|event| match event.what {
        EventData::Migrate { pid, from_cpu, to_cpu, .. } if pid == scene.wake.tid => {
            let by = names::comm(scene, event.pid);
            Some(format!("moved from CPU {from_cpu} to CPU {to_cpu} by {by}"))
        }
        _ => None,
    })
}

/// The task that ran on the other CPU, as far as its events are in the window.
fn ran_there(moment: &Moment<'_>, cpu: u32) -> Option<String> {
    let scene = moment.scene;
    // All events are gone through for it.
    if moment.ns() < scene.wake.latency_ns() / 20 {
        return None;
    }
    let there = reconstruct(&scene.window.events, cpu, moment.from_ns, moment.to_ns);
    let longest = there.iter().filter(|stretch| stretch.state.task > 0);
    let state = &longest.max_by_key(|stretch| stretch.to_ns - stretch.from_ns)?.state;
    Some(format!("there ran {}", names::task(scene, state.task, state.prio)))
}

// The thread had not finished what came before.

pub(super) const OWN_CYCLE: Cause = Cause {
    id: "own-cycle",
    kind: CauseKind::Own,
    title: "the thread's own previous cycle",
    about: "when the wake-up was due the thread was still running and had not started its timer; \
        or it had set its timer for later, as relative sleeps do",
    source: "Codethink, \"Configuring Linux systems to stabilise latency\"; clock_nanosleep(2), \
        TIMER_ABSTIME",
    checks: &["app-policy"],
    attribute: attribute_own_cycle,
};

fn attribute_own_cycle(moment: &Moment<'_>) -> Option<Attribution> {
    let scene = moment.scene;
    let set_for_ns = scene.set_for_at(moment.from_ns);
    if let Some(until_ns) = set_for_ns.filter(|_| moment.phase == WakeUpPhase::TimerLate) {
        let late_ns = until_ns.saturating_sub(scene.wake.due_ns);
        let late = rtproof_stats::samples::ns(late_ns);
        let attribution = Attribution::of_culprit(names::comm(scene, scene.wake.tid))
            .detail([format!("its timer was set for {late} after that")])
            .manual("sleep until an absolute time (clock_nanosleep, TIMER_ABSTIME)");
        return Some(Attribution { until_ns: Some(until_ns), ..attribution });
    }
    if moment.phase != WakeUpPhase::OwnCycle || !moment.is_task() || moment.cpu.softirq.is_some() {
        return None;
    }
    let runs = moment.cpu.task == scene.wake.tid || moment.cpu.task < 0;
    runs.then(|| {
        Attribution::of_culprit(names::comm(scene, scene.wake.tid)).manual(
            "its cycle takes longer than its period: shorten the work or lengthen the period",
        )
    })
}

// A task of higher priority ran.

pub(super) const PREEMPTED: Cause = Cause {
    id: "preempted",
    kind: CauseKind::Scheduling,
    title: "a task of higher priority",
    about: "the thread was runnable and a task that outranks it was on the CPU",
    source: "sched(7); Wu, \"Real-time programming with Linux, part 2\" (multipathd at SCHED_RR \
        99)",
    checks: &["rogue-rt-tasks", "prio-99", "app-outranked"],
    attribute: attribute_preempted,
};

fn attribute_preempted(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != WakeUpPhase::Runnable || !moment.is_task() || moment.cpu.task <= 0 {
        return None;
    }
    let others: &[&str] = match order(moment) {
        PriorityOrder::Above => &[],
        PriorityOrder::NotBelow => &["queued"],
        PriorityOrder::Unknown => &["preempt-off", "queued"],
        PriorityOrder::Equal | PriorityOrder::Below | PriorityOrder::UnknownAndHeld => return None,
    };
    let scene = moment.scene;
    let tid = moment.cpu.task;
    // It may have gone on for a while before it was raised above the thread; that it was lowered
    // later is of no matter.
    let left = left_with(moment);
    let was_raised = moment.cpu.prio.zip(left).is_some_and(|(came, left)| {
        left < came && scene.prio_at(moment.from_ns).is_some_and(|ours| came > ours)
    });
    let prio = if was_raised { left } else { moment.cpu.prio.or(left) };
    let attribution = Attribution::of_culprit(names::task(scene, tid, prio));
    let attribution =
        attribution.detail(names::task_detail(scene, tid)).owner(names::owner(scene, tid));
    let attribution = attribution.detail(changed(moment));
    let raised = raised_from(scene, tid, moment.cpu.prio);
    let attribution = attribution.detail(raised.map(|prio| {
        format!(
            "it has [{}] otherwise: inherited with a lock, or set; sched_pi_setprio is not there",
            names::rank(None, Some(prio))
        )
    }));
    let attribution =
        attribution.or_causes(if raised.is_some() { &["priority-inheritance"] } else { &[] });
    let attribution = attribution.or_causes(if was_raised { &["preempt-off"] } else { others });
    Some(names::against_task(attribution, scene, tid))
}

/// The priority below this one that a task has at other times, where no event shows what raised it.
fn raised_from(scene: &Scene<'_>, tid: i32, prio: Option<i32>) -> Option<i32> {
    let is_setprio = |event: &&&Event| matches!(event.what, EventData::PiSetprio { .. });
    // Our own recorder has the event.
    let is_recorded =
        scene.coverage.is_all() || scene.rare().iter().any(|event| is_setprio(&event));
    let prio = prio.filter(|_| !is_recorded)?;
    scene.lowest(tid).filter(|&lowest| lowest > prio)
}

// Another task had inherited a priority.

pub(super) const PRIORITY_INHERITANCE: Cause = Cause {
    id: "priority-inheritance",
    kind: CauseKind::Blocking,
    title: "a task that inherited a priority",
    about: "the task on the CPU had been raised by sched_pi_setprio: it held a lock that somebody \
        of higher or equal priority waits for",
    source: "kernel/locking/rtmutex.c; include/trace/events/sched.h (sched_pi_setprio)",
    checks: &["app-outranked"],
    attribute: attribute_priority_inheritance,
};

fn attribute_priority_inheritance(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != WakeUpPhase::Runnable || !moment.is_task() || moment.cpu.task <= 0 {
        return None;
    }
    let scene = moment.scene;
    let last = scene.rare().iter().rev().find_map(|event| match &event.what {
        EventData::PiSetprio { pid, old_prio, new_prio, .. }
            if *pid == moment.cpu.task && event.at_ns <= moment.from_ns =>
        {
            Some((event, *old_prio, *new_prio))
        }
        _ => None,
    });
    let (event, old_prio, new_prio) = last?;
    // Lower numbers are higher priorities: only a task that is raised at the time counts.
    if new_prio >= old_prio || scene.prio.is_none_or(|ours| new_prio > ours) {
        return None;
    }
    let name = names::task(scene, moment.cpu.task, Some(old_prio));
    let raised = format!(
        "raised to the kernel's priority {new_prio} by {} on CPU {}",
        names::comm(scene, event.pid),
        event.cpu
    );
    let own = names::owner(scene, moment.cpu.task);
    Some(Attribution::of_culprit(name).detail([raised]).owner(own).manual(
        "shorten what is done under the lock, or do not share locks with threads of this CPU",
    ))
}

// A task of the same priority was ahead in the queue.

pub(super) const QUEUED: Cause = Cause {
    id: "queued",
    kind: CauseKind::Scheduling,
    title: "a task of the same priority, ahead in the queue",
    about: "the thread was runnable and a task of equal real-time priority, or another ordinary \
        task if it is one itself, was on the CPU",
    source: "sched(7): SCHED_FIFO tasks of one priority do not preempt each other",
    checks: &["rogue-rt-tasks", "app-equal-priority", "app-policy"],
    attribute: attribute_queued,
};

fn attribute_queued(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != WakeUpPhase::Runnable
        || !moment.is_task()
        || order(moment) != PriorityOrder::Equal
    {
        return None;
    }
    let scene = moment.scene;
    let tid = moment.cpu.task;
    let attribution = Attribution::of_culprit(names::task(scene, tid, moment.cpu.prio));
    let attribution =
        attribution.detail(names::task_detail(scene, tid)).owner(names::owner(scene, tid));
    let attribution = attribution.detail(changed(moment));
    if scene.prio.is_some_and(|prio| prio >= 100) {
        return Some(
            attribution.manual("an ordinary thread takes its turn: give it SCHED_FIFO (chrt -f)"),
        );
    }
    Some(names::against_task(attribution, scene, tid))
}

// rtproof's own other threads.

pub(super) const RTPROOF: Cause = Cause {
    id: "rtproof",
    kind: CauseKind::Scheduling,
    title: "rtproof itself",
    about: "another thread of the measuring process was running",
    source: "crates/measure: who empties the results of the measuring threads",
    checks: &[],
    attribute: attribute_rtproof,
};

fn attribute_rtproof(moment: &Moment<'_>) -> Option<Attribution> {
    let scene = moment.scene;
    if scene.wake.how != WakeUpBasis::Measured
        || !moment.is_task()
        || moment.phase != WakeUpPhase::Runnable
    {
        return None;
    }
    let ours = scene.task(scene.wake.tid)?.tgid;
    let theirs = scene.task(moment.cpu.task)?;
    // Another measuring thread on the same CPU is no housekeeping.
    let is_own = ours > 0 && theirs.tgid == ours && moment.cpu.task != scene.wake.tid;
    is_own.then(|| {
        Attribution::of_culprit(names::task(scene, moment.cpu.task, moment.cpu.prio))
            .manual("leave a CPU unmeasured for housekeeping: --cpus without it")
    })
}

// SIGSTOP, or a debugger: the thread was not to run.

/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPS: [i32; 4] = [19, 20, 21, 22];

pub(super) const STOPPED: Cause = Cause {
    id: "stopped",
    kind: CauseKind::Scheduling,
    title: "stopped by a signal or a debugger",
    about: "sched_switch saw the thread leave as stopped (T) or traced (t); signal_generate tells \
        who sent SIGSTOP",
    source: "include/linux/sched.h (TASK_STOPPED, TASK_TRACED); signal(7)",
    checks: &["app-debugger"],
    attribute: attribute_stopped,
};

fn attribute_stopped(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != WakeUpPhase::Stopped {
        return None;
    }
    let scene = moment.scene;
    let ours = scene.task(scene.wake.tid).map_or(scene.wake.tid, |task| task.tgid);
    let stop = scene.rare().iter().rev().find_map(|event| match &event.what {
        EventData::Signal { number, pid, .. }
            if STOPS.contains(number) && (*pid == ours || *pid == scene.wake.tid) =>
        {
            Some((event, *number))
        }
        _ => None,
    });
    let attribution = match stop {
        Some((event, number)) => {
            let by = names::comm(scene, event.pid);
            Attribution::of_culprit(format!("signal {number} of {by}"))
                .owner(names::owner(scene, event.pid))
        }
        // A tracer lets it go on; the kernel records no signal of a stop by ptrace.
        None => match names::waking(scene, scene.wake.tid, scene.wake.ran_ns) {
            Some(event) if event.at_ns >= moment.from_ns => {
                Attribution::of_culprit(format!("let go on by {}", names::waker_of(scene, event)))
                    .owner(names::owner(scene, event.pid))
            }
            _ => Attribution::of_culprit("a signal or debugger that was not seen"),
        },
    };
    Some(attribution.manual("nothing may stop the application while it has to be on time"))
}

// The scheduler passed the thread over.

pub(super) const THROTTLED: Cause = Cause {
    id: "throttled",
    kind: CauseKind::Throttling,
    title: "throttling: real-time limit, fair server or CPU quota",
    about: "sched_switch chose the idle task or one of lower priority after the thread had been \
        woken, or before that in place of another runnable real-time task. Its class or its group had \
        used up its share",
    source: "kernel/sched/rt.c (sched_rt_runtime_exceeded), kernel/sched/deadline.c (fair_server, \
        6.12), kernel/sched/fair.c (throttle_cfs_rq); measured: 50 022 and 54 038 us",
    checks: &["rt-throttling", "fair-server", "ext-server", "app-cgroup-quota", "app-rt-bandwidth"],
    attribute: attribute_throttled,
};

fn attribute_throttled(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != WakeUpPhase::Runnable || !moment.is_task() {
        return None;
    }
    let scene = moment.scene;
    // The idle task is chosen only when nothing else may run.
    let chosen_ns = moment.cpu.since_ns?;
    let passed_over =
        chosen_ns > moment.runnable_since_ns || is_served(moment) || is_left_idle(moment);
    if !passed_over || order(moment) != PriorityOrder::Below {
        let waits_for_group = order(moment) == PriorityOrder::Equal
            && scene.prio.is_some_and(|prio| prio >= 100)
            && scene.window.surroundings.throttled.is_some_and(|periods| periods > 0);
        if !waits_for_group {
            return None;
        }
    }
    let name = names::comm(scene, moment.cpu.task);
    if name.starts_with("migration/") {
        return None;
    }
    let ran = format!("meanwhile ran {}", names::task(scene, moment.cpu.task, moment.cpu.prio));
    let surroundings = &scene.window.surroundings;
    let fair = scene.prio.is_some_and(|prio| prio >= 100);
    let by = if fair { ThrottledBy::Quota } else { ThrottledBy::of(moment) };
    let attribution = by.attribution();
    let limit = surroundings.rt_runtime_us.zip(surroundings.rt_period_us).filter(|_| !fair);
    let limit = limit.map(|(run, of)| format!("limit: {run} of {of} µs (sched_rt_runtime_us)"));
    Some(attribution.detail([ran]).detail(limit))
}

/// Shorter, and the CPU may just have been on its way to sleep when the thread was woken.
const LEFT_IDLE_NS: u64 = 1_000_000;

/// Whether the CPU went to sleep while the thread was there to be run: the idle loop does that only
/// when the scheduler may choose no task.
fn is_left_idle(moment: &Moment<'_>) -> bool {
    moment.cpu.task == 0
        && moment.cpu.idle.is_some()
        && moment.whole_ns() > LEFT_IDLE_NS
        && moment
            .scene
            .events(moment.runnable_since_ns, moment.from_ns)
            .any(|event| matches!(event.what, EventData::Idle { .. }))
}

/// Whether real-time tasks were passed over already when the thread was woken: one that could go on
/// was switched from to an ordinary one, and none was switched to since.
fn is_served(moment: &Moment<'_>) -> bool {
    let scene = moment.scene;
    for event in scene.events(0, moment.from_ns).rev() {
        let EventData::Switch { prev_prio, prev_state, next_pid, next_prio, .. } = event.what
        else {
            continue;
        };
        if next_pid == 0 || next_prio < FAIR {
            return false;
        }
        // Lower bits: why it left. The bit above them: it was preempted.
        if prev_prio < FAIR && prev_state & 0xff == 0 {
            return true;
        }
    }
    false
}

/// What took the CPU away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThrottledBy {
    /// cpu.max of the group.
    Quota,
    /// sched_rt_runtime_us, before 6.12.
    Limit,
    /// The fair server, since 6.12.
    Server,
    /// One of the two.
    Either,
}

impl ThrottledBy {
    fn of(moment: &Moment<'_>) -> Self {
        match moment.scene.window.surroundings.fair_server {
            // A server never serves the idle task.
            _ if moment.cpu.task == 0 => Self::Limit,
            Some(true) => Self::Server,
            Some(false) => Self::Limit,
            None if moment.scene.window.surroundings.rt_runtime_us == Some(-1) => Self::Server,
            None => Self::Either,
        }
    }

    fn attribution(self) -> Attribution {
        let limit =
            Remedy::set(&RT_RUNTIME, vec!["/proc/sys/kernel/sched_rt_runtime_us".into()], "-1");
        let server = "write 0 to /sys/kernel/debug/sched/fair_server/cpu*/runtime, or keep other \
                      tasks off this CPU";
        match self {
            Self::Quota => Attribution::of_culprit("CPU quota of its control group")
                .manual("raise cpu.max of the group, or leave the group"),
            Self::Limit => Attribution::of_culprit("RT throttling").remedy(limit),
            Self::Server => Attribution::of_culprit("fair server").manual(server),
            Self::Either => {
                Attribution::of_culprit("RT throttling or fair server").remedy(limit).manual(server)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rtproof_trace::EventData;

    use crate::causes::testing::{DUE, LATE, Story, US, top};

    #[test]
    fn a_thread_that_sleeps_before_it_starts_its_timer_is_blocked() {
        // It left in its own cycle, and a sibling woke it 5 ms later; the tick went on.
        let (timer, function) = (1, 2);
        let mut story = Story::new().with(60, "sibling", rtproof_trace::TaskPolicy::Other, 0);
        for tick in 1..5 {
            let vector = rtproof_trace::event::Vector::LocalTimer;
            story = story
                .event(
                    tick * 1_000,
                    7,
                    rtproof_trace::event::flags::IRQS_OFF,
                    EventData::VectorEntry { vector },
                )
                .event(
                    tick * 1_000 + 3,
                    7,
                    rtproof_trace::event::flags::HARDIRQ,
                    EventData::VectorExit { vector },
                );
        }
        let story = story.switch(4_800, 7, 120, 0, 60, 120);
        let waking =
            EventData::Waking { comm: "control".into(), pid: LATE, prio: 19, target_cpu: 0 };
        let story = story.event(5_000, 60, 0, waking).switch(5_004, 60, 120, 0, LATE, 19);
        let start = EventData::TimerStart { timer, function, expires_ns: DUE, soft_ns: DUE };
        let explained = story.event(5_010, LATE, 0, start).ran(5_020);
        let (cause, culprit, us) = top(&explained);
        assert_eq!((cause, us), ("blocked", 5_000), "{explained:?}");
        assert!(culprit.contains("sibling"), "{culprit}");
        assert!(explained.shares.iter().all(|share| share.cause != "irqs-off"), "{explained:?}");
    }

    #[test]
    fn timer_interrupts_that_do_not_wake_it_are_not_its_own() {
        let explained = |waker: i32, comm: &str| {
            let vector = rtproof_trace::event::Vector::LocalTimer;
            let waking =
                EventData::Waking { comm: "control".into(), pid: LATE, prio: 19, target_cpu: 0 };
            Story::new()
                .with(waker, comm, rtproof_trace::TaskPolicy::Other, 0)
                .event(
                    1_000,
                    7,
                    rtproof_trace::event::flags::IRQS_OFF,
                    EventData::VectorEntry { vector },
                )
                .event(
                    1_003,
                    7,
                    rtproof_trace::event::flags::HARDIRQ,
                    EventData::VectorExit { vector },
                )
                .switch(8_000, 7, 120, 0, waker, 120)
                .event(9_000, waker, 0, waking)
                .runs(9_010, waker, 120)
        };
        let blocked = explained(60, "sibling");
        assert_eq!(top(&blocked).0, "blocked", "{blocked:?}");
        // Before the first of them its own may have been masked.
        assert!(blocked.shares.iter().any(|s| s.cause == "irqs-off" && s.ns == 1_000 * US));
        // On PREEMPT_RT a thread of the kernel may do the rest of the timer's work.
        let timers = explained(60, "ktimers/0");
        assert!(timers.shares.iter().all(|share| share.cause != "blocked"), "{timers:?}");
    }
}

#[cfg(test)]
mod own_cycle_tests {
    use rtproof_trace::{EventData, event::Vector};

    use crate::causes::testing::{DUE, LATE, Story, US};

    fn interrupt(story: Story, us: i64, pid: i32) -> Story {
        let vector = Vector::CallFunction;
        let over = rtproof_trace::event::flags::IRQS_OFF | rtproof_trace::event::flags::HARDIRQ;
        let story = story.event(
            us,
            pid,
            rtproof_trace::event::flags::IRQS_OFF,
            EventData::VectorEntry { vector },
        );
        story.event(us + 3, pid, over, EventData::VectorExit { vector })
    }

    /// Its cycle of before takes until 4 ms after it was due again.
    fn overrun() -> Story {
        let story = Story::new().timer(-300, 7).switch(-290, 7, 120, 0, LATE, 19);
        let mut story = interrupt(story, -100, LATE);
        for us in [300, 900, 1_500, 3_900] {
            story = interrupt(story, us, LATE);
        }
        story.timer(4_000, LATE)
    }

    #[test]
    fn the_switch_to_a_continued_cycle_may_be_missing() {
        let mut story = overrun();
        let to_it = |what: &EventData| {
            let EventData::Switch { next_pid, .. } = what else { return false };
            *next_pid == LATE
        };
        story.window.events.retain(|event| !to_it(&event.what));
        let explained = story.ran(4_010);
        let own = explained.shares.iter().find(|share| share.cause == "own-cycle");
        assert!(own.is_some_and(|share| share.ns > 3_900 * US), "{explained:?}");
    }

    #[test]
    fn a_timer_that_is_set_for_later_is_the_threads_own_doing() {
        // A relative sleep: the range of slack begins 40 us after the wake-up was due.
        let (expires_ns, soft_ns) = (DUE + 90 * US, DUE + 40 * US);
        let start = EventData::TimerStart { timer: 1, function: 2, expires_ns, soft_ns };
        let story = Story::new().event(-600, LATE, 0, start);
        let explained = story.timer(1_400, 7).runs(1_410, 7, 120);
        let share = |cause: &str| {
            let found = explained.shares.iter().find(|share| share.cause == cause);
            found.map_or(0, |share| share.ns / US)
        };
        assert_eq!((share("own-cycle"), share("timer-slack")), (40, 50), "{explained:?}");
        assert_eq!(
            explained.shares.iter().map(|share| share.ns).sum::<u64>(),
            explained.wake.latency_ns()
        );
    }

    /// Whichever two events are missing: no thread waits for itself.
    #[test]
    fn nothing_is_blamed_on_the_late_thread_but_its_own_work() {
        let story = || {
            let story = overrun().switch(4_006, LATE, 19, 1, 7, 120).timer(4_500, 7);
            interrupt(story, 4_520, LATE).switch(4_600, LATE, 19, 0, 9, 120)
        };
        let count = story().window.events.len();
        for gone in (0..count.pow(2)).map(|n| [n % count, n / count]) {
            let mut story = story();
            let mut at = 0..count;
            story.window.events.retain(|_| !at.next().is_some_and(|at| gone.contains(&at)));
            for share in &story.ran(4_650).shares {
                let others = ["queued", "preempted", "priority-inheritance", "throttled"];
                let is_others = others.contains(&share.cause.as_str());
                assert!(!is_others || !share.culprit.contains("control"), "{gone:?}: {share:?}");
            }
        }
    }
}

#[cfg(test)]
mod preempted_tests {
    use rtproof_trace::{EventData, TaskPolicy, event::Vector};

    use crate::causes::testing::{LATE, Story, top};

    #[test]
    fn a_task_that_the_kernel_left_on_its_cpu_was_not_below() {
        let explained = |flags: u8| {
            let woken = EventData::Wakeup { comm: "a".into(), pid: LATE, prio: 19, target_cpu: 0 };
            let story = Story::new().with(60, "ceiling", TaskPolicy::Other, 0).timer(1, 60);
            story.switch(-50, 7, 120, 0, 60, 120).event(3, 60, flags, woken).runs(5_000, 60, 120)
        };
        // The kernel sets NEED_RESCHED before it writes the event.
        let asked = explained(
            rtproof_trace::event::flags::IRQS_OFF
                | rtproof_trace::event::flags::HARDIRQ
                | rtproof_trace::event::flags::NEED_RESCHED,
        );
        assert_eq!(top(&asked).0, "preempt-off", "{asked:?}");
        let kept =
            explained(rtproof_trace::event::flags::IRQS_OFF | rtproof_trace::event::flags::HARDIRQ);
        assert_eq!((top(&kept).0, top(&kept).1), ("preempted", "ceiling [OTHER]"), "{kept:?}");
        assert!(
            kept.shares[0].detail.iter().any(|text| text.contains("did not ask it")),
            "{kept:?}"
        );
        assert_eq!(kept.shares[0].alternatives, ["queued"]);
        // A trace without flags proves nothing.
        assert_eq!(top(&explained(0)).0, "preempt-off");
        // Nor does that of a kernel before 4.3, which writes the event before it asks.
        let woken = EventData::Wakeup { comm: "a".into(), pid: LATE, prio: 19, target_cpu: 0 };
        let flags = rtproof_trace::event::flags::IRQS_OFF | rtproof_trace::event::flags::HARDIRQ;
        let story = Story::new().with(60, "ceiling", TaskPolicy::Other, 0);
        let story = story.switch(-50, 7, 120, 0, 60, 120).event(3, 60, flags, woken);
        let old = story.runs(5_000, 60, 120);
        assert_eq!(top(&old).0, "preempt-off", "{old:?}");
    }

    #[test]
    fn the_application_is_not_blamed_for_preempting_itself() {
        let advice = |of: &str| {
            let mut story = Story::new().with(60, "other", TaskPolicy::Rr, 99).timer(1, 7);
            story.window.tasks.get_mut(&LATE).unwrap().unit = Some("control.service".into());
            story.window.tasks.get_mut(&60).unwrap().unit = Some(of.into());
            let explained = story.switch(6, 7, 120, 0, 60, 0).runs(5_000, 60, 0);
            format!("{:?}", explained.shares[0].remedies)
        };
        assert!(advice("multipathd.service").contains("disable --now"));
        let own = advice("control.service");
        assert!(own.contains("application itself") && !own.contains("disable"), "{own}");
    }

    #[test]
    fn a_task_lowered_as_it_left_outranked_the_thread() {
        let story = || Story::new().with(60, "multipathd", TaskPolicy::Rr, 99);
        let explained = story().timer(1, 7).switch(6, 7, 120, 0, 60, 0).runs(5_000, 60, 120);
        assert_eq!(top(&explained).0, "preempted", "{explained:?}");
        assert_eq!(top(&explained).1, "multipathd [RR 99]", "{explained:?}");
        assert!(explained.shares[0].alternatives.is_empty(), "{explained:?}");
        // It came as an ordinary task and was raised at a time that is not known.
        let explained = story().timer(1, 7).switch(6, 7, 120, 0, 60, 120).runs(5_000, 60, 0);
        assert_eq!(
            (top(&explained).0, top(&explained).1),
            ("preempted", "multipathd [RR 99]"),
            "{explained:?}"
        );
        assert_eq!(explained.shares[0].alternatives, ["preempt-off"]);
    }

    /// A text of the tracer timerlat, and one without switches: that the thread ran once does not
    /// say that it goes on when it is due again.
    #[test]
    fn without_switches_the_thread_is_not_taken_to_run_on() {
        let sample = |context| EventData::Timerlat { sequence: 2, context, latency_ns: 1 };
        let vector = Vector::CallFunction;
        for is_timerlat in [true, false] {
            let mut story = Story::new().with(60, "multipathd", TaskPolicy::Rr, 99);
            story.window.events.clear();
            if is_timerlat {
                story.task(LATE, "timerlat/0", TaskPolicy::Fifo, 95);
                story = story.event(-990, LATE, 0, sample(1)).event(1, 60, 0, sample(0));
            } else {
                story = story.event(-990, LATE, 0, EventData::VectorEntry { vector });
                story = story.event(-980, LATE, 0, EventData::VectorExit { vector }).timer(1, 60);
            }
            story = story.event(3_000, 60, 0, EventData::VectorEntry { vector });
            let explained = story.event(3_001, 60, 0, EventData::VectorExit { vector }).ran(5_000);
            assert_eq!(
                (top(&explained).0, top(&explained).1),
                ("preempted", "multipathd [RR 99]"),
                "{explained:?}"
            );
            assert!(
                explained.shares.iter().all(|share| share.cause != "own-cycle"),
                "{explained:?}"
            );
        }
    }
}

#[cfg(test)]
mod throttled_tests {
    use rtproof_trace::EventData;

    use crate::causes::testing::{LATE, Story, US};

    #[test]
    fn a_cpu_idle_before_the_move_did_not_skip_the_thread() {
        // Woken for CPU 1, where it waits; CPU 0 goes idle meanwhile, and gets it at 3 ms.
        let (comm, pid, prio) = ("control".into(), LATE, 19);
        let moved = EventData::Migrate { comm, pid, prio, from_cpu: 1, to_cpu: 0 };
        let mut story = Story::new().timer(1, 7).switch(50, 7, 120, 1, 0, 120);
        for event in &mut story.window.events {
            if let EventData::Waking { target_cpu, .. } = &mut event.what {
                *target_cpu = 1;
            }
        }
        let explained = story.event(3_000, 0, 0, moved).runs(3_080, 0, 120);
        let of = |cause: &str| {
            let shares = explained.shares.iter().filter(|share| share.cause == cause);
            shares.map(|share| share.ns / US).sum::<u64>()
        };
        assert_eq!((of("throttled"), of("migration")), (0, 2_997), "{explained:?}");
        // On the queue of this CPU all the time it is.
        let explained = Story::new().timer(1, 7).switch(50, 7, 120, 1, 0, 120).runs(3_080, 0, 120);
        assert_eq!(explained.shares[0].cause, "throttled", "{explained:?}");
    }
}
