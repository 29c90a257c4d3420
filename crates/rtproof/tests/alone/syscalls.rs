//! System calls made to fail: each one for good, as a filter of system calls does (seccomp), and
//! single ones, one or two in a run, as a full or broken disk, a signal or want of memory do. A run
//! ends then with one of its exit codes and says why it failed: no panic, no signal, nothing left,
//! and no other answer than before.
//!
//! `make test` tries a sample; `RTPROOF_FAULTS=N` tries N of each kind (docs/faults.md).

use std::{collections::BTreeMap, fs, path::Path, time::Instant};

use crate::support::{
    alone, binary, code, expect_code,
    killed::{self, can_trace},
    odd::{APPLY, Machine, UNDO},
    run, stderr, stdout, wait_for,
};

/// Errors that single calls fail with.
const ERRORS: &[&str] = &["EIO", "ENOSPC", "EPERM", "EINTR", "ENOMEM", "EROFS"];

/// Calls that the loader, the C library and Rust's standard library cannot do without, or that
/// never fail: a filter that denies them lets no program of this kind run.
const VITAL: &[&str] = &[
    "arch_prctl",
    "brk",
    "close",
    "clock_getres",
    "clock_gettime",
    "execve",
    "exit",
    "exit_group",
    "futex",
    "getegid",
    "geteuid",
    "getgid",
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "mmap",
    "mprotect",
    "munmap",
    "poll",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigreturn",
    "set_robust_list",
    "set_tid_address",
    "uname",
    "write",
];

/// A command, with what comes before it and what has to hold after it.
struct Session {
    name: &'static str,
    args: &'static [&'static str],
    prepare: fn(&Machine),
    /// With what was tried, and what was said.
    after: fn(&Machine, &str, &str),
}

fn applied(machine: &Machine) {
    expect_code(&run(machine.folder.path(), APPLY), 0);
}

fn undone(machine: &Machine, what: &str, _: &str) {
    machine.undone(what);
}

fn nothing(_: &Machine) {}

/// Nothing but the record and its page is left, and the record is read, or refused in words.
fn recorded(machine: &Machine, what: &str, said: &str) {
    let folder = machine.folder.path();
    for file in fs::read_dir(folder).expect("the folder") {
        let path = file.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if ["root", "plan.json", "strace.log"].contains(&name.as_str()) {
            continue;
        }
        assert!(name.starts_with("r."), "{what}: left {name}");
        if name == "r.rtproof" {
            let output = run(folder, &["report", "r.rtproof"]);
            assert!((0..=3).contains(&code(&output)), "{what}: {}", stderr(&output));
            assert!(!stderr(&output).contains("panicked"), "{what}: {}", stderr(&output));
        }
        fs::remove_file(&path).expect("it goes");
    }
    // Where the run could not do it, its guard does; where both are denied it, it is said.
    let instances = Path::new("/sys/kernel/tracing/instances");
    let left = || fs::read_dir(instances).into_iter().flatten().flatten().next();
    match left() {
        Some(left) if said.contains("could not be removed") => {
            fs::remove_dir(left.path()).expect("it goes now");
        }
        _ => wait_for(&format!("tracefs without an instance after {what}"), 2, || left().is_none()),
    }
}

const SESSIONS: &[Session] = &[
    Session {
        name: "prove",
        args: &["prove", "--for", "1s", "--load", "cpu", "--budget", "1h", "-o", "r"],
        prepare: nothing,
        after: recorded,
    },
    Session {
        name: "check",
        args: &["check", "--root", "root"],
        prepare: nothing,
        after: |_, _, _| {},
    },
    Session { name: "tune apply", args: APPLY, prepare: nothing, after: undone },
    Session { name: "tune undo", args: UNDO, prepare: applied, after: undone },
    Session {
        name: "tune confirm",
        args: &["tune", "confirm", "--root", "root"],
        prepare: applied,
        after: undone,
    },
    Session {
        name: "tune status",
        args: &["tune", "status", "--root", "root"],
        prepare: applied,
        after: undone,
    },
    Session {
        name: "tune persist",
        args: &["tune", "persist", "--root", "root", "--yes"],
        prepare: applied,
        after: |machine, what, said| {
            expect_code(&run(machine.folder.path(), UNDO), 0);
            undone(machine, what, said);
        },
    },
];

