//! Who runs ahead of it on its CPUs?
//!
//! Tasks of others are distinguished from threads of the kernel, which belong to the machine: those
//! that outrank everybody by design run for microseconds, interrupt threads are a question of
//! their own (`app-irq-threads`).

use rtproof_host::facts::tasks::{Policy, RtTask};

use crate::case::{
    Case, GROUPS_MAX, NAMED_MAX, Placed, may_run_on, policy_of, rank, task_evidence, task_name,
};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::first_few;
use crate::{Impact, Remedy};

/// Threads of the kernel above everybody: the stopper of each CPU, the feeder of the watchdog.
const BY_DESIGN: &[&str] = &["migration/", "stopper/", "watchdog"];

pub(super) static CHECK: Check = Check {
    id: "app-outranked",
    title: "tasks of a higher priority on the application's CPUs",
    why: "the thread waits until every task of a higher priority on its CPU sleeps",
    source: "sched(7); kernel/sched/core.c (classes in the order stop, deadline, rt, fair)",
    impact: Impact::Hundreds,
    wanted: Wanted::Text("none"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.placed(draft)?;
    let (draft, others) = case.others(draft)?;
    let mut above: Vec<&RtTask> = others.into_iter().filter(|t| is_above(t, &threads)).collect();
    above.sort_by_key(|task| std::cmp::Reverse((task.policy == Policy::Deadline, task.priority)));
    let names = |tasks: &[&RtTask]| {
        let names: Vec<String> = tasks.iter().map(|task| task_name(task)).collect();
        first_few(&names, NAMED_MAX)
    };
    let draft = draft.saw(above.iter().take(GROUPS_MAX).map(|task| task_evidence(task)));
    let (kernel, user): (Vec<&RtTask>, Vec<&RtTask>) =
        above.iter().partition(|task| task.kernel_thread);
    if !user.is_empty() {
        let remedies = user.iter().take(NAMED_MAX).map(|task| match task.unit.as_deref() {
            Some(unit) => Remedy::Manual {
                text: format!("keep {unit} off its CPUs, or lower it: {}", task_name(task)),
            },
            None => Remedy::Manual {
                text: format!("keep {} off its CPUs, or lower it with chrt(1)", task_name(task)),
            },
        });
        return Ok(draft.remedies(remedies).bad(format!("run ahead of it: {}", names(&user))));
    }
    if !kernel.is_empty() {
        let text = "decide which is more urgent, and set the priorities with chrt(1)";
        return Ok(draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("threads of the kernel run ahead of it: {}", names(&kernel))));
    }
    let highest = threads.iter().max_by_key(|thread| rank(thread.sched).unwrap_or(100));
    let own = highest.map_or_else(String::new, |thread| policy_of(thread.sched));
    Ok(draft.good(format!("nothing runs ahead of its {own} on its CPUs")))
}

/// Whether a task outranks one of the threads on a CPU that both may use.
fn is_above(task: &RtTask, threads: &[Placed<'_>]) -> bool {
    let is_design = task.kernel_thread
        && (task.comm.starts_with("irq/")
            || BY_DESIGN.iter().any(|name| task.comm.starts_with(name)));
    let outranks = |thread: &Placed<'_>| match (rank(thread.sched), task.policy) {
        // Among SCHED_DEADLINE the earliest deadline decides, not a rank.
        (None, _) => false,
        (Some(_), Policy::Deadline) => true,
        (Some(own), _) => task.priority > own,
    };
    !is_design && threads.iter().any(|t| outranks(t) && may_run_on(task, &t.status.cpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, add_task, sched_of};
    use crate::testing::task;
    use rtproof_host::Reading;

    #[test]
    fn others_and_threads_of_the_kernel() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        add_task(&mut scene, task(900, "irq/9-x", 90, &[2], true));
        add_task(&mut scene, task(901, "elsewhere", 90, &[0], false));
        add_task(&mut scene, task(902, "equal", 80, &[2], false));
        assert_eq!(scene.judge(&CHECK).status, Good);
        add_task(&mut scene, task(903, "rcuc/2", 90, &[2], true));
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        add_task(&mut scene, task(904, "multipathd", 99, &[0, 1, 2, 3], false));
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "run ahead of it: multipathd (tid 904, SCHED_FIFO 99)");
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&CHECK).status, NotApplicable);
    }

    #[test]
    fn deadline_outranks_and_hidden_tasks_are_unknown() {
        let mut scene = Scene::good();
        add_task(&mut scene, RtTask { policy: Policy::Deadline, ..task(9, "d", 0, &[2], false) });
        assert_eq!(scene.judge(&CHECK).status, Bad);
        scene.facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
