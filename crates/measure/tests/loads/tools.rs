//! What the cases share: settings, processes as /proc shows them, waiting.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rtproof_host::CpuList;
use rtproof_measure::loads::{LoadOutcome, LoadSettings, Runner, RunningLoad};

/// Last-level cache that the memory load is given.
pub(crate) const LLC_BYTES: u64 = 8 << 20;
/// Available memory that it is given.
pub(crate) const MEMORY_BYTES: u64 = 2 << 30;

/// All CPUs of this process.
pub(crate) fn cpus() -> CpuList {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let is_ours = |&cpu: &u32| set.is_set(usize::try_from(cpu).unwrap());
    CpuList::new((0u32..1024).filter(is_ours))
}

pub(crate) fn settings(dir: &Path) -> LoadSettings {
    LoadSettings {
        cpus: cpus(),
        dir: dir.into(),
        memory_available: MEMORY_BYTES,
        llc_bytes: LLC_BYTES,
        worker_command: ("/proc/self/exe".into(), vec!["load-worker".into()]),
    }
}

pub(crate) fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn start(spec: &str, settings: &LoadSettings) -> Result<RunningLoad, String> {
    let spec = spec.parse().map_err(|error| format!("{spec}: {error}"))?;
    Runner::start(&spec, settings).map_err(|error| error.to_string())
}

/// Starts a load, lets it run, stops it within 3 s.
pub(crate) fn run(
    spec: &str,
    settings: &LoadSettings,
    time: Duration,
) -> Result<LoadOutcome, String> {
    let running = start(spec, settings)?;
    std::thread::sleep(time);
    stop(running)
}

/// Stops a load, which must be done in 3 s and leave no process of those that were below it.
pub(crate) fn stop(running: RunningLoad) -> Result<LoadOutcome, String> {
    let (name, family) = (running.spec().to_string(), running.pid().map(family));
    let start = Instant::now();
    let outcome = running.stop();
    let took = start.elapsed();
    check(took < Duration::from_secs(3), || format!("{name}: stop took {took:?}"))?;
    let left = alive(&family.unwrap_or_default());
    check(left.is_empty(), || format!("{name}: left: {left:?}"))?;
    Ok(outcome)
}

pub(crate) fn check(is_so: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(otherwise()) }
}

/// Polls every 5 ms until it is true or the time is over.
pub(crate) fn becomes_so(within: Duration, mut is_so: impl FnMut() -> bool) -> Option<Duration> {
    let start = Instant::now();
    while !is_so() {
        if start.elapsed() > within {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(start.elapsed())
}

/// A process; its start distinguishes it from a later one of the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pid: i32,
    parent: i32,
    start_ticks: u64,
    is_zombie: bool,
}

fn all() -> Vec<Process> {
    let parse = |path: &PathBuf| {
        let text = text(&path.join("stat"))?;
        let (front, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Process {
            pid: front.split(' ').next()?.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
            is_zombie: fields.first() == Some(&"Z"),
        })
    };
    processes().iter().filter_map(parse).collect()
}

/// A process and all below it, whatever their groups and sessions.
pub(crate) fn family(pid: i32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<_> = all.iter().filter(|process| process.pid == pid).cloned().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.pid) {
        found.extend(all.iter().filter(|process| process.parent == parent).cloned());
        next += 1;
    }
    found
}

/// Those that still run.
pub(crate) fn alive(family: &[Process]) -> Vec<Process> {
    let is_one = |process: &Process| {
        let same = |one: &Process| (one.pid, one.start_ticks) == (process.pid, process.start_ticks);
        !process.is_zombie && family.iter().any(same)
    };
    all().into_iter().filter(is_one).collect()
}

/// Command lines that hold a text, this process's own excepted.
pub(crate) fn with_text(wanted: &str) -> Vec<String> {
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let others = processes().into_iter().filter(|path| *path != own);
    let lines = others.filter_map(|path| text(&path.join("cmdline")));
    lines.filter(|line| line.contains(wanted)).map(|line| line.replace('\0', " ")).collect()
}

/// No process that this one started is there, not even as a zombie.
pub(crate) fn nothing_is_left() -> Result<(), String> {
    let left = family(rustix::process::getpid().as_raw_nonzero().get()).split_off(1);
    check(left.is_empty(), || format!("children are left: {left:?}"))
}

#[expect(clippy::disallowed_methods, reason = "this test's own processes")]
fn processes() -> Vec<PathBuf> {
    let is_process = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.bytes().all(|byte| byte.is_ascii_digit())
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.flatten().map(|entry| entry.path()).filter(is_process).collect()
}

#[expect(clippy::disallowed_methods, reason = "this test's own processes")]
pub(crate) fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

/// The value of a key of /proc/PID/status.
pub(crate) fn status(pid: i32, key: &str) -> Option<String> {
    let text = text(Path::new(&format!("/proc/{pid}/status")))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().into())
}
