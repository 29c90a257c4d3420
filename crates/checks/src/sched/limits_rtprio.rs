//! May this user run at the priority asked for?
//!
//! The limits are those of the process that asks: what root may do says nothing of the user that
//! the application runs as, and the finding says so. Of a user that is named, or who asks through
//! sudo, it judges what the limits files grant at the next login.

use rtproof_host::{Facts, facts::limits::Limit};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::remedies::{from_next_login, of_user, right};
use crate::{Finding, Impact, Intent, When, quantity};

pub(super) static CHECK: Check = Check {
    id: "limits-rtprio",
    title: "right to run at the real-time priority",
    why: "without the right, sched_setscheduler fails with EPERM, and an application that does not \
          look runs on as SCHED_OTHER",
    source: "sched(7), getrlimit(2); Wu, \"Real-time programming with Linux, part 2\"",
    impact: Impact::Milliseconds,
    when: When::Login,
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let priority = intent.priority;
    let draft = draft.wants(format!("CAP_SYS_NICE, or at least {priority}"));
    if priority == 0 {
        return draft.not_applicable("no real-time priority is asked for");
    }
    let least = u64::from(priority);
    let most = priority.max(95).to_string();
    let remedies =
        right(facts, intent.user.as_ref(), "rtprio", &most, &format!("LimitRTPRIO={most}"));
    if let Some(finding) = of_user(&draft, intent, "rtprio", least, &remedies) {
        return finding;
    }
    let (cap, limit) = (&facts.limits.cap_sys_nice, &facts.limits.rtprio);
    // Of another user namespace (a rootless container) the kernel does not count it.
    let counts = facts.rights.initial_user_namespace.value() != Some(&false);
    if cap.value() == Some(&true) && counts {
        let draft = draft.read(cap, |_| "CAP_SYS_NICE".into());
        return lasting(draft, facts, "CAP_SYS_NICE: any priority, as this user");
    }
    let draft = draft.read(limit, |limit| format!("rtprio {}", show(limit)));
    let Some(found) = limit.value() else {
        return draft.blind(limit);
    };
    let is_enough = |limit: Option<u64>| limit.is_none_or(|most| most >= least);
    if is_enough(found.soft) {
        let summary = format!("FIFO {priority} allowed, as this user: limit {}", show(found));
        return lasting(draft, facts, &summary);
    }
    let draft = draft.remedies(remedies);
    if is_enough(found.hard) {
        return draft.doubtful(format!(
            "FIFO {priority} needs the soft limit raised first: {}",
            show(found)
        ));
    }
    if cap.value().is_none() {
        return draft.blind(cap);
    }
    draft
        .read(cap, |&has| match has {
            true => "CAP_SYS_NICE, of another user namespace".into(),
            false => "no CAP_SYS_NICE".into(),
        })
        .bad(format!(
            "FIFO {priority} is refused to this user: limit {}{}",
            show(found),
            from_next_login(intent, "rtprio", least)
        ))
}

/// The right is there; RLIMIT_RTTIME may end it with SIGXCPU.
fn lasting(draft: Draft, facts: &Facts, summary: &str) -> Finding {
    let rttime = &facts.limits.rttime;
    let draft = draft.read(rttime, |limit| format!("rttime {}", show(limit)));
    let Some(limit) = rttime.value() else {
        return draft.blind(rttime);
    };
    match limit.soft {
        None => draft.good(summary),
        Some(us) => draft.doubtful(format!(
            "{summary}; RLIMIT_RTTIME kills a real-time task that runs {} without blocking",
            quantity::ns(us.saturating_mul(1_000))
        )),
    }
}

