//! Workloads that time a piece of work, and the loop that never sleeps.

use super::*;

#[test]
fn a_piece_of_work_takes_what_was_calibrated() {
    let _alone = alone();
    for text in ["registers", "memory", "memory:4MiB", "kill", "clock-gettime"] {
        let got = one(text);
        assert_eq!(got.report.scheduled, 400, "{text}");
        // Calibrated to 20 us; on a machine that is busy meanwhile the fastest is still near it.
        assert!((2_000..200_000).contains(&got.min()), "{text}: {got:?}");
        let cost = &got.started.own_cost;
        assert!(cost.ns > 0 && cost.sentence.contains("A cycle is "), "{cost:?}");
    }
}

#[test]
fn all_time_of_a_busy_loop_is_accounted_for() {
    let _alone = alone();
    let mut plan = plan("busy-loop:2us");
    plan.policy = Policy::Other;
    plan.priority = 0;
    let got = run(&plan).remove(0);
    let gaps = got.report.ending.gaps.expect("an account of time");
    assert_eq!(gaps.busy_ns + gaps.gap_ns, gaps.run_ns);
    assert_eq!((gaps.gaps, gaps.threshold_ns), (got.totals.wake.count(), 2000));
    assert_eq!(u128::from(gaps.gap_ns), got.totals.wake.sum());
    assert!(gaps.run_ns >= 350_000_000, "{gaps:?}");
    assert!(gaps.step_min_ns > 0 && gaps.step_min_ns <= 2000, "{gaps:?}");
    // The timer tick alone comes at least a hundred times a second, unless it is off.
    assert!(gaps.steps > 1000 && got.totals.missed == 0);
    assert!(got.totals.wake.min().is_none_or(|min| min > 2000));
}
