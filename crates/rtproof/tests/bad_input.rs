//! Every bad input: a clear error, nothing written, the documented exit code.

use crate::support::{
    self, ACCEPTED, FAILED, USAGE, code, command, expect_code, files, folder, run, stderr,
};

/// Runs `prove` with arguments that must be refused before anything is measured.
#[track_caller]
fn refused(args: &[&str], says: &[&str]) {
    let folder = folder();
    let mut all = vec!["prove"];
    all.extend(args);
    let output = run(folder.path(), &all);
    expect_code(&output, USAGE);
    let text = stderr(&output);
    for part in says {
        assert!(text.contains(part), "{args:?}: expected \"{part}\" in:\n{text}");
    }
    assert!(output.stdout.is_empty(), "stdout is the answer, not the error");
    assert!(files(folder.path(), "").is_empty(), "{args:?} left something behind");
}

#[test]
fn durations() {
    refused(&["--for", "0s"], &["--for", "zero"]);
    refused(&["--for=-5s"], &["negative"]);
    refused(&["--for", "20"], &["no unit", "20s"]);
    refused(&["--for", "5 parsecs"], &["no such unit"]);
    refused(&["--for", "10us"], &["100 ms to"]);
    refused(&["--for", "1000000h"], &["100 ms to"]);
    refused(&["--for", "99999999999999999999999h"], &["too large"]);
    refused(&["--for", ""], &["no number"]);
    refused(&["--for", "1s", "--period", "2s"], &["--period is longer than --for"]);
}

#[test]
fn periods_and_budgets() {
    refused(&["--period", "0us"], &["zero"]);
    refused(&["--period", "4us"], &["5 µs to 10 s"]);
    refused(&["--period", "1h"], &["5 µs to 10 s"]);
    refused(&["--budget", "100"], &["no unit"]);
    refused(&["--budget=-1us"], &["negative"]);
    refused(&["--budget", "3h"], &["a budget must be"]);
    refused(&["--confidence", "100"], &["percentage"]);
    refused(&["--confidence", "95us"], &["percentage"]);
    refused(&["--max-rate", "0/h"], &["zero"]);
    refused(&["--max-rate", "often"], &["12/h"]);
    refused(&["--max-rate", "361/h", "--budget", "1us"], &["above 360/h", "--class 95"]);
    refused(
        &["--max-rate", "100/h", "--budget", "1us", "--period", "10s", "--for", "1m"],
        &["above 36/h"],
    );
    refused(&["--to-prove"], &["--budget"]);
    refused(&["--to-prove", "--for", "1m", "--budget", "1us"], &["cannot be used with"]);
    refused(&["--episode", "0s"], &["zero"]);
    refused(&["--class", "hard"], &["soft", "95", "100", "safe"]);
    refused(&["--priority", "0"], &["1 to 99"]);
    refused(&["--priority", "100"], &["1 to 99"]);
}

#[test]
fn cpu_lists() {
    refused(&["--cpus", "4000"], &["not online", "4000"]);
    refused(&["--cpus", "0,9999"], &["9999", "8191"]);
    refused(&["--cpus", "3-1"], &["backwards"]);
    refused(&["--cpus", "0-2n"], &["0-2n"]);
    refused(&["--cpus", "two"], &["two"]);
    refused(&["--cpus", ""], &["empty"]);
    refused(&["--load-cpus", "4000"], &["--load-cpus", "not online"]);
}

#[test]
fn loads() {
    refused(&["--load", "memroy"], &["memroy", "memory"]);
    refused(&["--load", "cpu+"], &["name of a load"]);
    refused(&["--load", "cmd:"], &["what to run"]);
}

#[test]
fn words() {
    refused(&["--bugdet", "100us"], &["--budget"]);
    refused(&["extra"], &["extra"]);
    let folder = folder();
    expect_code(&run(folder.path(), &["porve"]), USAGE);
    expect_code(&run(folder.path(), &[]), USAGE);
    expect_code(&run(folder.path(), &["--help"]), 0);
    expect_code(&run(folder.path(), &["--version"]), 0);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = folder();
    for (target, says) in [
        ("no/such/folder/run", "no/such/folder"),
        ("/proc/run", "/proc/run"),
        ("/dev/null/run", "/dev/null"),
    ] {
        let output = run(folder.path(), &["prove", "--for", "1s", "--load", "idle", "-o", target]);
        expect_code(&output, FAILED);
        assert!(stderr(&output).contains(says), "{target}: {}", stderr(&output));
    }
    std::fs::write(folder.path().join("taken.rtproof"), "precious").expect("a file");
    let output = run(folder.path(), &["prove", "--for", "1s", "--load", "idle", "-o", "taken"]);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("taken.rtproof"), "{}", stderr(&output));
    let kept = std::fs::read(folder.path().join("taken.rtproof")).expect("still there");
    assert_eq!(kept, b"precious");
}

