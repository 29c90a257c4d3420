//! Memory of an application: locked or not, page faults, swap, limits, nodes.

use rtproof_host::{
    CpuList,
    facts::{
        app::{AppProcess, MemoryGroup, ProcessLimits, ProcessStatus},
        cpu::Node,
        rights::Limit,
    },
    knobs::cpu::OOM_SCORE_ADJ,
};

use super::{groups, priority};
use crate::case::{Case, CaseResult, GROUPS_MAX, NAMED_MAX, name, of_threads};
use crate::check::{Check, CheckAnswer, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{byte_size, count, first_few, times};
use crate::remedies::{of_runtime, right};
use crate::{Impact, Remedy, When};

// What the process may ask for: three limits, three questions.
//
// Limits do not take away what the process has; they decide about its next request.

pub(super) static RTPRIO: Check = Check {
    id: "app-limits-rtprio",
    title: "right of the application to real-time priorities",
    why: "without the right, sched_setscheduler fails and the thread stays an ordinary one",
    source: "sched(7) (RLIMIT_RTPRIO); kernel/sched/syscalls.c (user_check_sched_setscheduler)",
    impact: Impact::Milliseconds,
    when: When::Login,
    judge: Judge::App(rtprio),
    ..Check::NEW
};

pub(super) static MEMLOCK: Check = Check {
    id: "app-limits-memlock",
    title: "right of the application to lock its memory",
    why: "beyond the limit mlockall fails, or under MCL_FUTURE the next mmap, and pages fault",
    source: "mlock(2) (RLIMIT_MEMLOCK); mm/mlock.c (can_do_mlock, mlockall)",
    impact: Impact::Milliseconds,
    when: When::Login,
    judge: Judge::App(memlock),
    ..Check::NEW
};

pub(super) static RTTIME: Check = Check {
    id: "app-limits-rttime",
    title: "time after which a real-time thread is killed",
    why: "a real-time thread that runs longer than RLIMIT_RTTIME without sleeping gets SIGXCPU, \
          then SIGKILL",
    source: "sched(7), setrlimit(2) (RLIMIT_RTTIME); kernel/sched/rt.c (watchdog); \
             kernel/time/posix-cpu-timers.c",
    trade_off: Some("the limit keeps a machine reachable when a real-time thread runs away"),
    impact: Impact::Milliseconds,
    when: When::Login,
    judge: Judge::App(rttime),
    ..Check::NEW
};

type Both<'a> = (&'a AppProcess, &'a ProcessStatus, &'a ProcessLimits);

/// Rights and limits of the processes that matter.
fn both<'a>(
    case: &Case<'a>,
    draft: FindingBuilder,
    show: impl Fn(&ProcessLimits) -> String,
) -> CaseResult<Both<'a>> {
    let rights = |status: &ProcessStatus| {
        let has = |is: bool| if is { "yes" } else { "no" };
        let (nice, lock) = (has(status.cap_sys_nice), has(status.cap_ipc_lock));
        format!(
            "CAP_SYS_NICE {nice}, CAP_IPC_LOCK {lock}, VmLck {}",
            byte_size(status.locked_bytes)
        )
    };
    let (draft, statuses) = case.of_processes(draft, |process| &process.status, rights)?;
    let (draft, limits) = case.of_processes(draft, |process| &process.limits, show)?;
    let pairs = statuses.into_iter().zip(limits);
    Ok((draft, pairs.map(|((process, status), (_, limits))| (process, status, limits)).collect()))
}

fn rtprio(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let needed = priority(case.app).unwrap_or(case.intent.priority);
    let draft = draft.wanted(format!("CAP_SYS_NICE, or RLIMIT_RTPRIO of at least {needed}"));
    let show = |limits: &ProcessLimits| format!("RLIMIT_RTPRIO {}", number(limits.rtprio));
    let (draft, found) = both(case, draft, show)?;
    let is_short = |limit: Limit| limit.soft.is_some_and(|soft| soft < u64::from(needed));
    let short =
        found.iter().find(|(_, status, limits)| !status.cap_sys_nice && is_short(limits.rtprio));
    let Some((process, _, limits)) = short else {
        return Ok(draft.good(format!("it may ask for priority {needed}")));
    };
    let draft = draft.remedies(remedies(case, "LimitRTPRIO=95", "rtprio 95"));
    let what = format!(
        "{} (pid {}) may ask for at most priority {}",
        process.name,
        process.pid,
        number(limits.rtprio)
    );
    let is_real_time = case.app.threads().any(|thread| thread.is_real_time());
    Ok(match is_real_time {
        true => draft.doubtful(format!("{what}; another made its threads real-time")),
        false => draft.bad(what),
    })
}

