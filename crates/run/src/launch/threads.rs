//! The process that becomes the program, and what its threads were granted.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ffi::{OsStr, OsString},
    io::{self, BufRead as _, BufReader, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::Path,
    process::{Child, Command},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid},
};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGTSTP, SIGURG, SIGUSR1, SIGUSR2,
};

use rtproof_host::{
    Root,
    facts::tasks::Policy,
    task::{self, TaskCounts},
};
use rtproof_judge::units;
use rtproof_measure::{Queue, TakenSignal, inherited, unblock};
use rtproof_results::{
    launch::{
        BudgetAnswer, BudgetKept, Cannot, Faults, LaunchedThread, Preempted, ProgramEnding,
        ThreadScheduling, WakeUpLatency, WakeUps,
    },
    policy_name,
};

use super::setup::ProgramSetup;
use super::{Recording, service};
use crate::explain::live::Closed;
use crate::rules::Watching;

// The process that becomes the program: this binary once more, which sets itself up and then
// executes the program in its place. Code between fork and exec of a process with threads could
// do next to nothing safely.
//
// It talks with its parent over a socket that it was started with: what to set comes, what could
// not be set goes, then the word to go comes. The socket ends when the program takes over; what
// goes before that is why it could not.

/// First argument of the process.
pub const NAME: &str = "become-program";

/// What the process says.
#[derive(Debug, Serialize, Deserialize)]
struct ChildMessage {
    /// What could not be set.
    cannot: Vec<Cannot>,
    /// The program could not be executed: the number of the error.
    #[serde(default)]
    error: Option<i32>,
}

