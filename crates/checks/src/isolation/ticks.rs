//! The timer tick and RCU on the real-time CPUs: nohz_full, callbacks, skew_tick.

use std::collections::BTreeMap;

use rtproof_host::{CpuList, Facts, facts::tasks::TaskGroup};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{CmdlineValue, List, built_with, option};
use crate::profile::Choice;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, machine};

// Does the tick stop on the real-time CPUs, where the kind of work wants that?

pub(super) static NOHZ_FULL: Check = Check {
    id: "nohz-full",
    title: "timer tick stopped on CPUs with one task (nohz_full)",
    why: "the timer tick interrupts a task that never sleeps HZ times a second",
    source: "Documentation/timers/no_hz.rst; kernel/sched/isolation.c; tuned, profile realtime; \
             Documentation/core-api/real-time/kernel-configuration.rst (periodic loops: better \
             without)",
    trade_off: Some(
        "entering and leaving the kernel costs more on such a CPU, which a loop that sleeps each \
         period does all the time: good for tasks that never sleep",
    ),
    impact: Impact::Microseconds,
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| match intent.profile.choices.nohz_full {
        Choice::On => format!("{} tickless", machine::cpus(&intent.rt_cpus)),
        Choice::Off => "no real-time CPU tickless".into(),
        Choice::Either => "known, and never every CPU".into(),
    }),
    judge: Judge::Ask(judge_nohz_full),
    ..Check::NEW
};

fn judge_nohz_full(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let reading = &facts.cpus.nohz_full;
    let draft = draft.read(reading, machine::or_empty);
    let Some(tickless) = reading.value() else {
        if reading.is_absent() && built_with(facts, "NO_HZ_FULL") == Some(false) {
            let draft = draft.evidence([option(facts, "NO_HZ_FULL")]);
            // Where the profile wants it, `config-nohz` says so: once is enough.
            return draft.not_applicable("this kernel is built without CONFIG_NO_HZ_FULL");
        }
        return draft.unreadable(reading);
    };
    let is_all = |online: &CpuList| !online.is_empty() && online.difference(tickless).is_empty();
    if facts.cpus.online.value().is_some_and(is_all) {
        return draft
            .bad(format!("{} tickless: no CPU is left to keep the time", machine::cpus(tickless)));
    }
    let on = tickless.intersection(&intent.rt_cpus);
    let open = intent.rt_cpus.difference(tickless);
    let parameter = format!("nohz_full={}", tickless.union(&intent.rt_cpus));
    match intent.profile.choices.nohz_full {
        Choice::On if !open.is_empty() => draft
            .remedies([Remedy::Boot { parameter }])
            .doubtful(format!("the real-time {} tick", machine::cpus(&open))),
        Choice::Off if !on.is_empty() => draft
            .remedies([Remedy::Unboot { parameter: "nohz_full".into() }])
            .doubtful(format!("{} tickless: each system call costs more", machine::cpus(&on))),
        _ if on.is_empty() => draft.good("the real-time CPUs tick"),
        _ => draft.good(format!("{} tickless", machine::cpus(&on))),
    }
}

pub(super) static NOHZ_ON: Check = Check {
    id: "nohz-on",
    title: "tick of idle CPUs allowed to stop (nohz)",
    why: "with nohz=off every CPU ticks at all times, nohz_full= has no effect, and the tick may \
          come in front of the wake-up",
    source: "Documentation/admin-guide/kernel-parameters.txt, nohz=; kernel/time/tick-sched.c \
             (setup_tick_nohz); tuned and OpenShift boot with nohz=on",
    impact: Impact::Microseconds,
    when: When::Boot,
    wanted: Wanted::Text("not off"),
    judge: Judge::Ask(judge_nohz_on),
    ..Check::NEW
};

