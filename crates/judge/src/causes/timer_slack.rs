//! The thread's own timer slack: the kernel put its timer off.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "timer-slack",
    kind: Kind::Own,
    title: "the thread's own timer slack",
    about: "hrtimer_start recorded a range (softexpires to expires): up to its end the kernel may \
        let the timer expire together with others",
    source: "prctl(2), PR_SET_TIMERSLACK; kernel/time/hrtimer.c (hrtimer_start_range_ns)",
    checks: &["app-timer-slack", "app-policy"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let scene = moment.scene;
    let until_ns = scene.slack_ns.filter(|&slack_ns| slack_ns > moment.from_ns)?;
    if scene.earlier_at(moment.from_ns).is_some() {
        return None;
    }
    if moment.phase != Phase::TimerLate {
        return None;
    }
    let set_for_ns = scene.set_for_ns.unwrap_or(scene.wake.due_ns);
    let slack_ns = until_ns.saturating_sub(set_for_ns);
    let attribution = Attribution::by(names::comm(scene, scene.wake.tid));
    let attribution = attribution
        .detail([format!("its timer may be {} late", rtproof_stats::quantity::ns(slack_ns))])
        .manual(
            "set the thread's timer slack to 1 ns (prctl PR_SET_TIMERSLACK), or give it a \
             real-time policy, which has none",
        );
    Some(Attribution { until_ns: Some(until_ns), ..attribution })
}

#[cfg(test)]
mod tests {
    use rtproof_trace::What;

    use crate::causes::testing::{DUE, LATE, Story, US, top};

    #[test]
    fn what_the_kernel_put_off_by_slack_is_the_threads_own() {
        let (timer, function) = (1, 2);
        let start = |slack_us: u64| {
            let expires_ns = DUE + slack_us * US;
            What::TimerStart { timer, function, expires_ns, soft_ns: DUE }
        };
        let story = Story::new().event(-600, LATE, 0, start(1_500));
        let told = story.timer(1_400, 7).runs(1_410, 7, 120);
        assert_eq!(top(&told), ("timer-slack", "control", 1_400), "{told:?}");
        // Later than that it is something else.
        let story = Story::new().event(-600, LATE, 0, start(300));
        let told = story.timer(1_400, 7).runs(1_410, 7, 120);
        assert_eq!(top(&told).0, "irqs-off", "{told:?}");
        let slack = told.shares.iter().find(|share| share.cause == "timer-slack");
        assert_eq!(slack.map(|share| share.ns), Some(300 * US));
        // Without slack there is none, also where the timer was set for later than it was due.
        let exact = |late_us: u64| {
            let expires_ns = DUE + late_us * US;
            What::TimerStart { timer, function, expires_ns, soft_ns: expires_ns }
        };
        for late_us in [0, 90] {
            let story = Story::new().event(-600, LATE, 0, exact(late_us));
            let told = story.timer(1_400, 7).runs(1_410, 7, 120);
            assert!(told.shares.iter().all(|share| share.cause != "timer-slack"), "{told:?}");
        }
    }
}
