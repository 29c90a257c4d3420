//! Carrying a plan out: set, start, accompany, undo.

use std::{collections::BTreeSet, ops::Range, path::Path, time::Duration};

use rustix::process::set_child_subreaper;

use rtproof_host::{Root, idle, task, tune::Machine};
use rtproof_judge::units;
use rtproof_measure::{LiveTasks, Queue, keep_ended_children};
use rtproof_results::launch::{Cannot, Launched, ProgramEnding, SCHEMA, WakeUps};
use rtproof_trace::scan::ThreadTotals;

use super::place::{AppliedChanges, Guarding};
use super::plan::{LaunchTarget, PlannedLaunch};
use super::run_record::{PreparedRecord, Proved, RunRecord};
use super::service::LaunchedService;
use super::setup::ProgramSetup;
use super::threads::{
    EndRequest, MainProcess, ProgramSignal, RunningProgram, StartingProcess, Threads,
};
use super::{LaunchError, Options, Recording, place, threads};
use crate::rules::{self, Monitored, Watching};

/// What a program got.
#[derive(Debug)]
pub struct LaunchResult {
    pub launched: Launched,
    /// Its record, still to be judged; why there is none; `None`: none was wanted.
    pub proved: Option<Result<Proved, String>>,
}

/// What happens while a program is started and runs.
pub trait LaunchObserver {
    /// Changes left by a killed run were undone: number of its journal.
    fn recovered(&mut self, journal: u32);

    fn started(&mut self, pid: u32);

    /// Its first process has ended; so many others run on and are waited for.
    fn processes_left(&mut self, processes: usize);

    /// The guard process had died or was stopped, and was replaced.
    fn guard_replaced(&mut self);

    /// The changes were undone although the program runs, and why.
    fn undone_early(&mut self, why: &str);
}

/// Undoes what runs left that were killed together with their guards, where this process may.
///
/// # Errors
/// One cannot be undone.
pub fn recover(root: &Root, observer: &mut dyn LaunchObserver) -> Result<(), LaunchError> {
    if let Ok(machine) = Machine::new(root, &LiveTasks) {
        place::recover(&machine)?.into_iter().for_each(|number| observer.recovered(number));
    }
    Ok(())
}

/// Starts a program and waits for its end.
///
/// # Errors
/// It could not be started: everything is undone then, or the error says what is not.
pub fn start(
    root: &Root,
    options: &Options,
    planned: PlannedLaunch,
    observer: &mut dyn LaunchObserver,
) -> Result<LaunchResult, LaunchError> {
    refuse(options, &planned)?;
    // Before any thread is started: they all block what is taken here.
    let signals = keep_ended_children()
        .and_then(|()| Queue::block(&threads::taken()))
        .map_err(|error| LaunchError::Failed(error.into()))?;
    // Processes whose parent ends become ours: they belong to the program.
    set_child_subreaper(Some(rustix::process::getpid())).map_err(|error| {
        LaunchError::Failed(anyhow::Error::from(error).context("PR_SET_CHILD_SUBREAPER"))
    })?;
    // Where it may not be changed: reported in `cannot`, and started nevertheless.
    let machine = Machine::new(root, &LiveTasks).ok();
    if let Some(machine) = machine.as_ref().filter(|_| planned.acts) {
        place::refuse_second(machine)?;
    }
    let machine = machine.filter(|_| !planned.plan.machine.steps.is_empty());
    let mut not_set = planned.plan.cannot.clone();
    let guarding = Guarding { folder: options.root.as_deref(), latency_us: planned.latency_us };
    let mut changes = None;
    if let Some(machine) = &machine {
        let steps = &planned.plan.machine.steps;
        let made =
            place::make_changes(machine, &options.title, steps, options.best_effort, guarding)?;
        changes = Some(made.0);
        not_set.extend(made.1);
    }
    let (machine, signals) = (machine.as_ref(), &signals);
    let run = Run { root, machine, options, planned: &planned, guarding, signals };
    let ran = run.program(&mut changes, not_set, observer);
    let undone = match (machine, changes) {
        (Some(machine), Some(changes)) => Some((changes.count, changes.undo(machine))),
        _ => None,
    };
    match (ran, undone) {
        (Ok(result), None) => Ok(result),
        (Ok(mut result), Some((changes, Ok(undone)))) => {
            (result.launched.changes, result.launched.undone) = (changes, Some(undone));
            Ok(result)
        }
        (Ok(result), Some((_, Err(error)))) => {
            let how = ended(result.launched.ending);
            Err(LaunchError::Failed(error.context(format!(
                "the program {how}, and what was changed is not undone yet: a process goes on \
                 trying; rtproof tune status shows it"
            ))))
        }
        (Err(error), None | Some((_, Ok(_)))) => Err(error),
        (Err(error), Some((_, Err(undo)))) => {
            let text = format!("{error}; and what was changed is not undone yet: {undo:#}");
            Err(LaunchError::Failed(anyhow::anyhow!(text)))
        }
    }
}