fn judge_nohz_on(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let tickless = &facts.cpus.nohz_full;
    let builds = ["NO_HZ_COMMON", "NO_HZ_IDLE", "NO_HZ_FULL", "NO_HZ"];
    // Before 3.10 NO_HZ is the option, and a part of a configuration may name any of them alone.
    let built = builds.into_iter().find(|option| built_with(facts, option) == Some(true));
    if built.is_none() && built_with(facts, "HZ_PERIODIC") == Some(true) {
        return draft.evidence([option(facts, "HZ_PERIODIC")]).doubtful(
            "CONFIG_HZ_PERIODIC: this kernel's tick never stops, whatever the command line says",
        );
    }
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let value = line.last("nohz").flatten();
    let draft =
        draft.read(cmdline, |_| value.map_or("no nohz=".into(), |value| format!("nohz={value}")));
    // kstrtobool takes these for no.
    let is_off = value.is_some_and(|value| {
        matches!(value.to_ascii_lowercase().as_str(), "off" | "0" | "n" | "no" | "f" | "false")
    });
    let draft = draft.remedies([Remedy::Boot { parameter: "nohz=on".into() }]);
    match (is_off, line.last("nohz_full").flatten()) {
        (true, Some(list)) => {
            return draft.bad(format!("nohz=off takes the effect from nohz_full={list}"));
        }
        (true, None) => return draft.doubtful("nohz=off: every CPU ticks, idle or not"),
        _ => {}
    }
    let runs_tickless = tickless.value().is_some_and(|cpus| !cpus.is_empty());
    match built {
        Some(name) => draft.evidence([option(facts, name)]).good("the tick may stop"),
        _ if runs_tickless => draft.read(tickless, CpuList::to_string).good("the tick may stop"),
        _ => draft.unreadable(&facts.kernel.config),
    }
}

// Is there one task for each tickless CPU?
//
// The tick stops while one task is runnable. Who is runnable changes all the time; who is put on
// one CPU alone does not, and two of them there cannot both have it without a tick.

pub(super) static NOHZ_SINGLE_TASK: Check = Check {
    id: "nohz-single-task",
    title: "one task for each tickless CPU",
    why: "the tick comes back as long as two tasks are runnable on a CPU",
    source: "Documentation/timers/no_hz.rst; kernel/sched/core.c (sched_can_stop_tick)",
    impact: Impact::Microseconds,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("at most one task pinned to each"),
    judge: Judge::Ask(judge_nohz_single_task),
    ..Check::NEW
};