/// Runs in the process: `socket -- file program arguments`. Returns why it could
/// not become the program.
pub fn main(mut args: impl Iterator<Item = OsString>) -> io::Error {
    let (Some(socket), Some(file), Some(name)) = (args.next(), args.nth(1), args.next()) else {
        return io::ErrorKind::InvalidInput.into();
    };
    match become_program(&socket, (&file, &name), args) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

/// Nothing: the program has taken over.
enum Never {}

fn become_program(
    socket: &OsStr,
    (file, name): (&OsStr, &OsStr),
    args: impl Iterator<Item = OsString>,
) -> io::Result<Never> {
    let number = socket.to_str().and_then(|text| text.parse().ok());
    let stream = UnixStream::from(inherited(number.ok_or(io::ErrorKind::InvalidInput)?)?);
    let mut lines = BufReader::new(&stream);
    let mut text = String::new();
    lines.read_line(&mut text)?;
    let setup: ProgramSetup = serde_json::from_str(&text)?;
    send_message(&stream, &ChildMessage { cannot: setup.make(), error: None })?;
    let mut go = String::new();
    lines.read_line(&mut go)?;
    if go.trim() != "go" {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    unblock(&taken())?;
    let mut command = Command::new(file);
    command.arg0(name).args(args);
    if let Some(user) = &setup.user {
        command.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name);
    }
    let error = command.exec();
    send_message(&stream, &ChildMessage { cannot: Vec::new(), error: error.raw_os_error() })?;
    Err(error)
}

fn send_message(mut stream: &UnixStream, said: &ChildMessage) -> io::Result<()> {
    let mut line = serde_json::to_string(said)?;
    line.push('\n');
    stream.write_all(line.as_bytes())
}

/// The process, before it has become the program.
pub(super) struct StartingProcess {
    pub(super) child: Child,
    stream: UnixStream,
    /// What could not be set.
    pub(super) cannot: Vec<Cannot>,
}

impl StartingProcess {
    /// Starts it, and lets it set itself up.
    pub(super) fn begin(
        file: &Path,
        words: &[OsString],
        setup: &ProgramSetup,
    ) -> anyhow::Result<Self> {
        let (stream, theirs) = UnixStream::pair().context("a socket")?;
        fcntl_setfd(&theirs, FdFlags::empty()).context("a socket for the program")?;
        // The file that runs, whatever is at its path.
        let mut command = Command::new("/proc/self/exe");
        command.arg(NAME).arg(theirs.as_raw_fd().to_string()).arg("--").arg(file).args(words);
        let mut child = command.spawn().context("a process for the program")?;
        drop(theirs);
        let answer = || {
            let mut line = serde_json::to_string(setup)?;
            line.push('\n');
            (&stream).write_all(line.as_bytes())?;
            read_message(&stream)?.context("it ended before it was set up")
        };
        match answer() {
            Ok(said) => Ok(Self { child, stream, cannot: said.cannot }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.context("the process for the program"))
            }
        }
    }

    /// Lets it become the program.
    ///
    /// # Errors
    /// Why the program could not be executed.
    pub(super) fn release(mut self) -> anyhow::Result<Result<Child, io::Error>> {
        (&self.stream).write_all(b"go\n").context("the process for the program")?;
        match read_message(&self.stream)? {
            None => Ok(Ok(self.child)),
            Some(said) => {
                let _ = self.child.wait();
                let error = said.error.map_or_else(
                    || io::Error::other("the kernel gave no reason"),
                    io::Error::from_raw_os_error,
                );
                Ok(Err(error))
            }
        }
    }

    pub(super) fn give_up(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next line of the process; `None`: it has become the program, or has ended.
fn read_message(stream: &UnixStream) -> anyhow::Result<Option<ChildMessage>> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context("the process for the program")?;
    Ok(if line.is_empty() { None } else { Some(serde_json::from_str(&line)?) })
}

// What the threads of a program got: the kernel's counts, looked at while they live, and their
// wake-ups where those were recorded.

/// Most threads that are kept apart.
const THREADS_MAX: usize = 4_096;

/// The threads of the program and of the processes that it started.
#[derive(Debug, Default)]
pub(super) struct Threads {
    seen: BTreeMap<u32, (u32, Option<TaskCounts>)>,
    more: u64,
}

impl Threads {
    /// Looks for threads that have come; returns them. Each is looked at once, in case that it ends
    /// before the next look.
    pub(super) fn find(&mut self, root: &Root, pids: &[u32]) -> Vec<u32> {
        let mut fresh = Vec::new();
        for &pid in pids {
            for tid in task::threads(root, pid) {
                let is_full = self.seen.len() >= THREADS_MAX;
                match self.seen.entry(tid) {
                    Entry::Occupied(_) => {}
                    Entry::Vacant(_) if is_full => self.more += 1,
                    Entry::Vacant(place) => {
                        place.insert((pid, task::of_thread(root, pid, tid)));
                        fresh.push(tid);
                    }
                }
            }
        }
        fresh
    }

    /// What was last seen of a thread.
    pub(super) fn counts(&self, tid: u32) -> Option<&TaskCounts> {
        self.seen.get(&tid)?.1.as_ref()
    }

    /// Looks at all of them again. An ended thread keeps its last values.
    pub(super) fn refresh(&mut self, root: &Root) {
        for (&tid, (pid, seen)) in &mut self.seen {
            let now = task::of_thread(root, *pid, tid);
            let is_same = |now: &TaskCounts| {
                seen.as_ref().is_none_or(|seen| seen.start_ticks == now.start_ticks)
            };
            let Some(mut now) = now.filter(is_same) else { continue };
            // One that waits to be waited for has no CPUs any more.
            now.cpus = now.cpus.or_else(|| seen.as_ref().and_then(|seen| seen.cpus.clone()));
            *seen = Some(now);
        }
    }

    /// What they got, and how many were not kept apart.
    pub(super) fn finish(self, recorded: Option<&Closed>) -> (Vec<LaunchedThread>, u64) {
        let thread =
            |(tid, (pid, seen)): (u32, (u32, Option<TaskCounts>))| thread(tid, pid, seen, recorded);
        (self.seen.into_iter().map(thread).collect(), self.more)
    }
}

fn thread(
    tid: u32,
    pid: u32,
    seen: Option<TaskCounts>,
    recorded: Option<&Closed>,
) -> LaunchedThread {
    let id = tid.cast_signed();
    let totals = recorded.and_then(|of| of.totals.iter().find(|totals| totals.tid == id));
    let of_policy = |policy: Policy, priority| ThreadScheduling {
        policy: policy_name(policy),
        priority,
        is_real_time: policy.is_real_time(),
    };
    let latency = totals.filter(|totals| totals.wake_ups > 0).map(|totals| WakeUpLatency {
        wake_ups: totals.wake_ups,
        over: totals.over,
        mean_ns: totals.sum_ns / totals.wake_ups,
        worst_ns: totals.worst.map_or(0, |worst| worst.latency_ns()),
    });
    let mut preempted_by: Vec<Preempted> = recorded
        .into_iter()
        .flat_map(|of| &of.preemptions)
        .filter(|it| it.tid == id)
        .map(|it| Preempted { by: it.comm.to_string(), times: it.times, waited_ns: it.waited_ns })
        .collect();
    preempted_by.sort_by_key(|it| std::cmp::Reverse((it.waited_ns, it.times)));
    let counted = seen.as_ref();
    LaunchedThread {
        tid,
        pid,
        name: counted.map_or_else(
            || totals.map_or_else(String::new, |it| it.comm.to_string()),
            |of| of.comm.clone(),
        ),
        scheduling: counted.and_then(|of| Some(of_policy(of.policy?, of.priority))),
        cpus: counted.and_then(|of| of.cpus.as_ref()).map_or_else(String::new, ToString::to_string),
        faults: counted.map(|of| Faults { minor: of.minor_faults, major: of.major_faults }),
        voluntary_switches: counted.and_then(|of| of.voluntary_switches),
        involuntary_switches: counted.and_then(|of| of.involuntary_switches),
        migrations: counted.and_then(|of| of.migrations).or(totals.map(|of| of.migrations)),
        latency,
        preempted_by,
    }
}

/// Whether the budget was kept, as far as it was recorded: by the real-time threads where there are
/// any, else by all. No confidence is claimed, which `prove` has: its length was not chosen,
/// nor its load.
pub(super) fn verdict(
    budget_ns: u64,
    threads: &[LaunchedThread],
    recorded: Option<&WakeUps>,
) -> BudgetKept {
    let budget = units::ns(budget_ns);
    let answer = |answer, text: String| BudgetKept { budget_ns, answer, text };
    let Some(recorded) = recorded else {
        return answer(BudgetAnswer::CannotTell, "cannot tell: wake-ups were not recorded".into());
    };
    let is_real_time =
        |of: &&LaunchedThread| of.scheduling.as_ref().is_some_and(|it| it.is_real_time);
    let has_real_time = threads.iter().any(|of| is_real_time(&of));
    let judged = threads.iter().filter(|of| !has_real_time || is_real_time(of));
    let judged: Vec<WakeUpLatency> = judged.filter_map(|of| of.latency).collect();
    let whose = if has_real_time { "of its real-time threads" } else { "of its threads" };
    let wake_ups: u64 = judged.iter().map(|of| of.wake_ups).sum();
    let over: u64 = judged.iter().map(|of| of.over).sum();
    let worst = units::ns(judged.iter().map(|of| of.worst_ns).max().unwrap_or(0));
    if over > 0 {
        let text = format!(
            "exceeded: {over} of {wake_ups} recorded wake-ups {whose} were later than {budget}, \
             worst {worst}"
        );
        return answer(BudgetAnswer::Exceeded, text);
    }
    if wake_ups == 0 {
        return answer(
            BudgetAnswer::CannotTell,
            format!("cannot tell: no wake-up {whose} was recorded"),
        );
    }
    if recorded.unseen > 0 {
        let text = format!(
            "cannot tell: none of {wake_ups} recorded wake-ups {whose} was later than {budget}, \
             but of {} the kernel did not record when they were due or when they ended",
            recorded.unseen
        );
        return answer(BudgetAnswer::CannotTell, text);
    }
    if recorded.lost_events > 0 {
        let text = format!(
            "cannot tell: none of {wake_ups} recorded wake-ups {whose} was later than {budget}, \
             but {} kernel events were lost, and wake-ups with them",
            recorded.lost_events
        );
        return answer(BudgetAnswer::CannotTell, text);
    }
    let text = format!(
        "within: none of {wake_ups} recorded wake-ups {whose} was later than {budget}, worst \
         {worst}; that is what was seen, with no confidence"
    );
    answer(BudgetAnswer::Within, text)
}

// Waiting for a program: signals are passed on, threads looked for, and the processes that it left
// are waited for, too.

/// Signals that are passed on.
pub(super) const PASSED: &[i32] =
    &[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP];

/// Of these, those that end what has not begun.
pub(super) const ENDING: &[i32] = &[SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Time between two looks for new threads, which are not recorded before.
const FIND: Duration = Duration::from_millis(20);

/// Time between two looks at all counts and all processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time from a signal that ends a program, or from its own stop, until the changes are undone.
const UNDO_WITHIN: Duration = Duration::from_secs(5);

/// Time for the kernel to end all processes of a program after SIGKILL.
const KILL_MAX: Duration = Duration::from_secs(5);

/// What happened while a program ran.
pub(super) enum ProgramSignal {
    /// Time to look after the guard.
    Second,
    /// Its first process has ended and others run on.
    Left(usize),
    /// What was changed goes back now, and why.
    Overdue(&'static str),
}

/// What is waited for.
pub(super) enum MainProcess {
    /// A process that this one started, and what it leaves.
    Child(Child),
    /// A service of systemd.
    Service(service::StartedService),
}

/// A program that runs.
pub(super) struct RunningProgram<'a> {
    pub(super) signals: &'a Queue,
    pub(super) main: MainProcess,
    /// Processes of rtproof itself.
    pub(super) ours: BTreeSet<u32>,
    pub(super) threads: Threads,
    pub(super) recording: Option<Recording>,
    /// The rules, where they are checked; why they cannot be.
    pub(super) rules: Result<Option<Watching>, String>,
    /// Whether SIGTSTP was passed on: we stop when the program does, which may handle it, and which
    /// the kernel does not stop in an orphaned process group (a service).
    pub(super) stops: bool,
    pub(super) end: EndRequest,
}

/// How far the end of a program was requested. HUP is no request: many read their configuration.
#[derive(Debug, Default)]
pub(super) struct EndRequest {
    asked: Option<Instant>,
    /// Signals that requested it.
    by: BTreeSet<i32>,
    /// One of them came again: all of it is killed.
    killed: Option<Instant>,
    /// Since when it is stopped.
    stopped: Option<Instant>,
}

impl EndRequest {
    fn signal(&mut self, taken: TakenSignal) {
        // A key of the terminal is the program's own matter.
        if taken.is_kernels || taken.signal == SIGHUP || !ENDING.contains(&taken.signal) {
            return;
        }
        let now = Instant::now();
        self.asked.get_or_insert(now);
        if !self.by.insert(taken.signal) {
            self.killed.get_or_insert(now);
        }
    }

    /// Why the changes go back now although the program runs.
    fn overdue(&self) -> Option<&'static str> {
        let is_over = |since: Option<Instant>| since.is_some_and(|at| at.elapsed() >= UNDO_WITHIN);
        match () {
            () if self.killed.is_some() => Some("the signal came again, and the program is killed"),
            () if is_over(self.asked) => Some("the program has not ended within 5 s"),
            () if is_over(self.stopped) => Some("the program has been stopped for 5 s"),
            () => None,
        }
    }
}

pub(super) struct EndedProgram {
    /// Note on the ending besides its number.
    pub(super) note: Option<String>,
    pub(super) ending: ProgramEnding,
    pub(super) faults: Option<Faults>,
    pub(super) threads: Threads,
    pub(super) recording: Option<Recording>,
    pub(super) rules: Result<Option<Watching>, String>,
}

/// All signals that are taken: by default SIGURG is ignored.
pub(super) fn taken() -> Vec<i32> {
    PASSED.iter().copied().chain([SIGCHLD, SIGURG]).collect()
}

impl RunningProgram<'_> {
    /// Waits for the end of the program and of what it left. `happened` is called once a second.
    pub(super) fn wait(
        mut self,
        mut happened: impl FnMut(&mut BTreeSet<u32>, ProgramSignal),
    ) -> anyhow::Result<EndedProgram> {
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
                rules.poll(taken.is_some_and(|taken| taken.signal == SIGURG));
            }
            if let Some(taken) = taken {
                self.end.signal(taken);
                self.pass(taken, ended.is_none(), &others);
            }
            if let Some(why) = self.end.overdue() {
                happened(&mut self.ours, ProgramSignal::Overdue(why));
            }
            if let Some(since) = self.end.killed {
                let main = ended.is_none().then(|| self.main.id());
                // Again and again: they may start others meanwhile.
                others = self.child_processes(&root);
                others.iter().copied().chain(main).for_each(|pid| send(pid, SIGKILL));
                if since.elapsed() > KILL_MAX {
                    let left: Vec<String> =
                        others.iter().copied().chain(main).map(|pid| pid.to_string()).collect();
                    let note = format!(
                        "Processes {} do not end after SIGKILL: they wait for a device.",
                        left.join(", ")
                    );
                    let (ending, faults) = ended.unwrap_or((ProgramEnding::Killed(9), None));
                    let Self { threads, recording, rules, .. } = self;
                    let note = Some(note);
                    return Ok(EndedProgram { ending, note, faults, threads, recording, rules });
                }
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
                self.threads.refresh(&root);
                let faults = task::faults_of_process(&root, self.main.id());
                let faults = faults.map(|(minor, major)| Faults { minor, major });
                ended = Some((self.main.ending()?, faults));
                others = self.child_processes(&root);
                if !others.is_empty() {
                    happened(&mut self.ours, ProgramSignal::Left(others.len()));
                }
            }
            if looked.is_none_or(|at| at.elapsed() >= POLL_INTERVAL) || ended.is_some() {
                others = self.child_processes(&root);
                self.reap(&root);
                if looked.is_none_or(|at| at.elapsed() >= POLL_INTERVAL) {
                    looked = Some(Instant::now());
                    self.threads.refresh(&root);
                    self.end.stopped = match task::is_stopped(&root, self.main.id()) {
                        true => self.end.stopped.or_else(|| Some(Instant::now())),
                        false => None,
                    };
                    if let Some(recording) = &mut self.recording {
                        recording.second(&self.threads);
                    }
                    happened(&mut self.ours, ProgramSignal::Second);
                }
            }
            match ended {
                Some((ending, faults)) if others.is_empty() => {
                    let note = self.main.note(ending);
                    let Self { threads, recording, rules, .. } = self;
                    return Ok(EndedProgram { ending, note, faults, threads, recording, rules });
                }
                _ => {}
            }
        }
    }

    /// The processes of the program, its first one left out. Those whose parent has ended are ours.
    fn child_processes(&self, root: &Root) -> Vec<u32> {
        let main = self.main.id();
        let all = match &self.main {
            MainProcess::Child(_) => task::descendants(root, std::process::id()),
            MainProcess::Service(service) => service.pids(root),
        };
        all.into_iter().filter(|pid| *pid != main && !self.ours.contains(pid)).collect()
    }

    /// Waits for processes that have ended and whose parent is gone.
    fn reap(&self, root: &Root) {
        for pid in task::ended_children(root, std::process::id()) {
            if pid != self.main.id() && !self.ours.contains(&pid) {
                let pid = Pid::from_raw(pid.cast_signed());
                let _ = pid.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
            }
        }
    }

    /// Passes a signal on. One that a key of the terminal sent has come to the program as well.
    fn pass(&mut self, taken: TakenSignal, main_runs: bool, others: &[u32]) {
        let TakenSignal { signal, is_kernels } = taken;
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
            MainProcess::Service(service) if ENDING.contains(&signal) => service.stop(),
            MainProcess::Child(_) if is_kernels => {}
            _ => to.into_iter().for_each(|pid| send(pid, signal)),
        }
        if matches!(self.main, MainProcess::Child(_)) && [SIGTSTP, SIGCONT].contains(&signal) {
            self.stops = signal == SIGTSTP;
        }
    }
}

