//! `rtproof run`: programs of every kind are started, accompanied and undone.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::support::{
    self, alone, code, expect_code, folder, kill, processes, run, small::Small, start, stderr,
    stdout,
};

const NOT_STARTED: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Whether this process may give itself a real-time priority.
fn is_root() -> bool {
    let can = rustix::process::geteuid().is_root();
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(can || !is_ci, "CI runs as root");
    if !can {
        eprintln!("left out: not root");
    }
    can
}

/// A program started as an ordinary one, without kernel events: any user can.
fn plain(command: &[&str]) -> Output {
    let folder = folder();
    let args = [&["run", "--policy", "other", "--no-trace", "--"], command].concat();
    run(folder.path(), &args)
}

fn shell(script: &str) -> Output {
    plain(&["sh", "-c", script])
}

#[test]
fn the_exit_status_is_the_programs() {
    expect_code(&plain(&["true"]), 0);
    expect_code(&shell("exit 7"), 7);
    expect_code(&shell("exit 255"), 255);
    expect_code(&shell("kill -KILL $$"), 128 + 9);
    expect_code(&shell("kill -TERM $$"), 128 + 15);
    let output = shell("echo answer; echo trouble >&2");
    assert_eq!(stdout(&output), "answer\n", "stdout is the program's alone");
    assert!(stderr(&output).starts_with("trouble\n"), "{}", stderr(&output));
}

#[test]
fn a_cookie_and_memory_nodes_are_set_or_refused_with_the_reason() {
    let folder = folder();
    let ask = |options: &[&str], command: &[&str]| {
        let first = ["run", "--policy", "other", "--no-trace"];
        run(folder.path(), &[&first, options, &["--"], command].concat())
    };
    let cookie = ask(&["--core-sched"], &["true"]);
    // Which of them, this machine's kernel says.
    match code(&cookie) {
        0 => {}
        other => {
            let text = stderr(&cookie);
            assert_eq!(other, NOT_STARTED, "{text}");
            assert!(text.contains("prctl(PR_SCHED_CORE)"), "{text}");
            assert!(text.contains("nothing was changed or started"), "{text}");
            let plan = ask(&["--core-sched", "--plan"], &["true"]);
            expect_code(&plan, NOT_STARTED);
            assert!(stdout(&plan).contains("core scheduling"), "{}", stdout(&plan));
            expect_code(&ask(&["--core-sched", "--best-effort"], &["true"]), 0);
        }
    }
    let maps = ["cat", "/proc/self/numa_maps"];
    let bound = ask(&["--numa", "local"], &maps);
    if code(&bound) == 0 {
        let is_bound = stdout(&bound).lines().all(|line| line.contains(" bind:"));
        assert!(is_bound && !stdout(&bound).is_empty(), "{}", stdout(&bound));
        assert!(!stdout(&ask(&[], &maps)).contains("bind:"));
    } else {
        expect_code(&bound, NOT_STARTED);
        assert!(stderr(&bound).contains("memory node: "), "{}", stderr(&bound));
    }
    expect_code(&ask(&["--numa", "1000"], &["true"]), NOT_STARTED);
    for wrong in ["", "near", "1-0", "5000000000"] {
        expect_code(&ask(&["--numa", wrong], &["true"]), support::USAGE);
    }
}

