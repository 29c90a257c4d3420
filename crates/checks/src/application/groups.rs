//! Control groups and other things that hold an application back: quotas, cpusets, throttling,
//! seccomp, a debugger, a container.

use rtproof_host::{
    CpuList, Reading,
    facts::app::{CpuGroup, ProcessStatus, Quota},
    knobs::cpu::{FAIR_SERVER, GROUP_QUOTA, GROUP_RT_RUNTIME, RT_RUNTIME, TIMER_SLACK},
};

use crate::case::{Case, NAMED_MAX, PlacedThread, Scheduled, name, of_threads};
use crate::check::{Check, CheckAnswer, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, count, cpus, first_few, option, or_empty, since};
use crate::{Evidence, Finding, Impact, Remedy, When, known};

// CPU bandwidth of its control groups.
//
// The quota stops ordinary tasks only (kernel/sched/fair.c): real-time threads run on, and wait
// only where they need something that a stopped thread holds.

pub(super) static CGROUP_QUOTA: Check = Check {
    id: "app-cgroup-quota",
    title: "CPU quota of the application's control groups",
    why: "ordinary threads that used their quota stand still for the rest of the period, 100 ms by \
          default, with every lock they hold",
    source: "Documentation/admin-guide/cgroup-v2.rst (cpu.max); \
             Documentation/scheduler/sched-bwc.rst; kernel/sched/fair.c (throttle_cfs_rq)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("no quota on the way up"),
    judge: Judge::App(judge_cgroup_quota),
    ..Check::NEW
};

fn judge_cgroup_quota(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let groups = &case.app.groups.cpu;
    let mut draft = draft.read(groups, |groups| count(groups.len(), "group"));
    let Some(list) = groups.value() else {
        return Ok(draft.unreadable(groups));
    };
    for group in list {
        draft = draft.read(&group.quota, |quota| show(quota.as_ref()));
    }
    let limited = |group: &&CpuGroup| {
        group.quota.value().is_some_and(|quota| quota.and_then(|quota| quota.max_us).is_some())
    };
    if let Some(group) = list.iter().find(limited) {
        let quota = group.quota.value().and_then(Option::as_ref);
        let times = group.throttled.value().copied().flatten();
        let draft = draft.read(&group.throttled, |times| {
            times.map_or_else(|| "no such file".into(), |times| format!("nr_throttled {times}"))
        });
        let is_real_time = case.app.threads().any(|thread| thread.is_real_time());
        let stopped = match times {
            Some(0) => "never reached so far".into(),
            Some(times) => format!("stopped in {times} periods"),
            None => "how often it was reached is unknown".to_owned(),
        };
        let who = if is_real_time { "its ordinary threads" } else { "it" };
        let summary = format!("{who} may use {}: {stopped} ({})", show(quota), group.folder);
        let file = group.quota.path.clone();
        let value = if file.ends_with("cpu.max") { "max" } else { "-1" };
        let draft = draft
            .remedies([Remedy::set(&GROUP_QUOTA, vec![file], value)])
            .remedies(case.drop_in("CPUQuota="));
        let is_bad = !is_real_time && times.is_some_and(|times| times > 0);
        return Ok(if is_bad { draft.bad(summary) } else { draft.doubtful(summary) });
    }
    match list.iter().find(|group| group.quota.value().is_none()) {
        Some(group) => Ok(draft.unreadable(&group.quota)),
        None => Ok(draft.good(format!("no quota in {}", count(list.len(), "group")))),
    }
}

fn show(quota: Option<&Quota>) -> String {
    match quota {
        None => "no such file".into(),
        Some(Quota { max_us: None, .. }) => "no limit".into(),
        Some(Quota { max_us: Some(max_us), period_us }) => {
            let time = |us: &u64| crate::ns(us.saturating_mul(1_000));
            format!("{} of each {}", time(max_us), time(period_us))
        }
    }
}

// Does it run in a container? Reported, not judged: latencies are the host's (S1), but rights,
// limits and quotas are the runtime's.

/// What the groups of container runtimes are called.
const MARKS: &[(&str, &str)] = &[
    ("kubepods", "Kubernetes"),
    ("libpod", "Podman"),
    ("docker", "Docker"),
    ("lxc", "LXC"),
    ("containerd", "containerd"),
    ("machine.slice", "machine.slice"),
];

