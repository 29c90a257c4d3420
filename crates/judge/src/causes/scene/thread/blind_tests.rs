//! Tests: what is missing is found where it is marked and where it is not.

use rtproof_trace::event::{self};

use super::*;
use crate::causes::Share;
use crate::causes::testing::{LATE, Story, US};

fn unexplained_ns(explained: &crate::causes::Explanation) -> u64 {
    explained.shares.iter().filter(|share| share.cause == "unexplained").map(|share| share.ns).sum()
}

#[test]
fn a_thread_that_runs_without_a_switch_means_missing_events() {
    // As a ring that is resized leaves it: the last switch, then nothing.
    let explained = Story::new().ran(4500);
    assert_eq!(explained.incomplete.len(), 1);
    assert!(explained.incomplete[0].contains("contradict"), "{:?}", explained.incomplete);
    // Unrecorded time has no culprit.
    assert_eq!(explained.shares[0].culprit, "");
    assert!(explained.shares[0].detail[0].contains("contradict"));
    assert_eq!(unexplained_ns(&explained), 4500 * US);
    // It was woken, and that is the last that is known.
    let explained = Story::new().timer(1, 7).ran(4500);
    assert_eq!(explained.incomplete.len(), 1);
    assert_eq!(unexplained_ns(&explained), 4496 * US);
    let explained = Story::new().timer(1, 7).runs(4500, 7, 120);
    assert!(explained.incomplete.is_empty());
}

#[test]
fn running_without_a_switch_means_missing_events() {
    // Task 9 runs, and the switch from task 7 to it is not there.
    let explained = Story::new().timer(1, 7).runs(4500, 9, 120);
    assert!(explained.incomplete[0].contains("was not recorded"), "{:?}", explained.incomplete);
    let inferred = |explained: &crate::causes::Explanation| {
        let is_inferred =
            |share: &&Share| share.unseen.iter().any(|text| text.contains("inferred"));
        let shares = explained.shares.iter().filter(is_inferred);
        shares.map(|share| share.ns).sum::<u64>()
    };
    assert_eq!((inferred(&explained), unexplained_ns(&explained)), (4496 * US, 0), "{explained:?}");
    // The same with any event of task 9; from there on it is known.
    let waking = EventData::Waking { comm: "x".into(), pid: 11, prio: 120, target_cpu: 0 };
    let story = Story::new().timer(1, 7).event(2000, 9, 0, waking.clone());
    let explained = story.switch(3000, 9, 120, 0, 7, 120).runs(4500, 7, 120);
    assert_eq!(explained.incomplete.len(), 1);
    assert_eq!(inferred(&explained), 2996 * US, "{explained:?}");
    // On another CPU it says nothing.
    let mut story = Story::new().timer(1, 7).event(2000, 9, 0, waking);
    for event in story.window.events.iter_mut().filter(|event| event.pid == 9) {
        event.cpu = 1;
    }
    assert!(story.runs(4500, 7, 120).incomplete.is_empty());
}

#[test]
fn a_task_without_a_switch_ran_with_the_priority_that_it_was_woken_with() {
    // It is a real-time task, and gives that up before it leaves the CPU.
    let waking = EventData::Waking { comm: "x".into(), pid: 9, prio: 0, target_cpu: 0 };
    let story = Story::new().event(-20, 7, 0, waking).timer(1, 7);
    let explained = story.runs(4500, 9, 120);
    let ahead = explained.shares.iter().find(|share| share.cause == "preempted");
    assert!(ahead.is_some_and(|share| share.ns > 4_400 * US), "{explained:?}");
}

#[test]
fn a_wake_up_ends_before_the_thread_ran_where_all_events_then_are_of_another_task() {
    let ends = |story: Story, how| {
        let (due_ns, ran_ns) = (crate::causes::testing::DUE, crate::causes::testing::DUE + 50 * US);
        let wake = WakeUp { tid: LATE, cpu: 0, due_ns, ran_ns, how };
        ends_before_it_ran(&wake, &story.window)
    };
    let idle = || Story::new().timer(1, 7).event(50, 0, 0, EventData::IdleExit);
    assert!(ends(idle(), WakeUpBasis::Timer) && ends(idle(), WakeUpBasis::Woken));
    assert!(
        !ends(idle(), WakeUpBasis::Measured) && !ends(Story::new().timer(1, 7), WakeUpBasis::Timer)
    );
    // It came and went in the same microsecond of a text.
    let went = idle().switch(50, 0, 120, 0, LATE, 19).switch(50, LATE, 19, 1, 7, 120);
    assert!(!ends(went, WakeUpBasis::Woken));
    let (comm, pid, prio, target_cpu) = ("control".into(), LATE, 19, 0);
    let woken = Story::new().event(50, 7, 0, EventData::Wakeup { comm, pid, prio, target_cpu });
    assert!(!ends(woken, WakeUpBasis::Timer));
}

#[test]
fn what_was_left_out_before_the_window_is_not_missing() {
    // The last idle event of long ago belongs to the idle task; the last switch came later.
    let mut story = Story::new().event(-900, 0, event::flags::IRQS_OFF, EventData::IdleExit);
    story.window.from_ns = story.window.events[0].at_ns + US;
    assert!(story.timer(1, 7).runs(50, 7, 120).incomplete.is_empty());
}

#[test]
fn without_switches_no_events_are_reported_missing() {
    let mut story = Story::new().timer(1, 7);
    story.window.events.retain(|event| !matches!(event.what, EventData::Switch { .. }));
    let wake = WakeUp {
        tid: LATE,
        cpu: 0,
        due_ns: crate::causes::testing::DUE,
        ran_ns: crate::causes::testing::DUE + 50 * US,
        how: WakeUpBasis::Measured,
    };
    let (unknown, doubts) = missing_stretches(&wake, &story.window, &[]);
    assert!(unknown.is_empty() && doubts.is_empty(), "{unknown:?}");
}
