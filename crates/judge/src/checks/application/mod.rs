//! Is this application really real-time? One file for each question.
//!
//! As the checks of the machine, but of one application: a pure function from the machine's facts,
//! the application's and the intent to a [`Finding`]. What is asked of real-time threads does not
//! concern an application without any: `app-policy` says that it has none. A new question is a
//! file with a `CHECK`, a line in `CHECKS`, and good values in `testing.rs`; `contract.rs` tries
//! it.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::app::{App, Process, Thread, ThreadSched, ThreadStatus},
    facts::tasks::{Policy, RtTask},
    tune::{Scheduling, TaskName},
};

use super::draft::Draft;
use crate::{Evidence, Finding, Impact, Intent, Remedy, Status, When};

mod affinity;
mod cgroup_quota;
mod container;
#[cfg(test)]
mod contract;
mod cpuset;
mod debugger;
mod equal_priority;
mod irq_threads;
mod isolation;
mod limits;
mod memory_limit;
mod memory_locked;
mod memory_nodes;
mod oom;
mod ordinary_threads;
mod outranked;
mod page_faults;
mod pinning;
mod policy;
mod preempted;
mod rt_bandwidth;
mod seccomp;
mod swapped;
#[doc(hidden)]
pub mod testing;
mod throttling;
mod timer_slack;
mod unit;

/// Every question, in the order of the report.
const CHECKS: &[&AppCheck] = &[
    &policy::CHECK,
    &affinity::CHECK,
    &isolation::CHECK,
    &pinning::CHECK,
    &outranked::CHECK,
    &equal_priority::CHECK,
    &irq_threads::CHECK,
    &ordinary_threads::CHECK,
    &throttling::CHECK,
    &preempted::CHECK,
    &memory_locked::CHECK,
    &page_faults::CHECK,
    &swapped::CHECK,
    &limits::RTPRIO,
    &limits::MEMLOCK,
    &limits::RTTIME,
    &cgroup_quota::CHECK,
    &rt_bandwidth::CHECK,
    &cpuset::CHECK,
    &memory_nodes::CHECK,
    &memory_limit::CHECK,
    &unit::CHECK,
    &timer_slack::CHECK,
    &seccomp::CHECK,
    &debugger::CHECK,
    &oom::CHECK,
    &container::CHECK,
];

/// Most lines of evidence for one kind of file.
const GROUPS_MAX: usize = 32;
/// Most names in a summary.
const NAMED_MAX: usize = 4;

/// One question.
pub struct AppCheck {
    id: &'static str,
    title: &'static str,
    why: &'static str,
    source: &'static str,
    trade_off: Option<&'static str>,
    impact: Impact,
    when: When,
    judge: fn(&Case<'_>) -> Finding,
}

impl AppCheck {
    /// Identifier: short, kebab-case, for ever; begins with `app-`.
    #[must_use]
    pub const fn id(&self) -> &'static str {
        self.id
    }

    /// What it looks at, in one line.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// Why a bad answer adds latency.
    #[must_use]
    pub const fn why(&self) -> &'static str {
        self.why
    }

    /// Where that is known from: documents, kernel files, measurements.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// What the wanted value costs.
    #[must_use]
    pub const fn trade_off(&self) -> Option<&'static str> {
        self.trade_off
    }

    /// How much latency a bad answer costs, as a rule.
    #[must_use]
    pub const fn impact(&self) -> Impact {
        self.impact
    }

    /// What has to be done for a change to take effect.
    #[must_use]
    pub const fn when(&self) -> When {
        self.when
    }

    /// The answer. Never `Good` when what it needs is unknown.
    #[must_use]
    pub fn judge(&self, facts: &Facts, app: &App, intent: &Intent) -> Finding {
        (self.judge)(&Case { check: self, facts, app, intent })
    }
}

/// Every question, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static AppCheck> {
    CHECKS.iter().copied()
}

/// The question with an id.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static AppCheck> {
    all().find(|check| check.id == id)
}