pub(super) static CONTAINER: Check = Check {
    id: "app-container",
    title: "container that the application runs in",
    why: "rights, limits and quotas of a container come from its runtime, and real-time policies \
          are refused unless it was told otherwise",
    source: "capabilities(7) (CAP_SYS_NICE); cgroups(7); pid_namespaces(7)",
    impact: Impact::Information,
    when: When::Login,
    wanted: Wanted::Text("known"),
    judge: Judge::App(judge_container),
    ..Check::NEW
};

fn judge_container(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let paths = &case.app.groups.paths;
    let draft = draft.read(paths, |text| text.replace('\n', " "));
    let Some(text) = paths.value() else {
        return Ok(draft.unreadable(paths));
    };
    let show = |status: &ProcessStatus| format!("{} PID namespaces", status.pid_namespaces);
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    let name = of_groups(text);
    let is_nested = found.iter().any(|(_, status)| status.pid_namespaces > 1);
    Ok(match name {
        Some(name) => draft.good(format!("in a container, by its control group: {name}")),
        None if is_nested => draft.good("in a PID namespace of its own: a container"),
        None => draft.good("in no container that can be seen from here"),
    })
}

/// The runtime that a control group is named after.
fn of_groups(text: &str) -> Option<&'static str> {
    // docker.service is the daemon's own group, on a host.
    let mut groups = text.lines().filter(|line| !line.ends_with(".service"));
    groups.find_map(|line| MARKS.iter().find(|(mark, _)| line.contains(mark)).map(|mark| mark.1))
}

/// The runtime of an application's container, where its control group shows one.
pub(super) fn runtime(groups: &Reading<String>) -> Option<&'static str> {
    groups.value().and_then(|text| of_groups(text))
}

// CPUs that its cpuset grants, and the state of its partition.

pub(super) static CPUSET: Check = Check {
    id: "app-cpuset",
    title: "CPUs that the application's control groups grant",
    why: "the application cannot run on a real-time CPU that its cpuset does not grant, whatever \
          its affinity asks for",
    source: "Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus.effective, \
             cpuset.cpus.partition)",
    impact: Impact::Hundreds,
    judge: Judge::App(judge_cpuset),
    ..Check::NEW
};

fn judge_cpuset(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let wanted = &case.intent.rt_cpus;
    let draft = draft.wanted(format!("at least {}", cpus(wanted))).cpus(wanted);
    if wanted.is_empty() {
        return Ok(draft.no_rt_cpus(case.facts));
    }
    let groups = &case.app.groups.cpuset;
    let mut draft = draft.read(groups, |groups| count(groups.len(), "group"));
    let Some(list) = groups.value() else {
        return Ok(draft.unreadable(groups));
    };
    // What is in force in the lowest group that has the controller is within all above it.
    let mut lowest = None;
    for group in list {
        let show = |cpus: &Option<CpuList>| match cpus {
            Some(cpus) => cpus.to_string(),
            None => "no such file".into(),
        };
        draft = draft.read(&group.cpus, show);
        match group.cpus.value() {
            None => return Ok(draft.unreadable(&group.cpus)),
            Some(Some(granted)) => {
                lowest = Some((group, granted));
                break;
            }
            Some(None) => {}
        }
    }
    let Some((group, granted)) = lowest else {
        return Ok(draft.good("no group of its own limits CPUs"));
    };
    draft =
        draft.read(&group.partition, |kind| kind.clone().unwrap_or_else(|| "no such file".into()));
    let Some(partition) = group.partition.value() else {
        return Ok(draft.unreadable(&group.partition));
    };
    if let Some(broken) = partition.as_ref().filter(|kind| kind.contains("invalid")) {
        return Ok(draft.doubtful(format!("{}: the partition is {broken}", group.folder)));
    }
    let missing = wanted.difference(granted);
    if missing.is_empty() {
        return Ok(draft.good(format!("{} granted", cpus(granted))));
    }
    let line = format!("AllowedCPUs={wanted}");
    draft = draft.remedies(case.drop_in(&line).or_else(|| {
        let text =
            format!("add {} to cpuset.cpus of {} and of those above", cpus(&missing), group.folder);
        Some(Remedy::Manual { text })
    }));
    let summary = format!("{} not granted, only {}", cpus(&missing), cpus(granted));
    let is_none = wanted.intersection(granted).is_empty();
    Ok(if is_none { draft.bad(summary) } else { draft.doubtful(summary) })
}

// Does a debugger or strace hold it?

