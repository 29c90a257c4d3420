//! One application: its threads and processes, as the checks of it read them.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::{
        app::{App, AppProcess, AppThread, ThreadSched, ThreadStatus},
        tasks::{Policy, RtTask},
    },
    tune::{Scheduling, TaskName},
};

use crate::draft::FindingBuilder;
use crate::{Evidence, Finding, Intent, Remedy};

/// Most lines of evidence for one kind of file.
pub(crate) const GROUPS_MAX: usize = 32;

/// Most names in a summary.
pub(crate) const NAMED_MAX: usize = 4;

/// An application, the machine and the intent.
pub struct Case<'a> {
    pub facts: &'a Facts,
    pub app: &'a App,
    /// What it is meant for.
    pub intent: &'a Intent,
}

/// A thread whose policy is known.
#[derive(Clone, Copy)]
pub(crate) struct Scheduled<'a> {
    pub(crate) thread: &'a AppThread,
    pub(crate) sched: &'a ThreadSched,
}

/// A real-time thread whose CPUs are known, too.
#[derive(Clone, Copy)]
pub(crate) struct PlacedThread<'a> {
    pub(crate) thread: &'a AppThread,
    pub(crate) sched: &'a ThreadSched,
    pub(crate) status: &'a ThreadStatus,
}

/// The values found, with the draft that cites them; the error is the finding of a check that ends
/// here: unknown, or not applicable.
pub(crate) type CaseResult<T> = Result<(FindingBuilder, Vec<T>), Box<Finding>>;

