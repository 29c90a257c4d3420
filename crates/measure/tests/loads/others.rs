//! Loads that are other programs: what they did, and how they failed.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use rtproof_measure::loads::{LoadSet, LoadSpec};

use super::Case;
use super::tools::{becomes_so, check, run, settings, stop, temporary};

pub(crate) const CASES: &[(&str, Case)] = &[
    ("a_command_that_ends_at_once_is_an_error", a_command_that_ends_at_once_is_an_error),
    ("a_command_that_cannot_run_is_an_error", a_command_that_cannot_run_is_an_error),
    ("a_command_that_does_nothing_is_an_error", a_command_that_does_nothing_is_an_error),
    ("work_of_short_processes_is_counted", work_of_short_processes_is_counted),
    ("a_chatty_command_is_not_held_up", a_chatty_command_is_not_held_up),
    ("stress_ng_reports_its_operations", stress_ng_reports_its_operations),
    ("stress_ng_that_fails_is_an_error", stress_ng_that_fails_is_an_error),
    ("stress_ng_is_the_system_s_own", stress_ng_is_the_system_s_own),
    ("an_unknown_name_is_said", an_unknown_name_is_said),
];

/// A program that starts a load and says why it cannot.
pub(crate) fn start(args: &[String]) -> Result<(), String> {
    let [load] = args else {
        return Err("start LOAD".into());
    };
    super::tools::start(load, &settings("/tmp".as_ref())).map(drop)
}

fn first_error(load: &str) -> Result<String, String> {
    let mut running = super::tools::start(load, &settings("/tmp".as_ref()))?;
    let mut error = None;
    becomes_so(Duration::from_secs(2), || {
        error = running.poll();
        error.is_some()
    });
    let outcome = stop(running)?;
    let error = error.ok_or("no error was told")?.to_string();
    let in_outcome = outcome.error.ok_or("no error in the outcome")?;
    check(error.ends_with(&in_outcome), || format!("{error} / {in_outcome}"))?;
    Ok(error)
}

fn a_command_that_ends_at_once_is_an_error() -> Result<String, String> {
    let error = first_error("cmd:echo no such board >&2; exit 3")?;
    let is_said = error.contains("exit status: 3") && error.contains("no such board");
    check(is_said, || error.clone())?;
    let quiet = first_error("cmd:true")?;
    check(quiet.contains("exit status: 0") && quiet.contains("nothing"), || quiet.clone())?;
    Ok(format!("\n         {error}\n         {quiet}"))
}

fn a_command_that_cannot_run_is_an_error() -> Result<String, String> {
    let error = first_error("cmd:exec /nowhere/at/all")?;
    check(error.contains("not found"), || error.clone())?;
    Ok(error)
}

fn a_command_that_does_nothing_is_an_error() -> Result<String, String> {
    let settings = settings("/tmp".as_ref());
    let outcome = run("cmd:exec sleep 100", &settings, Duration::from_millis(1100))?;
    // Starting it may take a tick of CPU time.
    check(outcome.work <= 20, || format!("{outcome:?}"))?;
    let is_said = outcome.work > 0 || outcome.error.is_some_and(|e| e.contains("did no work"));
    check(is_said, || "no error".into())?;
    Ok(format!("{} {}", outcome.work, outcome.unit))
}

/// Runs a command until it has used some CPU time, which takes a loaded machine longer.
fn uses_cpu_time(load: &str, least_ms: u64) -> Result<String, String> {
    let mut running = super::tools::start(load, &settings("/tmp".as_ref()))?;
    let mut error = None;
    let took = becomes_so(Duration::from_secs(30), || {
        error = running.poll();
        error.is_some() || running.work().0 >= least_ms
    });
    check(error.is_none(), || format!("{error:?}"))?;
    let outcome = stop(running)?;
    let complaint = || format!("in 30 s: {outcome:?}");
    check(took.is_some() && outcome.error.is_none() && outcome.work >= least_ms, complaint)?;
    Ok(format!("{} {}", outcome.work, outcome.unit))
}

fn work_of_short_processes_is_counted() -> Result<String, String> {
    uses_cpu_time("cmd:while :; do /bin/sh -c :; done", 200)
}

fn a_chatty_command_is_not_held_up() -> Result<String, String> {
    uses_cpu_time("cmd:yes >&2", 100)
}

fn stress_ng_reports_its_operations() -> Result<String, String> {
    if let Some(skipped) = without_stress_ng()? {
        return Ok(skipped);
    }
    let dir = temporary();
    let load = "stress-ng:--cpu 1 --vm 1 --vm-bytes 8m";
    // One that cannot end within its second on a busy machine is killed, and reports nothing.
    for is_last in [false, false, true] {
        let outcome = run(load, &settings(dir.path()), Duration::from_millis(1500))?;
        let complaint = || format!("{outcome:?}");
        check(outcome.error.is_none() && outcome.name == load, complaint)?;
        if outcome.unit == "bogo operations" && outcome.work > 10 {
            return Ok(format!("{} {}", outcome.work, outcome.unit));
        }
        check(!is_last, complaint)?;
    }
    Ok(String::new())
}

fn stress_ng_that_fails_is_an_error() -> Result<String, String> {
    if let Some(skipped) = without_stress_ng()? {
        return Ok(skipped);
    }
    let error = first_error("stress-ng:--no-such-stressor 1")?;
    check(error.contains("no-such-stressor"), || error.clone())?;
    let early = first_error("stress-ng:--cpu 1 --timeout 1")?;
    check(early.contains("exit status: 0"), || early.clone())?;
    Ok(String::new())
}

/// Why a case cannot run; in CI it must.
fn without_stress_ng() -> Result<Option<String>, String> {
    let is_there = Command::new("stress-ng").arg("--version").output().is_ok();
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    check(is_there || !is_ci, || "stress-ng is not installed: apt install stress-ng".into())?;
    Ok((!is_there).then(|| "skipped, stress-ng is not installed".into()))
}

/// A folder of another user that comes first in PATH.
#[expect(clippy::disallowed_methods, reason = "the test's own file")]
fn stress_ng_is_the_system_s_own() -> Result<String, String> {
    if let Some(why) = without_stress_ng()? {
        return Ok(why);
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (other, trace) = (folder.path().join("stress-ng"), folder.path().join("was-here"));
    let script = format!("#!/bin/sh\ntouch {}\n", trace.display());
    std::fs::write(&other, script).map_err(|error| error.to_string())?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&other, mode).map_err(|error| error.to_string())?;
    let mut command = Command::new("/proc/self/exe");
    command.args(["start", "stress-ng:--cpu 1"]).env("PATH", folder.path());
    let output = command.output().map_err(|error| error.to_string())?;
    check(!trace.exists(), || "the other one ran".into())?;
    check(output.status.success(), || String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(String::new())
}

fn an_unknown_name_is_said() -> Result<String, String> {
    let error = "cpu+ntt".parse::<LoadSet>().err().ok_or("no error")?.to_string();
    check(error.contains("did you mean net?") && error.contains("known are"), || error.clone())?;
    // As a file holds it, with nothing lost.
    let spec: LoadSpec = "cmd:a, b + c".parse().map_err(|error| format!("{error}"))?;
    let again =
        LoadSpec::try_from(String::from(spec.clone())).map_err(|error| error.to_string())?;
    check(spec == again, || format!("{spec} became {again}"))?;
    std::io::stdout().flush().map_err(|error| error.to_string())?;
    Ok(error)
}
