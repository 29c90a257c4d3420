//! `rtproof experiment` as a command: a knob that really takes latency away is found among others
//! that do nothing, its profile can be applied, and nothing of it stays on any exit.
//!
//! The knobs are files of the test over files of /proc, in a mount namespace. A thread above the
//! measured ones burns CPU 0 while the first file does not hold 10. Bounded: it ends with the test,
//! and at the latest after three minutes.

use std::{
    fs,
    process::Child,
    time::{Duration, Instant},
};

use crate::support::{
    ACCEPTED, FAILED, NOT_PROVEN, USAGE, alone, apart::Apart, code, expect_code, files, kill,
    load_workers, only, plant::Plant, stderr, stdout,
};
use rtproof_record::effects::{Decision, SlicePart, TrialDesign};
use serde_json::Value;

/// Knobs: their file, and what it holds before, as no program would leave it.
const KNOBS: [(&str, &str); 3] = [
    ("/proc/sys/vm/stat_interval", "1 \t\n"),
    ("/proc/sys/kernel/soft_watchdog", "1\n\n"),
    ("/proc/sys/vm/swappiness", "60\n"),
];
const PLANTED: &str = "/proc/sys/vm/stat_interval=10";
const OTHERS: [&str; 2] = ["soft-watchdog", "/proc/sys/vm/swappiness=10"];

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let quick = ["--slice", "500ms", "--load", "idle", "--yes"];
    [&["experiment", PLANTED][..], &OTHERS, &quick, more].concat()
}

fn apart() -> Option<Apart> {
    Apart::here(&KNOBS)
}

/// Whether the planted knob was found, and everything that holds then; it must be if it is `last`.
fn find_planted(apart: &Apart, last: bool) -> bool {
    let output = apart.run(&words(&["--profile-out", "good.json", "--json"]));
    assert!([ACCEPTED, NOT_PROVEN].contains(&code(&output)), "{output:?}");
    assert_eq!(apart.differ(), Vec::<String>::new(), "everything is undone");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&found["schema"], &found["seen"]["rests_on"]),
        (&"rtproof/experiment/1".into(), &"pilot".into())
    );
    assert_eq!(found["screening"]["interactions"].as_array().map(Vec::len), Some(3), "{found}");
    let opened = rtproof_record::read(&only(apart.folder(), ".rtproof")).expect("a record");
    let effects = opened.run.effects.expect("effects");
    assert_eq!(effects.trial.design, TrialDesign::Screened);
    let planted = effects.knobs.iter().find(|knob| knob.name == PLANTED).expect("the knob");
    if planted.decision == Decision::CannotDecide && !last {
        eprintln!("too busy to tell: {}", planted.why);
        return false;
    }
    assert_eq!((planted.decision, planted.kept), (Decision::Helps, false), "{effects:#?}");
    let part = |part| effects.slices.iter().filter(|slice| slice.part == part).count();
    assert!(
        part(SlicePart::Screen) >= 18 && part(SlicePart::Pair) >= 18,
        "{}",
        part(SlicePart::Pair)
    );
    let html = fs::read_to_string(only(apart.folder(), ".html")).expect("a report");
    assert!(html.contains("chart-effects") && html.contains("stat_interval"));

    // The profile is a plan: applied to the letter, and undone.
    let plan = fs::read_to_string(apart.folder().join("good.json")).expect("a profile");
    assert!(plan.contains("rtproof/plan/1") && plan.contains("/proc/sys/vm/stat_interval"));
    expect_code(&apart.run(&["tune", "apply", "--plan", "good.json", "--yes"]), ACCEPTED);
    let applied = fs::read_to_string(apart.file(KNOBS[0].0)).expect("a file");
    assert_eq!(applied.trim(), "10");
    expect_code(&apart.run(&["tune", "undo", "--all"]), ACCEPTED);
    assert_eq!(apart.differ(), Vec::<String>::new());
    true
}

