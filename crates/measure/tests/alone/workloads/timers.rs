//! Workloads that wait for a timer.

use super::*;

#[test]
fn timers_on_a_grid_miss_nothing_unseen() {
    let _alone = alone();
    for text in ["timer-wakeup", "timerfd", "posix-timer", "setitimer", "sigalrm-handler"] {
        let got = one(text);
        // The interval timer starts within 1 us of the grid.
        assert!((399..=400).contains(&got.report.scheduled), "{text}: {got:?}");
        assert!(got.min() < 1_000_000, "{text}: {got:?}");
        if parse(text).describe().keeps_intervals {
            assert_eq!(got.intervals.count() + 1, got.totals.wake.count());
            // From the first sample to the last, which a stall may put beyond the end.
            let span = u128::from(got.report.scheduled - 1) * 1_000_000;
            let off = got.intervals.sum().abs_diff(span);
            assert!(off <= u128::from(got.max()) + 1_000_000, "{text}: {off} ns; {got:?}");
        } else {
            assert_eq!(got.intervals.count(), 0);
        }
    }
}

#[test]
fn relative_sleeps_drift_and_are_never_early() {
    let _alone = alone();
    for text in ["nanosleep-relative", "usleep"] {
        let got = one(text);
        // Each interval is longer than the period by what the sample says.
        assert!(got.min() > 0 && got.report.scheduled <= 400, "{text}: {got:?}");
        assert_eq!(got.intervals.count(), got.totals.wake.count());
        let over = got.intervals.sum() - u128::from(got.totals.wake.count()) * 1_000_000;
        assert_eq!(over, got.totals.wake.sum(), "{text}");
        assert!(got.intervals.min() >= Some(1_000_000));
    }
}

#[test]
fn what_counts_microseconds_takes_no_fractions() {
    for (text, period_ns, words) in [
        ("usleep", 1_000_500, "no whole number"),
        ("usleep", 1_000_000_000, "less than 1 s"),
        ("setitimer", 999, "no whole number"),
        ("sigalrm-handler", 1_000_001, "no whole number"),
    ] {
        let mut plan = plan(text);
        plan.period_ns = period_ns;
        let error = Session::start(&plan).expect_err(text).to_string();
        assert!(error.contains("CPU 0") && error.contains(words), "{error}");
    }
}

#[test]
fn a_process_has_one_interval_timer() {
    let _alone = alone();
    let mut plan = plan("setitimer");
    plan.cpus = vec![0, 1];
    let error = Session::start(&plan).expect_err("two of one").to_string();
    assert!(error.contains("one CPU at a time"), "{error}");
    // Two workloads want the same.
    plan.workloads = vec![parse("setitimer"), parse("sigalrm-handler")];
    let error = Session::start(&plan).expect_err("two of one").to_string();
    assert!(error.contains("interval timer is in use"), "{error}");
    // And it is there again afterwards.
    for text in ["sigalrm-handler", "setitimer", "sigalrm-handler"] {
        let got = one(text);
        assert_eq!(got.report.reason, EndReason::Complete, "{text}: {got:?}");
    }
}
