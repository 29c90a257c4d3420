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
    use rtproof_trace::What;

    use crate::causes::testing::{DUE, LATE, Story, US};

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
}
