//! Scheduling of tasks.

use std::io;

use rustix::io::Errno;

use crate::tune::kind::{
    ChangeError, Kind, Machine, Nature, Pace, Part, Rank, Side, State, Three, text,
};
use crate::{
    Root,
    change::{Change, Scheduling, TaskName},
    facts::tasks::Stat,
    tune::machine::Tasks,
};

/// How one task is scheduled; what is `None` stays.
pub(super) struct Task<'a> {
    pub(super) task: &'a TaskName,
    pub(super) set: &'a Scheduling,
}

impl Kind for Task<'_> {
    fn target(&self) -> String {
        label(self.task)
    }

    fn line(&self) -> String {
        let parts = [
            self.set.policy.clone(),
            self.set.priority.map(|priority| priority.to_string()),
            self.set.cpus.as_ref().map(|cpus| format!("CPUs {cpus}")),
        ];
        format!("{}: {}", self.target(), parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    fn wanted(&self) -> String {
        let set = self.set;
        let policy = set.policy.as_ref().map(|policy| format!("SCHED_{}", policy.to_uppercase()));
        let parts = [
            policy,
            set.priority.map(|priority| format!("priority {priority}")),
            set.nice.map(|nice| format!("nice {nice}")),
            set.cpus.as_ref().map(|cpus| format!("CPUs {cpus}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn after(&self) -> String {
        text::scheduling(self.set, self.set)
    }

    fn before(&self, state: &State) -> String {
        of(state).map_or_else(|| text::state(state), |now| text::scheduling(now, self.set))
    }

    fn texts(&self) -> Vec<&str> {
        vec![&self.task.comm]
    }

    fn may_be_made(&self) -> Result<(), String> {
        Ok(())
    }

    fn nature(&self) -> Nature {
        Nature::lost_at_reboot(Part::Tasks, Rank::Tasks, Pace::Toggled)
    }

    fn named(&self, machine: &Machine<'_>) -> Result<Option<Change>, ChangeError> {
        Ok(Some(Change::Task { task: find(machine.root, self.task)?, set: self.set.clone() }))
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let tasks = machine.tasks()?;
        let found = find(machine.root, self.task)?;
        let scheduling = tasks.scheduling(found.tid);
        let scheduling = scheduling.map_err(|error| machine.task_error(self.task, error))?;
        Ok(State::Task { scheduling })
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        of(state).is_some_and(|scheduling| is_done(self.set, scheduling))
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.set_task(self.task, self.set)
    }

    fn side(&self, _: &Machine<'_>, three: Three<'_>) -> Side {
        let sides = FIELDS.map(|field| field_side(field, self.set, three));
        let first = [Side::Theirs, Side::Ours].into_iter().find(|side| sides.contains(side));
        first.unwrap_or(Side::Before)
    }

    fn is_partly_ours(&self, three: Three<'_>) -> bool {
        FIELDS.into_iter().any(|field| field_side(field, self.set, three) == Side::Ours)
    }

    /// Restores what we set and no other program has changed since.
    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        let old = of(three.before)
            .ok_or_else(|| ChangeError::not_expected(three.before, "scheduling of a task"))?;
        let mut back = Scheduling::default();
        if field_side(Field::Policy, self.set, three) == Side::Ours {
            back = Scheduling { cpus: None, ..old.clone() };
        }
        if field_side(Field::Cpus, self.set, three) == Side::Ours {
            back.cpus.clone_from(&old.cpus);
        }
        machine.set_task(self.task, &back)
    }
}

/// What of a task is set by one call.
#[derive(Clone, Copy)]
enum Field {
    Policy,
    Cpus,
}

const FIELDS: [Field; 2] = [Field::Policy, Field::Cpus];

fn label(name: &TaskName) -> String {
    format!("task {} ({})", name.tid, name.comm)
}

/// The task with a name's thread id and start, or the only one called so where the name has no
/// start.
pub(super) fn find(root: &Root, name: &TaskName) -> Result<TaskName, ChangeError> {
    if name.start_ticks.is_some() {
        let found = identify(root, name.tid);
        return match found.filter(|found| found.start_ticks == name.start_ticks) {
            Some(_) => Ok(name.clone()),
            None => Err(gone(name)),
        };
    }
    if let Some(found) = identify(root, name.tid).filter(|found| found.comm == name.comm) {
        return Ok(found);
    }
    let mut found = all(root).into_iter().filter(|task| task.comm == name.comm);
    match (found.next(), found.count()) {
        (Some(task), 0) => Ok(task),
        (None, _) => Err(gone(name)),
        (Some(_), others) => Err(ChangeError::Unexpected {
            path: format!("task {}", name.comm),
            found: format!("{} tasks of this name", others + 1),
            expected: "one; name it by its thread id".into(),
        }),
    }
}

pub(super) fn all(root: &Root) -> Vec<TaskName> {
    let pids = root.list_numbered("/proc", "");
    let mut tasks = Vec::new();
    for &pid in pids.value().into_iter().flatten() {
        let tids = root.list_numbered(&format!("/proc/{pid}/task"), "");
        match tids.value() {
            Some(tids) => tasks.extend(tids.iter().filter_map(|&tid| identify(root, tid))),
            None => tasks.extend(identify(root, pid)),
        }
    }
    tasks
}

fn identify(root: &Root, tid: u32) -> Option<TaskName> {
    let stat = stat(root, tid)?;
    Some(TaskName { tid, start_ticks: Some(stat.start_ticks), comm: stat.comm })
}

/// A thread's folder is under /proc too, though it is not listed there.
fn stat(root: &Root, tid: u32) -> Option<Stat> {
    Stat::parse(root.read_text(&format!("/proc/{tid}/stat")).value()?)
}

fn gone(name: &TaskName) -> ChangeError {
    ChangeError::Gone { what: label(name) }
}

impl Machine<'_> {
    fn tasks(&self) -> Result<&dyn Tasks, ChangeError> {
        let none = || ChangeError::NotLive { what: "the scheduling of tasks".into() };
        self.tasks.ok_or_else(none)
    }

    fn task_error(&self, name: &TaskName, error: io::Error) -> ChangeError {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::SRCH) => gone(name),
            _ => self.refusal(&label(name), error),
        }
    }

    /// Sets policy and CPUs, one call for each, in the order that the kernel needs: a deadline is
    /// admitted only to a task that may run everywhere.
    pub(super) fn set_task(&self, name: &TaskName, to: &Scheduling) -> Result<(), ChangeError> {
        let tasks = self.tasks()?;
        let tid = find(self.root, name)?.tid;
        let cpus = Scheduling { cpus: to.cpus.clone(), ..Scheduling::default() };
        let policy = Scheduling { cpus: None, ..to.clone() };
        let mut parts = [policy, cpus];
        if to.policy.as_deref() == Some("deadline") {
            parts.reverse();
        }
        if to.cpus.is_some() && stat(self.root, tid).is_some_and(|stat| stat.bound) {
            return Err(ChangeError::Refused {
                path: format!("task {tid} ({})", name.comm),
                why: "a thread that the kernel keeps on its CPUs (PF_NO_SETAFFINITY); leave it \
                      out"
                .into(),
            });
        }
        for part in parts.iter().filter(|part| **part != Scheduling::default()) {
            let set = self.gate.step().and_then(|()| tasks.set(tid, part));
            set.map_err(|error| self.task_error(name, error))?;
        }
        Ok(())
    }
}

