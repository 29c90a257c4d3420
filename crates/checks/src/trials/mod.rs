//! What a trial on the live machine shows, as a [`Finding`]: one pure function for each trial of
//! the trials, from what was seen, the facts and the intent.
//!
//! A trial tries what a check infers, so it may be sure where the check can only doubt: its finding
//! is good or bad where the thing was seen, and unknown where it could not be tried.

mod isolation;
mod smi;
mod throttling;

use rtproof_host::Facts;
use rtproof_model::{
    Observation,
    trial::{MemlockObservation, PriorityObservation},
};

use crate::check::Wanted;
use crate::machine::{built_with, option};
use crate::{Check, Finding, Impact, Intent, Remedy, Status, When, known};

/// The finding of one trial.
pub fn judge(observed: &Observation, facts: &Facts, intent: &Intent) -> Finding {
    let finding = match observed {
        Observation::Throttling(observed) => throttling::judge(observed, facts, intent),
        Observation::Isolation(observed) => isolation::judge(observed, facts, intent),
        Observation::Priority(observed) => judge_priority(observed, facts),
        Observation::Memlock(observed) => judge_memlock(observed, facts),
        Observation::Smi(observed) => smi::judge(observed, facts),
    };
    known::fit(finding, facts)
}

/// The finding of a trial that could not be run at all.
pub fn not_run(trial: &str, why: &str) -> Finding {
    let check = CHECKS.iter().find(|check| check.id.ends_with(trial));
    let check = *check.unwrap_or(&&throttling::CHECK);
    check.draft().measured(format!("trial {trial}"), why).unknown(format!("not tried: {why}"))
}

/// Every check, in the order of the trials.
const CHECKS: &[&Check] =
    &[&PRIORITY, &MEMLOCK, &throttling::CHECK, &isolation::CHECK, &smi::CHECK];

// What several trials ask of their run and of the machine.

/// A trial that was ended before a second shows what it saw, but not that there is nothing.
const SHORT_NS: u64 = 1_000_000_000;

/// Whether lockdown keeps debugfs closed.
fn is_locked_down(facts: &Facts) -> bool {
    let mode = facts.kernel.lockdown.value().map(String::as_str);
    matches!(mode, Some("integrity" | "confidentiality"))
}

// Did `mlockall` work for a whole process, and were there no page faults after it?

static MEMLOCK: Check = Check {
    id: "proof-memlock",
    wanted: Wanted::Text("all memory locked, and no page fault after that"),
    why: "without locked memory a page may be missing when it is needed: a page fault, from disk \
          milliseconds",
    source: "tried here in a child process; mlockall(2), getrlimit(2); mm/mlock.c",
    impact: Impact::Milliseconds,
    when: When::Login,
    ..Check::NEW
};

fn judge_memlock(observed: &MemlockObservation, facts: &Facts) -> Finding {
    let call = format!("mlockall(MCL_CURRENT | MCL_FUTURE) and {}", mib(observed.bytes));
    let limit = observed.limit.map_or("unlimited".into(), mib);
    let draft = MEMLOCK.draft();
    let run = match &observed.run {
        Ok(run) => run,
        Err(refusal) => {
            let cap = &facts.limits.cap_ipc_lock;
            let draft = draft
                .measured(call, refusal.text.clone())
                .measured("getrlimit(RLIMIT_MEMLOCK)", &*limit)
                .read(cap, |has| if *has { "CAP_IPC_LOCK" } else { "no CAP_IPC_LOCK" }.into());
            // EPERM: no right at all. ENOMEM, EAGAIN: beyond the limit, or no memory.
            let is_limit = refusal.errno.is_some() && observed.limit.is_some();
            if is_limit && cap.value() != Some(&true) {
                let right = crate::remedies::right(
                    facts,
                    None,
                    "memlock",
                    "unlimited",
                    "LimitMEMLOCK=infinity",
                );
                let summary = format!("{}: this user may lock {limit}", refusal.text);
                return draft.remedies(right).status(Status::Bad, summary);
            }
            if refusal.errno.is_some() {
                let summary = format!("{}: the limit is not the reason", refusal.text);
                return draft.status(Status::Bad, summary);
            }
            return draft.status(Status::Unknown, format!("not tried: {}", refusal.text));
        }
    };
    let faults = format!("{} minor, {} major", run.faults_minor, run.faults_major);
    let draft = draft
        .measured(call, "granted")
        .measured("getrlimit(RLIMIT_MEMLOCK)", limit)
        .measured("VmLck of the child", mib(run.locked_bytes))
        .measured("page faults of the child after that", &*faults);
    let size = mib(observed.bytes);
    match run.faults_minor + run.faults_major {
        0 => draft.status(Status::Good, format!("{size} locked and written without a page fault")),
        // Hinting faults of NUMA balancing, KSM and the like come on locked pages too.
        count => draft.status(
            Status::Doubtful,
            format!(
                "{size} locked, and {} page faults ({faults}) all the same: NUMA balancing, KSM \
                 or compaction; see the checks of memory",
                crate::grouped(count)
            ),
        ),
    }
}