/// Answers every question.
#[must_use]
pub fn judge_all(facts: &Facts, app: &App, intent: &Intent) -> Vec<Finding> {
    let judge = |check: &AppCheck| {
        let mut finding = check.judge(facts, app, intent);
        finding.skipped = intent.skip.get(&finding.check).cloned();
        finding
    };
    all().map(judge).collect()
}

/// The machine without the application's own real-time threads, which are no strangers on it: what
/// the checks of the machine are to judge.
#[must_use]
pub fn without_own(facts: &Facts, app: &App) -> Facts {
    let mut facts = facts.clone();
    facts.rt_tasks = facts.rt_tasks.map(|mut tasks| {
        tasks.retain(|task| !is_own(app, task));
        tasks
    });
    facts
}

/// Highest priority of the application's SCHED_FIFO and SCHED_RR threads.
#[must_use]
pub fn priority(app: &App) -> Option<u32> {
    let scheds = app.threads().filter_map(|thread| thread.sched.value());
    scheds
        .filter(|sched| rank(sched).is_some())
        .map(|sched| sched.priority)
        .max()
        .filter(|&p| p > 0)
}

/// CPUs of the application's real-time threads, where all of them are known.
#[must_use]
pub fn cpus(app: &App) -> Option<CpuList> {
    let mut all = CpuList::default();
    for thread in app.threads().filter(|thread| thread.is_real_time()) {
        all = all.union(&thread.status.value()?.cpus);
    }
    (!all.is_empty()).then_some(all)
}

/// What a question is asked of.
struct Case<'a> {
    check: &'a AppCheck,
    facts: &'a Facts,
    app: &'a App,
    intent: &'a Intent,
}

/// A thread whose policy is known.
#[derive(Clone, Copy)]
struct Scheduled<'a> {
    thread: &'a Thread,
    sched: &'a ThreadSched,
}

/// A real-time thread whose CPUs are known, too.
#[derive(Clone, Copy)]
struct Placed<'a> {
    thread: &'a Thread,
    sched: &'a ThreadSched,
    status: &'a ThreadStatus,
}

/// What was found, with the draft that cites it; the error is the finding of a question that ends
/// here: unknown, or not applicable.
type Found<T> = Result<(Draft, Vec<T>), Box<Finding>>;

impl<'a> Case<'a> {
    /// A finding without its status and summary.
    fn draft(&self, wanted: impl Into<String>) -> Draft {
        let check = self.check;
        Draft::blank(Finding {
            check: check.id.into(),
            status: Status::Unknown,
            summary: String::new(),
            wanted: wanted.into(),
            cpus: None,
            evidence: Vec::new(),
            why: check.why.into(),
            source: check.source.into(),
            remedies: Vec::new(),
            when: check.when,
            impact: check.impact,
            trade_off: check.trade_off.map(Into::into),
            skipped: None,
        })
    }

