//! The scheduler passed the thread over.

use rtproof_trace::What;

use super::{
    claim::{Cause, Claim, Kind},
    names,
    order::{FAIR, Order, order},
    scene::{Moment, Phase},
};
use crate::Remedy;

/// Throttling: real-time limit, fair server or CPU quota.
#[derive(Debug)]
pub(super) struct Throttled;

impl Cause for Throttled {
    fn id(&self) -> &'static str {
        "throttled"
    }

    fn kind(&self) -> Kind {
        Kind::Throttling
    }

    fn title(&self) -> &'static str {
        "throttling: real-time limit, fair server or CPU quota"
    }

    fn about(&self) -> &'static str {
        "sched_switch chose the idle task or one of lower priority after the thread had been \
         woken, or before that in place of another real-time task that could go on: its class or \
         its group had used up its share"
    }

    fn source(&self) -> &'static str {
        "kernel/sched/rt.c (sched_rt_runtime_exceeded), kernel/sched/deadline.c (fair_server, \
         6.12), kernel/sched/fair.c (throttle_cfs_rq); measured: 50 022 and 54 038 us"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["rt-throttling", "fair-server", "ext-server", "app-cgroup-quota", "app-rt-bandwidth"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
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
        let claim = by.claim();
        let limit = beside.rt_runtime_us.zip(beside.rt_period_us).filter(|_| !fair);
        let limit = limit.map(|(run, of)| format!("limit: {run} of {of} µs (sched_rt_runtime_us)"));
        Some(claim.detail([ran]).detail(limit))
    }
}

/// Shorter, and the CPU may just have been on its way to sleep when the thread was woken.
const LEFT_IDLE_NS: u64 = 1_000_000;

/// Whether the CPU went to sleep while the thread was there to be run: the idle loop does that only
/// when the scheduler has nobody it may choose.
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
    let mut is_served = false;
    for event in scene.events(0, moment.from_ns) {
        let What::Switch { prev_prio, prev_state, next_pid, next_prio, .. } = event.what else {
            continue;
        };
        // Lower bits: why it left. The bit above them: it was preempted.
        let could_go_on = prev_prio < FAIR && prev_state & 0xff == 0;
        is_served = next_pid != 0 && next_prio >= FAIR && (is_served || could_go_on);
    }
    is_served
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
            // A server serves somebody: the idle task is no customer.
            _ if moment.cpu.task == 0 => Self::Limit,
            Some(true) => Self::Server,
            Some(false) => Self::Limit,
            None if moment.scene.window.beside.rt_runtime_us == Some(-1) => Self::Server,
            None => Self::Either,
        }
    }

    fn claim(self) -> Claim {
        let limit = Remedy::Write {
            paths: vec!["/proc/sys/kernel/sched_rt_runtime_us".into()],
            value: "-1".into(),
        };
        let server = "write 0 to /sys/kernel/debug/sched/fair_server/cpu*/runtime, or keep other \
                      tasks off this CPU";
        match self {
            Self::Quota => Claim::by("CPU quota of its control group")
                .manual("raise cpu.max of the group, or leave the group"),
            Self::Limit => Claim::by("RT throttling").remedy(limit),
            Self::Server => Claim::by("fair server").manual(server),
            Self::Either => Claim::by("RT throttling or fair server").remedy(limit).manual(server),
        }
    }
}
