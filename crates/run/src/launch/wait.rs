//! Waiting for a program: signals are passed on, threads looked for, and the processes that it left
//! are waited for, too.

use std::{
    collections::BTreeSet,
    io,
    process::Child,
    time::{Duration, Instant},
};

use rtproof_host::{Root, counts};
use rtproof_measure::process::{Queue, Taken};
use rtproof_results::launch::{Ending, Faults};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid,
};
use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGURG, SIGUSR1, SIGUSR2,
};

use super::{got::Threads, record::Recording, service};
use crate::rules::Watching;

/// Signals that are passed on.
pub(super) const PASSED: &[i32] =
    &[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP];
/// Of these, those that end what has not begun.
pub(super) const ENDING: &[i32] = &[SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// Time between two looks for new threads, which are not recorded before.
const FIND: Duration = Duration::from_millis(20);
/// Time between two looks at all counts and all processes.
const LOOK: Duration = Duration::from_secs(1);

/// What happened while a program ran.
pub(super) enum Happened {
    /// Time to look after the guard.
    Second,
    /// Its first process has ended and others run on.
    Left(usize),
}

/// What is waited for.
pub(super) enum Main {
    /// A process that this one started, and what it leaves.
    Child(Child),
    /// A service of systemd.
    Service(service::Started),
}

/// A program that runs.
pub(super) struct Running<'a> {
    pub(super) signals: &'a Queue,
    pub(super) main: Main,
    /// Processes of rtproof itself.
    pub(super) ours: BTreeSet<u32>,
    pub(super) threads: Threads,
    pub(super) recording: Option<Recording>,
    /// The rules, where they are checked; why they cannot be.
    pub(super) rules: Result<Option<Watching>, String>,
    /// Whether SIGTSTP was passed on: we stop when the program does, which may handle it, and which
    /// the kernel does not stop in an orphaned process group (a service).
    pub(super) stops: bool,
}

pub(super) struct Ended {
    /// What the ending says beside its number.
    pub(super) note: Option<String>,
    pub(super) ending: Ending,
    pub(super) faults: Option<Faults>,
    pub(super) threads: Threads,
    pub(super) recording: Option<Recording>,
    pub(super) rules: Result<Option<Watching>, String>,
}

/// All signals that are taken: SIGURG by itself does nothing to who does not wait for it.
pub(super) fn taken() -> Vec<i32> {
    PASSED.iter().copied().chain([SIGCHLD, SIGURG]).collect()
}

