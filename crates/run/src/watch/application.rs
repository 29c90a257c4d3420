//! A running application, as `explain --pid` sees it: every wake-up of its threads counted, the
//! late ones explained as they come.

use std::collections::{BTreeMap, VecDeque};

use rustix::thread::ClockId;

use rtproof_host::{Facts, Root, task::task};
use rtproof_judge::causes::{Explanation, explain, title};
use rtproof_measure::recorder::Recorder;
use rtproof_results::watch::{ThreadLatency, WatchFrame, WatchNote, WatchSpike};
use rtproof_trace::{Subjects, TaskPolicy, Window, scan::ThreadTotals};

use crate::explain::ProcessTarget;

/// Spikes that are kept for the list, and those that keep their windows.
const SPIKES: usize = 200;

const WINDOWS: usize = 50;

/// Seconds that are shown one by one.
const HISTORY: usize = 120;

const MINUTE: usize = 60;

/// Threads that are observed.
#[derive(Debug)]
pub(super) struct Application {
    pub(super) about: String,
    /// The process, where it is one.
    pid: Option<u32>,
    pub(super) ended: Option<String>,
    recorder: Recorder,
    subjects: Subjects,
    over_ns: u64,
    /// Added to a time of the kernel's events, the time of day.
    realtime_offset_ns: i128,
    threads: BTreeMap<i32, Thread>,
    spikes: VecDeque<Late>,
    seen: u64,
    stacks: Stacks,
}

#[derive(Debug, Default)]
enum Stacks {
    #[default]
    Off,
    On,
    Refused(String),
}

#[derive(Debug)]
struct Late {
    explanation: Explanation,
    window: Option<Window>,
}

/// One thread so far.
#[derive(Debug, Default)]
struct Thread {
    scheduling: String,
    last: Option<ThreadTotals>,
    now_ns: Option<u64>,
    history_ns: VecDeque<Option<u64>>,
}

impl Application {
    /// Starts to observe the threads of an application.
    ///
    /// # Errors
    /// No such process (usage); why kernel events are not available.
    pub(super) fn start(
        root: &Root,
        facts: &Facts,
        target: &ProcessTarget,
        over_ns: u64,
    ) -> anyhow::Result<Self> {
        let (recorder, subjects) = crate::explain::observe(root, facts, target, over_ns)?;
        let realtime = i128::from(clock_ns(ClockId::Realtime));
        Ok(Self {
            about: crate::explain::name(target),
            pid: match target {
                ProcessTarget::Process(pid) => Some(*pid),
                ProcessTarget::Named(_) => None,
            },
            ended: None,
            recorder,
            subjects,
            over_ns,
            realtime_offset_ns: realtime - i128::from(clock_ns(ClockId::Monotonic)),
            threads: BTreeMap::new(),
            spikes: VecDeque::new(),
            seen: 0,
            stacks: Stacks::Off,
        })
    }

    /// Takes in what came since.
    pub(super) fn take(&mut self, root: &Root) {
        let is_gone = |pid: &u32| !root.exists(&format!("/proc/{pid}"));
        if self.ended.is_none() && self.pid.as_ref().is_some_and(is_gone) {
            self.ended = Some("the process has ended".into());
        }
        let mut worst: BTreeMap<i32, u64> = BTreeMap::new();
        for (wake, window) in self.recorder.take() {
            let explanation = explain(&wake, &window);
            if explanation.wants_stacks() {
                self.arm();
            }
            let of = worst.entry(wake.tid).or_default();
            *of = (*of).max(wake.latency_ns());
            self.seen += 1;
            self.spikes.push_front(Late { explanation, window: Some(window) });
        }
        self.spikes.truncate(SPIKES);
        self.spikes.iter_mut().skip(WINDOWS).for_each(|late| late.window = None);
        for totals in self.recorder.watched() {
            let late_ns = worst.get(&totals.tid).copied();
            let thread = self.threads.entry(totals.tid).or_insert_with(|| Thread {
                scheduling: scheduling(root, totals.tid),
                ..Thread::default()
            });
            thread.second(totals, late_ns);
        }
    }

    fn arm(&mut self) {
        if matches!(self.stacks, Stacks::Off) {
            self.stacks = match self.recorder.arm_stack(true) {
                Ok(()) => Stacks::On,
                Err(error) => Stacks::Refused(error.to_string()),
            };
        }
    }

    /// Counts anew from now on.
    pub(super) fn reset(&mut self) -> anyhow::Result<()> {
        self.recorder.watch(Some((self.subjects.clone(), self.over_ns)))?;
        self.threads.clear();
        Ok(())
    }

