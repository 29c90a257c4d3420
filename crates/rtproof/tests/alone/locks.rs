//! `rtproof explain --pid`: the locks that a real-time thread waits for, and priority inversion on
//! those without priority inheritance; and waits that are not for locks.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::support::{alone, code, folder, run, stderr};
use serde_json::Value;

const C: &str = include_str!("locks/planted.c");
const RUST: &str = include_str!("locks/planted.rs.in");

fn may() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let has_traces = Path::new("/sys/kernel/tracing/instances").is_dir();
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(is_root && has_traces || !is_ci, "CI runs as root, with tracefs");
    if !is_root || !has_traces {
        eprintln!("left out: needs root and tracefs at /sys/kernel/tracing");
    }
    is_root && has_traces
}

fn compile(folder: &Path, name: &str, source: &str, compiler: &[&str]) {
    fs::write(folder.join(name), source).unwrap();
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-o", "planted", name]).current_dir(folder);
    assert!(command.status().expect("a compiler").success());
}

/// The answer, the locks of the JSON form, and the longest wait that the program measured.
fn explain(folder: &Path, how: &str) -> (String, Value, u64) {
    let mut command = Command::new(folder.join("planted"));
    let program = command.arg(how).stdout(Stdio::piped()).spawn().expect("a program");
    std::thread::sleep(Duration::from_millis(200));
    let pid = program.id().to_string();
    let args = ["explain", "--pid", &pid, "--for", "5s", "--over", "900ms", "--json"];
    let output = run(folder, &args);
    let program = program.wait_with_output().unwrap();
    assert!(program.status.success(), "{program:?}");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let measured = String::from_utf8_lossy(&program.stdout).trim().parse().unwrap_or(0);
    let result = json["answer"]["result"].as_str().unwrap().to_owned();
    (result, json["locks"].clone(), measured)
}

/// The wait of `high` for `low`, the longest first: there is one, and no other of that program.
fn wait(locks: &Value) -> &Value {
    let all = locks["waits"].as_array().unwrap();
    assert_eq!(all.len(), 1, "{locks}");
    let of = &all[0];
    assert_eq!((&of["waiter"]["name"], &of["holder"]["name"]), (&"high".into(), &"low".into()));
    assert_eq!((&of["waiter"]["priority"], &of["holder"]["priority"]), (&19.into(), &89.into()));
    let number = |of: &Value| of.as_u64().unwrap();
    let did = &of["meanwhile"];
    let instead = did["instead"].as_array().unwrap().iter().map(|it| number(&it["ns"]));
    let own = ["holder_ran_ns", "holder_slept_ns", "unknown_ns"].map(|name| number(&did[name]));
    let sum = instead.sum::<u64>() + own.iter().sum::<u64>();
    assert_eq!(sum, number(&of["worst_ns"]), "it sums to the wait: {of}");
    assert_eq!(locks["unknown"], Value::Array(Vec::new()), "{locks}");
    of
}

fn near(measured: u64, found: &Value) {
    let found = found.as_u64().unwrap();
    assert!(measured.abs_diff(found) <= measured / 10, "{found} ns, the program: {measured} ns");
}

/// Of the 15 rounds the first may be over before rtproof comes, on a machine that is busy.
fn is_most(count: &Value) -> bool {
    (8..=15).contains(&count.as_u64().unwrap())
}

fn middle(of: &Value) -> u64 {
    let all = of["meanwhile"]["instead"].as_array().unwrap().iter();
    let is_it = |it: &&Value| it["name"] == "middle" && it["order"] == "middle";
    all.filter(is_it).map(|it| it["ns"].as_u64().unwrap()).sum()
}

#[test]
fn tasks_that_ran_instead_of_the_holder_are_named() {
    if !may() {
        return;
    }
    let _alone = alone();
    let folder = folder();
    compile(folder.path(), "planted.c", C, &["cc", "-O0", "-g", "-pthread"]);

    let (result, locks, measured) = explain(folder.path(), "mutex");
    let of = wait(&locks);
    near(measured, &of["worst_ns"]);
    // It works for 10 ms; the machine below may take longer for that, and the wait with it.
    let ran = middle(of);
    assert!(ran >= 9_000_000 && ran <= measured, "{of}");
    assert_eq!((&of["kind"], &of["is_certain"]), (&"pthread".into(), &true.into()), "{of}");
    assert!(is_most(&of["count"]), "{of}");
    assert!(result.starts_with("priority inversion of "), "{result}");
    let line = of["at"]["line"].as_u64().unwrap() as usize;
    assert!(C.lines().nth(line - 1).unwrap().contains("/* lock */"), "{of}");

    let (result, locks, measured) = explain(folder.path(), "long");
    let of = wait(&locks);
    near(measured, &of["worst_ns"]);
    near(of["worst_ns"].as_u64().unwrap(), &of["meanwhile"]["holder_ran_ns"]);
    assert!(!result.contains("inversion"), "{result}");

    for (how, other) in [("pi", "inheriting"), ("cond", "events"), ("sem", "events")] {
        let (result, locks, _) = explain(folder.path(), how);
        assert_eq!(locks["waits"], Value::Array(Vec::new()), "{how}: {locks}");
        assert!(!result.contains("inversion"), "{how}: {result}");
        assert!(is_most(&locks["others"][other]), "{how}: {locks}");
        assert_eq!(locks["others"]["not_sure"], 0, "{how}: {locks}");
    }

    // Two threads that hand work to each other look like a lock: nothing of it is certain.
    let (result, locks, _) = explain(folder.path(), "hand");
    let of = wait(&locks);
    assert_eq!((&of["kind"], &of["is_certain"]), (&"used".into(), &false.into()), "{of}");
    assert!(!result.starts_with("priority inversion"), "{result}");
}

#[test]
fn a_lock_of_rust_is_known_by_the_stack() {
    if !may() {
        return;
    }
    let _alone = alone();
    let folder = folder();
    compile(folder.path(), "planted.rs", RUST, &["rustc", "-g", "--edition", "2021"]);
    let (_, locks, _) = explain(folder.path(), "mutex");
    let of = wait(&locks);
    assert_eq!((&of["kind"], &of["is_certain"]), (&"rust".into(), &true.into()), "{of}");
    assert!(middle(of) >= 9_000_000, "{of}");
    let line = of["at"]["line"].as_u64().unwrap() as usize;
    assert!(RUST.lines().nth(line - 1).unwrap().contains("// lock"), "{of}");
}
