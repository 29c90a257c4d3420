//! Late wake-ups of real runs on this machine: every one is explained to the nanosecond, and the
//! record alone says the same again.

use std::{
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use crate::support::{
    self, alone, code, folder, kill, report, run, start, stderr, stdout, wait_for,
};
use serde_json::Value;

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// Whether kernel events can be recorded here; says so where not.
fn traces() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let there = root && Path::new(INSTANCES).is_dir();
    if !there {
        eprintln!("skipped: needs root and tracefs at /sys/kernel/tracing");
    }
    there
}

/// Instances of a process.
fn instances(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(INSTANCES).expect("tracefs");
    let names = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.split('-').any(|part| part == pid.to_string())).collect()
}

fn finish(child: Child) -> Output {
    let output = child.wait_with_output().expect("it ends");
    assert!([0, 2, 3].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));
    output
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// What must hold of any run's spikes.
fn assert_exact(spikes: &Value) {
    let n = |key: &str| number(&spikes[key]);
    assert_eq!(n("seen"), n("explained") + n("unexamined"));
    assert!(n("incomplete") <= n("explained") && n("certain_ns") <= n("sum_ns"));
    let causes = spikes["causes"].as_array().expect("causes");
    let sum = |key: &str| causes.iter().map(|cause| number(&cause[key])).sum::<u64>();
    assert_eq!((sum("top"), sum("sum_ns")), (n("explained"), n("sum_ns")), "nothing is left over");
    for cause in causes {
        let cpus = cause["cpus"].as_array().expect("CPUs").iter();
        assert_eq!(cpus.map(|cpu| number(&cpu["sum_ns"])).sum::<u64>(), number(&cause["sum_ns"]));
    }
    let worst = spikes["worst"].as_array().expect("the worst");
    assert_eq!(worst.is_empty(), n("explained") == 0);
    for spike in worst {
        let wake = &spike["explanation"]["wake"];
        let (due, ran) = (number(&wake["due_ns"]), number(&wake["ran_ns"]));
        let shares = spike["explanation"]["shares"].as_array().expect("shares");
        let sum: u64 = shares.iter().map(|share| number(&share["ns"])).sum();
        assert_eq!(sum, ran - due, "to the nanosecond: {spike}");
        let mut at = due;
        for span in spike["explanation"]["spans"].as_array().expect("spans") {
            assert_eq!(number(&span["from_ns"]), at, "no gap: {spike}");
            at = number(&span["to_ns"]);
        }
        assert_eq!(at, ran);
    }
}

fn sql(record: &Path, query: &str) -> String {
    let output = Command::new("sqlite3").arg(record).arg(query).output().expect("sqlite3");
    stdout(&output).trim().to_owned()
}

#[test]
fn every_spike_is_explained_to_the_nanosecond_and_so_it_is_from_the_record() {
    if !traces() {
        return;
    }
    let _alone = alone();
    let folder = folder();
    let args = [
        "prove", "--for", "6s", "--load", "cpu", "--spike", "30us", "--cpus", "0", "--json", "-o",
        "run",
    ];
    let child = start(folder.path(), &args);
    let pid = child.id();
    let output = finish(child);
    assert_eq!(instances(pid), Vec::<String>::new(), "nothing is left in tracefs");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let spikes = &json["spikes"];
    // The answer comes first, and the command that it ends with can be pasted.
    let text = stdout(&run(folder.path(), &["report", "run.rtproof"]));
    assert!(text.starts_with("Verdict  NOT JUDGED"), "{text}");
    let next = text.lines().last().and_then(|line| line.strip_prefix("Next     rtproof "));
    let next = next.unwrap_or_else(|| panic!("no next command: {text}"));
    assert!(text.lines().take(8).any(|line| line.ends_with(next)), "first and last:\n{text}");
    let words: Vec<&str> = next.split(' ').collect();
    assert_eq!(code(&run(folder.path(), &words)), 0, "{next}");
    assert_eq!(spikes["recorder"]["off"], Value::Null);
    assert!(spikes["recorder"]["cost_p50_ns"].is_i64(), "{}", spikes["recorder"]);
    assert_eq!((number(&spikes["threshold_ns"]), &spikes["adaptive"]), (30_000, &false.into()));
    assert!(number(&spikes["explained"]) > 0, "not one wake-up of 6000 was 30 us late");
    assert_exact(spikes);
    for spike in spikes["worst"].as_array().expect("the worst") {
        let wake = &spike["explanation"]["wake"];
        assert!(number(&wake["ran_ns"]) - number(&wake["due_ns"]) > 30_000);
    }
    // The same record, the same words.
    let record = folder.path().join("run.rtproof");
    assert_eq!(report(&record).0["spikes"], *spikes);
    assert_eq!(sql(&record, "SELECT count(*) FROM spike"), number(&spikes["seen"]).to_string());
    // What the threads counted is what was seen.
    let late = "SELECT count(*) FROM spike WHERE latency_ns <= 30000";
    assert_eq!(sql(&record, late), "0");
    let csv =
        run(folder.path(), &["export", "run.rtproof", "--format", "csv", "--table", "spikes"]);
    assert_eq!(stdout(&csv).lines().count() as u64, 1 + number(&spikes["seen"]));
    let ids: Vec<&str> =
        json["notes"].as_array().expect("notes").iter().filter_map(|n| n["id"].as_str()).collect();
    assert!(ids.contains(&"trace-cost"), "{ids:?}");
}

