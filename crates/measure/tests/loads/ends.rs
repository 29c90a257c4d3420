//! A load ends, whatever happens to it and to the program that started it.

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use rtproof_measure::loads::{LOADS, Load};
use rustix::process::{Pid, Signal, kill_process};

use super::Case;
use super::tools::{alive, becomes_so, check, family, settings, start, stop, temporary, with_text};

pub(crate) const CASES: &[(&str, Case)] = &[
    ("loads_die_with_a_killed_parent", loads_die_with_a_killed_parent),
    ("a_dropped_load_ends", a_dropped_load_ends),
    ("a_stopped_worker_is_killed", a_stopped_worker_is_killed),
    ("a_command_ends_with_all_it_started", a_command_ends_with_all_it_started),
    ("a_command_that_ignores_sigterm_is_killed", a_command_that_ignores_sigterm_is_killed),
];

/// Beside the loads that are built in; `SLEEP` stands for a number by which it is found.
const COMMAND: &str =
    "cmd:sleep SLEEP & setsid sleep SLEEP & (trap '' TERM; sleep SLEEP) & while :; do :; done";

/// And this one, where it is installed: its processes have groups of their own.
const STRESS_NG: &str = "stress-ng:--cpu 1 --vm 1 --vm-bytes 8m --hdd 1 --hdd-bytes 8m";

/// Those that do something, and need no parameter.
fn built_in() -> impl Iterator<Item = &'static str> {
    let is_alone = |load: &&&Load| {
        load.name != "idle" && !load.parameter.is_some_and(|parameter| parameter.is_needed)
    };
    LOADS.iter().filter(is_alone).map(|load| load.name)
}

/// A program that starts loads, says so and waits to be killed.
pub(crate) fn parent(args: &[String]) -> Result<(), String> {
    let [dir, sleep] = args else {
        return Err("parent DIR SLEEP".into());
    };
    let settings = settings(dir.as_ref());
    let has_stress_ng = Command::new("stress-ng").arg("--version").output().is_ok();
    let start = |load: &str| start(&load.replace("SLEEP", sleep), &settings);
    let mut running = built_in()
        .chain([COMMAND])
        .chain(has_stress_ng.then_some(STRESS_NG))
        .map(start)
        .collect::<Result<Vec<_>, _>>()?;
    std::thread::sleep(Duration::from_millis(1200));
    if let Some(error) = running.iter_mut().find_map(|running| running.poll()) {
        return Err(error.to_string());
    }
    let _ = writeln!(std::io::stdout(), "ready");
    std::thread::sleep(Duration::from_secs(60));
    Err("was not killed".into())
}

fn loads_die_with_a_killed_parent() -> Result<String, String> {
    let dir = temporary();
    let sleep = format!("60{}", std::process::id());
    let mut child = Command::new("/proc/self/exe")
        .args(["parent", &dir.path().display().to_string(), &sleep])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().ok_or("no pipe")?);
    out.read_line(&mut line).map_err(|error| error.to_string())?;
    let family = family(Pid::from_child(&child).as_raw_nonzero().get());
    let sleeps = with_text(&format!("sleep\0{sleep}\0")).len();
    child.kill().and_then(|()| child.wait().map(drop)).map_err(|error| error.to_string())?;
    check(line == "ready\n", || format!("the parent said {line:?}"))?;
    // The parent, its workers, the command, its sub-shell and its sleeps; no-ops come and go.
    let least = 1 + built_in().count() + 1 + 2 + 3;
    check(family.len() >= least && sleeps == 3, || format!("{sleeps} sleeps, {family:?}"))?;
    // Those that were there, and those that were started since: they name the directory.
    let named = || with_text(&dir.path().display().to_string());
    let is_over = || alive(&family).is_empty() && named().is_empty();
    let took = becomes_so(Duration::from_secs(2), is_over);
    let left = || format!("left after 2 s: {:?} {:?}", alive(&family), named());
    let took = took.ok_or_else(left)?;
    Ok(format!("{} processes gone after {took:.0?}", family.len()))
}

fn a_dropped_load_ends() -> Result<String, String> {
    let dir = temporary();
    let dir_text = dir.path().display().to_string();
    let settings = settings(dir.path());
    let running = ["cpu", "fork"].map(|name| start(name, &settings));
    std::thread::sleep(Duration::from_millis(200));
    check(with_text(&dir_text).len() >= 2, || "nothing runs".into())?;
    drop(running);
    let left = with_text(&dir_text);
    check(left.is_empty(), || format!("left: {left:?}"))?;
    Ok(String::new())
}

fn a_stopped_worker_is_killed() -> Result<String, String> {
    let running = start("net", &settings("/tmp".as_ref()))?;
    std::thread::sleep(Duration::from_millis(1200));
    let pid = running.pid().and_then(Pid::from_raw).ok_or("no process")?;
    kill_process(pid, Signal::STOP).map_err(|error| error.to_string())?;
    let outcome = stop(running)?;
    let error = outcome.error.ok_or("a load that had to be killed is no success")?;
    // What it said before it was stopped is kept.
    check(outcome.work > 0 && error.contains("did not end when asked"), || error.clone())?;
    Ok(error)
}

fn a_command_ends_with_all_it_started() -> Result<String, String> {
    let sleep = format!("61{}", std::process::id());
    let wanted = format!("sleep\0{sleep}\0");
    let command = format!(
        "cmd:(setsid sleep {sleep} &); sh -c 'sleep {sleep} & sleep {sleep}' & while :; do :; done"
    );
    let running = start(&command, &settings("/tmp".as_ref()))?;
    becomes_so(Duration::from_secs(2), || with_text(&wanted).len() == 3)
        .ok_or_else(|| format!("{:?}", with_text(&wanted)))?;
    std::thread::sleep(Duration::from_millis(300));
    let outcome = stop(running)?;
    check(with_text(&wanted).is_empty(), || format!("left: {:?}", with_text(&wanted)))?;
    let complaint = || format!("{outcome:?}");
    check(outcome.error.is_none() && outcome.name == command, complaint)?;
    check(outcome.unit == "ms of CPU time" && outcome.work > 0, complaint)?;
    Ok(format!("{} {}", outcome.work, outcome.unit))
}

fn a_command_that_ignores_sigterm_is_killed() -> Result<String, String> {
    let mark = format!("mark{}", std::process::id());
    let command = format!("cmd:trap '' TERM; : {mark}; while :; do :; done");
    let running = start(&command, &settings("/tmp".as_ref()))?;
    std::thread::sleep(Duration::from_millis(300));
    let outcome = stop(running)?;
    check(with_text(&mark).is_empty(), || format!("left: {:?}", with_text(&mark)))?;
    check(outcome.error.is_none() && outcome.work > 0, || format!("{outcome:?}"))?;
    Ok(format!("{} {}", outcome.work, outcome.unit))
}
