//! What a load may use: CPUs, policy, memory, files.

use std::path::Path;
use std::time::Duration;

use rtproof_host::CpuList;
use rustix::process::{Pid, Signal, kill_process};

use super::Case;
use super::tools::{
    LLC_BYTES, MEMORY_BYTES, becomes_so, check, cpus, run, settings, start, status, stop,
    temporary, text,
};

pub(crate) const CASES: &[(&str, Case)] = &[
    ("memory_keeps_its_budget", memory_keeps_its_budget),
    ("too_little_memory_is_said", too_little_memory_is_said),
    ("disk_leaves_no_file", disk_leaves_no_file),
    ("an_unusable_directory_is_said", an_unusable_directory_is_said),
    ("a_full_disk_gives_a_smaller_file_or_says_so", a_full_disk_gives_a_smaller_file_or_says_so),
    ("loads_run_on_their_cpus_only", loads_run_on_their_cpus_only),
    ("cpus_that_are_not_there_are_said", cpus_that_are_not_there_are_said),
    ("no_load_is_real_time", no_load_is_real_time),
];

const MIB: u64 = 1 << 20;

fn memory_keeps_its_budget() -> Result<String, String> {
    let running = start("memory", &settings("/tmp".as_ref()))?;
    let pid = running.pid().ok_or("no process")?;
    std::thread::sleep(Duration::from_secs(1));
    let peak = status(pid, "VmHWM").ok_or("no VmHWM")?;
    let peak: u64 = peak.trim_end_matches(" kB").parse().map_err(|e| format!("{peak}: {e}"))?;
    let outcome = stop(running)?;
    let count = cpus().len() as u64;
    let block = (4 * LLC_BYTES).max(64 * MIB).min(MEMORY_BYTES / 4 / count);
    let (least, most) = (count * block, count * block + 16 * MIB);
    let complaint = || format!("peak {peak} kB, {least} to {most} bytes expected: {outcome:?}");
    check((least..=most).contains(&(peak * 1024)), complaint)?;
    check(most < MEMORY_BYTES / 4 + 16 * MIB, || "the budget is not kept".into())?;
    Ok(format!("peak {peak} kB for {count} x {block} bytes"))
}

fn too_little_memory_is_said() -> Result<String, String> {
    let mut settings = settings("/tmp".as_ref());
    settings.memory_available = 2 * MIB;
    let outcome = run("memory", &settings, Duration::from_millis(300))?;
    let error = outcome.error.ok_or("no error")?;
    check(error.contains("free memory"), || error.clone())?;
    Ok(error)
}

#[expect(clippy::disallowed_methods, reason = "this test's own directory")]
fn is_empty(dir: &Path) -> bool {
    dir.read_dir().unwrap().next().is_none()
}

fn disk_leaves_no_file() -> Result<String, String> {
    let dir = temporary();
    let mut running = start("disk", &settings(dir.path()))?;
    std::thread::sleep(Duration::from_millis(700));
    check(running.poll().is_none(), || "disk failed".into())?;
    let pid = running.pid().and_then(Pid::from_raw).ok_or("no process")?;
    kill_process(pid, Signal::KILL).map_err(|error| error.to_string())?;
    let mut error = None;
    becomes_so(Duration::from_secs(2), || {
        error = running.poll();
        error.is_some()
    })
    .ok_or("a killed worker was not noticed")?;
    let error = error.ok_or("no error")?.to_string();
    check(error.contains("signal: 9"), || error.clone())?;
    check(running.poll().is_none(), || "the error is told twice".into())?;
    let outcome = stop(running)?;
    check(outcome.error.is_some(), || format!("{outcome:?}"))?;
    check(is_empty(dir.path()), || "a file is left".into())?;
    Ok(error)
}

fn an_unusable_directory_is_said() -> Result<String, String> {
    let mut seen = String::new();
    for dir in ["/nowhere/at/all", "/proc", "/dev/null"] {
        let mut running = start("disk", &settings(dir.as_ref()))?;
        let mut error = None;
        becomes_so(Duration::from_secs(2), || {
            error = running.poll();
            error.is_some()
        });
        let error = error.ok_or_else(|| format!("{dir}: no error"))?.to_string();
        check(error.contains(dir) && error.contains("--load-dir"), || error.clone())?;
        let outcome = stop(running)?;
        check(outcome.error.is_some() && outcome.work == 0, || format!("{outcome:?}"))?;
        seen += &format!("\n         {error}");
    }
    Ok(seen)
}

