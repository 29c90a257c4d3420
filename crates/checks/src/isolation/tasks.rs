//! Kernel threads, workqueues and ordinary tasks that may run on the real-time CPUs.

use rtproof_host::{
    CpuList, Facts, Knob, Reading,
    facts::{
        irq::Irq,
        settings::SettingValue,
        tasks::{Policy, RtTask, TaskGroup},
    },
    knobs::cpu as knobs,
};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::FindingBuilder;
use crate::profile::Choice;
use crate::remedies::move_to;
use crate::value::{grouped, mask};
use crate::{Evidence, Finding, Impact, Intent, Remedy, machine, value};

pub(super) static KTHREAD_AFFINITY: Check = Check {
    id: "kthread-affinity",
    title: "kernel threads that may run on the real-time CPUs and need not",
    why: "a kernel thread that wakes up there takes time from whatever is not of a higher priority",
    source: "kernel/kthread.c (housekeeping_cpumask of kthreads); \
             Documentation/admin-guide/kernel-per-CPU-kthreads.rst; tuna, isolate",
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} only", machine::cpus(&intent.housekeeping))),
    judge: Judge::Ask(judge_kthread_affinity),
    ..Check::NEW
};

/// Threads that have a check of their own: RCU's, workers, interrupts.
const OTHERS: [&str; 3] = ["rcuo", "kworker/", "irq/"];

fn judge_kthread_affinity(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, groups) = match super::tasks(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let is_free = |group: &&TaskGroup| {
        let has_other = OTHERS.iter().any(|name| group.name.starts_with(name));
        group.kernel_thread && !group.bound && !has_other
    };
    let (on, unknown) = super::on_rt(groups.iter().filter(is_free), intent);
    let (pinned, free): (Vec<&TaskGroup>, Vec<&TaskGroup>) =
        on.iter().partition(|group| super::is_pinned(group, intent));
    let rt = machine::cpus(&intent.rt_cpus);
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
            .evidence(super::evidence(&pinned))
            .remedies([super::move_away(&pinned, intent, command)])
            .doubtful(format!("pinned to real-time CPUs: {}", super::group_names(&pinned)));
    }
    if free.is_empty() {
        return match unknown {
            0 => draft.good(format!("all that can be moved are off {rt}")),
            _ => draft.unknown(format!("the affinity of {unknown} kernel threads is not readable")),
        };
    }
    let mut draft = draft.evidence(super::evidence(&free));
    // Without load balancing nothing puts them there but a wake-up where they ran last.
    let is_isolated = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
    let isolated = facts.cpus.isolated.value().is_some_and(is_isolated);
    if isolated {
        draft = draft.read(&facts.cpus.isolated, machine::or_empty);
    }
    let command =
        format!("for t in $(pgrep -P 2); do taskset -cp {} $t; done", intent.housekeeping);
    let away = super::move_away(&free, intent, command);
    // Tickless CPUs are freed of them at boot: where the profile wants that, as `nohz-full` does.
    let is_requested = intent.profile.choices.nohz_full == Choice::On;
    let nohz = (is_requested && !isolated)
        .then(|| Remedy::Boot { parameter: format!("nohz_full={}", intent.rt_cpus) });
    let so = if isolated { "may run on the isolated" } else { "may run on" };
    let summary = format!(
        "{} {so} {rt}: {}",
        machine::count(super::task_count(&free), "kernel thread"),
        super::group_names(&free)
    );
    let line = facts.kernel.cmdline.value();
    if let Some(list) = line.and_then(|line| line.last("kthread_cpus").flatten()) {
        let written = format!("kthread_cpus={list}");
        let cmdline = Evidence::of(&facts.kernel.cmdline, |_| written.clone());
        return draft.evidence([cmdline]).remedies([away]).bad(format!(
            "{written} has no effect, only some distributions' kernels know it: {summary}"
        ));
    }
    draft.remedies([away]).remedies(nohz).doubtful(summary)
}

// Are the real-time tasks where the real-time CPUs are?
//
// CPUs are set free with care and the application then runs elsewhere: an affinity that a service
// manager set, an unpinned thread of a library. Both sides are named.

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
    wanted: Wanted::Of(|intent| format!("{} only", machine::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge_rt_tasks_off_their_cpus),
    ..Check::NEW
};

