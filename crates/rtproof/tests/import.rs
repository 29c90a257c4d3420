//! `rtproof import` and the use of its records, as a user runs them.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

fn rtproof(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtproof"));
    command.current_dir(folder).env("NO_COLOR", "1").args(args).output().expect("it runs")
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/imports").join(name);
    path.canonicalize().expect("a fixture").display().to_string()
}

fn out(output: &Output, code: i32) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn the_mean_is_the_same_where_it_is_imported_and_where_it_is_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // The tool's own where samples have no row (38), that of the rows where all have one.
    let files =
        [("cyclictest-2.4-h.txt", 38_000.0), ("cyclictest-2.4-v.txt", 34_146.666_666_666_664)];
    for (name, right) in files {
        let file = fixture(name);
        let imported: Value =
            serde_json::from_str(&out(&rtproof(at, &["import", &file, "--json"]), 0))
                .expect("JSON");
        let all = imported[0]["series"].as_array().expect("series");
        let [n, sum] = all.iter().fold([0.0, 0.0], |[n, sum], one| {
            let here = one["n"].as_f64().expect("n");
            [n + here, sum + here * one["mean_ns"].as_f64().expect("a mean")]
        });
        let args = ["compare", &file, &file, "--force", "--json"];
        let output = rtproof(at, &args);
        let compared: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let lines = compared["table"].as_array().expect("a table");
        let mean = lines.iter().find(|line| line["statistic"] == "mean").expect("the mean");
        let mean = mean["cells"][0]["value"].as_f64().expect("a value");
        assert!((mean - sum / n).abs() < 1e-6, "{name}: {mean} and {}", sum / n);
        assert!((mean - right).abs() < 1e-6, "{name}: {mean}");
    }
}

#[test]
fn a_result_becomes_a_record_that_is_shown_and_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let text = out(&rtproof(at, &["import", &fixture("cyclictest-2.4.json")]), 0);
    assert!(text.contains("Imported cyclictest 2.40") && text.contains("p99"), "{text}");
    let record = "cyclictest-2.4.json.rtproof";
    assert!(at.join(record).exists() && text.contains(record), "{text}");

    let again = rtproof(at, &["import", &fixture("cyclictest-2.4.json")]);
    assert!(out(&again, 1).is_empty());
    assert!(String::from_utf8_lossy(&again.stderr).contains("never overwrites"));

    let report = out(&rtproof(at, &["report", record, "--html", "x.html"]), 0);
    assert!(report.starts_with("Imported cyclictest 2.40"), "{report}");
    let page = std::fs::read_to_string(at.join("x.html")).expect("the page");
    assert!(page.contains("What it measured") && page.contains("CPU"), "{page}");
    let json: Value =
        serde_json::from_str(&out(&rtproof(at, &["report", record, "--json"]), 0)).expect("JSON");
    assert_eq!(
        (&json["schema"], &json["tool"]),
        (&"rtproof/import/1".into(), &"cyclictest".into())
    );
    let n = json["series"][0]["n"].as_u64().expect("a count");

    for (format, expected) in [
        ("json", "\"imported\""),
        ("csv", "thread,cpu,second"),
        ("hdr", "HISTFAAA"),
        ("cyclictest", "# Histogram"),
        ("junit", "<testsuites name=\"rtproof run\""),
        ("tap", "TAP version 13\n1.."),
    ] {
        let text = out(&rtproof(at, &["export", record, "--format", format]), 0);
        assert!(text.contains(expected), "{format}: {text}");
    }
    let export = ["export", record, "--format", "cyclictest", "-o", "again.hist"];
    out(&rtproof(at, &export), 0);
    let again = out(&rtproof(at, &["import", "again.hist", "--show", "--json"]), 0);
    let again: Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!(again[0]["series"][0]["n"], n);
    assert!(again[0]["record"].is_null() && !at.join("again.hist.rtproof").exists());
}

#[test]
fn several_files_are_read_before_any_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("records")).expect("a folder");
    let (good, also) = (fixture("oslat-2.4.json"), fixture("jitterdebugger.raw"));
    std::fs::write(at.join("bad"), "# Histogram\n000000 0x0\n").expect("a file");
    let bad = rtproof(at, &["import", &good, "bad", "-o", "records"]);
    assert!(out(&bad, 1).is_empty());
    let error = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert!(error.contains("bad, line 2: \"0x0\", expected a number"), "{error}");
    let names = || -> Vec<PathBuf> {
        let folder = std::fs::read_dir(at.join("records")).expect("the folder");
        folder.map(|entry| entry.expect("an entry").path()).collect()
    };
    assert!(names().is_empty());
    out(&rtproof(at, &["import", &good, &also, "-o", "records"]), 0);
    assert_eq!(names().len(), 2);
}

#[test]
fn errors_have_the_right_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("empty"), "").expect("a file");
    std::fs::write(at.join("binary"), b"\x7fELF\x02\x01").expect("a file");
    let good = fixture("cyclictest-2.4-h.txt");
    for (args, code, expected) in [
        (&["import"][..], 64, "FILE"),
        (&["import", &good, "--format", "xml"], 64, "cyclictest-histogram"),
        (&["import", &good, "--interval", "200"], 64, "no unit"),
        (&["import", "none"], 1, "none: cannot be read"),
        (&["import", "empty"], 1, "empty: empty"),
        (&["import", "binary"], 1, "binary: not the result of a tool"),
        (&["import", "."], 1, "a folder"),
    ] {
        let output = rtproof(at, args);
        assert!(out(&output, code).is_empty(), "{args:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    let imported = ["import", &good, "--interval", "1ms", "--duration", "1s", "--show"];
    let imported = out(&rtproof(at, &imported), 0);
    assert!(
        imported.contains("period 1 ms, duration 1 s") && imported.contains("skipped"),
        "{imported}"
    );
}
