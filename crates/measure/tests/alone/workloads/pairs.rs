//! Workloads of two threads, on one CPU and on two.

use super::*;

const PAIRS: [&str; 5] = ["futex", "pipe", "eventfd", "mutex-pi", "signal"];

#[test]
fn two_threads_hand_over_once_a_period() {
    let _alone = alone();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for name in PAIRS {
        for place in ["", ":same", ":1"] {
            if place == ":1" && cpus < 2 {
                continue;
            }
            let text = format!("{name}{place}");
            let mut plan = plan(&text);
            plan.duration_ns = 200_000_000;
            let got = run(&plan).remove(0);
            assert_eq!((got.report.reason, got.report.scheduled), (EndReason::Complete, 200));
            // Two task switches take longer than this on any machine.
            assert!((100..10_000_000).contains(&got.min()), "{text}: {got:?}");
            assert!(got.started.own_cost.sentence.contains("The fastest of"), "{text}");
        }
    }
}

#[test]
fn two_threads_hand_over_without_any_priority_too() {
    let _alone = alone();
    for name in PAIRS {
        let mut plan = plan(name);
        (plan.policy, plan.priority, plan.duration_ns) = (Policy::Other, 0, 100_000_000);
        let got = run(&plan).remove(0);
        assert_eq!((got.report.reason, got.report.scheduled), (EndReason::Complete, 100));
    }
}

#[test]
fn a_partner_that_cannot_run_is_named() {
    let error = Session::start(&plan("pipe:1000")).expect_err("no CPU 1000").to_string();
    assert!(error.contains("the partner cannot run on CPU 1000"), "{error}");
    let error = workloads::parse("futex:both").expect_err("no CPU").to_string();
    assert!(error.contains("`same` or the number of a CPU"), "{error}");
    let mut plan = plan("signal");
    plan.policy = Policy::Deadline;
    let error = Session::start(&plan).expect_err("no deadline").to_string();
    assert!(error.contains("fifo, rr or other"), "{error}");
}
