//! `check --prove` on this machine: what is tried is seen, bounded and put in words.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::support::{
    USAGE, alone, code, expect_code, folder, kill, load_workers, run, start, stderr, stdout,
    wait_for,
};
use serde_json::Value;

/// The one proof of a trial, and how long it took.
fn proof(folder: &Path, args: &[&str]) -> (Value, Duration) {
    let start = Instant::now();
    let output = run(folder, &[&["check", "--json"], args].concat());
    let took = start.elapsed();
    let audit: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    let proofs = audit["proofs"].as_array().expect("proofs").clone();
    assert_eq!(proofs.len(), 1, "{proofs:?}");
    let status = proofs[0]["status"].as_str().expect("a status");
    assert!(status != "bad" || code(&output) == 2, "exit code {}", code(&output));
    assert!(!proofs[0]["evidence"].as_array().expect("evidence").is_empty());
    (proofs[0].clone(), took)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

#[test]
fn what_cannot_be_proven_is_a_wrong_command_line() {
    let folder = folder();
    let path = folder.path().to_str().expect("UTF-8");
    for (args, says) in [
        (["--prove", "smi", "--root", path].as_slice(), "--root"),
        (&["--prove", "opinion"], "throttling"),
        (&["--prove", "smi", "--prove-for", "3"], "no unit"),
        (&["--prove", "memlock", "--prove-memory", "64"], "64MiB"),
        (&["--prove-for", "3s"], "--prove"),
    ] {
        let output = run(folder.path(), &[&["check"], args].concat());
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains(says), "{args:?}: {}", stderr(&output));
    }
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn a_spinner_is_paused_by_the_rule_of_this_kernel() {
        let _alone = alone();
        let folder = folder();
        let (proof, took) = proof(folder.path(), &["--prove", "throttling"]);
        assert!(took < Duration::from_secs(8), "{took:?}");
        assert_eq!(proof["check"], "proof-throttling");
        let seen = &proof["observed"]["throttling"];
        let run = &seen["run"]["seen"];
        if run.is_null() {
            eprintln!("left out, no real-time rights: {}", seen["run"]["refused"]);
            return assert_eq!(proof["status"], "unknown", "{proof}");
        }
        let duration_ns = number(&run["duration_ns"]);
        assert!((2_900_000_000..=4_000_000_000).contains(&duration_ns), "{run}");
        let longest_ns = number(&run["ordinary"]["max_ns"]);
        // A hypervisor that took the CPU, or another test's tasks that had the pause.
        let is_away = ["beneath", "others"].iter().any(|kind| number(&run[kind]["count"]) > 0);
        let file = "/proc/sys/kernel/sched_rt_runtime_us";
        let limit = std::fs::read_to_string(file).unwrap_or_default();
        if limit.trim() == "-1" && longest_ns == 0 {
            return eprintln!("left out: this machine was set up not to pause");
        }
        assert!(longest_ns > 20_000_000 || is_away, "{run}");
        if longest_ns > 20_000_000 {
            assert_eq!(proof["status"], "bad", "{proof}");
            assert!(!proof["remedies"].as_array().expect("remedies").is_empty());
            assert!(number(&run["ordinary_cpu_ns"]) > 0, "{run}");
            let first = run["first"].as_array().expect("gaps");
            assert!(first.iter().all(|gap| number(&gap[0]) < duration_ns), "{run}");
        }
    }

    #[test]
    fn rights_are_tried_in_a_blink() {
        let _alone = alone();
        let folder = folder();
        let output = run(folder.path(), &["check", "--prove", "priority,memlock", "--all"]);
        let text = stdout(&output);
        let group = text.split("\nProof ").nth(1).unwrap_or_else(|| panic!("no group:\n{text}"));
        assert!(group.contains("proof-priority") && group.contains("proof-memlock"), "{group}");
        assert!(group.contains("saw: "), "{group}");
        let (locked, took) =
            proof(folder.path(), &["--prove", "memlock", "--prove-memory", "8MiB"]);
        assert!(took < Duration::from_secs(10), "{took:?}");
        let seen = &locked["observed"]["memlock"];
        assert_eq!(seen["bytes"], 8 << 20);
        match seen["run"]["seen"]["locked_bytes"].as_u64() {
            Some(bytes) => assert!(bytes >= 8 << 20, "{seen}"),
            None => assert_eq!(locked["status"], "bad", "{locked}"),
        }
        let (tried, _) = proof(folder.path(), &["--prove", "priority", "--priority", "1"]);
        assert_eq!(tried["observed"]["priority"]["priority"], 1);
    }

    #[test]
    fn isolation_is_looked_at_from_outside() {
        let _alone = alone();
        let folder = folder();
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let all = online.trim();
        // No CPU is left for the load.
        let (proof_of_all, _) = proof(folder.path(), &["--prove", "isolation", "--cpus", all]);
        assert_eq!(proof_of_all["status"], "unknown", "{proof_of_all}");
        if all == "0" {
            return eprintln!("left out: one CPU");
        }
        let last = all.rsplit([',', '-']).next().unwrap_or("1");
        let args = ["--prove", "isolation", "--prove-for", "1s", "--cpus", last];
        let (seen, took) = proof(folder.path(), &args);
        assert!(took < Duration::from_secs(15), "{took:?}");
        let seen = &seen["observed"]["isolation"];
        let loads = seen["loads"].as_array().expect("loads");
        assert_eq!(loads.len(), 4, "{loads:?}");
        assert!(loads.iter().any(|load| load["error"].is_null()), "{loads:?}");
        assert_eq!(seen["times"]["value"].as_array().map(Vec::len), Some(1), "{seen}");
        assert!(load_workers().is_empty());
    }

    #[test]
    fn an_interrupt_ends_it_and_leaves_nothing() {
        let _alone = alone();
        let folder = folder();
        let args = ["check", "--prove", "isolation,smi", "--prove-for", "60s", "--cpus", "0"];
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        if online.trim() == "0" {
            return eprintln!("left out: one CPU");
        }
        let began = Instant::now();
        let child = start(folder.path(), &args);
        wait_for("loads", 10, || !load_workers().is_empty());
        kill("INT", child.id());
        let output = child.wait_with_output().expect("it ends");
        assert!(began.elapsed() < Duration::from_secs(20));
        let text = stdout(&output);
        assert!(text.contains("proof-isolation"), "{text}");
        assert!(text.contains("not tried: ended by SIGINT"), "{text}");
        assert!(load_workers().is_empty());
    }
}
