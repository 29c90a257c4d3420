//! Guests that end in every way, with a shell in the place of QEMU.

use super::*;

/// Long enough for a shell on a busy machine.
const AMPLE: Duration = Duration::from_secs(20);

/// Runs a shell script as if it were QEMU.
fn outcome(script: &str, cues: &[(String, Cue)]) -> Result<GuestOutcome> {
    outcome_within(AMPLE, AMPLE, script, cues)
}

fn outcome_within(
    speak_limit: Duration,
    limit: Duration,
    script: &str,
    cues: &[(String, Cue)],
) -> Result<GuestOutcome> {
    let dir = tempfile::tempdir()?;
    run(&spec(&shell(script), dir.path(), (speak_limit, limit), cues))
}

fn shell(script: &str) -> Emulator {
    let arguments = vec!["-c".into(), script.into()];
    Emulator { program: "/bin/sh".into(), arguments, version: (7, 2, 0) }
}

fn spec<'a>(
    emulator: &'a Emulator,
    dir: &'a Path,
    (speak_limit, limit): (Duration, Duration),
    cues: &'a [(String, Cue)],
) -> Spec<'a> {
    let arguments = Vec::new();
    Spec {
        emulator,
        arguments,
        dir,
        speak_limit,
        limit,
        cues,
        ends_at_panic: false,
        interrupted: NEVER,
    }
}

fn ending(script: &str) -> GuestEnding {
    outcome(script, &[]).unwrap().ending
}

#[test]
fn the_exit_code_of_the_script_comes_back() {
    assert_eq!(ending("echo GUEST-INIT x; echo GUEST-RC=7"), GuestEnding::Script(7));
}

#[test]
fn a_guest_that_dies_is_silent() {
    assert_eq!(ending("echo GUEST-INIT x; exit 0"), GuestEnding::Silent);
}

#[test]
fn a_guest_that_hangs_is_ended_at_its_limit() {
    let limit = Duration::from_millis(300);
    let outcome = outcome_within(AMPLE, limit, "echo GUEST-INIT x; sleep 60", &[]).unwrap();
    assert_eq!(outcome.ending, GuestEnding::TimedOut);
}

#[test]
fn a_guest_that_never_stops_to_give_marks_is_ended_at_its_limit() {
    let limit = Duration::from_millis(300);
    let script = "echo GUEST-INIT x; while :; do echo GUEST-READY; done";
    let began = Instant::now();
    let outcome = outcome_within(AMPLE, limit, script, &[]).unwrap();
    assert_eq!(outcome.ending, GuestEnding::TimedOut);
    assert!(began.elapsed() < AMPLE);
}

#[test]
fn a_silent_init_is_distinguished() {
    let limit = Duration::from_millis(300);
    let outcome = outcome_within(limit, AMPLE, "sleep 60", &[]).unwrap();
    assert_eq!(outcome.ending, GuestEnding::NeverSpoke);
    assert!(outcome.is_mute(true) && outcome.is_mute(false));
    let died = GuestOutcome { ending: ending("echo Kernel panic"), ..outcome };
    assert_eq!(died.ending, GuestEnding::DiedEarly);
    assert!(!died.is_mute(true) && died.is_mute(false));
}

#[test]
fn init_reports_what_is_broken() {
    let broken = ending("echo GUEST-INIT x; echo GUEST-BROKEN no share; sleep 0.1");
    assert_eq!(broken, GuestEnding::Broken("no share".to_owned()));
}

#[test]
fn files_over_the_console_come_after_the_end() {
    let script = "echo GUEST-INIT x; echo GUEST-RC=0; echo GUEST-FILES-BEGIN; echo YWI=; \
                  echo GUEST-FILES-END";
    let outcome = outcome(script, &[]).unwrap();
    assert_eq!((outcome.ending, outcome.files), (GuestEnding::Script(0), vec!["YWI=".to_owned()]));
}

#[test]
fn a_power_cut_ends_the_guest() {
    let cut: Cue = Arc::new(|guest| guest.power_cut());
    let cues = [("cut".to_owned(), cut)];
    let outcome = outcome("echo GUEST-INIT x; echo GUEST-CUE cut; sleep 60", &cues).unwrap();
    assert_eq!(outcome.ending, GuestEnding::Silent);
}

#[test]
fn a_user_ends_it_at_once() {
    let began = Instant::now();
    let dir = tempfile::tempdir().unwrap();
    let emulator = shell("echo GUEST-INIT x; sleep 60");
    let spec = Spec { interrupted: &|| true, ..spec(&emulator, dir.path(), (AMPLE, AMPLE), &[]) };
    assert_eq!(run(&spec).unwrap().ending, GuestEnding::Interrupted);
    assert!(began.elapsed() < AMPLE / 2);
}

#[test]
fn an_unknown_cue_is_an_error() {
    let error = outcome("echo GUEST-INIT x; echo GUEST-CUE what; sleep 60", &[]).unwrap_err();
    assert!(error.to_string().contains("what"), "{error:#}");
}

#[test]
fn no_guest_outlives_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("echo $$ >{}; echo GUEST-INIT x; exec sleep 60", pid.display());
    let limit = Duration::from_millis(300);
    let outcome = outcome_within(AMPLE, limit, &script, &[]).unwrap();
    assert_eq!(outcome.ending, GuestEnding::TimedOut);
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
