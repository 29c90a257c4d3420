//! A running application, as it is: every wake-up of its threads that was late, whatever woke it.

use std::time::Duration;

use anyhow::Context;

use rtproof_host::{
    CpuList, Facts, Root,
    door::usage,
    facts::app::{App, Target},
};
use rtproof_judge::{
    causes::{self, Explanation},
    units,
};
use rtproof_measure::{
    recorder::{Recorder, RecorderSettings, RingMode},
    thread::pin_all,
};
use rtproof_trace::{
    WakeUp, Window,
    scan::{PreemptedBy, Subjects, ThreadTotals},
};

use super::locks::Locking;
use super::{Explained, ExplanationGather};
use crate::now_ns;
use crate::prove::Signals;
use crate::rules::program;

/// Interval between polls for answers and the end.
const POLL: Duration = Duration::from_millis(50);

/// Gives way to all but SCHED_IDLE.
const NICE_LEAST: i32 = 19;

/// Threads that are named in the first line.
const NAMED_MAX: usize = 4;

/// Which processes are observed.
#[derive(Clone, Debug)]
pub enum ProcessTarget {
    /// All threads of a process.
    Process(u32),
    /// All threads of this name.
    Named(String),
}

/// Watches for a while.
///
/// # Errors
/// No such process (usage); why kernel events are not available.
pub fn live(target: &ProcessTarget, duration_ns: u64, over_ns: u64) -> anyhow::Result<Explained> {
    let root = Root::live();
    let signals = Signals::catch(&root).context("cannot catch signals")?;
    let facts = Facts::read(&root);
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    let target = &match target {
        ProcessTarget::Process(pid) => ProcessTarget::Process(program(&root, *pid)?.pid),
        ProcessTarget::Named(_) => target.clone(),
    };
    let (recorder, _) = observe(&root, &facts, target, over_ns)?;
    let locking = match target {
        ProcessTarget::Process(pid) => {
            Some(Locking::begin(&root, *pid, &online, housekeeping(&facts, &online)))
        }
        ProcessTarget::Named(_) => None,
    };
    let _ = pin_all(housekeeping(&facts, &online).as_slice());
    if is_alone(&online) {
        // Best effort: root or not, a thread may always give way.
        let _ = rustix::process::setpriority_process(None, NICE_LEAST);
    }
    let mut watch = LiveWatch::new(recorder);
    let begin_ns = now_ns();
    loop {
        std::thread::sleep(POLL);
        watch.take(begin_ns);
        let passed_ns = now_ns().saturating_sub(begin_ns);
        if passed_ns >= duration_ns || signals.received().is_some() {
            let times = (begin_ns, passed_ns);
            let explained = watch.finish(target, times, over_ns, is_alone(&online));
            return Ok(with_locks(explained, locking));
        }
    }
}

/// With what was found of locks, or why nothing was.
fn with_locks(mut explained: Explained, locking: Option<Result<Locking, String>>) -> Explained {
    match locking {
        Some(Ok(locking)) => explained.locks = Some(locking.finish()),
        Some(Err(why)) => explained.notes.push(format!("Locks were not observed: {why}.")),
        None => {}
    }
    explained
}

/// Starts to observe the wake-ups of threads: the recorder, and its subjects.
///
/// # Errors
/// Those of [`live`].
pub(crate) fn observe(
    root: &Root,
    facts: &Facts,
    target: &ProcessTarget,
    over_ns: u64,
) -> anyhow::Result<(Recorder, Subjects)> {
    let subjects = subjects(root, target)?;
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    let recorder = Recorder::start(root, facts, settings(facts, &online))?;
    recorder.watch(Some((subjects.clone(), over_ns)))?;
    Ok((recorder, subjects))
}

/// All CPUs are recorded: a thread may be woken anywhere. Where the application and rtproof share
/// the only CPU, the events are read with what all others leave of it.
pub(crate) fn settings(facts: &Facts, online: &CpuList) -> RecorderSettings {
    let settings =
        RecorderSettings::new(online.clone(), CpuList::default(), housekeeping(facts, online));
    let nice = if is_alone(online) { NICE_LEAST } else { settings.nice };
    RecorderSettings { mode: Some(RingMode::Stream), nice, ..settings }
}

fn is_alone(online: &CpuList) -> bool {
    online.as_slice().len() == 1
}

/// CPUs for the tool's own work: those that are not isolated.
fn housekeeping(facts: &Facts, online: &CpuList) -> CpuList {
    let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
    let others = online.difference(&isolated);
    if others.is_empty() { online.clone() } else { others }
}

fn subjects(root: &Root, target: &ProcessTarget) -> anyhow::Result<Subjects> {
    match target {
        ProcessTarget::Named(name) => {
            Ok(Subjects { comms: vec![name.clone()], ..Subjects::default() })
        }
        ProcessTarget::Process(pid) => {
            let app = App::read(root, &Target::Pid(*pid))
                .map_err(|error| usage(format!("--pid {pid}: {error}")))?;
            let tids: Vec<i32> = app.threads().map(|thread| thread.tid.cast_signed()).collect();
            Ok(Subjects { tids, ..Subjects::default() })
        }
    }
}

