//! Who stands in the same queue?
//!
//! SCHED_FIFO threads of one priority on one CPU run in the order in which they became ready, each
//! until it sleeps; SCHED_RR ones change after a slice (sched_rr_timeslice_ms). As many CPUs as
//! threads are enough: the scheduler spreads them.

use rtproof_host::CpuList;
use rtproof_host::facts::tasks::{Policy, RtTask};

use crate::case::{
    Case, GROUPS_MAX, NAMED_MAX, Placed, may_run_on, name, rank, task_evidence, task_name,
};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::first_few;
use crate::{Impact, Remedy};

pub(super) static CHECK: Check = Check {
    id: "app-equal-priority",
    title: "tasks of the same priority on the application's CPUs",
    why: "under SCHED_FIFO a thread waits until those before it in the queue of its priority \
          sleep, under SCHED_RR at least until their slice of 100 ms is used",
    source: "sched(7); kernel/sched/rt.c (task_tick_rt, RR_TIMESLICE)",
    impact: Impact::Hundreds,
    wanted: Wanted::Text("none"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.placed(draft)?;
    let (draft, others) = case.others(draft)?;
    let is_rival = |task: &&&RtTask| {
        task.policy != Policy::Deadline
            && threads.iter().any(|thread| {
                rank(thread.sched) == Some(task.priority) && may_run_on(task, &thread.status.cpus)
            })
    };
    let rivals: Vec<&RtTask> = others.iter().filter(is_rival).copied().collect();
    let draft = draft.saw(rivals.iter().take(GROUPS_MAX).map(|task| task_evidence(task)));
    let is_rr = threads.iter().any(|thread| thread.sched.policy == Policy::Rr);
    let slice = &case.app.rr_timeslice_ms;
    let turns = match slice.value() {
        _ if !is_rr => String::new(),
        Some(ms) => format!("; SCHED_RR takes turns of {ms} ms"),
        None => "; SCHED_RR takes turns, of 100 ms by default".into(),
    };
    let with_slice = |draft: Draft| match is_rr {
        true => draft.read(slice, |ms| format!("{ms} ms")),
        false => draft,
    };
    let text = "give each thread a priority of its own, by urgency, with chrt(1)";
    let remedy = || [Remedy::Manual { text: text.into() }];
    let user: Vec<String> =
        rivals.iter().filter(|task| !task.kernel_thread).map(|task| task_name(task)).collect();
    if !user.is_empty() {
        let names = first_few(&user, NAMED_MAX);
        let draft = with_slice(draft).remedies(remedy());
        return Ok(draft.bad(format!("in the same queue: {names}{turns}")));
    }
    if !rivals.is_empty() {
        let names: Vec<String> = rivals.iter().map(|task| task_name(task)).collect();
        let names = first_few(&names, NAMED_MAX);
        return Ok(with_slice(draft)
            .remedies(remedy())
            .doubtful(format!("threads of the kernel in the same queue: {names}{turns}")));
    }
    let own: Vec<String> = threads
        .iter()
        .filter(|thread| is_crowded(thread, &threads))
        .map(|thread| name(thread.thread, thread.sched))
        .collect();
    if !own.is_empty() {
        let names = first_few(&own, NAMED_MAX);
        return Ok(with_slice(draft)
            .remedies(remedy())
            .doubtful(format!("its own threads share a queue: {names}{turns}")));
    }
    Ok(draft.good("no other task of the same priority on its CPUs"))
}

/// Whether more threads of its priority than CPUs are where a thread may run.
fn is_crowded(thread: &Placed<'_>, all: &[Placed<'_>]) -> bool {
    let Some(own) = rank(thread.sched) else {
        return false;
    };
    let mut cpus = CpuList::default();
    let mut number = 0;
    for other in all.iter().filter(|other| rank(other.sched) == Some(own)) {
        if !other.status.cpus.intersection(&thread.status.cpus).is_empty() {
            cpus = cpus.union(&other.status.cpus);
            number += 1;
        }
    }
    number > cpus.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, add_task, blank, sched_of, set_cpus};
    use crate::testing::task;

    #[test]
    fn others_kernel_and_own() {
        let mut scene = Scene::good();
        add_task(&mut scene, task(900, "x", 79, &[2], false));
        add_task(&mut scene, task(901, "y", 80, &[3], false));
        assert_eq!(scene.judge(&CHECK).status, Good);
        add_task(&mut scene, task(902, "irq/9-x", 80, &[2], true));
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        sched_of(&mut scene, 101).policy = Policy::Rr;
        add_task(&mut scene, task(903, "z", 80, &[2], false));
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.ends_with("takes turns of 100 ms"), "{}", finding.summary);
        blank(&mut scene.facts.rt_tasks);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }

    #[test]
    fn own_threads_on_too_few_cpus() {
        let mut scene = Scene::good();
        let sched = sched_of(&mut scene, 100);
        (sched.policy, sched.priority) = (Policy::Fifo, 80);
        assert_eq!(scene.judge(&CHECK).status, Good, "on different CPUs");
        set_cpus(&mut scene, 100, &[2]);
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("its own threads"), "{}", finding.summary);
        set_cpus(&mut scene, 100, &[2, 3]);
        assert_eq!(scene.judge(&CHECK).status, Good, "two CPUs for two threads");
    }
}
