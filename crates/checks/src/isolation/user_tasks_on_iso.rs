//! Which ordinary tasks may run on the real-time CPUs?

use rtproof_host::{Facts, facts::tasks::Policy, facts::tasks::TaskGroup};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Intent, Remedy};

pub(super) static USER_TASKS_ON_ISO: Check = Check {
    id: "user-tasks-on-iso",
    title: "ordinary tasks that may run on the real-time CPUs",
    why: "each switch to another task costs the caches of the real-time one, and the other's \
          system calls, page faults and timers run there",
    source: "sched_setaffinity(2); Documentation/admin-guide/kernel-per-CPU-kthreads.rst; tuned, \
             scheduler plugin; Flatscher, \"Real-time Optimizations\"",
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("none but the application's own"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

/// Not known to be real-time: those are `rogue-rt-tasks` and the application.
fn is_ordinary(group: &&TaskGroup) -> bool {
    !group.kernel_thread && !group.policy.is_some_and(Policy::is_real_time)
}

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, groups) = match common::tasks(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let (on, blind) = common::on_rt(groups.iter().filter(is_ordinary), intent);
    let rt = text::cpus(&intent.rt_cpus);
    if on.is_empty() {
        return match blind {
            0 => draft.good(format!("no ordinary task may run on {rt}")),
            _ => draft.unknown(format!("the affinity of {blind} tasks is not readable")),
        };
    }
    let (pinned, wide): (Vec<&TaskGroup>, Vec<&TaskGroup>) =
        on.iter().partition(|group| common::is_pinned(group, intent));
    let draft = draft.saw(common::evidence(&pinned)).saw(common::evidence(&wide));
    let draft = draft.remedies(remedies(facts, &on, intent));
    let mut parts = Vec::new();
    if !pinned.is_empty() {
        let names = common::names(&pinned);
        let number = text::count(common::number(&pinned), "task");
        parts.push(format!("{number} on real-time CPUs only: {names}"));
    }
    if !wide.is_empty() {
        let number = text::count(common::number(&wide), "task");
        parts.push(format!("{number} on {rt} among others: {}", common::names(&wide)));
    }
    draft.doubtful(parts.join("; "))
}

fn remedies(facts: &Facts, on: &[&TaskGroup], intent: &Intent) -> Vec<Remedy> {
    let hk = &intent.housekeeping;
    let mut remedies = Vec::new();
    // The property is a file of cgroup v2.
    let has_groups = common::has_v2(facts);
    for unit in on.iter().filter_map(|group| group.unit.as_deref()) {
        let remedy = common::allow(unit, hk);
        let is_unit = has_groups && (unit.ends_with(".service") || unit.ends_with(".slice"));
        if is_unit && !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    let loose: Vec<&&TaskGroup> =
        on.iter().filter(|group| group.unit.is_none() || !has_groups).collect();
    match loose.as_slice() {
        [] => {}
        [TaskGroup { tid, .. }] if common::number(on) == 1 => {
            remedies.push(Remedy::Manual { text: format!("taskset -acp {hk} {tid}") });
        }
        _ => remedies.push(Remedy::Manual {
            text: format!(
                "move each process with taskset -acp {hk} PID; what starts later inherits the \
                 CPUs of process 1 (systemd-cpuaffinity)"
            ),
        }),
    }
    if remedies.is_empty() {
        let text = format!("start it with taskset -c {hk}");
        remedies.push(Remedy::Manual { text });
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{add_task, good, intent, without_tasks};

    #[test]
    fn pinned_and_wide_are_told_apart() {
        let mut facts = good();
        assert_eq!(USER_TASKS_ON_ISO.judge(&facts, &intent()).status, Good);
        add_task(&mut facts, "cron", false, Some(&[0, 1, 2, 3]), 1);
        add_task(&mut facts, "vhost", false, Some(&[3]), 2);
        let finding = USER_TASKS_ON_ISO.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "2 tasks on real-time CPUs only: vhost (2); 1 task on CPUs 2-3 among others: cron"
        );
    }

    #[test]
    fn unreadable() {
        let mut facts = good();
        add_task(&mut facts, "x", false, None, 7);
        assert_eq!(USER_TASKS_ON_ISO.judge(&facts, &intent()).status, Unknown);
        without_tasks(&mut facts);
        assert_eq!(USER_TASKS_ON_ISO.judge(&facts, &intent()).status, Unknown);
    }
}