impl MainProcess {
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
            Self::Service(service) => service.has_ended(root),
        }
    }

    /// Of one that is over.
    fn ending(&mut self) -> io::Result<ProgramEnding> {
        match self {
            Self::Child(child) => Ok(ending(child.wait()?)),
            Self::Service(service) => Ok(service.ending()),
        }
    }

    fn note(&self, ending: ProgramEnding) -> Option<String> {
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

fn ending(status: std::process::ExitStatus) -> ProgramEnding {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => ProgramEnding::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => ProgramEnding::Killed(signal),
        (None, None) => ProgramEnding::Exited(u8::MAX),
    }
}

#[cfg(test)]
mod tests {
    use rtproof_judge::causes::Spikes;

    use super::*;

    fn of(policy: Policy, wake_ups: u64, over: u64) -> LaunchedThread {
        let counts = TaskCounts {
            comm: "x".into(),
            start_ticks: 1,
            policy: Some(policy),
            priority: 1,
            cpus: None,
            minor_faults: 0,
            major_faults: 0,
            cpu_time_ns: 0,
            voluntary_switches: None,
            involuntary_switches: None,
            migrations: None,
        };
        let latency = WakeUpLatency { wake_ups, over, mean_ns: 5, worst_ns: 9_000 };
        let latency = (wake_ups > 0).then_some(latency);
        LaunchedThread { latency, ..thread(7, 7, Some(counts), None) }
    }

