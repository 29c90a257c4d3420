//! A program as a workload: the examples, and programs that do what they should not.

use std::{path::PathBuf, process::Command};

use super::*;

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/cycle").join(name)
}

/// Runs a tool; false: it is not installed, which is reported.
fn build(tool: &str, args: &[&str]) -> bool {
    match Command::new(tool).args(args).status() {
        Ok(status) => {
            assert!(status.success(), "{tool} {args:?}");
            true
        }
        Err(error) => {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("not tried: {tool}: {error}\n").as_bytes(),
            );
            false
        }
    }
}

fn check(command: &str, shortest_ns: u64) {
    let _alone = alone();
    let mut plan = plan(&format!("exec:{command}"));
    plan.priority = 30;
    // What an interpreter takes to start is part of the run, and none knows how long that is.
    let got = [400, 2_000, 10_000, 30_000].into_iter().find_map(|ms| {
        plan.duration_ns = ms * 1_000_000;
        let got = run(&plan).remove(0);
        assert_eq!(got.report.reason, EndReason::Complete, "{command}: {got:?}");
        // One that catches up may be a few ahead of the time when it is ended.
        assert!(got.report.scheduled <= ms + 20, "{command}: {got:?}");
        (got.report.scheduled >= 200).then_some(got)
    });
    let got = got.unwrap_or_else(|| panic!("{command}: not 200 cycles in 30 s"));
    assert!(got.min() >= shortest_ns, "{command}: {got:?}");
    assert_ne!(got.started.tid, std::process::id());
    if got.started.policy_error.is_none() {
        assert_eq!((got.started.policy, got.started.priority), (Policy::Fifo, 30));
    }
    assert!(got.started.is_pinned && got.started.own_cost.sentence.contains("Writing a line"));
}

#[test]
fn the_example_in_c_is_measured() {
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("cycle");
    let (source, out) = (example("cycle.c"), program.display().to_string());
    if build("gcc", &["-O2", "-Wall", "-Werror", "-o", &out, &source.display().to_string()]) {
        check(&out, 100);
    }
}

#[test]
fn the_example_in_rust_is_measured() {
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("cycle");
    let (source, out) = (example("cycle.rs"), program.display().to_string());
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let source = source.display().to_string();
    if build(&rustc, &["--edition", "2021", "-O", "-Dwarnings", "-o", &out, &source]) {
        check(&out, 10);
    }
}

#[test]
fn the_example_in_python_is_measured() {
    if build("python3", &["-c", ""]) {
        check(&format!("python3 {}", example("cycle.py").display()), 0);
    }
}

/// How a script of the shell is taken.
fn script(text: &str) -> (Got, String) {
    script_of(|| text.into())
}

/// The same, with a text that holds times.
fn script_of(text: impl FnOnce() -> String) -> (Got, String) {
    let _alone = alone();
    let text = text();
    let mut plan = plan(&format!("exec:sh -c '{text}'"));
    (plan.policy, plan.priority) = (Policy::Other, 0);
    // Most end by themselves, long before.
    plan.duration_ns = 4_000_000_000;
    let got = run(&plan).remove(0);
    let failure = got.report.ending.failure.clone().unwrap_or_default();
    assert_eq!(failure.is_empty(), got.report.reason != EndReason::Failed, "{got:?}");
    (got, failure)
}

/// What begins when the run does, at the latest: lines from before are a program's warm-up.
const LATER: &str = "sleep 0.8; ";

#[test]
fn a_malformed_line_ends_the_run_with_its_number_and_text() {
    let (got, failure) = script(&format!("{LATER} echo 100; echo 200; echo hello; sleep 5"));
    assert!(failure.contains("exec: line 3 of its output, `hello`: expected `VALUE`"), "{failure}");
    assert_eq!((got.totals.wake.count(), got.max()), (2, 200), "what came before is kept");
}

#[test]
fn a_program_that_ends_is_reported() {
    let (got, failure) = script(&format!("{LATER} echo 100; exit 3"));
    assert!(failure.contains("exit status: 3 after 1 cycles"), "{failure}");
    assert_eq!(got.totals.wake.count(), 1);
    let (got, failure) = script(&format!("{LATER} echo 100; echo missed 4; echo \"# done\""));
    assert!(failure.is_empty(), "{failure}");
    assert_eq!((got.report.reason, got.report.scheduled), (EndReason::Complete, 5));
    assert_eq!((got.totals.wake.count(), got.totals.missed), (1, 4));
    let (_, failure) = script("true");
    assert!(failure.contains("exit status: 0 after 0 cycles"), "{failure}");
    let (_, failure) = script("no-such-program-here");
    assert!(failure.contains("exit status: 127"), "{failure}");
}

#[test]
fn a_program_without_a_line_is_reported() {
    let (_, failure) = script("sleep 30");
    assert!(failure.contains("wrote no line. Does it flush"), "{failure}");
    let (_, failure) = script("exec >&-; sleep 30");
    assert!(failure.contains("closed its output and went on"), "{failure}");
}

#[test]
fn a_program_that_floods_is_kept_up_with_or_waits() {
    let (got, failure) = script("exec yes 5");
    assert!(failure.is_empty(), "{failure}");
    assert_eq!((got.max(), got.report.reason), (5, EndReason::Complete));
    assert!(got.totals.wake.count() > 1000, "{got:?}");
}

#[test]
fn due_times_that_fall_are_refused() {
    let now_ns = |plus: u64| {
        let now = rustix::time::clock_gettime(rustix::thread::ClockId::Monotonic);
        now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs() + plus
    };
    let (_, failure) = script_of(|| {
        // Within the run, wherever it begins.
        let due_ns = now_ns(3_000_000_000);
        format!("{LATER} echo {due_ns} 5; echo {due_ns} 5; sleep 5")
    });
    assert!(failure.contains("line 2") && failure.contains("due times rise"), "{failure}");
}
