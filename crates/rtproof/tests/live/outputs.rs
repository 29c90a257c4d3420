//! Files that are written: never over evidence, whole or not there, tried before anything is
//! measured.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Output,
};

use crate::support::{
    self, FAILED, USAGE, alone, code, expect_code, files, folder, only, run, stderr, stdout,
};

/// A short run; the exit code is the machine's business.
fn prove(folder: &Path, target: &str) -> Output {
    let _alone = alone();
    run(folder, &["prove", "--for", "200ms", "--load", "idle", "-o", target])
}

/// A folder with `run.rtproof` and its report.
#[track_caller]
fn proven() -> tempfile::TempDir {
    let folder = folder();
    let output = prove(folder.path(), "run");
    assert!([0, 2, 3].contains(&code(&output)), "{}", stderr(&output));
    folder
}

/// All names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    files(folder, "").into_iter().map(name).collect()
}

/// `prove -o TARGET` fails before it measures, with all these words, the first only once.
#[track_caller]
fn refused(folder: &Path, target: &str, says: &[&str]) {
    let before = names(folder);
    let output = prove(folder, target);
    expect_code(&output, FAILED);
    let text = stderr(&output);
    for part in says {
        assert!(text.contains(part), "{target}: expected \"{part}\" in:\n{text}");
    }
    assert!(text.contains("--output"), "{target}: no next step in:\n{text}");
    assert!(text.matches("os error").count() < 2, "{target}: told twice:\n{text}");
    assert!(output.stdout.is_empty(), "{target}: it was begun:\n{}", stdout(&output));
    assert_eq!(names(folder), before, "{target}");
}

#[test]
fn a_record_is_never_written_over() {
    let folder = proven();
    let record = folder.path().join("run.rtproof");
    let bytes = fs::read(&record).expect("the record");
    fs::hard_link(&record, folder.path().join("hard")).expect("a link");
    symlink("run.rtproof", folder.path().join("soft")).expect("a link");
    let before = names(folder.path());
    let absolute = record.to_str().expect("UTF-8");
    let journal = "run.rtproof-journal";
    for target in ["run.rtproof", "./run.rtproof", absolute, "hard", "soft", journal] {
        for args in [
            ["export", "run.rtproof", "--format", "json", "-o", target].as_slice(),
            &["export", "run.rtproof", "--format", "csv", "-o", target],
            &["report", "run.rtproof", "--html", target],
        ] {
            if target == journal {
                fs::write(folder.path().join(journal), "").expect("a journal");
            }
            let output = run(folder.path(), args);
            if target == journal {
                fs::remove_file(folder.path().join(journal)).expect("still there");
            }
            expect_code(&output, USAGE);
            let text = stderr(&output);
            assert!(text.contains(target) && text.contains("another file"), "{args:?}: {text}");
            assert!(output.stdout.is_empty(), "{args:?}: {}", stdout(&output));
        }
    }
    let mut appends =
        support::command(folder.path(), &["export", "run.rtproof", "--format", "csv"]);
    let to = fs::OpenOptions::new().append(true).open(&record).expect("the record");
    expect_code(&appends.stdout(to).output().expect("it runs"), USAGE);
    assert_eq!(fs::read(&record).expect("the record"), bytes);
    assert_eq!(names(folder.path()), before);
}

#[test]
fn files_beside_the_output_are_left_alone() {
    let folder = proven();
    let path = |name: &str| folder.path().join(name);
    // The record has the very name that an export is begun under.
    fs::rename(path("run.rtproof"), path("a.json.part")).expect("renamed");
    let bytes = fs::read(path("a.json.part")).expect("the record");
    fs::write(path("a.json"), "old").expect("a file");
    let args = ["export", "a.json.part", "--format", "json", "-o", "a.json"];
    expect_code(&run(folder.path(), &args), 0);
    assert_eq!(fs::read(path("a.json.part")).expect("the record"), bytes);
    let text = fs::read_to_string(path("a.json")).expect("the export");
    serde_json::from_str::<serde_json::Value>(&text).expect("JSON, and all of it");
    assert_eq!(names(folder.path()), ["a.json", "a.json.part", "run.html"]);
}