fn judge_rt_tasks_off_their_cpus(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let reading = &facts.rt_tasks;
    let draft = draft.read(reading, |tasks| {
        let user = tasks.iter().filter(|task| !task.kernel_thread).count();
        machine::count(user, "real-time task of programs")
    });
    let Some(tasks) = reading.value() else {
        return draft.unreadable(reading);
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
        let unknown = user.iter().filter(|task| task.cpus.is_none()).count();
        return match (user.len(), unknown) {
            (0, _) => draft.good("no real-time task of a program runs now"),
            (_, 0) => draft.good(format!("all on {}", machine::cpus(&intent.rt_cpus))),
            _ => {
                draft.unknown(format!("the affinity of {unknown} real-time tasks is not readable"))
            }
        };
    }
    let name = |task: &RtTask| {
        let cpus = task.cpus.as_ref().map_or_else(|| "?".into(), machine::or_empty);
        format!("{} ({} {}, CPUs {cpus})", task.comm, task.policy.name(), task.priority)
    };
    let names: Vec<String> = off.iter().map(|task| name(task)).collect();
    let show = |task: &&RtTask| Evidence {
        path: format!("/proc/{}/task/{}/status", task.pid, task.tid),
        value: name(task),
    };
    let interrupts_there = interrupts(facts, &off, intent);
    let remedies = off.iter().map(|task| move_to(task, &intent.rt_cpus));
    draft.evidence(off.iter().take(SHOWN_MAX).map(show)).remedies(remedies).doubtful(format!(
        "outside the real-time {}: {}{interrupts_there}",
        machine::cpus(&intent.rt_cpus),
        machine::first_few(&names, 3)
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
        many => format!("; {} go there", machine::count(many, "interrupt")),
    }
}

pub(super) static USER_TASKS_ON_ISO: Check = Check {
    id: "user-tasks-on-iso",
    title: "ordinary tasks that may run on the real-time CPUs",
    why: "each switch to another task costs the caches of the real-time one, and the other's \
          system calls, page faults and timers run there",
    source: "sched_setaffinity(2); Documentation/admin-guide/kernel-per-CPU-kthreads.rst; tuned, \
             scheduler plugin; Flatscher, \"Real-time Optimizations\"",
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("none but the application's own"),
    judge: Judge::Ask(judge_user_tasks_on_iso),
    ..Check::NEW
};

/// Not known to be real-time: those are `rogue-rt-tasks` and the application.
fn is_ordinary(group: &&TaskGroup) -> bool {
    !group.kernel_thread && !group.policy.is_some_and(Policy::is_real_time)
}

fn judge_user_tasks_on_iso(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, groups) = match super::tasks(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let (on, unknown) = super::on_rt(groups.iter().filter(is_ordinary), intent);
    let rt = machine::cpus(&intent.rt_cpus);
    if on.is_empty() {
        return match unknown {
            0 => draft.good(format!("no ordinary task may run on {rt}")),
            _ => draft.unknown(format!("the affinity of {unknown} tasks is not readable")),
        };
    }
    let (pinned, wide): (Vec<&TaskGroup>, Vec<&TaskGroup>) =
        on.iter().partition(|group| super::is_pinned(group, intent));
    let draft = draft.evidence(super::evidence(&pinned)).evidence(super::evidence(&wide));
    let draft = draft.remedies(remedies(facts, &on, intent));
    let mut parts = Vec::new();
    if !pinned.is_empty() {
        let names = super::group_names(&pinned);
        let number = machine::count(super::task_count(&pinned), "task");
        parts.push(format!("{number} on real-time CPUs only: {names}"));
    }
    if !wide.is_empty() {
        let number = machine::count(super::task_count(&wide), "task");
        parts.push(format!("{number} on {rt} among others: {}", super::group_names(&wide)));
    }
    draft.doubtful(parts.join("; "))
}

fn remedies(facts: &Facts, on: &[&TaskGroup], intent: &Intent) -> Vec<Remedy> {
    let hk = &intent.housekeeping;
    let mut remedies = Vec::new();
    // The property is a file of cgroup v2.
    let has_groups = super::has_v2(facts);
    for unit in on.iter().filter_map(|group| group.unit.as_deref()) {
        let remedy = super::allow(unit, hk);
        let is_unit = has_groups && (unit.ends_with(".service") || unit.ends_with(".slice"));
        if is_unit && !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    let loose: Vec<&&TaskGroup> =
        on.iter().filter(|group| group.unit.is_none() || !has_groups).collect();
    match loose.as_slice() {
        [] => {}
        [TaskGroup { tid, .. }] if super::task_count(on) == 1 => {
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

// Do the kernel's workers that are bound to no CPU keep off the real-time ones?
//
// A mask may name CPUs that the machine could have and does not: only real-time CPUs in it count.

pub(super) static WORKQUEUE_CPUMASK: Check = Check {
    id: "workqueue-cpumask",
    title: "CPUs of unbound kernel workers",
    why: "a kworker that runs on a real-time CPU takes its caches, and its time where the \
          application sleeps or does not run as real-time task",
    source: "Documentation/core-api/workqueue.rst; kernel/workqueue.c (wq_unbound_cpumask); CentOS \
             Stream 9, merge request 2753 (7 µs for a switch to a kworker, more than 50 µs in a \
             guest); tuned, 00-tuned-pre-udev.sh",
    knobs: &[&knobs::WORKQUEUE_CPUMASK],
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("none of {}", machine::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(|draft, facts, intent| {
        judge_workqueue_cpumask(draft, facts, intent, &knobs::WORKQUEUE_CPUMASK)
    }),
    ..Check::NEW
};

pub(super) static WRITEBACK_CPUMASK: Check = Check {
    id: "writeback-cpumask",
    title: "CPUs of the workers that write dirty pages back",
    why: "flushing takes long, and its worker has a mask of its own beside that of all workers",
    source: "mm/backing-dev.c (bdi_wq, WQ_SYSFS); Documentation/core-api/workqueue.rst; tuned, \
             profile cpu-partitioning",
    knobs: &[&knobs::WRITEBACK_CPUMASK],
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("none of {}", machine::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge_writeback),
    ..Check::NEW
};

/// The mask of one queue is cut by the mask of all: that one keeps it off, too.
fn judge_writeback(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let values = value::knob_values(facts, &knobs::WRITEBACK_CPUMASK);
    let all = value::knob_values(facts, &knobs::WORKQUEUE_CPUMASK);
    let is_off = |value: &&SettingValue| {
        let cpus = value.reading.value().and_then(|text| CpuList::parse_mask(text).ok());
        cpus.is_some_and(|cpus| cpus.intersection(&intent.rt_cpus).is_empty())
    };
    let is_known = values.iter().any(|value| value.reading.value().is_some());
    let is_own_off = values.iter().all(|value| is_off(&value));
    if is_known && !is_own_off && all.iter().any(|v| is_off(&v)) {
        let all: Vec<&SettingValue> = all.iter().collect();
        return draft.evidence(grouped(&all)).good("cut by the mask of all unbound workers");
    }
    let unseen =
        |value: &&SettingValue| value.reading.value().is_none() && !value.reading.is_absent();
    if let Some(unseen) = all.iter().find(unseen).filter(|_| is_known && !is_own_off) {
        return draft
            .evidence(grouped(&values.iter().collect::<Vec<_>>()))
            .unreadable(&unseen.reading);
    }
    judge_workqueue_cpumask(draft, facts, intent, &knobs::WRITEBACK_CPUMASK)
}

fn judge_workqueue_cpumask(
    draft: FindingBuilder,
    facts: &Facts,
    intent: &Intent,
    knob: &'static Knob,
) -> Finding {
    let pattern = knob.patterns().next().unwrap_or(knob.id);
    let values: Vec<&SettingValue> = value::knob_values(facts, knob).iter().collect();
    let draft = draft.evidence(grouped(&values));
    let Some(value) = values.first() else {
        return draft.unreadable(&Reading::<String>::denied(pattern, "not asked"));
    };
    let path = &value.reading.path;
    let cpus = value.reading.clone().and_then(|path, text| match CpuList::parse_mask(&text) {
        Ok(cpus) if !cpus.is_empty() => Reading::known(path, cpus),
        _ => Reading::malformed(path, &text, "a mask of CPUs"),
    });
    let Some(cpus) = cpus.value() else {
        return draft.unreadable(&cpus);
    };
    let on = cpus.intersection(&intent.rt_cpus);
    if on.is_empty() {
        return draft.good(format!("workers off {}", machine::cpus(&intent.rt_cpus)));
    }
    let write = Remedy::set(knob, vec![path.clone()], mask(&intent.housekeeping));
    let boot = knob.boot.map(|boot| boot.replace("{}", &intent.housekeeping.to_string()));
    let boot = boot.map(|parameter| Remedy::Boot { parameter });
    draft
        .remedies([write].into_iter().chain(boot))
        .doubtful(format!("workers may run on {}", machine::cpus(&on)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::profile::WorkloadKind;
    use crate::testing::{add_task, good, intent, set_cmdline, without_tasks};
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
        for (kind, is_offered) in [(WorkloadKind::Audio, false), (WorkloadKind::BusyPoll, true)] {
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

#[cfg(test)]
mod rt_tasks_off_their_cpus_tests {
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

#[cfg(test)]
mod user_tasks_on_iso_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{add_task, good, intent, without_tasks};

    #[test]
    fn pinned_and_wide_are_distinguished() {
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

#[cfg(test)]
mod workqueue_cpumask_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_setting};

    fn with(all: &str, writeback: &str) -> [Status; 2] {
        let mut facts = good();
        let known = |text: &str| Reading::known("x", text.to_owned());
        set_setting(&mut facts, &knobs::WORKQUEUE_CPUMASK, known(all));
        set_setting(&mut facts, &knobs::WRITEBACK_CPUMASK, known(writeback));
        [&WORKQUEUE_CPUMASK, &WRITEBACK_CPUMASK].map(|c| c.judge(&facts, &intent()).status)
    }

    #[test]
    fn cpus_that_the_machine_could_have_do_not_count() {
        assert_eq!(with("3", "3"), [Good, Good]);
        assert_eq!(with("ffffffff,fffffff3", "ffffffff,fffffff3"), [Good, Good]);
        assert_eq!(with("f", "f"), [Doubtful, Doubtful]);
        assert_eq!(with("f", "3"), [Doubtful, Good]);
        assert_eq!(with("3", "f"), [Good, Good]);
        assert_eq!(with("x", "x"), [Unknown, Unknown]);
    }
}