#[test]
fn arguments_and_stdin_go_through_as_they_are() {
    assert_eq!(stdout(&plain(&["printf", "%s|", "a b", "--cpus", "", "$x"])), "a b|--cpus||$x|");
    assert_eq!(stdout(&plain(&["sh", "-c", "echo $0", "x"])), "x\n");
    let folder = folder();
    let args = ["run", "--policy", "other", "--no-trace", "-q", "--", "cat"];
    let mut command = support::command(folder.path(), &args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((stdout(&output), code(&output)), ("through".into(), 0));
}

#[test]
fn programs_that_are_none_are_refused_before_anything() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("data"), "x").unwrap();
    fs::write(at("lost"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(at("lost"), fs::Permissions::from_mode(0o755)).unwrap();
    for (program, status, why) in [
        ("no-such-program".into(), NOT_FOUND, "no such program in PATH"),
        ("/no/such".into(), NOT_FOUND, "/no/such: no such program; nothing was changed"),
        ("".into(), NOT_FOUND, "name of the program is empty"),
        (at("lost"), NOT_FOUND, "the interpreter in its first line"),
        (at("data"), NOT_EXECUTABLE, "not executable"),
        (at(""), NOT_EXECUTABLE, "a folder"),
    ] {
        let output = plain(&[&program]);
        expect_code(&output, status);
        assert!(stderr(&output).contains(why), "{program}: {}", stderr(&output));
    }
}

#[test]
fn what_does_not_go_together_is_a_usage_error() {
    let folder = folder();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    for (args, why) in [
        (vec!["--cpus", online.trim()], "every CPU of this machine"),
        (vec!["--cpus", "8191"], "not online"),
        (vec!["--cpus", ""], "--cpus"),
        (vec!["--policy", "other", "--priority", "5"], "no --priority"),
        (vec!["--policy", "deadline"], "needs --runtime and --period"),
        (vec!["--runtime", "2ms", "--period", "1ms"], "longer than the deadline"),
        (vec!["--priority", "100"], "100"),
        (vec!["--tune", "no-such-check", "--policy", "other"], "no such check"),
        (vec!["--user", "no-such-user-here"], "no such user in /etc/passwd"),
        (vec!["--caps", "sys_fast"], "no such capability"),
        (vec!["--dma-latency", "1h"], "whole microseconds"),
        (vec!["--place", "partition"], "needs --cpus"),
        (vec!["--json", "-"], "stdout belongs to the program"),
    ] {
        let all = [vec!["run"], args.clone(), vec!["--", "true"]].concat();
        let output = run(folder.path(), &all);
        expect_code(&output, support::USAGE);
        assert!(stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
    }
    expect_code(&run(folder.path(), &["run", "--"]), support::USAGE);
}

#[test]
fn signals_are_passed_on() {
    let folder = folder();
    let script = "for s in USR1 USR2 HUP QUIT INT; do trap \"echo $s\" $s; done
        trap 'echo TERM; exit 9' TERM
        echo ready >ready; while :; do sleep 0.05; done";
    let args = ["run", "--policy", "other", "--no-trace", "-q", "--", "sh", "-c", script];
    let child = start(folder.path(), &args);
    support::wait_for("the program", 20, || folder.path().join("ready").exists());
    for signal in ["USR1", "USR2", "HUP", "QUIT", "INT"] {
        kill(signal, child.id());
        // The shell has one trap for each, however often it came.
        thread::sleep(Duration::from_millis(300));
    }
    kill("TERM", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "USR1\nUSR2\nHUP\nQUIT\nINT\nTERM\n");
    assert_eq!(code(&output), 9);
}

#[test]
fn a_stop_stops_both_and_sigcont_continues_both() {
    let folder = folder();
    let script = "echo $$ >pid; mv pid ready; while [ ! -e end ]; do sleep 0.05; done; exit 4";
    let args = ["run", "--policy", "other", "--no-trace", "-q", "--", "sh", "-c", script];
    // As a shell starts it: the kernel stops no process of an orphaned group.
    let mut command = support::command(folder.path(), &args);
    let mut child = command.process_group(0).spawn().expect("the binary starts");
    let ready = folder.path().join("ready");
    support::wait_for("the program", 20, || ready.exists());
    let program: u32 = fs::read_to_string(&ready).unwrap().trim().parse().unwrap();
    let state = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.trim().chars().next().unwrap()
    };
    kill("TSTP", child.id());
    support::wait_for("both to stop", 20, || state(child.id()) == 'T' && state(program) == 'T');
    kill("CONT", child.id());
    support::wait_for("both to go on", 20, || state(child.id()) != 'T' && state(program) != 'T');
    fs::write(folder.path().join("end"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn both_continue_if_the_kernel_stops_neither() {
    let folder = folder();
    let script = "echo x >ready; while [ ! -e end ]; do sleep 0.05; done; exit 4";
    let args = ["run", "--policy", "other", "--no-trace", "-q", "--", "sh", "-c", script];
    let own = support::command(folder.path(), &args);
    let mut command = Command::new("setsid");
    command.arg("--wait").arg(own.get_program()).args(own.get_args()).current_dir(folder.path());
    let mut child = command.spawn().expect("setsid starts");
    support::wait_for("the program", 20, || folder.path().join("ready").exists());
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let text = fs::read_to_string(children).unwrap();
    let group: u32 =
        text.split_whitespace().next().unwrap_or_default().parse().unwrap_or(child.id());
    kill("TSTP", group);
    fs::write(folder.path().join("end"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn an_ignored_end_of_children_is_not_inherited() {
    let folder = folder();
    let args =
        ["run", "--policy", "other", "--no-trace", "-q", "--", "sh", "-c", "sleep 0.3; exit 3"];
    let own = support::command(folder.path(), &args);
    let mut command = Command::new("env");
    command.arg("--ignore-signal=CHLD").arg(own.get_program()).args(own.get_args());
    let output = command.current_dir(folder.path()).output().expect("env starts");
    expect_code(&output, 3);
}

#[test]
fn what_a_program_leaves_is_waited_for() {
    let folder = folder();
    let script = "(setsid sh -c 'sleep 1; echo late >late' >/dev/null 2>&1 &); exit 5";
    let args = ["run", "--policy", "other", "--no-trace", "--", "sh", "-c", script];
    let output = run(folder.path(), &args);
    expect_code(&output, 5);
    assert!(folder.path().join("late").exists(), "it had ended before");
    assert!(stderr(&output).contains("waiting for them"), "{}", stderr(&output));
}

#[test]
fn a_signal_ends_what_a_program_left() {
    let folder = folder();
    let script = "(setsid sleep 600 >/dev/null 2>&1 &); echo x >ready";
    let args = ["run", "--policy", "other", "--no-trace", "-q", "--", "sh", "-c", script];
    let child = start(folder.path(), &args);
    support::wait_for("the program", 20, || folder.path().join("ready").exists());
    thread::sleep(Duration::from_millis(500));
    kill("TERM", child.id());
    assert_eq!(code(&child.wait_with_output().unwrap()), 0, "the program's own status");
}

/// A command as a user without any right.
fn unprivileged(folder: &Path, args: &[&str]) -> Output {
    let program = folder.join("rtproof");
    if !program.exists() {
        fs::copy(support::binary(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args(["--inh-caps=-all", "--bounding-set=-all"]).arg(&program).args(args);
    command.current_dir("/").env("NO_COLOR", "1").stdin(Stdio::null()).output().unwrap()
}

#[test]
fn without_tracing_a_budget_is_reported_as_not_judged() {
    let folder = folder();
    let args = ["run", "--policy", "other", "--no-trace", "--budget", "1ms", "--json", "got.json"];
    let output = run(folder.path(), &[&args[..], &["--", "true"]].concat());
    expect_code(&output, support::NOT_PROVEN);
    let text = fs::read_to_string(folder.path().join("got.json")).unwrap();
    let got: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(got["schema"], "rtproof/run/1");
    assert_eq!(got["ending"]["exited"], 0);
    assert_eq!(got["verdict"]["answer"], "cannot-tell");
    assert!(got["wake_ups"].is_null());
    // The program's own failure comes first.
    let output = run(folder.path(), &[&args[..], &["--", "false"]].concat());
    expect_code(&output, 1);
}

/// A real-time loop of 5 ms beside an ordinary thread.
const PERIODIC: &str = "import os, sys, threading, time
def ordinary():
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    for _ in range(2000): time.sleep(0.01)
threading.Thread(target=ordinary, daemon=True).start()
due = time.monotonic()
for _ in range(int(sys.argv[1])):
    due += 0.005
    time.sleep(max(0, due - time.monotonic()))
";

/// The options of a run of it whose record is made; `None`: it cannot be here.
fn periodic(folder: &Path) -> Option<Vec<&'static str>> {
    if !is_root() || !Path::new("/sys/kernel/tracing/instances").exists() {
        return None;
    }
    fs::write(folder.join("periodic.py"), PERIODIC).unwrap();
    let args = "run --priority 10 --dma-latency off --budget 10s --json got.json --output it";
    Some(args.split(' ').collect())
}

/// The tree of a machine with two CPUs of its own for the program.
fn tree() -> Small {
    let tree = Small::new();
    for (path, text) in [
        ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ("/sys/devices/virtual/workqueue/cpumask", "f\n"),
    ] {
        tree.write(path, text);
    }
    tree
}

/// Options that act on the tree, whose CPU 1 is there on the machine, too.
fn on_tree<'a>(root: &'a str, command: &[&'a str]) -> Vec<&'a str> {
    let first = ["run", "--root", root, "--cpus", "1", "--place", "affinity", "--no-trace"];
    let then =
        ["--dma-latency", "off", "--tune", "cpufreq-governor,rt-throttling,ksm,workqueue-cpumask"];
    [&first[..], &then, &["-q", "--policy", "fifo", "--"], command].concat()
}

/// What the tree holds, the journals left out.
fn values(tree: &Small) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    tree.all()
        .into_iter()
        .filter(|(path, _)| !path.to_string_lossy().contains("rtproof/tune"))
        .collect()
}

#[test]
fn the_machine_is_set_while_it_runs_and_as_before_at_its_end() {
    if !is_root() {
        return;
    }
    let tree = tree();
    let before = values(&tree);
    let root = tree.path().to_str().unwrap().to_owned();
    let file = tree.file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor");
    let script = format!("cat {}; exit 6", file.display());
    let output = run(tree.path(), &on_tree(&root, &["sh", "-c", &script]));
    expect_code(&output, 6);
    assert_eq!(stdout(&output), "performance\n");
    assert_eq!(values(&tree), before);
    // A plan changes nothing.
    let plan = [&["run", "--plan"][..], &on_tree(&root, &["true"])[1..]].concat();
    let output = run(tree.path(), &plan);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("scaling_governor"), "{}", stdout(&output));
    assert_eq!(values(&tree), before);
}

#[test]
fn a_second_run_waits_for_the_first() {
    if !is_root() {
        return;
    }
    let tree = tree();
    let before = values(&tree);
    let root = tree.path().to_str().unwrap().to_owned();
    let mut first =
        start(tree.path(), &on_tree(&root, &["sh", "-c", "echo >ready; exec sleep 600"]));
    support::wait_for("the first", 30, || tree.path().join("ready").exists());
    let second = run(tree.path(), &on_tree(&root, &["true"]));
    let status = run(tree.path(), &["tune", "status", "--root", &root]);
    kill("TERM", first.id());
    first.wait().unwrap();
    fs::remove_file(tree.path().join("ready")).unwrap();
    expect_code(&second, NOT_STARTED);
    assert!(stderr(&second).contains("another run"), "{}", stderr(&second));
    assert!(stdout(&status).contains("undone when the program ends"), "{}", stdout(&status));
    assert_eq!(values(&tree), before);
}

/// Rounds that are killed: a third of 50, all of them with `FULL=1`, or as many as `RTPROOF_KILLS`
/// says.
fn rounds() -> Vec<u64> {
    let asked = std::env::var("RTPROOF_KILLS").ok().and_then(|text| text.parse().ok());
    let step = if support::is_full() || asked.is_some() { 1 } else { 3 };
    (0..asked.unwrap_or(50)).step_by(step).collect()
}

#[test]
fn killed_at_any_moment_nothing_is_left() {
    if !is_root() {
        return;
    }
    let tree = tree();
    let before = values(&tree);
    let root = tree.path().to_str().unwrap().to_owned();
    let (mut set, rounds) = (0, rounds());
    for &round in &rounds {
        let mut child = start(tree.path(), &on_tree(&root, &["sleep", "0.6"]));
        // From before the journal to after the end.
        thread::sleep(Duration::from_millis(round * 37 % 1500));
        let is_set = values(&tree) != before;
        set += u64::from(is_set);
        let signal = if round % 2 == 0 { "KILL" } else { "TERM" };
        if child.try_wait().unwrap().is_none() {
            kill(signal, child.id());
        }
        child.wait().unwrap();
        // The guard outlives it, and ends when the program has.
        support::wait_for("the guard to end", 30, || processes(&root).is_empty());
        assert_eq!(values(&tree), before, "round {round}, {signal}");
        // Killed before the guard was armed, a journal without a change stays open.
        expect_code(&run(tree.path(), &["tune", "undo", "--all", "--root", &root]), 0);
    }
    let rounds = rounds.len() as u64;
    println!("rounds {rounds}, of them {set} while the machine was set; values that differ 0");
    assert!(set > rounds / 10, "{set} of {rounds} hit it while it was set");
}

#[test]
fn killed_together_with_its_guard_the_next_run_undoes_it() {
    if !is_root() {
        return;
    }
    let tree = tree();
    let before = values(&tree);
    let root = tree.path().to_str().unwrap().to_owned();
    let mut child = start(tree.path(), &on_tree(&root, &["sh", "-c", "echo >ready; exec sleep 1"]));
    support::wait_for("the program", 30, || tree.path().join("ready").exists());
    fs::remove_file(tree.path().join("ready")).unwrap();
    let guards: Vec<u32> =
        processes("guard").into_iter().filter(|pid| processes(&root).contains(pid)).collect();
    assert_eq!(guards.len(), 1);
    kill("KILL", child.id());
    kill("KILL", guards[0]);
    child.wait().unwrap();
    assert_ne!(values(&tree), before, "nobody is left to undo it");
    let status = run(tree.path(), &["tune", "status", "--root", &root]);
    assert!(stdout(&status).contains("is gone (killed)"), "{}", stdout(&status));
    expect_code(&run(tree.path(), &on_tree(&root, &["true"])), 0);
    assert_eq!(values(&tree), before);
}

#[test]
fn a_guard_that_dies_is_replaced() {
    if !is_root() {
        return;
    }
    let tree = tree();
    let before = values(&tree);
    let root = tree.path().to_str().unwrap().to_owned();
    let mut child =
        start(tree.path(), &on_tree(&root, &["sh", "-c", "echo >ready; exec sleep 600"]));
    support::wait_for("the program", 30, || tree.path().join("ready").exists());
    fs::remove_file(tree.path().join("ready")).unwrap();
    let guard = || processes("guard").into_iter().find(|pid| processes(&root).contains(pid));
    let first = guard().unwrap();
    kill("KILL", first);
    support::wait_for("another guard", 30, || guard().is_some_and(|pid| pid != first));
    kill("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(values(&tree), before);
}

/// A program on a tree, once it has begun; the tree, and its values before.
fn begun(script: &str) -> (Small, Vec<(std::path::PathBuf, Vec<u8>)>, std::process::Child) {
    let tree = tree();
    let before = values(&tree);
    let root = tree.path().to_str().unwrap().to_owned();
    let script = format!("echo >ready; {script}");
    let child = start(tree.path(), &on_tree(&root, &["sh", "-c", &script]));
    support::wait_for("the program", 30, || tree.path().join("ready").exists());
    fs::remove_file(tree.path().join("ready")).unwrap();
    assert_ne!(values(&tree), before, "the machine is set");
    (tree, before, child)
}

fn guard_of(tree: &Small) -> Option<u32> {
    let ours = processes(tree.path().to_str().unwrap());
    processes("guard").into_iter().find(|pid| ours.contains(pid))
}

#[test]
fn a_guard_that_is_stopped_is_replaced_and_never_waited_for() {
    if !is_root() {
        return;
    }
    let (tree, before, mut child) = begun("exec sleep 600");
    let first = guard_of(&tree).unwrap();
    kill("STOP", first);
    support::wait_for("another guard", 30, || guard_of(&tree).is_some_and(|pid| pid != first));
    kill("STOP", guard_of(&tree).unwrap());
    let asked = Instant::now();
    kill("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert_eq!((values(&tree), guard_of(&tree)), (before, None));
}

/// Its changes go back while it is stopped, and it goes on without them.
#[test]
fn a_program_that_stops_itself_keeps_no_changes_in_force() {
    if !is_root() {
        return;
    }
    let (tree, before, mut child) = begun("kill -STOP $$; exit 7");
    support::wait_for("the undo", 30, || values(&tree) == before);
    assert!(child.try_wait().unwrap().is_none(), "it is still there");
    // rtproof passes it on.
    kill("CONT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert_eq!((values(&tree), guard_of(&tree)), (before, None));
}

/// Deaf to TERM, with a daemon: undone in time after the first signal, ended after the second.
#[test]
fn a_program_that_is_deaf_neither_keeps_changes_nor_outlives_a_second_signal() {
    if !is_root() {
        return;
    }
    let deaf = "trap '' TERM INT; (setsid sh -c 'sleep 601; :' &); while :; do sleep 0.1; done";
    let (tree, before, mut child) = begun(deaf);
    let asked = Instant::now();
    kill("TERM", child.id());
    support::wait_for("the undo", 30, || values(&tree) == before);
    assert!(asked.elapsed() > Duration::from_secs(4), "it had its time: {:?}", asked.elapsed());
    assert!(child.try_wait().unwrap().is_none(), "the program is not killed for it");
    kill("TERM", child.id());
    let asked = Instant::now();
    child.wait().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    // By the name that it has in /proc: words end with a zero byte.
    let left = || processes("sleep\x00601").len() + processes(tree.path().to_str().unwrap()).len();
    support::wait_for("the daemon's end", 10, || left() == 0);
    assert_eq!(values(&tree), before);
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn a_real_time_program_gets_what_was_asked_for() {
        if !is_root() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        // Field 40 is the priority, 41 the policy.
        let script =
            "awk '{ print $41, $40 }' /proc/self/stat; grep Cpus_allowed_list /proc/self/status";
        let got = |args: &[&str]| {
            let tail = ["--dma-latency", "off", "-q", "--no-trace", "--", "sh", "-c", script];
            let output = run(folder.path(), &[&["run"], args, &tail].concat());
            expect_code(&output, 0);
            stdout(&output)
        };
        assert!(got(&[]).starts_with("1 80\n"));
        assert!(got(&["--policy", "rr", "--priority", "7"]).starts_with("2 7\n"));
        let on_one = got(&["--cpus", "1", "--tune", "none", "--place", "affinity"]);
        assert!(on_one.contains("Cpus_allowed_list:\t1\n"), "{on_one}");
        let first = ["run", "--runtime", "2ms", "--period", "50ms", "-q", "--no-trace", "--"];
        let of_shell = ["sh", "-c", "read -r line </proc/$$/stat; echo $line"];
        let output = run(folder.path(), &[&first[..], &of_shell].concat());
        expect_code(&output, 0);
        assert_eq!(stdout(&output).split_whitespace().nth(40), Some("6"), "{}", stdout(&output));
        // Threads that it starts are ordinary ones: it may start them.
        let output = run(folder.path(), &[&first[..], &["sh", "-c", "sleep 0; exit 3"]].concat());
        expect_code(&output, 3);
    }

    #[test]
    fn a_deadline_that_is_too_much_is_refused_and_undone() {
        if !is_root() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        let args = |command: &[&'static str]| {
            let first = ["run", "--runtime", "980ms", "--period", "1s", "-q", "--no-trace", "--"];
            [&first[..], command].concat()
        };
        // As many as there are CPUs: together more than 95 % of them.
        let cpus = thread::available_parallelism().unwrap().get();
        let mut holding: Vec<_> =
            (1..cpus).map(|_| start(folder.path(), &args(&["sleep", "60"]))).collect();
        thread::sleep(Duration::from_secs(3));
        let output = run(folder.path(), &args(&["true"]));
        holding.iter().for_each(|child| kill("TERM", child.id()));
        holding.iter_mut().for_each(|child| assert!(child.wait().is_ok()));
        expect_code(&output, NOT_STARTED);
        assert!(stderr(&output).contains("no bandwidth left"), "{}", stderr(&output));
    }

    #[test]
    fn another_user_and_fewer_capabilities() {
        if !is_root() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        let got = |args: &[&str], script: &str| {
            let first = ["run", "--policy", "other", "--no-trace", "-q"];
            run(folder.path(), &[&first[..], args, &["--", "sh", "-c", script]].concat())
        };
        let who = got(&["--user", "65534:65534"], "id -u; id -G; grep CapEff /proc/self/status");
        expect_code(&who, 0);
        assert_eq!(stdout(&who), "65534\n65534\nCapEff:\t0000000000000000\n");
        let kept = "CapEff:\t0000000000800000\n";
        for user in [&["--user", "65534:65534"][..], &[]] {
            let args = [user, &["--caps", "sys_nice"]].concat();
            let output = got(&args, "grep CapEff /proc/self/status");
            expect_code(&output, 0);
            assert_eq!(stdout(&output), kept, "{args:?}");
        }
        let none = got(&["--caps", "none"], "grep -E 'CapEff|CapBnd' /proc/self/status");
        assert_eq!(stdout(&none), "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n");
        // A program that only its owner may execute.
        let own = folder.path().join("own");
        fs::write(&own, "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        let args = ["run", "--policy", "other", "--user", "65534:65534", "--no-trace", "--"];
        let output = run(folder.path(), &[&args[..], &[own.to_str().unwrap()]].concat());
        expect_code(&output, NOT_EXECUTABLE);
    }

    #[test]
    fn without_rights_it_is_refused_or_does_what_it_can() {
        if !is_root() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        let cpus = ["--cpus", "1", "--place", "affinity"];
        let refused =
            unprivileged(folder.path(), &[&["run"], &cpus[..], &["--", "echo", "x"]].concat());
        expect_code(&refused, NOT_STARTED);
        assert_eq!(stdout(&refused), "", "nothing was started");
        assert!(stderr(&refused).contains("--best-effort"), "{}", stderr(&refused));
        let plain = ["run", "--no-trace", "--", "true"];
        let refused = unprivileged(folder.path(), &plain);
        expect_code(&refused, NOT_STARTED);
        assert!(
            stderr(&refused).contains("policy: SCHED_FIFO, priority 80"),
            "{}",
            stderr(&refused)
        );
        let script = "grep Cpus_allowed_list /proc/self/status";
        let tail = ["--best-effort", "--", "sh", "-c", script];
        let tried = unprivileged(folder.path(), &[&["run"], &cpus[..], &tail].concat());
        expect_code(&tried, 0);
        assert!(stdout(&tried).contains("Cpus_allowed_list:\t1\n"), "what can be set is");
        let said = stderr(&tried);
        for missing in
            ["not set  policy", "not set  changes of the machine", "Wake-ups were not recorded"]
        {
            assert!(said.contains(missing), "{missing}: {said}");
        }
    }

    #[test]
    fn wake_ups_of_all_threads_are_counted() {
        if !is_root() || !Path::new("/sys/kernel/tracing/instances").exists() {
            return;
        }
        let _alone = alone();
        let folder = folder();
        let script = "import threading, time
def work():
    for _ in range(60): time.sleep(0.01)
all = [threading.Thread(target=work) for _ in range(300)]
for t in all: t.start()
for t in all: t.join()
";
        fs::write(folder.path().join("many.py"), script).unwrap();
        let args =
            ["run", "--policy", "other", "--budget", "10s", "--no-record", "--json", "got.json"];
        let output = run(folder.path(), &[&args[..], &["--", "python3", "many.py"]].concat());
        let text = fs::read_to_string(folder.path().join("got.json")).unwrap();
        let got: serde_json::Value = serde_json::from_str(&text).unwrap();
        if got["wake_ups"].is_null() {
            eprintln!("left out: {}", got["notes"]);
            return;
        }
        let threads = got["threads"].as_array().unwrap();
        assert!(threads.len() > 300, "{} threads", threads.len());
        let woke = |it: &&serde_json::Value| it["latency"]["wake_ups"].as_u64().unwrap_or(0) > 10;
        let woke = threads.iter().filter(woke).count();
        assert!(woke >= 300, "{woke} threads were seen to wake");
        let of = |name: &str| got["wake_ups"][name].as_u64().unwrap();
        let lost = of("lost_events") + of("unseen");
        expect_code(&output, if lost == 0 { 0 } else { support::NOT_PROVEN });
    }

    #[test]
    fn with_a_budget_its_wake_ups_are_a_record_and_judged() {
        let _alone = alone();
        let folder = folder();
        let Some(args) = periodic(folder.path()) else { return };
        let program = ["--", "python3", "periodic.py", "600"];
        let output = run(folder.path(), &[&args[..], &program].concat());
        // Three seconds show no rate.
        expect_code(&output, support::NOT_PROVEN);
        assert!(stderr(&output).contains("Verdict  NOT PROVEN"), "{}", stderr(&output));
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let got: serde_json::Value = serde_json::from_str(&read("got.json")).unwrap();
        assert_eq!(
            (&got["proof"]["record"], &got["proof"]["sealed"]),
            (&"made".into(), &true.into())
        );
        assert!(read("it.html").contains("python3"));
        let report = run(folder.path(), &["report", "it.rtproof", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&stdout(&report)).unwrap();
        let threads = report["cpus"].as_array().unwrap();
        // Its own, and those of what stands before it in PATH; the ordinary one is left out.
        let all_fifo = threads.iter().all(|it| it["thread"]["policy"] == "fifo");
        assert!(all_fifo && !threads.is_empty(), "{threads:?}");
        for it in threads {
            let count = |name: &str| it["measured"][name].as_u64().unwrap();
            assert!(count("sampled") > 0);
            assert_eq!(count("scheduled"), count("sampled") + count("missed"));
            assert!(it["thread"]["workload"].as_str().unwrap().starts_with("app:"));
        }
        // There already: nothing is started.
        expect_code(&run(folder.path(), &[&args[..], &program].concat()), NOT_STARTED);
        let without = [&args[..], &["--no-record"], &program].concat();
        fs::remove_file(folder.path().join("it.rtproof")).unwrap();
        let output = run(folder.path(), &without);
        let got: serde_json::Value = serde_json::from_str(&read("got.json")).unwrap();
        let of = |name: &str| got["wake_ups"][name].as_u64().unwrap();
        let is_whole = of("lost_events") + of("unseen") == 0;
        expect_code(&output, if is_whole { 0 } else { support::NOT_PROVEN });
        assert!(!folder.path().join("it.rtproof").exists());
    }

    #[test]
    fn the_record_of_a_run_that_was_killed_is_read() {
        let _alone = alone();
        let folder = folder();
        let Some(args) = periodic(folder.path()) else { return };
        let mut child = start(
            folder.path(),
            &[&args[..], &["--", "timeout", "9", "python3", "periodic.py", "4000"]].concat(),
        );
        thread::sleep(Duration::from_secs(6));
        child.kill().unwrap();
        child.wait().unwrap();
        let report = run(folder.path(), &["report", "it.rtproof"]);
        expect_code(&report, support::NOT_PROVEN);
        assert!(stdout(&report).contains("torn"), "{}", stdout(&report));
    }
}