fn judge_nohz_single_task(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let reading = &facts.cpus.nohz_full;
    let draft = draft.read(reading, machine::or_empty);
    let Some(tickless) = reading.value() else {
        if reading.is_absent() && built_with(facts, "NO_HZ_FULL") == Some(false) {
            return draft.built_without(facts, "NO_HZ_FULL");
        }
        return draft.unreadable(reading);
    };
    let tickless = tickless.intersection(&intent.rt_cpus);
    if tickless.is_empty() {
        return draft.not_applicable("no real-time CPU is tickless");
    }
    let (draft, groups) = match super::tasks(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let mut on: BTreeMap<u32, Vec<&TaskGroup>> = BTreeMap::new();
    let mut unknown = 0;
    for group in groups.iter().filter(|group| !group.kernel_thread) {
        match group.cpus.as_ref().map(CpuList::as_slice) {
            Some(&[cpu]) if tickless.contains(cpu) => on.entry(cpu).or_default().push(group),
            Some(_) => {}
            None => unknown += group.count,
        }
    }
    let crowded: Vec<(&u32, &Vec<&TaskGroup>)> =
        on.iter().filter(|(_, groups)| super::task_count(groups) > 1).collect();
    if let Some((cpu, groups)) = crowded.first() {
        let more = match crowded.len() {
            1 => String::new(),
            many => format!("; {} more CPUs alike", many - 1),
        };
        let text = "give each task that runs without sleeping a CPU of its own".into();
        return draft
            .evidence(crowded.iter().flat_map(|(_, groups)| super::evidence(groups)))
            .remedies([Remedy::Manual { text }])
            .doubtful(format!(
                "{} pinned to the tickless CPU {cpu}: {}{more}",
                machine::count(super::task_count(groups), "task"),
                super::group_names(groups)
            ));
    }
    if unknown > 0 {
        return draft.unknown(format!("the affinity of {unknown} tasks is not readable"));
    }
    draft.good(format!("no tickless CPU has two tasks pinned to it ({})", machine::cpus(&tickless)))
}

// Do the real-time CPUs wake the threads that run their RCU callbacks, or do these poll?

pub(super) static RCU_NOCB_POLL: Check = Check {
    id: "rcu-nocb-poll",
    title: "threads for offloaded RCU callbacks that poll (rcu_nocb_poll)",
    why: "without polling a CPU that queues a callback wakes a thread, which takes a few \
          microseconds of the real-time task",
    source: "Documentation/admin-guide/kernel-parameters.txt, rcu_nocb_poll",
    trade_off: Some("a thread that polls uses energy and a part of a housekeeping CPU"),
    impact: Impact::Microseconds,
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("known; not with one housekeeping CPU"),
    judge: Judge::Ask(judge_rcu_nocb_poll),
    ..Check::NEW
};

fn judge_rcu_nocb_poll(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let is_set = line.all("rcu_nocb_poll").next().is_some();
    let draft = draft
        .read(cmdline, |_| if is_set { "rcu_nocb_poll".into() } else { "no rcu_nocb_poll".into() });
    let is_offloaded = CmdlineValue::of(facts, line, "rcu_nocbs") != CmdlineValue::Not
        || line.all("nohz_full").next().is_some()
        || line.all("rcu_nocbs").next().is_some();
    match (is_set, is_offloaded) {
        (true, false) => draft
            .remedies([Remedy::Boot { parameter: format!("rcu_nocbs={}", intent.rt_cpus) }])
            .doubtful("rcu_nocb_poll without rcu_nocbs: no callback is offloaded"),
        (true, true) if intent.housekeeping.len() < 2 => draft.doubtful(format!(
            "rcu_nocb_poll polls on {}, the only housekeeping CPU",
            machine::cpus(&intent.housekeeping)
        )),
        (true, true) => draft.good("the threads poll"),
        (false, true) => draft.good("the threads sleep and are woken"),
        (false, false) => draft.not_applicable("the command line offloads no RCU callbacks"),
    }
}

// Are RCU callbacks taken off the real-time CPUs, and do the threads exist that run them instead?

pub(super) static RCU_NOCBS: Check = Check {
    id: "rcu-nocbs",
    title: "RCU callbacks taken off the real-time CPUs",
    why: "callbacks that a CPU has queued run there in softirq or rcuc, thousands at once after a \
          close or an unmount",
    source: "Documentation/admin-guide/kernel-parameters.txt, rcu_nocbs=; kernel/rcu/tree_nocb.h \
             (rcu_init_nohz); Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
    trade_off: Some("the callbacks run in rcuo threads, which need time on other CPUs"),
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} offloaded", machine::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge_rcu_nocbs),
    ..Check::NEW
};