pub(super) static DEBUGGER: Check = Check {
    id: "app-debugger",
    title: "whether the application is traced",
    why: "a traced thread stops at each signal, and under strace at each system call, until the \
          tracer, an ordinary task, lets it go on",
    source: "ptrace(2); proc_pid_status(5) (TracerPid)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("none"),
    judge: Judge::App(judge_debugger),
    ..Check::NEW
};

fn judge_debugger(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let show = |status: &ProcessStatus| format!("TracerPid {}", status.tracer);
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    match found.iter().find(|(_, status)| status.tracer != 0) {
        Some((process, status)) => {
            let text = format!("detach the tracer, process {}", status.tracer);
            Ok(draft.remedies([Remedy::Manual { text }]).doubtful(format!(
                "{} (pid {}) is traced by process {}",
                process.name, process.pid, status.tracer
            )))
        }
        None => Ok(draft.good("nobody traces it")),
    }
}

// Are its CPUs kept free of other tasks: by `isolcpus=`, or by a cpuset partition?

pub(super) static ISOLATION: Check = Check {
    id: "app-isolation",
    title: "whether the application's CPUs are isolated",
    why: "on a CPU that is not isolated the scheduler puts any task that has no affinity of its \
          own",
    source: "Documentation/admin-guide/kernel-parameters.txt (isolcpus); \
             Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus.partition)",
    trade_off: Some("isolated CPUs are lost to all other work"),
    when: When::Boot,
    wanted: Wanted::Text("isolated CPUs only"),
    judge: Judge::App(judge_isolation),
    ..Check::NEW
};

fn judge_isolation(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.placed(draft)?;
    let mut used = CpuList::default();
    for thread in &threads {
        used = used.union(&thread.status.cpus);
    }
    let groups = &case.app.groups.cpuset;
    if let Some(list) = groups.value() {
        let mut evidence = Vec::new();
        // A group without a partition of its own, a member, is in that of the group above it.
        for group in list {
            let kind = group.partition.value().and_then(Option::as_deref);
            evidence.push(Evidence::of(&group.partition, |kind| {
                kind.clone().unwrap_or_else(|| "no such file".into())
            }));
            let in_force = group.cpus.value().and_then(Option::as_ref);
            let covers = in_force.is_some_and(|all| used.difference(all).is_empty());
            if kind == Some("isolated") && covers {
                let granted = in_force.map_or_else(String::new, CpuList::to_string);
                return Ok(draft
                    .read(groups, |groups| count(groups.len(), "group"))
                    .evidence(evidence)
                    .read(&group.cpus, |_| granted)
                    .good(format!("{} in an isolated partition", cpus(&used))));
            }
            if group.partition.value().is_none() || kind.is_some_and(|kind| kind != "member") {
                break;
            }
        }
    }
    let isolated = &case.facts.cpus.isolated;
    let draft = draft.read(isolated, or_empty);
    let Some(list) = isolated.value() else {
        return Ok(draft.unreadable(isolated));
    };
    let free = used.difference(list);
    if free.is_empty() {
        return Ok(draft.good(format!("{} isolated at boot", cpus(&used))));
    }
    let remedy = match case.facts.cpus.online.value() {
        Some(online) if !online.difference(&used).is_empty() => {
            Remedy::Boot { parameter: known::isolcpus(case.facts, &used) }
        }
        _ => {
            let text = "pin the application to a part of the CPUs first, then isolate those";
            Remedy::Manual { text: text.into() }
        }
    };
    Ok(draft
        .remedies([remedy])
        .doubtful(format!("it may run on {}, which nothing keeps other tasks from", cpus(&free))))
}

// Time of real-time tasks in its control groups, on a kernel with CONFIG_RT_GROUP_SCHED.
//
// Version 1 has a file for it. Version 2 has none: a group with the CPU controller has a runtime
// of 0, and SCHED_FIFO is refused in it. A thread that is real-time there already shows that it
// is not.

pub(super) static RT_BANDWIDTH: Check = Check {
    id: "app-rt-bandwidth",
    title: "real-time runtime of the application's control groups",
    why: "with real-time group scheduling the real-time tasks of a group stop once its runtime is \
          used, and with a runtime of 0 SCHED_FIFO is refused",
    source: "Documentation/scheduler/sched-rt-group.rst; Documentation/admin-guide/cgroup-v2.rst \
             (cpu controller); init/Kconfig (RT_GROUP_SCHED)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("no limit of its own"),
    judge: Judge::App(judge_rt_bandwidth),
    ..Check::NEW
};

