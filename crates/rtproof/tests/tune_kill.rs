//! SIGKILL at the steps of `tune apply` and of `tune undo`: undo then gives back every byte,
//! permission, owner, time and link of a machine that had odd values before.
//!
//! The steps are the first and the last call of each system call with each file; `FULL=1` takes
//! every one. The engine itself is always killed at every write (host/src/tune/faults.rs).

use std::{sync::Arc, thread, time::Instant};

use crate::support::{
    binary, code, expect_code,
    killed::{Call, calls, can_trace, failing_at, killed_at, tried},
    odd::{self, APPLY, Machine, UNDO},
    run, stderr,
};

fn left_out() -> bool {
    let can = can_trace();
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(can || !is_ci, "strace cannot trace: install it");
    if !can {
        eprintln!("left out: strace is missing or may not trace");
    }
    !can
}

/// What is done to a run.
#[derive(Clone, Copy)]
enum Fault {
    /// Killed before the call.
    Kill,
    /// The call fails.
    Error(&'static str),
}

/// Does it to a run at each of these calls in turn, and takes everything back after each; two
/// machines share the work. `prepare` comes before each round. Returns the number of rounds, and
/// of calls.
fn every_step(
    args: &'static [&'static str],
    fault: Fault,
    prepare: fn(&Machine),
) -> (usize, usize) {
    let machine = Machine::new();
    prepare(&machine);
    let all = calls(binary(), machine.folder.path(), args);
    let count = all.len();
    let calls = Arc::new(tried(all));
    let work = |first: usize| {
        let calls = Arc::clone(&calls);
        move || {
            let machine = Machine::new();
            for (number, call) in calls.iter().enumerate().skip(first).step_by(2) {
                prepare(&machine);
                let what = format!("{} hit at call {number}, {call:?}", args[1]);
                round(&machine, args, fault, call, &what);
                machine.undone(&what);
            }
        }
    };
    let halves = [0, 1].map(|first| thread::spawn(work(first)));
    halves.into_iter().for_each(|half| half.join().expect("every round is well"));
    (calls.len(), count)
}

/// One run, hit at one call.
fn round(machine: &Machine, args: &[&str], fault: Fault, call: &Call, what: &str) {
    let folder = machine.folder.path();
    let end = match fault {
        Fault::Kill => killed_at(binary(), folder, args, call),
        Fault::Error(error) => failing_at(binary(), folder, args, error, call),
    };
    assert!(end.was_reached, "{what}: not reached");
    if matches!(fault, Fault::Error(_)) {
        // It says so, or could do without: no panic, no signal.
        let is_told = matches!(code(&end.output), 0 | 1);
        assert!(is_told, "{what}: {}: {}", code(&end.output), stderr(&end.output));
    }
}

/// Runs it and prints what came of it.
fn printed(what: &str, args: &'static [&'static str], fault: Fault, prepare: fn(&Machine)) {
    if left_out() {
        return;
    }
    let began = Instant::now();
    let (rounds, calls) = every_step(args, fault, prepare);
    assert!(calls >= 100 && rounds >= 50, "{rounds} rounds of {calls}");
    let (changes, seconds) = (odd::count(), began.elapsed().as_secs_f64());
    println!(
        "{what}, {changes} changes: rounds {rounds} of {calls}, files that differ 0, {seconds:.0} s"
    );
}

fn applied(machine: &Machine) {
    expect_code(&run(machine.folder.path(), APPLY), 0);
}

#[test]
fn a_plan_is_applied_and_undone() {
    let machine = Machine::new();
    let steps = odd::count();
    assert!(steps >= 25, "{steps} changes");
    let output = run(machine.folder.path(), APPLY);
    expect_code(&output, 0);
    // Every change is one: but for the folder that is there, and the file that is not.
    let changed = machine.differ().len();
    assert!(changed >= steps - 6, "{changed} of {steps} changed");
    machine.undone("apply");
}

#[test]
fn killed_at_every_step_of_apply() {
    printed("tune apply, killed", APPLY, Fault::Kill, |_| {});
}

#[test]
fn killed_at_every_step_of_undo() {
    printed("tune undo, killed", UNDO, Fault::Kill, applied);
}

#[test]
fn failing_at_every_step_of_apply() {
    printed("tune apply, one call fails", APPLY, Fault::Error("ENOSPC"), |_| {});
}

#[test]
fn failing_at_every_step_of_undo() {
    printed("tune undo, one call fails", UNDO, Fault::Error("EIO"), applied);
}
