//! What the reading commands print, as files that a reviewer reads: 80, 120 and 160 columns,
//! colours and none, a machine that is set up, one that is not, one of which nothing is known.
//!
//! `SNAPSHOTS=overwrite cargo test -p rtproof --test it golden::` writes them to `tests/golden`. A
//! colour is written as `␛[1m` there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::{
    self, command, folder,
    odd::{APPLY, Machine, UNDO},
    stderr, stdout,
};
use snapbox::{Assert, Data};

/// What every command is run with.
const WIDTHS: [u32; 3] = [80, 120, 160];
/// Of helps: the widest there is, and the narrowest.
const WIDTHS_OF_HELP: [u32; 2] = [80, 120];

/// Records that are shown: of a run and of an experiment, of a matrix.
const RECORDS: [&str; 2] = ["records.tar.gz", "cells.tar.gz"];
/// Parts of the names of what root alone can read on that machine.
const OF_ROOT: [&str; 6] =
    ["/environ", "/acpi/tables/", "/cpu_partial", "/tracing/", "audit status", "cpu_dma_latency"];

/// Name of the files, command line, exit code.
type Case = (&'static str, &'static [&'static str], i32);

/// At every width, and with colours at 80 columns.
const CASES: &[Case] = &[
    ("check-good", &["check", "--root", "good.txt", "--cpus", "2-3"], 2),
    ("check-bad", &["check", "--root", "bad.txt", "--budget", "100us"], 2),
    ("check-unknown", &["check", "--root", "unknown"], 3),
    ("check-explain", &["check", "explain", "thp", "--root", "bad.txt"], 0),
    ("report", &["report", "robot.rtproof"], 2),
    ("explain-record", &["explain", "robot.rtproof", "--worst", "1"], 0),
    ("explain-trace", &["explain", "trace.txt", "--over", "1us"], 0),
    ("compare", &["compare", "before.txt", "after.json", "--force"], 0),
    ("import", &["import", "before.txt", "--show"], 0),
    ("plan-good", &["tune", "plan", "--root", "good.txt", "--cpus", "2-3"], 0),
    ("plan-bad", &["tune", "plan", "--root", "bad.txt", "--cpus", "1"], 0),
    // The same machine, captured without rights.
    ("check-user", &["check", "--root", "user.txt"], 2),
    ("plan-user", &["tune", "plan", "--root", "user.txt", "--cpus", "1"], 0),
    // All of it is measured already: what is printed at the end of a matrix.
    ("measure", &["measure", "--resume", "cells"], 0),
    ("report-experiment", &["report", "experiment.rtproof"], 3),
];

/// At 120 columns alone.
const DETAILS: &[Case] = &[
    ("check-bad-v", &["check", "--root", "bad.txt", "--only", "memory", "-v"], 0),
    ("report-v", &["report", "robot.rtproof", "-v"], 2),
    ("report-q", &["report", "robot.rtproof", "-q"], 2),
    ("report-moving", &["report", "robot.rtproof", "--moving", "2s"], 2),
    ("report-moving-partial", &["report", "robot.rtproof", "--moving", "1500ms"], 64),
    ("report-moving-long", &["report", "robot.rtproof", "--moving", "1h"], 64),
    ("report-half-life", &["report", "robot.rtproof", "--half-life", "10ms"], 64),
    (
        "export-moving-elsewhere",
        &["export", "robot.rtproof", "--format", "hdr", "--moving", "2s"],
        64,
    ),
];

/// Commands whose help is kept; the first is rtproof's own.
const HELPS: &[&[&str]] = &[
    &[],
    &["prove"],
    &["measure"],
    &["check"],
    &["tune"],
    &["tune", "apply"],
    &["explain"],
    &["report"],
];

/// A folder with everything that the commands read, under names that do not change.
fn inputs() -> tempfile::TempDir {
    let to = folder();
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (from, name) in [
        ("fixtures/machines/qemu-rt-6.1-smt-numa-isolated.txt", "good.txt"),
        ("fixtures/machines/vm-firecracker.txt", "bad.txt"),
        ("fixtures/imports/cyclictest-2.4-h.txt", "before.txt"),
        ("fixtures/imports/cyclictest-2.4.json", "after.json"),
        ("fuzz/seeds/ftrace-text/wakeup.txt", "trace.txt"),
    ] {
        fs::copy(top.join(from), to.path().join(name)).expect("a fixture");
    }
    let bad = fs::read_to_string(to.path().join("bad.txt")).expect("a fixture");
    fs::write(to.path().join("user.txt"), as_user(&bad)).expect("a file");
    fs::create_dir_all(to.path().join("unknown/proc")).expect("a folder");
    fs::write(to.path().join("unknown/proc/uptime"), "1.00 1.00\n").expect("a file");
    for records in RECORDS {
        let mut tar = Command::new("tar");
        let status = tar.arg("-C").arg(to.path()).arg("-xzf").arg(golden().join(records)).status();
        assert!(status.expect("tar").success());
    }
    to
}

/// What root alone can read is denied, as in a capture by an ordinary user.
fn as_user(capture: &str) -> String {
    let mut text = String::new();
    let mut is_denied = false;
    for line in capture.lines().map(|line| line.replace("read by root", "read by a user")) {
        if let Some(entry) = line.strip_prefix("== ") {
            let name = entry.rsplit_once(' ').map_or(entry, |(name, _)| name);
            is_denied = OF_ROOT.iter().any(|part| name.contains(part));
            text += &if is_denied {
                format!("== {name} denied\n|EACCES\n")
            } else {
                format!("{line}\n")
            };
        } else if !is_denied || !line.starts_with(['|', ':']) {
            text += &format!("{line}\n");
        }
    }
    text
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// What a command prints, both streams.
fn printed(at: &Path, args: &[&str], columns: u32, color: &str, expected: i32) -> String {
    let mut command = command(at, args);
    command.args(["--color", color]).env("COLUMNS", columns.to_string()).env_remove("TERM");
    let output = command.output().expect("the binary runs");
    let text = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(expected), "{args:?}: {text}");
    // A matrix begins with the machine that it runs on.
    let lines =
        text.lines().skip_while(|line| args.get(1) == Some(&"--resume") && !line.contains("Plan"));
    let lines: Vec<&str> = lines.collect();
    lines.join("\n").replace(env!("CARGO_PKG_VERSION"), "[VERSION]").replace('\x1b', "␛")
}

fn assert_golden(name: &str, text: &str) {
    let expected = Data::read_from(&golden().join(name), None).raw();
    let assert = Assert::new().action_env("SNAPSHOTS").normalize_paths(false);
    assert.eq(Data::text(text).raw(), expected);
}

/// Columns that a line takes: a sequence of a colour takes none.
fn columns(line: &str) -> usize {
    let plain = line.split('␛').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('m').map_or("", |(_, rest)| rest),
    });
    plain.map(|part| part.chars().count()).sum()
}