#[test]
fn exports_are_whole_or_not_there() {
    let folder = proven();
    let export = |target: &str| {
        run(folder.path(), &["export", "run.rtproof", "--format", "json", "-o", target])
    };
    expect_code(&export("a.json"), 0);
    let whole = fs::read(folder.path().join("a.json")).expect("the export");
    for stdout in ["/dev/stdout", "-"] {
        let output = export(stdout);
        expect_code(&output, 0);
        assert_eq!(output.stdout, whole, "{stdout}: written to as it is");
    }
    fs::create_dir(folder.path().join("taken")).expect("a folder");
    for (target, says) in
        [("missing/a.json", "No such file"), ("taken", "a folder"), ("/dev/full", "No space left")]
    {
        let output = export(target);
        expect_code(&output, FAILED);
        let text = stderr(&output);
        assert!(text.contains(target), "{text}");
        assert_eq!(text.matches(says).count(), 1, "{text}");
    }
    let args = ["report", "run.rtproof", "--html", "taken"];
    let output = run(folder.path(), &args);
    expect_code(&output, FAILED);
    assert!(output.stdout.is_empty(), "{}", stdout(&output));
    assert_eq!(names(folder.path()), ["a.json", "run.html", "run.rtproof", "taken"]);
}

#[test]
fn a_full_disk_keeps_the_export_of_before() {
    let folder = proven();
    fs::write(folder.path().join("a.json"), "old").expect("a file");
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec '{}' export run.rtproof --format json -o a.json",
        support::binary()
    );
    let mut shell = std::process::Command::new("bash");
    let output = shell.args(["-c", &script]).current_dir(folder.path()).output().expect("bash");
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("a.json"), "{}", stderr(&output));
    assert_eq!(fs::read(folder.path().join("a.json")).expect("still there"), b"old");
    assert_eq!(names(folder.path()), ["a.json", "run.html", "run.rtproof"]);
}

#[test]
fn wrong_tables_are_found_before_anything_is_opened() {
    let folder = folder();
    for (args, says) in [
        (["--format", "csv", "--table", "secnods"], "seconds"),
        (["--format", "json", "--table", "seconds"], "whole record"),
    ] {
        let mut all = vec!["export", "missing.rtproof", "-o", "out"];
        all.extend(args);
        let output = run(folder.path(), &all);
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert!(names(folder.path()).is_empty());
    }
}

#[test]
fn both_files_of_a_run_are_tried_first() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("a.html")).expect("a folder");
    refused(folder.path(), "a", &["a.html", "a folder"]);
    fs::create_dir(path("b.rtproof")).expect("a folder");
    refused(folder.path(), "b", &["b.rtproof", "a folder"]);
    fs::write(path("c.html"), "precious").expect("a file");
    for target in ["c", "c.html", "c.rtproof"] {
        refused(folder.path(), target, &["c.html", "there already", "move it away"]);
    }
    assert_eq!(fs::read(path("c.html")).expect("still there"), b"precious");
    symlink("nowhere", path("d.html")).expect("a link");
    refused(folder.path(), "d", &["d.html", "there already"]);
    // The names just fit, but not while the files are being made.
    refused(folder.path(), &"e".repeat(247), &["cannot be made there", "too long"]);
}

#[test]
fn a_named_folder_must_exist() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").expect("a file");
    for target in ["newdir/", "newdir/.", "newdir/run", "newdir/.."] {
        refused(folder.path(), target, &["newdir", "make the folder"]);
    }
    refused(folder.path(), "file/", &["file/: not a folder"]);
    refused(folder.path(), "file/run", &["file: not a folder"]);
    refused(folder.path(), "/proc/run", &["/proc/run.rtproof"]);
}

#[test]
fn runs_of_the_same_second_do_not_collide() {
    let folder = folder();
    // Whatever second the run starts in, its first two names are taken.
    let now = now_seconds();
    let stem = {
        let output = prove(folder.path(), ".");
        assert!([0, 2, 3].contains(&code(&output)), "{}", stderr(&output));
        only(folder.path(), ".rtproof").file_stem().expect("a name").to_string_lossy().into_owned()
    };
    let (head, _) = stem.rsplit_once('-').expect("prove-HOST-TIME");
    let later: Vec<String> =
        (0..30).map(|second| format!("{head}-{}", utc(now + second))).collect();
    for stem in &later {
        fs::write(folder.path().join(format!("{stem}.rtproof")), "").expect("a file");
        fs::write(folder.path().join(format!("{stem}-2.html")), "").expect("a file");
    }
    let output = prove(folder.path(), ".");
    assert!([0, 2, 3].contains(&code(&output)), "{}", stderr(&output));
    let record = only(folder.path(), "-3.rtproof");
    assert!(record.with_extension("html").is_file());
}

fn now_seconds() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// `YYYYmmddTHHMMSS` as the names of records have it.
fn utc(seconds: u64) -> String {
    let seconds = format!("@{seconds}");
    let mut date = std::process::Command::new("date");
    let output = date.args(["-u", "-d", &seconds, "+%Y%m%dT%H%M%S"]).output().expect("date");
    stdout(&output).trim().to_owned()
}
