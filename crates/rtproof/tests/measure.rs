//! `rtproof measure` on this machine: cells, index, rows, and what is left of a matrix that was cut
//! short.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::support::{
    self, ACCEPTED, FAILED, NOT_PROVEN, USAGE, alone, assert_accounted, command, expect_code,
    files, folder, kill, report, run, stderr, stdout, wait_for,
};
use rtproof_run::measure::matrix::Matrix;
use serde_json::Value;

/// The index of a matrix, as its folder has it.
fn index(folder: &Path) -> Value {
    let bytes = std::fs::read(folder.join("m/index.json")).expect("the index");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn states(folder: &Path) -> Vec<String> {
    let index = index(folder);
    let cells = index["cells"].as_array().expect("cells");
    cells.iter().map(|cell| cell["state"].as_str().unwrap_or("").to_owned()).collect()
}

fn records(folder: &Path) -> Vec<std::path::PathBuf> {
    files(&folder.join("m"), ".rtproof")
}

/// Starts three cells and sends a signal while the second is measured.
fn cut_short(folder: &Path, signal: &str) -> Output {
    let args = ["measure", "--cpus", "0", "--period", "1ms,2ms,5ms", "--for", "3s", "--no-trace"];
    let mut child = command(folder, &[&args[..], &["-o", "m"]].concat());
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let second = folder.join("m/002-timer-wakeup-cpu0-fifo80-2ms-idle.rtproof");
    wait_for("the second cell", 60, || second.exists());
    std::thread::sleep(std::time::Duration::from_millis(2000));
    kill(signal, child.id());
    child.wait_with_output().expect("it ends")
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id");
    String::from_utf8_lossy(&id.stdout).trim() == "0"
}

#[test]
fn what_is_wrong_is_named_before_anything_is_measured() {
    let folder = folder();
    let matrix = folder.path().join("bad.toml");
    for (text, part) in [
        ("for = \"2s\"\n[[block]]\nworklod = \"memory\"\n", "bad.toml:3: no such key"),
        ("workload = \"nothing\"\n", "bad.toml:1: `nothing` is no workload"),
        ("\n\nperiod = \"1ns\"\n", "bad.toml:3: a period must be"),
        ("cpus = \"0-9000\"\n", "--cpus 0-9000"),
        ("for = \"1s\"\nperiod = \"2s\"\n", "longer than a cell"),
        ("samples = 0\n", "bad.toml:1: 0 wake-ups"),
        ("samples = 20\n", "--samples 20 with a period of 1 ms"),
        ("= 1\n", "bad.toml:1:"),
    ] {
        std::fs::write(&matrix, text).expect("a file");
        let output = run(folder.path(), &["measure", "--matrix", "bad.toml", "-o", "m"]);
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains(part), "{text}{}", stderr(&output));
    }
    std::fs::write(&matrix, [0xff, 0xfe, 0]).expect("a file");
    for args in [
        &["measure", "--matrix", "bad.toml"][..],
        &["measure", "--matrix", "none.toml"],
        &["measure", "--resume", "."],
        &["measure", "--resume", "m", "--cpus", "0"],
        &["measure", "--resume", "m", "--samples", "5000"],
        &["measure", "--matrix", "bad.toml", "--samples", "5000"],
        &["measure", "--workload", "memory@0,registers"],
        &["measure", "--workload", "memory@0,registers@0"],
        &["measure", "--policy", "best"],
        &["measure", "--rows", "--json"],
        &["measure", "--repeat", "0"],
    ] {
        expect_code(&run(folder.path(), args), USAGE);
    }
    assert!(files(folder.path(), "").iter().all(|path| path.ends_with("bad.toml")), "nothing made");
}