fn memlock(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let draft = draft.wanted("CAP_IPC_LOCK, or RLIMIT_MEMLOCK unlimited");
    let show = |limits: &ProcessLimits| format!("RLIMIT_MEMLOCK {}", size(limits.memlock));
    let (draft, found) = both(case, draft, show)?;
    let short = found
        .iter()
        .find(|(_, status, limits)| !status.cap_ipc_lock && limits.memlock.soft.is_some());
    let Some((process, status, limits)) = short else {
        return Ok(draft.good("it may lock all of its memory"));
    };
    let draft = draft.remedies(remedies(case, "LimitMEMLOCK=infinity", "memlock unlimited"));
    let (most, whole) = (size(limits.memlock), byte_size(status.size_bytes));
    let what = format!("{} (pid {}) may lock {most} of {whole}", process.name, process.pid);
    let is_beyond = limits.memlock.soft.is_some_and(|soft| soft < status.size_bytes);
    Ok(match status.locked_bytes {
        0 if is_beyond => draft.bad(format!("{what}, and has locked nothing")),
        locked => draft.doubtful(format!("{what}; locked now: {}", byte_size(locked))),
    })
}

fn rttime(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let draft = draft.wanted("unlimited");
    let show = |limits: &ProcessLimits| format!("RLIMIT_RTTIME {}", time(limits.rttime));
    let (draft, found) = case.of_processes(draft, |process| &process.limits, show)?;
    let limited = found.iter().find(|(_, limits)| limits.rttime.soft.is_some());
    let Some((process, limits)) = limited else {
        return Ok(draft.good("no limit on the time between two sleeps"));
    };
    let draft = draft.remedies(remedies(case, "LimitRTTIME=infinity", "rttime unlimited"));
    Ok(draft.doubtful(format!(
        "{} (pid {}): a real-time thread may run {} without sleeping, then it gets SIGXCPU",
        process.name,
        process.pid,
        time(limits.rttime)
    )))
}

/// In the unit where it is a service, else in the limits of the login.
fn remedies(case: &Case<'_>, unit: &str, login: &str) -> Vec<Remedy> {
    if let Some(drop_in) = case.drop_in(unit) {
        return vec![drop_in];
    }
    let (name, value) = login.split_once(' ').unwrap_or((login, ""));
    // Seen from the host, it is the application that is in a container.
    if let Some(runtime) = groups::runtime(&case.app.groups.paths) {
        return vec![Remedy::Manual { text: of_runtime(runtime, name, value) }];
    }
    let mut remedies = right(case.facts, case.intent.user.as_ref(), name, value, unit);
    remedies.truncate(2);
    remedies
}

fn number(limit: Limit) -> String {
    limit.soft.map_or_else(|| "unlimited".into(), |soft| soft.to_string())
}

fn size(limit: Limit) -> String {
    limit.soft.map_or_else(|| "unlimited".into(), byte_size)
}

fn time(limit: Limit) -> String {
    limit.soft.map_or_else(|| "unlimited".into(), |us| crate::ns(us.saturating_mul(1_000)))
}

pub(super) static MEMORY_LIMIT: Check = Check {
    id: "app-memory-limit",
    title: "memory limits of the application's control groups",
    why: "at the limit of its group a thread that allocates has to free memory itself first, and \
          above memory.high it is made to sleep",
    source: "Documentation/admin-guide/cgroup-v2.rst (memory.high, memory.max, memory.events)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("none that is met"),
    judge: Judge::App(judge_memory_limit),
    ..Check::NEW
};

