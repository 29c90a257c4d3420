//! Ending the binary with SIGKILL before a chosen system call, by strace: before every one that
//! changes something, or before a sample of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use super::is_full;

/// System calls that change a file or a folder, or say that a change is on the disk. strace acts
/// on entry: a process is killed with everything before the call done, and the call not. Files that
/// are made or cut short by `openat` are seen so by the call that follows.
pub(crate) const CALLS: &str = "?write,?writev,?pwrite64,?pwritev,?pwritev2,?sendfile,?splice,?copy_file_range,?ftruncate,\
    ?truncate,?fallocate,?fsync,?fdatasync,?sync,?syncfs,?sync_file_range,?rename,?renameat,\
    ?renameat2,?unlink,?unlinkat,?rmdir,?mkdir,?mkdirat,?mknod,?mknodat,?link,?linkat,?symlink,\
    ?symlinkat,?chmod,?fchmod,?fchmodat,?chown,?fchown,?lchown,?fchownat,?utime,?utimes,\
    ?utimensat,?setxattr,?lsetxattr,?fsetxattr,?removexattr,?lremovexattr,?fremovexattr,?flock";

/// How a run under strace ended.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// Output and exit code, or signal, of the binary.
    pub(crate) output: Output,
    /// Whether there was such a call.
    pub(crate) was_reached: bool,
    /// What strace wrote down.
    log: String,
}

/// Whether strace is there and may trace.
pub(crate) fn can_trace() -> bool {
    let mut command = Command::new("strace");
    command.args(["-qq", "-o", "/dev/null", "-e", "trace=none", "true"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A call of a run.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Which of those with that name, counted from 1.
    pub(crate) at: u64,
    /// The file or folder, as strace writes it.
    file: String,
}

impl Call {
    pub(crate) fn new(name: &str, at: u64) -> Self {
        Self { name: name.to_owned(), at, file: String::new() }
    }
}

/// The calls that a run makes, all of them: it is run to its end for that.
pub(crate) fn calls(binary: &str, folder: &Path, args: &[&str]) -> Vec<Call> {
    let end = traced(binary, folder, args, &[FILTERED, "-y"]);
    assert!(end.output.status.success(), "{:?}", end.output);
    let mut counts = BTreeMap::new();
    let mut calls = Vec::new();
    // `123  write(3, ...`; what a second thread interrupts goes on in `<... write resumed>`.
    for line in end.log.lines() {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let Some((name, arguments)) = call.split_once('(') else { continue };
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let count = counts.entry(name.to_owned()).or_insert(0);
        *count += 1;
        // `3</path>, ...`, `"/path", ...`, `AT_FDCWD</folder>, "path", ...`.
        let mut words = arguments.split(", ");
        let first = words.next().unwrap_or_default();
        let second = words.next().filter(|word| word.starts_with('"')).unwrap_or_default();
        let second = if first.starts_with("AT_FDCWD") { second } else { "" };
        let file = format!("{first}{second}");
        calls.push(Call { name: name.to_owned(), at: *count, file });
    }
    calls
}

/// Those of the calls that are tried: the first and the last of each name with each file; all with
/// `FULL=1`.
pub(crate) fn tried(calls: Vec<Call>) -> Vec<Call> {
    if is_full() {
        return calls;
    }
    let key = |call: &Call| (call.name.clone(), call.file.clone());
    let mut last = BTreeMap::new();
    for call in &calls {
        last.insert(key(call), call.at);
    }
    let mut seen = BTreeSet::new();
    let is_tried = |call: &Call| seen.insert(key(call)) || last[&key(call)] == call.at;
    calls.into_iter().filter(is_tried).collect()
}

/// Runs the binary in a folder, and kills it before a call.
pub(crate) fn killed_at(binary: &str, folder: &Path, args: &[&str], call: &Call) -> End {
    injected(binary, folder, args, "signal=KILL", call)
}

/// Runs the binary in a folder; a call is not made and fails with this error.
pub(crate) fn failing_at(
    binary: &str,
    folder: &Path,
    args: &[&str],
    error: &str,
    call: &Call,
) -> End {
    injected(binary, folder, args, &format!("error={error}"), call)
}

/// strace counts the calls of each name for themselves.
fn injected(binary: &str, folder: &Path, args: &[&str], what: &str, call: &Call) -> End {
    let Call { name, at, .. } = call;
    let inject = format!("inject={name}:{what}:when={at}");
    let kills = what == "signal=KILL";
    let options: &[&str] = if kills { &["-e", &inject] } else { &[FILTERED, "-e", &inject] };
    let mut end = traced(binary, folder, args, options);
    if kills {
        // strace ends as what it traced.
        end.was_reached = end.output.status.signal() == Some(9);
    }
    end
}

impl End {
    /// What strace wrote down.
    pub(crate) fn log(&self) -> &str {
        &self.log
    }
}

/// Only the calls that strace looks for stop the process. A signal cannot be sent to it there.
const FILTERED: &str = "--seccomp-bpf";

/// Runs the binary in a folder for a minute at most, with these expressions of strace for what is
/// done to its calls.
pub(crate) fn hit(binary: &str, folder: &Path, args: &[&str], injections: &[String]) -> End {
    let name = |injection: &str| Some(injection.strip_prefix("inject=")?.split_once(':')?.0.into());
    let names: Vec<String> = injections.iter().filter_map(|it| name(it)).collect();
    let trace = if names.is_empty() { "all".into() } else { names.join(",") };
    let trace = format!("trace={trace}");
    let mut options = vec![FILTERED, "-e", &trace];
    for injection in injections {
        options.extend(["-e", injection]);
    }
    traced_by(&["timeout", "-s", "KILL", "60", "strace"], binary, folder, args, &options)
}

fn traced(binary: &str, folder: &Path, args: &[&str], options: &[&str]) -> End {
    let trace = format!("trace={CALLS}");
    traced_by(&["strace"], binary, folder, args, &[&["-e", &trace], options].concat())
}

fn traced_by(tracer: &[&str], binary: &str, folder: &Path, args: &[&str], options: &[&str]) -> End {
    let log = folder.join("strace.log");
    let mut command = Command::new(tracer[0]);
    command.args(&tracer[1..]).args(["-f", "-qq", "-o"]).arg(&log);
    command.args(options).arg("--").arg(binary).args(args);
    command.current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = command.output().expect("strace runs");
    let log = fs::read(&log).expect("the log");
    let log = String::from_utf8_lossy(&log).into_owned();
    End { output, was_reached: log.contains("(INJECTED)"), log }
}
