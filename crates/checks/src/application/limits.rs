//! What the process may ask for: three limits, three questions.
//!
//! Limits do not take away what the process has; they decide about its next request.

use rtproof_host::facts::app::{Process, ProcessLimits, Status};
use rtproof_host::facts::limits::Limit;

use super::{container, threads::priority};
use crate::case::{Case, Found};
use crate::check::{Answer, Check, Judge};
use crate::draft::Draft;
use crate::remedies::{of_runtime, right};
use crate::text::bytes;
use crate::{Impact, Remedy, When, quantity};

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

type Both<'a> = (&'a Process, &'a Status, &'a ProcessLimits);

/// Rights and limits of the processes that matter.
fn both<'a>(
    case: &Case<'a>,
    draft: Draft,
    show: impl Fn(&ProcessLimits) -> String,
) -> Found<Both<'a>> {
    let rights = |status: &Status| {
        let has = |is: bool| if is { "yes" } else { "no" };
        let (nice, lock) = (has(status.cap_sys_nice), has(status.cap_ipc_lock));
        format!("CAP_SYS_NICE {nice}, CAP_IPC_LOCK {lock}, VmLck {}", bytes(status.locked_bytes))
    };
    let (draft, statuses) = case.of_processes(draft, |process| &process.status, rights)?;
    let (draft, limits) = case.of_processes(draft, |process| &process.limits, show)?;
    let pairs = statuses.into_iter().zip(limits);
    Ok((draft, pairs.map(|((process, status), (_, limits))| (process, status, limits)).collect()))
}

fn rtprio(draft: Draft, case: &Case<'_>) -> Answer {
    let needed = priority(case.app).unwrap_or(case.intent.priority);
    let draft = draft.wants(format!("CAP_SYS_NICE, or RLIMIT_RTPRIO of at least {needed}"));
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

fn memlock(draft: Draft, case: &Case<'_>) -> Answer {
    let draft = draft.wants("CAP_IPC_LOCK, or RLIMIT_MEMLOCK unlimited");
    let show = |limits: &ProcessLimits| format!("RLIMIT_MEMLOCK {}", size(limits.memlock));
    let (draft, found) = both(case, draft, show)?;
    let short = found
        .iter()
        .find(|(_, status, limits)| !status.cap_ipc_lock && limits.memlock.soft.is_some());
    let Some((process, status, limits)) = short else {
        return Ok(draft.good("it may lock all of its memory"));
    };
    let draft = draft.remedies(remedies(case, "LimitMEMLOCK=infinity", "memlock unlimited"));
    let (most, whole) = (size(limits.memlock), bytes(status.size_bytes));
    let what = format!("{} (pid {}) may lock {most} of {whole}", process.name, process.pid);
    let is_beyond = limits.memlock.soft.is_some_and(|soft| soft < status.size_bytes);
    Ok(match status.locked_bytes {
        0 if is_beyond => draft.bad(format!("{what}, and has locked nothing")),
        locked => draft.doubtful(format!("{what}; locked now: {}", bytes(locked))),
    })
}

fn rttime(draft: Draft, case: &Case<'_>) -> Answer {
    let draft = draft.wants("unlimited");
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
    if let Some(runtime) = container::runtime(&case.app.groups.paths) {
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
    limit.soft.map_or_else(|| "unlimited".into(), bytes)
}

fn time(limit: Limit) -> String {
    limit.soft.map_or_else(|| "unlimited".into(), |us| quantity::ns(us.saturating_mul(1_000)))
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