fn judge_rt_bandwidth(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let groups = &case.app.groups.cpu;
    let mut draft = draft.read(groups, |groups| count(groups.len(), "group"));
    let Some(list) = groups.value() else {
        return Ok(draft.unreadable(groups));
    };
    for group in list {
        draft = draft.read(&group.rt_runtime_us, |us| {
            us.map_or_else(|| "no limit of its own".into(), |us| us.to_string())
        });
    }
    if let Some(group) = list.iter().find(|group| group.rt_runtime_us.value().is_none()) {
        return Ok(draft.unreadable(&group.rt_runtime_us));
    }
    let runtime = |group: &CpuGroup| group.rt_runtime_us.value().copied().flatten();
    let limits = list.iter().filter_map(|group| Some((group, runtime(group)?)));
    let Some((group, us)) = limits.filter(|&(_, us)| us >= 0).min_by_key(|&(_, us)| us) else {
        return Ok(version_2(case, draft, list));
    };
    let paths = vec![group.rt_runtime_us.path.clone()];
    let draft = draft.remedies([Remedy::set(&GROUP_RT_RUNTIME, paths, "950000")]);
    if us == 0 {
        return Ok(draft.bad(format!("{}: real-time tasks are refused", group.folder)));
    }
    let time = crate::ns(u64::try_from(us).unwrap_or(0).saturating_mul(1_000));
    Ok(draft.doubtful(format!(
        "{}: its real-time tasks may use {time} of each period, together",
        group.folder
    )))
}

/// No file limits real-time tasks: version 2 may, without one.
fn version_2(case: &Case<'_>, draft: FindingBuilder, list: &[CpuGroup]) -> Finding {
    let good = "no group of its own limits real-time tasks";
    let mut draft = draft;
    let mut enabled = None;
    for group in list {
        let shown = |quota: &Option<_>| if quota.is_some() { "there" } else { "no such file" };
        draft = draft.read(&group.quota, |quota| shown(quota).into());
        match group.quota.value() {
            None => return draft.unreadable(&group.quota),
            Some(Some(_)) if group.quota.path.ends_with("/cpu.max") => {
                enabled.get_or_insert(group);
            }
            _ => {}
        }
    }
    let Some(group) = enabled else {
        return draft.good(good);
    };
    let (draft, threads) = match case.scheduled(draft) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    if threads.iter().any(|thread| thread.sched.policy.is_real_time()) {
        return draft.good("real-time threads are not refused in its group");
    }
    let facts = case.facts;
    let draft = draft.evidence([option(facts, "RT_GROUP_SCHED")]);
    match built_with(facts, "RT_GROUP_SCHED") {
        None => return draft.unreadable(&facts.kernel.config),
        Some(false) => return draft.good(good),
        Some(true) => {}
    }
    let draft = draft.read(&facts.kernel.cmdline, |line| {
        let word = line.last("rt_group_sched");
        word.map_or_else(
            || "no rt_group_sched".into(),
            |value| format!("rt_group_sched={}", value.unwrap_or_default()),
        )
    });
    let Some(cmdline) = facts.kernel.cmdline.value() else {
        return draft.unreadable(&facts.kernel.cmdline);
    };
    // From 6.16 it can be turned off, by default, too (CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED).
    let is_off = match cmdline.last("rt_group_sched").flatten() {
        Some(value) => value == "0",
        None => built_with(facts, "RT_GROUP_SCHED_DEFAULT_DISABLED") == Some(true),
    };
    match since(facts, (6, 16)) {
        None => return draft.unreadable(&facts.kernel.version),
        Some(true) if is_off => {
            let version = |(major, minor): &(u32, u32)| format!("{major}.{minor}");
            let draft = draft.read(&facts.kernel.version, version);
            return draft.good("real-time group scheduling is turned off");
        }
        Some(_) => {}
    }
    draft
        .remedies([
            Remedy::Boot { parameter: "rt_group_sched=0".into() },
            Remedy::Manual {
                text: "before 6.16: a kernel without CONFIG_RT_GROUP_SCHED, or the process in the \
                       root group when it becomes real-time"
                    .into(),
            },
        ])
        .bad(format!("{}: CONFIG_RT_GROUP_SCHED refuses real-time tasks in it", group.folder))
}