/// Small file systems in a mount namespace of their own: needs root and unshare(1).
fn a_full_disk_gives_a_smaller_file_or_says_so() -> Result<String, String> {
    let dir = temporary();
    let script = "mount -t tmpfs -o size=$0 none \"$1\" && shift && exec \"$@\"";
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut seen = String::new();
    for (size, fits) in [("9m", true), ("512k", false)] {
        let mut settings = settings(dir.path());
        let words = ["-m", "sh", "-c", script, size];
        let mut prefix: Vec<String> = words.iter().map(ToString::to_string).collect();
        prefix.extend([dir.path().display().to_string(), exe.display().to_string()]);
        prefix.push("load-worker".into());
        settings.worker_command = ("unshare".into(), prefix);
        let outcome = run("disk", &settings, Duration::from_secs(1))?;
        let error = outcome.error.clone().unwrap_or_default();
        if error.contains("unshare failed") || error.contains("cannot start unshare") {
            return Ok(format!("skipped, not permitted here: {error}"));
        }
        let complaint = || format!("{size}: {outcome:?}");
        let is_right = if fits {
            outcome.error.is_none() && outcome.detail.contains("2 MiB file")
        } else {
            error.contains("free at least") && error.contains("No space left")
        };
        check(is_right, complaint)?;
        seen += &format!("\n         {size}: {}{error}", outcome.detail);
    }
    Ok(seen)
}

fn loads_run_on_their_cpus_only() -> Result<String, String> {
    let all = cpus();
    let Some(other) = all.iter().last().filter(|_| all.len() > 1) else {
        return Ok("skipped, this machine has one CPU".into());
    };
    // The parent is pinned to the first, the load shall be on the last.
    let pin = |cpus: &CpuList| {
        let mut set = rustix::thread::CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(usize::try_from(cpu).unwrap()));
        rustix::thread::sched_setaffinity(None, &set).unwrap();
    };
    pin(&CpuList::new(all.iter().take(1)));
    let dir = temporary();
    let mut settings = settings(dir.path());
    settings.cpus = CpuList::new([other]);
    let mut result = Ok(format!("on CPU {other}"));
    let names = ["cpu", "memory", "net", "ping", "disk", "files", "fork", "messages", "compile"];
    for name in names.into_iter().chain(["cmd:while :; do :; done"]) {
        let running = start(name, &settings)?;
        std::thread::sleep(Duration::from_millis(300));
        let pid = running.pid().ok_or("no process")?;
        let allowed = status(pid, "Cpus_allowed_list");
        let adj = text(Path::new(&format!("/proc/{pid}/oom_score_adj")));
        if allowed != Some(other.to_string()) || adj.as_deref().map(str::trim) != Some("1000") {
            result = Err(format!("{name}: on {allowed:?}, oom_score_adj {adj:?}"));
        }
        stop(running)?;
    }
    pin(&all);
    result
}

fn cpus_that_are_not_there_are_said() -> Result<String, String> {
    let mut settings = settings("/tmp".as_ref());
    settings.cpus = CpuList::new([0, 1022]);
    let error = run("cpu", &settings, Duration::from_millis(300))?.error.ok_or("no error")?;
    check(error.contains("0,1022") && error.contains("online"), || error.clone())?;
    settings.cpus = CpuList::default();
    let none = start("cpu", &settings).err().ok_or("no error")?;
    check(none.contains("no load CPUs"), || none.clone())?;
    Ok(error)
}

fn no_load_is_real_time() -> Result<String, String> {
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut settings = settings("/tmp".as_ref());
    let prefix = ["-f", "1", &exe.display().to_string(), "load-worker"];
    settings.worker_command = ("chrt".into(), prefix.iter().map(ToString::to_string).collect());
    let outcome = run("cpu", &settings, Duration::from_millis(300))?;
    let error = outcome.error.ok_or("a real-time load ran")?;
    if error.contains("chrt: failed") {
        return Ok(format!("skipped, not permitted here: {error}"));
    }
    check(error.contains("must not be real-time"), || error.clone())?;
    Ok(error)
}
