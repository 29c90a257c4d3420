//! The worker as a process of the parent: started in a group of its own, ended by three means of
//! rising force, and reaped only when nothing of its group is left.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::spec::{LoadSettings, LoadSpec};
use super::{WorkCounter, cpu};

/// Time for a worker to end after the request. Its own limit is shorter.
const REQUESTS_MAX: Duration = Duration::from_secs(2);

/// Time from SIGTERM to SIGKILL for a worker that does not answer.
const TERM_MAX: Duration = Duration::from_millis(200);

/// Time for the kernel to end it after SIGKILL.
const KILL_MAX: Duration = Duration::from_millis(500);

pub(super) struct LoadProcess {
    child: Child,
    pid: Pid,
    pub(super) lines: Lines,
    pub(super) stderr: Tail,
    is_end_requested: bool,
    is_killed: bool,
}

impl LoadProcess {
    /// Starts a worker for a load.
    ///
    /// # Errors
    /// The directory is not UTF-8, or the binary cannot be run.
    pub(super) fn start(spec: &LoadSpec, settings: &LoadSettings) -> Result<Self, LoadError> {
        let load = spec.to_string();
        let (program, prefix) = &settings.worker_command;
        let cpus = settings.cpus.len();
        let bytes = cpu::bytes_per_cpu(settings.llc_bytes, settings.memory_available, cpus);
        let Some(dir) = settings.dir.to_str() else {
            return Err(LoadError::Directory { load, dir: settings.dir.clone() });
        };
        // What `Path::parent` makes of a bare file name.
        let dir = if dir.is_empty() { "." } else { dir };
        let child = Command::new(program)
            .args(prefix)
            .args([RUN, &load, &settings.cpus.to_string(), &bytes.to_string(), dir])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: Ctrl-C is not for it, and all of it can be killed at once.
            .process_group(0)
            .spawn();
        child.and_then(Self::new).map_err(|source| {
            let program = program.clone();
            LoadError::Start { load, program, source }
        })
    }

    fn new(mut child: Child) -> std::io::Result<Self> {
        let pid = Pid::from_child(&child);
        let missing = || std::io::Error::other("a pipe is missing");
        let lines = Lines::new(child.stdout.take().ok_or_else(missing)?)?;
        let stderr = Tail::new(child.stderr.take().ok_or_else(missing)?)?;
        Ok(Self { child, pid, lines, stderr, is_end_requested: false, is_killed: false })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether its end was requested.
    pub(super) fn is_end_requested(&self) -> bool {
        self.is_end_requested
    }

    /// Whether the request did not help.
    pub(super) fn is_killed(&self) -> bool {
        self.is_killed
    }

    /// Asks it to end, without waiting.
    pub(super) fn request_end(&mut self) {
        self.is_end_requested = true;
        drop(self.child.stdin.take());
    }

    /// Whether it has ended. It is not reaped yet, so that its number still names its group.
    pub(super) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(rustix::process::waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Requests, then demands, then kills; false: it has not ended.
    pub(super) fn end(&mut self) -> bool {
        self.request_end();
        let mut has_ended = self.wait(REQUESTS_MAX);
        for (signal, time) in [(Signal::TERM, TERM_MAX), (Signal::KILL, KILL_MAX)] {
            if !has_ended {
                self.is_killed = true;
                self.signal_group(signal);
                has_ended = self.wait(time);
            }
        }
        has_ended
    }

    /// Reaps it when it has ended, after what is left of its group is killed; how it ended.
    pub(super) fn reap(&mut self) -> String {
        self.signal_group(Signal::KILL);
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    fn wait(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        let mut pause = Duration::from_micros(500);
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        true
    }

    fn signal_group(&self, signal: Signal) {
        // The group may be gone already.
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }
}

// Why a load is not running, in words that name the next step.

/// The next step, where a worker cannot be started because /proc is missing.
fn without_proc(program: &Path, source: &std::io::Error) -> &'static str {
    let is_missing = source.kind() == std::io::ErrorKind::NotFound;
    if is_missing && program.starts_with("/proc") {
        "; /proc is not mounted, and loads are started through it: mount -t proc proc /proc"
    } else {
        ""
    }
}

/// Why a load is not running.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No CPU to run on.
    #[error("{load}: no load CPUs are given: name at least one, e.g. 0")]
    NoCpus { load: String },
    /// stress-ng is wanted and not there.
    #[error(
        "{load}: {source}: install it (`apt install stress-ng`, `dnf install stress-ng`), use the \
         loads that are built in (cpu+memory+net+disk+fork), or `cmd:PATH` for another one"
    )]
    NoStressNg {
        load: String,
        /// Folders that were searched.
        source: std::io::Error,
    },
    /// The directory cannot be handed to a worker.
    #[error("{load}: the directory {} is not UTF-8: name another", dir.display())]
    Directory { load: String, dir: PathBuf },
    /// The worker could not be started.
    #[error(
        "{load}: cannot start {}: {source}{}",
        program.display(),
        without_proc(program, source)
    )]
    Start { load: String, program: PathBuf, source: std::io::Error },
    /// It could not work, or ended without a request.
    #[error("{load}: {what}")]
    Failed {
        load: String,
        /// What went wrong, and the next step.
        what: String,
    },
}

