//! `rtproof tune apply --prove` as a command: run to the end, killed half-way, and ended by a
//! signal.
//!
//! The binary is the real one on the running system, in a mount namespace of its own: the files of
//! its knobs, and the folder of its journals, are files of the test there. No value of this machine
//! is written.

use std::{
    fs,
    process::Child,
    time::{Duration, Instant},
};

use crate::support::{
    ACCEPTED, NOT_PROVEN, USAGE, alone, apart::Apart, code, expect_code, kill, load_workers, only,
    stderr, stdout, wait_for,
};
use rtproof_record::effects::{Decision, Slice, SlicePart};

/// Knobs: their file, and what it holds before, as no program would leave it.
const KNOBS: [(&str, &str); 2] =
    [("/proc/sys/vm/stat_interval", "1 \t\n"), ("/proc/sys/kernel/soft_watchdog", "1\n\n")];
const CHECKS: &str = "stat-interval,soft-watchdog";

fn apply(time: &str) -> Vec<&str> {
    vec!["tune", "apply", CHECKS, "--prove", time, "--yes"]
}

fn apart() -> Option<Apart> {
    Apart::here(&KNOBS)
}

/// A trial under way: a knob is on.
fn tried(apart: &Apart) -> Child {
    let mut child = apart.start(&apply("40s"));
    let begun = Instant::now();
    while apart.differ().is_empty() {
        if child.try_wait().expect("a child").is_some() {
            let output = child.wait_with_output();
            let record = only(apart.folder(), ".rtproof");
            let opened = rtproof_record::read(&record).expect("a record");
            let (meta, notes) = (&opened.run.meta.ended, &opened.run.notes);
            let ends: Vec<_> = opened.run.threads.iter().map(|thread| &thread.end).collect();
            panic!("never on: {output:?} {meta:?} {notes:?} {ends:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(90), "never on");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn tried_from_the_command_line() {
    let _alone = alone();
    let Some(apart) = apart() else { return };
    let output = apart.run(&apply("37s"));
    assert!([ACCEPTED, NOT_PROVEN].contains(&code(&output)), "{output:?}");
    let text = stdout(&output);
    for part in ["pairs of slices of", "Effects", "stat-interval", "soft-watchdog"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let opened = rtproof_record::read(&only(apart.folder(), ".rtproof")).expect("a record");
    let effects = opened.run.effects.expect("effects");
    let kept = effects.knobs.iter().filter(|knob| knob.kept).count();
    let helps = effects.knobs.iter().filter(|knob| knob.decision == Decision::Helps).count();
    assert_eq!((effects.knobs.len(), kept), (2, helps));
    let tried = |slice: &Slice| slice.part == SlicePart::Pair && !slice.on.is_empty();
    assert!(effects.slices.iter().any(tried), "{text}{:?}", opened.run.meta.ended);
    // What the files of the test are is nothing to a kernel: but for chance nothing is kept, and
    // what is goes with undo.
    expect_code(&apart.run(&["tune", "undo", "--all"]), ACCEPTED);
    assert_eq!(apart.differ(), Vec::<String>::new());
    assert!(load_workers().is_empty(), "loads are left");
}

#[test]
fn killed_half_way_undo_restores_every_byte() {
    let _alone = alone();
    let Some(apart) = apart() else { return };
    let child = tried(&apart);
    kill("KILL", child.id());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), -9);
    assert!(!apart.differ().is_empty(), "killed while a knob was on");
    let status = apart.run(&["tune", "status"]);
    assert!(stdout(&status).contains("tune apply --prove"), "{}", stdout(&status));
    expect_code(&apart.run(&["tune", "undo"]), ACCEPTED);
    assert_eq!(apart.differ(), Vec::<String>::new());
    wait_for("the loads to end", 10, || load_workers().is_empty());
}

#[test]
fn ended_by_a_signal_it_is_undone_by_itself() {
    let _alone = alone();
    for signal in ["TERM", "INT"] {
        let Some(apart) = apart() else { return };
        let child = tried(&apart);
        let asked = Instant::now();
        kill(signal, child.id());
        let output = child.wait_with_output().expect("it ends");
        assert!(asked.elapsed() < Duration::from_secs(10), "SIG{signal}: {:?}", asked.elapsed());
        assert_eq!(apart.differ(), Vec::<String>::new(), "SIG{signal}");
        expect_code(&output, NOT_PROVEN);
        assert!(stdout(&output).contains("cut short"), "{}{}", stdout(&output), stderr(&output));
        let journals = fs::read_dir(apart.folder().join("var/rtproof/tune")).expect("a folder");
        let names = journals.map(|entry| entry.expect("an entry").file_name());
        let left: Vec<_> =
            names.filter(|name| name.to_string_lossy().ends_with(".journal")).collect();
        assert!(left.is_empty(), "SIG{signal} left {left:?}");
        assert!(load_workers().is_empty(), "loads outlive SIG{signal}");
    }
}

#[test]
fn too_little_time_changes_nothing() {
    let _alone = alone();
    let Some(apart) = apart() else { return };
    let output = apart.run(&apply("3s"));
    expect_code(&output, USAGE);
    assert!(stderr(&output).contains("too short"), "{}", stderr(&output));
    assert_eq!(apart.differ(), Vec::<String>::new());
}
