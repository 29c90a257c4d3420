//! `rtproof new`: every project builds without a warning, runs in real time, is measured by its
//! marks, keeps the rules, ends on request, and says which right is missing.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::support::{
    ACCEPTED, FAILED, USAGE, alone, binary, expect_code, folder, run, stderr, stdout,
};
use serde_json::Value;

/// Warnings as errors, for make.
const STRICT: [&str; 2] = ["CFLAGS=-O2 -g -Werror", "CXXFLAGS=-O2 -g -Werror"];

/// A project, made and built; `None`: its compiler is not there.
fn built(folder: &Path, language: &str, more: &[&str]) -> Option<PathBuf> {
    let args = [&["new", "arm", "--lang", language], more].concat();
    let output = run(folder, &args);
    expect_code(&output, ACCEPTED);
    let project = folder.join("arm");
    if language == "rust" {
        // As the program is run by Cargo here, its registry has libc.
        cargo(&project, &["clippy", "--all-targets", "--", "-D", "warnings"]);
        cargo(&project, &["build"]);
        return Some(project.join("target/debug/arm"));
    }
    let compiler = if language == "c" { "cc" } else { "c++" };
    if Command::new(compiler).arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("left out: {compiler} is not there");
        return None;
    }
    succeed(Command::new("make").args(STRICT).current_dir(&project));
    // And with what other projects switch on, as C++ takes the header of C.
    let source = if language == "c" { "src/main.c" } else { "src/main.cpp" };
    let standard: &[&str] =
        if language == "c" { &["-std=c11", "-D_GNU_SOURCE"] } else { &["-std=c++17"] };
    let strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"];
    let rest = ["-O0", "-pthread", "-fsyntax-only", source];
    succeed(Command::new(compiler).args(standard).args(strict).args(rest).current_dir(&project));
    Some(project.join("arm"))
}

fn cargo(project: &Path, args: &[&str]) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let (first, rest) = args.split_first().expect("a command");
    command.arg(first).arg("--offline").args(rest).current_dir(project);
    // The settings of the run that this test is part of are not the project's.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    succeed(&mut command);
}

#[track_caller]
fn succeed(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let text = || format!("{command:?}\n{}{}", stdout(&output), stderr(&output));
    assert!(output.status.success(), "{}", text());
    output
}

/// Whether the tests run as root, as real-time classes need.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("left out: real-time classes and locked memory need root");
    }
    is_root
}

/// The project's own test.
fn test(program: &Path, rtproof: &str) -> Command {
    let project = program.ancestors().find(|path| path.join("test.sh").is_file()).expect("test.sh");
    let mut test = Command::new("sh");
    test.arg("test.sh").arg(program).env("RTPROOF", rtproof).current_dir(project);
    test
}

/// It passes: real-time, marks measured, no page fault in the loop, all rules kept, clean end.
#[track_caller]
fn runs(program: &Path, class: &str) {
    let text = stdout(&succeed(&mut test(program, binary())));
    for part in ["duration", "missed", "total: ", "test: passed\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let keeps = text.contains("Rules  kept: no breach of 13 rules");
    let may_move = class == DEADLINE && text.contains("moves between CPUs");
    assert!(keeps || may_move, "{text}");
    assert!(!text.contains("left out"), "{text}");
    // One application is one row, whatever CPUs there are.
    let is_row = |line: &&str| line.trim().starts_with("CPU ") && line.contains(" duration ");
    assert_eq!(text.lines().filter(is_row).count(), 1, "{text}");
    let total = text.lines().find_map(|line| line.strip_prefix("total: ")).expect("a total");
    let cycles: u64 = total.split(' ').next().and_then(|n| n.parse().ok()).expect("cycles");
    assert!(cycles > 100, "{total}");
    // `marks:PID, CPU 0` of the plan.
    let pid = text.split("marks:").nth(1).and_then(|rest| rest.split(',').next()).expect("a pid");
    let ring = format!("/dev/shm/rtproof-mark-{pid}");
    assert!(!Path::new(&ring).exists(), "{ring} is left behind");
}

/// Without rights it says each that is missing, and does not run.
#[track_caller]
fn says_what_is_missing(program: &Path, class: &str) {
    let mut command = Command::new("setpriv");
    // The folder of the test is for root alone: the program comes as an open file.
    let file = std::fs::File::open(program).expect("the program");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "prlimit"]);
    command.args(["--memlock=65536", "--rtprio=0", "/proc/self/fd/0"]).stdin(file);
    let output = command.output().expect("setpriv");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}{}", stdout(&output));
    for part in [class, "Operation not permitted", "RLIMIT_RTPRIO", "cannot lock memory", "64 KiB"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(stdout(&output), "", "it did not start");
}

/// The limits of the unit are enough, without root. SIGINT ends it as SIGTERM does.
#[track_caller]
fn runs_by_limits(program: &Path) {
    let mut command = Command::new("prlimit");
    let file = std::fs::File::open(program).expect("the program");
    command.args(["--memlock=unlimited", "--rtprio=80", "timeout", "-s", "INT", "1", "setpriv"]);
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "/proc/self/fd/0"]);
    let output = command.stdin(file).output().expect("prlimit");
    let text = format!("{}{}", stdout(&output), stderr(&output));
    if text.contains("prlimit: failed to set") {
        eprintln!("left out: limits cannot be raised here (CAP_SYS_RESOURCE): {text}");
        return;
    }
    assert!(text.contains("ready: process") && text.contains("total: "), "{text}");
}

