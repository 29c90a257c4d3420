//! What `tune undo` uses and what it refuses: a damaged journal, one of another machine, a copy,
//! a second instance, a file system that cannot be written, what something else has changed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::{
    self, FAILED, NOT_PROVEN, REFUSED, binary, code, expect_code, files,
    odd::{APPLY, Machine, UNDO},
    only, run, stderr, stdout,
    tree::{differences, snapshot},
    wait_for,
};

fn journals(machine: &Machine) -> PathBuf {
    machine.root().join("var/lib/rtproof/tune")
}

fn applied() -> Machine {
    let machine = Machine::new();
    expect_code(&run(machine.folder.path(), APPLY), 0);
    machine
}

fn said(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// One bit of each line in turn.
#[test]
fn a_damaged_journal_is_refused_and_nothing_is_written() {
    let machine = applied();
    let path = only(&journals(&machine), ".journal");
    let whole = fs::read(&path).expect("the journal");
    let during = snapshot(&machine.root(), &[]);
    let starts: Vec<usize> = std::iter::once(0)
        .chain(whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1))
        .collect();
    let lines: Vec<&[usize]> = starts.windows(2).collect();
    assert!(lines.len() > 25, "{} lines", lines.len());
    // The last line may be one that a power cut tore: what it said is then as if it was not.
    for (number, line) in lines[..lines.len() - 1].iter().enumerate() {
        let at = line[0] + number * 7919 % (line[1] - line[0] - 1);
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).expect("the journal is written");
        let output = run(machine.folder.path(), UNDO);
        fs::write(&path, &whole).expect("the journal is written");
        let what = format!("line {} byte {at}", number + 1);
        assert_eq!(code(&output), REFUSED, "{what}: {}", said(&output));
        let mut now = snapshot(&machine.root(), &[]);
        let journal = path.strip_prefix(machine.root()).expect("below").to_owned();
        now.remove(&journal);
        let mut was = during.clone();
        was.remove(&journal);
        assert_eq!(differences(&was, &now), [""; 0], "{what}");
    }
    machine.undone("the journal is whole again");
}

/// The power fails after a run has closed its journal, before it removes the mark.
#[test]
fn the_mark_of_a_closed_journal_goes_and_that_of_an_open_one_stays() {
    let machine = applied();
    machine.undone("once");
    expect_code(&run(machine.folder.path(), APPLY), 0);
    let [closed, open] = ["0001.running", "0002.running"].map(|it| journals(&machine).join(it));
    for mark in [&closed, &open] {
        fs::write(mark, "a mark").expect("the mark is written");
    }
    expect_code(&run(machine.folder.path(), &[UNDO, &["--journal", "1"]].concat()), 0);
    assert!(!closed.exists(), "of a closed journal");
    assert!(open.exists(), "of an open journal");
}

#[test]
fn a_journal_of_another_machine_is_refused() {
    let machine = applied();
    let id = machine.root().join("etc/machine-id");
    let own = fs::read(&id).expect("the id");
    fs::write(&id, "fedcba9876543210fedcba9876543210\n").expect("the id");
    let during = snapshot(&machine.root(), &[]);
    let output = run(machine.folder.path(), UNDO);
    expect_code(&output, REFUSED);
    assert!(stdout(&output).contains("another machine"), "{}", stdout(&output));
    assert_eq!(differences(&during, &snapshot(&machine.root(), &[])), [""; 0]);
    fs::write(&id, own).expect("the id");
}

#[test]
fn a_copy_of_the_journal_is_enough() {
    let machine = applied();
    let path = only(&journals(&machine), ".journal");
    fs::copy(path, machine.folder.path().join("copy")).expect("a copy");
    fs::remove_dir_all(machine.root().join("var/lib/rtproof")).expect("the journals are gone");
    let args = ["tune", "undo", "--root", "root", "--journal", "copy"];
    let output = run(machine.folder.path(), &args);
    expect_code(&output, 0);
    assert_eq!(machine.differ(), [""; 0], "{}", said(&output));
}

