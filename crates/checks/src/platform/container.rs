//! Is this a container, and may it do what real-time needs?
//!
//! A container adds no latency of its own, but it cannot tune: the host's settings decide, /sys is
//! read-only, and without CAP_SYS_NICE or a limit there is no SCHED_FIFO.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::remedies::of_runtime;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "container",
    title: "container, and its right to be real-time",
    why: "in a container the host's settings decide, and without CAP_SYS_NICE or RLIMIT_RTPRIO its \
          tasks stay ordinary ones",
    source: "sched(7); capabilities(7) (CAP_SYS_NICE); Flatscher, \"Real-time Optimizations\" \
             (latencies as on the host)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("none, or one that may use the application's priority"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let container = &facts.virt.container;
    let draft = draft.read(container, |name| name.clone().unwrap_or_else(|| "none".into()));
    let Some(found) = container.value() else {
        return draft.blind(container);
    };
    let Some(name) = found else {
        return draft.good("none");
    };
    let (rtprio, capability) = (&facts.limits.rtprio, &facts.limits.cap_sys_nice);
    // Of another user namespace (a rootless container) the kernel does not count it.
    let counts = facts.rights.initial_user_namespace.value() != Some(&false);
    let draft = draft
        .read(capability, |has| match has {
            true if counts => "CAP_SYS_NICE held".into(),
            true => "CAP_SYS_NICE, of another user namespace".into(),
            false => "CAP_SYS_NICE not held".into(),
        })
        .read(rtprio, |limit| match limit.soft {
            Some(most) => format!("RLIMIT_RTPRIO {most}"),
            None => "RLIMIT_RTPRIO unlimited".into(),
        });
    let is_enough = rtprio
        .value()
        .map(|limit| limit.soft.is_none_or(|most| most >= u64::from(intent.priority)));
    match (capability.value().map(|has| *has && counts), is_enough) {
        (Some(true), _) | (_, Some(true)) => {
            let text = format!(
                "rtproof check --prove priority --priority {}, and `rtproof prove` on the host",
                intent.priority
            );
            draft.remedies([Remedy::Manual { text }]).doubtful(format!(
                "{name}: it has the right to the priority, which --prove priority tries; the \
                 host's settings decide, prove it too"
            ))
        }
        (Some(false), Some(false)) => {
            let text = of_runtime(name, "rtprio", &intent.priority.to_string());
            draft
                .remedies([Remedy::Manual { text }])
                .bad(format!("{name}: it may not use priority {}", intent.priority))
        }
        (None, _) => draft.blind(capability),
        (_, None) => draft.blind(rtprio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;
    use rtproof_host::facts::limits::Limit;

    #[test]
    fn rights_decide_in_a_container() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.virt.container = Reading::known("/.dockerenv", Some("docker".into()));
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        // A group without real-time runtime refuses it all the same: nobody has looked.
        assert!(finding.summary.starts_with("docker: it has the right"), "{}", finding.summary);
        let fix = finding.remedies[0].to_string();
        assert!(fix.contains("--prove priority") && !fix.contains("--cap-add"), "{fix}");
        let limit = Limit { soft: Some(0), hard: Some(0) };
        facts.limits.rtprio = Reading::known("/proc/self/limits", limit);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "docker: it may not use priority 80");
        let fix = finding.remedies[0].to_string();
        assert!(fix.contains("--cap-add SYS_NICE, or with --ulimit rtprio=80"), "{fix}");
        facts.limits.cap_sys_nice = Reading::known("/proc/self/status", true);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        facts.rights.initial_user_namespace = Reading::known("/proc/self/uid_map", false);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Bad);
    }

    #[test]
    fn unknown() {
        let mut facts = good();
        facts.virt.container = Reading::denied("/proc/1/environ", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.virt.container = Reading::known("/.dockerenv", Some("docker".into()));
        facts.limits.cap_sys_nice = Reading::absent("/proc/self/status");
        facts.limits.rtprio = Reading::absent("/proc/self/limits");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