/// How a program ended, in words.
fn ended(ending: ProgramEnding) -> String {
    match ending {
        ProgramEnding::Exited(code) => format!("ended with {code}"),
        ProgramEnding::Killed(signal) => format!("was ended by signal {signal}"),
    }
}

/// Nothing is started where something requested cannot be set.
fn refuse(options: &Options, planned: &PlannedLaunch) -> Result<(), LaunchError> {
    if options.best_effort || planned.plan.cannot.is_empty() {
        return Ok(());
    }
    let why = listed(&planned.plan.cannot);
    Err(LaunchError::Failed(anyhow::anyhow!("{why}; nothing was changed or started")))
}

/// All that cannot be set, as a phrase.
fn listed(cannot: &[Cannot]) -> String {
    let all: Vec<String> =
        cannot.iter().map(|Cannot { what, why }| format!("{what}: {why}")).collect();
    all.join("; and ")
}

fn interrupted(signal: i32) -> LaunchError {
    let text = format!("signal {signal} came before the program was started");
    LaunchError::Interrupted(text, signal)
}

fn not_executed(file: &Path, error: &std::io::Error) -> LaunchError {
    let program = file.display();
    match error.kind() {
        // The file is there, or was: its interpreter is not.
        std::io::ErrorKind::NotFound => LaunchError::NotFound(format!(
            "{program}: {error}: it, or the interpreter in its first line, is not there"
        )),
        _ => LaunchError::NotExecutable(format!("{program}: cannot be executed: {error}")),
    }
}

/// A program that runs.
struct StartedProgram {
    main: MainProcess,
    pid: u32,
    ours: BTreeSet<u32>,
    began_ns: u64,
    rules: Result<Option<Watching>, String>,
}

/// Where its wake-ups go.
type To<'a> = (&'a mut Result<Recording, String>, &'a mut Option<PreparedRecord>);

/// A program while it is started and runs.
struct Run<'a> {
    root: &'a Root,
    /// Where there are changes.
    machine: Option<&'a Machine<'a>>,
    options: &'a Options,
    planned: &'a PlannedLaunch,
    guarding: Guarding<'a>,
    signals: &'a Queue,
}