#[test]
fn a_killed_run_keeps_its_spikes_and_leaves_no_tracing_on() {
    if !traces() {
        return;
    }
    let _alone = alone();
    // Also by what ends a process with a core, or for too much time of the CPU; and where nobody
    // has mounted tracefs.
    for (signal, mounted) in [("ABRT", true), ("XCPU", true), ("KILL", true), ("KILL", false)] {
        let folder = folder();
        let mut child = recording(folder.path(), mounted);
        kill(signal, child.id());
        child.wait().expect("it is dead");
        wait_for("the guard", 2, || instances(child.id()).is_empty());
        let (json, _) = report(&folder.path().join("run.rtproof"));
        assert_eq!(json["run"]["ended"], Value::Null, "torn");
        assert!(number(&json["spikes"]["explained"]) > 0);
        assert_exact(&json["spikes"]);
    }
}

/// A run whose first window is kept; with tracefs or without it in its own mount namespace.
fn recording(folder: &Path, mounted: bool) -> Child {
    let args = ["prove", "--for", "60s", "--load", "idle", "--spike", "20us", "-o", "run"];
    let child = match mounted {
        true => start(folder, &args),
        false => unmounted(folder, &args).spawn().expect("unshare"),
    };
    let record = folder.join("run.rtproof");
    wait_for("the record", 20, || record.exists());
    wait_for("a kept window", 20, || {
        sql(&record, "SELECT count(*) FROM window").parse::<u64>().is_ok_and(|n| n > 0)
    });
    assert!(!instances(child.id()).is_empty(), "it records");
    child
}

/// rtproof where tracefs is not mounted, nor debugfs, in which it is mounted a second time. The
/// same process ends up as rtproof.
fn unmounted(folder: &Path, args: &[&str]) -> Command {
    let script = "while umount -R /sys/kernel/debug 2>&-; do :; done; umount /sys/kernel/tracing &&
        [ -z \"$(ls /sys/kernel/tracing)\" ] && [ ! -d /sys/kernel/debug/tracing ] && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", support::binary()]);
    command.args(args).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn where_tracefs_is_not_mounted_spikes_are_explained_and_it_stays_so() {
    if !traces() {
        return;
    }
    let _alone = alone();
    let folder = folder();
    let args = ["prove", "--for", "3s", "--load", "idle", "--spike", "20us", "-o", "run"];
    let child = unmounted(folder.path(), &args).spawn().expect("unshare");
    let pid = child.id();
    let output = finish(child);
    assert_eq!(instances(pid), Vec::<String>::new());
    let (json, _) = report(&folder.path().join("run.rtproof"));
    assert!(number(&json["spikes"]["explained"]) > 0, "{}", stdout(&output));
    assert_exact(&json["spikes"]);
    // `check` reports the machine as it is: not mounted.
    let check = unmounted(folder.path(), &["check", "--json"]).output().expect("unshare");
    let json: Value = serde_json::from_slice(&check.stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("findings");
    let tracing = findings.iter().find(|one| one["check"] == "perf-tracing-active");
    assert_eq!(tracing.expect("a finding")["status"], "unknown");
}

#[test]
fn in_a_pid_namespace_unexplained_spikes_have_a_reason() {
    if !traces() {
        return;
    }
    let _alone = alone();
    let folder = folder();
    let args = ["prove", "--for", "1s", "--load", "idle", "--budget", "1h", "-o"];
    let says = |output: &Output| {
        assert!(code(output) == 3, "{}{}", stdout(output), stderr(output));
        stdout(output).contains("in a PID namespace")
    };
    let mut apart = Command::new("unshare");
    apart.args(["-pf", "--mount-proc", support::binary()]).args(args).arg("apart");
    assert!(says(&apart.current_dir(folder.path()).output().expect("unshare")));
    assert!(!says(&run(folder.path(), &[&args[..], &["here"]].concat())));
}

#[test]
fn what_a_killed_run_and_its_killed_guard_left_the_next_one_removes() {
    if !traces() {
        return;
    }
    let _alone = alone();
    let folder = folder();
    let mut child = recording(folder.path(), true);
    let name = instances(child.id()).remove(0);
    let mut guard = Command::new("pkill");
    guard.args(["-KILL", "-f", &format!("rtproof-guard.*{name}")]);
    assert!(guard.status().expect("pkill").success(), "there is a guard");
    kill("KILL", child.id());
    child.wait().expect("it is dead");
    let pid = child.id();
    assert!(!instances(pid).is_empty(), "nobody was left to remove it");
    let next = run(folder.path(), &["prove", "--for", "1s", "--load", "idle", "-o", "next"]);
    assert_eq!(instances(pid), Vec::<String>::new(), "{}", stdout(&next));
    assert!(stdout(&next).contains("was killed"), "{}", stdout(&next));
}

#[test]
fn without_the_recorder_spikes_are_counted_and_tracefs_is_not_touched() {
    let _alone = alone();
    let folder = folder();
    let args = ["prove", "--for", "3s", "--load", "idle", "--no-trace", "--json", "-o", "run"];
    let child = start(folder.path(), &args);
    let pid = child.id();
    if Path::new(INSTANCES).is_dir() {
        wait_for("the record", 10, || folder.path().join("run.rtproof").exists());
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert_eq!(instances(pid), Vec::<String>::new());
    }
    let json: Value = serde_json::from_slice(&finish(child).stdout).expect("JSON");
    let spikes = &json["spikes"];
    assert_eq!(spikes["recorder"]["off"], "--no-trace");
    let notes = json["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note["id"] == "no-trace" && note["weakens"] == false));
    // No budget or threshold was given.
    assert_eq!(spikes["adaptive"], true);
    assert!(number(&spikes["threshold_ns"]) >= 5000);
    assert_eq!(number(&spikes["explained"]), 0);
    assert_exact(spikes);
    let listed = sql(&folder.path().join("run.rtproof"), "SELECT count(*) FROM spike");
    assert_eq!(listed, number(&spikes["seen"]).to_string());
    assert!(json["verdict"]["answer"] == "not_judged", "{}", json["verdict"]);
}
