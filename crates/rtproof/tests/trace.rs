//! `rtproof trace` on this machine: what it finds, what it refuses, and that it leaves nothing
//! changed, however it ends. The tracers that this kernel lacks are the lab's (`trace/`).

use std::{
    collections::BTreeMap,
    fs,
    hash::{BuildHasher, RandomState},
    path::Path,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crate::support::{
    self, FAILED, NOT_PROVEN, USAGE, alone, code, folder, kill, run, start, stderr, wait_for,
};
use rtproof_host::tune::{Scheduling, Tasks};
use rtproof_measure::LiveTasks;
use serde_json::Value;

const TOP: &str = "/sys/kernel/tracing";
/// How often it is killed.
const KILLED: u64 = 50;
/// Without `FULL=1`.
const SAMPLE: u64 = 12;
/// What the whole machine shares.
const SHARED: &[&str] = &[
    "current_tracer",
    "tracing_max_latency",
    "tracing_thresh",
    "tracing_on",
    "tracing_cpumask",
    "trace_options",
    "trace_clock",
    "buffer_size_kb",
    "set_ftrace_filter",
    "set_graph_function",
    "set_event",
    "events/enable",
    "osnoise/cpus",
    "osnoise/options",
    "hwlat_detector/mode",
];

/// Whether kernel events can be recorded here; says so where not.
fn traces() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let there = root && Path::new(TOP).join("instances").is_dir();
    if !there {
        eprintln!("skipped: needs root and tracefs at {TOP}");
    }
    there
}

/// What the files hold, and that no instance is left of the process.
fn shared() -> BTreeMap<String, Option<String>> {
    let of = |file: &&str| (file.to_string(), fs::read_to_string(Path::new(TOP).join(file)).ok());
    SHARED.iter().map(of).collect()
}

fn left_of(pid: u32) -> Vec<String> {
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let all = names(&format!("{TOP}/instances")).into_iter().chain(names("/run"));
    all.filter(|name| name.starts_with(&format!("rtproof-{pid}-"))).collect()
}

/// A thread of real-time priority that sleeps and wakes.
struct RealTime(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl RealTime {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            let fifo = Scheduling {
                policy: Some("fifo".into()),
                priority: Some(10),
                ..Scheduling::default()
            };
            LiveTasks.set(tid, &fifo).expect("the right to a real-time policy");
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Self(stop, Some(thread))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(JoinHandle::join);
    }
}

fn trace(folder: &Path, args: &[&str]) -> Output {
    run(folder, &[&["trace"], args].concat())
}

#[test]
fn impossible_requests_are_reported_and_leave_nothing() {
    let folder = folder();
    for (args, wanted) in [
        (&["nop", "--only", "x"][..], "--only is for function"),
        (&["nop", "--no-functions"], "--no-functions is for wakeup"),
        (&["wakeup_rt", "--task", "x"], "wakeup_rt decides itself"),
        (&["nop", "--cpus", "4000"], "--cpus 4000"),
        (&["no_such_tracer"], "possible values"),
        (&["nop", "--for", "1ns"], "a run must be from"),
    ] {
        let output = trace(folder.path(), args);
        assert_eq!(code(&output), USAGE, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{args:?}: {}", stderr(&output));
    }
    if !traces() {
        return;
    }
    let nowhere = trace(folder.path(), &["nop", "--for", "1s", "--out", "no/such/folder"]);
    assert_eq!(code(&nowhere), FAILED);
    assert!(stderr(&nowhere).contains("no/such/folder"), "{}", stderr(&nowhere));
    let all = fs::read_to_string(format!("{TOP}/available_tracers")).expect("tracers");
    let lacks = |name: &&&str| !all.split_whitespace().any(|one| one == **name);
    for tracer in ["wakeup_rt", "irqsoff", "timerlat"].iter().filter(lacks) {
        let output = trace(folder.path(), &[tracer, "--for", "1s"]);
        let text = stderr(&output);
        assert_eq!(code(&output), FAILED, "{text}");
        assert!(text.contains("CONFIG_") && text.contains(all.trim()), "{text}");
    }
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn late_wake_ups_are_explained_at_once_and_the_text_is_kept() {
        if !traces() {
            return;
        }
        let (_alone, folder, _thread) = (alone(), folder(), RealTime::start());
        let before = shared();
        let args = ["nop", "--for", "1s", "--over", "1us", "--json", "--out", "text"];
        let output = trace(folder.path(), &args);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(json["spikes"]["explained"].as_u64().expect("a count") > 0, "{}", json["answer"]);
        for spike in json["spikes"]["worst"].as_array().expect("spikes") {
            let wake = &spike["explanation"]["wake"];
            let late = wake["ran_ns"].as_u64().unwrap() - wake["due_ns"].as_u64().unwrap();
            let shares = spike["explanation"]["shares"].as_array().expect("shares");
            assert_eq!(shares.iter().map(|of| of["ns"].as_u64().unwrap()).sum::<u64>(), late);
        }
        assert_eq!(shared(), before);
        // The text is what explain reads.
        let again = run(folder.path(), &["explain", "text", "--over", "1us", "--json"]);
        let again: Value = serde_json::from_slice(&again.stdout).expect("JSON");
        assert_eq!(again["spikes"], json["spikes"]);
        // Nothing is over ten seconds: the longest is named.
        let none = trace(folder.path(), &["nop", "--for", "500ms", "--over", "10s", "--json"]);
        let json: Value = serde_json::from_slice(&none.stdout).expect("JSON");
        let text = json["answer"]["result"].as_str().expect("a result");
        // Some kernels leave out switches from the idle task: what they hide is not known.
        let is_open = ["gaps", "doubts"].iter().any(|list| json[list] != Value::Array(Vec::new()));
        assert_eq!(code(&none), if is_open { NOT_PROVEN } else { 0 }, "{text}");
        assert!(text.contains("nothing over 10 s") && text.contains("the longest was "), "{text}");
        // An unknown name.
        let nobody = trace(folder.path(), &["nop", "--for", "300ms", "--task", "no such thread"]);
        assert_eq!(code(&nobody), NOT_PROVEN, "{}", support::stdout(&nobody));
    }

    #[test]
    fn killed_at_any_moment_it_leaves_nothing_changed() {
        if !traces() {
            return;
        }
        let (_alone, folder) = (alone(), folder());
        let before = shared();
        let kills = if support::is_full() { KILLED } else { SAMPLE };
        for _ in 0..kills {
            let mut child =
                start(folder.path(), &["trace", "nop", "--for", "20s", "--out", "text"]);
            let pid = child.id();
            std::thread::sleep(Duration::from_millis(RandomState::new().hash_one(pid) % 400));
            kill("KILL", pid);
            child.wait().expect("it is dead");
            wait_for("the guard", 30, || left_of(pid).is_empty());
            assert_eq!(shared(), before);
        }
        assert_eq!(support::files(folder.path(), "").len(), 0, "no file, whole or in part");
        let mut child = start(folder.path(), &["trace", "nop", "--for", "20s"]);
        wait_for("an instance", 10, || !left_of(child.id()).is_empty());
        kill("INT", child.id());
        assert!(child.wait().expect("it ends").code().is_some(), "Ctrl-C ends it in order");
        assert_eq!((left_of(child.id()), shared()), (Vec::new(), before));
    }
}