fn judge_memory_limit(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let groups = &case.app.groups.memory;
    let mut draft = draft.read(groups, |groups| count(groups.len(), "group"));
    let Some(list) = groups.value() else {
        return Ok(draft.unreadable(groups));
    };
    for group in list {
        let limit = |limit: &Option<u64>| limit.map_or_else(|| "no limit".into(), byte_size);
        let hits = |hits: &Option<u64>| {
            hits.map_or_else(|| "no such file".into(), |hits| format!("met {}", times(hits)))
        };
        draft = draft.read(&group.limit_bytes, limit).read(&group.hits, hits);
    }
    let hits = |group: &&MemoryGroup| group.hits.value().copied().flatten().unwrap_or(0) > 0;
    let limit = |group: &MemoryGroup| group.limit_bytes.value().copied().flatten();
    if let Some(group) = list.iter().find(|group| hits(group) && limit(group).is_some()) {
        let most = limit(group).map_or_else(String::new, byte_size);
        let met = times(group.hits.value().copied().flatten().unwrap_or(0));
        return Ok(draft
            .remedies([Remedy::Manual {
                text: "raise MemoryHigh= and MemoryMax= of the unit, or of those above".into(),
            }])
            .doubtful(format!("{}: the limit of {most} was met {met}", group.folder)));
    }
    for group in list {
        if group.limit_bytes.value().is_none() {
            return Ok(draft.unreadable(&group.limit_bytes));
        }
        if group.hits.value().is_none() {
            return Ok(draft.unreadable(&group.hits));
        }
    }
    let least = list.iter().filter_map(limit).min();
    Ok(draft.good(match least {
        Some(least) => format!("limit of {}, not met", byte_size(least)),
        None => "no limit".into(),
    }))
}

// Is its memory locked?
//
// VmLck counts locked address space, VmRSS what is resident. Without a lock even a resident page
// of the program may be dropped and read again from disk, with or without swap. Where VmLck covers
// all but a little of VmSize, mlockall(2) with both flags is in force: vdso and vvar are never
// counted. What else is left out may be device memory and huge pages, which cannot be paged, or
// memory mapped after an mlockall(MCL_CURRENT) alone: only the user knows.

/// Pages that the kernel maps and never counts as locked: vdso, vvar and their like, some pages of
/// up to 64 KiB each.
const NEVER_LOCKED_BYTES: u64 = 512 << 10;

pub(super) static MEMORY_LOCKED: Check = Check {
    id: "app-memory-locked",
    title: "memory of the application that is locked",
    why: "the first access to a page that is not resident is a page fault: µs when memory is at \
          hand, ms when the page is read from disk",
    source: "mlockall(2); proc_pid_status(5) (VmLck, VmRSS); mm/mlock.c (mlock_fixup)",
    trade_off: Some("locked memory is lost to all others"),
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("the whole address space: mlockall(MCL_CURRENT | MCL_FUTURE)"),
    judge: Judge::App(judge_memory_locked),
    ..Check::NEW
};

fn judge_memory_locked(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    let text = "call mlockall(MCL_CURRENT | MCL_FUTURE) at the start, before threads are made";
    let remedy = || [Remedy::Manual { text: text.into() }];
    if let Some((process, status)) = found.iter().find(|(_, status)| status.locked_bytes == 0) {
        let resident = byte_size(status.resident_bytes);
        return Ok(draft.remedies(remedy()).bad(format!(
            "{} (pid {}): none of its {resident} is locked",
            process.name, process.pid
        )));
    }
    let open = |status: &ProcessStatus| {
        let locked = status.locked_bytes.saturating_add(status.hugetlb_bytes);
        status.size_bytes.saturating_sub(locked)
    };
    match found.iter().find(|(_, status)| open(status) > NEVER_LOCKED_BYTES) {
        Some((process, status)) => {
            let least = status.resident_bytes.saturating_sub(status.locked_bytes);
            let resident = match least {
                0 => String::new(),
                least => format!(", at least {} of it resident", byte_size(least)),
            };
            Ok(draft.remedies(remedy()).doubtful(format!(
                "{} (pid {}): {} of its address space is not locked{resident}: device memory, or \
                 memory that was mapped later",
                process.name,
                process.pid,
                byte_size(open(status)),
            )))
        }
        None => {
            let locked = found
                .iter()
                .fold(0_u64, |sum, (_, status)| sum.saturating_add(status.locked_bytes));
            let resident = found
                .iter()
                .fold(0_u64, |sum, (_, status)| sum.saturating_add(status.resident_bytes));
            let rest = if locked.saturating_sub(resident) > NEVER_LOCKED_BYTES {
                "; the rest is only reserved, or under MCL_ONFAULT faults once"
            } else {
                ""
            };
            Ok(draft.good(format!(
                "all of the address space is locked: {}, {} resident{rest}",
                byte_size(locked),
                byte_size(resident)
            )))
        }
    }
}

fn show(status: &ProcessStatus) -> String {
    format!(
        "VmLck {}, VmRSS {}, VmSize {}, HugetlbPages {}",
        byte_size(status.locked_bytes),
        byte_size(status.resident_bytes),
        byte_size(status.size_bytes),
        byte_size(status.hugetlb_bytes)
    )
}

