//! The thread waited or ran on another CPU.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "migration",
    kind: Kind::Scheduling,
    title: "moved from one CPU to another",
    about: "the thread was on the queue of another CPU than the one it ran on \
        (sched_migrate_task), or the stopper that moves tasks (migration/N) was running",
    source: "kernel/sched/core.c (migration_cpu_stop)",
    checks: &["app-affinity", "app-pinning"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if let Phase::Elsewhere(cpu) = moment.phase {
        let attribution = Attribution::by(format!("CPU {cpu}"));
        return Some(attribution.manual("pin the thread to one CPU (sched_setaffinity, taskset)"));
    }
    let is_stopper = moment.phase == Phase::Runnable
        && moment.is_task()
        && names::comm(moment.scene, moment.cpu.task).starts_with("migration/");
    is_stopper.then(|| {
        let name = names::comm(moment.scene, moment.cpu.task);
        Attribution::by(name).detail(names::task_detail(moment.scene, moment.cpu.task)).manual(
            "what moves tasks, loads kernel text or calls stop_machine runs here: no balancing \
             over this CPU (isolcpus=domain), no module loading or ftrace changes in operation",
        )
    })
}
