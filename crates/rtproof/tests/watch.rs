//! `rtproof watch` on a terminal and for logs: it starts, obeys, ends, and leaves nothing behind.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{
    self, ACCEPTED, FAILED, USAGE, alone, code, command, expect_code, folder, kill,
    plant::Plant,
    pty::{Pty, start_and_hang_up},
    run, start, stderr, stdout, wait_for,
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
fn instances(pid: u32) -> usize {
    let entries = std::fs::read_dir(INSTANCES).expect("tracefs");
    let names = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.split('-').any(|part| part == pid.to_string())).count()
}

fn coloured(folder: &Path, args: &[&str]) -> Command {
    let mut command = command(folder, args);
    command.env_remove("NO_COLOR");
    command
}

#[test]
fn a_screen_obeys_keys_and_puts_the_terminal_back() {
    let folder = folder();
    let mut pty = Pty::start(&mut coloured(folder.path(), &["watch"]), 80, 24);
    pty.wait_for("passive: measures nothing");
    pty.wait_for("real-time task");
    pty.press("?");
    pty.wait_for("what was switched on is switched off");
    pty.press("\u{1b}");
    pty.wait_for("passive: measures nothing");
    pty.press("l");
    pty.wait_for("A load is switched only where this view measures");
    pty.press("s");
    pty.wait_for("there is no record");
    pty.press(" ");
    pty.wait_for("FROZEN");
    pty.press(" /0\r");
    pty.wait_for("CPUs 0");
    pty.press("mcable pulled\r");
    pty.wait_for("in this view alone");
    pty.press("?\u{1b}[F");
    pty.wait_for("Marked: cable pulled");
    // The terminal becomes larger: all is drawn anew.
    pty.press("\u{1b}");
    pty.resize(120, 40);
    pty.wait_for("deepest idle");
    pty.press("q");
    assert_eq!(pty.end(), Some(ACCEPTED), "{}", pty.seen());
    pty.assert_as_before();
}

#[test]
fn signals_end_it_in_order() {
    let folder = folder();
    for signal in ["TERM", "INT", "HUP"] {
        let mut pty = Pty::start(&mut coloured(folder.path(), &["watch"]), 80, 24);
        pty.wait_for("passive");
        kill(signal, pty.child.id());
        assert_eq!(pty.end(), Some(ACCEPTED), "{signal}: {}", pty.seen());
        pty.assert_as_before();
    }
    // A time ends it as well; without colours nothing is coloured.
    let mut plain = command(folder.path(), &["watch", "--for", "2s"]);
    let mut pty = Pty::start(&mut plain, 80, 24);
    assert_eq!(pty.end(), Some(ACCEPTED));
    let seen = pty.seen();
    assert!(seen.contains("passive") && !seen.contains("\u{1b}[38;5"), "{seen:?}");
    pty.assert_as_before();
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let folder = folder();
    let mut child = start_and_hang_up(&mut coloured(folder.path(), &["watch"]));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        let waits = start.elapsed() < Duration::from_secs(20);
        assert!(waits || child.kill().is_err(), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    // 1 where the next picture came first, and could not be drawn.
    assert!(matches!(status.code(), Some(ACCEPTED | 1)), "{status}");
}

#[test]
fn it_suspends_and_continues() {
    let folder = folder();
    let mut pty = Pty::start(&mut coloured(folder.path(), &["watch"]), 80, 24);
    pty.wait_for("passive");
    let pid = pty.child.id();
    let state = move || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
        stat.rsplit_once(") ").expect("a state").1.starts_with('T')
    };
    for way in ["key", "signal"] {
        match way {
            "key" => pty.press("\u{1a}"),
            _ => kill("TSTP", pid),
        }
        wait_for("the stop", 10, state);
        pty.assert_as_before();
        kill("CONT", pid);
        pty.wait_for("passive: measures nothing");
    }
    pty.press("q");
    assert_eq!(pty.end(), Some(ACCEPTED));
    pty.assert_as_before();
}

#[test]
fn rows_are_printed_until_a_signal() {
    let folder = folder();
    let mut child = start(folder.path(), &["watch", "--rows"]);
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("endless").expect("UTF-8");
    assert!(next().contains("busy %"));
    let first = next();
    assert_eq!(first.split_whitespace().nth(1), Some("0"), "{first}");
    kill("INT", child.id());
    let output = child.wait_with_output().expect("it ends");
    expect_code(&output, ACCEPTED);
    // A reader that has enough ends it, too.
    let mut child = start(folder.path(), &["watch", "--rows"]);
    drop(child.stdout.take());
    expect_code(&child.wait_with_output().expect("it ends"), ACCEPTED);
}

