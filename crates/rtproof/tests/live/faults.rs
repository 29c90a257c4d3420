//! Faults while measuring: signals, kills, a full disk, missing rights, threads moved away. Each
//! leaves a truthful record and the machine as it was.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{
    self, FAILED, NOT_PROVEN, REFUSED, alone, assert_accounted, binary, code, expect_code, files,
    folder, kill, load_workers, only, report, run, start, stderr, stdout, wait_for,
};
use serde_json::Value;

const SECONDS: Duration = Duration::from_secs(1);

fn under_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id");
    output.stdout == b"0\n"
}

#[test]
fn signals_end_a_run_in_order() {
    let _alone = alone();
    for signal in ["INT", "TERM", "HUP"] {
        let folder = folder();
        let child =
            start(folder.path(), &["prove", "--for", "60s", "--load", "cpu", "--budget", "1h"]);
        wait_for("the record", 10, || !files(folder.path(), ".rtproof").is_empty());
        std::thread::sleep(2 * SECONDS);
        let asked = Instant::now();
        kill(signal, child.id());
        let output = child.wait_with_output().expect("it ends");
        assert!(asked.elapsed() < 8 * SECONDS, "SIG{signal} took {:?}", asked.elapsed());
        expect_code(&output, NOT_PROVEN);
        assert!(stdout(&output).contains(&format!("interrupted by SIG{signal}")));
        let text = stdout(&output);
        let head = text.lines().find(|line| line.starts_with("Measure  ")).expect("a head");
        assert!(head.contains(" s of 1 min"), "measured of asked: {head}");
        let html = std::fs::read_to_string(only(folder.path(), ".html")).expect("the report");
        assert!(html.contains(" s of 1 min, budget"), "measured of asked");
        let (report, code) = report(&only(folder.path(), ".rtproof"));
        assert_eq!(
            (code, &report["run"]["ended"]["signal"]),
            (NOT_PROVEN, &format!("SIG{signal}").into())
        );
        assert_accounted(&report);
        assert!(load_workers().is_empty(), "loads outlive SIG{signal}");
    }
}

#[test]
fn killed_at_ten_moments_every_record_opens_and_renders() {
    let _alone = alone();
    // Moments from the very start to the end of the run, not the same in every run of the tests.
    let seed = std::process::id() as u64;
    let sample = if support::is_full() { 1 } else { 3 };
    for i in (0..10_u64).step_by(sample) {
        let folder = folder();
        let mut child = start(folder.path(), &["prove", "--for", "3s", "--budget", "100us"]);
        let jitter = (seed * 7919 + i * 104_729) % 350;
        std::thread::sleep(Duration::from_millis(i * 380 + jitter));
        child.kill().expect("SIGKILL");
        let killed = Instant::now();
        let status = child.wait().expect("it is gone");
        wait_for("the loads to go with it", 5, || load_workers().is_empty());
        let records = files(folder.path(), ".rtproof");
        if records.is_empty() {
            assert!(i < 6, "moment {i}: no record ({status}, {:?})", killed.elapsed());
            continue;
        }
        let record = records[0].to_str().expect("UTF-8");
        let html = folder.path().join("again.html");
        let output =
            run(folder.path(), &["report", record, "--html", html.to_str().expect("UTF-8")]);
        // Killed in the very commit that makes the record: it holds nothing, and says so.
        if i < 6 && stderr(&output).contains("the record is empty") {
            expect_code(&output, FAILED);
            continue;
        }
        assert!(
            [REFUSED, NOT_PROVEN].contains(&code(&output)),
            "moment {i}: {}\n{}",
            stdout(&output),
            stderr(&output)
        );
        let text = stdout(&output);
        let finished = text.contains("Verdict") && !text.contains("torn");
        assert!(text.contains("torn") || finished, "{text}");
        assert!(html.metadata().is_ok_and(|meta| meta.len() > 10_000), "the report is written");
    }
}

