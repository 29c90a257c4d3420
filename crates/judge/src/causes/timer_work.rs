//! The timer interrupt itself: timers that expire before the thread's own, and the tick.

use rtproof_trace::{Class, What};

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

/// Functions of the kernel's own that wake a thread or count a tick; drivers' may do anything.
const SHORT: [&str; 3] = ["hrtimer_wakeup", "tick_sched_timer", "tick_nohz_handler"];
/// Longer they are not.
const SHORT_NS: u64 = 1_000_000;
/// The path of the interrupt between the functions of timers is not longer than this.
const QUIET_NS: u64 = 100_000;

pub(super) const CAUSE: Cause = Cause {
    id: "timer-work",
    kind: Kind::Interrupt,
    title: "work in the timer interrupt",
    about: "the timer interrupt was on top: functions of other timers that expired with it \
        (hrtimer_expire_entry), the tick, waking other threads",
    source: "kernel/time/hrtimer.c (__hrtimer_run_queues)",
    checks: &["nohz-full", "skew-tick", "app-timer-slack"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    moment.cpu.hard.filter(|(hard, _)| hard.is_timer())?;
    let scene = moment.scene;
    let function = moment.cpu.expiring.or_else(|| before(moment));
    let culprit = function.map(|function| names::function(scene, function));
    // Between callbacks there is only the interrupt's own path: much longer, and the CPU
    // stood still.
    let has_timers = scene.coverage.has(Class::Timers);
    if culprit.is_none() && moment.whole_ns() > QUIET_NS {
        // Where the functions are not recorded, one of them may have been as long.
        return (!has_timers)
            .then(|| Attribution::by("a function that was not recorded").or(&["stall"]));
    }
    // So is it where a function that is always short was long.
    let is_short = culprit.as_deref().is_some_and(|name| SHORT.contains(&name));
    if is_short && moment.whole_ns() > SHORT_NS {
        return None;
    }
    let mut woken: Vec<String> = scene
        .events(moment.from_ns, moment.to_ns)
        .filter_map(|event| match &event.what {
            What::Waking { comm, pid, .. } if *pid != scene.wake.tid => Some(comm.to_string()),
            _ => None,
        })
        .collect();
    woken.sort();
    woken.dedup();
    woken.truncate(8);
    let detail = (!woken.is_empty()).then(|| format!("wakes {}", woken.join(", ")));
    let attribution = Attribution::by(culprit.unwrap_or_default()).detail(detail);
    let owner = function.and_then(|function| names::module(scene, function));
    Some(attribution.owner(owner))
}

/// The timer before, while the thread's own is still to come: its removal from the queue is part
/// of it.
fn before(moment: &Moment<'_>) -> Option<u64> {
    let (_, begin_ns) = moment.cpu.hard?;
    if moment.phase != Phase::Expiry {
        return None;
    }
    moment.scene.events(begin_ns, moment.from_ns).rev().find_map(|event| match &event.what {
        What::TimerExpire { function, .. } => Some(*function),
        _ => None,
    })
}
