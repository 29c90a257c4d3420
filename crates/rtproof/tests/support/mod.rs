//! Running the real binary: in a folder of its own, with its output and exit code.

pub(crate) mod apart;
pub(crate) mod killed;
pub(crate) mod made_up;
pub(crate) mod odd;
pub(crate) mod plant;
pub(crate) mod pty;
pub(crate) mod shown;
pub(crate) mod small;
pub(crate) mod small_linux;
pub(crate) mod tree;

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// Exit codes, as documented.
pub(crate) const ACCEPTED: i32 = 0;
pub(crate) const FAILED: i32 = 1;
pub(crate) const REFUSED: i32 = 2;
pub(crate) const NOT_PROVEN: i32 = 3;
pub(crate) const USAGE: i32 = 64;

/// Real-time runs of two tests at once would measure each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits for the other tests that measure live, which plain `cargo test` starts at once.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    // A test that failed while it held the lock has nothing to protect.
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Whether tests that try many moments try all of them, not a sample.
pub(crate) fn is_full() -> bool {
    std::env::var_os("FULL").is_some_and(|value| value == "1")
}

/// The binary under test.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_rtproof")
}

/// A folder to work in.
pub(crate) fn folder() -> TempDir {
    tempfile::Builder::new().prefix("rtproof-test-").tempdir().expect("a temporary folder")
}

/// A command in a folder, without terminal and colours.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder).args(args).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs to the end.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().expect("the binary runs")
}

/// Starts in the background.
pub(crate) fn start(folder: &Path, args: &[&str]) -> Child {
    let mut command = command(folder, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

/// stdout as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// stderr as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Exit code, or minus the signal.
pub(crate) fn code(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    output.status.code().unwrap_or_else(|| -output.status.signal().unwrap_or(0))
}

/// Asserts an exit code and shows everything when it is another one.
#[track_caller]
pub(crate) fn expect_code(output: &Output, expected: i32) {
    assert_eq!(
        code(output),
        expected,
        "\n--- stdout\n{}\n--- stderr\n{}",
        stdout(output),
        stderr(output)
    );
}

/// The only file with this ending in a folder.
#[track_caller]
pub(crate) fn only(folder: &Path, ending: &str) -> PathBuf {
    let mut found = files(folder, ending);
    assert_eq!(found.len(), 1, "files *{ending} in {}: {found:?}", folder.display());
    found.remove(0)
}

/// Files with an ending in a folder.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    found
}

/// Waits until a condition holds; fails after some seconds.
#[track_caller]
pub(crate) fn wait_for(what: &str, seconds: u64, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(seconds), "waited {seconds} s for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal by name to a process.
pub(crate) fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -s {signal} {pid}");
}

/// Processes whose command line has a word, as ids.
pub(crate) fn processes(word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != std::process::id() && String::from_utf8_lossy(&line).contains(word)
    };
    pids.filter(has).collect()
}

/// The JSON report of a record, and the exit code of `report`.
#[track_caller]
pub(crate) fn report(record: &Path) -> (serde_json::Value, i32) {
    let folder = record.parent().expect("a folder");
    let output = run(folder, &["report", record.to_str().expect("UTF-8"), "--json"]);
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    (report, code(&output))
}

/// Asserts that every thread's account adds up.
#[track_caller]
pub(crate) fn assert_accounted(report: &serde_json::Value) {
    for cpu in report["cpus"].as_array().expect("CPUs") {
        let number = |key: &str| cpu["measured"][key].as_u64().expect("a count");
        assert_eq!(number("scheduled"), number("sampled") + number("missed"), "{cpu}");
        assert!(number("scheduled") > 0);
    }
}

/// Load workers of the tested program that run now.
pub(crate) fn load_workers() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let own = Path::new(env!("CARGO_BIN_EXE_rtproof")).canonicalize().expect("the program");
    pids.filter(|pid| {
        // Another rtproof may run beside the tests.
        if std::fs::read_link(format!("/proc/{pid}/exe")).ok().as_ref() != Some(&own) {
            return false;
        }
        let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&cmdline).split('\0').any(|arg| arg == "load-worker")
    })
    .collect()
}
