//! An instance of tracefs on this machine: made, filled, removed, and what a killed run leaves.

use std::{io::Read, process::Command};

use rtproof_host::{
    CpuList, Root,
    tracefs::{Instance, RingSizes, TracefsError, WANTED},
};

fn rings() -> RingSizes {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get()) as u32;
    RingSizes {
        measured: CpuList::new([0]),
        measured_kb: 1024,
        others: CpuList::new(0..cpus),
        others_kb: 64,
    }
}

/// `None`: this user may not; in CI he must.
fn instance() -> Option<Instance> {
    match Instance::create(&Root::live(), &rings()) {
        Ok(instance) => Some(instance),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI needs root and tracefs: {error}");
            eprintln!("not run: {error}");
            None
        }
    }
}

/// What is set at the top, where nothing may change.
fn global() -> Vec<(String, Option<Vec<u8>>)> {
    let top = "/sys/kernel/tracing";
    let files = [
        "tracing_on",
        "trace_clock",
        "tracing_cpumask",
        "current_tracer",
        "trace_options",
        "buffer_size_kb",
        "buffer_total_size_kb",
        "set_event",
        "saved_cmdlines_size",
        "options/record-cmd",
        "events/enable",
        "events/sched/enable",
        "events/irq_vectors/local_timer_entry/trigger",
        "events/irq/irq_handler_entry/trigger",
    ];
    let read = |file: &&str| (file.to_string(), std::fs::read(format!("{top}/{file}")).ok());
    files.iter().map(read).collect()
}

fn folder(name: &str) -> String {
    format!("/sys/kernel/tracing/instances/{name}")
}

/// Instances that record events.
fn recorders() -> usize {
    let names = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten();
    let enabled = names
        .filter_map(|name| std::fs::read_to_string(name.ok()?.path().join("events/enable")).ok());
    enabled.filter(|text| text.trim() != "0").count()
}

#[test]
fn an_instance_records_beside_other_tracing_and_is_removed() {
    let before = global();
    let others = recorders();
    let Some(mut instance) = instance() else { return };
    let folder = folder(instance.name());
    // Tests run beside each other: where another recorded at one of both times, either is right.
    if others == 0 && recorders() == 1 {
        let options = std::fs::read_to_string(format!("{folder}/trace_options")).expect("options");
        assert!(options.contains("norecord-cmd"), "{options}");
    }
    assert!(instance.enabled().contains(&"sched:sched_switch"));
    assert!(instance.enabled().len() + instance.missing().len() <= WANTED.len() * 2);
    for missing in instance.missing() {
        eprintln!("missing: {missing}");
    }
    let formats = instance.formats().expect("formats");
    let has = |system: &str, name: &str| {
        let first = format!("name: {name}\n");
        formats.iter().any(|(of, text)| *of == system && text.starts_with(&first))
    };
    assert!(has("sched", "sched_switch") && has("ftrace", "kernel_stack"));
    assert!(instance.header("header_page").expect("a header").contains("commit"));
    let clock = std::fs::read_to_string(format!("{folder}/trace_clock")).expect("a clock");
    assert!(clock.contains("[mono]"), "{clock}");
    let mut pipe = instance.pipe(0).expect("a pipe");
    let empty = pipe.read(&mut [0; 4096]).expect_err("it is off");
    assert_eq!(empty.kind(), std::io::ErrorKind::WouldBlock);
    instance.set_on(true).expect("on");
    match instance.arm_stack(true) {
        Ok(()) => {
            let trigger = "events/irq_vectors/local_timer_entry/trigger";
            if let Ok(text) = std::fs::read_to_string(format!("{folder}/{trigger}")) {
                assert!(text.contains("stacktrace"), "{text}");
            }
            instance.arm_stack(false).expect("off again");
        }
        Err(error) => eprintln!("no stacks: {error}"),
    }
    for _ in 0..50 {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    instance.set_on(false).expect("off");
    let stats = *instance.stats(0).value().expect("stats");
    assert!(stats.entries + stats.overrun > 0, "{stats:?}");
    assert_eq!(global(), before, "nothing of the machine's own tracing changes");
    assert!(std::path::Path::new(&folder).exists());
    drop(pipe);
    drop(instance);
    assert!(!std::path::Path::new(&folder).exists());
    assert_eq!(global(), before);
}

#[test]
fn two_instances_of_one_process_have_two_names() {
    let (Some(one), Some(two)) = (instance(), instance()) else { return };
    assert_ne!(one.name(), two.name());
    assert!(one.removed().iter().chain(two.removed()).all(|name| name != one.name()));
}

/// Whether this runs in the machine's first namespaces (include/linux/proc_ns.h).
fn sees_all_processes() -> bool {
    let is = |name: &str, number: &str| {
        std::fs::read_link(format!("/proc/self/ns/{name}"))
            .is_ok_and(|link| link.to_string_lossy() == format!("{name}:[{number}]"))
    };
    is("pid", "4026531836") && is("cgroup", "4026531835")
}

/// The test binary itself, started to hold an instance until it is killed.
#[test]
fn hold_an_instance() {
    if std::env::var_os("RTPROOF_HOLD").is_none() {
        return;
    }
    if let Some(instance) = instance() {
        println!("held {}", instance.name());
        std::thread::sleep(std::time::Duration::from_secs(60));
    }
    println!("held nothing");
}

#[test]
fn what_a_killed_run_leaves_the_next_one_removes() {
    use std::io::{BufRead, BufReader};
    if instance().is_none() {
        return;
    }
    let own = std::env::current_exe().expect("a path");
    let mut child = Command::new(own)
        .args(["--exact", "tracefs::hold_an_instance", "--nocapture"])
        .env("RTPROOF_HOLD", "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let held = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("held ").map(|(_, name)| name.to_owned()));
    let name = held.expect("a name");
    assert!(std::path::Path::new(&folder(&name)).exists());
    let second = instance().expect("as before");
    assert!(!second.removed().contains(&name), "it is in use");
    drop(second);
    child.kill().expect("killed");
    child.wait().expect("reaped");
    assert!(std::path::Path::new(&folder(&name)).exists(), "SIGKILL leaves it behind");
    // Another test's instance may have removed it first.
    let third = instance().expect("as before");
    if sees_all_processes() {
        assert!(!std::path::Path::new(&folder(&name)).exists());
    } else {
        // Inside a container it is unknown which process is dead.
        std::fs::remove_dir(folder(&name)).expect("it was left alone");
    }
    drop(third);
}

#[test]
fn a_captured_machine_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = Root::dir(dir.path()).expect("a root");
    assert!(matches!(Instance::create(&root, &rings()), Err(TracefsError::NotLive)));
}