/// The calls of a session and how often one thread makes each, at most.
fn calls(session: &Session) -> BTreeMap<String, u64> {
    let machine = Machine::new();
    (session.prepare)(&machine);
    let end = killed::hit(binary(), machine.folder.path(), session.args, &[]);
    (session.after)(&machine, session.name, &stdout(&end.output));
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in end.log().lines() {
        let Some((pid, call)) = line.split_once(char::is_whitespace) else { continue };
        let Some((name, _)) = call.trim_start().split_once('(') else { continue };
        if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            *counts.entry((pid, name)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((_, name), count) in counts {
        let entry = most.entry(name.to_owned()).or_insert(0);
        *entry = count.max(*entry);
    }
    most
}

/// How many of a kind are tried.
fn rounds() -> usize {
    let wanted = std::env::var("RTPROOF_FAULTS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(3)
}

/// Evenly spread ones of these.
fn some<T: Clone>(all: &[T]) -> Vec<T> {
    let count = rounds().min(all.len());
    (0..count).map(|at| all[(at * 2 + 1) * all.len() / (2 * count)].clone()).collect()
}

/// One run with these faults. Returns what is wrong with it.
fn round(session: &Session, injections: &[String]) -> Option<String> {
    let machine = Machine::new();
    (session.prepare)(&machine);
    let end = killed::hit(binary(), machine.folder.path(), session.args, injections);
    let (code, text) = (code(&end.output), stderr(&end.output));
    let what = format!("{} with {injections:?}", session.name);
    let is_loader = code == 127 && text.contains("error while loading");
    let said = format!("{text}{}", stdout(&end.output));
    // Where the write of the words failed, the exit code has to do.
    let is_mute = injections.iter().any(|fault| fault.starts_with("inject=write:"));
    let is_told = matches!(code, 0..=3 | 64) && (is_mute || !said.trim().is_empty());
    if !is_loader && (!is_told || text.contains("panicked")) {
        return Some(format!("{what}: exit {code}: {said}"));
    }
    (session.after)(&machine, &what, &said);
    None
}

fn tried(kind: &str, rounds: Vec<(&Session, Vec<String>)>) {
    let (began, count) = (Instant::now(), rounds.len());
    let wrong: Vec<String> =
        rounds.into_iter().filter_map(|(session, faults)| round(session, &faults)).collect();
    let seconds = began.elapsed().as_secs_f64();
    println!("{kind}: {count} runs, {} wrong, {seconds:.0} s", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn left_out() -> bool {
    let can = can_trace();
    assert!(can || std::env::var_os("CI").is_none(), "strace cannot trace: install it");
    if !can {
        eprintln!("left out: strace is missing or may not trace");
    }
    !can
}

#[test]
fn calls_that_are_denied() {
    if left_out() {
        return;
    }
    let _alone = alone();
    let mut rounds = Vec::new();
    for session in SESSIONS {
        let names: Vec<String> =
            calls(session).into_keys().filter(|name| !VITAL.contains(&name.as_str())).collect();
        let denied = |name| (session, vec![format!("inject={name}:error=EPERM")]);
        rounds.extend(some(&names).into_iter().map(denied));
    }
    tried("denied for good", rounds);
}

#[test]
fn calls_that_fail_once_or_twice() {
    if left_out() {
        return;
    }
    let _alone = alone();
    let mut rounds = Vec::new();
    for session in SESSIONS {
        let calls = calls(session);
        let each = calls
            .iter()
            .filter(|(name, _)| !VITAL.contains(&name.as_str()) || *name == "write")
            .flat_map(|(name, &count)| (1..=count).map(move |at| (name, at)));
        let faults: Vec<String> = each
            .enumerate()
            .map(|(number, (name, at))| {
                let error = ERRORS[number % ERRORS.len()];
                format!("inject={name}:error={error}:when={at}")
            })
            .collect();
        rounds.extend(some(&faults).into_iter().map(|fault| (session, vec![fault])));
        // A second one, anywhere.
        let pair = |(number, fault): (usize, &String)| {
            let other = &faults[number * 7919 % faults.len()];
            (session, vec![fault.clone(), other.clone()])
        };
        let pairs: Vec<_> = faults.iter().enumerate().map(pair).collect();
        rounds.extend(some(&pairs));
    }
    tried("failing once or twice", rounds);
}