// How this binary starts itself as a worker, and what the threads of a worker share.

/// First argument: run a load.
pub(super) const RUN: &str = "run";

/// First argument: become the user's command.
pub(super) const LAUNCH: &str = "launch";

/// First argument: end at once.
pub(super) const NO_OP: &str = "nop";

/// State that the threads of a worker share.
#[derive(Default)]
pub(super) struct WorkerShared {
    pub(super) counter: WorkCounter,
    pub(super) stop: AtomicBool,
}

/// How this binary is started as a worker again.
#[derive(Clone)]
pub(super) struct WorkerCommand {
    /// Arguments between the binary's name and those of [`worker_main`](crate::worker_main).
    prefix: Vec<String>,
}

impl WorkerCommand {
    pub(super) fn find(worker_args: usize) -> Self {
        let all: Vec<_> = std::env::args_os().skip(1).collect();
        let prefix = all.len().saturating_sub(worker_args);
        let prefix = all[..prefix].iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        Self { prefix }
    }

    /// Starts this binary with `args` for [`worker_main`](crate::worker_main), without input and
    /// output.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        // The link and not the path: an upgrade may replace the file during a run.
        let mut command = Command::new("/proc/self/exe");
        command.args(&self.prefix).args(args).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

// The parent's ends of a worker's pipes, read without ever waiting and with bounded memory.

/// Longest line that is kept.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What is kept of stderr.
const TAIL_BYTES_MAX: usize = 2 << 10;

/// Reads of one call, so that a worker that writes without end does not hold the caller.
const READS_MAX: usize = 64;

/// Whole lines of a worker's stdout.
pub(super) struct Lines {
    pipe: ChildStdout,
    partial: Vec<u8>,
}

impl Lines {
    pub(super) fn new(pipe: ChildStdout) -> std::io::Result<Self> {
        no_wait(&pipe)?;
        Ok(Self { pipe, partial: Vec::new() })
    }

    /// The lines that have come in since the last call, without their ends.
    pub(super) fn read(&mut self) -> Vec<String> {
        let partial = &mut self.partial;
        drain(&mut self.pipe, |bytes| {
            partial.extend_from_slice(bytes);
        });
        take_lines(partial)
    }
}

fn take_lines(partial: &mut Vec<u8>) -> Vec<String> {
    let end = partial.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let whole: Vec<u8> = partial.drain(..end).collect();
    if partial.len() > LINE_BYTES_MAX {
        partial.clear();
    }
    String::from_utf8_lossy(&whole).lines().map(Into::into).collect()
}

/// The end of a worker's stderr.
pub(super) struct Tail {
    pipe: ChildStderr,
    kept: VecDeque<u8>,
}

impl Tail {
    pub(super) fn new(pipe: ChildStderr) -> std::io::Result<Self> {
        no_wait(&pipe)?;
        Ok(Self { pipe, kept: VecDeque::new() })
    }