#[test]
fn once_and_json_show_the_same_kinds() {
    let folder = folder();
    let text = stdout(&run(folder.path(), &["watch", "--once"]));
    assert!(text.contains("passive: measures nothing") && text.contains("busy and idle"), "{text}");
    let output = run(folder.path(), &["watch", "--json", "--for", "2s"]);
    expect_code(&output, ACCEPTED);
    let frames: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(!frames.is_empty());
    for frame in &frames {
        assert_eq!(frame["schema"], "rtproof/watch/1");
        assert_eq!(frame["source"]["kind"], "passive");
        let cpus = frame["cpus"].as_array().expect("CPUs");
        assert!(cpus.iter().all(|cpu| cpu["interrupts"]["per_s"].is_u64()), "{frame}");
        for what in ["freq_hz", "throttled", "switches_per_s"] {
            assert!(cpus.iter().all(|cpu| cpu[what].is_null() || cpu[what].is_u64()));
        }
    }
}

#[test]
fn an_unwatchable_source_is_an_error_with_the_next_step() {
    let folder = folder();
    let watch = |args: &[&str]| run(folder.path(), &[&["watch"], args].concat());
    for (args, expected, part) in [
        (&[][..], USAGE, "use --rows"),
        (&["--rows", "--once"], USAGE, "cannot be used with"),
        (&["--record", "none.rtproof", "--rows"], FAILED, "none.rtproof"),
        (&["--pid", "999999999", "--rows"], USAGE, "no process 999999999"),
        (&["--cpus", "0", "--rows"], USAGE, "--measure"),
        (&["--measure", "--record", "x", "--rows"], USAGE, "cannot be used with"),
        (&["--measure", "--cpus", "4000", "--rows"], USAGE, "not online"),
        (&["--measure", "--workload", "futex,pipe", "--rows"], USAGE, "one cell"),
    ] {
        let output = watch(args);
        assert_eq!(code(&output), expected, "{args:?}: {}{}", stdout(&output), stderr(&output));
        assert!(stderr(&output).contains(part), "{args:?}: {}", stderr(&output));
    }
    std::fs::write(folder.path().join("text.rtproof"), "no record").expect("a file");
    let output = watch(&["--record", "text.rtproof", "--rows"]);
    expect_code(&output, FAILED);
    assert_eq!(support::files(folder.path(), ".html"), Vec::<std::path::PathBuf>::new());
}