#[track_caller]
fn check(language: &str, more: &[&str], class: &str) {
    let _alone = alone();
    let folder = folder();
    let Some(program) = built(folder.path(), language, more) else { return };
    if is_root() {
        runs(&program, class);
        says_what_is_missing(&program, class);
        if class == FIFO {
            runs_by_limits(&program);
        }
    }
}

const FIFO: &str = "cannot take SCHED_FIFO 80";
const DEADLINE: &str = "cannot take SCHED_DEADLINE";

#[test]
fn the_answer_names_what_to_do_next() {
    let folder = folder();
    let output = run(folder.path(), &["new", "arm", "--lang", "c"]);
    expect_code(&output, ACCEPTED);
    let text = stdout(&output);
    for part in ["arm: 10 files", "  cd arm\n", "  make\n", "  sudo ./arm\n", "  sudo make test\n"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    std::fs::create_dir(folder.path().join("a b")).expect("a folder");
    let output = run(folder.path(), &["new", "arm", "--lang", "cpp", "--dir", "a b"]);
    assert!(stdout(&output).contains("cd 'a b/arm'"), "{}", stdout(&output));
    let output = run(folder.path(), &["new", "leg", "--lang", "rust", "--json"]);
    expect_code(&output, ACCEPTED);
    let made: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&made["schema"], &made["folder"]), (&"rtproof/new/1".into(), &"./leg".into()));
    for file in made["files"].as_array().expect("files") {
        let path = folder.path().join("leg").join(file.as_str().expect("a path"));
        assert!(path.is_file(), "{}", path.display());
    }
}

#[test]
fn what_is_there_stays_and_bad_names_are_named() {
    let folder = folder();
    expect_code(&run(folder.path(), &["new", "arm", "--lang", "c"]), ACCEPTED);
    std::fs::write(folder.path().join("arm/src/main.c"), "mine").expect("a file");
    let again = run(folder.path(), &["new", "arm", "--lang", "rust"]);
    expect_code(&again, FAILED);
    assert!(stderr(&again).contains("arm: is there already"), "{}", stderr(&again));
    assert_eq!(
        std::fs::read_to_string(folder.path().join("arm/src/main.c")).expect("a file"),
        "mine"
    );
    assert!(!folder.path().join("arm/Cargo.toml").exists());
    for name in ["../arm2", "/tmp/x", "Arm", "fn", "a b", "", "a;b", "arm\u{202e}"] {
        let output = run(folder.path(), &["new", "--lang", "c", "--", name]);
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains("e.g. "), "{name:?}: {}", stderr(&output));
    }
    for args in [&["new", "arm3"][..], &["new", "arm3", "--lang", "ada"], &["new", "--lang", "c"]] {
        expect_code(&run(folder.path(), args), USAGE);
    }
    let output = run(folder.path(), &["new", "arm3", "--lang", "c", "--dir", "/no/such"]);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("/no/such: the project cannot be made there"));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn systemd_takes_the_units() {
    if Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("left out: systemd-analyze is not there");
        return;
    }
    for more in [&[][..], &["--deadline"]] {
        let folder = folder();
        let args = [&["new", "arm", "--lang", "c"], more].concat();
        expect_code(&run(folder.path(), &args), ACCEPTED);
        let unit = folder.path().join("arm/arm.service");
        let text = std::fs::read_to_string(&unit).expect("the unit");
        assert_eq!(text.contains("LimitRTPRIO=80"), more.is_empty());
        assert!(text.contains("LimitMEMLOCK=infinity"));
        // The program is not installed here.
        std::fs::write(&unit, text.replace("/usr/local/bin/arm", "/bin/true")).expect("a file");
        let output = succeed(Command::new("systemd-analyze").arg("verify").arg(&unit));
        let said = stderr(&output);
        assert!(!said.contains("arm.service"), "{said}");
    }
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn c_runs_as_fifo() {
        check("c", &[], FIFO);
    }

    #[test]
    fn c_runs_as_deadline() {
        check("c", &["--deadline"], DEADLINE);
    }

    #[test]
    fn cpp_runs_as_fifo() {
        check("cpp", &[], FIFO);
    }

    #[test]
    fn cpp_runs_as_deadline() {
        check("cpp", &["--deadline"], DEADLINE);
    }

    #[test]
    fn rust_runs_as_fifo() {
        check("rust", &[], FIFO);
    }

    #[test]
    fn rust_runs_as_deadline() {
        check("rust", &["--deadline"], DEADLINE);
    }

    #[test]
    fn a_loop_that_prints_fails_its_test_and_without_rtproof_that_is_not_seen() {
        let _alone = alone();
        let folder = folder();
        let Some(program) = built(folder.path(), "c", &[]) else { return };
        if !is_root() {
            return;
        }
        let source = folder.path().join("arm/src/main.c");
        let text = std::fs::read_to_string(&source).expect("the source");
        let law = "\t*output += ";
        let prints =
            text.replace(law, &format!("\tif (setpoint > 0) fputs(\"x\\n\", stderr);\n{law}"));
        assert_ne!(text, prints);
        std::fs::write(&source, prints).expect("the source");
        succeed(Command::new("make").current_dir(folder.path().join("arm")));
        let output = test(&program, binary()).output().expect("sh");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}{}", stdout(&output));
        assert!(said.contains("broke rules") && said.contains("at cycle (main.c:"), "{said}");
        let text = stdout(&succeed(&mut test(&program, "/no/such/rtproof")));
        assert!(
            text.contains("left out") && text.ends_with("passed, without its rules\n"),
            "{text}"
        );
    }
}
