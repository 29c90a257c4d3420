//! `rtproof run --rules` and `explain --pid PID --rules`: programs that break rules in a known
//! line, programs that break none, and programs of which nothing can be said.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{self, alone, code, expect_code, folder, run, stderr};
use rtproof_judge::rules::Rule;
use serde_json::Value;

const C: &str = include_str!("rules/planted.c");
const RUST: &str = include_str!("rules/planted.rs.in");
const ATTACHED: &str = include_str!("rules/attached.c");

fn may() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(is_root || !is_ci, "CI runs as root");
    if !is_root {
        eprintln!("left out: not root");
    }
    is_root
}

fn compile(folder: &Path, source: &str, compiler: &[&str]) {
    let name = if compiler[0] == "rustc" { "planted.rs" } else { "planted.c" };
    fs::write(folder.join(name), source).unwrap();
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-o", "planted", name]).current_dir(folder);
    assert!(command.status().expect("a compiler").success());
}

fn cc(folder: &Path, source: &str) {
    compile(folder, source, &["cc", "-O0", "-g", "-pthread"]);
}

/// Exit code, the rules of the JSON form, and what went to stderr.
fn rules(folder: &Path, options: &[&str], program: &[&str]) -> (i32, Value, String) {
    let first = ["run", "--dma-latency", "off", "--no-trace", "--rules", "--json", "got.json"];
    let _ = fs::remove_file(folder.join("got.json"));
    let output = run(folder, &[&first[..], options, &["--"], program].concat());
    let text = stderr(&output);
    let json = fs::read(folder.join("got.json")).unwrap_or_else(|_| panic!("{text}"));
    let json: Value = serde_json::from_slice(&json).unwrap();
    (code(&output), json["rules"].clone(), text)
}

/// The rules that are broken at lines that name them, and those that are broken at all.
fn found(rules: &Value, source: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut right, mut all) = (BTreeSet::new(), BTreeSet::new());
    for breach in rules["breaches"].as_array().unwrap() {
        let rule = breach["rule"].as_str().unwrap().to_owned();
        let line = breach["at"]["line"].as_u64().unwrap_or(0);
        let line = source.lines().nth((line as usize).saturating_sub(1)).unwrap_or_default();
        let comment = line.split_once("/* ").or_else(|| line.split_once("// ")).unwrap_or_default();
        let mut named = comment.1.trim_end_matches(" */").split(", ");
        if named.any(|it| it == rule) {
            right.insert(rule.clone());
        }
        all.insert(rule);
    }
    (right, all)
}

fn each_is_found(source: &str, compiler: &[&str]) {
    if !may() {
        return;
    }
    let _alone = alone();
    let folder = folder();
    compile(folder.path(), source, compiler);
    let options = ["--rules-after", "signal", "--junit", "rules.xml"];
    let (code, of, text) = rules(folder.path(), &options, &["./planted"]);
    let (right, _) = found(&of, source);
    let wanted: BTreeSet<String> = Rule::ALL.iter().map(|it| it.id().to_owned()).collect();
    let has_two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    let wanted = wanted.into_iter().filter(|it| has_two || it != "migration").collect();
    assert_eq!((code, of["answer"].as_str()), (2, Some("broken")), "{text}");
    assert_eq!(right, wanted, "{text}");
    let lock = of["breaches"].as_array().unwrap().iter().find(|it| it["rule"] == "lock").unwrap();
    assert!(lock["what"].as_str().unwrap().contains("planted:"), "who held it: {lock}");
    let xml = fs::read_to_string(folder.path().join("rules.xml")).unwrap();
    assert!(xml.contains("<failure") && xml.contains("name=\"page-fault\""), "{xml}");

    // The same program without them.
    let (code, of, text) = rules(folder.path(), &["--rules-after", "signal"], &["./planted", "c"]);
    assert_eq!((code, of["answer"].as_str()), (0, Some("kept")), "{text}");
}