/// A frame of each second of `watch --json`.
fn frames(child: &mut Child) -> impl Iterator<Item = Value> {
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    lines.map(|line| serde_json::from_str(&line.expect("UTF-8")).expect("JSON"))
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn a_measuring_view_switches_load_marks_moments_and_seals_its_record() {
        if !traces() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        let args = [
            "watch",
            "--measure",
            "--cpus",
            "0",
            "--budget",
            "10ms",
            "--load",
            "cpu",
            "-o",
            "run",
            "--no-trace",
        ];
        let mut pty = Pty::start(&mut coloured(folder.path(), &args), 120, 40);
        // A second is measured.
        pty.wait_for("    0 timer-wakeup");
        pty.press("l");
        pty.wait_for("Load: idle.");
        pty.press("mcable pulled\r");
        pty.wait_for("in the record as well");
        // To stop it would stop what measures.
        pty.press("\u{1a}");
        pty.wait_for("Not suspended");
        std::thread::sleep(Duration::from_secs(2));
        pty.press("q");
        assert_eq!(pty.end(), Some(ACCEPTED), "{}", pty.seen());
        pty.assert_as_before();
        // It may be read, is sealed, and holds what was done by hand.
        let json = stdout(&run(folder.path(), &["report", "run.rtproof", "--json"]));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let notes = json["notes"].as_array().expect("notes");
        let note = |id: &str| notes.iter().find(|note| note["id"] == id).map(|note| &note["text"]);
        let marked = notes.iter().find(|note| note["id"] == "marked");
        assert!(marked.is_some_and(|note| note["at_ns"].as_u64() > Some(0)), "when it was");
        assert_eq!(note("marked"), Some(&"Marked: cable pulled".into()));
        assert!(note("load-by-hand").and_then(Value::as_str).is_some_and(|t| t.contains("off")));
        let end = &json["cpus"][0]["end"];
        assert!(end["scheduled"].as_u64().is_some_and(|n| n > 0), "{end}");
        // Its run has ended: there is nothing to follow.
        let output = run(folder.path(), &["watch", "--record", "run.rtproof", "--rows"]);
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains("rtproof report run.rtproof"), "{}", stderr(&output));
    }

    #[test]
    fn attached_to_a_run_a_planted_spike_is_shown_with_its_cause() {
        if !traces() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        let args = [
            "prove", "--for", "60s", "--load", "idle", "--cpus", "0", "--spike", "20ms", "-o",
            "run",
        ];
        let prove = start(folder.path(), &args);
        wait_for("the first second", 30, || {
            let json =
                run(folder.path(), &["watch", "--record", "run.rtproof", "--once", "--json"]);
            serde_json::from_slice::<Value>(&json.stdout)
                .is_ok_and(|frame| frame["latencies"][0]["n"].as_u64().is_some_and(|n| n > 0))
        });
        let mut watch = start(folder.path(), &["watch", "--record", "run.rtproof", "--json"]);
        let mut all = frames(&mut watch);
        let first = all.next().expect("a frame");
        assert_eq!(first["source"]["kind"], "record");
        let Some(planted) = Plant::start(folder.path().join("fixed"), "1") else {
            kill("INT", prove.id());
            let _ = (prove.wait_with_output(), all.last());
            eprintln!("skipped: no right to a real-time policy");
            return;
        };
        let start_at = Instant::now();
        let (frame, spike) = all
            .find_map(|frame| {
                let spikes = frame["spikes"].as_array().expect("spikes").clone();
                let is_ours = |spike: &Value| {
                    spike["cause"] == "preempted" && spike["latency_ns"].as_u64() > Some(50_000_000)
                };
                assert!(start_at.elapsed() < Duration::from_secs(30), "no such spike: {frame}");
                spikes.into_iter().find(is_ours).map(|spike| (frame, spike))
            })
            .expect("endless");
        drop(planted);
        let ns = |value: &Value| value.as_u64().expect("a number");
        let ended = ns(&spike["at_realtime_ns"]) + ns(&spike["latency_ns"]);
        let after_ms = ns(&frame["at_realtime_ns"]).saturating_sub(ended) / 1_000_000;
        eprintln!("the spike was shown {after_ms} ms after it ended: {spike}");
        assert_eq!(frame["source"]["ended"], Value::Null, "while the run goes on");
        assert!(spike["culprit"].as_str().is_some_and(|who| who.contains("[FIFO 90]")), "{spike}");
        assert!(spike["knob"].is_string(), "{spike}");
        kill("INT", prove.id());
        // The end of the run is the end of the view.
        let last = all.last().expect("frames");
        assert!(
            last["source"]["ended"].as_str().is_some_and(|why| why.contains("SIGINT")),
            "{last}"
        );
        assert_eq!(watch.wait().expect("it ends").code(), Some(ACCEPTED));
        let output = prove.wait_with_output().expect("it ends");
        assert!(
            [0, 2, 3].contains(&code(&output)),
            "following it did not hurt it: {}",
            stderr(&output)
        );
    }

    #[test]
    fn an_application_is_observed_and_a_kill_leaves_nothing_on() {
        if !traces() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        let mut sleeper = Command::new("sh")
            .args(["-c", "while :; do sleep 0.02; done"])
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell");
        let pid = sleeper.id().to_string();
        let mut watch = start(folder.path(), &["watch", "--pid", &pid, "--over", "1us", "--json"]);
        let seen = frames(&mut watch).find(|frame| frame["latencies"][0]["n"].as_u64() > Some(0));
        let seen = seen.expect("a frame with wake-ups");
        assert_eq!(seen["source"]["kind"], "application");
        assert_eq!(seen["latencies"][0]["missed"], Value::Null, "unknown, not 0");
        assert_eq!(instances(watch.id()), 1);
        kill("KILL", watch.id());
        let _ = watch.wait();
        wait_for("its instance to go", 10, || instances(watch.id()) == 0);
        // An end in order leaves nothing at once; so does the end of the application.
        let watch = start(folder.path(), &["watch", "--pid", &pid, "--rows"]);
        wait_for("its instance", 20, || instances(watch.id()) == 1);
        let id = watch.id();
        let _ = sleeper.kill();
        let _ = sleeper.wait();
        let output = watch.wait_with_output().expect("it ends");
        expect_code(&output, ACCEPTED);
        assert!(stderr(&output).contains("the process has ended"), "{}", stderr(&output));
        assert_eq!(instances(id), 0);
    }

    #[test]
    fn a_killed_measuring_view_leaves_a_record_and_nothing_on() {
        if !traces() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        let args = ["watch", "--measure", "--cpus", "0", "--load", "cpu", "--rows", "-o", "run"];
        let mut child = start(folder.path(), &args);
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        // Two seconds are measured.
        let row = |line: &String| line.trim_start().starts_with("0  ");
        let rows = lines.by_ref().map(|line| line.expect("UTF-8")).filter(row).take(2).count();
        assert_eq!(rows, 2);
        kill("KILL", child.id());
        let _ = child.wait();
        wait_for("its instance to go", 10, || instances(child.id()) == 0);
        let output = run(folder.path(), &["report", "run.rtproof"]);
        assert!(stdout(&output).contains("This record is torn"), "{}", stdout(&output));
    }
}
