//! Interrupt threads on its CPUs: above it they preempt it, below it they wait for it.
//!
//! Which device the application depends on nobody can read, so both are reported.

use rtproof_host::facts::tasks::RtTask;

use crate::Remedy;
use crate::case::{Case, GROUPS_MAX, NAMED_MAX, may_run_on, rank, task_evidence, task_name};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::first_few;

pub(super) static CHECK: Check = Check {
    id: "app-irq-threads",
    title: "interrupt threads on the application's CPUs",
    why: "an interrupt thread above the application runs in front of it; one below it waits while \
          the application runs, and with it whoever needs the device",
    source: "kernel/irq/manage.c (setup_irq_thread: SCHED_FIFO 50); sched(7)",
    wanted: Wanted::Text("none but those of the application's devices"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.placed(draft)?;
    let (draft, others) = case.others(draft)?;
    let irqs: Vec<&RtTask> = others
        .into_iter()
        .filter(|task| task.kernel_thread && task.comm.starts_with("irq/"))
        .filter(|task| threads.iter().any(|thread| may_run_on(task, &thread.status.cpus)))
        .collect();
    if irqs.is_empty() {
        return Ok(draft.good("no interrupt thread on its CPUs"));
    }
    let is_ahead = |task: &&&RtTask| {
        threads.iter().any(|thread| {
            rank(thread.sched).is_some_and(|own| task.priority >= own)
                && may_run_on(task, &thread.status.cpus)
        })
    };
    let names = |tasks: &[&RtTask]| {
        let names: Vec<String> = tasks.iter().map(|task| task_name(task)).collect();
        first_few(&names, NAMED_MAX)
    };
    let ahead: Vec<&RtTask> = irqs.iter().filter(is_ahead).copied().collect();
    let below: Vec<&RtTask> = irqs.iter().filter(|task| !is_ahead(task)).copied().collect();
    let mut parts = Vec::new();
    if !ahead.is_empty() {
        parts.push(format!("may run ahead of it: {}", names(&ahead)));
    }
    if !below.is_empty() {
        parts.push(format!("wait while it runs: {}", names(&below)));
    }
    let text = "move interrupts of other devices away (/proc/irq/N/smp_affinity_list); set the \
                thread of its own device just above or below it with chrt(1)";
    Ok(draft
        .saw(irqs.iter().take(GROUPS_MAX).map(|task| task_evidence(task)))
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, add_task, blank};
    use crate::testing::task;

    #[test]
    fn ahead_and_below() {
        let mut scene = Scene::good();
        add_task(&mut scene, task(900, "irq/9-x", 50, &[3], true));
        assert_eq!(scene.judge(&CHECK).status, Good);
        add_task(&mut scene, task(901, "irq/8-eth1", 50, &[2], true));
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "wait while it runs: irq/8-eth1 (tid 901, SCHED_FIFO 50)");
        add_task(&mut scene, task(902, "irq/7-can0", 85, &[2], true));
        let finding = scene.judge(&CHECK);
        assert!(finding.summary.starts_with("may run ahead of it: irq/7"), "{}", finding.summary);
        blank(&mut scene.facts.rt_tasks);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