pub(super) static SECCOMP: Check = Check {
    id: "app-seccomp",
    title: "system call filters of the application",
    why: "a filter is a program that the kernel runs at each system call of the thread",
    source: "Documentation/userspace-api/seccomp_filter.rst; proc_pid_status(5) (Seccomp)",
    trade_off: Some("filters keep a broken or broken-into program from doing harm"),
    impact: Impact::Microseconds,
    when: When::Login,
    wanted: Wanted::Text("none, or known"),
    judge: Judge::App(judge_seccomp),
    ..Check::NEW
};

fn judge_seccomp(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let show = |status: &ProcessStatus| match status.seccomp {
        None => "no Seccomp line: a kernel without it".into(),
        Some(mode) => format!("Seccomp {mode}"),
    };
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    match found.iter().find(|(_, status)| status.seccomp == Some(2)) {
        Some((process, _)) => {
            let text = "if its system calls are in the loop, measure with and without the filter";
            Ok(draft.remedies([Remedy::Manual { text: text.into() }]).doubtful(format!(
                "{} (pid {}): each system call is filtered",
                process.name, process.pid
            )))
        }
        None => Ok(draft.good("no system call filter")),
    }
}

// Does what the scheduler takes from real-time tasks by rule reach this application?
//
// `rt-throttling` judges the machine. Here the time that the threads used since they started is
// put beside the limit: an average, so a thread far below it may still reach it in a burst.

pub(super) static THROTTLING: Check = Check {
    id: "app-throttling",
    title: "whether RT throttling or the fair server stops the application",
    why: "a real-time thread that leaves too little time to others is stopped, or has ordinary \
          tasks run in front of it, for 50 ms of each second by default",
    source: "kernel/sched/rt.c (sched_rt_runtime_exceeded); kernel/sched/deadline.c (fair server, \
             6.12); proc_pid_stat(5) (utime, stime)",
    trade_off: Some("without the limit a thread that runs away makes the machine unreachable"),
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("no time taken, or far from the limit"),
    judge: Judge::App(judge_throttling),
    ..Check::NEW
};

fn judge_throttling(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.placed(draft)?;
    let mut used = CpuList::default();
    for thread in &threads {
        used = used.union(&thread.status.cpus);
    }
    let (draft, left_percent, remedy) = limit(case, draft, &used)?;
    let Some(left) = left_percent else {
        return Ok(draft.good(format!("nothing takes time from it on {}", cpus(&used))));
    };
    let uptime = &case.app.uptime_ticks;
    let draft = draft.read(uptime, |ticks| {
        format!("{} since boot", crate::ns(ticks.saturating_mul(10_000_000)))
    });
    let Some(&now) = uptime.value() else {
        return Ok(draft.unreadable(uptime));
    };
    let share = |thread: &PlacedThread<'_>| {
        let age = now.saturating_sub(thread.sched.start_ticks).max(1);
        thread.sched.cpu_ticks.saturating_mul(100) / age
    };
    // `placed` gives at least one.
    let Some(busiest) = threads.iter().max_by_key(|thread| share(thread)) else {
        return Ok(draft.unknown("no thread"));
    };
    let draft = draft.remedies([remedy]);
    let who = name(busiest.thread, busiest.sched);
    let share = share(busiest);
    Ok(if share >= left {
        draft.bad(format!("{who} uses {share} % of a CPU, and may use {left} %"))
    } else {
        draft.doubtful(format!(
            "{who} uses {share} % of a CPU on average, and may use {left} % of any second"
        ))
    })
}

