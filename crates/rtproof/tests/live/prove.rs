//! The main job on this machine: what is printed, recorded, judged again and exported agrees.

use std::{path::Path, process::Command};

use crate::support::{
    self, FAILED, NOT_PROVEN, REFUSED, USAGE, alone, assert_accounted, binary, code, expect_code,
    files, folder, load_workers, only, report, run, stderr, stdout,
};
use serde_json::Value;

/// Everything but the line that names the files.
/// The answer, which a run gives below what it said before it measured and a report gives first,
/// and all the rest.
fn answer_and_rest(text: &str) -> (String, String) {
    let kept = text.lines().filter(|line| !line.trim_start().starts_with("record "));
    let lines: Vec<&str> = kept.collect();
    let starts = |line: &str, words: [&str; 2]| words.iter().any(|word| line.starts_with(word));
    let from = lines.iter().position(|line| line.starts_with("Verdict")).expect("a verdict");
    let after = &lines[from..];
    let to = after.iter().position(|line| starts(line, ["rtproof ", "Measure"])).expect("more");
    let rest = [&lines[..from], &after[to..]].concat();
    (after[..to].join("\n"), rest.join("\n"))
}

#[test]
fn a_run_and_its_report_are_equal_byte_for_byte() {
    let _alone = alone();
    let folder = folder();
    let output = run(folder.path(), &["prove", "--for", "4s", "--budget", "100us"]);
    assert!(
        [REFUSED, NOT_PROVEN].contains(&code(&output)),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let text = stdout(&output);
    for part in ["rtproof ", "Checks   ", "Measure  CPU", "scheduled", "Verdict  "] {
        assert!(text.contains(part), "\"{part}\" is missing in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours in a pipe");
    assert!(!text.to_lowercase().contains("guaranteed"));
    let record = only(folder.path(), ".rtproof");
    // By the name that the run gave it: the next command names it too.
    let name = record.file_name().and_then(|name| name.to_str()).expect("UTF-8");
    let again = run(folder.path(), &["report", name]);
    assert_eq!(code(&again), code(&output));
    let (said, shown) = (answer_and_rest(&text), answer_and_rest(&stdout(&again)));
    assert_eq!(said.0, shown.0);
    for (said, shown) in said.1.lines().zip(shown.1.lines()) {
        assert_eq!(said, shown);
    }
    assert_eq!(said.1, shown.1);
    let (json, json_code) = report(&record);
    assert_eq!(json_code, code(&output));
    assert_accounted(&json);
    assert_eq!(json["schema"], "rtproof/report/2");
    let sentence = json["verdict"]["sentence"].as_str().expect("a sentence");
    let answer = json["answer"]["result"].as_str().expect("an answer");
    assert!(answer.ends_with(sentence), "{answer}");
    let next = json["answer"]["next"].as_str();
    assert_eq!(next.is_some(), text.contains("\nNext     "), "{next:?}");
    let checks = rtproof_judge::checks::all().count();
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(checks));
    assert_eq!(json["phases"][0]["name"], "idle");
    let loads: Vec<&str> = json["loads"]
        .as_array()
        .expect("loads")
        .iter()
        .filter_map(|l| l["name"].as_str())
        .collect();
    assert_eq!(loads, ["cpu", "memory", "net", "disk"]);
    for load in json["loads"].as_array().expect("loads") {
        assert!(load["work"].as_u64().is_some_and(|work| work > 0), "{load}");
    }
    assert!(load_workers().is_empty());
    // Record and report, and nothing else: no journal, no file of the disk load.
    assert_eq!(files(folder.path(), "").len(), 2, "{:?}", files(folder.path(), ""));
    assert_eq!(verdict_in(&record), json["verdict"]);
}

/// The verdict as the record holds it, read by another program.
fn verdict_in(record: &Path) -> Value {
    let sql = "SELECT document FROM verdict";
    let output = Command::new("sqlite3").arg(record).arg(sql).output().expect("sqlite3");
    serde_json::from_slice(&output.stdout).expect("the verdict as JSON")
}

#[test]
fn every_wake_up_is_accounted_for_idle_and_loaded() {
    let _alone = alone();
    for (period, load, scheduled) in [
        ("5us", "idle", 400_000),
        ("5us", "cpu+memory", 400_000),
        ("100us", "idle", 20_000),
        ("100us", "cpu+memory+net+disk+fork", 20_000),
        ("1ms", "idle", 2000),
        ("1ms", "cpu+memory+net+disk+fork", 2000),
    ] {
        let folder = folder();
        let output = run(
            folder.path(),
            &["prove", "--for", "2s", "--period", period, "--load", load, "--budget", "1h"],
        );
        assert!([0, NOT_PROVEN].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));
        let (json, _) = report(&only(folder.path(), ".rtproof"));
        assert_accounted(&json);
        for cpu in json["cpus"].as_array().expect("CPUs") {
            assert_eq!(cpu["measured"]["scheduled"], scheduled, "{period} {load}");
            assert_eq!(cpu["end"]["reason"], "complete");
        }
    }
}

