//! Are the real-time tasks where the real-time CPUs are?
//!
//! CPUs are set free with care and the application then runs elsewhere: an affinity that a service
//! manager set, a thread of a library that nobody pinned. Both sides are named.

use rtproof_host::{CpuList, Facts, facts::irq::Irq, facts::tasks::RtTask};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::remedies::move_to;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent};

/// Most tasks shown as evidence.
const SHOWN_MAX: usize = 32;

pub(super) static RT_TASKS_OFF_THEIR_CPUS: Check = Check {
    id: "rt-tasks-off-their-cpus",
    title: "real-time tasks that may run outside the real-time CPUs",
    why: "outside of the CPUs that were set free a real-time task shares its CPU with interrupts, \
          ticks and ordinary tasks, as if nothing were isolated",
    source: "sched(7), sched_setaffinity(2); Documentation/admin-guide/kernel-parameters.txt, \
             isolcpus (tasks have to be moved there by affinity)",
    impact: Impact::Hundreds,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} only", text::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let reading = &facts.rt_tasks;
    let draft = draft.read(reading, |tasks| {
        let user = tasks.iter().filter(|task| !task.kernel_thread).count();
        text::count(user, "real-time task of programs")
    });
    let Some(tasks) = reading.value() else {
        return draft.blind(reading);
    };
    if !tasks.iter().any(|task| task.kernel_thread) {
        return draft
            .unknown("no kernel thread is visible: a PID namespace or hidepid hides tasks");
    }
    let user: Vec<&RtTask> = tasks.iter().filter(|task| !task.kernel_thread).collect();
    let is_off = |task: &&&RtTask| {
        task.cpus.as_ref().is_some_and(|cpus| !cpus.difference(&intent.rt_cpus).is_empty())
    };
    let off: Vec<&RtTask> = user.iter().filter(is_off).copied().collect();
    if off.is_empty() {
        let blind = user.iter().filter(|task| task.cpus.is_none()).count();
        return match (user.len(), blind) {
            (0, _) => draft.good("no real-time task of a program runs now"),
            (_, 0) => draft.good(format!("all on {}", text::cpus(&intent.rt_cpus))),
            _ => draft.unknown(format!("the affinity of {blind} real-time tasks is not readable")),
        };
    }
    let name = |task: &RtTask| {
        let cpus = task.cpus.as_ref().map_or_else(|| "?".into(), text::or_empty);
        format!("{} ({} {}, CPUs {cpus})", task.comm, task.policy.name(), task.priority)
    };
    let names: Vec<String> = off.iter().map(|task| name(task)).collect();
    let show = |task: &&RtTask| Evidence {
        path: format!("/proc/{}/task/{}/status", task.pid, task.tid),
        value: name(task),
    };
    let beside = interrupts(facts, &off, intent);
    let remedies = off.iter().map(|task| move_to(task, &intent.rt_cpus));
    draft.saw(off.iter().take(SHOWN_MAX).map(show)).remedies(remedies).doubtful(format!(
        "outside the real-time {}: {}{beside}",
        text::cpus(&intent.rt_cpus),
        text::first_few(&names, 3)
    ))
}

/// Interrupts that go to where these tasks are, and nowhere near the real-time CPUs.
fn interrupts(facts: &Facts, off: &[&RtTask], intent: &Intent) -> String {
    let places = off.iter().filter_map(|task| task.cpus.as_ref());
    let there =
        places.fold(CpuList::default(), |all, cpus| all.union(cpus)).difference(&intent.rt_cpus);
    let goes = |irq: &&Irq| {
        irq.count > 0 && irq.effective.value().is_some_and(|on| !on.intersection(&there).is_empty())
    };
    match facts.irqs.irqs.value().into_iter().flatten().filter(goes).count() {
        0 => String::new(),
        many => format!("; {} go there", text::count(many, "interrupt")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, task};
    use rtproof_host::Reading;

    fn with(more: Vec<RtTask>) -> (Status, String) {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.extend(more);
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", tasks);
        let finding = RT_TASKS_OFF_THEIR_CPUS.judge(&facts, &intent());
        (finding.status, finding.summary)
    }

    #[test]
    fn where_the_tasks_are() {
        assert_eq!(with(vec![]).0, Good);
        assert_eq!(with(vec![task(500, "plc", 80, &[2], false)]).0, Good);
        let (status, summary) = with(vec![task(500, "plc", 80, &[0, 1], false)]);
        assert_eq!(status, Doubtful);
        assert_eq!(
            summary,
            "outside the real-time CPUs 2-3: plc (fifo 80, CPUs 0-1); 2 interrupts go there"
        );
        let unreadable = RtTask { cpus: None, ..task(500, "plc", 80, &[], false) };
        assert_eq!(with(vec![unreadable]).0, Unknown);
    }

    #[test]
    fn a_namespace_hides_tasks() {
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", vec![]);
        assert_eq!(RT_TASKS_OFF_THEIR_CPUS.judge(&facts, &intent()).status, Unknown);
    }
}
