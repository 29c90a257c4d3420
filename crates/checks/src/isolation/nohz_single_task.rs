//! Is there one task for each tickless CPU?
//!
//! The tick stops while one task is runnable. Who is runnable changes all the time; who is put on
//! one CPU alone does not, and two of them there cannot both have it without a tick.

use std::collections::BTreeMap;

use rtproof_host::{Facts, facts::tasks::TaskGroup};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::machine::built_with;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static NOHZ_SINGLE_TASK: Check = Check {
    id: "nohz-single-task",
    title: "one task for each tickless CPU",
    why: "the tick comes back as long as two tasks are runnable on a CPU",
    source: "Documentation/timers/no_hz.rst; kernel/sched/core.c (sched_can_stop_tick)",
    impact: Impact::Microseconds,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("at most one task pinned to each"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let reading = &facts.cpus.nohz_full;
    let draft = draft.read(reading, text::or_empty);
    let Some(tickless) = reading.value() else {
        if reading.is_absent() && built_with(facts, "NO_HZ_FULL") == Some(false) {
            return draft.without(facts, "NO_HZ_FULL");
        }
        return draft.blind(reading);
    };
    let tickless = tickless.intersection(&intent.rt_cpus);
    if tickless.is_empty() {
        return draft.not_applicable("no real-time CPU is tickless");
    }
    let (draft, groups) = match common::tasks(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let mut on: BTreeMap<u32, Vec<&TaskGroup>> = BTreeMap::new();
    let mut blind = 0;
    for group in groups.iter().filter(|group| !group.kernel_thread) {
        match group.cpus.as_ref().map(rtproof_host::CpuList::as_slice) {
            Some(&[cpu]) if tickless.contains(cpu) => on.entry(cpu).or_default().push(group),
            Some(_) => {}
            None => blind += group.count,
        }
    }
    let crowded: Vec<(&u32, &Vec<&TaskGroup>)> =
        on.iter().filter(|(_, groups)| common::number(groups) > 1).collect();
    if let Some((cpu, groups)) = crowded.first() {
        let more = match crowded.len() {
            1 => String::new(),
            many => format!("; {} more CPUs alike", many - 1),
        };
        let text = "give each task that runs without sleeping a CPU of its own".into();
        return draft
            .saw(crowded.iter().flat_map(|(_, groups)| common::evidence(groups)))
            .remedies([Remedy::Manual { text }])
            .doubtful(format!(
                "{} pinned to the tickless CPU {cpu}: {}{more}",
                text::count(common::number(groups), "task"),
                common::names(groups)
            ));
    }
    if blind > 0 {
        return draft.unknown(format!("the affinity of {blind} tasks is not readable"));
    }
    draft.good(format!("no tickless CPU has two tasks pinned to it ({})", text::cpus(&tickless)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{add_task, cpus, good, intent, without_tasks};
    use rtproof_host::Reading;

    #[test]
    fn two_on_one_cpu_are_doubtful() {
        let mut facts = good();
        add_task(&mut facts, "poll", false, Some(&[2]), 1);
        assert_eq!(NOHZ_SINGLE_TASK.judge(&facts, &intent()).status, Good);
        add_task(&mut facts, "log", false, Some(&[2]), 1);
        let finding = NOHZ_SINGLE_TASK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "2 tasks pinned to the tickless CPU 2: poll, log");
    }

    #[test]
    fn without_tickless_cpus_and_without_tasks() {
        let mut facts = good();
        without_tasks(&mut facts);
        assert_eq!(NOHZ_SINGLE_TASK.judge(&facts, &intent()).status, Unknown);
        facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(&[]));
        assert_eq!(NOHZ_SINGLE_TASK.judge(&facts, &intent()).status, NotApplicable);
    }
}
