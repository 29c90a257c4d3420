//! Does the kernel limit what SCHED_DEADLINE tasks take in sum?
//!
//! They run ahead of every SCHED_FIFO task. The kernel admits them up to `sched_rt_runtime_us` of
//! each period; with -1 it admits all, and together they may take everything. Those that may run on
//! real-time CPUs are named by `rogue-rt-tasks`; `sugov`, the kernel's own, is not counted by the
//! kernel either.

use rtproof_host::{Facts, facts::tasks::Policy, facts::tasks::RtTask};

use super::tasks::{HIDDEN, count, evidence};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "dl-admission",
    title: "SCHED_DEADLINE tasks and their admission",
    why: "SCHED_DEADLINE tasks run ahead of every priority, and without admission they may take \
          all of a CPU's time",
    source: "Documentation/scheduler/sched-deadline.rst; kernel/sched/deadline.c",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("none, or admission"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let draft = draft.read(&facts.rt_tasks, |t| count(t));
    let Some(tasks) = facts.rt_tasks.value() else {
        return draft.blind(&facts.rt_tasks);
    };
    let deadline: Vec<&RtTask> = tasks
        .iter()
        .filter(|task| task.policy == Policy::Deadline && !task.kernel_thread)
        .collect();
    if deadline.is_empty() {
        return match tasks.iter().any(|task| task.kernel_thread) {
            true => draft.good("no SCHED_DEADLINE task"),
            false => draft.unknown(HIDDEN),
        };
    }
    let runtime = &facts.sched.rt_runtime_us;
    let number = text::count(deadline.len(), "SCHED_DEADLINE task");
    let draft = draft.saw(evidence(&deadline)).read(runtime, i64::to_string);
    match runtime.value() {
        None => draft.blind(runtime),
        Some(-1) => draft
            .remedies([Remedy::Manual {
                text: "add up their runtimes by hand (chrt --pid TID), or set \
                       kernel.sched_rt_runtime_us to what they may take together"
                    .into(),
            }])
            .doubtful(format!("{number}, and sched_rt_runtime_us=-1 admits any sum of them")),
        Some(us) => draft.good(format!("{number}, admitted up to {us} µs of each period")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, task};
    use rtproof_host::Reading;

    fn judge(kernel_thread: bool, runtime: Reading<i64>) -> Finding {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        let task = task(500, "dl", 0, &[0], kernel_thread);
        tasks.push(RtTask { policy: Policy::Deadline, ..task });
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        facts.sched.rt_runtime_us = runtime;
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn without_the_limit_nobody_counts() {
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        assert_eq!(CHECK.judge(&good(), &intent()).status, Good);
        assert_eq!(judge(false, Reading::known(path, -1)).status, Doubtful);
        assert_eq!(judge(false, Reading::known(path, 950_000)).status, Good);
        assert_eq!(judge(true, Reading::known(path, -1)).status, Good, "sugov");
        assert_eq!(judge(false, Reading::denied(path, "EACCES")).status, Unknown);
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
