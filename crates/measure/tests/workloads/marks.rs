//! An application that marks its cycles: in Rust in this process, and in C in one of its own.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use super::*;

/// Marks cycles of 200 us every 2 ms while `body` runs.
fn while_marking(marks: rtproof_mark::Marks, body: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut marks = marks;
            while !stop.load(Ordering::Relaxed) {
                marks.begin();
                std::thread::sleep(Duration::from_micros(200));
                marks.end();
                std::thread::sleep(Duration::from_micros(1800));
            }
        });
        body();
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_marked_application_is_measured() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let marks = rtproof_mark::Marks::open_at(&dir.path().join("ring")).expect("a ring");
    let text = format!("marks:{}", marks.path().display());
    while_marking(marks, || {
        let got = run(&plan(&text)).remove(0);
        assert_eq!((got.report.reason, got.report.ending.lost), (EndReason::Complete, 0));
        // 2 ms and what sleeping takes beyond it, on a busy machine more.
        assert!((20..=210).contains(&got.report.scheduled), "{got:?}");
        assert!(got.min() >= 200_000 && got.totals.missed == 0, "{got:?}");
        assert!(got.intervals.min() >= Some(2_000_000), "{got:?}");
        assert_ne!(got.started.tid, 0);
    });
}

#[test]
fn a_marked_application_in_c_is_measured_until_it_ends() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("marked");
    let marks = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../marks");
    let source = marks.join("examples/marked.c");
    let built = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .args([&marks, &PathBuf::from("-o"), &program, &source])
        .status();
    let Ok(status) = built else { return };
    assert!(status.success());
    // 150 cycles of 1 ms and more, then it ends.
    let mut app =
        Command::new(&program).arg("150").stdout(Stdio::null()).spawn().expect("the program");
    std::thread::sleep(Duration::from_millis(20));
    let got = run(&plan(&format!("marks:{}", app.id()))).remove(0);
    app.wait().expect("it ends");
    // The header leaves the ring for whoever reads it.
    std::fs::remove_file(format!("/dev/shm/rtproof-mark-{}", app.id())).expect("the ring");
    assert_eq!((got.report.reason, got.report.ending.lost), (EndReason::Complete, 0));
    assert!((30..150).contains(&got.report.scheduled), "{got:?}");
    assert_eq!(got.started.tid, app.id());
    assert!(got.started.policy == Policy::Other && got.min() > 0, "{got:?}");
}

#[test]
fn an_application_that_marks_nothing_is_told() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let marks = rtproof_mark::Marks::open_at(&dir.path().join("ring")).expect("a ring");
    let got = run(&plan(&format!("marks:{}", marks.path().display()))).remove(0);
    assert_eq!(got.report.reason, EndReason::Failed);
    let failure = got.report.ending.failure.expect("why");
    assert!(failure.contains("no cycle was marked"), "{failure}");
    let error = Session::start(&plan("marks:/no/such/ring")).expect_err("none").to_string();
    assert!(error.contains("/no/such/ring: No such file"), "{error}");
    let error = Session::start(&plan("marks:1")).expect_err("none").to_string();
    assert!(error.contains("process 1 has no ring"), "{error}");
}

#[test]
fn a_flood_of_cycles_is_read_or_counted_as_lost() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let mut marks = rtproof_mark::Marks::open_at(&dir.path().join("ring")).expect("a ring");
    let text = format!("marks:{}", marks.path().display());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                marks.begin();
                marks.end();
            }
        });
        let mut plan = plan(&text);
        plan.cpus = vec![0];
        let got = run(&plan).remove(0);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(got.report.reason, EndReason::Complete, "{got:?}");
        assert!(got.report.ending.lost > 0 && got.report.scheduled > 0, "{got:?}");
        // Nothing torn was taken: a cycle of two readings of the clock is no hour.
        assert!(got.max() < 10_000_000_000, "{got:?}");
    });
}