/// Whether every field that is set is so.
fn is_done(set: &Scheduling, current: &Scheduling) -> bool {
    fn holds<T: PartialEq>(wanted: Option<&T>, current: Option<&T>) -> bool {
        wanted.is_none() || wanted == current
    }
    holds(set.policy.as_ref(), current.policy.as_ref())
        && holds(set.priority.as_ref(), current.priority.as_ref())
        && holds(set.nice.as_ref(), current.nice.as_ref())
        && holds(set.deadline_ns.as_ref(), current.deadline_ns.as_ref())
        && holds(set.reset_on_fork.as_ref(), current.reset_on_fork.as_ref())
        && holds(set.cpus.as_ref(), current.cpus.as_ref())
}

const fn of(state: &State) -> Option<&Scheduling> {
    match state {
        State::Task { scheduling } => Some(scheduling),
        _ => None,
    }
}

fn field_side(field: Field, set: &Scheduling, three: Three<'_>) -> Side {
    let cut = |whole: &Scheduling| match field {
        Field::Policy => Scheduling { cpus: None, ..whole.clone() },
        Field::Cpus => Scheduling { cpus: whole.cpus.clone(), ..Scheduling::default() },
    };
    let (Some(before), Some(current)) = (of(three.before), of(three.current)) else {
        return Side::Theirs;
    };
    let (set, before, current) = (cut(set), cut(before), cut(current));
    if set == Scheduling::default() || current == before {
        return Side::Before;
    }
    let is_ours = match three.after.and_then(of) {
        Some(after) => current == cut(after),
        None => is_done(&set, &current),
    };
    Side::ours_if(is_ours)
}