    /// All threads with their policies, as evidence; `Err`: one of them is unknown.
    fn scheduled(&self, draft: Draft) -> Found<Scheduled<'a>> {
        let lists = self.app.processes.iter().map(|process| &process.threads);
        let draft = draft.saw(lists.map(|list| {
            Evidence::of(list, |threads| crate::units::count(threads.len(), "thread"))
        }));
        let unread = self.app.processes.iter().find(|process| process.threads.value().is_none());
        if let Some(process) = unread {
            return Err(Box::new(draft.blind(&process.threads)));
        }
        let threads: Vec<&Thread> = self.app.threads().collect();
        let readings = threads.iter().map(|&thread| (thread, &thread.sched));
        let draft = draft.saw(of_threads(readings, policy_of));
        let mut found = Vec::new();
        for thread in threads {
            match thread.sched.value() {
                Some(sched) => found.push(Scheduled { thread, sched }),
                None => return Err(Box::new(draft.blind(&thread.sched))),
            }
        }
        if found.is_empty() {
            return Err(Box::new(draft.unknown("no thread: the process has ended")));
        }
        Ok((draft, found))
    }

    /// The real-time threads; `Err`: unknown, or there is none.
    fn real_time(&self, draft: Draft) -> Found<Scheduled<'a>> {
        let (draft, mut threads) = self.scheduled(draft)?;
        threads.retain(|thread| thread.sched.policy.is_real_time());
        if threads.is_empty() {
            return Err(Box::new(draft.not_applicable("the application has no real-time thread")));
        }
        Ok((draft, threads))
    }

    /// The real-time threads and their CPUs; `Err`: unknown, or there is none.
    fn placed(&self, draft: Draft) -> Found<Placed<'a>> {
        let (draft, threads) = self.real_time(draft)?;
        place(draft, &threads)
    }

    /// Real-time tasks of others; `Err`: unknown, also where not every task can be seen.
    fn others(&self, draft: Draft) -> Found<&'a RtTask> {
        let draft = draft
            .read(&self.facts.rt_tasks, |tasks| crate::units::count(tasks.len(), "real-time task"));
        let Some(tasks) = self.facts.rt_tasks.value() else {
            return Err(Box::new(draft.blind(&self.facts.rt_tasks)));
        };
        if !tasks.iter().any(|task| task.kernel_thread) {
            return Err(Box::new(
                draft
                    .unknown("no kernel thread is visible: a PID namespace or hidepid hides tasks"),
            ));
        }
        Ok((draft, tasks.iter().filter(|task| !is_own(self.app, task)).collect()))
    }

    /// Processes with real-time threads; the main one where there is none.
    fn processes(&self) -> Vec<&'a Process> {
        let all = &self.app.processes;
        let real_time: Vec<&Process> =
            all.iter().filter(|process| process.real_time().next().is_some()).collect();
        if !real_time.is_empty() {
            return real_time;
        }
        all.iter().filter(|process| process.pid == self.app.pid).collect()
    }

    /// One reading of each process that matters; `Err`: one of them is unknown.
    fn of_processes<T>(
        &self,
        mut draft: Draft,
        reading: impl Fn(&'a Process) -> &'a Reading<T>,
        show: impl Fn(&T) -> String,
    ) -> Found<(&'a Process, &'a T)> {
        let processes = self.processes();
        for &process in &processes {
            draft = draft.read(reading(process), &show);
        }
        let mut found = Vec::new();
        for process in processes {
            match reading(process).value() {
                Some(value) => found.push((process, value)),
                None => return Err(Box::new(draft.blind(reading(process)))),
            }
        }
        Ok((draft, found))
    }

    /// The line of a drop-in, where the application is a service of the system's manager.
    fn drop_in(&self, line: &str) -> Option<Remedy> {
        let unit = self.app.unit.value()?.as_ref().filter(|unit| unit.ends_with(".service"))?;
        let file = self.app.unit_file.value()?;
        let path = format!("/etc/systemd/system/{unit}.d/90-rtproof.conf");
        // What our file sets already stays in it.
        let set = file.iter().flat_map(|file| &file.settings).filter(|(_, set)| set.file == path);
        let mut lines = vec!["[Service]".to_owned()];
        lines.extend(set.map(|(key, set)| format!("{key}={}", set.value)));
        lines.extend(line.lines().map(str::to_owned));
        Some(Remedy::File { path, line: lines.join("\n") })
    }
}

/// Adds the CPUs of threads.
fn place<'a>(draft: Draft, threads: &[Scheduled<'a>]) -> Found<Placed<'a>> {
    let readings = threads.iter().map(|found| (found.thread, &found.thread.status));
    let draft = draft.saw(of_threads(readings, |status| format!("CPUs {}", status.cpus)));
    let mut found = Vec::new();
    for &Scheduled { thread, sched } in threads {
        match thread.status.value() {
            Some(status) => found.push(Placed { thread, sched, status }),
            None => return Err(Box::new(draft.blind(&thread.status))),
        }
    }
    Ok((draft, found))
}