#[test]
fn every_reading_command_prints_as_it_did() {
    let inputs = inputs();
    let mut kept = BTreeSet::from(RECORDS.map(str::to_owned));
    let mut case = |(name, args, code): &Case, width: u32, color: &str| {
        let text = printed(inputs.path(), args, width, color, *code);
        let ending = if color == "always" { "color.txt" } else { "txt" };
        let file = format!("{name}.{width}.{ending}");
        assert_golden(&file, text.trim_end());
        kept.insert(file);
        assert_eq!(text.contains('␛'), color == "always", "{name}");
    };
    for one in CASES {
        WIDTHS.into_iter().for_each(|width| case(one, width, "never"));
        case(one, 80, "always");
    }
    DETAILS.iter().for_each(|one| case(one, 120, "never"));
    for path in HELPS {
        let name = ["help"].iter().chain(*path).copied().collect::<Vec<_>>().join("-");
        let args: Vec<&str> = path.iter().copied().chain(["--help"]).collect();
        for width in WIDTHS_OF_HELP {
            let text = printed(inputs.path(), &args, width, "never", 0);
            let file = format!("{name}.{width}.txt");
            assert_golden(&file, text.trim_end());
            kept.insert(file);
        }
    }
    let there = fs::read_dir(golden()).expect("the folder");
    let there = there.map(|entry| entry.expect("a file"));
    let there = there.filter(|entry| entry.path().is_file());
    let there = there.map(|entry| entry.file_name().to_string_lossy().into());
    assert_eq!(there.collect::<BTreeSet<String>>(), kept, "files of no case");
}