fn mib(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    }
}

// Was SCHED_FIFO granted at the priority of the application, and if not, what refused it?
//
// All refusals are EPERM. The limit and the capability are looked at first, as the kernel does
// (kernel/sched/syscalls.c, `user_check_sched_setscheduler`); with either it is the control group
// (CONFIG_RT_GROUP_SCHED, a group without real-time runtime), a user namespace, whose capabilities
// do not count, or a seccomp filter.

static PRIORITY: Check = Check {
    id: "proof-priority",
    wanted: Wanted::Text("SCHED_FIFO at the priority of the application"),
    why: "without it the application is an ordinary task and waits for every other",
    source: "asked here with sched_setscheduler(2); kernel/sched/syscalls.c; sched(7)",
    impact: Impact::Milliseconds,
    when: When::Login,
    ..Check::NEW
};

fn judge_priority(observed: &PriorityObservation, facts: &Facts) -> Finding {
    let wanted = observed.priority;
    let call = format!("sched_setscheduler(SCHED_FIFO, {wanted})");
    let draft = PRIORITY.draft();
    let refusal = match &observed.granted {
        Ok(granted) if *granted == wanted => {
            let summary = format!("SCHED_FIFO {wanted} is granted to this user");
            return draft.measured(call, "granted").status(Status::Good, summary);
        }
        Ok(granted) => {
            let summary = format!("SCHED_FIFO {wanted} was asked for, and {granted} is in force");
            return draft
                .measured(call, format!("{granted} in force"))
                .status(Status::Bad, summary);
        }
        Err(refusal) => refusal,
    };
    let cap = &facts.limits.cap_sys_nice;
    let draft = draft
        .measured(call, refusal.text.clone())
        .measured("getrlimit(RLIMIT_RTPRIO)", observed.limit.to_string())
        .read(cap, |has| if *has { "CAP_SYS_NICE" } else { "no CAP_SYS_NICE" }.into())
        .evidence([option(facts, "RT_GROUP_SCHED")])
        .read(&observed.group_runtime_us, |us| format!("{us} µs"))
        .read(&observed.seccomp, |mode| format!("Seccomp: {mode}"))
        .read(&observed.user_namespace, |own| {
            if *own { "a user namespace" } else { "the initial user namespace" }.into()
        });
    let (why, remedies) = reason(observed, facts, refusal.is_permission());
    draft.remedies(remedies).status(Status::Bad, format!("{}: {why}", refusal.text))
}

