//! `rtproof explain`: records, traces of other tools, running applications, bad input.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests read their own files, and say what they leave out"
)]

mod support;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use support::{alone, code, folder, stderr, stdout};

/// Captures of other tools, beside the project; says so where they are not.
fn capture(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/captures");
    let captures = std::env::var_os("RTPROOF_CAPTURES").map_or(beside.into(), PathBuf::from);
    let path = captures.join(name);
    if !path.exists() {
        eprintln!("skipped: no {}", path.display());
        return None;
    }
    Some(path)
}

/// Runs it where there is no record.
fn run(arguments: &[&str]) -> std::process::Output {
    support::run(Path::new("/"), arguments)
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn explain(path: &Path, more: &[&str]) -> Value {
    let path = path.to_string_lossy();
    json(&[&["explain", &path, "--json"], more].concat())
}

fn assert_sums(answer: &Value) {
    for spike in answer["spikes"]["worst"].as_array().expect("spikes") {
        let explanation = &spike["explanation"];
        let wake = &explanation["wake"];
        let late = wake["ran_ns"].as_u64().expect("ran") - wake["due_ns"].as_u64().expect("due");
        let shares = explanation["shares"].as_array().expect("shares");
        let sum: u64 = shares.iter().map(|share| share["ns"].as_u64().expect("ns")).sum();
        assert_eq!(sum, late);
    }
}

#[test]
fn what_wakeup_rt_kept() {
    let name = "kernel-list-traces/wakeup_rt-th1520-folio_batch_move_lru-1689us.txt";
    let Some(path) = capture(name) else { return };
    let answer = explain(&path, &[]);
    assert_sums(&answer);
    let worst = &answer["spikes"]["worst"][0]["explanation"];
    let late_ns =
        worst["wake"]["ran_ns"].as_u64().unwrap() - worst["wake"]["due_ns"].as_u64().unwrap();
    assert!((1_650_000..1_700_000).contains(&late_ns), "{late_ns}");
    assert!(worst["task"].as_str().unwrap().starts_with("cyclictest"), "{}", worst["task"]);
    let top = &worst["shares"][0];
    assert_eq!(top["cause"], "preempt-off");
    assert!(top["culprit"].as_str().unwrap().starts_with("stress-n"), "{top}");
    let text = stdout(&run(&["explain", &path.to_string_lossy()]));
    assert!(text.contains("cyclictest") && text.contains("the latency, exactly"), "{text}");
}

#[test]
fn a_trace_dat_of_somebody_else() {
    let Some(path) = capture("trace-dat/trappy-raw_trace.dat") else { return };
    // Of its scheduler events it has sched_switch alone: nothing says who was woken when.
    let none = run(&["explain", &path.to_string_lossy(), "--task", "ksoftirqd/0"]);
    assert_eq!(code(&none), 1);
    assert!(stderr(&none).contains("no wake-up was recorded"), "{}", stderr(&none));
}

#[test]
fn what_is_no_trace() {
    let dir = folder();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_string_lossy().into_owned()
    };
    for (path, says) in [
        (file("empty", b""), "no text"),
        (file("binary", b"\x7fELF\0\0\0\0"), "no text"),
        (file("prose", b"Dear Sir,\nit was late.\n"), "none of 2 lines"),
        (file("torn.dat", b"\x17\x08\x44tracing6\0"), "torn.dat"),
        (dir.path().to_string_lossy().into_owned(), "no regular file"),
        (dir.path().join("none").to_string_lossy().into_owned(), "cannot be read"),
    ] {
        let output = run(&["explain", &path]);
        assert_eq!(code(&output), 1, "{path}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{path}: {}", stderr(&output));
    }
    let both = run(&["explain", "--pid", "1", "--comm", "x"]);
    assert_eq!(code(&both), 64);
    let nobody = run(&["explain", "--pid", "4194303", "--for", "1s"]);
    assert_eq!(code(&nobody), 64, "{}", stderr(&nobody));
}

/// An application that ends with the test, also when that fails.
struct Sleeper(std::process::Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_application() {
    let instances = Path::new("/sys/kernel/tracing/instances");
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !root || !instances.is_dir() {
        eprintln!("skipped: needs root and tracefs at /sys/kernel/tracing");
        return;
    }
    let _alone = alone();
    // An ordinary thread that sleeps and wakes, and knows nothing of it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do sleep 0.01; done"]);
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    let sleeper = Sleeper(shell.spawn().expect("a shell"));
    let pid = sleeper.0.id().to_string();
    let answer = json(&["explain", "--pid", &pid, "--for", "2s", "--over", "1us", "--json"]);
    let text = run(&["explain", "--comm", "sleep", "--for", "1s", "--over", "1us"]);
    drop(sleeper);
    assert_sums(&answer);
    let seen = answer["spikes"]["seen"].as_u64().expect("a count");
    assert!(seen > 10, "{}", answer["about"]);
    // A shell is woken by its child's end; that is no timer.
    let how = &answer["spikes"]["worst"][0]["explanation"]["wake"]["how"];
    assert_eq!(how, "woken");
    assert_eq!(code(&text), 0, "{}", stderr(&text));
    assert!(stdout(&text).contains("name sleep"), "{}", stdout(&text));
}

#[test]
fn a_record_and_what_others_open() {
    let instances = Path::new("/sys/kernel/tracing/instances");
    if !instances.is_dir() {
        eprintln!("skipped: no tracefs at /sys/kernel/tracing");
        return;
    }
    let dir = folder();
    let _alone = alone();
    let output = dir.path().join("run");
    let name = output.to_string_lossy();
    let made =
        run(&["prove", "--for", "2s", "--load", "idle", "--spike", "1us", "-o", &name, "--json"]);
    assert!([0, 2, 3].contains(&code(&made)), "{}", stderr(&made));
    let report: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    if report["spikes"]["explained"] == 0 {
        eprintln!("skipped: {}", report["spikes"]["recorder"]["off"]);
        return;
    }
    let record = format!("{name}.rtproof");
    let (pftrace, dat) = (dir.path().join("s.pftrace"), dir.path().join("s.dat"));
    let answer = explain(Path::new(&record), &[]);
    assert_sums(&answer);
    assert_eq!(answer["spikes"], report["spikes"], "the record says what the run said");
    // One that was woken and switched to: both are in its window.
    let worst = answer["spikes"]["worst"].as_array().expect("spikes").iter();
    let whole = |spike: &&Value| {
        let told = &spike["explanation"];
        told["irq_ns"].is_u64() && told["woken_ns"].is_u64() && told["switched_ns"].is_u64()
    };
    let spike = worst.clone().find(whole).expect("an ordinary spike");
    let number = spike["number"].to_string();
    let _ = explain(
        Path::new(&record),
        &[
            "--spike",
            &number,
            "--perfetto",
            &pftrace.to_string_lossy(),
            "--trace-dat",
            &dat.to_string_lossy(),
        ],
    );
    assert!(std::fs::metadata(&pftrace).expect("a file").len() > 500);
    // What was written is a trace.dat that we read ourselves.
    let tid = spike["explanation"]["wake"]["tid"].to_string();
    let again = explain(&dat, &["--tid", &tid, "--over", "1us"]);
    assert_sums(&again);
    assert!(again["spikes"]["seen"].as_u64() > Some(0), "{again}");
    let missing = run(&["explain", &record, "--spike", "9999"]);
    assert_eq!(code(&missing), 64, "{}", stderr(&missing));
    let over = run(&["explain", &record, "--perfetto", &record]);
    assert_eq!(code(&over), 64, "the record is never written over");
}
