//! May this user lock its memory?
//!
//! rtproof itself locks less than 4 MiB, so a small limit does not stop it from measuring; an
//! application that calls `mlockall(MCL_FUTURE)` meets the limit with its next stack.

use rtproof_host::{Facts, facts::limits::Limit};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::remedies::{from_next_login, of_user, right};
use crate::text;
use crate::{Finding, Impact, Intent, When};

/// What rtproof locks at most.
const OWN_BYTES: u64 = 4 << 20;

pub(super) static CHECK: Check = Check {
    id: "limits-memlock",
    title: "right to lock memory",
    why: "without locked memory a page may be missing when it is needed: a page fault, from disk \
          milliseconds",
    source: "mlock(2), getrlimit(2); Wu, \"Real-time programming with Linux, part 2\"",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("CAP_IPC_LOCK, or unlimited"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let remedies =
        right(facts, intent.user.as_ref(), "memlock", "unlimited", "LimitMEMLOCK=infinity");
    if let Some(finding) = of_user(&draft, intent, "memlock", u64::MAX, &remedies) {
        return finding;
    }
    let (cap, limit) = (&facts.limits.cap_ipc_lock, &facts.limits.memlock);
    // Of another user namespace (a rootless container) the kernel does not count it.
    let counts = facts.rights.initial_user_namespace.value() != Some(&false);
    if cap.value() == Some(&true) && counts {
        return draft
            .read(cap, |_| "CAP_IPC_LOCK".into())
            .good("CAP_IPC_LOCK: no limit on locked memory, as this user");
    }
    let draft = draft.read(limit, show);
    let Some(&found) = limit.value() else {
        return draft.blind(limit);
    };
    let Some(soft) = found.soft else {
        return draft.good("no limit on locked memory, as this user");
    };
    let Some(_) = cap.value() else {
        return draft.blind(cap);
    };
    let draft = draft
        .read(cap, |&has| match has {
            true => "CAP_IPC_LOCK, of another user namespace".into(),
            false => "no CAP_IPC_LOCK".into(),
        })
        .remedies(remedies);
    let size = text::bytes(soft);
    let later = from_next_login(intent, "memlock", u64::MAX);
    if found.hard.is_none() {
        return draft.doubtful(format!("{size} until the soft limit is raised: no hard limit"));
    }
    if soft < OWN_BYTES {
        return draft.bad(format!("this user may lock {size}: too little even to measure{later}"));
    }
    draft.doubtful(format!("this user may lock {size}; mlockall of more fails{later}"))
}

fn show(limit: &Limit) -> String {
    let one = |limit: Option<u64>| limit.map_or("unlimited".into(), |b| format!("{b} bytes"));
    format!("{} (hard {})", one(limit.soft), one(limit.hard))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn judge(soft: Option<u64>, hard: Option<u64>, cap: Option<bool>) -> Finding {
        let mut facts = good();
        facts.limits.memlock = Reading::known("/proc/self/limits", Limit { soft, hard });
        let path = "/proc/self/status";
        facts.limits.cap_ipc_lock =
            cap.map_or_else(|| Reading::denied(path, "EACCES"), |cap| Reading::known(path, cap));
        CHECK.judge(&facts, &intent())
    }

    #[test]
    fn unlimited_or_the_capability_is_good() {
        assert_eq!(judge(None, None, Some(false)).status, Good);
        assert_eq!(judge(Some(0), Some(0), Some(true)).status, Good);
        assert_eq!(judge(None, None, None).status, Good);
    }

    #[test]
    fn a_limit_is_given_in_bytes() {
        let finding = judge(Some(8 << 20), Some(8 << 20), Some(false));
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "this user may lock 8 MiB; mlockall of more fails");
        assert_eq!(finding.evidence[0].value, "8388608 bytes (hard 8388608 bytes)");
        assert_eq!(judge(Some(65_536), Some(65_536), Some(false)).status, Bad);
        assert_eq!(judge(Some(65_536), None, Some(false)).status, Doubtful);
    }

    #[test]
    fn a_capability_of_another_namespace_does_not_count() {
        let mut facts = good();
        let limit = Limit { soft: Some(65_536), hard: Some(65_536) };
        facts.limits.memlock = Reading::known("/proc/self/limits", limit);
        facts.limits.cap_ipc_lock = Reading::known("/proc/self/status", true);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.rights.initial_user_namespace = Reading::known("/proc/self/ns/user", false);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Bad);
    }

    #[test]
    fn an_unknown_capability_decides_nothing() {
        assert_eq!(judge(Some(8 << 20), Some(8 << 20), None).status, Unknown);
    }
}