/// Why, and what to do.
fn reason(
    observed: &PriorityObservation,
    facts: &Facts,
    is_permission: bool,
) -> (String, Vec<Remedy>) {
    let manual = |text: &str| vec![Remedy::Manual { text: text.into() }];
    if !is_permission {
        let text = "no right is missing; report this with `rtproof capture`";
        return (
            "the kernel refused it for another reason than a missing right".into(),
            manual(text),
        );
    }
    let has_limit = observed.limit >= observed.priority;
    let has_cap = facts.limits.cap_sys_nice.value() == Some(&true);
    let in_namespace = observed.user_namespace.value() == Some(&true);
    if !has_limit && (!has_cap || in_namespace) {
        let most = observed.priority.max(95).to_string();
        let why = if has_cap {
            format!(
                "in a user namespace CAP_SYS_NICE does not count, and rtprio is {}",
                observed.limit
            )
        } else {
            format!("no CAP_SYS_NICE, and rtprio is {}", observed.limit)
        };
        let right =
            crate::remedies::right(facts, None, "rtprio", &most, &format!("LimitRTPRIO={most}"));
        return (why, right);
    }
    if observed.group_runtime_us.value() == Some(&0) {
        let path = observed.group_runtime_us.path.clone();
        let why = "its control group has no real-time runtime (CONFIG_RT_GROUP_SCHED)".into();
        let text = format!("give the group a share of its parent's: echo 950000 > {path}");
        return (why, of_group(facts, &text));
    }
    if observed.group_runtime_us.value().is_none()
        && built_with(facts, "RT_GROUP_SCHED") == Some(true)
    {
        let why = "rights are enough, so that its control group has no real-time runtime is \
                   likely (CONFIG_RT_GROUP_SCHED)"
            .into();
        let text = "run it in the root group, boot with rt_group_sched=0 (Linux 6.16), or use a \
                    kernel without CONFIG_RT_GROUP_SCHED";
        return (why, of_group(facts, text));
    }
    let container = facts.virt.container.value().and_then(Option::as_deref);
    if observed.seccomp.value().is_some_and(|&mode| mode != 0) || container.is_some() {
        let within = container.map_or(String::new(), |name| format!(" of {name}"));
        let why = format!("rights are enough, so a seccomp filter{within} is likely");
        let text = "let the container have it: --cap-add SYS_NICE --ulimit rtprio=95, and a \
                    seccomp profile that allows sched_setscheduler";
        return (why, manual(text));
    }
    let text = "look for a security module: dmesg, journalctl -t audit";
    ("rights are enough; a security module (SELinux, AppArmor) may refuse it".into(), manual(text))
}

/// What gives a group real-time runtime. Docker's daemon needs it as well, for the group of all
/// containers: without, it fails to start one.
fn of_group(facts: &Facts, text: &str) -> Vec<Remedy> {
    let manual = |text: &str| Remedy::Manual { text: text.into() };
    let docker = "start dockerd with --cpu-rt-runtime=900000 and the container with \
                  --cpu-rt-runtime=400000 (control groups of version 1)";
    let is_docker = crate::machine::container(facts) == Some("docker");
    is_docker.then(|| manual(docker)).into_iter().chain([manual(text)]).collect()
}

#[cfg(test)]
mod tests {
    use rtproof_model::trial::NAMES;

    use super::*;
    use crate::Status;

    #[test]
    fn every_trial_has_its_check() {
        assert_eq!(NAMES.len(), CHECKS.len());
        for (trial, check) in NAMES.iter().zip(CHECKS) {
            assert_eq!(check.id, format!("proof-{}", trial));
            assert!(!check.why.ends_with('.') && !check.source.is_empty());
            let finding = not_run(trial, "no thread");
            assert_eq!((finding.check.as_str(), finding.status), (check.id, Status::Unknown));
            assert_eq!(finding.summary, "not tried: no thread");
        }
    }
}

#[cfg(test)]
mod memlock_tests {
    use rtproof_host::Reading;
    use rtproof_model::trial::{Locked, Refusal};

    use super::*;
    use crate::testing::good;

    fn seen(run: Result<Locked, Refusal>, limit: Option<u64>) -> MemlockObservation {
        MemlockObservation { bytes: 64 << 20, run, limit }
    }

    fn refusal(errno: Option<i32>) -> Refusal {
        Refusal { errno, text: "mlockall: no".into() }
    }

    #[test]
    fn locked_without_faults_and_with() {
        let locked = Locked { locked_bytes: 70 << 20, faults_minor: 0, faults_major: 0 };
        let finding = judge_memlock(&seen(Ok(locked), None), &good());
        assert_eq!(finding.status, Status::Good);
        assert_eq!(finding.summary, "64 MiB locked and written without a page fault");
        let finding = judge_memlock(&seen(Ok(Locked { faults_minor: 7, ..locked }), None), &good());
        assert_eq!(finding.status, Status::Doubtful);
        assert!(finding.summary.contains("7 page faults"), "{}", finding.summary);
    }

