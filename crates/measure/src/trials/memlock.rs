//! Memlock: can this user lock all memory of a process, and is it then free of page faults? Tried
//! in a child process, so that the state of this one stays: `mlockall(MCL_CURRENT | MCL_FUTURE)`,
//! some memory more, every page of it written some times.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    time::Duration,
};

use rtproof_model::trial::{Locked, MemlockObservation};
use rustix::{mm::MlockAllFlags, process::Signal};

use super::{Context, Observation, Refusal, Trial};
use crate::sys;

/// First argument of the hidden subcommand.
pub(crate) const CHILD: &str = "memlock";
/// Longest time for the child.
const LONGEST_NS: u64 = 30_000_000_000;
/// Times that every page is written, some milliseconds apart: pages may be taken away again.
const ROUNDS: u32 = 3;
const PAGE: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub struct Memlock;

impl Trial for Memlock {
    fn name(&self) -> &'static str {
        "memlock"
    }

    fn about(&self) -> &'static str {
        "locks all memory of a child process and counts its page faults"
    }

    fn observe(&self, ctx: &Context<'_>) -> Observation {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        let bytes = ctx.memory_bytes;
        Observation::Memlock(MemlockObservation { bytes, run: ask_child(ctx), limit })
    }
}

fn ask_child(ctx: &Context<'_>) -> Result<Locked, Refusal> {
    if ctx.memory_bytes > ctx.loads.memory_available / 2 {
        let text = "more than half of the memory that is available: not tried".into();
        return Err(Refusal { errno: None, text });
    }
    let failed = |error| Refusal::new("starting the child process", &error);
    let (program, prefix) = &ctx.loads.worker_command;
    let mut child = Command::new(program)
        .args(prefix)
        .args([CHILD, &ctx.memory_bytes.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut status = None;
    ctx.wait(sys::now_ns(), LONGEST_NS, |_| {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    let Some(status) = status else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Refusal { errno: None, text: "the child process did not end".into() });
    };
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        // Some lines, which the pipe holds; what cannot be read is missing below.
        let _ = stdout.read_to_string(&mut said);
    }
    parse(&said).unwrap_or_else(|| {
        Err(Refusal { errno: None, text: format!("the child process ended early: {status}") })
    })
}

/// `locked BYTES MINOR MAJOR`, or `refused ERRNO CALL`.
fn parse(said: &str) -> Option<Result<Locked, Refusal>> {
    let (word, rest) = said.trim_end().split_once(' ')?;
    if word == "refused" {
        let (errno, call) = rest.split_once(' ')?;
        let error = std::io::Error::from_raw_os_error(errno.parse().ok()?);
        return Some(Err(Refusal::new(call, &error)));
    }
    let mut numbers = rest.split(' ').map(str::parse);
    let mut next = || numbers.next()?.ok();
    let locked = Locked { locked_bytes: next()?, faults_minor: next()?, faults_major: next()? };
    (word == "locked").then_some(Ok(locked))
}

/// The child: locks, writes, says what it saw on stdout.
///
/// # Errors
/// What cannot be said to the parent.
pub(crate) fn child(bytes: &str) -> Result<(), crate::loads::Failure> {
    let bytes: usize = bytes.parse().map_err(|error| format!("\"{bytes}\" bytes: {error}"))?;
    // The parent may be gone already; then the pipe has no reader, and this ends by itself.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    crate::loads::sacrifice();
    let answer = match lock_and_write(bytes) {
        Ok(seen) => {
            let Locked { locked_bytes, faults_minor, faults_major } = seen;
            format!("locked {locked_bytes} {faults_minor} {faults_major}\n")
        }
        Err((call, error)) => {
            format!("refused {} {call}\n", error.raw_os_error().unwrap_or(libc::ENOMEM))
        }
    };
    std::io::stdout().write_all(answer.as_bytes()).map_err(|error| error.to_string().into())
}

fn lock_and_write(bytes: usize) -> Result<Locked, (&'static str, std::io::Error)> {
    rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
        .map_err(|error| ("mlockall(MCL_CURRENT | MCL_FUTURE)", error.into()))?;
    let mut memory: Vec<u8> = Vec::new();
    memory
        .try_reserve_exact(bytes)
        .map_err(|_| ("memory after mlockall", std::io::Error::from_raw_os_error(libc::ENOMEM)))?;
    let before = sys::usage();
    memory.resize(bytes, 1);
    for round in 0..ROUNDS {
        std::thread::sleep(Duration::from_millis(10));
        memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = byte.wrapping_add(round as u8));
        std::hint::black_box(&memory);
    }
    let after = sys::usage();
    let status = rtproof_host::Root::live().read_text("/proc/self/status");
    let kib = status.value().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    });
    Ok(Locked {
        locked_bytes: kib.unwrap_or(0) << 10,
        faults_minor: after.faults_minor - before.faults_minor,
        faults_major: after.faults_major - before.faults_major,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::testing::try_out;

    #[test]
    fn what_the_child_says_is_read_back() {
        let locked = Locked { locked_bytes: 5, faults_minor: 1, faults_major: 0 };
        assert_eq!(parse("locked 5 1 0\n"), Some(Ok(locked)));
        let refused = parse("refused 1 mlockall(x | y)\n").unwrap().unwrap_err();
        assert!(refused.is_permission() && refused.text.starts_with("mlockall(x | y): "));
        for text in ["", "locked", "locked 5", "other 1 2 3", "refused x y"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_child_that_cannot_be_started_is_told() {
        let Observation::Memlock(seen) = try_out(&Memlock, 0, false) else {
            panic!("another observation");
        };
        let refusal = seen.run.unwrap_err();
        assert!(refusal.text.starts_with("starting the child process: "), "{refusal:?}");
    }
}
