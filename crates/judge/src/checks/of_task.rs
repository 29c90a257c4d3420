//! Remedies that are about one task: named by its start, too, because its number is another's one
//! day.

use rtproof_host::CpuList;
use rtproof_host::facts::tasks::RtTask;
use rtproof_host::tune::{Scheduling, TaskName};

use crate::Remedy;

/// Moves a task to other CPUs.
pub(super) fn move_to(task: &RtTask, cpus: &CpuList) -> Remedy {
    set(task, Scheduling { cpus: Some(cpus.clone()), ..Scheduling::default() })
}

/// Makes a task real-time with this priority.
pub(super) fn make_fifo(task: &RtTask, priority: u32) -> Remedy {
    let policy = Some("fifo".to_owned());
    set(task, Scheduling { policy, priority: Some(priority), ..Scheduling::default() })
}

/// Makes a task an ordinary one.
pub(super) fn make_ordinary(task: &RtTask) -> Remedy {
    set(task, Scheduling { policy: Some("other".to_owned()), ..Scheduling::default() })
}

fn set(task: &RtTask, set: Scheduling) -> Remedy {
    let comm = task.comm.clone();
    let task = TaskName { tid: task.tid, start_ticks: Some(task.start_ticks), comm };
    Remedy::Task { task, set }
}