impl Running<'_> {
    /// Waits for the end of the program and of what it left. `happened` is called once a second.
    pub(super) fn wait(
        mut self,
        mut happened: impl FnMut(&mut BTreeSet<u32>, Happened),
    ) -> anyhow::Result<Ended> {
        let root = Root::live();
        let mut ended = None;
        let mut others: Vec<u32> = Vec::new();
        let mut looked: Option<Instant> = None;
        let has_rules = matches!(self.rules, Ok(Some(_)));
        let pause =
            if self.recording.is_some() || has_rules { FIND } else { Duration::from_millis(100) };
        loop {
            let taken = self.signals.take(pause);
            if let Ok(Some(rules)) = &mut self.rules {
                rules.look(taken.is_some_and(|taken| taken.signal == SIGURG));
            }
            if let Some(taken) = taken {
                self.pass(taken, ended.is_none(), &others);
            }
            if self.stops && ended.is_none() && self.main.has_stopped()? {
                self.stops = false;
                // SIGCONT goes on, and is passed on in its turn.
                let _ = kill_process(rustix::process::getpid(), Signal::STOP);
            }
            let pids: Vec<u32> = others.iter().copied().chain([self.main.id()]).collect();
            let fresh = self.threads.find(&root, &pids);
            if let Some(recording) = &mut self.recording {
                recording.follow(fresh);
                recording.take();
            }
            if ended.is_none() && self.main.is_over(&root)? {
                // Until it is waited for, the kernel still has its counts.
                self.threads.look(&root);
                let faults = counts::faults_of_process(&root, self.main.id());
                let faults = faults.map(|(minor, major)| Faults { minor, major });
                ended = Some((self.main.ending()?, faults));
                others = self.others(&root);
                if !others.is_empty() {
                    happened(&mut self.ours, Happened::Left(others.len()));
                }
            }
            if looked.is_none_or(|at| at.elapsed() >= LOOK) || ended.is_some() {
                others = self.others(&root);
                self.reap(&root);
                if looked.is_none_or(|at| at.elapsed() >= LOOK) {
                    looked = Some(Instant::now());
                    self.threads.look(&root);
                    if let Some(recording) = &mut self.recording {
                        recording.second(&self.threads);
                    }
                    happened(&mut self.ours, Happened::Second);
                }
            }
            match ended {
                Some((ending, faults)) if others.is_empty() => {
                    let note = self.main.note(ending);
                    let Self { threads, recording, rules, .. } = self;
                    return Ok(Ended { ending, note, faults, threads, recording, rules });
                }
                _ => {}
            }
        }
    }

    /// The processes of the program, its first one left out. Those whose parent has ended are ours.
    fn others(&self, root: &Root) -> Vec<u32> {
        let main = self.main.id();
        let all = match &self.main {
            Main::Child(_) => counts::descendants(root, std::process::id()),
            Main::Service(service) => service.pids(root),
        };
        all.into_iter().filter(|pid| *pid != main && !self.ours.contains(pid)).collect()
    }

    /// Waits for processes that have ended and whose parent is gone.
    fn reap(&self, root: &Root) {
        for pid in counts::ended_children(root, std::process::id()) {
            if pid != self.main.id() && !self.ours.contains(&pid) {
                let pid = Pid::from_raw(pid.cast_signed());
                let _ = pid.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
            }
        }
    }

    /// Passes a signal on. One that a key of the terminal sent has come to the program as well.
    fn pass(&mut self, taken: Taken, main_runs: bool, others: &[u32]) {
        let Taken { signal, is_kernels } = taken;
        if signal == SIGCHLD || signal == SIGURG {
            return;
        }
        if ENDING.contains(&signal)
            && let Ok(Some(rules)) = &mut self.rules
        {
            rules.stop();
        }
        let to = if main_runs { vec![self.main.id()] } else { others.to_vec() };
        match &self.main {
            Main::Service(service) if ENDING.contains(&signal) => service.stop(),
            Main::Child(_) if is_kernels => {}
            _ => to.into_iter().for_each(|pid| send(pid, signal)),
        }
        if matches!(self.main, Main::Child(_)) && [SIGTSTP, SIGCONT].contains(&signal) {
            self.stops = signal == SIGTSTP;
        }
    }
}

impl Main {
    fn id(&self) -> u32 {
        match self {
            Self::Child(child) => child.id(),
            Self::Service(service) => service.main(),
        }
    }

    /// Whether it has stopped since it was asked last; a service is not waited for.
    fn has_stopped(&self) -> io::Result<bool> {
        match self {
            Self::Child(child) => has_stopped(child.id()),
            Self::Service(_) => Ok(false),
        }
    }

    fn is_over(&mut self, root: &Root) -> anyhow::Result<bool> {
        match self {
            Self::Child(child) => Ok(is_over(child.id())?),
            Self::Service(service) => service.look(root),
        }
    }

    /// Of one that is over.
    fn ending(&mut self) -> io::Result<Ending> {
        match self {
            Self::Child(child) => Ok(ending(child.wait()?)),
            Self::Service(service) => Ok(service.ending()),
        }
    }

    fn note(&self, ending: Ending) -> Option<String> {
        match self {
            Self::Child(_) => None,
            Self::Service(service) => service.note(ending),
        }
    }
}

fn send(pid: u32, signal: i32) {
    let pid = Pid::from_raw(pid.cast_signed());
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // It may have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Whether a child has stopped since it was asked last.
fn has_stopped(pid: u32) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { return Ok(false) };
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    Ok(waitid(WaitId::Pid(pid), options)?.is_some())
}

/// Whether a child has ended; it stays to be waited for.
fn is_over(pid: u32) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { return Ok(true) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid), options)?.is_some())
}

fn ending(status: std::process::ExitStatus) -> Ending {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Ending::Killed(signal),
        (None, None) => Ending::Exited(u8::MAX),
    }
}
