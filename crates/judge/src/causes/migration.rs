//! The thread waited or ran on another CPU.

use rtproof_trace::{What, context::reconstruct};

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "migration",
    kind: Kind::Scheduling,
    title: "a stopper (stop_machine, moving tasks), or a move to another CPU",
    about: "the thread was on the queue of another CPU than the one it ran on \
        (sched_migrate_task), or the stopper that moves tasks (migration/N) was running",
    source: "kernel/sched/core.c (migration_cpu_stop)",
    checks: &["app-affinity", "app-pinning"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if let Phase::Elsewhere(cpu) = moment.phase {
        let attribution = Attribution::by(format!("CPU {cpu}")).detail(moved(moment));
        let attribution = attribution.detail(ran_there(moment, cpu));
        return Some(attribution.manual("pin the thread to one CPU (sched_setaffinity, taskset)"));
    }
    let is_stopper = moment.phase == Phase::Runnable
        && moment.is_task()
        && names::comm(moment.scene, moment.cpu.task).starts_with("migration/");
    is_stopper.then(|| {
        let name = names::comm(moment.scene, moment.cpu.task);
        // Whoever has something to be stopped, or moved, wakes the stopper.
        let since_ns = moment.cpu.since_ns.unwrap_or(moment.from_ns);
        let by = names::waker(moment.scene, moment.cpu.task, since_ns);
        let culprit = by.map_or_else(|| name.clone(), |by| format!("{name} for {by}"));
        Attribution::by(culprit)
            .detail(names::task_detail(moment.scene, moment.cpu.task))
            .detail(moved(moment))
            .manual(
                "what moves tasks, loads kernel text or calls stop_machine runs here: no balancing \
             over this CPU (isolcpus=domain), no module loading or ftrace changes in operation",
            )
    })
}

/// Who moved the thread.
fn moved(moment: &Moment<'_>) -> Option<String> {
    let scene = moment.scene;
    let inside = |event: &&rtproof_trace::Event| {
        (scene.wake.due_ns..=scene.wake.ran_ns).contains(&event.at_ns)
    };
    scene.rare().iter().copied().filter(inside).find_map(|event| match event.what {
        What::Migrate { pid, from_cpu, to_cpu, .. } if pid == scene.wake.tid => {
            let by = names::comm(scene, event.pid);
            Some(format!("moved from CPU {from_cpu} to CPU {to_cpu} by {by}"))
        }
        _ => None,
    })
}

/// Who ran on the other CPU, as far as its events are in the window.
fn ran_there(moment: &Moment<'_>, cpu: u32) -> Option<String> {
    let scene = moment.scene;
    // All events are gone through for it.
    if moment.ns() < scene.wake.latency_ns() / 20 {
        return None;
    }
    let there = reconstruct(&scene.window.events, cpu, moment.from_ns, moment.to_ns);
    let longest = there.iter().filter(|stretch| stretch.state.task > 0);
    let state = &longest.max_by_key(|stretch| stretch.to_ns - stretch.from_ns)?.state;
    Some(format!("there ran {}", names::task(scene, state.task, state.prio)))
}
