//! The user's program: started on the measured CPU with the plan's policy, read without waiting,
//! ended with its whole group.

use std::{
    io,
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rtproof_host::program;
use rustix::process::{Pid, Signal};

use super::super::workload::{Program, Setting};
use crate::{Policy, sys, task::pin};

/// Time from SIGTERM to SIGKILL.
const TERM_MAX: Duration = Duration::from_millis(300);
/// Room for output that has not been read yet, bytes: tens of thousands of lines.
const PIPE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    pid: Pid,
    stdout: ChildStdout,
    pub(super) program: Program,
}

impl Running {
    /// Starts a command by the shell, in whose place it runs.
    pub(super) fn start(command: &str, setting: &Setting) -> io::Result<Self> {
        // A thread of its own, because what it starts has its CPU and policy from the beginning.
        let born = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("rtproof/exec".into());
            let spawned = thread.spawn_scoped(scope, || spawn(command, setting))?;
            spawned.join().unwrap_or_else(|_| Err(io::Error::other("cannot be started")))
        });
        let (mut child, mut policy_error, mut is_pinned) = born?;
        let pid = Pid::from_child(&child);
        let id = child.id();
        if setting.policy == Policy::Deadline {
            (policy_error, is_pinned) = make_deadline(id, setting.period_ns);
        }
        let (policy, priority) = sys::policy_of(id).unwrap_or((Policy::Other, 0));
        let program = Program { pid: id, policy, priority, policy_error, is_pinned };
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("a pipe is missing"))?;
        rustix::io::ioctl_fionbio(&stdout, true)?;
        // A smaller pipe works too.
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_BYTES);
        Ok(Self { child, pid, stdout, program })
    }

    /// Reads what is there: 0 bytes at the end, `None` when nothing is there yet.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.stdout, buffer) {
            Ok(n) => Ok(Some(n)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until something can be read, at most until a time of CLOCK_MONOTONIC.
    pub(super) fn wait(&self, until_ns: u64) {
        use rustix::event::{PollFd, PollFlags, poll};
        let left_ns = until_ns.saturating_sub(sys::now_ns());
        // Looked at again in between: whether the run was stopped.
        let timeout = sys::timespec(left_ns.min(50_000_000));
        let mut fds = [PollFd::from_borrowed_fd(self.stdout.as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// How it ended, when it does within a moment after the end of its output.
    pub(super) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if start.elapsed() < TERM_MAX => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => return None,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group may be gone already.
        let signal = |signal| rustix::process::kill_process_group(self.pid, signal);
        if let Ok(None) = self.child.try_wait() {
            let _ = signal(Signal::TERM);
            let start = Instant::now();
            while start.elapsed() < TERM_MAX && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let _ = signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

type Born = (Child, Option<String>, bool);

fn spawn(command: &str, setting: &Setting) -> io::Result<Born> {
    let is_pinned = pin(setting.cpu).map(|()| true)?;
    let policy_error = match setting.policy {
        Policy::Deadline => None,
        policy => sys::set_policy_for_children(policy, setting.priority).err(),
    };
    let child = Command::new(program::find("sh")?)
        .args(["-c", &format!("exec {command}")])
        .env("RTPROOF_CPU", setting.cpu.to_string())
        .env("RTPROOF_PERIOD_NS", setting.period_ns.to_string())
        .env("RTPROOF_DURATION_NS", setting.duration_ns.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    Ok((child, policy_error.map(|error| error.to_string()), is_pinned))
}

/// As [`crate::thread`] does for its own threads: pinned where the kernel allows it.
fn make_deadline(pid: u32, period_ns: u64) -> (Option<String>, bool) {
    let Err(error) = sys::set_deadline(pid, period_ns) else { return (None, true) };
    let moved = sys::set_affinity(pid, sys::EVERY_CPU);
    if moved.is_ok() && sys::set_deadline(pid, period_ns).is_ok() {
        return (None, false);
    }
    (Some(error.to_string()), false)
}

/// What writing a line into a pipe takes, nanoseconds: the fastest of some.
pub(super) fn line_cost_ns() -> u64 {
    let Ok((read, write)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK) else {
        return 0;
    };
    let mut buffer = [0_u8; 64];
    let times = (0..100).map(|_| {
        let start_ns = sys::now_ns();
        let _ = rustix::io::write(&write, b"1234567890123 45678\n");
        let end_ns = sys::now_ns();
        let _ = rustix::io::read(&read, &mut buffer);
        end_ns - start_ns
    });
    times.min().unwrap_or(0)
}
