//! The thread waited for something else than its timer.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase, Thread},
};

pub(super) const CAUSE: Cause = Cause {
    id: "blocked",
    kind: Kind::Blocking,
    title: "waiting for a lock, a message, the disk or memory",
    about: "sched_switch saw the thread leave uninterruptibly (D), without a page fault before. Or \
        it slept before it had started its timer, or while timer interrupts of its CPU were served \
        that did not wake it. The waker ended the wait",
    source: "include/linux/sched.h (TASK_UNINTERRUPTIBLE); futex(7)",
    checks: &["app-swapped", "swap"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::Blocked {
        return None;
    }
    let scene = moment.scene;
    if scene.earlier_at(moment.from_ns).is_some() {
        let what = "it waited for a timer that it had set before the events begin: whether that \
                    was late, or set for so late, is not known";
        let earlier = Attribution::by("the timer of an earlier cycle");
        return Some(earlier.or(&["own-cycle", "stall", "irqs-off"]).detail([what.to_owned()]));
    }
    let waking = names::waking(scene, scene.wake.tid, scene.wake.ran_ns)
        .filter(|event| event.at_ns >= moment.from_ns);
    let by = waking.map(|event| names::waker_of(scene, event));
    let (what, how) = if moment.thread == Thread::Blocked {
        ("a lock, the disk or memory", None)
    } else if scene.armed_ns.is_some_and(|at_ns| at_ns > moment.from_ns) {
        ("a lock, a message or a fault", Some("it was asleep before it had started its timer"))
    } else {
        let why = "timer interrupts of its CPU were served meanwhile and did not wake it";
        ("a lock, a message or a fault", Some(why))
    };
    let ended = by.as_ref().map(|by| format!("ended by {by}"));
    let attribution =
        Attribution::by(by.map_or_else(|| what.to_owned(), |by| format!("{what}, held by {by}")));
    let attribution = attribution.detail(how.map(str::to_owned)).detail(ended);
    Some(attribution.manual(
        "take nothing in the loop that others hold: locks with priority inheritance \
         (PTHREAD_PRIO_INHERIT), memory locked (mlockall), no blocking calls",
    ))
}

#[cfg(test)]
mod tests {
    use rtproof_trace::{What, event::flags};

    use crate::causes::testing::{DUE, LATE, Story, US, top};

    #[test]
    fn a_thread_that_sleeps_before_it_starts_its_timer_is_blocked() {
        // It left in its own cycle, and a sibling woke it 5 ms later; the tick went on.
        let (timer, function) = (1, 2);
        let mut story = Story::new().with(60, "sibling", rtproof_trace::Policy::Other, 0);
        for tick in 1..5 {
            let vector = rtproof_trace::event::Vector::LocalTimer;
            story = story
                .event(tick * 1_000, 7, flags::IRQS_OFF, What::VectorEntry { vector })
                .event(tick * 1_000 + 3, 7, flags::HARDIRQ, What::VectorExit { vector });
        }
        let story = story.switch(4_800, 7, 120, 0, 60, 120);
        let waking = What::Waking { comm: "control".into(), pid: LATE, prio: 19, target_cpu: 0 };
        let story = story.event(5_000, 60, 0, waking).switch(5_004, 60, 120, 0, LATE, 19);
        let start = What::TimerStart { timer, function, expires_ns: DUE, soft_ns: DUE };
        let told = story.event(5_010, LATE, 0, start).ran(5_020);
        let (cause, culprit, us) = top(&told);
        assert_eq!((cause, us), ("blocked", 5_000), "{told:?}");
        assert!(culprit.contains("sibling"), "{culprit}");
        assert!(told.shares.iter().all(|share| share.cause != "irqs-off"), "{told:?}");
    }

    #[test]
    fn timer_interrupts_that_do_not_wake_it_are_not_its_own() {
        let told = |waker: i32, comm: &str| {
            let vector = rtproof_trace::event::Vector::LocalTimer;
            let waking =
                What::Waking { comm: "control".into(), pid: LATE, prio: 19, target_cpu: 0 };
            Story::new()
                .with(waker, comm, rtproof_trace::Policy::Other, 0)
                .event(1_000, 7, flags::IRQS_OFF, What::VectorEntry { vector })
                .event(1_003, 7, flags::HARDIRQ, What::VectorExit { vector })
                .switch(8_000, 7, 120, 0, waker, 120)
                .event(9_000, waker, 0, waking)
                .runs(9_010, waker, 120)
        };
        let blocked = told(60, "sibling");
        assert_eq!(top(&blocked).0, "blocked", "{blocked:?}");
        // Before the first of them its own may have been masked.
        assert!(blocked.shares.iter().any(|s| s.cause == "irqs-off" && s.ns == 1_000 * US));
        // On PREEMPT_RT a thread of the kernel may do the rest of the timer's work.
        let timers = told(60, "ktimers/0");
        assert!(timers.shares.iter().all(|share| share.cause != "blocked"), "{timers:?}");
    }
}