#[test]
fn what_somebody_else_changed_is_left_alone_and_named() {
    let machine = applied();
    let theirs = [
        ("etc/sysctl.d/99-odd.conf", "somebody's\n"),
        ("proc/sys/vm/swappiness", "77\n"),
        ("etc/security/limits.d/99-rtproof.conf", "somebody's\n"),
    ];
    for (path, text) in theirs {
        fs::write(machine.root().join(path), text).expect("a file");
    }
    let output = run(machine.folder.path(), UNDO);
    expect_code(&output, REFUSED);
    let said = said(&output);
    for (path, text) in theirs {
        assert_eq!(fs::read_to_string(machine.root().join(path)).expect("a file"), text, "{path}");
        assert!(said.contains(&format!("/{path}")), "{path} is not named: {said}");
    }
    let differ = machine.differ();
    assert_eq!(differ.len(), theirs.len(), "{differ:#?}");
}

#[test]
fn a_file_system_that_cannot_be_written_is_named() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: mounts need root");
        return;
    }
    let machine = applied();
    let during = snapshot(&machine.root(), &[]);
    let read_only = |args: &[&str]| {
        let script = format!(
            "mount --bind root root && mount -o remount,ro,bind root && exec {} {}",
            binary(),
            args.join(" ")
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).current_dir(machine.folder.path());
        command.output().expect("unshare runs")
    };
    for args in [UNDO, APPLY] {
        let output = read_only(args);
        expect_code(&output, FAILED);
        let (said, why) = (said(&output), stderr(&output));
        assert!(said.to_lowercase().contains("read-only"), "{said}");
        assert!(why.lines().count() <= 6, "a sentence, not {why}");
        assert_eq!(differences(&during, &snapshot(&machine.root(), &[])), [""; 0]);
    }
    machine.undone("it can be written again");
}

/// The first stands still at its third barrier; the second is refused.
#[test]
fn two_at_once_are_one_too_many() {
    if !support::killed::can_trace() {
        eprintln!("left out: strace is missing or may not trace");
        return;
    }
    let machine = Machine::new();
    let calls = "?fsync,?fdatasync";
    let mut first = Command::new("strace");
    first.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    first.args(["-e", &format!("inject={calls}:delay_enter=3000000:when=3")]);
    first.arg(binary()).args(APPLY).current_dir(machine.folder.path());
    let mut first = first.spawn().expect("strace runs");
    let begun = || fs::exists(journals(&machine)).unwrap_or(false);
    wait_for("the journal", 10, || begun() && !files(&journals(&machine), ".journal").is_empty());
    for args in [APPLY, UNDO] {
        let output = run(machine.folder.path(), args);
        expect_code(&output, FAILED);
        let said = stderr(&output);
        assert!(said.contains("another") || said.contains("rtproof"), "{said}");
    }
    assert!(first.wait().expect("it ends").success());
    machine.undone("the first");
}

/// Killed, then applied again before anything is undone: the values of before are not forgotten.
#[test]
fn a_second_apply_does_not_forget_what_was_before_the_first() {
    if !support::killed::can_trace() {
        eprintln!("left out: strace is missing or may not trace");
        return;
    }
    let machine = Machine::new();
    for at in (5..100).step_by(10) {
        let call = support::killed::Call::new("write", at);
        let end = support::killed::killed_at(binary(), machine.folder.path(), APPLY, &call);
        assert!(end.was_reached, "write {at}");
        // Refused, or continued: both are right, to forget is not.
        let output = run(machine.folder.path(), APPLY);
        assert!(matches!(code(&output), 0 | 1), "{}", said(&output));
        let mut undone = run(machine.folder.path(), UNDO);
        for _ in 0..4 {
            if machine.differ().is_empty() {
                break;
            }
            undone = run(machine.folder.path(), UNDO);
        }
        assert_eq!(machine.differ(), [""; 0], "killed before write {at}: {}", said(&undone));
        let _ = fs::remove_dir_all(machine.root().join("var/lib/rtproof"));
    }
}

