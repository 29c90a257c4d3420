//! Remedies that several checks share. A task is named by its start, too: its number may become
//! another's.

use rtproof_host::CpuList;
use rtproof_host::facts::tasks::RtTask;
use rtproof_host::tune::{Scheduling, TaskName};

use crate::Remedy;
use rtproof_host::knobs::names::LIMITS_FILE;

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

/// A right that a user gets by a line of limits.conf(5), or a service by its unit.
pub(crate) fn right(name: &str, value: &str, directive: &str) -> [Remedy; 3] {
    let command = "groupadd --system --force realtime && usermod -aG realtime USER".into();
    let line = format!("@realtime - {name} {value}");
    [
        Remedy::Command { command },
        Remedy::File { path: LIMITS_FILE.into(), line },
        Remedy::Manual { text: format!("for a service: {directive} in its unit") },
    ]
}