impl<'a> Case<'a> {
    /// All threads with their policies, as evidence; `Err`: one of them is unknown.
    pub(crate) fn scheduled(&self, draft: FindingBuilder) -> CaseResult<Scheduled<'a>> {
        let lists = self.app.processes.iter().map(|process| &process.threads);
        let draft = draft.evidence(
            lists.map(|list| Evidence::of(list, |threads| crate::count(threads.len(), "thread"))),
        );
        let unread = self.app.processes.iter().find(|process| process.threads.value().is_none());
        if let Some(process) = unread {
            return Err(Box::new(draft.unreadable(&process.threads)));
        }
        let threads: Vec<&AppThread> = self.app.threads().collect();
        let readings = threads.iter().map(|&thread| (thread, &thread.sched));
        let draft = draft.evidence(of_threads(readings, policy_of));
        let mut found = Vec::new();
        for thread in threads {
            match thread.sched.value() {
                Some(sched) => found.push(Scheduled { thread, sched }),
                None => return Err(Box::new(draft.unreadable(&thread.sched))),
            }
        }
        if found.is_empty() {
            return Err(Box::new(draft.unknown("no thread: the process has ended")));
        }
        Ok((draft, found))
    }

    /// The real-time threads; `Err`: unknown, or there is none.
    pub(crate) fn real_time(&self, draft: FindingBuilder) -> CaseResult<Scheduled<'a>> {
        let (draft, mut threads) = self.scheduled(draft)?;
        threads.retain(|thread| thread.sched.policy.is_real_time());
        if threads.is_empty() {
            return Err(Box::new(draft.not_applicable("the application has no real-time thread")));
        }
        Ok((draft, threads))
    }

    /// The real-time threads and their CPUs; `Err`: unknown, or there is none.
    pub(crate) fn placed(&self, draft: FindingBuilder) -> CaseResult<PlacedThread<'a>> {
        let (draft, threads) = self.real_time(draft)?;
        place(draft, &threads)
    }

    /// Real-time tasks of others; `Err`: unknown, also where not every task can be seen.
    pub(crate) fn other_tasks(&self, draft: FindingBuilder) -> CaseResult<&'a RtTask> {
        let draft =
            draft.read(&self.facts.rt_tasks, |tasks| crate::count(tasks.len(), "real-time task"));
        let Some(tasks) = self.facts.rt_tasks.value() else {
            return Err(Box::new(draft.unreadable(&self.facts.rt_tasks)));
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
    pub(crate) fn processes(&self) -> Vec<&'a AppProcess> {
        let all = &self.app.processes;
        let real_time: Vec<&AppProcess> =
            all.iter().filter(|process| process.real_time().next().is_some()).collect();
        if !real_time.is_empty() {
            return real_time;
        }
        all.iter().filter(|process| process.pid == self.app.pid).collect()
    }

    /// One reading of each process that matters; `Err`: one of them is unknown.
    pub(crate) fn of_processes<T>(
        &self,
        mut draft: FindingBuilder,
        reading: impl Fn(&'a AppProcess) -> &'a Reading<T>,
        show: impl Fn(&T) -> String,
    ) -> CaseResult<(&'a AppProcess, &'a T)> {
        let processes = self.processes();
        for &process in &processes {
            draft = draft.read(reading(process), &show);
        }
        let mut found = Vec::new();
        for process in processes {
            match reading(process).value() {
                Some(value) => found.push((process, value)),
                None => return Err(Box::new(draft.unreadable(reading(process)))),
            }
        }
        Ok((draft, found))
    }

    /// The line of a drop-in, where the application is a service of the system's manager.
    pub(crate) fn drop_in(&self, line: &str) -> Option<Remedy> {
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
pub(crate) fn place<'a>(
    draft: FindingBuilder,
    threads: &[Scheduled<'a>],
) -> CaseResult<PlacedThread<'a>> {
    let readings = threads.iter().map(|found| (found.thread, &found.thread.status));
    let draft = draft.evidence(of_threads(readings, |status| format!("CPUs {}", status.cpus)));
    let mut found = Vec::new();
    for &Scheduled { thread, sched } in threads {
        match thread.status.value() {
            Some(status) => found.push(PlacedThread { thread, sched, status }),
            None => return Err(Box::new(draft.unreadable(&thread.status))),
        }
    }
    Ok((draft, found))
}

/// One reading of each thread as evidence: equal values of a process share a line whose path names
/// the threads in braces.
pub(crate) fn of_threads<'a, T: 'a>(
    readings: impl Iterator<Item = (&'a AppThread, &'a Reading<T>)>,
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
pub(crate) fn spread(path: &str, tids: &[u32]) -> String {
    let ([first, _, ..], Some(last)) = (tids, path.rfind('/')) else {
        return path.into();
    };
    let (folder, file) = path.split_at(last);
    match folder.strip_suffix(&first.to_string()) {
        Some(above) => format!("{above}{{{}}}{file}", crate::machine::number_list(tids)),
        None => path.into(),
    }
}

/// Policy and priority in words.
pub(crate) fn policy_of(sched: &ThreadSched) -> String {
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
pub(crate) fn rank(sched: &ThreadSched) -> Option<u32> {
    matches!(sched.policy, Policy::Fifo | Policy::Rr).then_some(sched.priority)
}

/// A thread in a summary.
pub(crate) fn name(thread: &AppThread, sched: &ThreadSched) -> String {
    format!("{} (tid {}, {})", sched.comm, thread.tid, policy_of(sched))
}

/// A task of others in a summary.
pub(crate) fn task_name(task: &RtTask) -> String {
    format!("{} (tid {}, {})", task.comm, task.tid, policy_text(task.policy, task.priority))
}

/// A task of others as evidence.
pub(crate) fn task_evidence(task: &RtTask) -> Evidence {
    let place = task.cpus.as_ref().map_or_else(|| "CPUs unknown".into(), crate::cpus);
    let value = format!("{} on {place}", task_name(task));
    Evidence { path: format!("/proc/{}/task/{}/stat", task.pid, task.tid), value }
}

/// Whether a task of others may run on one of these CPUs; one with an unreadable affinity may.
pub(crate) fn may_run_on(task: &RtTask, cpus: &CpuList) -> bool {
    task.cpus.as_ref().is_none_or(|on| !on.intersection(cpus).is_empty())
}

pub(crate) fn is_own(app: &App, task: &RtTask) -> bool {
    app.processes.iter().any(|process| process.pid == task.pid)
}

/// Sets the scheduling of a thread.
pub(crate) fn set(thread: &AppThread, sched: &ThreadSched, set: Scheduling) -> Remedy {
    let comm = sched.comm.clone();
    let task = TaskName { tid: thread.tid, start_ticks: Some(sched.start_ticks), comm };
    Remedy::Task { task, set }
}