#[test]
fn an_edited_record_is_refused_and_a_forced_one_is_marked() {
    let _alone = alone();
    let folder = folder();
    run(folder.path(), &["prove", "--for", "1s", "--load", "idle", "--budget", "1h", "-o", "run"]);
    let path = folder.path().join("run.rtproof");
    let bytes = std::fs::read(&path).expect("the record");
    // The digest, the first page, somewhere in the middle, the last byte.
    for at in [60, 4000, bytes.len() / 2, bytes.len() - 1] {
        let mut edited = bytes.clone();
        edited[at] ^= 1;
        std::fs::write(&path, &edited).expect("an edited record");
        let output = run(folder.path(), &["report", "run.rtproof"]);
        expect_code(&output, FAILED);
        assert!(output.stdout.is_empty(), "byte {at}: rendered silently");
        let flagged = run(folder.path(), &["report", "run.rtproof", "--accept-altered"]);
        if code(&flagged) != FAILED {
            assert!(stdout(&flagged).contains("altered"), "byte {at}: {}", stdout(&flagged));
        }
        expect_code(&run(folder.path(), &["export", "--format", "json", "run.rtproof"]), FAILED);
    }
    std::fs::write(&path, &bytes).expect("the record again");
    assert_ne!(code(&run(folder.path(), &["report", "run.rtproof"])), FAILED);
}

#[test]
fn exports_hold_every_wake_up() {
    let _alone = alone();
    let folder = folder();
    let args =
        ["prove", "--for", "3s", "--period", "500us", "--cpus", "0", "--load", "idle", "-o", "run"];
    expect_code(&run(folder.path(), &args), 0);
    let export = |args: &[&str]| {
        let mut all = vec!["export", "run.rtproof"];
        all.extend(args);
        let output = run(folder.path(), &all);
        expect_code(&output, 0);
        stdout(&output)
    };
    let csv = export(&["--format", "csv"]);
    let mut lines = csv.lines().filter(|line| !line.starts_with('#'));
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let column = |name: &str| head.iter().position(|h| h.contains(name)).expect(name);
    let (n, missed) = (column("sampled"), column("missed"));
    let sum: u64 = lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            cells[n].parse::<u64>().expect("a count")
                + cells[missed].parse::<u64>().expect("a count")
        })
        .sum();
    assert_eq!(sum, 6000, "{csv}");
    let json: Value = serde_json::from_str(&export(&["--format", "json"])).expect("JSON");
    assert!(json["schema"].as_str().is_some_and(|schema| schema.starts_with("rtproof/record/")));
    let script = format!("{} export run.rtproof --format json | head -c 9", binary());
    let script = format!("{script}; echo \" ${{PIPESTATUS[0]}}\"");
    let cut = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output();
    assert!(stdout(&cut.expect("bash")).ends_with(" 0\n"), "a reader that goes away is no error");
    assert!(export(&["--format", "hdr"]).contains("Tag=t0.cpu0,"));
    let output = run(folder.path(), &["export", "run.rtproof", "--format", "csv", "--table", "x"]);
    assert!(stderr(&output).contains("seconds"), "{}", stderr(&output));
    // pandas and spreadsheets aside: any SQLite reader gets the same sums.
    let sql = "SELECT sum(n) FROM hist";
    let output =
        Command::new("sqlite3").current_dir(folder.path()).args(["run.rtproof", sql]).output();
    assert_eq!(String::from_utf8_lossy(&output.expect("sqlite3").stdout).trim(), "6000");
}

#[test]
fn an_ordinary_user_gets_a_measurement_and_no_verdict() {
    let _alone = alone();
    let folder = folder();
    let open = Command::new("chmod").arg("777").arg(folder.path()).status();
    assert!(open.is_ok_and(|status| status.success()));
    let binary = folder.path().join("rtproof");
    std::fs::copy(self::binary(), &binary).expect("a copy that anybody may run");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["prove", "--for", "2s", "--load", "cpu", "--budget", "1h", "-o", "run"])
        .current_dir(folder.path())
        .output()
        .expect("setpriv");
    expect_code(&output, NOT_PROVEN);
    assert!(stdout(&output).contains("SCHED_OTHER, without any real-time priority"));
    assert!(stdout(&output).contains("Spikes are not explained, because"), "{}", stdout(&output));
    let (json, _) = report(&folder.path().join("run.rtproof"));
    assert_accounted(&json);
    assert!(json["spikes"]["recorder"]["off"].is_string());
}