/// The share of a CPU that is left to real-time tasks, in percent; `None`: all of it.
fn limit(
    case: &Case<'_>,
    draft: FindingBuilder,
    used: &CpuList,
) -> Result<(FindingBuilder, Option<u64>, Remedy), Box<Finding>> {
    let sched = &case.facts.sched;
    let percent = |part: u64, whole: u64| part.saturating_mul(100) / whole.max(1);
    if let Some(servers) = sched.fair_server.value() {
        let own = servers.iter().filter(|server| used.contains(server.cpu));
        let shown: Vec<String> = own
            .clone()
            .map(|server| format!("cpu {}: {}", server.cpu, crate::ns(server.runtime_ns)))
            .collect();
        let draft = draft.read(&sched.fair_server, |_| shown.join(", ") + "; others not asked");
        let known = CpuList::new(own.clone().map(|server| server.cpu));
        let missing = used.difference(&known);
        if !missing.is_empty() {
            return Err(Box::new(
                draft.unknown(format!("{}: no fair server listed", cpus(&missing))),
            ));
        }
        let on: Vec<_> = own.filter(|server| server.runtime_ns > 0).collect();
        let least =
            on.iter().map(|server| 100 - percent(server.runtime_ns, server.period_ns).min(100));
        let path = |cpu: u32| format!("{}/cpu{cpu}/runtime", sched.fair_server.path);
        let paths = on.iter().map(|server| path(server.cpu)).collect();
        return Ok((draft, least.min(), Remedy::set(&FAIR_SERVER, paths, "0")));
    }
    let version = &case.facts.kernel.version;
    let draft = draft.read(version, |(major, minor)| format!("{major}.{minor}"));
    match since(case.facts, (6, 12)) {
        None => return Err(Box::new(draft.unreadable(version))),
        Some(true) => return Err(Box::new(draft.unreadable(&sched.fair_server))),
        Some(false) => {}
    }
    let (runtime, period) = (&sched.rt_runtime_us, &sched.rt_period_us);
    let draft = draft.read(runtime, i64::to_string);
    let Some(&runtime_us) = runtime.value() else {
        return Err(Box::new(draft.unreadable(runtime)));
    };
    let remedy = Remedy::set(&RT_RUNTIME, vec![runtime.path.clone()], "-1");
    if runtime_us < 0 {
        return Ok((draft, None, remedy));
    }
    let draft = draft.read(period, i64::to_string);
    let Some(&period_us) = period.value() else {
        return Err(Box::new(draft.unreadable(period)));
    };
    let us = |value: i64| u64::try_from(value).unwrap_or(0);
    let left = (runtime_us < period_us).then(|| percent(us(runtime_us), us(period_us)));
    Ok((draft, left, remedy))
}

// Slack of its timers.
//
// Sleeps of real-time threads have none in any kernel. Timed waits for a futex, so for a
// condition variable, do before 6.12, which is why the value that the file shows matters: from
// 6.12 it is 0 for a real-time thread.

pub(super) static TIMER_SLACK_CHECK: Check = Check {
    id: "app-timer-slack",
    title: "slack of the application's timers",
    why: "a timer with slack may fire later by as much, so that it fires with others: 50 µs by \
          default",
    source: "proc_pid_timerslack_ns(5), PR_SET_TIMERSLACK(2const); kernel/sched/syscalls.c \
             (__setscheduler_params, 6.12); kernel/futex/waitwake.c (futex_wait)",
    wanted: Wanted::Text("0 for real-time threads, else 1 ns"),
    judge: Judge::App(judge_timer_slack),
    ..Check::NEW
};

fn judge_timer_slack(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, mut threads) = case.scheduled(draft)?;
    let is_real_time = threads.iter().any(|thread| thread.sched.policy.is_real_time());
    if is_real_time {
        threads.retain(|thread| thread.sched.policy.is_real_time());
    }
    let readings = threads.iter().map(|found| (found.thread, &found.thread.timer_slack_ns));
    let draft = draft.evidence(of_threads(readings, |ns| crate::ns(*ns)));
    let is_slack =
        |thread: &&Scheduled<'_>| thread.thread.timer_slack_ns.value().is_some_and(|&ns| ns > 1);
    let slack: Vec<&Scheduled<'_>> = threads.iter().filter(is_slack).collect();
    let most = slack.iter().filter_map(|thread| thread.thread.timer_slack_ns.value()).max();
    let Some(&most) = most else {
        return match threads.iter().find(|t| t.thread.timer_slack_ns.value().is_none()) {
            Some(unread) => Ok(draft.unreadable(&unread.thread.timer_slack_ns)),
            None => Ok(draft.good("no slack")),
        };
    };
    let names: Vec<String> = slack.iter().map(|thread| name(thread.thread, thread.sched)).collect();
    let names = first_few(&names, NAMED_MAX);
    let most = crate::ns(most);
    let paths = slack.iter().map(|t| t.thread.timer_slack_ns.path.clone()).take(NAMED_MAX);
    let write = Remedy::set(&TIMER_SLACK, paths.collect(), "1");
    let text = "call prctl(PR_SET_TIMERSLACK, 1) in the thread";
    let draft = draft.remedies([write, Remedy::Manual { text: text.into() }]);
    let (status, what) = match is_real_time {
        true => (
            crate::Status::Doubtful,
            "timed waits for condition variables (sleeps are not delayed)",
        ),
        false => (crate::Status::Bad, "sleeps and timed waits"),
    };
    Ok(draft.status(status, format!("{what} end up to {most} late: {names}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, cpu_group, sched_of, set_some};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn none_some_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CGROUP_QUOTA).summary, "no quota in 2 groups");
        assert_eq!(scene.judge(&CGROUP_QUOTA).status, Good);
        let quota = Quota { max_us: Some(20_000), period_us: 100_000 };
        set_some(&mut cpu_group(&mut scene).quota, quota);
        set_some(&mut cpu_group(&mut scene).throttled, 7);
        let finding = scene.judge(&CGROUP_QUOTA);
        assert_eq!(finding.status, Doubtful);
        assert!(
            finding.summary.starts_with(
                "its ordinary threads may use 20 ms of each 100 ms: stopped in 7 periods"
            ),
            "{}",
            finding.summary
        );
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&CGROUP_QUOTA).status, Bad);
        blank(&mut cpu_group(&mut scene).quota);
        assert_eq!(scene.judge(&CGROUP_QUOTA).status, Unknown);
        blank(&mut scene.app.groups.cpu);
        assert_eq!(scene.judge(&CGROUP_QUOTA).status, Unknown);
    }
}