/// An experiment under way: a knob is on.
fn tried(apart: &Apart) -> Child {
    let mut child = apart.start(&words(&["--spread", "10"]));
    let begun = Instant::now();
    while apart.differ().is_empty() {
        if child.try_wait().expect("a child").is_some() {
            let output = child.wait_with_output().expect("it ended");
            panic!("never on: {}{}", stdout(&output), stderr(&output));
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "never on");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn what_cannot_be_tried_is_a_usage_error() {
    let Some(apart) = apart() else { return };
    let refused = |args: &[&str], why: &str| {
        let output = apart.run(&[&["experiment"][..], args].concat());
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
    };
    refused(&["no-such-check"], "no-such-check");
    refused(&["/etc/passwd=x"], "below /proc and /sys");
    refused(&["placebo", "--pairs", "5"], "--pairs 5: from 6");
    refused(&["placebo", "--slice", "100ms"], "1000 wake-ups");
    refused(&["placebo", "--spread", "none"], "a percentage");
    refused(&["placebo", "--spread", "10"], "give --yes");
    refused(&["resume"], "no experiment over boots is under way");
    assert_eq!(files(apart.folder(), ".rtproof").len(), 0);
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn what_matters_is_found_and_can_be_applied() {
        let _alone = alone();
        // A machine whose own stalls are longer than what is planted cannot tell: another attempt.
        for again in (0..3).rev() {
            let Some(apart) = apart() else { return };
            let Some(_plant) = Plant::start(apart.file(KNOBS[0].0), "10") else {
                eprintln!("left out: needs the right to SCHED_FIFO 90");
                return;
            };
            if find_planted(&apart, again == 0) {
                return;
            }
        }
    }

    #[test]
    fn a_killed_experiment_is_reported_and_undone() {
        let _alone = alone();
        let Some(apart) = apart() else { return };
        let child = tried(&apart);
        kill("KILL", child.id());
        assert_eq!(code(&child.wait_with_output().expect("it ends")), -9);
        assert!(!apart.differ().is_empty(), "killed while a knob was on");
        let again = apart.run(&words(&[]));
        expect_code(&again, FAILED);
        let message = stderr(&again);
        assert!(
            message.contains("was killed") && message.contains("tune undo --journal"),
            "{message}"
        );
        expect_code(&apart.run(&["tune", "undo"]), ACCEPTED);
        assert_eq!(apart.differ(), Vec::<String>::new());
    }

    #[test]
    fn ended_by_a_signal_nothing_stays() {
        let _alone = alone();
        for signal in ["TERM", "INT"] {
            let Some(apart) = apart() else { return };
            let child = tried(&apart);
            let asked = Instant::now();
            kill(signal, child.id());
            let output = child.wait_with_output().expect("it ends");
            assert!(
                asked.elapsed() < Duration::from_secs(10),
                "SIG{signal}: {:?}",
                asked.elapsed()
            );
            assert_eq!(apart.differ(), Vec::<String>::new(), "SIG{signal}");
            expect_code(&output, NOT_PROVEN);
            assert!(stdout(&output).contains(&format!("cut short: SIG{signal}")), "{output:?}");
            assert!(load_workers().is_empty());
        }
    }

    #[test]
    fn options_are_knobs_and_nothing_is_one_too() {
        let _alone = alone();
        let Some(apart) = apart() else { return };
        let args =
            ["experiment", "placebo", "priority=70", "policy=rr", "--one-by-one", "--pairs", "8"];
        let quick = ["--slice", "500ms", "--load", "idle", "--yes", "--spread", "10"];
        let output = apart.run(&[&args[..], &quick].concat());
        assert!([ACCEPTED, NOT_PROVEN].contains(&code(&output)), "{output:?}");
        let text = stdout(&output);
        for part in ["taken to move, not measured", "placebo", "--priority 70", "--policy rr"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let opened = rtproof_record::read(&only(apart.folder(), ".rtproof")).expect("a record");
        let effects = opened.run.effects.expect("effects");
        assert_eq!(effects.slices.len(), 3 * 2 * 8, "{:?}", opened.run.notes);
        assert!(effects.knobs.iter().all(|knob| knob.decision != Decision::NotTried), "{text}");
        assert!(files(apart.folder(), "-pilot.rtproof").is_empty());
    }
}