    pub(super) fn read(&mut self) {
        let kept = &mut self.kept;
        drain(&mut self.pipe, |bytes| {
            kept.extend(bytes);
            kept.drain(..kept.len().saturating_sub(TAIL_BYTES_MAX));
        });
    }

    /// The text, or that there is none.
    pub(super) fn text(&mut self) -> String {
        self.read();
        match String::from_utf8_lossy(self.kept.make_contiguous()).trim() {
            "" => "nothing".into(),
            text => text.into(),
        }
    }
}

/// The flag belongs to the open file: only this end of the pipe has it.
fn no_wait(pipe: impl AsFd) -> std::io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(pipe, true)?)
}

fn drain(pipe: &mut impl Read, mut take: impl FnMut(&[u8])) {
    let mut buffer = [0; 4096];
    for _ in 0..READS_MAX {
        match pipe.read(&mut buffer) {
            Ok(count @ 1..) => take(&buffer[..count]),
            // The end, nothing there yet, or an error that waitpid will explain.
            Ok(0) | Err(_) => return,
        }
    }
}

// The lines that a worker writes to its stdout: `KIND<tab>VALUE`. Text, so that a worker can be
// run by hand; one line in one write, so that none is torn.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// What the load does, in words. Written when it is running.
    Detail(String),
    /// Unit of the work from now on.
    Unit(String),
    /// Work so far. Written once a second.
    Work(u64),
    /// What went wrong. Nothing but `Done` follows.
    Error(String),
    /// Work in all. The last line.
    Done(u64),
}

impl Message {
    /// Writes the line to stdout. A missing reader is no error: then the pipe at stdin
    /// is closed too, and ends the worker.
    pub(super) fn send(&self) {
        let _ = std::io::stdout().lock().write_all(self.to_string().as_bytes());
    }

    /// Reads a line without its end; `None`: not one of ours.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (kind, value) = line.split_once('\t')?;
        Some(match kind {
            "detail" => Self::Detail(unescape(value)),
            "unit" => Self::Unit(unescape(value)),
            "work" => Self::Work(value.parse().ok()?),
            "error" => Self::Error(unescape(value)),
            "done" => Self::Done(value.parse().ok()?),
            _ => return None,
        })
    }
}

impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Detail(text) => writeln!(f, "detail\t{}", escape(text)),
            Self::Unit(text) => writeln!(f, "unit\t{}", escape(text)),
            Self::Work(work) => writeln!(f, "work\t{work}"),
            Self::Error(text) => writeln!(f, "error\t{}", escape(text)),
            Self::Done(work) => writeln!(f, "done\t{work}"),
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => {}
            },
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod pipe_tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_bounded() {
        let mut partial = b"work\t1\nwork\t2\nwo".to_vec();
        assert_eq!(take_lines(&mut partial), ["work\t1", "work\t2"]);
        assert_eq!(partial, b"wo");
        partial.extend_from_slice(b"rk\t3\n");
        assert_eq!(take_lines(&mut partial), ["work\t3"]);
        let mut endless = vec![b'x'; LINE_BYTES_MAX + 1];
        assert!(take_lines(&mut endless).is_empty());
        assert!(endless.is_empty());
    }
}

#[cfg(test)]
mod wire_tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_went() {
        for message in [
            Message::Detail("O_DIRECT, 64 MiB\tin /tmp".into()),
            Message::Unit("bytes".into()),
            Message::Work(0),
            Message::Error("two\nlines \\n and \\ more".into()),
            Message::Done(u64::MAX),
        ] {
            let line = message.to_string();
            let (line, rest) = line.split_once('\n').unwrap();
            assert_eq!(rest, "");
            assert_eq!(Message::parse(line), Some(message));
        }
    }

    #[test]
    fn foreign_lines_are_passed_over() {
        for line in ["", "work", "work\t", "work\t-1", "hello\tworld"] {
            assert_eq!(Message::parse(line), None, "{line:?}");
        }
    }
}
