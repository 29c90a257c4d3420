//! Do real-time tasks take turns on the real-time CPUs?
//!
//! The time slice of SCHED_RR matters where two tasks of one priority want the same CPU and one of
//! them is SCHED_RR: it then waits as long as the slice of the other, 100 ms by default.

use rtproof_host::{Facts, Reading, facts::tasks::Policy, facts::tasks::RtTask, knobs};

use super::tasks::{evidence, on_rt_cpus, rank};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::setting;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "sched-rr-timeslice",
    title: "time slice of SCHED_RR, where tasks take turns",
    why: "a SCHED_RR task waits for the whole slice of another of its priority on the same CPU",
    source: "sched(7); kernel/sched/rt.c (sched_rr_timeslice_ms); include/linux/sched/rt.h \
             (RR_TIMESLICE: 100 ms)",
    impact: Impact::Milliseconds,
    knobs: &[&knobs::sched::RR_TIMESLICE],
    wanted: Wanted::Text("no two tasks that take turns"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let reading = setting::text(facts, &knobs::sched::RR_TIMESLICE);
    let draft = draft.read(&reading, |ms| format!("{ms} ms"));
    let Some(found) = reading.value() else {
        return draft.blind(&reading);
    };
    let Ok(slice_ms) = found.parse::<u64>() else {
        return draft.blind(&Reading::<u64>::malformed(&reading.path, found, "milliseconds"));
    };
    let turns: Vec<&RtTask> =
        tasks.iter().filter(|task| takes_turns(task, &tasks, intent)).copied().collect();
    let Some(first) = turns.first() else {
        return draft.good(format!(
            "{slice_ms} ms, and no SCHED_RR task shares its priority on {}",
            text::cpus(&intent.rt_cpus)
        ));
    };
    draft
        .saw(evidence(&turns))
        .remedies([Remedy::Manual {
            text: "give each task a priority of its own, or its own CPU; or make the slice \
                   shorter: kernel.sched_rr_timeslice_ms"
                .into(),
        }])
        .doubtful(format!(
            "{} ({}) and others of its priority take turns of {slice_ms} ms",
            first.comm,
            rank(first)
        ))
}

/// Whether it is SCHED_RR and another task of its priority may run on a real-time CPU of its.
fn takes_turns(task: &RtTask, all: &[&RtTask], intent: &Intent) -> bool {
    let shares = |other: &&RtTask| {
        let common = match (&task.cpus, &other.cpus) {
            (Some(mine), Some(theirs)) => mine.intersection(theirs),
            (Some(cpus), None) | (None, Some(cpus)) => cpus.clone(),
            (None, None) => intent.rt_cpus.clone(),
        };
        other.tid != task.tid
            && other.policy != Policy::Deadline
            && other.priority == task.priority
            && !common.intersection(&intent.rt_cpus).is_empty()
    };
    task.policy == Policy::Rr && all.iter().any(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_setting, task};

    fn rr(tid: u32, priority: u32, on: &[u32]) -> RtTask {
        RtTask { policy: Policy::Rr, ..task(tid, "rr", priority, on, false) }
    }

    fn judge(more: Vec<RtTask>) -> Finding {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.extend(more);
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn turns_need_two_of_a_priority_on_one_cpu() {
        assert_eq!(judge(vec![]).status, Good);
        assert_eq!(judge(vec![rr(500, 30, &[2, 3])]).status, Good);
        assert_eq!(judge(vec![rr(500, 30, &[2]), rr(501, 30, &[3])]).status, Good);
        assert_eq!(judge(vec![rr(500, 30, &[2]), rr(501, 31, &[2])]).status, Good);
        let finding = judge(vec![rr(500, 30, &[2]), rr(501, 30, &[2, 3])]);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.ends_with("take turns of 100 ms"), "{}", finding.summary);
        let fifo = task(501, "fifo", 30, &[2], false);
        assert_eq!(judge(vec![rr(500, 30, &[2]), fifo]).status, Doubtful);
    }

    #[test]
    fn without_a_value_or_the_tasks_it_is_unknown() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::sched::RR_TIMESLICE, Reading::denied("/x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