#[test]
fn a_machine_that_cannot_be_tuned_is_refused() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let capture = only(&fixtures, "vm-firecracker.txt");
    let capture = capture.to_str().expect("UTF-8");
    let machine = Machine::new();
    for verb in ["apply", "undo"] {
        let output = run(machine.folder.path(), &["tune", verb, "--root", capture]);
        assert_eq!(code(&output), FAILED, "{}", said(&output));
        assert!(stderr(&output).contains("capture"), "{}", stderr(&output));
    }
}

/// The folder of the journals goes after an apply: nothing says "nothing is applied".
#[test]
fn what_is_applied_without_its_journal_is_not_nothing() {
    let machine = applied();
    let folder = machine.folder.path();
    let (there, gone) = (machine.root().join("var/lib/rtproof"), folder.join("gone"));
    let during = snapshot(&machine.root(), &["var/lib/rtproof"]);
    fs::rename(&there, &gone).expect("the folder goes");
    for command in ["status", "undo", "undo --all", "undo --journal 1", "verify", "status --watch"]
    {
        let args: Vec<&str> = ["tune"].into_iter().chain(command.split(' ')).collect();
        let output = run(folder, &[&args[..], &["--root", "root"]].concat());
        expect_code(&output, NOT_PROVEN);
        assert!(said(&output).contains("journal missing"), "{command}: {}", said(&output));
        assert!(!said(&output).contains("nothing of rtproof"), "{command}: {}", said(&output));
    }
    for command in ["status", "undo"] {
        let output = run(folder, &["tune", command, "--root", "root", "--json"]);
        expect_code(&output, NOT_PROVEN);
        let answer: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        assert_eq!(answer["unusable"][0]["missing"], true, "{answer}");
    }
    // An apply without anything to do says so; one with a change does not take the number.
    expect_code(&run(folder, APPLY), 0);
    let during_again = snapshot(&machine.root(), &["var/lib/rtproof"]);
    assert_eq!(differences(&during, &during_again), [""; 0]);
    let _ = fs::remove_dir_all(&there);
    fs::rename(&gone, &there).expect("the folder is back");
    machine.undone("the journal is back");
    assert!(!machine.root().join("run/rtproof").exists());
}

/// Applies, stands still for 9 s at a barrier halfway, and gets these signals.
fn interrupted(signals: &[&str]) -> (Machine, Output, std::time::Duration) {
    let machine = Machine::new();
    let calls = "?fsync,?fdatasync";
    // The tracer beside it, and of the main thread alone: the child is rtproof itself.
    let mut apply = Command::new("strace");
    apply.args(["-D", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    apply.args(["-e", &format!("inject={calls}:delay_enter=9000000:when=30")]);
    apply.arg(binary()).args(APPLY).current_dir(machine.folder.path());
    apply.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let apply = apply.spawn().expect("strace runs");
    wait_for("a change", 20, || !machine.differ().is_empty());
    std::thread::sleep(std::time::Duration::from_millis(700));
    let began = std::time::Instant::now();
    for signal in signals {
        support::kill(signal, apply.id());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    wait_for("the undo", 20, || machine.differ().is_empty());
    let took = began.elapsed();
    (machine, apply.wait_with_output().expect("it ends"), took)
}

/// What the main thread waits for does not keep the changes in force.
#[test]
fn changes_are_undone_in_time_whatever_is_waited_for() {
    if !support::killed::can_trace() {
        eprintln!("left out: strace is missing or may not trace");
        return;
    }
    for (signals, at_most) in [(&["TERM"][..], 7), (&["INT", "INT"], 3), (&["HUP", "TERM"], 3)] {
        let (machine, output, took) = interrupted(signals);
        let what = format!("{signals:?} {took:?}: {}", said(&output));
        assert_eq!(machine.differ(), [""; 0], "{what}");
        assert!(took.as_secs() < at_most, "{what}");
        assert!(matches!(code(&output), 129 | 130 | 143), "{what}");
        machine.undone(&what);
    }
}
