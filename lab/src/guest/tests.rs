//! Guests that end in every way, with a shell in the place of QEMU.

use super::*;

/// Long enough for a shell on a busy machine.
const AMPLE: Duration = Duration::from_secs(20);

/// Runs a shell script as if it were QEMU.
fn outcome(script: &str, cues: &[(String, Cue)]) -> Result<Outcome> {
    outcome_within(AMPLE, AMPLE, script, cues, None)
}

fn outcome_within(
    speak_limit: Duration,
    limit: Duration,
    script: &str,
    cues: &[(String, Cue)],
    resume: Option<&Path>,
) -> Result<Outcome> {
    let dir = tempfile::tempdir()?;
    let emulator = Emulator {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        version: (7, 2, 0),
    };
    let spec = Spec {
        emulator: &emulator,
        arguments: Vec::new(),
        dir: dir.path(),
        speak_limit,
        limit,
        resume,
        cues,
    };
    run(&spec)
}

fn ending(script: &str) -> Ending {
    outcome(script, &[]).unwrap().ending
}

#[test]
fn the_exit_code_of_the_script_comes_back() {
    assert_eq!(ending("echo LAB-INIT x; echo LAB-RC=7"), Ending::Script(7));
}

#[test]
fn a_guest_that_dies_is_silent() {
    assert_eq!(ending("echo LAB-INIT x; exit 0"), Ending::Silent);
}

#[test]
fn a_guest_that_hangs_is_ended_at_its_limit() {
    let limit = Duration::from_millis(300);
    let outcome = outcome_within(AMPLE, limit, "echo LAB-INIT x; sleep 60", &[], None).unwrap();
    assert_eq!(outcome.ending, Ending::TimedOut);
}

#[test]
fn init_that_never_speaks_is_told_apart() {
    let limit = Duration::from_millis(300);
    let outcome = outcome_within(limit, AMPLE, "sleep 60", &[], None).unwrap();
    assert_eq!(outcome.ending, Ending::NeverSpoke);
    assert!(outcome.is_mute(true) && outcome.is_mute(false));
    let died = Outcome { ending: ending("echo Kernel panic"), ..outcome };
    assert_eq!(died.ending, Ending::DiedEarly);
    assert!(!died.is_mute(true) && died.is_mute(false));
}

#[test]
fn init_says_what_is_broken() {
    let broken = ending("echo LAB-INIT x; echo LAB-BROKEN no share; sleep 0.1");
    assert_eq!(broken, Ending::Broken("no share".to_owned()));
}

#[test]
fn files_over_the_console_come_after_the_end() {
    let script = "echo LAB-INIT x; echo LAB-RC=0; echo LAB-FILES-BEGIN; echo YWI=; \
                  echo LAB-FILES-END";
    let outcome = outcome(script, &[]).unwrap();
    assert_eq!((outcome.ending, outcome.files), (Ending::Script(0), vec!["YWI=".to_owned()]));
}

#[test]
fn a_power_cut_ends_the_guest() {
    let cut: Cue = Arc::new(|guest| guest.power_cut());
    let cues = [("cut".to_owned(), cut)];
    let outcome = outcome("echo LAB-INIT x; echo LAB-CUE cut; sleep 60", &cues).unwrap();
    assert_eq!(outcome.ending, Ending::Silent);
}

#[test]
fn a_state_that_cannot_be_resumed_is_told_at_once() {
    let began = Instant::now();
    let state = Some(Path::new("/nowhere/state"));
    let script = "echo no such state >&2; exit 1";
    let error = outcome_within(AMPLE, AMPLE, script, &[], state).unwrap_err();
    assert!(error.is::<NotReady>(), "{error:#}");
    assert!(format!("{error:#}").contains("no such state"), "{error:#}");
    assert!(began.elapsed() < STATE_LIMIT / 2, "it waits for a monitor that never comes");
}

#[test]
fn an_unknown_cue_is_an_error() {
    let error = outcome("echo LAB-INIT x; echo LAB-CUE what; sleep 60", &[]).unwrap_err();
    assert!(error.to_string().contains("what"), "{error:#}");
}

#[test]
fn no_guest_outlives_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("echo $$ >{}; echo LAB-INIT x; exec sleep 60", pid.display());
    let limit = Duration::from_millis(300);
    let outcome = outcome_within(AMPLE, limit, &script, &[], None).unwrap();
    assert_eq!(outcome.ending, Ending::TimedOut);
    let pid = fs::read_to_string(pid).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} still runs");
}

#[test]
fn the_command_can_be_run_by_hand() {
    assert_eq!(shell_quoted("console=ttyS0"), "console=ttyS0");
    assert_eq!(shell_quoted("a b"), "'a b'");
    assert_eq!(shell_quoted("it's"), r"'it'\''s'");
    assert_eq!(shell_quoted(""), "''");
}
