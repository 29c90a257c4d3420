//! Does a right that this process seems to have count here?
//!
//! The kernel asks for CAP_SYS_NICE in the first user namespace: that of a rootless container shows
//! in /proc and is worth nothing. A filter of seccomp may refuse the call whatever the rights are.
//! What the limits say is `limits-rtprio`; nothing is tried here.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "chrt-capability",
    title: "what may refuse a real-time policy in spite of the rights",
    why: "sched_setscheduler fails with EPERM, and an application that does not look runs on as \
          SCHED_OTHER",
    source: "kernel/sched/syscalls.c (capable(CAP_SYS_NICE)); user_namespaces(7); seccomp(2); \
             systemd.exec(5), RestrictRealtime=",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("no foreign user namespace, no seccomp filter"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let (namespace, seccomp) = (&facts.rights.initial_user_namespace, &facts.rights.seccomp);
    let draft = draft
        .read(namespace, |is_initial| match is_initial {
            true => "the first user namespace".into(),
            false => "another user namespace".into(),
        })
        .read(seccomp, |mode| format!("Seccomp: {mode}"));
    let (Some(&is_initial), Some(&mode)) = (namespace.value(), seccomp.value()) else {
        return match namespace.value() {
            None => draft.blind(namespace),
            Some(_) => draft.blind(seccomp),
        };
    };
    let draft = match is_initial {
        true => draft,
        false => match foreign(draft, facts, intent) {
            Ok(draft) => draft,
            Err(finding) => return *finding,
        },
    };
    if mode != 0 {
        return draft
            .remedies([Remedy::Command { command: "rtproof check --prove priority".into() }])
            .doubtful("a seccomp filter is in force: it may refuse sched_setscheduler");
    }
    draft.good(match is_initial {
        true => "the first user namespace, no seccomp filter",
        false => "in a user namespace, where the rtprio limit alone counts, and it is enough",
    })
}

/// In another user namespace the rtprio limit has to be enough.
fn foreign(draft: Draft, facts: &Facts, intent: &Intent) -> Result<Draft, Box<Finding>> {
    let (cap, limit) = (&facts.limits.cap_sys_nice, &facts.limits.rtprio);
    let draft = draft.read(limit, |limit| match limit.soft {
        None => "rtprio unlimited".into(),
        Some(most) => format!("rtprio {most}"),
    });
    let Some(found) = limit.value() else {
        return Err(Box::new(draft.blind(limit)));
    };
    if found.soft.is_none_or(|most| most >= u64::from(intent.priority)) {
        return Ok(draft);
    }
    let draft = draft.remedies([Remedy::Manual {
        text: "start it outside the user namespace (a rootful container with --cap-add SYS_NICE), \
               or raise the rtprio limit of who starts it"
            .into(),
    }]);
    let summary = "in a user namespace CAP_SYS_NICE does not count, and the rtprio limit is lower \
                   than your priority";
    Err(Box::new(match cap.value() {
        Some(true) => draft.read(cap, |_| "CAP_SYS_NICE".into()).bad(summary),
        _ => draft.doubtful(summary),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::limits::Limit};

    fn judge(is_initial: bool, mode: u32, cap: bool, soft: u64) -> Finding {
        let mut facts = good();
        facts.rights.initial_user_namespace = Reading::known("/proc/self/ns/user", is_initial);
        facts.rights.seccomp = Reading::known("/proc/self/status", mode);
        facts.limits.cap_sys_nice = Reading::known("/proc/self/status", cap);
        let limit = Limit { soft: Some(soft), hard: Some(soft) };
        facts.limits.rtprio = Reading::known("/proc/self/limits", limit);
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn a_capability_of_another_namespace_does_not_count() {
        assert_eq!(judge(true, 0, true, 0).status, Good);
        assert_eq!(judge(false, 0, true, 0).status, Bad);
        assert_eq!(judge(false, 0, false, 0).status, Doubtful);
        assert_eq!(judge(false, 0, true, 95).status, Good);
    }

    #[test]
    fn a_filter_may_refuse() {
        let finding = judge(true, 2, true, 0);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("seccomp"), "{}", finding.summary);
        assert_eq!(judge(false, 2, true, 95).status, Doubtful);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let mut facts = good();
        facts.rights.initial_user_namespace = Reading::absent("/proc/self/ns/user");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.rights.seccomp = Reading::absent("/proc/self/status");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
