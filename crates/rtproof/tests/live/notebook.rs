//! docs/notebook.md: code that needs only Python runs as written, and its numbers are those of
//! the report.

use std::{fs, path::Path, process::Command};

use crate::support::{ACCEPTED, alone, expect_code, folder, only, report, run, stderr, stdout};

/// The first block of Python on the page.
fn program() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notebook.md");
    let page = fs::read_to_string(path).expect("the page");
    let (_, rest) = page.split_once("```python\n").expect("a block of Python");
    rest.split_once("```").expect("its end").0.to_owned()
}

#[test]
fn the_page_of_python_runs() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3");
        return;
    }
    let _alone = alone();
    let folder = folder();
    let mut reports = Vec::new();
    for name in ["baseline", "tuned"] {
        let args = ["measure", "--for", "1s", "--period", "2ms", "--no-trace", "-o", name];
        expect_code(&run(folder.path(), &args), ACCEPTED);
        let record = only(&folder.path().join(name), ".rtproof");
        for table in ["hist", "seconds", "host"] {
            let record = record.to_str().expect("UTF-8");
            let args = ["export", record, "--format", "csv", "--table", table];
            let output = run(folder.path(), &args);
            expect_code(&output, ACCEPTED);
            let path = folder.path().join(format!("{name}-{table}.csv"));
            fs::write(path, output.stdout).expect("a table");
        }
        reports.push(report(&record).0);
    }
    let mut python = Command::new("python3");
    let output = python.args(["-c", &program()]).current_dir(folder.path()).output();
    let output = output.expect("python3 starts");
    expect_code(&output, 0);
    let text = stdout(&output);
    let row = |name: &str| -> Vec<f64> {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        let words = line.unwrap_or_else(|| panic!("{name}: {text}{}", stderr(&output)));
        words.split_whitespace().skip(1).take(2).map(|word| word.parse().expect(words)).collect()
    };
    let of_reports = |key: &str, unit: f64| -> Vec<f64> {
        reports.iter().map(|report| report["all"][key].as_f64().expect(key) / unit).collect()
    };
    let is_near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.06);
    for (name, key, unit) in [
        ("n", "sampled", 1.0),
        ("missed", "missed", 1.0),
        ("mean", "mean_ns", 1e3),
        ("max", "max_ns", 1e3),
    ] {
        assert!(is_near(&row(name), &of_reports(key, unit)), "{name}: {text}");
    }
    let median = |report: &serde_json::Value| -> f64 {
        let all = report["all"]["wake"].as_array().expect("quantiles");
        let half = all.iter().find(|q| q["q"]["above"] == 1 && q["q"]["of"] == 2).expect("p50");
        half["value_ns"].as_f64().expect("nanoseconds") / 1e3
    };
    let medians: Vec<f64> = reports.iter().map(median).collect();
    assert!(is_near(&row("p50"), &medians), "{medians:?}: {text}");
}