#[test]
fn the_examples_match_the_docs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("examples/measure/s2.toml")).expect("the example");
    let matrix = Matrix::parse(&text, "s2.toml").expect("a matrix");
    // Six on each of three CPUs, and two mixed cells; two loads; two conditions.
    assert_eq!(matrix.blocks[0].workloads.len(), 6);
    assert_eq!(matrix.blocks[1].workloads.len(), 2);
    assert!(matrix.blocks.iter().all(|block| block.loads.len() == 2));
    assert_eq!(matrix.conditions.len(), 2);
    // The same on this machine, whatever CPUs it has.
    let folder = folder();
    let small = text
        .replace("cpus = \"1-3\"", "cpus = \"0\"")
        .replace("usleep@1,nanosleep-relative@2,memory@3", "usleep@0")
        .replace("registers@1,kill@2,clock-gettime@3", "kill@0");
    std::fs::write(folder.path().join("small.toml"), small).expect("a file");
    let output = run(folder.path(), &["measure", "--matrix", "small.toml", "--plan"]);
    expect_code(&output, ACCEPTED);
    let text = stdout(&output);
    assert!(text.contains("32 cells, 5 min 20 s of measuring"), "{text}");
    assert!(text.contains("memory:64KiB, CPU 0, fifo 20, 1 ms, load cpu+memory, tuned"), "{text}");
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn each_combination_is_a_record_and_a_row_of_the_index() {
        let _alone = alone();
        let folder = folder();
        let args = ["measure", "--workload", "timer-wakeup,registers", "--cpus", "0"];
        let rest = ["--policy", "other,fifo", "--for", "1s", "--no-trace", "-o", "m"];
        let output = run(folder.path(), &[&args[..], &rest].concat());
        expect_code(&output, ACCEPTED);
        let text = stdout(&output);
        for part in ["4 cells", "registers, CPU 0, other, 1 ms, load idle", "fifo 80", "4 done"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(states(folder.path()), ["done"; 4]);
        assert_eq!(records(folder.path()).len(), 4);
        let found = index(folder.path());
        assert_eq!(found["schema"], "rtproof/measure/1");
        for (cell, record) in
            found["cells"].as_array().expect("cells").iter().zip(records(folder.path()))
        {
            let (report, _) = report(&record);
            assert_accounted(&report);
            assert_eq!(report["record"]["state"], "sealed");
            let thread = &cell["threads"][0];
            assert_eq!(thread["samples"]["n"], report["cpus"][0]["measured"]["sampled"]);
            assert_eq!(thread["samples"]["max_ns"], report["cpus"][0]["measured"]["max_ns"]);
            assert_eq!(thread["missed"], report["cpus"][0]["measured"]["missed"]);
            let is_duration = thread["workload"] == "registers";
            assert_eq!(thread["quantity"], if is_duration { "duration" } else { "latency" });
            assert_eq!(thread["samples"]["rms_ns"].is_null(), is_duration);
        }
        let page = std::fs::read_to_string(folder.path().join("m/index.html")).expect("the page");
        assert!(page.contains("id=\"chart-ranges\"") && page.contains("registers"));
        // All is done: nothing is measured again, and the index is as it was.
        let bytes = std::fs::read(&records(folder.path())[0]).expect("a record");
        let again = run(folder.path(), &["measure", "--resume", "m", "--json"]);
        expect_code(&again, ACCEPTED);
        let mut printed: Value = serde_json::from_slice(&again.stdout).expect("JSON");
        let answer = printed.as_object_mut().and_then(|of| of.remove("answer")).expect("an answer");
        let result = answer["result"].as_str().expect("a result");
        assert!(result.contains(" up to ") && result.contains("(cell "), "{result}");
        assert_eq!(printed, index(folder.path()));
        assert_eq!(printed["cells"][0]["threads"], found["cells"][0]["threads"]);
        assert_eq!(std::fs::read(&records(folder.path())[0]).expect("a record"), bytes);
        // Records are never overwritten.
        let over = run(folder.path(), &["measure", "--for", "1s", "-o", "m"]);
        expect_code(&over, FAILED);
        assert!(stderr(&over).contains("--resume"), "{}", stderr(&over));
    }

    #[test]
    fn an_interrupted_matrix_keeps_its_cells_and_continues() {
        let _alone = alone();
        let folder = folder();
        let output = cut_short(folder.path(), "INT");
        expect_code(&output, NOT_PROVEN);
        assert!(stdout(&output).contains("--resume m"), "{}", stdout(&output));
        assert_eq!(states(folder.path()), ["done", "cut_short", "missing"]);
        let all = records(folder.path());
        assert_eq!(all.len(), 2);
        assert_eq!(report(&all[1]).0["record"]["state"], "sealed");
        let first = std::fs::read(&all[0]).expect("the first record");
        expect_code(&run(folder.path(), &["measure", "--resume", "m"]), ACCEPTED);
        assert_eq!(states(folder.path()), ["done"; 3]);
        let all = records(folder.path());
        assert_eq!(std::fs::read(&all[0]).expect("the first record"), first);
        // What was cut short is still there, under another name.
        assert_eq!(all.len(), 4);
        assert!(all.iter().any(|path| path.to_string_lossy().contains("cut-short-1")), "{all:?}");
    }

    #[test]
    fn a_matrix_that_is_killed_leaves_sealed_records_and_a_torn_one_that_is_read() {
        let _alone = alone();
        let folder = folder();
        cut_short(folder.path(), "KILL");
        assert_eq!(states(folder.path()), ["done", "missing", "missing"]);
        let all = records(folder.path());
        assert_eq!(report(&all[0]).0["record"]["state"], "sealed");
        let (torn, code) = report(&all[1]);
        assert_eq!((torn["record"]["state"].as_str(), code), (Some("torn"), NOT_PROVEN));
        assert!(torn["all"]["sampled"].as_u64().is_some_and(|n| n > 0), "{}", torn["all"]);
        expect_code(&run(folder.path(), &["measure", "--resume", "m"]), ACCEPTED);
        assert_eq!(states(folder.path()), ["done"; 3]);
    }

    #[test]
    fn chrt_in_mid_run_is_marked_in_rows_record_and_report() {
        let _alone = alone();
        if !Path::new("/usr/bin/chrt").exists() || !is_root() {
            eprintln!("left out: chrt changes policies only as root");
            return;
        }
        let folder = folder();
        let args = ["measure", "--workload", "setitimer", "--policy", "other", "--cpus", "0"];
        let rest = ["--for", "5s", "--rows", "--no-trace", "-o", "m"];
        let out = folder.path().join("rows");
        let file = std::fs::File::create(&out).expect("a file");
        let mut child = command(folder.path(), &[&args[..], &rest].concat());
        let mut child = child.stdout(file).stderr(Stdio::piped()).spawn().expect("it starts");
        let text = || std::fs::read_to_string(&out).expect("rows");
        // After the first row.
        let tid = || text().split("thread ").nth(1)?.split(' ').next().map(str::to_owned);
        wait_for("a row", 60, || tid().is_some() && text().contains("\n   0 "));
        let tid = tid().expect("a thread");
        let changed = Command::new("chrt").args(["-f", "-p", "7", &tid]).status().expect("chrt");
        assert!(changed.success());
        assert!(child.wait().expect("it ends").success());
        let text = text();
        assert!(text.contains("changed from outside: SCHED_FIFO 7 (was SCHED_OTHER"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("   0       all")), "{text}");
        assert!(text.contains("with SCHED_FIFO 7:"), "{text}");
        let (report, _) = report(&records(folder.path())[0]);
        let mark = &report["beside"]["marks"][0];
        assert_eq!((mark["kind"].as_str(), mark["thread"].as_u64()), (Some("policy"), Some(0)));
        let [since, at] = ["since_ns", "at_ns"].map(|key| mark[key].as_u64().expect("a time"));
        assert!(since < at, "{mark}");
        let with: Vec<_> =
            report["beside"]["segments"].as_array().expect("segments").iter().collect();
        assert_eq!(with.last().map(|s| s["policy"].clone()), Some("SCHED_FIFO 7".into()));
        assert!(with.iter().all(|s| s["intervals"]["nominal_ns"] == 1_000_000), "{with:?}");
    }

    #[test]
    fn single_samples_are_those_of_the_record() {
        let _alone = alone();
        let folder = folder();
        let args = ["measure", "--for", "2s", "--no-trace", "--keep-samples", "-o", "kept"];
        expect_code(&run(folder.path(), &args), ACCEPTED);
        let record = support::only(&folder.path().join("kept"), ".rtproof");
        let all = report(&record).0["all"].clone();
        let text = std::fs::read_to_string(record.with_extension("samples.csv")).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("cpu,due_ns,latency_ns"));
        let (mut sum, mut max, mut count) = (0_u64, 0_u64, 0_u64);
        let mut last = std::collections::BTreeMap::new();
        for line in lines {
            let n: Vec<u64> = line.split(',').map(|word| word.parse().expect(line)).collect();
            let [cpu, due_ns, latency_ns] = n[..] else { panic!("{line}") };
            assert!(last.insert(cpu, due_ns).is_none_or(|before| before < due_ns), "{line}");
            (sum, max, count) = (sum + latency_ns, max.max(latency_ns), count + 1);
        }
        assert_eq!(
            (Some(count), Some(max)),
            (all["sampled"].as_u64(), all["max_ns"].as_u64()),
            "{all}"
        );
        let mean_ns = all["mean_ns"].as_f64().unwrap();
        assert!((sum as f64 / count as f64 - mean_ns).abs() < 0.001, "{sum} / {count}: {mean_ns}");
    }

    #[test]
    fn a_load_that_fails_is_no_success() {
        let _alone = alone();
        let folder = folder();
        let args = ["measure", "--cpus", "0", "--policy", "other", "--load", "cmd:false"];
        let rest = ["--for", "1s", "--no-trace", "-o", "m"];
        let output = run(folder.path(), &[&args[..], &rest].concat());
        expect_code(&output, NOT_PROVEN);
        let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("not all of the load worked in 1 cell"), "{text}");
        assert_eq!(index(folder.path())["cells"][0]["load_ran"], false);
    }

    #[test]
    fn conditions_are_made_and_taken_back() {
        let _alone = alone();
        let folder = folder();
        let matrix = "cpus = \"0\"\nfor = \"500ms\"\ntrace = false\n\
                  [[condition]]\nname = \"plain\"\n\
                  [[condition]]\nname = \"made\"\nbefore = \"echo on >>log\"\nafter = \"echo off >>log\"\n\
                  [[condition]]\nname = \"broken\"\nbefore = \"echo tried >>log; exit 3\"\nafter = \"echo back >>log\"\n";
        std::fs::write(folder.path().join("m.toml"), matrix).expect("a file");
        let output = run(folder.path(), &["measure", "--matrix", "m.toml", "-o", "m"]);
        expect_code(&output, FAILED);
        assert_eq!(states(folder.path()), ["done", "done", "failed"]);
        let log = std::fs::read_to_string(folder.path().join("log")).expect("the log");
        assert_eq!(log.split_whitespace().collect::<Vec<_>>(), ["on", "off", "tried", "back"]);
        assert!(stdout(&output).contains("condition broken"), "{}", stdout(&output));
    }

    #[test]
    fn two_conditions_take_turns_and_are_compared() {
        let _alone = alone();
        let folder = folder();
        let matrix = "cpus = \"0\"\nfor = \"200ms\"\ntrace = false\nrepeat = 6\n\
                  [[condition]]\nname = \"plain\"\n\
                  [[condition]]\nname = \"made\"\nbefore = \"true\"\nafter = \"true\"\n";
        std::fs::write(folder.path().join("m.toml"), matrix).expect("a file");
        let plan = run(folder.path(), &["measure", "--matrix", "m.toml", "--plan"]);
        assert!(
            stdout(&plan).contains("6 of plain and made: enough to decide"),
            "{}",
            stdout(&plan)
        );
        let output = run(folder.path(), &["measure", "--matrix", "m.toml", "-o", "m", "--json"]);
        expect_code(&output, ACCEPTED);
        let index: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let cells = index["cells"].as_array().expect("cells");
        let conditions: Vec<&str> =
            cells.iter().filter_map(|cell| cell["cell"]["condition"].as_str()).collect();
        assert!(conditions.chunks(2).all(|pair| pair[0] != pair[1]), "{conditions:?}");
        for thread in cells.iter().filter_map(|cell| cell["threads"].get(0)) {
            let sum = thread["samples"]["n"].as_u64().zip(thread["missed"].as_u64());
            assert_eq!(thread["scheduled"].as_u64(), sum.map(|(n, missed)| n + missed));
        }
        let compared = &index["compared"][0];
        assert_eq!(
            (compared["pairs"].as_u64(), compared["pairs_min"].as_u64()),
            (Some(6), Some(6))
        );
        assert_eq!(
            (compared["from"].as_str(), compared["to"].as_str()),
            (Some("plain"), Some("made"))
        );
        assert!(compared["sentence"].as_str().is_some_and(|text| text.len() > 10), "{compared}");
        let two = matrix.replace("repeat = 6", "repeat = 2");
        std::fs::write(folder.path().join("m.toml"), two).expect("a file");
        let plan = run(folder.path(), &["measure", "--matrix", "m.toml", "--plan"]);
        assert!(stdout(&plan).contains("shown, not decided"), "{}", stdout(&plan));
    }
}