/// A recorder that watches, and what it found.
pub(crate) struct LiveWatch {
    pub(crate) recorder: Recorder,
    gather: ExplanationGather,
    info: causes::RecorderSummary,
    arming_failed: Option<String>,
}

impl LiveWatch {
    pub(crate) fn new(recorder: Recorder) -> Self {
        let info = causes::RecorderSummary {
            missing: recorder.missing().to_vec(),
            ..causes::RecorderSummary::default()
        };
        Self { recorder, gather: ExplanationGather::default(), info, arming_failed: None }
    }

    /// Explains what has come since.
    pub(crate) fn take(&mut self, begin_ns: u64) {
        for (wake, window) in self.recorder.take() {
            self.explained(&wake, window, None, begin_ns);
        }
    }

    /// A late wake-up with its window; `explanation`: what another one found of it.
    pub(crate) fn explained(
        &mut self,
        wake: &WakeUp,
        window: Window,
        explanation: Option<Explanation>,
        begin_ns: u64,
    ) {
        let explanation = explanation.unwrap_or_else(|| causes::explain(wake, &window));
        let wants_stacks = self.gather.explained(wake, window, explanation, begin_ns);
        let is_new = self.info.stacks_from_ns.is_none() && self.arming_failed.is_none();
        if wants_stacks && is_new {
            match self.recorder.arm_stack(true) {
                Ok(()) => self.info.stacks_from_ns = Some(now_ns().saturating_sub(begin_ns)),
                Err(error) => self.arming_failed = Some(error.to_string()),
            }
        }
    }

    /// How it records, and what it lost so far.
    pub(crate) fn info(&mut self) -> &causes::RecorderSummary {
        let stats = self.recorder.stats();
        self.info.lost_events = stats.lost_events;
        self.info.blind_ns = stats.blind_ns;
        &self.info
    }

    pub(crate) fn close(mut self, begin_ns: u64) -> Closed {
        self.recorder.stop();
        self.take(begin_ns);
        self.info();
        self.gather.add_unexamined(self.recorder.stats().refused);
        let totals = self.recorder.watched();
        self.gather.count_all(totals.iter().map(|of| of.over).sum());
        let failed = self
            .arming_failed
            .map(|error| format!("Stacks at the timer interrupt are not available: {error}."));
        Closed {
            totals,
            preemptions: self.recorder.preemptions(),
            notes: failed.into_iter().collect(),
            gather: self.gather,
            info: self.info,
        }
    }

    fn finish(
        self,
        target: &ProcessTarget,
        (begin_ns, passed_ns): (u64, u64),
        over_ns: u64,
        is_alone: bool,
    ) -> Explained {
        let closed = self.close(begin_ns);
        let mut notes = Vec::new();
        if is_alone {
            notes.push(
                "One CPU does all: rtproof read the events on it at nice 19; where that delayed \
                 the application, it is named."
                    .into(),
            );
        }
        notes.extend(closed.notes);
        let wake_ups: u64 = closed.totals.iter().map(|of| of.wake_ups).sum();
        if wake_ups == 0 {
            notes.push(format!(
                "No thread of {} woke in this time: is it asleep, or is the name another one (the \
                 kernel cuts names to 15 bytes)?",
                name(target)
            ));
        }
        notes.extend(super::inferred(closed.totals.iter()));
        let lost = super::lost(closed.info.lost_events);
        let gaps = super::open_wake_ups(closed.totals.iter()).into_iter().chain(lost).collect();
        let about = about(target, &closed.totals, passed_ns);
        let explained = closed.gather.finish(over_ns, closed.info, about);
        Explained { notes, no_wake_ups: wake_ups == 0, gaps, ..explained }
    }
}

/// What a recording found.
pub(crate) struct Closed {
    /// Wake-ups of each thread.
    pub(crate) totals: Vec<ThreadTotals>,
    /// Tasks that ran in the place of each thread.
    pub(crate) preemptions: Vec<PreemptedBy>,
    /// What the user must know.
    pub notes: Vec<String>,
    pub(crate) gather: ExplanationGather,
    /// What the recorder lost and lacked.
    pub info: causes::RecorderSummary,
}

/// The observed process, in words.
pub(crate) fn name(target: &ProcessTarget) -> String {
    match target {
        ProcessTarget::Process(pid) => format!("process {pid}"),
        ProcessTarget::Named(name) => format!("name {name}"),
    }
}

/// The observed threads, their number of wake-ups, and the worst one.
fn about(target: &ProcessTarget, totals: &[ThreadTotals], passed_ns: u64) -> String {
    let wake_ups: u64 = totals.iter().map(|of| of.wake_ups).sum();
    let mut names: Vec<String> =
        totals.iter().map(|of| format!("{}:{}", of.comm, of.tid)).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let worst = totals.iter().filter_map(|of| of.worst).map(|worst| worst.latency_ns()).max();
    let worst = worst.map_or_else(String::new, |ns| format!(", worst {}", units::ns(ns)));
    format!(
        "{} ({}{more}): {wake_ups} wake-ups in {}{worst}",
        name(target),
        names.join(", "),
        units::duration(passed_ns)
    )
}