fn judge_rcu_nocbs(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let given = CmdlineValue::of(facts, line, "rcu_nocbs");
    let bare = line.all("rcu_nocbs").any(|value| value.is_none());
    let shown = match (&given, bare) {
        (CmdlineValue::Once(parameter), _) => parameter.written.clone(),
        (CmdlineValue::Conflicting(written), _) => written.join(" "),
        (CmdlineValue::Not, true) => "rcu_nocbs".into(),
        (CmdlineValue::Not, false) => "no rcu_nocbs".into(),
    };
    let draft = draft.read(cmdline, |_| shown.clone());
    let all = intent.rt_cpus.clone();
    let remedy = Remedy::Boot { parameter: format!("rcu_nocbs={all}") };
    if built_with(facts, "RCU_NOCB_CPU") == Some(false) {
        let draft = draft.evidence([option(facts, "RCU_NOCB_CPU")]);
        let text = "a kernel with CONFIG_RCU_NOCB_CPU=y".into();
        return draft
            .remedies([Remedy::Manual { text }])
            .doubtful("this kernel is built without CONFIG_RCU_NOCB_CPU: callbacks stay");
    }
    let none = CpuList::default();
    let by_line = match &given {
        CmdlineValue::Conflicting(written) => {
            return draft.unknown(format!("{} on one command line", written.join(" and ")));
        }
        CmdlineValue::Once(parameter) => match &parameter.list {
            List::Cpus(cpus) => cpus,
            List::Unclear => {
                return draft
                    .unknown(format!("{}: the number of CPUs is unknown", parameter.written));
            }
            // rcu_nocb_setup() offloads every CPU when it cannot read the list.
            List::Refused(why) => {
                return draft.remedies([remedy]).doubtful(format!(
                    "{} is refused, the kernel offloads every CPU: {why}",
                    parameter.written
                ));
            }
        },
        CmdlineValue::Not => &none,
    };
    let open = intent.rt_cpus.difference(by_line);
    if open.is_empty() {
        return judge_threads(draft, facts, &shown, &remedy);
    }
    let tickless = facts.cpus.nohz_full.value().unwrap_or(&none);
    if open.difference(tickless).is_empty() {
        return draft
            .read(&facts.cpus.nohz_full, machine::or_empty)
            .good(format!("{} offloaded, by nohz_full too", machine::cpus(&intent.rt_cpus)));
    }
    let is_default = built_with(facts, "RCU_NOCB_CPU_DEFAULT_ALL") == Some(true);
    // The bare word takes that back, and offloads none.
    if is_default && given == CmdlineValue::Not && !bare {
        return draft
            .evidence([option(facts, "RCU_NOCB_CPU_DEFAULT_ALL")])
            .good("every CPU offloaded by the kernel's build");
    }
    let open = machine::cpus(&open.difference(tickless));
    draft.remedies([remedy]).doubtful(format!("RCU callbacks stay on {open} ({shown})"))
}

/// Asked for: are there the threads? Without them it is not in force.
fn judge_threads(draft: FindingBuilder, facts: &Facts, shown: &str, remedy: &Remedy) -> Finding {
    let groups = facts.placement.value().map_or(&[][..], Vec::as_slice);
    // Where RCU's own thread is seen, the others would be: a part of a machine proves nothing.
    let is_rcu = |name: &str| name == "rcu_preempt" || name == "rcu_sched";
    let sees_rcu = groups.iter().any(|group| group.kernel_thread && is_rcu(&group.name));
    if sees_rcu && !groups.iter().any(|group| group.name.starts_with("rcuo")) {
        let path = facts.placement.path.clone();
        let evidence = Evidence { path, value: "no kernel thread rcuo*".into() };
        return draft
            .evidence([evidence])
            .remedies([remedy.clone()])
            .bad(format!("{shown}, but no rcuo thread runs: the kernel did not take it"));
    }
    draft.good(shown)
}

// Do the threads that run the RCU callbacks of the real-time CPUs keep off these CPUs?

pub(super) static RCUO_AFFINITY: Check = Check {
    id: "rcuo-affinity",
    title: "threads that run offloaded RCU callbacks (rcuo)",
    why: "callbacks that were taken off a CPU come back to it with the thread that runs them",
    source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst, rcuop/%d; \
             Documentation/timers/no_hz.rst",
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} only", machine::cpus(&intent.housekeeping))),
    judge: Judge::Ask(judge_rcuo_affinity),
    ..Check::NEW
};

fn is_rcuo(group: &&TaskGroup) -> bool {
    group.kernel_thread && group.name.starts_with("rcuo")
}

fn judge_rcuo_affinity(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let (draft, groups) = match super::tasks(draft, facts) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let threads: Vec<&TaskGroup> = groups.iter().filter(is_rcuo).collect();
    if threads.is_empty() {
        return draft.not_applicable("no RCU callback is offloaded: there is no rcuo thread");
    }
    let (on, unknown) = super::on_rt(threads.iter().copied(), intent);
    if on.is_empty() {
        if unknown > 0 {
            return draft
                .unknown(format!("the affinity of {unknown} rcuo threads is not readable"));
        }
        let number = machine::count(super::task_count(&threads), "thread");
        return draft.good(format!("{number} off {}", machine::cpus(&intent.rt_cpus)));
    }
    let command = format!("pgrep '^rcuo' | xargs -n1 taskset -cp {}", intent.housekeeping);
    let draft =
        draft.evidence(super::evidence(&on)).remedies([super::move_away(&on, intent, command)]);
    let summary =
        format!("{} may run on {}", super::group_names(&on), machine::cpus(&intent.rt_cpus));
    if on.iter().any(|group| super::is_pinned(group, intent)) {
        return draft.bad(summary);
    }
    draft.doubtful(summary)
}

