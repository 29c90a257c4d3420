//! The timer of an earlier cycle: a thread that was due again while it still waited for that one,
//! as one does that makes up for cycles that it missed.

use rtproof_trace::{WakeUp, What, Window, context::Stretch};

use crate::causes::stack::Interrupted;

/// Functions of timers that wake the very thread that started them (kernel/time/hrtimer.c).
const SLEEPER: &str = "hrtimer_wakeup";

/// A wait that had not ended when the thread was due.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// What its timer was set for; `None`: it was set before the events begin.
    pub set_for_ns: Option<u64>,
    /// When the interrupt began that ended it.
    pub irq_ns: Option<u64>,
    pub interrupted: Interrupted,
    pub woken_ns: u64,
}

/// The wait that a timer of the thread ended after it was due and before it had started the timer
/// of this wake-up.
pub(super) fn of(
    wake: &WakeUp,
    window: &Window,
    stretches: &[Stretch],
    armed_ns: Option<u64>,
) -> Option<Earlier> {
    let armed_ns = armed_ns.filter(|&at_ns| at_ns > wake.due_ns)?;
    let is_waking = |what: &What| match what {
        What::Waking { pid, .. } | What::Wakeup { pid, .. } => *pid == wake.tid,
        _ => false,
    };
    let waking = window
        .events
        .iter()
        .find(|e| (wake.due_ns..armed_ns).contains(&e.at_ns) && is_waking(&e.what))?;
    let before = || window.events.iter().rev().filter(|event| event.at_ns <= waking.at_ns);
    // Inside the function of a timer.
    let expired = before().filter(|event| event.cpu == waking.cpu).find_map(|e| match e.what {
        What::TimerExpire { timer, function, .. } => Some(Some((timer, function))),
        What::TimerExpired { .. } => Some(None),
        _ => None,
    });
    let (timer, function) = expired.flatten()?;
    let set_for_ns = before().filter(|event| event.pid == wake.tid).find_map(|e| match e.what {
        What::TimerStart { timer: started, expires_ns, soft_ns, .. } if started == timer => {
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
    Some(Earlier { set_for_ns, irq_ns, interrupted, woken_ns: waking.at_ns })
}

#[cfg(test)]
mod tests {
    use rtproof_trace::{
        What,
        event::{Vector, flags},
    };

    use crate::causes::{
        Explanation,
        testing::{DUE, LATE, Story, US, top},
    };

    /// A loop of 1 ms whose last wake-up was set for `set_for_us` after it was due again. Its
    /// interrupt came 2 ms late, over task 7, and the next cycle's timer has long been due.
    fn made_up(set_for_us: Option<i64>) -> Explanation {
        let (timer, function, vector) = (1, 9, Vector::LocalTimer);
        let mut story = Story::new();
        story.window.symbols.insert(function, "hrtimer_wakeup".into());
        if let Some(us) = set_for_us {
            let expires_ns = DUE.saturating_add_signed(us * 1_000);
            let start = What::TimerStart { timer, function, expires_ns, soft_ns: expires_ns };
            story = story.event(-900, LATE, 0, start);
        }
        let over = flags::IRQS_OFF | flags::HARDIRQ;
        let again = What::TimerStart { timer, function, expires_ns: DUE, soft_ns: DUE };
        story
            .event(2_000, 7, flags::IRQS_OFF, What::VectorEntry { vector })
            .event(2_001, 7, over, What::TimerExpire { timer, function, now_ns: DUE + 2_001 * US })
            .waking(2_002, 7)
            .event(2_003, 7, over, What::TimerExpired { timer })
            .event(2_004, 7, over, What::VectorExit { vector })
            .switch(2_006, 7, 120, 0, LATE, 19)
            .event(2_010, LATE, 0, again)
            .event(2_011, LATE, flags::IRQS_OFF, What::VectorEntry { vector })
            .waking(2_012, LATE)
            .event(2_013, LATE, over, What::VectorExit { vector })
            .ran(2_015)
    }

    #[test]
    fn a_cycle_that_was_due_while_the_one_before_it_was_late_is_late_for_that_reason() {
        let told = made_up(Some(-500));
        assert!(told.shares.iter().all(|share| share.cause != "blocked"), "{told:?}");
        assert_eq!((top(&told).0, top(&told).2), ("irqs-off", 2_000), "{told:?}");
    }

    #[test]
    fn a_timer_that_was_set_for_later_than_the_next_cycle_is_the_threads_own_doing() {
        let told = made_up(Some(1_500));
        let share = |cause: &str| {
            let found = told.shares.iter().find(|share| share.cause == cause);
            found.map_or(0, |share| share.ns / US)
        };
        assert_eq!((share("own-cycle") >= 1_500, share("irqs-off")), (true, 500), "{told:?}");
    }

    #[test]
    fn a_timer_that_was_set_before_the_events_begin_makes_nothing_certain() {
        let told = made_up(None);
        let (cause, culprit, _) = top(&told);
        assert_eq!((cause, culprit), ("blocked", "the timer of an earlier cycle"));
        let share = told.shares.iter().find(|share| share.cause == "blocked").expect("it is there");
        assert_eq!(share.or, ["own-cycle", "stall", "irqs-off"], "{told:?}");
    }
}
