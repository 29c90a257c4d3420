//! A task of higher priority ran.

use rtproof_trace::{Event, What};

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{Order, changed, left_with, order},
    scene::{Moment, Phase, Scene},
};

pub(super) const CAUSE: Cause = Cause {
    id: "preempted",
    kind: Kind::Scheduling,
    title: "a task of higher priority",
    about: "the thread was runnable and a task that outranks it was on the CPU",
    source: "sched(7); Wu, \"Real-time programming with Linux, part 2\" (multipathd at SCHED_RR \
        99)",
    checks: &["rogue-rt-tasks", "prio-99", "app-outranked"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::Runnable || !moment.is_task() || moment.cpu.task <= 0 {
        return None;
    }
    let others: &[&str] = match order(moment) {
        Order::Above => &[],
        Order::NotBelow => &["queued"],
        Order::Unknown => &["preempt-off", "queued"],
        Order::Equal | Order::Below | Order::UnknownAndHeld => return None,
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
    let attribution = Attribution::by(names::task(scene, tid, prio));
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
        attribution.or(if raised.is_some() { &["priority-inheritance"] } else { &[] });
    let attribution = attribution.or(if was_raised { &["preempt-off"] } else { others });
    Some(names::against_task(attribution, scene, tid))
}

/// The priority below this one that a task has at other times, where no event says who raised it.
fn raised_from(scene: &Scene<'_>, tid: i32, prio: Option<i32>) -> Option<i32> {
    let is_told = |event: &&&Event| matches!(event.what, What::PiSetprio { .. });
    // Our own recorder has the event.
    let is_told = scene.coverage.is_all() || scene.rare().iter().any(|event| is_told(&event));
    let prio = prio.filter(|_| !is_told)?;
    scene.lowest(tid).filter(|&lowest| lowest > prio)
}

#[cfg(test)]
mod tests {
    use rtproof_trace::{
        Policy, What,
        event::{Vector, flags},
    };

    use crate::causes::testing::{LATE, Story, top};

    #[test]
    fn a_task_that_the_kernel_left_on_its_cpu_was_not_below() {
        let told = |flags: u8| {
            let woken = What::Wakeup { comm: "a".into(), pid: LATE, prio: 19, target_cpu: 0 };
            let story = Story::new().with(60, "ceiling", Policy::Other, 0).timer(1, 60);
            story.switch(-50, 7, 120, 0, 60, 120).event(3, 60, flags, woken).runs(5_000, 60, 120)
        };
        // The kernel asks who should give way before it writes the event.
        let asked = told(flags::IRQS_OFF | flags::HARDIRQ | flags::NEED_RESCHED);
        assert_eq!(top(&asked).0, "preempt-off", "{asked:?}");
        let kept = told(flags::IRQS_OFF | flags::HARDIRQ);
        assert_eq!((top(&kept).0, top(&kept).1), ("preempted", "ceiling [OTHER]"), "{kept:?}");
        assert!(
            kept.shares[0].detail.iter().any(|text| text.contains("did not ask it")),
            "{kept:?}"
        );
        assert_eq!(kept.shares[0].or, ["queued"]);
        // A trace without flags proves nothing.
        assert_eq!(top(&told(0)).0, "preempt-off");
        // Nor does that of a kernel before 4.3, which writes the event before it asks.
        let woken = What::Wakeup { comm: "a".into(), pid: LATE, prio: 19, target_cpu: 0 };
        let flags = flags::IRQS_OFF | flags::HARDIRQ;
        let story = Story::new().with(60, "ceiling", Policy::Other, 0);
        let story = story.switch(-50, 7, 120, 0, 60, 120).event(3, 60, flags, woken);
        let old = story.runs(5_000, 60, 120);
        assert_eq!(top(&old).0, "preempt-off", "{old:?}");
    }

    #[test]
    fn the_application_is_not_to_be_stopped_for_itself() {
        let advice = |of: &str| {
            let mut story = Story::new().with(60, "other", Policy::Rr, 99).timer(1, 7);
            story.window.tasks.get_mut(&LATE).unwrap().unit = Some("control.service".into());
            story.window.tasks.get_mut(&60).unwrap().unit = Some(of.into());
            let told = story.switch(6, 7, 120, 0, 60, 0).runs(5_000, 60, 0);
            format!("{:?}", told.shares[0].remedies)
        };
        assert!(advice("multipathd.service").contains("disable --now"));
        let own = advice("control.service");
        assert!(own.contains("application itself") && !own.contains("disable"), "{own}");
    }

    #[test]
    fn a_task_that_was_lowered_as_it_left_had_outranked_the_thread() {
        let story = || Story::new().with(60, "multipathd", Policy::Rr, 99);
        let told = story().timer(1, 7).switch(6, 7, 120, 0, 60, 0).runs(5_000, 60, 120);
        assert_eq!(top(&told).0, "preempted", "{told:?}");
        assert_eq!(top(&told).1, "multipathd [RR 99]", "{told:?}");
        assert!(told.shares[0].is_certain(), "{told:?}");
        // It came as an ordinary task and was raised at a time that is not known.
        let told = story().timer(1, 7).switch(6, 7, 120, 0, 60, 120).runs(5_000, 60, 0);
        assert_eq!((top(&told).0, top(&told).1), ("preempted", "multipathd [RR 99]"), "{told:?}");
        assert_eq!(told.shares[0].or, ["preempt-off"]);
    }

    /// A text of the tracer timerlat, and one without switches: that the thread ran once does not
    /// say that it goes on when it is due again.
    #[test]
    fn without_switches_the_thread_is_not_taken_to_run_on() {
        let sample = |context| What::Timerlat { sequence: 2, context, latency_ns: 1 };
        let vector = Vector::CallFunction;
        for is_timerlat in [true, false] {
            let mut story = Story::new().with(60, "multipathd", Policy::Rr, 99);
            story.window.events.clear();
            if is_timerlat {
                story.task(LATE, "timerlat/0", Policy::Fifo, 95);
                story = story.event(-990, LATE, 0, sample(1)).event(1, 60, 0, sample(0));
            } else {
                story = story.event(-990, LATE, 0, What::VectorEntry { vector });
                story = story.event(-980, LATE, 0, What::VectorExit { vector }).timer(1, 60);
            }
            story = story.event(3_000, 60, 0, What::VectorEntry { vector });
            let told = story.event(3_001, 60, 0, What::VectorExit { vector }).ran(5_000);
            assert_eq!(
                (top(&told).0, top(&told).1),
                ("preempted", "multipathd [RR 99]"),
                "{told:?}"
            );
            assert!(told.shares.iter().all(|share| share.cause != "own-cycle"), "{told:?}");
        }
    }
}
