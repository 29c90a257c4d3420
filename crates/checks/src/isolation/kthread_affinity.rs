//! Which kernel threads that could be elsewhere may run on the real-time CPUs?

use rtproof_host::{CpuList, Facts, facts::tasks::TaskGroup};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::profile::Choice;
use crate::text;
use crate::{Evidence, Finding, Intent, Remedy};

pub(super) static KTHREAD_AFFINITY: Check = Check {
    id: "kthread-affinity",
    title: "kernel threads that may run on the real-time CPUs and need not",
    why: "a kernel thread that wakes up there takes time from whatever is not of a higher priority",
    source: "kernel/kthread.c (housekeeping_cpumask of kthreads); \
             Documentation/admin-guide/kernel-per-CPU-kthreads.rst; tuna, isolate",
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} only", text::cpus(&intent.housekeeping))),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

/// Threads that have a check of their own: RCU's, workers, interrupts.
const OTHERS: [&str; 3] = ["rcuo", "kworker/", "irq/"];

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, groups) = match common::tasks(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let is_free = |group: &&TaskGroup| {
        let has_other = OTHERS.iter().any(|name| group.name.starts_with(name));
        group.kernel_thread && !group.bound && !has_other
    };
    let (on, blind) = common::on_rt(groups.iter().filter(is_free), intent);
    let (pinned, free): (Vec<&TaskGroup>, Vec<&TaskGroup>) =
        on.iter().partition(|group| common::is_pinned(group, intent));
    let rt = text::cpus(&intent.rt_cpus);
    if !pinned.is_empty() {
        let tids: Vec<String> = pinned
            .iter()
            .flat_map(|group| match group.tasks.as_slice() {
                [] => vec![group.tid.to_string()],
                tasks => tasks.iter().map(|task| task.tid.to_string()).collect(),
            })
            .collect();
        let command = match tids.as_slice() {
            [tid] => format!("taskset -cp {} {tid}", intent.housekeeping),
            tids => format!(
                "for t in {}; do taskset -cp {} $t; done",
                tids.join(" "),
                intent.housekeeping
            ),
        };
        return draft
            .saw(common::evidence(&pinned))
            .remedies([common::move_away(&pinned, intent, command)])
            .doubtful(format!("pinned to real-time CPUs: {}", common::names(&pinned)));
    }
    if free.is_empty() {
        return match blind {
            0 => draft.good(format!("all that can be moved are off {rt}")),
            _ => draft.unknown(format!("the affinity of {blind} kernel threads is not readable")),
        };
    }
    let mut draft = draft.saw(common::evidence(&free));
    // Without load balancing nothing puts them there but a wake-up where they ran last.
    let is_isolated = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
    let isolated = facts.cpus.isolated.value().is_some_and(is_isolated);
    if isolated {
        draft = draft.read(&facts.cpus.isolated, text::or_empty);
    }
    let command =
        format!("for t in $(pgrep -P 2); do taskset -cp {} $t; done", intent.housekeeping);
    let away = common::move_away(&free, intent, command);
    // Tickless CPUs are freed of them at boot: where the profile wants that, as `nohz-full` does.
    let is_wish = intent.profile.choices.nohz_full == Choice::On;
    let nohz = (is_wish && !isolated)
        .then(|| Remedy::Boot { parameter: format!("nohz_full={}", intent.rt_cpus) });
    let so = if isolated { "may run on the isolated" } else { "may run on" };
    let summary = format!(
        "{} {so} {rt}: {}",
        text::count(common::number(&free), "kernel thread"),
        common::names(&free)
    );
    let line = facts.kernel.cmdline.value();
    if let Some(list) = line.and_then(|line| line.last("kthread_cpus").flatten()) {
        let written = format!("kthread_cpus={list}");
        let cmdline = Evidence::of(&facts.kernel.cmdline, |_| written.clone());
        return draft.saw([cmdline]).remedies([away]).bad(format!(
            "{written} has no effect, only some distributions' kernels know it: {summary}"
        ));
    }
    draft.remedies([away]).remedies(nohz).doubtful(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{add_task, good, intent, set_cmdline, without_tasks};
    use crate::{Profile, profile::Kind};
    use rtproof_host::Reading;

    #[test]
    fn free_threads_count_and_bound_ones_do_not() {
        let mut facts = good();
        assert_eq!(KTHREAD_AFFINITY.judge(&facts, &intent()).status, Good);
        add_task(&mut facts, "kswapdN", true, Some(&[0, 1, 2, 3]), 2);
        let finding = KTHREAD_AFFINITY.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "2 kernel threads may run on the isolated CPUs 2-3: kswapdN (2)"
        );
        set_cmdline(&mut facts, "quiet kthread_cpus=0-1");
        let finding = KTHREAD_AFFINITY.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.starts_with("kthread_cpus=0-1 has no effect"));
        add_task(&mut facts, "napi/ethN-N", true, Some(&[2]), 1);
        let finding = KTHREAD_AFFINITY.judge(&facts, &intent());
        assert_eq!(finding.summary, "pinned to real-time CPUs: napi/ethN-N");
    }

    #[test]
    fn a_tickless_boot_is_offered_where_the_profile_wants_it() {
        let mut facts = good();
        add_task(&mut facts, "kswapdN", true, Some(&[0, 1, 2, 3]), 2);
        facts.cpus.isolated = Reading::known(facts.cpus.isolated.path.clone(), CpuList::default());
        let boot = Remedy::Boot { parameter: "nohz_full=2-3".into() };
        for (kind, is_offered) in [(Kind::Audio, false), (Kind::BusyPoll, true)] {
            let intent = Intent { profile: Profile::of(kind), ..intent() };
            let finding = KTHREAD_AFFINITY.judge(&facts, &intent);
            assert_eq!(finding.remedies.contains(&boot), is_offered, "{finding:?}");
        }
    }

    #[test]
    fn unreadable() {
        let mut facts = good();
        add_task(&mut facts, "kswapdN", true, None, 2);
        assert_eq!(KTHREAD_AFFINITY.judge(&facts, &intent()).status, Unknown);
        without_tasks(&mut facts);
        assert_eq!(KTHREAD_AFFINITY.judge(&facts, &intent()).status, Unknown);
    }
}
