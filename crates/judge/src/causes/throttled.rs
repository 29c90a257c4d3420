//! The scheduler passed the thread over.

use rtproof_host::knobs::sched::RT_RUNTIME;
use rtproof_trace::What;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{FAIR, Order, order},
    scene::{Moment, Phase},
};
use crate::Remedy;

pub(super) const CAUSE: Cause = Cause {
    id: "throttled",
    kind: Kind::Throttling,
    title: "throttling: real-time limit, fair server or CPU quota",
    about: "sched_switch chose the idle task or one of lower priority after the thread had been \
        woken, or before that in place of another runnable real-time task. Its class or its group had \
        used up its share",
    source: "kernel/sched/rt.c (sched_rt_runtime_exceeded), kernel/sched/deadline.c (fair_server, \
        6.12), kernel/sched/fair.c (throttle_cfs_rq); measured: 50 022 and 54 038 us",
    checks: &["rt-throttling", "fair-server", "ext-server", "app-cgroup-quota", "app-rt-bandwidth"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::Runnable || !moment.is_task() {
        return None;
    }
    let scene = moment.scene;
    // The idle task is chosen only when nothing else may run.
    let chosen_ns = moment.cpu.since_ns?;
    let passed_over =
        chosen_ns > moment.runnable_since_ns || is_served(moment) || is_left_idle(moment);
    if !passed_over || order(moment) != Order::Below {
        let waits_for_group = order(moment) == Order::Equal
            && scene.prio.is_some_and(|prio| prio >= 100)
            && scene.window.beside.throttled.is_some_and(|periods| periods > 0);
        if !waits_for_group {
            return None;
        }
    }
    let name = names::comm(scene, moment.cpu.task);
    if name.starts_with("migration/") {
        return None;
    }
    let ran = format!("meanwhile ran {}", names::task(scene, moment.cpu.task, moment.cpu.prio));
    let beside = &scene.window.beside;
    let fair = scene.prio.is_some_and(|prio| prio >= 100);
    let by = if fair { By::Quota } else { By::of(moment) };
    let attribution = by.attribution();
    let limit = beside.rt_runtime_us.zip(beside.rt_period_us).filter(|_| !fair);
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
            .any(|event| matches!(event.what, What::Idle { .. }))
}

/// Whether real-time tasks were passed over already when the thread was woken: one that could go on
/// was switched from to an ordinary one, and none was switched to since.
fn is_served(moment: &Moment<'_>) -> bool {
    let scene = moment.scene;
    for event in scene.events(0, moment.from_ns).rev() {
        let What::Switch { prev_prio, prev_state, next_pid, next_prio, .. } = event.what else {
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
enum By {
    /// cpu.max of the group.
    Quota,
    /// sched_rt_runtime_us, before 6.12.
    Limit,
    /// The fair server, since 6.12.
    Server,
    /// One of the two.
    Either,
}

impl By {
    fn of(moment: &Moment<'_>) -> Self {
        match moment.scene.window.beside.fair_server {
            // A server never serves the idle task.
            _ if moment.cpu.task == 0 => Self::Limit,
            Some(true) => Self::Server,
            Some(false) => Self::Limit,
            None if moment.scene.window.beside.rt_runtime_us == Some(-1) => Self::Server,
            None => Self::Either,
        }
    }

    fn attribution(self) -> Attribution {
        let limit =
            Remedy::set(&RT_RUNTIME, vec!["/proc/sys/kernel/sched_rt_runtime_us".into()], "-1");
        let server = "write 0 to /sys/kernel/debug/sched/fair_server/cpu*/runtime, or keep other \
                      tasks off this CPU";
        match self {
            Self::Quota => Attribution::by("CPU quota of its control group")
                .manual("raise cpu.max of the group, or leave the group"),
            Self::Limit => Attribution::by("RT throttling").remedy(limit),
            Self::Server => Attribution::by("fair server").manual(server),
            Self::Either => {
                Attribution::by("RT throttling or fair server").remedy(limit).manual(server)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rtproof_trace::What;

    use crate::causes::testing::{LATE, Story, US};

    #[test]
    fn a_cpu_that_went_idle_before_the_thread_was_moved_to_it_passed_nobody_over() {
        // Woken for CPU 1, where it waits; CPU 0 goes idle meanwhile, and gets it at 3 ms.
        let (comm, pid, prio) = ("control".into(), LATE, 19);
        let moved = What::Migrate { comm, pid, prio, from_cpu: 1, to_cpu: 0 };
        let mut story = Story::new().timer(1, 7).switch(50, 7, 120, 1, 0, 120);
        for event in &mut story.window.events {
            if let What::Waking { target_cpu, .. } = &mut event.what {
                *target_cpu = 1;
            }
        }
        let told = story.event(3_000, 0, 0, moved).runs(3_080, 0, 120);
        let of = |cause: &str| {
            let shares = told.shares.iter().filter(|share| share.cause == cause);
            shares.map(|share| share.ns / US).sum::<u64>()
        };
        assert_eq!((of("throttled"), of("migration")), (0, 2_997), "{told:?}");
        // On the queue of this CPU all the time it is.
        let told = Story::new().timer(1, 7).switch(50, 7, 120, 1, 0, 120).runs(3_080, 0, 120);
        assert_eq!(told.shares[0].cause, "throttled", "{told:?}");
    }
}
