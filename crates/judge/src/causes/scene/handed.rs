//! A timer that expires in a thread of the kernel: on PREEMPT_RT those of ordinary threads, timerfd
//! and POSIX timers do, in ktimers or ksoftirqd, which the interrupt wakes and which waits.

use rtproof_trace::{WakeUp, What, Window, context::Stretch};

/// A timer may be handled so much before its time: two clocks are compared with rounding.
pub(super) const EARLY_NS: u64 = 2_000;

/// The thread that wakes the late one.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    pub tid: i32,
    /// Its priority in the kernel's scale.
    pub prio: Option<i32>,
    /// Since when it had to run for that.
    pub from_ns: u64,
}

/// Whether a thread of this name runs softirqs.
pub(super) fn runs_softirqs(comm: &str) -> bool {
    comm.starts_with("ktimers/") || comm.starts_with("ksoftirqd/")
}

/// Who woke the thread, if it was such a thread: since it was woken itself, or since the interrupt
/// that came when the timer was due.
pub(super) fn of(
    wake: &WakeUp,
    window: &Window,
    stretches: &[Stretch],
    woken_ns: u64,
) -> Option<Handed> {
    let begin_ns = wake.due_ns.saturating_sub(EARLY_NS);
    let inside = || window.events.iter().filter(|e| (begin_ns..=woken_ns).contains(&e.at_ns));
    let woken_by = |what: &What| match what {
        What::Waking { pid, .. } | What::Wakeup { pid, .. } => Some(*pid),
        _ => None,
    };
    let is_woken = |what: &What, tid: i32| woken_by(what) == Some(tid);
    let by = inside().find(|e| e.at_ns == woken_ns && is_woken(&e.what, wake.tid))?;
    let runs = window.tasks.get(&by.pid).is_some_and(|task| runs_softirqs(&task.comm));
    if by.cpu != wake.cpu || !runs {
        return None;
    }
    let prio = |what: &What| match what {
        What::Waking { pid, prio, .. } | What::Wakeup { pid, prio, .. } if *pid == by.pid => {
            Some(*prio)
        }
        What::Switch { next_pid, next_prio, .. } if *next_pid == by.pid => Some(*next_prio),
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
    Some(Handed {
        tid: by.pid,
        prio: window.events.iter().rev().find_map(|event| prio(&event.what)),
        from_ns: woken.or_else(served)?,
    })
}

#[cfg(test)]
mod tests {
    use rtproof_trace::{
        Policy, What,
        event::{Vector, flags},
    };

    use crate::causes::{
        Explanation,
        testing::{Story, top},
    };

    const HOG: i32 = 60;
    const KTIMERS: i32 = 15;

    /// The timer of the late thread expires in ktimers [FIFO 1], which waits for the hog.
    fn told(hog: (Policy, u32, i32), is_woken: bool) -> Explanation {
        let (policy, priority, prio) = hog;
        let story = Story::new().with(HOG, "hog", policy, priority);
        let story = story.with(KTIMERS, "ktimers/0", Policy::Fifo, 1);
        let vector = Vector::LocalTimer;
        let over = flags::IRQS_OFF | flags::HARDIRQ;
        let story = story.switch(-100, 7, 120, 0, HOG, prio);
        let story = story.event(1, HOG, flags::IRQS_OFF, What::VectorEntry { vector });
        let waking =
            What::Waking { comm: Default::default(), pid: KTIMERS, prio: 98, target_cpu: 0 };
        let story = if is_woken { story.event(2, HOG, over, waking) } else { story };
        let story = story.event(3, HOG, over, What::VectorExit { vector });
        let story = story.switch(4_000, HOG, prio, 1, KTIMERS, 98);
        let story = story.waking(4_010, KTIMERS);
        story.switch(4_015, KTIMERS, 98, 1, crate::causes::testing::LATE, 19).ran(4_020)
    }

    #[test]
    fn who_keeps_the_thread_that_does_its_timers_from_running_is_the_cause() {
        for is_woken in [true, false] {
            // The hog is below the late thread (FIFO 80), and above the one that is to wake it.
            let told = told((Policy::Fifo, 50, 49), is_woken);
            assert_eq!((top(&told).0, top(&told).1), ("preempted", "hog [FIFO 50]"), "{told:?}");
            assert!(told.shares[0].is_certain(), "{told:?}");
            assert!(
                told.shares[0].detail.iter().any(|line| line.contains("ktimers/0")),
                "{told:?}"
            );
        }
        let told = told((Policy::Other, 0, 120), true);
        assert_eq!((top(&told).0, top(&told).1), ("preempt-off", "hog [OTHER]"), "{told:?}");
    }
}