    #[test]
    fn refused_by_the_limit_by_another_or_not_tried() {
        let mut facts = good();
        facts.limits.cap_ipc_lock = Reading::known("/proc/self/status", false);
        let finding = judge_memlock(&seen(Err(refusal(Some(12))), Some(8 << 20)), &facts);
        assert_eq!((finding.status, finding.remedies.len()), (Status::Bad, 3));
        assert!(finding.summary.ends_with("may lock 8 MiB"), "{}", finding.summary);
        let finding = judge_memlock(&seen(Err(refusal(Some(12))), None), &facts);
        assert_eq!((finding.status, finding.remedies.len()), (Status::Bad, 0));
        let finding = judge_memlock(&seen(Err(refusal(None)), None), &facts);
        assert_eq!(finding.status, Status::Unknown);
    }
}

#[cfg(test)]
mod priority_tests {
    use rtproof_host::Reading;
    use rtproof_model::trial::Refusal;

    use super::*;
    use crate::testing::{good, set_config};

    fn refused(limit: u32, cap: bool) -> (PriorityObservation, Facts) {
        let mut facts = good();
        facts.limits.cap_sys_nice = Reading::known("/proc/self/status", cap);
        let text = "SCHED_FIFO 80: Operation not permitted (os error 1)".into();
        let observed = PriorityObservation {
            priority: 80,
            granted: Err(Refusal { errno: Some(1), text }),
            limit,
            seccomp: Reading::known("/proc/self/status", 0),
            user_namespace: Reading::known("/proc/self/uid_map", false),
            group_runtime_us: Reading::absent("/proc/self/cgroup"),
        };
        (observed, facts)
    }

    fn judged((observed, facts): &(PriorityObservation, Facts)) -> Finding {
        let finding = judge_priority(observed, facts);
        assert_eq!(finding.status, Status::Bad, "{finding:#?}");
        assert!(!finding.remedies.is_empty() && finding.evidence.len() >= 7);
        finding
    }

    #[test]
    fn granted() {
        let (observed, facts) = refused(0, true);
        let finding =
            judge_priority(&PriorityObservation { granted: Ok(80), ..observed.clone() }, &facts);
        assert_eq!(finding.status, Status::Good);
        assert_eq!(
            judge_priority(&PriorityObservation { granted: Ok(1), ..observed }, &facts).status,
            Status::Bad
        );
    }

    #[test]
    fn the_reason_of_a_refusal_is_named() {
        let mut case = refused(0, false);
        assert!(judged(&case).summary.ends_with("no CAP_SYS_NICE, and rtprio is 0"));
        case = refused(0, true);
        case.0.user_namespace = Reading::known("/proc/self/uid_map", true);
        assert!(judged(&case).summary.contains("in a user namespace"));
        case = refused(99, false);
        case.0.group_runtime_us = Reading::known("/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", 0);
        let finding = judged(&case);
        assert!(finding.summary.contains("control group has no"), "{}", finding.summary);
        assert!(finding.remedies[0].to_string().contains("/cpu/a/cpu.rt_runtime_us"));
        case = refused(99, false);
        set_config(&mut case.1, "RT_GROUP_SCHED", Some("y"));
        assert!(judged(&case).summary.contains("likely (CONFIG_RT_GROUP_SCHED)"));
        case.1.virt.container = Reading::known("/.dockerenv", Some("docker".into()));
        assert!(judged(&case).remedies[0].to_string().contains("--cpu-rt-runtime=400000"));
        case = refused(0, true);
        case.0.seccomp = Reading::known("/proc/self/status", 2);
        assert!(judged(&case).summary.contains("seccomp"));
        case = refused(0, true);
        assert!(judged(&case).summary.contains("security module"));
        case.0.granted = Err(Refusal { errno: Some(22), text: "SCHED_FIFO 80: invalid".into() });
        assert!(judged(&case).summary.contains("another reason"));
    }
}