#[test]
fn a_task_that_comes_during_the_run_marks_it_as_moved() {
    let _alone = alone();
    let folder = folder();
    let child = support::start(
        folder.path(),
        &["prove", "--for", "3s", "--cpus", "0", "--load", "idle", "--budget", "1h", "-o", "run"],
    );
    support::wait_for("the record", 10, || folder.path().join("run.rtproof").exists());
    // A real-time task that was not there before: it sleeps, and ends by itself.
    let mut task = Command::new("chrt").args(["-f", "5", "sleep", "30"]).spawn().expect("chrt");
    let output = child.wait_with_output().expect("it ends");
    task.kill().expect("the task is ended");
    task.wait().expect("the task is gone");
    expect_code(&output, NOT_PROVEN);
    let (json, _) = report(&folder.path().join("run.rtproof"));
    let changes = json["changes"].as_array().expect("changes");
    assert!(
        changes.iter().any(
            |c| c["to"].to_string().contains("sleep") || c["key"].to_string().contains("sleep")
        ),
        "{changes:?}"
    );
    let text = stdout(&output);
    assert!(text.contains("Real-time tasks came or went during the run (sleep)"), "{text}");
    assert!(!text.contains("settings changed"), "no setting did: {text}");
}

#[test]
fn a_single_wake_up_covers_no_time() {
    let _alone = alone();
    let folder = folder();
    let args = [
        "prove", "--for", "1s", "--period", "1s", "--cpus", "0", "--load", "idle", "--budget",
        "1h", "-o", "run",
    ];
    let output = run(folder.path(), &args);
    expect_code(&output, NOT_PROVEN);
    let text = stdout(&output);
    assert!(text.contains("1 wake-up covers no time"), "{text}");
    assert!(text.contains("Measure  CPU 0  FIFO"), "{text}");
    let (json, _) = report(&folder.path().join("run.rtproof"));
    assert_eq!(json["verdict"]["basis"]["exposure_ns"], 0);
    assert_eq!(json["verdict"]["basis"]["late_rate_upper_per_hour"], Value::Null);
}

#[test]
fn a_number_of_wake_ups_ends_a_run() {
    let _alone = alone();
    let budget = ["--budget", "1h", "--period", "100us", "--load", "idle", "--json"];
    // So many of each thread; or what the time allows, if that is shorter.
    for (end, scheduled) in [
        (&["--samples", "5001"][..], 5001),
        (&["--samples", "5001", "--for", "1m"], 5001),
        (&["--samples", "999999999", "--for", "200ms"], 2000),
    ] {
        let folder = folder();
        let output = run(folder.path(), &[&["prove"][..], &budget, end].concat());
        expect_code(&output, NOT_PROVEN);
        let (json, _) = report(&only(folder.path(), ".rtproof"));
        assert_accounted(&json);
        for cpu in json["cpus"].as_array().expect("CPUs") {
            assert_eq!(cpu["measured"]["scheduled"], scheduled, "{end:?}");
        }
        // They carry p99.9 and no p99.99, which has no value.
        let carried = |q: &Value| q["value_ns"].is_u64();
        let wake = json["all"]["wake"].as_array().expect("quantiles");
        assert!(wake.iter().any(|q| q["q"]["of"] == 20 && q["q"]["above"] == 19 && carried(q)));
        assert!(!wake.iter().any(|q| q["q"]["of"] == 100_000 && carried(q)), "{wake:?}");
    }
    for bad in ["0", "-1", "1.5", "many", "99", "18446744073709551615", "18446744073709551616"] {
        for command in ["prove", "measure"] {
            let folder = folder();
            let output = run(folder.path(), &[command, &format!("--samples={bad}")]);
            expect_code(&output, USAGE);
            assert!(stderr(&output).contains("samples"), "{bad}: {}", stderr(&output));
            assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "{bad}");
        }
    }
}

#[test]
fn json_is_the_answer_and_nothing_else() {
    let _alone = alone();
    let folder = folder();
    let output =
        run(folder.path(), &["prove", "--for", "1s", "--load", "idle", "--json", "-o", "run"]);
    expect_code(&output, 0);
    let json: Value = serde_json::from_slice(&output.stdout).expect("stdout is JSON");
    assert_eq!(json["verdict"]["answer"], "not_judged");
    let schema =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/report.schema.json");
    let schema: Value =
        serde_json::from_slice(&std::fs::read(schema).expect("the schema")).expect("JSON");
    assert!(schema["properties"]["verdict"].is_object());
    for key in schema["required"].as_array().expect("required fields") {
        assert!(json.get(key.as_str().expect("a name")).is_some(), "{key} is missing");
    }
}

#[test]
fn stress_ng_is_a_load_where_it_is_installed() {
    let _alone = alone();
    let folder = folder();
    let installed = Command::new("stress-ng").arg("--version").output().is_ok();
    let args =
        ["prove", "--for", "2s", "--load", "stress-ng:--cpu 1", "--budget", "1h", "-o", "run"];
    let output = run(folder.path(), &args);
    expect_code(&output, NOT_PROVEN);
    let (json, _) = report(&folder.path().join("run.rtproof"));
    if installed {
        assert!(
            json["loads"][0]["work"].as_u64().is_some_and(|work| work > 0),
            "{}",
            json["loads"]
        );
        assert!(
            json["notes"].as_array().is_some_and(|n| n.iter().all(|n| n["id"] != "load-failed"))
        );
    } else {
        assert!(stdout(&output).contains("install"), "{}", stdout(&output));
    }
}
