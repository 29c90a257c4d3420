//! Tests: what is missing is found where it is marked and where it is not.

use rtproof_trace::event::{self};

use super::*;
use crate::causes::Share;
use crate::causes::testing::{LATE, Story, US};

fn unexplained_ns(told: &crate::causes::Explanation) -> u64 {
    told.shares.iter().filter(|share| share.cause == "unexplained").map(|share| share.ns).sum()
}

#[test]
fn a_thread_that_runs_and_was_never_switched_to_tells_of_missing_events() {
    // As a ring that is resized leaves it: the last switch, then nothing.
    let told = Story::new().ran(4500);
    assert_eq!(told.incomplete.len(), 1);
    assert!(told.incomplete[0].contains("contradict"), "{:?}", told.incomplete);
    // What was not recorded is nobody's doing.
    assert_eq!(told.shares[0].culprit, "");
    assert!(told.shares[0].detail[0].contains("contradict"));
    assert_eq!(unexplained_ns(&told), 4500 * US);
    // It was woken, and that is the last that is known.
    let told = Story::new().timer(1, 7).ran(4500);
    assert_eq!(told.incomplete.len(), 1);
    assert_eq!(unexplained_ns(&told), 4496 * US);
    let told = Story::new().timer(1, 7).runs(4500, 7, 120);
    assert!(told.incomplete.is_empty());
}

#[test]
fn who_runs_was_switched_to_or_events_are_missing() {
    // Task 9 runs, and the switch from task 7 to it is not there.
    let told = Story::new().timer(1, 7).runs(4500, 9, 120);
    assert!(told.incomplete[0].contains("was not recorded"), "{:?}", told.incomplete);
    let inferred = |told: &crate::causes::Explanation| {
        let is_inferred =
            |share: &&Share| share.unseen.iter().any(|text| text.contains("inferred"));
        let shares = told.shares.iter().filter(is_inferred);
        shares.map(|share| share.ns).sum::<u64>()
    };
    assert_eq!((inferred(&told), unexplained_ns(&told)), (4496 * US, 0), "{told:?}");
    // The same with any event of task 9; from there on it is known.
    let waking = EventData::Waking { comm: "x".into(), pid: 11, prio: 120, target_cpu: 0 };
    let story = Story::new().timer(1, 7).event(2000, 9, 0, waking.clone());
    let told = story.switch(3000, 9, 120, 0, 7, 120).runs(4500, 7, 120);
    assert_eq!(told.incomplete.len(), 1);
    assert_eq!(inferred(&told), 2996 * US, "{told:?}");
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
    let told = story.runs(4500, 9, 120);
    let ahead = told.shares.iter().find(|share| share.cause == "preempted");
    assert!(ahead.is_some_and(|share| share.ns > 4_400 * US), "{told:?}");
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
fn without_switches_nothing_is_said_to_be_missing() {
    let mut story = Story::new().timer(1, 7);
    story.window.events.retain(|event| !matches!(event.what, EventData::Switch { .. }));
    let wake = WakeUp {
        tid: LATE,
        cpu: 0,
        due_ns: crate::causes::testing::DUE,
        ran_ns: crate::causes::testing::DUE + 50 * US,
        how: WakeUpBasis::Measured,
    };
    let (blind, doubts) = missing_stretches(&wake, &story.window, &[]);
    assert!(blind.is_empty() && doubts.is_empty(), "{blind:?}");
}
