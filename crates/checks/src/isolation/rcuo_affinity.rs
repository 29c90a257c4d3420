//! Do the threads that run the RCU callbacks of the real-time CPUs keep off these CPUs?

use rtproof_host::{Facts, facts::tasks::TaskGroup};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Intent};

pub(super) static RCUO_AFFINITY: Check = Check {
    id: "rcuo-affinity",
    title: "threads that run offloaded RCU callbacks (rcuo)",
    why: "callbacks that were taken off a CPU come back to it with the thread that runs them",
    source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst, rcuop/%d; \
             Documentation/timers/no_hz.rst",
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} only", text::cpus(&intent.housekeeping))),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn is_rcuo(group: &&TaskGroup) -> bool {
    group.kernel_thread && group.name.starts_with("rcuo")
}

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, groups) = match common::tasks(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let threads: Vec<&TaskGroup> = groups.iter().filter(is_rcuo).collect();
    if threads.is_empty() {
        return draft.not_applicable("no RCU callback is offloaded: there is no rcuo thread");
    }
    let (on, blind) = common::on_rt(threads.iter().copied(), intent);
    if on.is_empty() {
        if blind > 0 {
            return draft.unknown(format!("the affinity of {blind} rcuo threads is not readable"));
        }
        let number = text::count(common::number(&threads), "thread");
        return draft.good(format!("{number} off {}", text::cpus(&intent.rt_cpus)));
    }
    let command = format!("pgrep '^rcuo' | xargs -n1 taskset -cp {}", intent.housekeeping);
    let draft =
        draft.saw(common::evidence(&on)).remedies([common::move_away(&on, intent, command)]);
    let summary = format!("{} may run on {}", common::names(&on), text::cpus(&intent.rt_cpus));
    if on.iter().any(|group| common::is_pinned(group, intent)) {
        return draft.bad(summary);
    }
    draft.doubtful(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{add_task, good, intent, without_tasks};
    use rtproof_host::Reading;

    #[test]
    fn on_the_real_time_cpus_or_off() {
        let mut facts = good();
        assert_eq!(RCUO_AFFINITY.judge(&facts, &intent()).status, Good);
        add_task(&mut facts, "rcuog/N", true, Some(&[0, 1, 2, 3]), 2);
        let finding = RCUO_AFFINITY.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "rcuog/N (2) may run on CPUs 2-3");
        add_task(&mut facts, "rcuop/N", true, Some(&[3]), 1);
        assert_eq!(RCUO_AFFINITY.judge(&facts, &intent()).status, Bad);
    }

    #[test]
    fn none_and_unreadable() {
        let mut facts = good();
        let mut groups = facts.placement.value().cloned().unwrap();
        groups.retain(|group| !is_rcuo(&group));
        facts.placement = Reading::known(facts.placement.path.clone(), groups);
        assert_eq!(RCUO_AFFINITY.judge(&facts, &intent()).status, NotApplicable);
        add_task(&mut facts, "rcuop/N", true, None, 2);
        assert_eq!(RCUO_AFFINITY.judge(&facts, &intent()).status, Unknown);
        without_tasks(&mut facts);
        assert_eq!(RCUO_AFFINITY.judge(&facts, &intent()).status, Unknown);
    }
}