#[cfg(test)]
mod container_tests {
    use super::*;
    use crate::Status::{Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn none_nested_named_and_unknown() {
        let mut scene = Scene::good();
        assert!(scene.judge(&CONTAINER).summary.starts_with("in no container"));
        status_of(&mut scene).pid_namespaces = 2;
        assert_eq!(scene.judge(&CONTAINER).status, Good);
        let path = "/proc/100/cgroup";
        scene.app.groups.paths = Reading::known(path, "0::/kubepods.slice/x.scope".into());
        assert!(scene.judge(&CONTAINER).summary.ends_with("Kubernetes"));
        blank(&mut scene.app.groups.paths);
        assert_eq!(scene.judge(&CONTAINER).status, Unknown);
    }
}

#[cfg(test)]
mod cpuset_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, cpuset, set_some};
    use crate::testing::cpus as list;

    #[test]
    fn granted_in_part_not_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CPUSET).summary, "CPUs 2-3 granted");
        assert_eq!(scene.judge(&CPUSET).status, Good);
        set_some(&mut cpuset(&mut scene).partition, "isolated invalid (Cpu list)".into());
        assert_eq!(scene.judge(&CPUSET).status, Doubtful);
        set_some(&mut cpuset(&mut scene).partition, "member".into());
        set_some(&mut cpuset(&mut scene).cpus, list(&[0, 1, 2]));
        let finding = scene.judge(&CPUSET);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "CPU 3 not granted, only CPUs 0-2");
        set_some(&mut cpuset(&mut scene).cpus, list(&[0, 1]));
        assert_eq!(scene.judge(&CPUSET).status, Bad);
        blank(&mut cpuset(&mut scene).cpus);
        assert_eq!(scene.judge(&CPUSET).status, Unknown);
    }
}

#[cfg(test)]
mod debugger_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn untraced_traced_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&DEBUGGER).status, Good);
        status_of(&mut scene).tracer = 77;
        assert_eq!(scene.judge(&DEBUGGER).status, Doubtful);
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&DEBUGGER).status, Unknown);
    }
}

#[cfg(test)]
mod isolation_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, cpuset, sched_of, set_cpus, set_some};
    use crate::testing::cpus as list;
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn by_boot_by_partition_or_not() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&ISOLATION).summary, "CPU 2 isolated at boot");
        set_cpus(&mut scene, 101, &[1, 2]);
        let finding = scene.judge(&ISOLATION);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("it may run on CPU 1,"), "{}", finding.summary);
        set_some(&mut cpuset(&mut scene).partition, "isolated".into());
        assert_eq!(scene.judge(&ISOLATION).status, Doubtful, "CPU 1 is not in it");
        set_some(&mut cpuset(&mut scene).cpus, list(&[1, 2]));
        assert_eq!(scene.judge(&ISOLATION).status, Good);
        set_some(&mut cpuset(&mut scene).partition, "isolated invalid (x)".into());
        assert_eq!(scene.judge(&ISOLATION).status, Doubtful);
        blank(&mut scene.facts.cpus.isolated);
        assert_eq!(scene.judge(&ISOLATION).status, Unknown);
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&ISOLATION).status, NotApplicable);
    }
}