/// One reading of each thread as evidence: equal values of a process share a line whose path names
/// the threads in braces.
fn of_threads<'a, T: 'a>(
    readings: impl Iterator<Item = (&'a Thread, &'a Reading<T>)>,
    show: impl Fn(&T) -> String,
) -> Vec<Evidence> {
    let mut groups: Vec<(u32, String, Vec<u32>, &str)> = Vec::new();
    for (thread, reading) in readings {
        let value = Evidence::of(reading, &show).value;
        let same =
            |group: &&mut (u32, String, Vec<u32>, &str)| group.0 == thread.pid && group.1 == value;
        match groups.iter_mut().find(same) {
            Some((_, _, tids, _)) => tids.push(thread.tid),
            None => groups.push((thread.pid, value, vec![thread.tid], &reading.path)),
        }
    }
    let more = groups.len().saturating_sub(GROUPS_MAX);
    let shown = groups.into_iter().take(GROUPS_MAX);
    let mut evidence: Vec<Evidence> =
        shown.map(|(_, value, tids, path)| Evidence { path: spread(path, &tids), value }).collect();
    if let Some(last) = evidence.last_mut().filter(|_| more > 0) {
        last.value.push_str(&format!("; {more} more values"));
    }
    evidence
}

/// `path`, which names the first of `tids` in its last number, for all of them.
fn spread(path: &str, tids: &[u32]) -> String {
    let ([first, _, ..], Some(last)) = (tids, path.rfind('/')) else {
        return path.into();
    };
    let (folder, file) = path.split_at(last);
    match folder.strip_suffix(&first.to_string()) {
        Some(above) => format!("{above}{{{}}}{file}", super::text::list(tids)),
        None => path.into(),
    }
}

/// Policy and priority in words.
fn policy_of(sched: &ThreadSched) -> String {
    policy_text(sched.policy, sched.priority)
}

fn policy_text(policy: Policy, priority: u32) -> String {
    let name = policy.name().to_ascii_uppercase();
    match policy {
        Policy::Fifo | Policy::Rr => format!("SCHED_{name} {priority}"),
        _ => format!("SCHED_{name}"),
    }
}

/// Priority of a SCHED_FIFO or SCHED_RR thread.
fn rank(sched: &ThreadSched) -> Option<u32> {
    matches!(sched.policy, Policy::Fifo | Policy::Rr).then_some(sched.priority)
}

/// A thread in a summary.
fn name(thread: &Thread, sched: &ThreadSched) -> String {
    format!("{} (tid {}, {})", sched.comm, thread.tid, policy_of(sched))
}

/// A task of others in a summary.
fn task_name(task: &RtTask) -> String {
    format!("{} (tid {}, {})", task.comm, task.tid, policy_text(task.policy, task.priority))
}

/// A task of others as evidence.
fn task_evidence(task: &RtTask) -> Evidence {
    let place = task.cpus.as_ref().map_or_else(|| "CPUs unknown".into(), crate::units::cpus);
    let value = format!("{} on {place}", task_name(task));
    Evidence { path: format!("/proc/{}/task/{}/stat", task.pid, task.tid), value }
}

/// Whether a task of others may run on one of these CPUs; one with an unreadable affinity may.
fn may_run_on(task: &RtTask, cpus: &CpuList) -> bool {
    task.cpus.as_ref().is_none_or(|on| !on.intersection(cpus).is_empty())
}

fn is_own(app: &App, task: &RtTask) -> bool {
    app.processes.iter().any(|process| process.pid == task.pid)
}

/// Sets the scheduling of a thread.
fn set(thread: &Thread, sched: &ThreadSched, set: Scheduling) -> Remedy {
    let comm = sched.comm.clone();
    let task = TaskName { tid: thread.tid, start_ticks: Some(sched.start_ticks), comm };
    Remedy::Task { task, set }
}

/// The value of a `Result` whose error is the finding.
fn settle(result: Result<Finding, Box<Finding>>) -> Finding {
    result.unwrap_or_else(|finding| *finding)
}