fn show(limit: &Limit) -> String {
    let one = |limit: Option<u64>| limit.map_or("unlimited".into(), |limit| limit.to_string());
    format!("{} (hard {})", one(limit.soft), one(limit.hard))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Remedy;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::account::Account};

    fn with(soft: Option<u64>, hard: Option<u64>, cap: bool) -> Facts {
        let mut facts = good();
        facts.limits.rtprio = Reading::known("/proc/self/limits", Limit { soft, hard });
        facts.limits.cap_sys_nice = Reading::known("/proc/self/status", cap);
        facts
    }

    fn status(facts: &Facts) -> Status {
        CHECK.judge(facts, &intent()).status
    }

    #[test]
    fn the_right_comes_from_the_capability_or_the_limit() {
        assert_eq!(status(&with(Some(0), Some(0), true)), Good);
        assert_eq!(status(&with(Some(80), Some(80), false)), Good);
        assert_eq!(status(&with(None, None, false)), Good);
        assert_eq!(status(&with(Some(79), Some(79), false)), Bad);
        assert_eq!(status(&with(Some(0), Some(95), false)), Doubtful);
    }

    #[test]
    fn half_known_is_unknown_where_it_decides() {
        let mut facts = with(Some(0), Some(0), false);
        facts.limits.cap_sys_nice = Reading::absent("/proc/self/status");
        assert_eq!(status(&facts), Unknown);
        let mut facts = with(Some(0), Some(0), true);
        facts.limits.rtprio = Reading::absent("/proc/self/limits");
        assert_eq!(status(&facts), Good);
    }

    #[test]
    fn a_capability_of_another_namespace_does_not_count() {
        let mut facts = with(Some(0), Some(0), true);
        facts.rights.initial_user_namespace = Reading::known("/proc/self/ns/user", false);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert!(finding.evidence[1].value.contains("another user namespace"), "{finding:?}");
    }

    #[test]
    fn a_container_gets_it_from_its_runtime() {
        let mut facts = with(Some(0), Some(0), false);
        let fixes = |facts: &Facts| -> Vec<String> {
            let remedies = CHECK.judge(facts, &intent()).remedies;
            remedies.iter().map(ToString::to_string).collect()
        };
        assert!(fixes(&facts).iter().any(|fix| fix.contains("@realtime")));
        for (name, part) in [
            ("docker", "--ulimit rtprio=95"),
            ("podman", "--cap-add SYS_NICE"),
            ("kubernetes", "securityContext"),
            ("lxc", "CAP_SYS_NICE, or the limit rtprio 95"),
        ] {
            facts.virt.container = Reading::known("/proc/1/cgroup", Some(name.into()));
            let fixes = fixes(&facts);
            assert!(fixes.len() == 1 && fixes[0].contains(part), "{fixes:?}");
        }
    }

    #[test]
    fn rttime_kills() {
        let mut facts = good();
        let limit = Limit { soft: Some(200_000), hard: Some(200_000) };
        facts.limits.rttime = Reading::known("/proc/self/limits", limit);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("runs 200 ms without blocking"), "{}", finding.summary);
    }

    #[test]
    fn of_a_user_the_limits_files_count() {
        use rtproof_host::facts::account::{Grant, Meant};
        let judge = |meant, grants: Reading<Vec<Grant>>| {
            let user = Some(Account { name: "alice".into(), meant, grants });
            CHECK.judge(&with(Some(0), Some(0), true), &Intent { user, ..intent() })
        };
        let grants = |soft: Option<&str>, hard: Option<&str>| {
            let limit = |limit: Option<&str>| limit.map(str::to_owned);
            let (soft, hard) = (limit(soft), limit(hard));
            let grant = Grant { item: "rtprio".into(), soft, hard, line: "f:1".into() };
            Reading::known("/etc/security", vec![grant])
        };
        let none = || Reading::known("/etc/security", Vec::new());
        assert_eq!(judge(Meant::Stated, grants(Some("95"), Some("95"))).status, Good);
        assert_eq!(judge(Meant::Stated, grants(Some("9"), Some("95"))).status, Doubtful);
        let soft_alone = judge(Meant::Stated, grants(Some("95"), None));
        assert_eq!(soft_alone.status, Bad, "it is cut down to the hard limit");
        let bad = judge(Meant::Stated, none());
        assert_eq!(bad.status, Bad);
        let Remedy::Changes { changes, then: None, .. } = &bad.remedies[0] else { panic!() };
        assert_eq!(changes[1].change.target(), "group realtime, member alice");
        assert_eq!(judge(Meant::Asked, none()).status, Doubtful);
        assert_eq!(judge(Meant::Asked, grants(Some("80"), Some("80"))).status, Good);
        assert_eq!(judge(Meant::Stated, Reading::absent("/etc/passwd")).status, Unknown);
        assert_eq!(judge(Meant::Runs, none()).status, Good, "CAP_SYS_NICE of this process");
    }

    #[test]
    fn no_priority_no_right_needed() {
        let other = Intent { priority: 0, ..intent() };
        assert_eq!(CHECK.judge(&good(), &other).status, NotApplicable);
    }
}