#[cfg(test)]
mod rt_bandwidth_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, cpu_group, sched_of, set_some};
    use crate::testing::{set_cmdline, set_config};
    use rtproof_host::{
        Reading,
        facts::{app::Quota, tasks::Policy},
    };

    #[test]
    fn none_some_zero_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Good);
        set_some(&mut cpu_group(&mut scene).rt_runtime_us, 500_000);
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Doubtful);
        set_some(&mut cpu_group(&mut scene).rt_runtime_us, 0);
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Bad);
        set_some(&mut cpu_group(&mut scene).rt_runtime_us, -1);
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Good);
        blank(&mut cpu_group(&mut scene).rt_runtime_us);
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Unknown);
    }

    #[test]
    fn version_2_refuses_without_a_file() {
        let mut scene = Scene::good();
        let none = Quota { max_us: None, period_us: 100_000 };
        set_some(&mut cpu_group(&mut scene).quota, none);
        set_config(&mut scene.facts, "RT_GROUP_SCHED", Some("y"));
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Good, "it has a real-time thread there");
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Bad);
        scene.facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (6, 16));
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Bad);
        set_cmdline(&mut scene.facts, "rt_group_sched=0");
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Good);
        set_cmdline(&mut scene.facts, "quiet");
        set_config(&mut scene.facts, "RT_GROUP_SCHED_DEFAULT_DISABLED", Some("y"));
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Good);
        set_config(&mut scene.facts, "RT_GROUP_SCHED", None);
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Good);
        blank(&mut scene.facts.kernel.config);
        assert_eq!(scene.judge(&RT_BANDWIDTH).status, Unknown);
    }
}

#[cfg(test)]
mod seccomp_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn none_filtered_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&SECCOMP).status, Good);
        status_of(&mut scene).seccomp = Some(2);
        assert_eq!(scene.judge(&SECCOMP).status, Doubtful);
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&SECCOMP).status, Unknown);
    }
}

#[cfg(test)]
mod throttling_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, sched_of};
    use crate::testing::good_stock;
    use rtproof_host::{Reading, reading::ReadingState};

    #[test]
    fn the_fair_server() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&THROTTLING).status, Good);
        let ReadingState::Known { value } = &mut scene.facts.sched.fair_server.state else {
            panic!()
        };
        value[2].runtime_ns = 50_000_000;
        let finding = scene.judge(&THROTTLING);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "loop (tid 101, SCHED_FIFO 80) uses 10 % of a CPU on average, and may use 95 % of any \
             second"
        );
        sched_of(&mut scene, 101).cpu_ticks = 990;
        assert_eq!(scene.judge(&THROTTLING).status, Bad);
        blank(&mut scene.app.uptime_ticks);
        assert_eq!(scene.judge(&THROTTLING).status, Unknown);
        blank(&mut scene.facts.sched.fair_server);
        assert_eq!(scene.judge(&THROTTLING).status, Unknown);
    }

    #[test]
    fn throttling_before_6_12() {
        let mut scene = Scene { facts: good_stock(), ..Scene::good() };
        assert_eq!(scene.judge(&THROTTLING).status, Good);
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        scene.facts.sched.rt_runtime_us = Reading::known(path, 950_000);
        assert_eq!(scene.judge(&THROTTLING).status, Doubtful);
        blank(&mut scene.facts.sched.rt_period_us);
        assert_eq!(scene.judge(&THROTTLING).status, Unknown);
    }
}

#[cfg(test)]
mod timer_slack_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, sched_of, thread};
    use rtproof_host::{Reading, facts::tasks::Policy};

    #[test]
    fn none_real_time_ordinary_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&TIMER_SLACK_CHECK).status, Good);
        let path = "/proc/101/timerslack_ns";
        thread(&mut scene, 101).timer_slack_ns = Reading::known(path, 50_000);
        let finding = scene.judge(&TIMER_SLACK_CHECK);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("up to 50 µs late"), "{}", finding.summary);
        thread(&mut scene, 101).timer_slack_ns = Reading::denied(path, "needs root");
        assert_eq!(scene.judge(&TIMER_SLACK_CHECK).status, Unknown);
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&TIMER_SLACK_CHECK).status, Bad, "50 µs of the ordinary one");
    }
}