#[test]
fn records_that_are_none() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("empty.rtproof"), "").expect("a file");
    std::fs::write(path("text.rtproof"), "not a record ".repeat(1000)).expect("a file");
    for name in ["missing.rtproof", "empty.rtproof", "text.rtproof", "."] {
        for args in [&["report"][..], &["export", "--format", "json"][..]] {
            let file = path(name);
            let mut all = args.to_vec();
            all.push(&file);
            let output = run(folder.path(), &all);
            expect_code(&output, FAILED);
            assert!(stderr(&output).contains(name), "{name}: {}", stderr(&output));
        }
    }
    let output = run(folder.path(), &["export", "--format", "xls", "any.rtproof"]);
    expect_code(&output, USAGE);
    assert!(stderr(&output).contains("csv"), "{}", stderr(&output));
}

#[test]
fn roots_that_are_none() {
    let folder = folder();
    std::fs::write(folder.path().join("file"), "").expect("a file");
    for root in ["missing", "file"] {
        let output = run(folder.path(), &["check", "--root", root]);
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains(root), "{}", stderr(&output));
    }
    // Nothing of a machine, or the folder above it.
    std::fs::create_dir_all(folder.path().join("above/sosreport/etc")).expect("folders");
    std::fs::write(folder.path().join("above/sosreport/etc/hostname"), "x\n").expect("a file");
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    std::fs::create_dir(folder.path().join("linux")).expect("a folder");
    std::fs::write(folder.path().join("linux/.config"), "CONFIG_HZ=250\n").expect("a file");
    for (root, next) in [
        ("above", "did you mean above/sosreport?"),
        ("empty", "stands for /"),
        ("linux", "did you mean linux/.config?"),
    ] {
        let output = run(folder.path(), &["check", "--root", root]);
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains(next), "{}", stderr(&output));
    }
    // A part of a configuration answers for what it names.
    let output = run(folder.path(), &["check", "--root", "linux/.config", "--only", "config-hz"]);
    expect_code(&output, ACCEPTED);
}

#[test]
fn data_of_perf_has_its_next_step() {
    let folder = folder();
    std::fs::write(folder.path().join("perf.data"), b"PERFILE2h\0\0\0\0\0\0\0").expect("a file");
    for (command, next) in
        [("explain", "perf script -i perf.data > FILE"), ("import", "rtproof explain perf.data")]
    {
        let output = run(folder.path(), &[command, "perf.data"]);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(next), "{}", stderr(&output));
    }
}

#[test]
fn a_machine_of_one_file_is_unknown_and_never_good() {
    let root = folder();
    std::fs::create_dir(root.path().join("etc")).expect("a folder");
    std::fs::write(root.path().join("etc/hostname"), "x\n").expect("a file");
    let output = run(root.path(), &["check", "--root", ".", "--json"]);
    expect_code(&output, support::NOT_PROVEN);
    let audit: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for finding in audit["findings"].as_array().expect("findings") {
        assert_ne!(finding["status"], "good", "{finding}");
    }
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    let folder = folder();
    let script = format!("{} check --all | head -n 1", support::binary());
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &format!("set -o pipefail; {script}; echo ${{PIPESTATUS[0]}}")]);
    let output = shell.current_dir(folder.path()).output().expect("bash");
    let text = support::stdout(&output);
    assert!(text.starts_with("Result   "), "{text}");
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    let status = command(folder.path(), &["check"]).output().expect("it runs");
    assert!((0..=3).contains(&code(&status)));
}