    /// Fills in what was seen.
    pub(super) fn fill(&self, frame: &mut WatchFrame) {
        frame.latencies = (0..).zip(&self.threads).filter_map(shown).collect();
        frame.threshold_ns = Some(self.over_ns);
        frame.spikes_seen = Some(self.seen);
        frame.spikes = self.spikes.iter().map(|late| self.spike(late)).collect();
        frame.unknown.push(
            "Worst of a second: of an application known only where it is above --over or the worst \
             so far; its typical latency is the mean."
                .into(),
        );
        let watched = self.recorder.watched();
        frame.unknown.extend(crate::explain::inferred(watched.iter()));
        let unknown: u64 = watched.iter().map(ThreadTotals::unknown).sum();
        if unknown > 0 {
            frame.unknown.push(format!(
                "{unknown} wake-ups may have been late: the kernel did not record when they were \
                 due or when the thread ran."
            ));
        }
        frame.unknown.push("Missed: an application does not say when it should have run.".into());
        let missing = self.recorder.missing();
        frame.unknown.extend(missing.iter().map(|what| format!("Kernel events: {what}.")));
        let stats = self.recorder.stats();
        let at_realtime_ns = frame.at_realtime_ns;
        let mut note = |text: String| frame.notes.push(WatchNote { at_realtime_ns, text });
        if stats.lost_events > 0 {
            note(format!("{} kernel events were lost so far.", stats.lost_events));
        }
        if stats.refused > 0 {
            note(format!("{} late wake-ups could not be looked into.", stats.refused));
        }
        if let Stacks::Refused(why) = &self.stacks {
            note(format!("Stacks at the timer interrupt are not available: {why}."));
        }
    }

    /// A spike with its window, where that is kept.
    pub(super) fn picture(&self, due_ns: u64) -> Option<(Explanation, Option<Window>)> {
        let late = self.spikes.iter().find(|late| late.explanation.wake.due_ns == due_ns)?;
        Some((late.explanation.clone(), late.window.clone()))
    }

    fn spike(&self, late: &Late) -> WatchSpike {
        let Explanation { wake, shares, incomplete, .. } = &late.explanation;
        let top = shares.first();
        let at_ns = i128::from(wake.due_ns) + self.realtime_offset_ns;
        let knob = top.and_then(|top| {
            let remedy = top.remedies.first().map(ToString::to_string);
            let check = || top.checks.first().map(|id| format!("rtproof check explain {id}"));
            remedy.or_else(check)
        });
        WatchSpike {
            at_realtime_ns: u64::try_from(at_ns).unwrap_or(0),
            thread: wake.tid.unsigned_abs(),
            due_ns: wake.due_ns,
            cpu: wake.cpu,
            latency_ns: wake.latency_ns(),
            cause: top.map(|top| top.cause.clone()),
            title: top.map_or("not explained", |top| title(&top.cause)).into(),
            culprit: top.map(|top| top.culprit.clone()).unwrap_or_default(),
            complete: incomplete.is_empty(),
            knob,
            has_picture: true,
        }
    }
}

impl Thread {
    /// A second more. `worst_ns`: of the late wake-ups in it.
    fn second(&mut self, totals: ThreadTotals, worst_ns: Option<u64>) {
        let before = self.last.replace(totals);
        let (n, sum_ns) = before.as_ref().map_or((0, 0), |last| (last.wake_ups, last.sum_ns));
        let n = totals.wake_ups.saturating_sub(n);
        self.now_ns = totals.sum_ns.saturating_sub(sum_ns).checked_div(n);
        let was = before.and_then(|last| last.worst);
        let new_worst = totals.worst.filter(|worst| Some(*worst) != was);
        let new_worst_ns = new_worst.map(|worst| worst.latency_ns());
        self.history_ns.push_back(worst_ns.max(new_worst_ns));
        while self.history_ns.len() > HISTORY {
            self.history_ns.pop_front();
        }
    }
}

fn shown((number, (&tid, thread)): (u32, (&i32, &Thread))) -> Option<ThreadLatency> {
    let totals = thread.last.as_ref()?;
    Some(ThreadLatency {
        thread: number,
        cpu: None,
        tid: tid.unsigned_abs(),
        what: totals.comm.to_string(),
        scheduling: thread.scheduling.clone(),
        n: totals.wake_ups,
        missed: None,
        late: Some(totals.over),
        now_ns: thread.now_ns,
        second_ns: thread.history_ns.back().copied().flatten(),
        minute_ns: thread.history_ns.iter().rev().take(MINUTE).copied().max().flatten(),
        max_ns: totals.worst.map(|worst| worst.latency_ns()),
        history_ns: thread.history_ns.iter().copied().collect(),
    })
}

/// `fifo 80`; empty: unknown.
fn scheduling(root: &Root, tid: i32) -> String {
    let Some(task) = task(root, tid) else { return String::new() };
    let name = match task.policy {
        Some(TaskPolicy::Fifo) => "fifo",
        Some(TaskPolicy::Rr) => "rr",
        Some(TaskPolicy::Deadline) => "deadline",
        Some(TaskPolicy::Batch) => "batch",
        Some(TaskPolicy::Idle) => "idle",
        Some(TaskPolicy::Other) => "other",
        _ => return String::new(),
    };
    if task.rt_priority > 0 { format!("{name} {}", task.rt_priority) } else { name.into() }
}

fn clock_ns(clock: ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
