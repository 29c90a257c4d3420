//! Loads that are other programs: the user's `cmd:` and `stress-ng:`. The worker stays above them
//! as subreaper, so that every process they leave behind, with a session of its own or not, is its
//! child, is counted and is ended. Their work is CPU time where they do not say more.

use std::{
    collections::VecDeque,
    io::{PipeReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions};

use super::process::{LAUNCH, Message, WorkerCommand, WorkerShared};
use super::spec::{self, LoadKind, LoadSpec, split_words};
use crate::Failure;

/// Unit of the work of other programs, unless stress-ng reports its own.
pub(super) const UNIT: &str = "ms of CPU time";

/// Interval between searches for ended children. A wake-up of a load disturbs nothing that is not
/// disturbed.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// Time from SIGTERM to SIGKILL.
const END_SOFT: Duration = Duration::from_millis(1000);

/// Time until a program that reports at its end is sent SIGTERM again.
const SIGTERM_INTERVAL: Duration = Duration::from_millis(300);

/// Time from SIGTERM until what is left is left to the worker's own end.
const END_HARD: Duration = Duration::from_millis(1600);

/// What is kept of the output: the end, because that says why a program ended.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// Length of its output quoted in an error.
const QUOTE_BYTES_MAX: usize = 600;

/// Runs the program until it is to stop.
///
/// # Errors
/// It could not be started, or ended by itself: its status and the end of what it wrote to stderr.
pub(super) fn run(
    spec: &LoadSpec,
    own: &WorkerCommand,
    shared: &WorkerShared,
) -> Result<(), Failure> {
    let is_stress_ng = matches!(spec.kind(), LoadKind::StressNg(_));
    let program = program(spec)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("cannot become a subreaper: {error}"))?;
    let (reader, writer) =
        std::io::pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let parent = std::process::id().to_string();
    let args: Vec<&str> =
        [LAUNCH, &parent].into_iter().chain(program.iter().map(|s| &**s)).collect();
    let mut command = own.command(&args);
    if is_stress_ng {
        let clone = writer.try_clone().map_err(|error| format!("cannot copy a pipe: {error}"))?;
        command.stdout(Stdio::from(clone));
    }
    command.stderr(Stdio::from(writer));
    let start = Instant::now();
    let child = command.spawn().map_err(|error| format!("cannot start {spec}: {error}"))?;
    let main = Pid::from_child(&child);
    // The pipe's own writing ends go with the command, so that the reader sees the end.
    drop(command);
    Message::Detail(spec.to_string()).send();
    let output = Output::collect(reader)?;
    let mut family = Family { main, status: None };
    family.watch(shared);
    let is_asked = shared.stop.load(Ordering::Relaxed);
    family.end(is_stress_ng);
    shared.counter.raise_to(super::cpu_time_ms());
    let text = output.end();
    if !is_asked {
        let status = family.status.map_or("an unknown status".into(), |status| status.to_string());
        let after = start.elapsed().as_secs_f64();
        return Err(Failure(format!(
            "ended by itself after {after:.1} s ({status}){}",
            quote(&text)
        )));
    }
    if let Some(operations) = spec::bogo_ops(&text).filter(|_| is_stress_ng) {
        Message::Unit(spec::UNIT.into()).send();
        // Not raised: the counter held milliseconds.
        shared.counter.replace(operations);
    }
    Ok(())
}

fn program(spec: &LoadSpec) -> Result<Vec<String>, Failure> {
    match spec.kind() {
        LoadKind::Command(command) => Ok(vec!["sh".into(), "-c".into(), command.clone()]),
        LoadKind::StressNg(args) => {
            let args = split_words(args)
                .map_err(|quote| format!("{spec}: a {quote} quote is not closed"))?;
            Ok(spec::program(args).map_err(|error| error.to_string())?)
        }
        LoadKind::BuiltIn(name, _) => Err(Failure(format!("{name} is not another program"))),
    }
}

/// The last step before the program, in the process that becomes it: what can only be set from
/// inside. The death signal outlives exec, so that the program goes even if the worker is killed.
pub(super) fn launch(parent: &str, program: &str, args: &[String]) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot tie {program} to its parent: {error}"))?;
    // A parent that died before the call above sends no signal.
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if now.as_deref() != Some(parent) {
        return Err(Failure(format!("the load worker {parent} is gone")));
    }
    Err(Failure(format!("cannot run {program}: {}", Command::new(program).args(args).exec())))
}

/// The program and all that it started.
struct Family {
    main: Pid,
    /// How the program itself ended.
    status: Option<ExitStatus>,
}

impl Family {
    /// Reaps and counts until the stop flag is set or none is left.
    fn watch(&mut self, shared: &WorkerShared) {
        let mut counted = Instant::now();
        while self.reap() && !shared.stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(REAP_INTERVAL);
            if counted.elapsed() >= Duration::from_secs(1) {
                shared.counter.raise_to(super::cpu_time_ms());
                counted = Instant::now();
            }
        }
    }

    /// Reaps what has ended; false when no process is left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => {
                    self.status = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Ends all: TERM, wait, KILL. `main_only`: only the program gets TERM, because it ends its
    /// children itself and reports then; asked again, because stress-ng on a busy machine has
    /// missed the first.
    fn end(&mut self, main_only: bool) {
        let start = Instant::now();
        self.ask(main_only);
        let mut asked = start;
        while self.reap() && start.elapsed() < END_HARD {
            if main_only && self.status.is_none() && asked.elapsed() > SIGTERM_INTERVAL {
                self.ask(main_only);
                asked = Instant::now();
            }
            if start.elapsed() > END_SOFT {
                // Again and again: they may start others meanwhile.
                super::descendants().iter().for_each(|process| signal(process.pid, Signal::KILL));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ask(&self, main_only: bool) {
        let main = self.main.as_raw_nonzero().get();
        for process in super::descendants() {
            if !main_only || process.pid == main {
                signal(process.pid, Signal::TERM);
                // One that is stopped hears only when it goes on.
                signal(process.pid, Signal::CONT);
            }
        }
    }
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended since.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The end of what a program wrote.
struct Output {
    kept: Arc<Mutex<VecDeque<u8>>>,
    thread: std::thread::JoinHandle<()>,
}

impl Output {
    fn collect(mut reader: PipeReader) -> Result<Self, Failure> {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let into = Arc::clone(&kept);
        let work = move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut kept = into.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                kept.extend(&buffer[..count]);
                let excess = kept.len().saturating_sub(OUTPUT_BYTES_MAX);
                kept.drain(..excess);
            }
        };
        let thread = std::thread::Builder::new().name("rtproof-output".into()).spawn(work);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { kept, thread })
    }

    /// What was kept. A process that is left over may hold the pipe open; it is not waited for.
    fn end(self) -> String {
        let deadline = Instant::now() + Duration::from_millis(100);
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }
}

/// The last words, for an error.
fn quote(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "; it wrote nothing to stderr".into();
    }
    let least = text.len().saturating_sub(QUOTE_BYTES_MAX);
    let from = (least..).find(|&byte| text.is_char_boundary(byte)).unwrap_or(text.len());
    format!("; it wrote at the end: {}", &text[from..])
}
