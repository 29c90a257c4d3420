//! The end of a process that rtproof started: within a time, whatever it does. One that is stopped
//! hears nothing, one may be deaf to TERM, and one that waits for a device does not even die.

use std::{
    io,
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use crate::trusted;

/// Time for the kernel to end a process after SIGKILL.
const KILL_MAX: Duration = Duration::from_millis(500);

/// Which processes get the signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The child, and nothing that it started.
    Child,
    /// The process group that the child leads.
    Group,
}

/// Ends a child: CONT, `ask` (TERM, or nothing where it knows already), KILL after the limit. How
/// it ended; `None`: it lives on, in a call of the kernel that SIGKILL does not end, and is left.
pub fn end(
    child: &mut Child,
    reach: Reach,
    ask: Option<Signal>,
    limit: Duration,
) -> Option<ExitStatus> {
    let pid = Pid::from_child(child);
    let send = |signal| {
        // It may be gone already.
        let _ = match reach {
            Reach::Child => kill_process(pid, signal),
            Reach::Group => kill_process_group(pid, signal),
        };
    };
    match has_ended(pid) {
        // It was waited for: its number may be another's by now.
        None => return child.try_wait().ok().flatten(),
        Some(true) => {}
        Some(false) => ask.into_iter().chain([Signal::CONT]).for_each(send),
    }
    let is_over = wait_until(limit, || has_ended(pid) != Some(false));
    if reach == Reach::Group || !is_over {
        send(Signal::KILL);
        wait_until(KILL_MAX, || has_ended(pid) != Some(false));
    }
    child.try_wait().ok().flatten()
}

/// Whether a child has ended, which stays to be waited for; `None`: no such child.
fn has_ended(pid: Pid) -> Option<bool> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), how).ok().map(|status| status.is_some())
}

/// Runs a program to its end, within a time: what it wrote, to each of stdout and stderr.
///
/// # Errors
/// It cannot be run, or takes longer; it is ended then.
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    // Memory, not pipes: no reader is needed while it runs.
    let (stdout, stderr) = (trusted::memory()?, trusted::memory()?);
    command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut child = command.spawn()?;
    let mut status = None;
    wait_until(limit, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    let Some(status) = status else {
        end(&mut child, Reach::Child, None, Duration::ZERO);
        let why = format!("no answer within {} s", limit.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, why));
    };
    let (stdout, stderr) = (trusted::written(&stdout, 0)?, trusted::written(&stderr, 0)?);
    Ok(Output { status, stdout, stderr })
}

/// Asks again and again, less and less often: whether it is so within the limit.
fn wait_until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_micros(500);
    while !is_so() {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    true
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        os::unix::process::{CommandExt as _, ExitStatusExt as _},
    };

    use super::*;

    /// A shell that has begun.
    fn shell(script: &str) -> Child {
        let script = format!("{script}\necho ready\nwhile :; do sleep 0.05; done");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdout(Stdio::piped()).process_group(0);
        let mut child = shell.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut String::new()).unwrap();
        child
    }

    fn ended(mut child: Child) -> (Option<i32>, Duration) {
        let began = Instant::now();
        let limit = Duration::from_millis(300);
        let status = end(&mut child, Reach::Group, Some(Signal::TERM), limit).expect("an end");
        (status.signal(), began.elapsed())
    }

    #[test]
    fn who_hears_ends_at_once_and_who_is_deaf_or_stopped_within_the_limit() {
        let (signal, took) = ended(shell(""));
        assert!(signal == Some(15) && took < Duration::from_secs(2), "{signal:?} {took:?}");
        let (signal, took) = ended(shell("trap '' TERM"));
        assert!(signal == Some(9) && took < Duration::from_secs(3), "{signal:?} {took:?}");
        let stopped = shell("");
        kill_process(Pid::from_child(&stopped), Signal::STOP).unwrap();
        assert_eq!(ended(stopped).0, Some(15), "it goes on to hear it");
        let mut over = Command::new("true").spawn().unwrap();
        over.wait().unwrap();
        assert!(end(&mut over, Reach::Child, None, Duration::ZERO).is_some());
    }
}