impl Run<'_> {
    fn program(
        &self,
        changes: &mut Option<AppliedChanges>,
        mut not_set: Vec<Cannot>,
        observer: &mut dyn LaunchObserver,
    ) -> Result<LaunchResult, LaunchError> {
        let failed = |error: anyhow::Error| LaunchError::Failed(error);
        let PlannedLaunch { setup, placed, facts, latency_us, .. } = self.planned;
        // The machine as the program finds it.
        let prepare = |wanted| PreparedRecord::new(wanted, placed.cpus.as_ref(), *latency_us);
        let mut prepared = self.options.record.as_ref().map(prepare).transpose().map_err(failed)?;
        let held = self.planned.latency_us.map(|us| idle::hold(&Root::live(), us));
        let held = held.transpose().map_err(|error| failed(error.into()))?;
        let mut notes = self.planned.plan.notes.clone();
        let mut recording = match self.options.no_trace {
            true => Err("Wake-ups were not recorded: --no-trace.".into()),
            false => Recording::begin(facts, placed.cpus.as_ref()),
        };
        let setup = self.without_missing_group(setup, &not_set);
        let begun = match &self.planned.what {
            LaunchTarget::Program(file) => {
                let to = (&mut recording, &mut prepared);
                self.child(file, &setup, changes, to, &mut not_set)?
            }
            LaunchTarget::Service(service) => {
                self.service(service, &setup, changes, (&mut recording, &mut prepared))?
            }
        };
        let StartedProgram { main, pid, ours, began_ns, rules } = begun;
        observer.started(pid);
        let recording = recording.map_err(|why| notes.push(why)).ok();
        let running = RunningProgram {
            signals: self.signals,
            main,
            ours,
            threads: Threads::default(),
            recording,
            rules,
            stops: false,
            end: EndRequest::default(),
        };
        let ended =
            running.wait(|ours, happened| self.supervise(changes, ours, happened, observer));
        // First of all: events, symbols and the record take their time.
        if let (Some(changes), Some(machine)) = (changes.as_mut(), self.machine) {
            changes.undo_now(machine);
        }
        let mut ended = ended.map_err(failed)?;
        notes.extend(ended.note.take());
        drop(held);
        Ok(self.launched(pid, began_ns..crate::now_ns(), ended, not_set, notes))
    }

    /// Starts a program as a child of this process.
    fn child(
        &self,
        file: &Path,
        setup: &ProgramSetup,
        changes: &mut Option<AppliedChanges>,
        recording: To<'_>,
        not_set: &mut Vec<Cannot>,
    ) -> Result<StartedProgram, LaunchError> {
        let failed = |error: anyhow::Error| LaunchError::Failed(error);
        let PlannedLaunch { placed, facts, command, .. } = self.planned;
        let monitored = self.options.rules.map(|of| (of, Monitored::begin(&Root::live())));
        let becoming = StartingProcess::begin(file, command, setup).map_err(failed)?;
        let vital = becoming.cannot.iter().any(ProgramSetup::is_vital);
        if vital || !becoming.cannot.is_empty() && !self.options.best_effort {
            let why = listed(&becoming.cannot);
            becoming.give_up();
            let next = if vital { "" } else { "; --best-effort starts it without" };
            return Err(failed(anyhow::anyhow!("{why}{next}; nothing was started")));
        }
        not_set.extend(becoming.cannot.iter().cloned());
        let pid = becoming.child.id();
        self.watch(recording, Some(pid));
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let watch =
            |(of, monitored)| Watching::begin(of, monitored, pid, &online, placed.cpus.as_ref());
        let rules = monitored.map(watch).transpose();
        if let Some(changes) = changes {
            changes.name_program(&Root::live(), pid, setup.group.as_deref());
        }
        if let Some(signal) = self.pending_signal() {
            becoming.give_up();
            return Err(interrupted(signal));
        }
        let mut ours = self.own_processes();
        ours.remove(&pid);
        let began_ns = crate::now_ns();
        let child = becoming.release().map_err(failed)?;
        let child = child.map_err(|error| not_executed(file, &error))?;
        Ok(StartedProgram { main: MainProcess::Child(child), pid, ours, began_ns, rules })
    }

    /// Lets systemd start a service.
    fn service(
        &self,
        service: &LaunchedService,
        setup: &ProgramSetup,
        changes: &mut Option<AppliedChanges>,
        recording: To<'_>,
    ) -> Result<StartedProgram, LaunchError> {
        self.watch(recording, None);
        if let Some(signal) = self.pending_signal() {
            return Err(interrupted(signal));
        }
        let began_ns = crate::now_ns();
        let started = service.start(setup).map_err(LaunchError::Failed)?;
        let pid = started.main();
        if let Some(changes) = changes {
            changes.name_program(&Root::live(), pid, started.group());
        }
        let main = MainProcess::Service(started);
        // It runs already: systemd, not this process, has started it.
        let PlannedLaunch { placed, facts, .. } = self.planned;
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let join = |of| rules::join(of, pid, &online, placed.cpus.as_ref());
        let rules = self.options.rules.map(join).transpose();
        Ok(StartedProgram { main, pid, ours: self.own_processes(), began_ns, rules })
    }

    /// All children but the program are ours: the guards of the journal and of the tracing.
    fn own_processes(&self) -> BTreeSet<u32> {
        task::descendants(&Root::live(), std::process::id()).into_iter().collect()
    }

    fn watch(&self, (recording, prepared): To<'_>, pid: Option<u32>) {
        if let Ok(of) = recording
            && let Err(why) = of.watch(pid, self.over_ns(), prepared.take())
        {
            *recording = Err(format!("Wake-ups were not recorded: {why}."));
        }
    }

    /// A group that could not be made is not joined.
    fn without_missing_group(&self, setup: &ProgramSetup, not_set: &[Cannot]) -> ProgramSetup {
        let is_missing = self.options.best_effort && !not_set.is_empty();
        let group = setup
            .group
            .clone()
            .filter(|group| !is_missing || self.root.exists(&format!("{group}/cgroup.procs")));
        ProgramSetup { group, ..setup.clone() }
    }

    fn over_ns(&self) -> u64 {
        self.options.budget_ns.unwrap_or(self.options.over_ns)
    }

    /// A signal that ends what has not begun.
    fn pending_signal(&self) -> Option<i32> {
        let next = || self.signals.take(Duration::ZERO);
        std::iter::from_fn(next).map(|taken| taken.signal).find(|it| threads::ENDING.contains(it))
    }

    fn supervise(
        &self,
        changes: &mut Option<AppliedChanges>,
        ours: &mut BTreeSet<u32>,
        happened: ProgramSignal,
        observer: &mut dyn LaunchObserver,
    ) {
        match (happened, changes) {
            (ProgramSignal::Left(processes), _) => observer.processes_left(processes),
            (ProgramSignal::Second, Some(changes)) => {
                // Where none can be started, the next second tries again.
                if changes.restart_guard(self.guarding).unwrap_or(false) {
                    ours.insert(changes.guard());
                    observer.guard_replaced();
                }
            }
            (ProgramSignal::Overdue(why), Some(changes)) => {
                if self.machine.is_some_and(|machine| changes.undo_once(machine)) {
                    observer.undone_early(why);
                }
            }
            (ProgramSignal::Second | ProgramSignal::Overdue(_), None) => {}
        }
    }

    fn launched(
        &self,
        pid: u32,
        ran: Range<u64>,
        ended: threads::EndedProgram,
        not_set: Vec<Cannot>,
        mut notes: Vec<String>,
    ) -> LaunchResult {
        let ran_ns = ran.end.saturating_sub(ran.start);
        let (mut closed, mut proved) = (None, None);
        if let Some((recorded, run_record, lost)) = ended.recording.map(Recording::close) {
            let how = (ended.ending != ProgramEnding::Exited(0)).then(|| self::ended(ended.ending));
            let finish = |of: RunRecord| of.finish(&ended.threads, &recorded, lost, how);
            proved = run_record.map(|of| finish(of).map_err(|error| format!("{error:#}")));
            closed = Some(recorded);
        }
        if proved.is_none() && self.options.record.is_some() {
            proved = Some(Err("wake-ups were not recorded".into()));
        }
        let (threads, threads_more) = ended.threads.finish(closed.as_ref());
        let wake_ups = closed.map(|closed| {
            notes.extend(closed.notes);
            let about = format!("process {pid}, {}", units::duration(ran_ns));
            let lost_events = closed.info.lost_events;
            let unseen = closed.totals.iter().map(ThreadTotals::unknown).sum();
            let inferred = closed.totals.iter().map(|of| of.inferred + of.at_least).sum();
            let over_ns = self.over_ns();
            let spikes = closed.gather.finish(over_ns, closed.info, about).spikes;
            WakeUps { over_ns, lost_events, unseen, inferred, spikes }
        });
        let budget_ns = self.options.budget_ns;
        let verdict = budget_ns.map(|ns| threads::verdict(ns, &threads, wake_ups.as_ref()));
        let requested = self.options.rules;
        let rules = match ended.rules {
            Ok(watching) => watching.map(|of| of.finish(ran.end)),
            Err(why) => requested.map(|of| rules::not_observed(of, why)),
        };
        let launched = Launched {
            schema: SCHEMA,
            command: self.planned.plan.command.clone(),
            pid,
            ran_ns,
            ending: ended.ending,
            program: self.planned.plan.program.clone(),
            held: self.planned.plan.held.clone(),
            not_set,
            changes: 0,
            undone: None,
            faults: ended.faults,
            threads,
            threads_more,
            wake_ups,
            verdict,
            rules,
            proof: None,
            notes,
        };
        LaunchResult { launched, proved }
    }
}