/// A thread of 1 ms between two looks; and 300 threads that wait.
const MANY: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void *waits(void *of) { pause(); return of; }
static void *brief(void *of) { sched_yield(); return of; }
int main(int argc, char **argv) {
    pthread_attr_t attr;
    pthread_t thread;
    (void)argv;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (int i = 0; i < 300; i++) if (pthread_create(&thread, &attr, waits, 0)) _exit(91);
    usleep(100000);
    kill(getppid(), SIGURG);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_sec++;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    if (argc > 1) { pthread_create(&thread, &attr, brief, 0); pthread_join(thread, 0); }
    _exit(0);
}
"#;

/// Ordered to end by itself, as by a key of the terminal: rtproof passes nothing on.
const ENDS: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
static volatile int stop;
static void *loop(void *of) {
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int i = 0; !stop; i++) {
        if (i == 20) kill(getppid(), SIGURG);
        if (i == 220) kill(getpid(), SIGTERM);
        next.tv_nsec += 2000000;
        if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    }
    for (int i = 0; i < 9; i++) sched_yield();
    return of;
}
static void handler(int number) { (void)number; stop = 1; }
int main(int argc, char **argv) {
    pthread_t thread;
    sigset_t set;
    int number;
    (void)argv;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    if (pthread_create(&thread, 0, loop, 0)) _exit(91);
    if (argc > 1) {
        signal(SIGTERM, handler);
        pthread_sigmask(SIG_UNBLOCK, &set, 0);
        while (!stop) pause();
    } else {
        sigwait(&set, &number);
        stop = 1;
    }
    pthread_join(thread, 0);
    return 0;
}
"#;

/// A program that runs for at most 30 s, and ends with the test.
struct Running(Child);