// Do all CPUs tick at the same moment?

pub(super) static SKEW_TICK: Check = Check {
    id: "skew-tick",
    title: "timer ticks of the CPUs spread over the period (skew_tick)",
    why: "CPUs that tick at the same moment wait for each other at the locks of the time keeping \
          and of RCU",
    source: "Documentation/admin-guide/kernel-parameters.txt, skew_tick; kernel/time/tick-sched.c \
             (tick_setup_sched_timer); tuned and OpenShift boot real-time machines with it",
    trade_off: Some("uses a little more energy: idle CPUs do not wake up together"),
    impact: Impact::Microseconds,
    when: When::Boot,
    wanted: Wanted::Text("skew_tick=1"),
    judge: Judge::Ask(judge_skew_tick),
    ..Check::NEW
};

fn judge_skew_tick(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let value = line.last("skew_tick").flatten();
    let draft = draft.read(cmdline, |_| {
        value.map_or("no skew_tick".into(), |value| format!("skew_tick={value}"))
    });
    if value.is_some_and(|value| value.parse::<u32>().is_ok_and(|number| number > 0)) {
        return draft.good("ticks are spread");
    }
    let online = &facts.cpus.online;
    if let Some(cpus) = online.value().filter(|cpus| cpus.len() == 1) {
        return draft
            .read(online, CpuList::to_string)
            .not_applicable(format!("CPU {cpus} is the only one"));
    }
    draft
        .remedies([Remedy::Boot { parameter: "skew_tick=1".into() }])
        .doubtful("all CPUs tick at the same moment: the more CPUs, the longer they wait")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::profile::WorkloadKind;
    use crate::testing::{cpus, good, intent, set_config};
    use rtproof_host::Reading;

    fn with(tickless: &[u32], kind: WorkloadKind) -> Status {
        let mut facts = good();
        facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(tickless));
        let intent = Intent { profile: Profile::of(kind), ..intent() };
        NOHZ_FULL.judge(&facts, &intent).status
    }

    #[test]
    fn the_kind_of_work_decides() {
        for kind in [WorkloadKind::Periodic, WorkloadKind::Audio] {
            assert_eq!(with(&[], kind), Good);
        }
        assert_eq!(with(&[2, 3], WorkloadKind::Periodic), Good);
        assert_eq!(with(&[2, 3], WorkloadKind::Audio), Doubtful);
        assert_eq!(with(&[2], WorkloadKind::BusyPoll), Doubtful);
        assert_eq!(with(&[0, 1, 2, 3], WorkloadKind::BusyPoll), Bad);
    }

    #[test]
    fn a_kernel_without_it_and_a_file_that_is_not_there() {
        let mut facts = good();
        facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
        assert_eq!(NOHZ_FULL.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "NO_HZ_FULL", None);
        for kind in [WorkloadKind::Periodic, WorkloadKind::BusyPoll] {
            let intent = Intent { profile: Profile::of(kind), ..intent() };
            assert_eq!(NOHZ_FULL.judge(&facts, &intent).status, NotApplicable);
        }
    }
}