#[test]
fn a_pipe_without_a_writer_is_refused_without_waiting() {
    let folder = folder();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    for args in [
        &["report", "pipe"][..],
        &["import", "pipe"],
        &["explain", "pipe"],
        &["export", "pipe", "--format", "csv"],
        &["compare", "pipe", "pipe"],
        &["check", "--root", "pipe"],
        &["check", "--profile", "./pipe"],
        &["measure", "--matrix", "pipe"],
        &["tune", "apply", "--plan", "pipe"],
    ] {
        let output = std::process::Command::new("timeout")
            .args(["20", env!("CARGO_BIN_EXE_rtproof")])
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("timeout of coreutils");
        let text = stderr(&output);
        assert!(!matches!(code(&output), 0 | 124), "{args:?}: {}: {text}", code(&output));
        assert!(text.contains("regular file"), "{args:?}: {text}");
    }
}

/// What must not reach a terminal or a page: control characters but the layout's, and characters
/// that turn or hide text.
fn hidden(text: &str) -> Vec<char> {
    let is_hidden = |c: &char| {
        (c.is_control() && !['\n', '\t'].contains(c))
            || ('\u{200b}'..='\u{200f}').contains(c)
            || ('\u{202a}'..='\u{202e}').contains(c)
            || ('\u{2066}'..='\u{2069}').contains(c)
    };
    text.chars().filter(is_hidden).collect()
}

const HOSTILE: &str = "\u{1b}]0;title\u{7}\u{1b}[8m\u{9b}2J\u{202e}\u{200b}";

#[test]
fn names_of_files_and_words_in_them_do_not_command_the_terminal() {
    let folder = folder();
    let name = format!("x{HOSTILE}.rtproof");
    let policy = format!("schema = \"rtproof/{HOSTILE}\"\n[a{HOSTILE}]\n");
    let json = format!("{{\"schema\": {}}}", serde_json::json!(HOSTILE));
    std::fs::write(folder.path().join(&name), "no record").unwrap();
    std::fs::write(folder.path().join("x.toml"), policy).unwrap();
    std::fs::write(folder.path().join("x.json"), json).unwrap();
    for args in [
        &["report", &name][..],
        &["report", &format!("--{name}")],
        &["compare", &name, &name],
        &["export", &name, "--format", &name],
        &["import", &name],
        &["check", "--profile", "x.toml"],
        &["check", "--profile", &name],
        &["measure", "x.toml"],
        &["tune", "plan", "--plan", "x.json"],
        &["tune", "apply", "--plan", "x.json", "--yes"],
        &[&name],
    ] {
        let output = run(folder.path(), args);
        let text = stderr(&output);
        assert!(!text.is_empty(), "{args:?}");
        assert_eq!(hidden(&text), [], "{args:?}: {text:?}");
        assert_eq!(hidden(&String::from_utf8_lossy(&output.stdout)), [], "{args:?}");
    }
    let text = stderr(&run(folder.path(), &["report", &name]));
    assert!(
        text.contains("x\\x1b]0;title\\x07\\x1b[8m\\x9b2J\\u{202e}\\u{200b}.rtproof"),
        "{text}"
    );
}

#[test]
fn an_imported_document_does_not_command_a_terminal_or_a_page() {
    let folder = folder();
    let fixture =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/import/cyclictest-2.4.json");
    let words = serde_json::json!(format!("cyclictest {HOSTILE}")).to_string();
    let document = std::fs::read_to_string(fixture).unwrap();
    // The first byte of a seed chooses the target.
    let document = document[1..].replace("\"cyclictest", words.trim_end_matches('"'));
    std::fs::write(folder.path().join("x.json"), document).unwrap();
    for args in [
        &["import", "x.json", "-o", "x.rtproof"][..],
        &["report", "x.rtproof", "--html", "x.html"],
        &["report", "x.rtproof", "--json"],
        &["export", "x.rtproof", "--format", "json"],
    ] {
        let output = run(folder.path(), args);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(hidden(&text), [], "{args:?}: {text}");
        assert_eq!(hidden(&stderr(&output)), [], "{args:?}");
    }
    let json = run(folder.path(), &["export", "x.rtproof", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert!(json.to_string().contains('\u{202e}'), "data stays exact");
    let html = std::fs::read_to_string(folder.path().join("x.html")).unwrap();
    assert!(html.contains("\\x1b[8m") && hidden(&html).is_empty(), "{:?}", hidden(&html));
}
