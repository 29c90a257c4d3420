//! The worker as a process of the parent: started in a group of its own, ended by three means of
//! rising force, and reaped only when nothing of its group is left.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::super::built_in::memory;
use super::error::LoadError;
use super::own;
use super::pipe::{Lines, Tail};
use super::settings::Settings;
use super::spec::LoadSpec;

/// Time for a worker to end after the request. Its own limit is shorter.
const ASKED_MAX: Duration = Duration::from_secs(2);
/// Time from SIGTERM to SIGKILL for a worker that does not answer.
const TERM_MAX: Duration = Duration::from_millis(200);
/// Time for the kernel to end it after SIGKILL.
const KILL_MAX: Duration = Duration::from_millis(500);

pub(super) struct Process {
    child: Child,
    pid: Pid,
    pub(super) lines: Lines,
    pub(super) stderr: Tail,
    is_asked: bool,
    is_killed: bool,
}

impl Process {
    /// Starts a worker for a load.
    ///
    /// # Errors
    /// The directory is not UTF-8, or the binary cannot be run.
    pub(super) fn start(spec: &LoadSpec, settings: &Settings) -> Result<Self, LoadError> {
        let load = spec.to_string();
        let (program, prefix) = &settings.worker_command;
        let cpus = settings.cpus.len();
        let bytes = memory::bytes_per_cpu(settings.llc_bytes, settings.memory_available, cpus);
        let Some(dir) = settings.dir.to_str() else {
            return Err(LoadError::Directory { load, dir: settings.dir.clone() });
        };
        // What `Path::parent` makes of a bare file name.
        let dir = if dir.is_empty() { "." } else { dir };
        let child = Command::new(program)
            .args(prefix)
            .args([own::RUN, &load, &settings.cpus.to_string(), &bytes.to_string(), dir])
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
        Ok(Self { child, pid, lines, stderr, is_asked: false, is_killed: false })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether its end was requested.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Whether the request did not help.
    pub(super) fn is_killed(&self) -> bool {
        self.is_killed
    }

    /// Asks it to end, without waiting.
    pub(super) fn ask_to_end(&mut self) {
        self.is_asked = true;
        drop(self.child.stdin.take());
    }

    /// Whether it has ended. It is not reaped yet, so that its number still names its group.
    pub(super) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(rustix::process::waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Requests, then demands, then kills; false: it has not ended.
    pub(super) fn end(&mut self) -> bool {
        self.ask_to_end();
        let mut has_ended = self.wait(ASKED_MAX);
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