/// The life of a change, in a folder with values as no program leaves them.
#[test]
fn changes_are_reported_as_made() {
    let status = ["tune", "status", "--root", "root"];
    let verify = ["tune", "verify", "--root", "root"];
    for width in WIDTHS {
        let machine = Machine::new();
        let commands: [(&str, &[&str]); 5] = [
            ("apply", APPLY),
            ("status", &status),
            ("verify", &verify),
            ("undo", UNDO),
            ("status-after", &status),
        ];
        for (name, args) in commands {
            let text = printed(machine.folder.path(), args, width, "never", 0);
            let text: Vec<&str> = text.lines().map(without_its_time).collect();
            assert_golden(&format!("changes/{name}.{width}.txt"), text.join("\n").trim_end());
        }
    }
}

/// The line of a journal without when it was written, which comes last.
fn without_its_time(line: &str) -> &str {
    match line.strip_suffix(" UTC") {
        Some(rest) if line.starts_with("Journal ") => rest.rsplitn(3, ' ').nth(2).unwrap_or(rest),
        _ => line,
    }
}

#[test]
fn text_keeps_to_its_width() {
    let inputs = inputs();
    for (name, args, code) in CASES {
        let text = printed(inputs.path(), args, 80, "always", *code);
        // A path, a command to paste or an option in one piece is not broken, and a plan's values
        // are not.
        let is_text = |line: &&str| {
            let words = line.split_whitespace().count();
            columns(line) > 80 && words > 12 && !line.contains("? not known: ")
        };
        let wide: Vec<&str> = text.lines().filter(is_text).collect();
        assert!(wide.len() < 4, "{name}: {wide:#?}");
    }
}

#[test]
fn colours_and_quietness_are_as_asked() {
    let inputs = inputs();
    let run = |args: &[&str]| {
        let mut command = command(inputs.path(), args);
        stdout(&command.env_remove("NO_COLOR").output().expect("the binary runs"))
    };
    let args = ["report", "robot.rtproof"];
    assert!(!run(&args).contains('\x1b'), "no terminal");
    assert!(run(&[&args[..], &["--color", "always"]].concat()).contains('\x1b'));
    assert!(run(&[&["--color=always"], &args[..]].concat()).contains('\x1b'));
    let mut asked = command(inputs.path(), &args);
    let forced = asked.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1").output().expect("runs");
    assert!(stdout(&forced).contains('\x1b'));
    let whole = run(&args);
    let quiet = run(&[&args[..], &["-q"]].concat());
    assert!(quiet.lines().count() < 10 && whole.contains(&quiet), "{quiet}");
    // No answer block: the output is the answer.
    let capture = ["check", "explain", "thp", "--root", "bad.txt"];
    assert_eq!(run(&capture), run(&[&capture[..], &["--quiet"]].concat()));
}

#[test]
fn manual_pages_and_completions_are_those_of_the_command_line() {
    let at = folder();
    let page = support::run(at.path(), &["man", "tune", "apply"]);
    assert!(stdout(&page).contains(".TH rtproof-tune-apply 1"), "{}", stdout(&page));
    let none = support::run(at.path(), &["man", "nosuch"]);
    assert_eq!(none.status.code(), Some(64), "{}", stderr(&none));
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&support::run(at.path(), &["completions", shell]));
        assert!(script.contains("prove") && script.contains("quiet"), "{shell}");
    }
}