    #[test]
    fn a_verdict_claims_no_more_than_was_recorded() {
        let recorded = |lost_events| {
            let spikes = Spikes::default();
            Some(WakeUps { over_ns: 10_000, lost_events, unseen: 0, inferred: 0, spikes })
        };
        let said = |threads: &[LaunchedThread], recorded: Option<WakeUps>| {
            verdict(10_000, threads, recorded.as_ref()).answer
        };
        let good = of(Policy::Fifo, 100, 0);
        assert_eq!(said(std::slice::from_ref(&good), recorded(0)), BudgetAnswer::Within);
        assert_eq!(said(std::slice::from_ref(&good), recorded(1)), BudgetAnswer::CannotTell);
        assert_eq!(said(std::slice::from_ref(&good), None), BudgetAnswer::CannotTell);
        let unseen = recorded(0).map(|of| WakeUps { unseen: 1, ..of });
        assert_eq!(said(std::slice::from_ref(&good), unseen), BudgetAnswer::CannotTell);
        assert_eq!(said(&[of(Policy::Fifo, 0, 0)], recorded(0)), BudgetAnswer::CannotTell);
        assert_eq!(said(&[], recorded(0)), BudgetAnswer::CannotTell);
        assert_eq!(said(&[of(Policy::Fifo, 9, 1)], recorded(3)), BudgetAnswer::Exceeded);
        // An ordinary thread counts only where no other is real-time.
        let ordinary = of(Policy::Other, 9, 1);
        assert_eq!(said(&[good, ordinary.clone()], recorded(0)), BudgetAnswer::Within);
        assert_eq!(said(&[ordinary], recorded(0)), BudgetAnswer::Exceeded);
    }
}
