//! Tasks: who they are, and how they are scheduled. The calls themselves are handed in: they are
//! unsafe code, which is another crate's.

use std::io;

use rustix::io::Errno;

use super::{
    change::{Scheduling, TaskName},
    machine::Machine,
    side::{Side, Three},
    state::State,
    trouble::Trouble,
};
use crate::{Root, facts::tasks::Stat};

/// Scheduling of tasks; `rtproof_measure::scheduling::LiveTasks` asks the kernel.
pub trait Tasks {
    /// All of how a task is scheduled.
    ///
    /// # Errors
    /// ESRCH once it has ended, EPERM.
    fn scheduling(&self, tid: u32) -> io::Result<Scheduling>;

    /// Sets what is not `None`; the rest stays.
    ///
    /// # Errors
    /// ESRCH once it has ended, EPERM, EINVAL for what the kernel does not take.
    fn set(&self, tid: u32, to: &Scheduling) -> io::Result<()>;
}

/// The task with a name's thread id and start, or the only one called so where the name has no
/// start.
pub(super) fn find(root: &Root, name: &TaskName) -> Result<TaskName, Trouble> {
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
        (Some(_), others) => Err(Trouble::Unexpected {
            path: format!("task {}", name.comm),
            found: format!("{} tasks of this name", others + 1),
            expected: "one; name it by its thread id".into(),
        }),
    }
}

/// All tasks.
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

fn gone(name: &TaskName) -> Trouble {
    Trouble::Gone { what: format!("task {} ({})", name.tid, name.comm) }
}

impl Machine<'_> {
    fn tasks(&self, name: &TaskName) -> Result<&dyn Tasks, Trouble> {
        let what = || format!("scheduling of task {} ({})", name.tid, name.comm);
        self.tasks.ok_or_else(|| Trouble::NotLive { what: what() })
    }

    pub(super) fn task_state(&self, name: &TaskName) -> Result<State, Trouble> {
        let tasks = self.tasks(name)?;
        let found = find(self.root, name)?;
        let scheduling =
            tasks.scheduling(found.tid).map_err(|error| self.task_trouble(name, error))?;
        Ok(State::Task { scheduling })
    }

    fn task_trouble(&self, name: &TaskName, error: io::Error) -> Trouble {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::SRCH) => gone(name),
            _ => {
                let path = format!("task {} ({})", name.tid, name.comm);
                Trouble::refused(self.root, &path, error)
            }
        }
    }

    /// Sets policy and CPUs, one call for each, in the order that the kernel needs: a deadline is
    /// admitted only to a task that may run everywhere.
    pub(super) fn set_task(&self, name: &TaskName, to: &Scheduling) -> Result<(), Trouble> {
        let tasks = self.tasks(name)?;
        let tid = find(self.root, name)?.tid;
        let cpus = Scheduling { cpus: to.cpus.clone(), ..Scheduling::default() };
        let policy = Scheduling { cpus: None, ..to.clone() };
        let mut parts = [policy, cpus];
        if to.policy.as_deref() == Some("deadline") {
            parts.reverse();
        }
        if to.cpus.is_some() && stat(self.root, tid).is_some_and(|stat| stat.bound) {
            return Err(Trouble::Refused {
                path: format!("task {tid} ({})", name.comm),
                why: "a thread that the kernel keeps on its CPUs (PF_NO_SETAFFINITY); leave it \
                      out"
                .into(),
            });
        }
        for part in parts.iter().filter(|part| **part != Scheduling::default()) {
            let set = self.gate.step().and_then(|()| tasks.set(tid, part));
            set.map_err(|error| self.task_trouble(name, error))?;
        }
        Ok(())
    }

    /// Puts back what we set and nobody has changed since.
    pub(super) fn restore_task(
        &self,
        name: &TaskName,
        set: &Scheduling,
        three: Three<'_>,
    ) -> Result<(), Trouble> {
        let old = of(three.before)
            .ok_or_else(|| super::engine::not_expected(three.before, "scheduling of a task"))?;
        let mut back = Scheduling::default();
        if part_side(Part::Policy, set, three) == Side::Ours {
            back = Scheduling { cpus: None, ..old.clone() };
        }
        if part_side(Part::Cpus, set, three) == Side::Ours {
            back.cpus.clone_from(&old.cpus);
        }
        self.set_task(name, &back)
    }
}

/// What of a task is set by one call.
#[derive(Clone, Copy)]
enum Part {
    Policy,
    Cpus,
}

/// Whether every field that is set is so.
pub(super) fn is_done(set: &Scheduling, current: &Scheduling) -> bool {
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

/// Whose value a task has.
pub(super) fn side(set: &Scheduling, three: Three<'_>) -> Side {
    let sides = [Part::Policy, Part::Cpus].map(|part| part_side(part, set, three));
    if sides.contains(&Side::Theirs) {
        Side::Theirs
    } else if sides.contains(&Side::Ours) {
        Side::Ours
    } else {
        Side::Before
    }
}

/// Whether a part of it is ours while another is somebody else's by now.
pub(super) fn has_ours(set: &Scheduling, three: Three<'_>) -> bool {
    [Part::Policy, Part::Cpus].into_iter().any(|part| part_side(part, set, three) == Side::Ours)
}

const fn of(state: &State) -> Option<&Scheduling> {
    match state {
        State::Task { scheduling } => Some(scheduling),
        _ => None,
    }
}

fn part_side(part: Part, set: &Scheduling, three: Three<'_>) -> Side {
    let cut = |whole: &Scheduling| match part {
        Part::Policy => Scheduling { cpus: None, ..whole.clone() },
        Part::Cpus => Scheduling { cpus: whole.cpus.clone(), ..Scheduling::default() },
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
    if is_ours { Side::Ours } else { Side::Theirs }
}