#[test]
fn a_full_disk_keeps_what_was_written() {
    if !is_root() {
        assert!(!under_ci(), "CI needs root for a small tmpfs");
        eprintln!("not run: a small tmpfs needs root");
        return;
    }
    let _alone = alone();
    let folder = folder();
    // A mount namespace of its own: the machine's mounts stay as they are.
    let script = format!(
        "mount -t tmpfs -o size=400k none {0} && cd {0} && head -c 60k /dev/zero > ballast && \
         {1} prove --for 30s --period 100us --load idle --budget 1h -o run; code=$?; \
         [ -e run.html ] && echo run.html is there; rm ballast; \
         {1} report run.rtproof; echo \"exit $code, report $?\"",
        folder.path().display(),
        binary(),
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env("NO_COLOR", "1")
        .output()
        .expect("unshare");
    let text = stdout(&output);
    assert!(
        text.contains(&format!("exit {FAILED}, report {NOT_PROVEN}")),
        "{text}{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("no space left"), "{}", stderr(&output));
    // What there is and what is lost, both when it ends and when it is shown again.
    let has_report = text.contains("run.html is there");
    assert_eq!(text.contains("no report was written"), !has_report, "{text}");
    assert_eq!(stderr(&output).contains("the report cannot be written"), !has_report);
    assert!(text.contains("record run.rtproof (not sealed)"), "{text}");
    assert_eq!(text.matches("The record is torn: its end was not written; it holds").count(), 2);
    assert!(text.contains("of 30 s."), "{text}");
    assert!(!text.contains("seconds are missing"), "{text}");
}

/// A log that is rotated, a download that is moved away.
#[test]
fn a_disk_that_is_full_for_some_seconds_costs_nothing() {
    if !is_root() {
        assert!(!under_ci(), "CI needs root for a small tmpfs");
        return;
    }
    let _alone = alone();
    let folder = folder();
    let script = format!(
        "mount -t tmpfs -o size=8m none {0} && cd {0} && \
         {{ for i in $(seq 300); do [ -s run.rtproof ] && break; sleep 0.1; done; sleep 2; \
            head -c 9m /dev/zero >ballast 2>/dev/null; sleep 4; rm ballast; echo freed; }} & \
         cd {0}; sleep 0.5; {1} prove --for 12s --load idle --budget 1h -o run; \
         {1} report run.rtproof",
        folder.path().display(),
        binary(),
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env("NO_COLOR", "1")
        .output()
        .expect("unshare");
    let text = stdout(&output);
    assert!(text.contains("freed"), "{text}{}", stderr(&output));
    assert!(!text.contains("torn") && !text.contains("no space"), "{text}{}", stderr(&output));
    assert!(!stderr(&output).contains("no space"), "{}", stderr(&output));
}

#[test]
fn without_rights_it_measures_and_says_so() {
    if !is_root() {
        assert!(!under_ci(), "CI needs root to drop rights from");
    }
    let _alone = alone();
    let folder = folder();
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-sys_nice,-ipc_lock", "--inh-caps=-sys_nice,-ipc_lock"])
        .args(["prlimit", "--rtprio=0", "--memlock=65536"])
        .args([binary(), "prove", "--for", "1s", "--load", "idle", "--budget", "1h"]);
    let output = command.current_dir(folder.path()).output().expect("setpriv");
    expect_code(&output, NOT_PROVEN);
    let text = stdout(&output);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("SCHED_FIFO 80 was refused"), "{text}");
    assert!(words.contains("`rtproof check --prove priority --priority 80` names"), "{text}");
    assert!(text.contains("Memory is not locked"), "{text}");
    let (report, _) = report(&only(folder.path(), ".rtproof"));
    assert_eq!(report["cpus"][0]["thread"]["policy"], "other");
    assert_accounted(&report);
}

#[test]
fn a_lower_priority_limit_is_used_and_said() {
    let may = Command::new("prlimit").args(["--rtprio=30", "true"]).output().expect("prlimit");
    if !may.status.success() {
        eprintln!("not run: RLIMIT_RTPRIO cannot be set here ({})", stderr(&may).trim());
        return;
    }
    let _alone = alone();
    let folder = folder();
    let mut command = Command::new("prlimit");
    command
        .args(["--rtprio=30", "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"])
        .args([binary(), "prove", "--for", "1s", "--load", "idle", "--budget", "1h"]);
    let output = command.current_dir(folder.path()).output().expect("setpriv");
    expect_code(&output, NOT_PROVEN);
    assert!(stdout(&output).contains("measured with SCHED_FIFO 30"), "{}", stdout(&output));
    let (report, _) = report(&only(folder.path(), ".rtproof"));
    assert_eq!(report["cpus"][0]["thread"]["priority"], 30);
}

/// The measuring threads of a process: (tid, CPU of its name).
fn measuring_threads(pid: u32) -> Vec<(u32, u32)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let Ok(tasks) = tasks else { return Vec::new() };
    tasks
        .filter_map(|task| {
            let tid = task.ok()?.file_name().to_str()?.parse().ok()?;
            let comm = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
            Some((tid, comm.trim().strip_prefix("rtproof/")?.parse().ok()?))
        })
        .collect()
}

#[test]
fn a_thread_that_is_moved_away_ends_and_is_reported() {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cpus < 2 {
        eprintln!("not run: it takes two CPUs to move a thread");
        return;
    }
    // For good, and for a few milliseconds.
    for (visits, told) in
        [(&["1"][..], "was moved away from it"), (&["1", "0"], "its count of migrations rose")]
    {
        let _alone = alone();
        let folder = folder();
        let args = ["prove", "--for", "20s", "--cpus", "0", "--load", "idle", "--budget", "1h"];
        let child = start(folder.path(), &args);
        // Threads of the same name run before, to measure what recording costs.
        wait_for("the record", 20, || !files(folder.path(), ".rtproof").is_empty());
        wait_for("the thread", 10, || !measuring_threads(child.id()).is_empty());
        std::thread::sleep(SECONDS);
        let (tid, cpu) = measuring_threads(child.id())[0];
        assert_eq!(cpu, 0);
        for cpu in visits {
            let moved = Command::new("taskset").args(["-pc", cpu, &tid.to_string()]).output();
            let moved = moved.expect("taskset");
            assert!(moved.status.success(), "{moved:?}");
        }
        let output = child.wait_with_output().expect("it ends");
        expect_code(&output, NOT_PROVEN);
        // The look of that second may have met it on the other CPU.
        let text = stdout(&output);
        assert!(text.contains(told) || text.contains("was moved away from it"), "{text}");
        let (report, _) = report(&only(folder.path(), ".rtproof"));
        assert_eq!(report["cpus"][0]["end"]["reason"], "cpu_lost");
        assert_accounted(&report);
    }
}

#[test]
fn a_priority_changed_from_outside_is_reported() {
    let _alone = alone();
    let folder = folder();
    let args = ["prove", "--for", "4s", "--cpus", "0", "--load", "idle", "--budget", "1h"];
    let child = start(folder.path(), &args);
    // Threads of the same name run before, to measure what recording costs.
    wait_for("the record", 20, || !files(folder.path(), ".rtproof").is_empty());
    wait_for("the thread", 10, || !measuring_threads(child.id()).is_empty());
    std::thread::sleep(SECONDS);
    let (tid, _) = measuring_threads(child.id())[0];
    let changed =
        Command::new("chrt").args(["-f", "-p", "7", &tid.to_string()]).status().expect("chrt");
    assert!(changed.success());
    let output = child.wait_with_output().expect("it ends");
    expect_code(&output, NOT_PROVEN);
    assert!(stdout(&output).contains("SCHED_FIFO 7"), "{}", stdout(&output));
}

#[test]
fn a_load_that_fails_is_reported_and_takes_force() {
    let _alone = alone();
    let folder = folder();
    let args =
        ["prove", "--for", "2s", "--load", "cmd:echo no such thing >&2; exit 7", "--budget", "1h"];
    let output = run(folder.path(), &args);
    expect_code(&output, NOT_PROVEN);
    assert!(stdout(&output).contains("no such thing"), "{}", stdout(&output));
}

#[test]
fn nothing_is_left_of_a_run_that_could_not_start() {
    let _alone = alone();
    let folder = folder();
    let mut command = Command::new("prlimit");
    command.args(["--fsize=1000", binary(), "prove", "--for", "1s", "--load", "idle"]);
    let output = command.current_dir(folder.path()).stdin(Stdio::null()).output().expect("prlimit");
    assert_ne!(code(&output), 0);
    assert!(files(folder.path(), ".html").is_empty());
}

#[test]
fn an_interrupted_record_is_sealed_and_says_so() {
    let _alone = alone();
    let folder = folder();
    let child = start(folder.path(), &["prove", "--for", "30s", "--load", "idle"]);
    wait_for("the record", 10, || !files(folder.path(), ".rtproof").is_empty());
    std::thread::sleep(SECONDS);
    kill("TERM", child.id());
    let output = child.wait_with_output().expect("it ends");
    // No budget: nothing is judged, but it is not done either.
    expect_code(&output, NOT_PROVEN);
    let (report, _): (Value, i32) = report(&only(folder.path(), ".rtproof"));
    assert_eq!(report["run"]["ended"]["how"], "interrupted");
}

#[test]
fn nohup_is_respected() {
    let _alone = alone();
    let folder = folder();
    let script =
        format!("trap '' HUP; exec {} prove --for 3s --cpus 0 --load idle -o run", binary());
    let child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh");
    wait_for("the record", 10, || folder.path().join("run.rtproof").exists());
    std::thread::sleep(SECONDS);
    kill("HUP", child.id());
    let output = child.wait_with_output().expect("it ends");
    expect_code(&output, 0);
    let (report, _) = report(&folder.path().join("run.rtproof"));
    assert_eq!(report["run"]["ended"]["how"], "complete");
}

#[test]
fn loads_are_ordinary_when_rtproof_is_not() {
    let _alone = alone();
    let folder = folder();
    let mut command = Command::new("chrt");
    command.args(["-f", "50", binary(), "prove", "--for", "2s", "--load", "cpu+memory"]);
    let output = command.current_dir(folder.path()).output().expect("chrt");
    expect_code(&output, 0);
    let (report, _) = report(&only(folder.path(), ".rtproof"));
    let notes = report["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note["id"] == "was-real-time"), "{notes:?}");
    assert!(notes.iter().all(|note| note["id"] != "load-failed"), "{notes:?}");
}

#[test]
fn a_reader_that_goes_away_does_not_change_the_verdict() {
    let _alone = alone();
    let folder = folder();
    let script = format!(
        "{} prove --for 1s --load idle --budget 100ns -o run | true; echo ${{PIPESTATUS[0]}}",
        binary()
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .output()
        .expect("bash");
    assert_eq!(stdout(&output).trim(), REFUSED.to_string(), "{}", stderr(&output));
    assert!(folder.path().join("run.rtproof").exists());
}

#[test]
fn names_that_are_not_utf8_are_no_reason_to_panic() {
    use std::os::unix::ffi::OsStrExt;
    let _alone = alone();
    let folder = folder();
    let odd = std::ffi::OsStr::from_bytes(b"od\xffd");
    let output = support::command(folder.path(), &["prove", "--for", "1s", "--load", "idle", "-o"])
        .arg(odd)
        .output()
        .expect("the binary runs");
    expect_code(&output, 0);
    let output = support::command(folder.path(), &[]).arg(odd).output().expect("the binary runs");
    expect_code(&output, support::USAGE);
}

/// Needs quiet CPUs, or leaves none to others.
mod alone {
    use super::*;

    #[test]
    fn a_stop_of_100_ms_is_counted_to_the_period() {
        // Shorter stalls, of which a busy host has hundreds, swallow nothing.
        const PERIOD_NS: u64 = 5_000_000;
        let _alone = alone();
        let folder = folder();
        let args = [
            "prove",
            "--for",
            "4s",
            "--cpus",
            "0",
            "--load",
            "idle",
            "--period",
            "5ms",
            "--budget",
            "50ms",
            // The arithmetic is that of the measuring: nothing of ours runs beside it.
            "--no-trace",
        ];
        let child = start(folder.path(), &args);
        wait_for("the record", 10, || !files(folder.path(), ".rtproof").is_empty());
        std::thread::sleep(2 * SECONDS);
        // The shell sleeps more exactly than a loop of ours would on a busy machine.
        let stop = format!("kill -STOP {0}; sleep 0.1; kill -CONT {0}", child.id());
        let stopped = Instant::now();
        let status = Command::new("sh").args(["-c", &stop]).status().expect("sh");
        let stopped_ms = stopped.elapsed().as_millis() as u64;
        assert!(status.success());
        let output = child.wait_with_output().expect("it ends");
        // Half of the missed ones were later than 50 ms.
        expect_code(&output, REFUSED);
        let (report, _) = report(&only(folder.path(), ".rtproof"));
        assert_accounted(&report);
        let all = &report["all"];
        assert_eq!(all["scheduled"], 800);
        let number = |key: &str| all[key].as_f64().expect(key);
        let stall_ms = number("max_ns") as u64 / 1_000_000;
        assert!(
            (95..=stopped_ms + 20).contains(&stall_ms),
            "{stall_ms} ms, stopped {stopped_ms} ms"
        );

        // Every sample of a period or more swallowed the wake-ups that were due meanwhile: one each
        // whole period, each late by what was left. All of them are among the largest.
        let top = report["top"].as_array().expect("the largest samples");
        let latencies: Vec<u64> =
            top.iter().map(|sample| sample["latency_ns"].as_u64().expect("a latency")).collect();
        assert!(latencies.last().is_some_and(|&ns| ns < PERIOD_NS), "more stalls than are listed");
        let late_for = |ns: u64| (1..=ns / PERIOD_NS).map(move |i| ns - i * PERIOD_NS);
        let swallowed: Vec<u64> = latencies.iter().flat_map(|&ns| late_for(ns)).collect();
        assert_eq!(all["missed"].as_u64(), Some(swallowed.len() as u64), "{latencies:?}");
        let missed_by_stall = late_for(latencies[0]).count() as u64;
        assert!(missed_by_stall.abs_diff(stall_ms / 5) <= 1);

        let sum = number("mean_ns") * number("sampled") + swallowed.iter().sum::<u64>() as f64;
        let (expected, got) = (sum / 800.0, number("deadline_mean_ns"));
        assert!((got / expected - 1.0).abs() < 0.02, "mean {got}, arithmetic {expected}");
    }

    #[test]
    fn a_hog_that_outranks_the_threads_is_named_and_nothing_hangs() {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if cpus < 2 {
            eprintln!("not run: it takes two CPUs to keep one from the threads");
            return;
        }
        let _alone = alone();
        let folder = folder();
        // Bounded in time; the other CPU stays free.
        let mut hog = Command::new("chrt")
            .args(["-f", "99", "taskset", "-c", "1", "perl", "-e"])
            .arg("$end = time + 25; 1 while time < $end")
            .spawn()
            .expect("a hog");
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        let args = ["prove", "--for", "2s", "--cpus", "1", "--load", "idle", "--budget", "1h"];
        let output = run(folder.path(), &args);
        let took = began.elapsed();
        hog.kill().expect("the hog is ended");
        hog.wait().expect("the hog is gone");
        // Throttling may let the threads through now and then: then it is a measurement.
        assert!(took < 20 * SECONDS, "{took:?}");
        assert_ne!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    }

    #[test]
    fn a_period_that_cannot_be_held_is_accounted_for() {
        let _alone = alone();
        let folder = folder();
        let args = [
            "prove", "--for", "2s", "--cpus", "0", "--period", "5us", "--load", "idle", "--budget",
            "1h",
        ];
        let output = run(folder.path(), &args);
        assert!([0, NOT_PROVEN].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));
        let (report, _) = report(&only(folder.path(), ".rtproof"));
        assert_accounted(&report);
        assert_eq!(report["all"]["scheduled"], 400_000);
        let floor_ns = report["cost"]["floor_ns"].as_u64().expect("a floor");
        let said = report["notes"]
            .as_array()
            .expect("notes")
            .iter()
            .any(|note| note["id"] == "period-below-floor");
        assert_eq!(said, floor_ns > 5000);
    }
}