#[cfg(test)]
mod nohz_on_tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        NOHZ_ON.judge(&facts, &intent()).status
    }

    #[test]
    fn the_build_is_asked_before_the_command_line() {
        let mut facts = good();
        set_cmdline(&mut facts, "nohz=on");
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(NOHZ_ON.judge(&facts, &intent()).status, Good, "CPUs run tickless");
        facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
        assert_eq!(NOHZ_ON.judge(&facts, &intent()).status, Unknown);
        let periodic = [("HZ_PERIODIC".to_owned(), "y".to_owned())];
        facts.kernel.config = Reading::known("/proc/config.gz", periodic.into());
        assert_eq!(NOHZ_ON.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn off_is_doubtful_and_bad_with_nohz_full() {
        assert_eq!(with("nohz=on"), Good);
        assert_eq!(with(""), Good);
        assert_eq!(with("nohz=off"), Doubtful);
        assert_eq!(with("nohz=off nohz_full=2-3"), Bad);
        let mut facts = good();
        facts.kernel.cmdline = Reading::denied("/proc/cmdline", "EACCES");
        assert_eq!(NOHZ_ON.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod nohz_single_task_tests {
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

#[cfg(test)]
mod rcu_nocb_poll_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str, hk: &[u32]) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        let intent = Intent { housekeeping: cpus(hk), ..intent() };
        RCU_NOCB_POLL.judge(&facts, &intent).status
    }

    #[test]
    fn both_are_good_and_alone_it_does_nothing() {
        assert_eq!(with("rcu_nocbs=2-3", &[0, 1]), Good);
        assert_eq!(with("rcu_nocbs=2-3 rcu_nocb_poll", &[0, 1]), Good);
        assert_eq!(with("rcu_nocbs=2-3 rcu_nocb_poll", &[0]), Doubtful);
        assert_eq!(with("rcu_nocb_poll", &[0, 1]), Doubtful);
        assert_eq!(with("quiet", &[0, 1]), NotApplicable);
        let mut facts = good();
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(RCU_NOCB_POLL.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod rcu_nocbs_tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    fn with(line: &str, tickless: &[u32]) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(tickless));
        RCU_NOCBS.judge(&facts, &intent()).status
    }

    #[test]
    fn by_list_by_nohz_full_or_not() {
        assert_eq!(with("rcu_nocbs=2-3", &[]), Good);
        assert_eq!(with("rcu_nocbs=2", &[3]), Good);
        assert_eq!(with("quiet", &[2, 3]), Good);
        assert_eq!(with("rcu_nocbs=2", &[]), Doubtful);
        assert_eq!(with("rcu_nocbs=2-3n", &[]), Doubtful);
        assert_eq!(with("rcu_nocbs=2 rcu_nocbs=3", &[]), Unknown);
    }

    #[test]
    fn asked_for_without_threads_is_bad_and_the_build_may_do_it() {
        let mut facts = good();
        let mut groups = facts.placement.value().cloned().unwrap();
        groups.retain(|group| !group.name.starts_with("rcuo"));
        facts.placement = Reading::known(facts.placement.path.clone(), groups);
        let finding = RCU_NOCBS.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.starts_with("rcu_nocbs=2-3, but no rcuo thread"));
        set_cmdline(&mut facts, "quiet");
        facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
        assert_eq!(RCU_NOCBS.judge(&facts, &intent()).status, Doubtful);
        set_config(&mut facts, "RCU_NOCB_CPU_DEFAULT_ALL", Some("y"));
        assert_eq!(RCU_NOCBS.judge(&facts, &intent()).status, Good);
        set_config(&mut facts, "RCU_NOCB_CPU", None);
        assert_eq!(RCU_NOCBS.judge(&facts, &intent()).status, Doubtful);
    }
}

#[cfg(test)]
mod rcuo_affinity_tests {
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

#[cfg(test)]
mod skew_tick_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    #[test]
    fn set_not_set_one_cpu_and_unreadable() {
        let mut facts = good();
        set_cmdline(&mut facts, "skew_tick=1");
        assert_eq!(SKEW_TICK.judge(&facts, &intent()).status, Good);
        set_cmdline(&mut facts, "skew_tick=0");
        assert_eq!(SKEW_TICK.judge(&facts, &intent()).status, Doubtful);
        facts.cpus.online = Reading::known("/sys/devices/system/cpu/online", cpus(&[0]));
        assert_eq!(SKEW_TICK.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(SKEW_TICK.judge(&facts, &intent()).status, Unknown);
    }
}