// Memory nodes that it may take memory from: is that of its CPUs among them?

pub(super) static MEMORY_NODES: Check = Check {
    id: "app-memory-nodes",
    title: "memory nodes that the application may use",
    why: "memory of another node is reached over the link between the sockets, which others load",
    source: "numa(7); proc_pid_status(5) (Mems_allowed_list); \
             Documentation/admin-guide/cgroup-v2.rst (cpuset.mems)",
    impact: Impact::Microseconds,
    when: When::Login,
    wanted: Wanted::Text("those of the threads' CPUs"),
    judge: Judge::App(judge_memory_nodes),
    ..Check::NEW
};

fn judge_memory_nodes(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.placed(draft)?;
    let nodes = &case.facts.cpus.nodes;
    let draft = draft.read(nodes, |nodes| {
        let shown: Vec<String> =
            nodes.iter().map(|node| format!("node {}: {}", node.id, node.cpus)).collect();
        first_few(&shown, GROUPS_MAX)
    });
    let Some(list) = nodes.value() else {
        return Ok(draft.unreadable(nodes));
    };
    if list.len() < 2 {
        return Ok(draft.good("one memory node"));
    }
    let readings = threads.iter().map(|found| (found.thread, &found.thread.status));
    let draft = draft.evidence(of_threads(readings, |status| format!("nodes {}", status.mems)));
    let far: Vec<String> = threads
        .iter()
        .filter(|thread| is_far(&thread.status.cpus, &thread.status.mems, list))
        .map(|thread| name(thread.thread, thread.sched))
        .collect();
    if !far.is_empty() {
        let text = "allow the node of its CPUs: AllowedMemoryNodes=, cpuset.mems, numactl(8)";
        let names = first_few(&far, NAMED_MAX);
        return Ok(draft
            .remedies([Remedy::Manual { text: text.into() }])
            .bad(format!("only memory of other nodes than its CPUs': {names}")));
    }
    let wide: Vec<String> = threads
        .iter()
        .filter(|thread| of_cpus(&thread.status.cpus, list).len() > 1)
        .map(|thread| name(thread.thread, thread.sched))
        .collect();
    if !wide.is_empty() {
        let text = "keep each thread on the CPUs of one node";
        let names = first_few(&wide, NAMED_MAX);
        return Ok(draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("may move between nodes, away from its memory: {names}")));
    }
    Ok(draft.good("each thread on one node, whose memory it may use"))
}

fn of_cpus<'a>(cpus: &CpuList, nodes: &'a [Node]) -> Vec<&'a Node> {
    nodes.iter().filter(|node| !node.cpus.intersection(cpus).is_empty()).collect()
}

/// Whether memory of none of the nodes of these CPUs may be used.
fn is_far(cpus: &CpuList, mems: &CpuList, nodes: &[Node]) -> bool {
    let own = of_cpus(cpus, nodes);
    !own.is_empty() && !mems.is_empty() && !own.iter().any(|node| mems.contains(node.id))
}

// Is it among the first to be killed when memory runs out?

pub(super) static OOM: Check = Check {
    id: "app-oom",
    title: "whether the application is spared when memory runs out",
    why: "locked memory makes a process large, and of equal scores the largest is killed",
    source: "proc_pid_oom_score_adj(5); mm/oom_kill.c (oom_badness)",
    trade_off: Some("a process that is never killed may take the whole machine with it"),
    impact: Impact::Information,
    wanted: Wanted::Text("at most 0; -1000 is never"),
    judge: Judge::App(judge_oom),
    ..Check::NEW
};

fn judge_oom(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, found) =
        case.of_processes(draft, |process| &process.oom_score_adj, i64::to_string)?;
    match found.iter().find(|&&(_, &score)| score > 0) {
        Some((process, score)) => {
            let paths = vec![process.oom_score_adj.path.clone()];
            Ok(draft
                .remedies([Remedy::set(&OOM_SCORE_ADJ, paths, "-900")])
                .remedies(case.drop_in("OOMScoreAdjust=-900"))
                .doubtful(format!(
                    "{} (pid {}) is offered as one of the first (oom_score_adj {score})",
                    process.name, process.pid
                )))
        }
        None => {
            let most = found.iter().map(|(_, score)| **score).max().unwrap_or(0);
            Ok(draft.good(format!("oom_score_adj {most}")))
        }
    }
}

