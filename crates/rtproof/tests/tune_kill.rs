//! SIGKILL at every step of `tune apply` and of `tune undo`, not at a sample of them: undo then gives
//! back every byte, permission, owner, time and link of a machine that had odd values before.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests read and write their own files, and say what they did"
)]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use support::{
    binary, expect_code,
    killed::{End, can_trace, killed_at},
    odd, run, stderr, stdout,
    tree::{Snapshot, differences, snapshot},
};
use tempfile::TempDir;

/// Ours to keep: journals stay when they are closed.
const OURS: &[&str] = &["var/lib/rtproof", "run/lock", "run/rtproof"];

/// More calls than any run makes: a loop that does not end is a fault, not a test.
const CALLS_MAX: u64 = 20_000;

/// A machine in a folder, and the plan beside it.
struct Machine {
    folder: TempDir,
    before: Snapshot,
}

impl Machine {
    fn new() -> Self {
        // In memory, where there is some: a disk would take most of the time for its barriers.
        let memory = Path::new("/dev/shm");
        let mut builder = tempfile::Builder::new();
        builder.prefix("rtproof-test-");
        let folder = match memory.is_dir() {
            true => builder.tempdir_in(memory),
            false => builder.tempdir(),
        };
        let folder = folder.expect("a temporary folder");
        odd::machine(&folder.path().join("root"));
        let plan = serde_json::to_string(&odd::plan()).expect("JSON");
        fs::write(folder.path().join("plan.json"), plan).expect("the plan is written");
        let before = snapshot(&folder.path().join("root"), OURS);
        Self { folder, before }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn differ(&self) -> Vec<String> {
        differences(&self.before, &snapshot(&self.root(), OURS))
    }

    /// Takes everything back, twice, and compares; forgets the journals.
    #[track_caller]
    fn undone(&self, after: &str) {
        let output = run(self.folder.path(), UNDO);
        let differ = self.differ();
        assert!(
            differ.is_empty() && output.status.success(),
            "{after}: {} files differ:\n{}\n{}\n{}",
            differ.len(),
            differ.join("\n"),
            stdout(&output),
            stderr(&output)
        );
        let again = run(self.folder.path(), UNDO);
        assert_eq!(self.differ(), [""; 0], "{after}: a second undo changes nothing");
        expect_code(&again, 0);
        let _ = fs::remove_dir_all(self.root().join("var/lib/rtproof"));
    }
}

const APPLY: &[&str] = &["tune", "apply", "--root", "root", "--plan", "plan.json", "--yes"];
const UNDO: &[&str] = &["tune", "undo", "--root", "root", "--yes"];

fn left_out() -> bool {
    let can = can_trace();
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(can || !is_ci, "strace cannot trace: install it");
    if !can {
        eprintln!("left out: strace is missing or may not trace");
    }
    !can
}

/// Kills a run before each of its calls in turn; two machines share the work. `prepare` comes before
/// each round. Returns the number of rounds that were killed.
fn every_step(args: &'static [&'static str], prepare: fn(&Machine)) -> usize {
    let work = |first: u64| {
        move || {
            let machine = Machine::new();
            for (rounds, at) in (first..CALLS_MAX).step_by(2).enumerate() {
                prepare(&machine);
                let end = killed_at(binary(), machine.folder.path(), args, at);
                let killed = matches!(end, End::Killed);
                if let End::ByItself(output) = &end {
                    expect_code(output, 0);
                }
                machine.undone(&format!("{} killed before call {at}", args[1]));
                if !killed {
                    return rounds;
                }
            }
            panic!("{args:?} makes more than {CALLS_MAX} calls");
        }
    };
    let halves = [1, 2].map(|first| thread::spawn(work(first)));
    halves.into_iter().map(|half| half.join().expect("every round is well")).sum()
}

#[test]
fn a_plan_is_applied_and_undone() {
    let machine = Machine::new();
    let steps = odd::plan().steps;
    assert!(steps.len() >= 25, "{} changes", steps.len());
    let output = run(machine.folder.path(), APPLY);
    expect_code(&output, 0);
    // Every change is one: but for the folder that is there, and the file that is not.
    let changed = machine.differ().len();
    assert!(changed >= steps.len() - 6, "{changed} of {} changed", steps.len());
    machine.undone("apply");
}

#[test]
fn killed_at_every_step_of_apply() {
    if left_out() {
        return;
    }
    let began = Instant::now();
    let rounds = every_step(APPLY, |_| {});
    assert!(rounds >= 100, "{rounds} rounds");
    println!(
        "tune apply, {} changes: rounds {rounds}, files that differ 0, {:.0} s",
        odd::plan().steps.len(),
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn killed_at_every_step_of_undo() {
    if left_out() {
        return;
    }
    let began = Instant::now();
    let rounds = every_step(UNDO, |machine| {
        expect_code(&run(machine.folder.path(), APPLY), 0);
    });
    assert!(rounds >= 100, "{rounds} rounds");
    println!(
        "tune undo: rounds {rounds}, files that differ 0, {:.0} s",
        began.elapsed().as_secs_f64()
    );
}
