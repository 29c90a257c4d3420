//! The thread had not finished what came before.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "own-cycle",
    kind: Kind::Own,
    title: "the thread's own previous cycle",
    about: "when the wake-up was due the thread was still running and had not started its timer; \
        or it had set its timer for later, as relative sleeps do",
    source: "Codethink, \"Configuring Linux systems to stabilise latency\"; clock_nanosleep(2), \
        TIMER_ABSTIME",
    checks: &["app-policy"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let scene = moment.scene;
    let set_for_ns = scene.set_for_at(moment.from_ns);
    if let Some(until_ns) = set_for_ns.filter(|_| moment.phase == Phase::TimerLate) {
        let late_ns = until_ns.saturating_sub(scene.wake.due_ns);
        let late = rtproof_stats::quantity::ns(late_ns);
        let attribution = Attribution::by(names::comm(scene, scene.wake.tid))
            .detail([format!("its timer was set for {late} after that")])
            .manual("sleep until an absolute time (clock_nanosleep, TIMER_ABSTIME)");
        return Some(Attribution { until_ns: Some(until_ns), ..attribution });
    }
    if moment.phase != Phase::OwnCycle || !moment.is_task() || moment.cpu.softirq.is_some() {
        return None;
    }
    let runs = moment.cpu.task == scene.wake.tid || moment.cpu.task < 0;
    runs.then(|| {
        Attribution::by(names::comm(scene, scene.wake.tid)).manual(
            "its cycle takes longer than its period: shorten the work or lengthen the period",
        )
    })
}

#[cfg(test)]
mod tests {
    use rtproof_trace::{
        What,
        event::{Vector, flags},
    };

    use crate::causes::testing::{DUE, LATE, Story, US};

    fn interrupt(story: Story, us: i64, pid: i32) -> Story {
        let vector = Vector::CallFunction;
        let over = flags::IRQS_OFF | flags::HARDIRQ;
        let story = story.event(us, pid, flags::IRQS_OFF, What::VectorEntry { vector });
        story.event(us + 3, pid, over, What::VectorExit { vector })
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
    fn the_switch_to_the_cycle_that_goes_on_may_be_missing() {
        let mut story = overrun();
        let to_it =
            |what: &What| matches!(what, What::Switch { next_pid, .. } if *next_pid == LATE);
        story.window.events.retain(|event| !to_it(&event.what));
        let told = story.ran(4_010);
        let own = told.shares.iter().find(|share| share.cause == "own-cycle");
        assert!(own.is_some_and(|share| share.ns > 3_900 * US), "{told:?}");
    }

    #[test]
    fn a_timer_that_is_set_for_later_is_the_threads_own_doing() {
        // A relative sleep: the range of slack begins 40 us after the wake-up was due.
        let (expires_ns, soft_ns) = (DUE + 90 * US, DUE + 40 * US);
        let start = What::TimerStart { timer: 1, function: 2, expires_ns, soft_ns };
        let story = Story::new().event(-600, LATE, 0, start);
        let told = story.timer(1_400, 7).runs(1_410, 7, 120);
        let share = |cause: &str| {
            let found = told.shares.iter().find(|share| share.cause == cause);
            found.map_or(0, |share| share.ns / US)
        };
        assert_eq!((share("own-cycle"), share("timer-slack")), (40, 50), "{told:?}");
        assert_eq!(told.shares.iter().map(|share| share.ns).sum::<u64>(), told.wake.latency_ns());
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
