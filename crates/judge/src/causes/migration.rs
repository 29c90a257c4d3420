//! The thread waited or ran on another CPU.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// Moved from one CPU to another.
#[derive(Debug)]
pub(super) struct Migration;

impl Cause for Migration {
    fn id(&self) -> &'static str {
        "migration"
    }

    fn kind(&self) -> Kind {
        Kind::Scheduling
    }

    fn title(&self) -> &'static str {
        "moved from one CPU to another"
    }

    fn about(&self) -> &'static str {
        "the thread was on the queue of another CPU than the one it ran on (sched_migrate_task), \
         or the stopper that moves tasks (migration/N) was running"
    }

    fn source(&self) -> &'static str {
        "kernel/sched/core.c (migration_cpu_stop)"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["app-affinity", "app-pinning"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        if let Phase::Elsewhere(cpu) = moment.phase {
            let claim = Claim::by(format!("CPU {cpu}"));
            return Some(claim.manual("pin the thread to one CPU (sched_setaffinity, taskset)"));
        }
        let is_stopper = moment.phase == Phase::Runnable
            && moment.is_task()
            && names::comm(moment.scene, moment.cpu.task).starts_with("migration/");
        is_stopper.then(|| {
            let name = names::comm(moment.scene, moment.cpu.task);
            Claim::by(name).detail(names::task_detail(moment.scene, moment.cpu.task)).manual(
                "what moves tasks, loads kernel text or calls stop_machine runs here: no balancing \
                 over this CPU (isolcpus=domain), no module loading or ftrace changes in operation",
            )
        })
    }
}