// Page faults of the real-time threads since they started.
//
// Minor faults belong to every start: one reading mixes those of the loop with those before
// it, so they are reported and not judged. A major fault waited for a disk.

pub(super) static PAGE_FAULTS: Check = Check {
    id: "app-page-faults",
    title: "page faults of the application's real-time threads",
    why: "a major fault stops the thread until a page is read from disk, a minor one while the \
          kernel finds and clears a page",
    source: "proc_pid_stat(5) (minflt, majflt); mlockall(2)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("no major fault; no new minor ones"),
    judge: Judge::App(judge_page_faults),
    ..Check::NEW
};

fn judge_page_faults(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.real_time(draft)?;
    let readings = threads.iter().map(|found| (found.thread, &found.thread.sched));
    let draft = draft.evidence(of_threads(readings, |sched| {
        format!("{} major, {} minor", sched.major_faults, sched.minor_faults)
    }));
    let major: Vec<String> = threads
        .iter()
        .filter(|found| found.sched.major_faults > 0)
        .map(|found| {
            let number = found.sched.major_faults;
            format!("{number} of {}", name(found.thread, found.sched))
        })
        .collect();
    let minor: u64 =
        threads.iter().fold(0, |sum, found| sum.saturating_add(found.sched.minor_faults));
    if major.is_empty() {
        return Ok(draft.good(format!(
            "no major fault, {minor} minor since the start of {}",
            count(threads.len(), "real-time thread")
        )));
    }
    let command = format!("ps -L -o tid,comm,min_flt,maj_flt -p {}", case.app.pid);
    let text = "lock memory before the loop starts; then the counts no longer rise";
    Ok(draft
        .remedies([Remedy::Manual { text: text.into() }, Remedy::Command { command }])
        .doubtful(format!(
            "major faults since the start, perhaps before the loop: {}",
            first_few(&major, NAMED_MAX)
        )))
}

// Is a part of it in swap now?

pub(super) static SWAPPED: Check = Check {
    id: "app-swapped",
    title: "memory of the application that is in swap",
    why: "the next access to a page in swap waits until it is read back",
    source: "proc_pid_status(5) (VmSwap); mm/memory.c (do_swap_page)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("none"),
    judge: Judge::App(judge_swapped),
    ..Check::NEW
};

fn judge_swapped(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let show = |status: &ProcessStatus| format!("VmSwap {}", byte_size(status.swapped_bytes));
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    let sum = |sum: u64, found: &(_, &ProcessStatus)| sum.saturating_add(found.1.swapped_bytes);
    let swapped = found.iter().fold(0, sum);
    if swapped == 0 {
        return Ok(draft.good("nothing of it is in swap"));
    }
    let text = "lock its memory with mlockall(2), which reads it back, or run without swap";
    Ok(draft
        .remedies([Remedy::Manual { text: text.into() }])
        .bad(format!("{} of it is in swap", byte_size(swapped))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, limits_of, no_rights, sched_of, status_of};
    use rtproof_host::facts::tasks::Policy;

    const SOME: Limit = Limit { soft: Some(10), hard: Some(10) };

    #[test]
    fn priorities() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&RTPRIO).status, Good);
        limits_of(&mut scene).rtprio = SOME;
        assert_eq!(scene.judge(&RTPRIO).status, Good, "CAP_SYS_NICE");
        no_rights(&mut scene);
        assert_eq!(scene.judge(&RTPRIO).status, Doubtful);
        sched_of(&mut scene, 101).policy = Policy::Other;
        let finding = scene.judge(&RTPRIO);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "arm (pid 100) may ask for at most priority 10");
        blank(&mut scene.app.processes[0].limits);
        assert_eq!(scene.judge(&RTPRIO).status, Unknown);
    }

    #[test]
    fn locked_memory() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&MEMLOCK).status, Good);
        limits_of(&mut scene).memlock = SOME;
        no_rights(&mut scene);
        assert_eq!(scene.judge(&MEMLOCK).status, Doubtful);
        status_of(&mut scene).locked_bytes = 0;
        assert_eq!(scene.judge(&MEMLOCK).status, Bad);
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&MEMLOCK).status, Unknown);
    }

    #[test]
    fn time_between_sleeps() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&RTTIME).status, Good);
        limits_of(&mut scene).rttime = Limit { soft: Some(200_000), hard: None };
        let finding = scene.judge(&RTTIME);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("may run 200 ms without"), "{}", finding.summary);
        blank(&mut scene.app.processes[0].limits);
        assert_eq!(scene.judge(&RTTIME).status, Unknown);
    }
}