impl Running {
    fn start(folder: &Path, how: &[&str]) -> Self {
        let mut command = Command::new(folder.join("planted"));
        let command = command.args(how).stderr(Stdio::null());
        // Its child, too.
        let running = Self(command.process_group(0).spawn().expect("a program"));
        std::thread::sleep(Duration::from_millis(300));
        running
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Exit code and the JSON form of `explain --rules` of a program that runs.
fn attached(folder: &Path, how: &[&str], more: &[&str]) -> (i32, Value) {
    let mut running = Running::start(folder, how);
    let first = ["explain", "--pid", &running.pid(), "--rules", "--json"];
    let output = run(folder, &[&first, more].concat());
    assert!(running.0.try_wait().unwrap().is_none(), "it runs on");
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (code(&output), json)
}

#[test]
fn an_invalid_ready_time_is_a_usage_error() {
    let folder = folder();
    for args in [
        &["run", "--rules-after", "1s", "--", "true"][..],
        &["run", "--rules", "--rules-after", "soon", "--", "true"],
        &["run", "--rules", "--rules-after", "-1s", "--", "true"],
        &["run", "--rules", "--junit", "-", "--", "true"],
        &["run", "--junit", "x.xml", "--", "true"],
    ] {
        expect_code(&run(folder.path(), args), support::USAGE);
    }
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn each_breach_of_a_c_program_is_found_in_its_line() {
        each_is_found(C, &["cc", "-O0", "-g", "-pthread"]);
    }

    #[test]
    fn each_breach_of_a_rust_program_is_found_in_its_line() {
        each_is_found(RUST, &["rustc", "-g", "--edition", "2021"]);
    }

    #[test]
    fn what_was_not_ready_or_not_real_time_is_not_kept() {
        if !may() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        cc(folder.path(), C);
        for (options, program, why) in [
            (&["--rules-after", "mark"][..], &["./planted", "c"][..], "before it was ready"),
            (&[], &["true"], "before it was ready"),
            (
                &["--policy", "other", "--rules-after", "1ms"],
                &["sleep", "1"],
                "no real-time thread",
            ),
        ] {
            let (code, of, text) = rules(folder.path(), options, program);
            assert_eq!((code, of["answer"].as_str()), (3, Some("not-known")), "{text}");
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(why), "{text}");
        }
    }

    #[test]
    fn what_a_program_does_when_it_is_asked_to_end_is_no_cycle() {
        if !may() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        cc(folder.path(), ENDS);
        for program in [&["./planted"][..], &["./planted", "handler"]] {
            let (_, of, text) = rules(folder.path(), &["--rules-after", "signal"], program);
            let (_, all) = found(&of, ENDS);
            // That it asks itself is a breach. From then on it is not observed.
            assert!(all.contains("blocking") && !all.contains("yield"), "{text}");
            let watched_ns = of["watched_ns"].as_u64().unwrap();
            assert!((300_000_000..5_000_000_000).contains(&watched_ns), "{text}");
        }
    }

    #[test]
    fn in_a_pid_namespace_each_is_found() {
        if !may() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        cc(folder.path(), C);
        let mut command = Command::new("unshare");
        command.args(["-p", "-f", "-m", "--mount-proc", support::binary(), "run"]);
        command.args(["--dma-latency", "off", "--no-trace", "--rules", "--rules-after", "signal"]);
        command.args(["--json", "got.json", "--", "./planted"]).current_dir(folder.path());
        let output = command.output().unwrap();
        let text = stderr(&output);
        if text.starts_with("unshare: ") {
            eprintln!("left out: {text}");
            return;
        }
        let json = fs::read(folder.path().join("got.json")).unwrap_or_else(|_| panic!("{text}"));
        let json: Value = serde_json::from_slice(&json).unwrap();
        let (right, _) = found(&json["rules"], C);
        assert!(right.contains("inheritance"), "{text}");
        let all = json["rules"]["breaches"].as_array().unwrap();
        let lock = all.iter().find(|it| it["rule"] == "lock").unwrap();
        assert!(lock["what"].as_str().unwrap().contains("planted:"), "who held it: {lock}");
        assert_eq!(json["rules"]["unknown"].as_array().map(Vec::len), Some(0), "{text}");
    }

    #[test]
    fn without_rights_nothing_is_kept() {
        if !may() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", support::binary()]);
        command.args(["run", "--policy", "other", "--no-trace", "--rules", "--rules-after", "1ms"]);
        let output =
            command.args(["--", "sleep", "0.2"]).current_dir(folder.path()).output().unwrap();
        let text = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        // Another user may not be let to the binary at all.
        if !text.contains("ermission denied (os error 13)") || text.contains("Rules") {
            assert_eq!(code(&output), 3, "{text}");
            assert!(text.contains("not known") && text.contains("it needs root"), "{text}");
            assert!(!text.contains("before it was ready"), "{text}");
        }
    }

    #[test]
    fn a_program_that_runs_is_judged_as_one_that_is_started() {
        if !may() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        cc(folder.path(), ATTACHED);
        let (code, of) = attached(folder.path(), &[], &["--for", "1s", "--junit", "rules.xml"]);
        assert_eq!((code, &of["rules"]["answer"]), (2, &"broken".into()), "{of}");
        let (right, all) = found(&of["rules"], ATTACHED);
        let wanted = ["lock", "memory", "output", "relative-sleep", "yield"];
        assert_eq!(right, wanted.map(ToOwned::to_owned).into(), "{of}");
        // Where it waits in vain for its CPU the kernel may move it: it has one.
        assert_eq!(all, right, "{of}");
        let breaches = of["rules"]["breaches"].as_array().unwrap();
        // A cycle of 10 ms waits for the lock as well: some dozens a second, of each call as many.
        let count = |what: &str| {
            let mut of =
                breaches.iter().filter(|it| it["what"].as_str().unwrap().starts_with(what));
            of.next().unwrap()["count"].as_u64().unwrap()
        };
        assert!((15..=110).contains(&count("sched_yield")), "{of}");
        assert!(count("mmap").abs_diff(count("munmap")) <= 1, "{of}");
        assert!(breaches.iter().all(|it| it["thread"] == "cycle"), "{of}");
        let xml = fs::read_to_string(folder.path().join("rules.xml")).unwrap();
        assert!(xml.contains("<failure") && xml.contains("explain --rules"), "{xml}");

        // None; 300 threads; that of a child that runs already; a first thread that has ended.
        for how in ["c", "cm", "cf", "ce"] {
            let (code, of) = attached(folder.path(), &[how], &["--for", "1s"]);
            assert_eq!((code, &of["rules"]["answer"]), (0, &"kept".into()), "{how}: {of}");
            assert_eq!(of["rules"]["threads"].as_array().map(Vec::len), Some(1), "{how}: {of}");
        }
        // Threads that start and end while rtproof attaches: each is reported once, or is unknown.
        let (code, of) = attached(folder.path(), &["b"], &["--for", "1s"]);
        assert_eq!(code, 2, "{of}");
        let (right, _) = found(&of["rules"], ATTACHED);
        assert!(right.contains("yield"), "{of}");
        // A wait for a lock that began before.
        let (code, of) = attached(folder.path(), &["w"], &["--for", "500ms"]);
        assert_eq!((code, &of["rules"]["breaches"][0]["rule"]), (2, &"lock".into()), "{of}");
    }

    #[test]
    fn an_observation_ends_with_a_signal_or_the_program_and_ends_nothing() {
        if !may() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        cc(folder.path(), ATTACHED);
        let mut running = Running::start(folder.path(), &["c"]);
        let args = ["explain", "--pid", &running.pid(), "--rules", "--for", "20s", "--json"];
        for ends in [false, true] {
            let child = support::start(folder.path(), &args);
            std::thread::sleep(Duration::from_secs(1));
            if ends {
                running.0.kill().unwrap();
            } else {
                let rtproof = rustix::process::Pid::from_child(&child);
                rustix::process::kill_process(rtproof, rustix::process::Signal::INT).unwrap();
            }
            let started = Instant::now();
            let output = child.wait_with_output().unwrap();
            assert!(started.elapsed() < Duration::from_secs(10), "{output:?}");
            assert_eq!(code(&output), 0, "{output:?}");
            assert_eq!(running.0.try_wait().unwrap().is_some(), ends);
        }
        // Ended and waited for; ended and not waited for; a kernel thread; rtproof's parent.
        let mut zombie = Command::new("true").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        for (pid, says) in [
            (running.pid(), "no process"),
            (zombie.id().to_string(), "has ended"),
            ("2".into(), "thread of the kernel"),
        ] {
            let output = run(folder.path(), &["explain", "--pid", &pid, "--rules"]);
            expect_code(&output, support::USAGE);
            assert!(stderr(&output).contains(says), "{pid}: {}", stderr(&output));
        }
        zombie.wait().unwrap();
        for args in [
            &["explain", "--rules"][..],
            &["explain", "--pid", "1", "--junit", "x.xml"],
            &["explain", "--pid", "1", "--rules", "--spike", "1"],
            &["explain", "--comm", "x", "--rules"],
        ] {
            expect_code(&run(folder.path(), args), support::USAGE);
        }
    }
}

/// Busy CPUs lose events of that many threads.
mod alone {
    use super::*;

    #[test]
    fn three_hundred_threads_are_observed_and_so_is_a_brief_one() {
        if !may() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        cc(folder.path(), MANY);
        let options = ["--rules-after", "signal", "--rules-for", "500ms"];
        let (_, of, text) = rules(folder.path(), &options, &["./planted"]);
        assert_eq!(of["threads"].as_array().map(Vec::len), Some(301), "{text}");
        assert!(of["breaches"].as_array().unwrap().is_empty(), "{text}");
        let (code, of, text) =
            rules(folder.path(), &["--rules-after", "signal"], &["./planted", "b"]);
        assert_eq!(code, 2, "{text}");
        assert!(found(&of, MANY).1.contains("yield"), "{text}");
    }
}
