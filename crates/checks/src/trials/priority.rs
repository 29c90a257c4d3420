//! Was SCHED_FIFO granted at the priority of the application, and if not, who refused it?
//!
//! All refusals are EPERM. The limit and the capability are looked at first, as the kernel does
//! (kernel/sched/syscalls.c, `user_check_sched_setscheduler`); with either it is the control group
//! (CONFIG_RT_GROUP_SCHED, a group without real-time runtime), a user namespace, whose capabilities
//! do not count, or a seccomp filter.

use rtproof_host::Facts;
use rtproof_model::trial::PriorityObservation;

use crate::check::{Check, Wanted};
use crate::machine::{built_with, option};
use crate::{Finding, Impact, Remedy, Status, When};

pub(super) static CHECK: Check = Check {
    id: "proof-priority",
    wanted: Wanted::Text("SCHED_FIFO at the priority of the application"),
    why: "without it the application is an ordinary task and waits for every other",
    source: "asked here with sched_setscheduler(2); kernel/sched/syscalls.c; sched(7)",
    impact: Impact::Milliseconds,
    when: When::Login,
    ..Check::NEW
};

pub(super) fn judge(seen: &PriorityObservation, facts: &Facts) -> Finding {
    let wanted = seen.priority;
    let call = format!("sched_setscheduler(SCHED_FIFO, {wanted})");
    let draft = CHECK.draft();
    let refusal = match &seen.got {
        Ok(got) if *got == wanted => {
            let summary = format!("SCHED_FIFO {wanted} is granted to this user");
            return draft.took(call, "granted").status(Status::Good, summary);
        }
        Ok(got) => {
            let summary = format!("SCHED_FIFO {wanted} was asked for, and {got} is in force");
            return draft.took(call, format!("{got} in force")).status(Status::Bad, summary);
        }
        Err(refusal) => refusal,
    };
    let cap = &facts.limits.cap_sys_nice;
    let draft = draft
        .took(call, refusal.text.clone())
        .took("getrlimit(RLIMIT_RTPRIO)", seen.limit.to_string())
        .read(cap, |has| if *has { "CAP_SYS_NICE" } else { "no CAP_SYS_NICE" }.into())
        .saw([option(facts, "RT_GROUP_SCHED")])
        .read(&seen.group_runtime_us, |us| format!("{us} µs"))
        .read(&seen.seccomp, |mode| format!("Seccomp: {mode}"))
        .read(&seen.user_namespace, |own| {
            if *own { "a user namespace" } else { "the initial user namespace" }.into()
        });
    let (why, remedies) = reason(seen, facts, refusal.is_permission());
    draft.remedies(remedies).status(Status::Bad, format!("{}: {why}", refusal.text))
}

/// Why, and what to do.
fn reason(seen: &PriorityObservation, facts: &Facts, is_permission: bool) -> (String, Vec<Remedy>) {
    let manual = |text: &str| vec![Remedy::Manual { text: text.into() }];
    if !is_permission {
        let text = "no right is missing; report this with `rtproof capture`";
        return (
            "the kernel refused it for another reason than a missing right".into(),
            manual(text),
        );
    }
    let has_limit = seen.limit >= seen.priority;
    let has_cap = facts.limits.cap_sys_nice.value() == Some(&true);
    let in_namespace = seen.user_namespace.value() == Some(&true);
    if !has_limit && (!has_cap || in_namespace) {
        let most = seen.priority.max(95).to_string();
        let why = if has_cap {
            format!("in a user namespace CAP_SYS_NICE does not count, and rtprio is {}", seen.limit)
        } else {
            format!("no CAP_SYS_NICE, and rtprio is {}", seen.limit)
        };
        let right =
            crate::remedies::right(facts, None, "rtprio", &most, &format!("LimitRTPRIO={most}"));
        return (why, right);
    }
    if seen.group_runtime_us.value() == Some(&0) {
        let path = seen.group_runtime_us.path.clone();
        let why = "its control group has no real-time runtime (CONFIG_RT_GROUP_SCHED)".into();
        let text = format!("give the group a share of its parent's: echo 950000 > {path}");
        return (why, of_group(facts, &text));
    }
    if seen.group_runtime_us.value().is_none() && built_with(facts, "RT_GROUP_SCHED") == Some(true)
    {
        let why = "rights are enough, so that its control group has no real-time runtime is \
                   likely (CONFIG_RT_GROUP_SCHED)"
            .into();
        let text = "run it in the root group, boot with rt_group_sched=0 (Linux 6.16), or use a \
                    kernel without CONFIG_RT_GROUP_SCHED";
        return (why, of_group(facts, text));
    }
    let container = facts.virt.container.value().and_then(Option::as_deref);
    if seen.seccomp.value().is_some_and(|&mode| mode != 0) || container.is_some() {
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
    use rtproof_host::Reading;
    use rtproof_model::trial::Refusal;

    use super::*;
    use crate::testing::{good, set_config};

    fn refused(limit: u32, cap: bool) -> (PriorityObservation, Facts) {
        let mut facts = good();
        facts.limits.cap_sys_nice = Reading::known("/proc/self/status", cap);
        let text = "SCHED_FIFO 80: Operation not permitted (os error 1)".into();
        let seen = PriorityObservation {
            priority: 80,
            got: Err(Refusal { errno: Some(1), text }),
            limit,
            seccomp: Reading::known("/proc/self/status", 0),
            user_namespace: Reading::known("/proc/self/uid_map", false),
            group_runtime_us: Reading::absent("/proc/self/cgroup"),
        };
        (seen, facts)
    }

    fn judged((seen, facts): &(PriorityObservation, Facts)) -> Finding {
        let finding = judge(seen, facts);
        assert_eq!(finding.status, Status::Bad, "{finding:#?}");
        assert!(!finding.remedies.is_empty() && finding.evidence.len() >= 7);
        finding
    }

    #[test]
    fn granted() {
        let (seen, facts) = refused(0, true);
        let finding = judge(&PriorityObservation { got: Ok(80), ..seen.clone() }, &facts);
        assert_eq!(finding.status, Status::Good);
        assert_eq!(judge(&PriorityObservation { got: Ok(1), ..seen }, &facts).status, Status::Bad);
    }

    #[test]
    fn who_refused() {
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
        case.0.got = Err(Refusal { errno: Some(22), text: "SCHED_FIFO 80: invalid".into() });
        assert!(judged(&case).summary.contains("another reason"));
    }
}