#[cfg(test)]
mod memory_limit_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, memory_group, set_some};

    #[test]
    fn none_unmet_met_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&MEMORY_LIMIT).summary, "no limit");
        set_some(&mut memory_group(&mut scene).limit_bytes, 1 << 20);
        let finding = scene.judge(&MEMORY_LIMIT);
        assert_eq!((finding.status, finding.summary.as_str()), (Good, "limit of 1 MiB, not met"));
        set_some(&mut memory_group(&mut scene).hits, 3);
        assert_eq!(scene.judge(&MEMORY_LIMIT).status, Doubtful);
        blank(&mut memory_group(&mut scene).limit_bytes);
        assert_eq!(scene.judge(&MEMORY_LIMIT).status, Unknown);
    }
}

#[cfg(test)]
mod memory_locked_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn all_some_none_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&MEMORY_LOCKED).status, Good);
        let status = status_of(&mut scene);
        (status.size_bytes, status.hugetlb_bytes) = (status.size_bytes + (1 << 30), 1 << 30);
        assert_eq!(scene.judge(&MEMORY_LOCKED).status, Good, "huge pages cannot be paged");
        status_of(&mut scene).locked_bytes = 1 << 20;
        let finding = scene.judge(&MEMORY_LOCKED);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("at least 7 MiB of it resident"), "{}", finding.summary);
        status_of(&mut scene).locked_bytes = 0;
        let finding = scene.judge(&MEMORY_LOCKED);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "arm (pid 100): none of its 8 MiB is locked");
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&MEMORY_LOCKED).status, Unknown);
    }
}

#[cfg(test)]
mod memory_nodes_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, set_cpus, thread};
    use crate::testing::cpus;
    use rtproof_host::{Reading, reading::ReadingState};

    #[test]
    fn one_node_near_far_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&MEMORY_NODES).summary, "one memory node");
        let node = |id, on: &[u32]| Node { id, cpus: cpus(on) };
        let nodes = vec![node(0, &[0, 1]), node(1, &[2, 3])];
        scene.facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        assert_eq!(scene.judge(&MEMORY_NODES).status, Bad, "node 0 for CPU 2");
        let ReadingState::Known { value } = &mut thread(&mut scene, 101).status.state else {
            panic!()
        };
        value.mems = cpus(&[0, 1]);
        assert_eq!(scene.judge(&MEMORY_NODES).status, Good);
        set_cpus(&mut scene, 101, &[1, 2]);
        assert_eq!(scene.judge(&MEMORY_NODES).status, Doubtful);
        blank(&mut scene.facts.cpus.nodes);
        assert_eq!(scene.judge(&MEMORY_NODES).status, Unknown);
    }
}

#[cfg(test)]
mod oom_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank};
    use rtproof_host::Reading;

    #[test]
    fn spared_offered_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&OOM).status, Good);
        let path = "/proc/100/oom_score_adj";
        scene.app.processes[0].oom_score_adj = Reading::known(path, 500);
        assert_eq!(scene.judge(&OOM).status, Doubtful);
        blank(&mut scene.app.processes[0].oom_score_adj);
        assert_eq!(scene.judge(&OOM).status, Unknown);
    }
}

#[cfg(test)]
mod page_faults_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, thread};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn major_minor_and_unknown() {
        let mut scene = Scene::good();
        sched_of(&mut scene, 100).major_faults = 9;
        let finding = scene.judge(&PAGE_FAULTS);
        assert_eq!(finding.status, Good, "faults of an ordinary thread");
        assert!(finding.summary.contains("120 minor"), "{}", finding.summary);
        sched_of(&mut scene, 101).major_faults = 1;
        assert_eq!(scene.judge(&PAGE_FAULTS).status, Doubtful);
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&PAGE_FAULTS).status, NotApplicable);
        blank(&mut thread(&mut scene, 101).sched);
        assert_eq!(scene.judge(&PAGE_FAULTS).status, Unknown);
    }
}

#[cfg(test)]
mod swapped_tests {
    use super::*;
    use crate::Status::{Bad, Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn good_bad_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&SWAPPED).status, Good);
        status_of(&mut scene).swapped_bytes = 4096;
        let finding = scene.judge(&SWAPPED);
        assert_eq!((finding.status, finding.summary.as_str()), (Bad, "4 KiB of it is in swap"));
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&SWAPPED).status, Unknown);
    }
}
