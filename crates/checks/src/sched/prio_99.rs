//! Does a task of user space run at the highest priority there is?
//!
//! At 99 nothing of the kernel that is a thread gets past it: interrupts, timers, RCU of that CPU
//! wait as long as it runs. The stopper (`migration/N`) does, it is above all priorities.
//! On every CPU of the machine, because the real-time CPUs wait for the others now and then.

use rtproof_host::{Facts, facts::tasks::Policy, facts::tasks::RtTask};

use super::tasks::{HIDDEN, count, evidence, rank};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

/// The highest priority of SCHED_FIFO and SCHED_RR.
const HIGHEST: u32 = 99;

pub(super) static CHECK: Check = Check {
    id: "prio-99",
    title: "user tasks at priority 99",
    why: "above every thread of the kernel, a task at 99 holds up interrupts, timers and RCU of \
          its CPU, and whoever waits for them on another",
    source: "kernel/sched/syscalls.c (sched_set_fifo: threads of the kernel at 50), \
             kernel/sched/stop_task.c; Wu, \"Real-time programming with Linux, part 2\" \
             (multipathd at SCHED_RR 99)",
    impact: Impact::Hundreds,
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.read(&facts.rt_tasks, |tasks| count(tasks));
    let Some(tasks) = facts.rt_tasks.value() else {
        return draft.blind(&facts.rt_tasks);
    };
    let is_highest = |task: &&RtTask| {
        let has_priority = matches!(task.policy, Policy::Fifo | Policy::Rr);
        !task.kernel_thread && has_priority && task.priority >= HIGHEST
    };
    let found: Vec<&RtTask> = tasks.iter().filter(is_highest).collect();
    let draft = draft.saw(evidence(&found)).remedies([Remedy::Manual {
        text: "98 is above everything, too, as long as nobody else takes 99: chrt --fifo --pid \
               98 TID, or in the unit CPUSchedulingPriority=98"
            .into(),
    }]);
    if let Some(task) = found.first() {
        let more = found.len() - 1;
        let more = if more == 0 { String::new() } else { format!("; {more} more") };
        let unit = task.unit.as_ref().map_or_else(String::new, |unit| format!(", {unit}"));
        return draft.doubtful(format!(
            "{} (pid {}{unit}) runs {}{more}",
            task.comm,
            task.pid,
            rank(task)
        ));
    }
    if !tasks.iter().any(|task| task.kernel_thread) {
        return draft.unknown(HIDDEN);
    }
    if intent.priority >= HIGHEST {
        return draft.doubtful("your FIFO 99 is above every thread of the kernel");
    }
    let user = tasks.iter().filter(|task| !task.kernel_thread).count();
    draft.good(match user {
        0 => "no user task is real-time".into(),
        _ => format!("none at 99 of {}", text::count(user, "real-time user task")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, task};
    use rtproof_host::Reading;

    fn judge(tasks: Vec<RtTask>, priority: u32) -> Finding {
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", tasks);
        CHECK.judge(&facts, &Intent { priority, ..intent() })
    }

    #[test]
    fn only_tasks_of_user_space_count_and_on_any_cpu() {
        let kernel = || task(12, "migration/0", 99, &[0], true);
        assert_eq!(judge(vec![kernel(), task(7, "a", 98, &[0], false)], 80).status, Good);
        let finding = judge(vec![kernel(), task(7, "a", 99, &[0], false)], 80);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "a (pid 7) runs SCHED_FIFO 99");
        assert_eq!(judge(vec![kernel()], 99).status, Doubtful);
        let deadline = RtTask { policy: Policy::Deadline, ..task(7, "a", 0, &[0], false) };
        assert_eq!(judge(vec![kernel(), deadline], 80).status, Good);
    }

    #[test]
    fn tasks_that_cannot_be_seen_are_unknown() {
        assert_eq!(judge(vec![], 80).status, Unknown);
        let mut facts = good();
        facts.rt_tasks = Reading::denied("/proc/*/task/*/stat", "hidepid");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
